// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A rank other than 0: tries to reach rank 0 until the deadline, since the
 * processes of a job start in any order, and until then takes a closed or
 * refused connection as "not there yet".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/boot.h"
#include "bootstrap/proof.h"
#include "bootstrap/stream.h"
#include "bootstrap/wire.h"
#include "config/files.h"

#define NSEC		1000000000ULL
#define ANSWER_TIME	(5 * NSEC)
#define ATTEND_FILES	8	/* the socket, and what resolves a name */
#define RETRY_FIRST	(5 * NSEC / 1000)
#define RETRY_LAST	(200 * NSEC / 1000)

/* What one try found. */
enum found { SEATED, NOT_THERE, NOT_OURS, HOPELESS };

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int reach(const struct hcomm_meeting *m, int port, uint64_t deadline)
{
	int fd, err;

	if (!m->unix_socket)
		return hcomm_connect_tcp(m->host, (uint16_t)(m->port + port),
					 earlier(deadline,
						 hcomm_now() + ANSWER_TIME));
	fd = hcomm_connect_unix(m->host);
	if (fd < 0)
		return fd;
	err = hcomm_check_peer_user(fd);
	if (err) {
		close(fd);
		return err;
	}
	return fd;
}

static int ask(struct hcomm_boot *boot, const struct hcomm_meeting *m, int fd,
	       struct hcomm_boot_hello *hello, struct hcomm_boot_answer *answer)
{
	uint64_t deadline = earlier(boot->deadline, hcomm_now() + ANSWER_TIME);
	int err;

	*hello = (struct hcomm_boot_hello) {
		.magic = HCOMM_BOOT_MAGIC, .version = HCOMM_BOOT_VERSION,
		.library = HCOMM_VERSION_CODE, .rank = (uint32_t)boot->rank,
		.n = (uint32_t)boot->n, .authenticated = m->authenticated,
	};
	memcpy(hello->job, m->job, sizeof(hello->job));
	err = hcomm_random(hello->nonce, sizeof(hello->nonce));
	if (err)
		return err;
	err = hcomm_stream_send(fd, hello, sizeof(*hello), deadline);
	if (err)
		return err;
	return hcomm_stream_recv(fd, answer, sizeof(*answer), deadline);
}

/* *@result and boot->why are set when the answer is final. */
static enum found judge(struct hcomm_boot *boot, const struct hcomm_meeting *m,
			const struct hcomm_boot_hello *hello,
			struct hcomm_boot_answer *answer, hcommResult_t *result)
{
	uint8_t proof[HCOMM_DIGEST_BYTES];

	if (answer->magic != HCOMM_BOOT_MAGIC ||
	    (answer->status != HCOMM_BOOT_OK &&
	     answer->status != HCOMM_BOOT_REFUSED))
		return NOT_OURS;
	if (answer->status == HCOMM_BOOT_REFUSED) {
		hcomm_boot_clean(answer->text, sizeof(answer->text));
		snprintf(boot->why, sizeof(boot->why), "rank 0 refused: %s",
			 answer->text);
		*result = HCOMM_MISMATCH;
		return HOPELESS;
	}
	hcomm_boot_proof(m, HCOMM_PROOF_ROOT, hello->rank, hello->n,
			 hello->nonce, answer->nonce, proof);
	if (hcomm_digest_equal(proof, answer->proof))
		return SEATED;
	snprintf(boot->why, sizeof(boot->why),
		 "rank 0 does not know this rank's secret (%s): give all ranks "
		 "the same HCOMM_SECRET or HCOMM_SECRET_FILE", m->source);
	*result = HCOMM_PERMISSION_DENIED;
	return HOPELESS;
}

static enum found try_port(struct hcomm_boot *boot,
			   const struct hcomm_meeting *m, int port,
			   hcommResult_t *result, int *err)
{
	struct hcomm_boot_hello hello;
	struct hcomm_boot_answer answer;
	struct hcomm_boot_seat seat;
	enum found found;
	int fd = reach(m, port, boot->deadline);

	*err = fd;
	if (fd < 0)
		return NOT_THERE;
	*err = ask(boot, m, fd, &hello, &answer);
	found = *err ? NOT_THERE : judge(boot, m, &hello, &answer, result);
	if (found == SEATED) {
		hcomm_boot_proof(m, HCOMM_PROOF_CLIENT, hello.rank, hello.n,
				 hello.nonce, answer.nonce, seat.proof);
		seat.record = boot->table[boot->rank];
		*err = hcomm_stream_send(fd, &seat, sizeof(seat),
					 boot->deadline);
		if (*err)
			found = NOT_THERE;
	}
	if (found == SEATED)
		boot->fds[0] = fd;
	else
		close(fd);
	return found;
}

static const char *explain(const struct hcomm_meeting *m, int err,
			   bool strangers)
{
	if (strangers)
		return "something else answers there";
	if (err == -ENOENT && !m->unix_socket)
		return "this host name cannot be resolved (/etc/hosts, DNS)";
	return strerror(-err);
}

/* What is known about rank 0 while it is not found. */
static void say_not_found(struct hcomm_boot *boot,
			  const struct hcomm_meeting *m, int err, bool strangers)
{
	char place[320];

	if (m->unix_socket)
		snprintf(place, sizeof(place), "local socket \"%s\"", m->host);
	else if (m->nports > 1)
		snprintf(place, sizeof(place), "%s ports %u to %u", m->host,
			 m->port, m->port + m->nports - 1);
	else
		snprintf(place, sizeof(place), "%s:%u", m->host, m->port);
	snprintf(boot->why, sizeof(boot->why),
		 "rank 0 not found at %.280s (from %s) in %.3g s "
		 "(HCOMM_CONNECT_TIMEOUT is %.3g s): %s. Is rank 0 running, "
		 "with the same settings?", place, m->source,
		 (double)(hcomm_now() - boot->start) / NSEC,
		 (double)(boot->deadline - boot->start) / NSEC,
		 explain(m, err, strangers));
}

/* One try at every port. */
static enum found try_all(struct hcomm_boot *boot,
			  const struct hcomm_meeting *m, hcommResult_t *result,
			  int *err, bool *strangers)
{
	enum found found = NOT_THERE;
	int port;

	for (port = 0; port < m->nports; port++) {
		found = try_port(boot, m, port, result, err);
		if (found == SEATED || found == HOPELESS)
			return found;
		if (found == NOT_OURS)
			*strangers = true;
	}
	return NOT_THERE;
}

static hcommResult_t sit_down(struct hcomm_boot *boot,
			      const struct hcomm_meeting *m)
{
	hcommResult_t result = HCOMM_TIMEOUT;
	uint64_t pause = RETRY_FIRST;
	bool strangers = false;
	int err = -ETIMEDOUT;

	while (hcomm_now() < boot->deadline) {
		struct timespec ts = { .tv_nsec = (long)pause };

		switch (try_all(boot, m, &result, &err, &strangers)) {
		case SEATED:
			return HCOMM_SUCCESS;
		case HOPELESS:
			return result;
		default:
			if (hcomm_boot_notice_due(boot)) {
				say_not_found(boot, m, err, strangers);
				hcomm_log(HCOMM_LOG_WARN, "rank %d: %s",
					  boot->rank, boot->why);
			}
			nanosleep(&ts, NULL);
			pause = earlier(2 * pause, RETRY_LAST);
		}
	}
	say_not_found(boot, m, err, strangers);
	return HCOMM_TIMEOUT;
}

/* -ECONNRESET before the welcome: rank 0 of an earlier group was closing. */
static int read_welcome(struct hcomm_boot *boot,
			struct hcomm_boot_welcome *welcome)
{
	/* Rank 0 gives up first and says why. */
	uint64_t deadline = boot->deadline + ANSWER_TIME;
	int err;

	err = hcomm_stream_recv(boot->fds[0], welcome, sizeof(*welcome),
				deadline);
	if (err || welcome->result)
		return err;
	if (welcome->magic != HCOMM_BOOT_MAGIC ||
	    welcome->n != (uint32_t)boot->n)
		return -EPROTO;
	memcpy(boot->group_id, welcome->group_id, sizeof(boot->group_id));
	memcpy(boot->secret, welcome->secret, sizeof(boot->secret));
	return hcomm_stream_recv(boot->fds[0], boot->table,
				 (size_t)boot->n * sizeof(*boot->table),
				 deadline);
}

hcommResult_t hcomm_boot_attend(struct hcomm_boot *boot,
				const struct hcomm_meeting *m)
{
	struct hcomm_record mine = boot->table[boot->rank];
	struct hcomm_boot_welcome welcome;
	hcommResult_t res;
	int err;

	res = hcomm_files_reserve(ATTEND_FILES, "a rank", boot->why,
				  sizeof(boot->why));
	if (res)
		return res;
	do {
		res = sit_down(boot, m);
		if (res)
			return res;
		err = read_welcome(boot, &welcome);
		if (err == -ECONNRESET) {
			close(boot->fds[0]);
			boot->fds[0] = -1;
			boot->table[boot->rank] = mine;
		}
	} while (err == -ECONNRESET);
	if (err) {
		snprintf(boot->why, sizeof(boot->why),
			 "rank 0 fell silent before all ranks were there: %s",
			 strerror(-err));
		return err == -ETIMEDOUT ? HCOMM_TIMEOUT : HCOMM_REMOTE_ERROR;
	}
	if (welcome.result) {
		hcomm_boot_clean(welcome.text, sizeof(welcome.text));
		snprintf(boot->why, sizeof(boot->why), "rank 0: %.480s",
			 welcome.text);
		return welcome.result < HCOMM_NR_RESULTS ?
		       (hcommResult_t)welcome.result : HCOMM_INTERNAL_ERROR;
	}
	if (memcmp(&boot->table[boot->rank], &mine, sizeof(mine))) {
		snprintf(boot->why, sizeof(boot->why),
			 "rank 0 sent a table in which this rank is another");
		return HCOMM_INTERNAL_ERROR;
	}
	return HCOMM_SUCCESS;
}
