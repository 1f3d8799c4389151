// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rank 0's side of meeting: one poll loop over the listener and a fixed
 * number of connections. A connection that has not proved itself within 5 s
 * is dropped, and the oldest of those when the places run out, so strangers
 * cannot keep the ranks of the job away.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/boot.h"
#include "bootstrap/proof.h"
#include "bootstrap/stream.h"
#include "bootstrap/wire.h"
#include "config/files.h"

#define NSEC		1000000000ULL
#define STRANGER_TIME	(5 * NSEC)
#define GUESTS		64

/* A connection on its way to a seat. */
struct guest {
	int fd;
	uint64_t since;
	bool greeted;		/* hello done, the seat comes next */
	size_t have;
	struct hcomm_boot_hello hello;
	struct hcomm_boot_answer answer;
	struct hcomm_boot_seat seat;
};

struct hall {
	struct hcomm_boot *boot;
	const struct hcomm_meeting *meeting;
	struct guest guests[GUESTS];
	int listener;
	int seated;
	unsigned int strangers;	/* spoke no word of ours */
	unsigned int liars;	/* could not prove the secret */
};

static void dismiss(struct guest *guest)
{
	if (guest->fd >= 0)
		close(guest->fd);
	guest->fd = -1;
}

static int admit(struct hall *hall)
{
	struct guest *guest = NULL, *oldest = &hall->guests[0];
	int i, one = 1, fd = hcomm_accept(hall->listener);

	if (fd < 0)
		return fd == -EAGAIN ? 0 : fd;
	if (hall->meeting->unix_socket && hcomm_check_peer_user(fd)) {
		close(fd);
		return 0;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	for (i = 0; i < GUESTS; i++) {
		if (hall->guests[i].fd < 0)
			guest = &hall->guests[i];
		else if (hall->guests[i].since < oldest->since)
			oldest = &hall->guests[i];
	}
	if (!guest) {
		guest = oldest;
		dismiss(guest);
	}
	memset(guest, 0, sizeof(*guest));
	guest->fd = fd;
	guest->since = hcomm_now();
	return 0;
}

/* 1 complete, 0 more to come, negative: gone. */
static int collect(struct guest *guest, void *to, size_t want)
{
	ssize_t got = recv(guest->fd, (char *)to + guest->have,
			   want - guest->have, 0);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (!got)
		return -ECONNRESET;
	guest->have += (size_t)got;
	return guest->have == want;
}

static void refuse(struct guest *guest, const char *text)
{
	guest->answer.status = HCOMM_BOOT_REFUSED;
	snprintf(guest->answer.text, sizeof(guest->answer.text), "%s", text);
	hcomm_log(HCOMM_LOG_WARN, "refused rank %u: %s", guest->hello.rank,
		  text);
}

static void compose(struct hall *hall, struct guest *guest)
{
	const struct hcomm_boot_hello *hello = &guest->hello;
	struct hcomm_boot *boot = hall->boot;
	char text[200];

	memset(&guest->answer, 0, sizeof(guest->answer));
	guest->answer.magic = HCOMM_BOOT_MAGIC;
	guest->answer.version = HCOMM_BOOT_VERSION;
	if (memcmp(hello->job, hall->meeting->job, sizeof(hello->job))) {
		guest->answer.status = HCOMM_BOOT_OTHER_JOB;
	} else if (hello->version != HCOMM_BOOT_VERSION ||
		   hello->library != HCOMM_VERSION_CODE) {
		snprintf(text, sizeof(text), "library %u (protocol %u) there, "
			 "%u (%u) here: use one version on all nodes",
			 hello->library, hello->version, HCOMM_VERSION_CODE,
			 HCOMM_BOOT_VERSION);
		refuse(guest, text);
	} else if (hello->n != (uint32_t)boot->n) {
		snprintf(text, sizeof(text), "rank %u says the group has %u "
			 "ranks, rank 0 says %d", hello->rank, hello->n,
			 boot->n);
		refuse(guest, text);
	} else if (!hello->rank || hello->rank >= hello->n) {
		snprintf(text, sizeof(text), "rank %u is not free in a group "
			 "of %u", hello->rank, hello->n);
		refuse(guest, text);
	} else if (boot->fds[hello->rank] >= 0) {
		snprintf(text, sizeof(text), "two processes say they are rank "
			 "%u", hello->rank);
		refuse(guest, text);
	} else if (!hello->authenticated != !hall->meeting->authenticated) {
		snprintf(text, sizeof(text), "rank %u %s a secret, rank 0 %s",
			 hello->rank, hello->authenticated ? "has" : "has not",
			 hello->authenticated ? "has not" : "has");
		refuse(guest, text);
	}
}

/* False when the guest has to go. */
static bool greet(struct hall *hall, struct guest *guest)
{
	struct hcomm_boot_answer *answer = &guest->answer;

	if (guest->hello.magic != HCOMM_BOOT_MAGIC) {
		hall->strangers++;
		return false;
	}
	compose(hall, guest);
	if (!answer->status) {
		if (hcomm_random(answer->nonce, sizeof(answer->nonce)))
			return false;
		hcomm_boot_proof(hall->meeting, HCOMM_PROOF_ROOT,
				 guest->hello.rank, guest->hello.n,
				 guest->hello.nonce, answer->nonce,
				 answer->proof);
	}
	/* Fits any socket's buffer: who does not take it at once may go. */
	if (hcomm_stream_send(guest->fd, answer, sizeof(*answer), 0))
		return false;
	guest->greeted = true;
	guest->have = 0;
	return !answer->status;
}

static bool seat(struct hall *hall, struct guest *guest)
{
	struct hcomm_boot *boot = hall->boot;
	uint32_t rank = guest->hello.rank;
	uint8_t proof[HCOMM_DIGEST_BYTES];

	hcomm_boot_proof(hall->meeting, HCOMM_PROOF_CLIENT, rank,
			 guest->hello.n, guest->hello.nonce,
			 guest->answer.nonce, proof);
	if (!hcomm_digest_equal(proof, guest->seat.proof)) {
		hall->liars++;
		return false;
	}
	/* The first proven claim wins. */
	if (guest->seat.record.rank != rank || boot->fds[rank] >= 0)
		return false;
	boot->table[rank] = guest->seat.record;
	boot->fds[rank] = guest->fd;
	guest->fd = -1;
	hall->seated++;
	return true;
}

static void listen_to(struct hall *hall, struct guest *guest)
{
	int got;

	if (!guest->greeted) {
		got = collect(guest, &guest->hello, sizeof(guest->hello));
		if (got < 0 || (got && !greet(hall, guest))) {
			dismiss(guest);
			return;
		}
	}
	if (!guest->greeted)
		return;
	got = collect(guest, &guest->seat, sizeof(guest->seat));
	if (got < 0) {
		/* Gone after our proof: it knows another secret. */
		if (got == -ECONNRESET && !guest->have)
			hall->liars++;
		dismiss(guest);
	} else if (got && !seat(hall, guest)) {
		dismiss(guest);
	}
}

static void drop_stale(struct hall *hall, uint64_t now)
{
	int i;

	for (i = 0; i < GUESTS; i++) {
		struct guest *guest = &hall->guests[i];

		if (guest->fd >= 0 && now > guest->since + STRANGER_TIME) {
			hall->strangers++;
			dismiss(guest);
		}
	}
}

/* Who is missing, and why that may be. */
static void say_missing(struct hall *hall)
{
	struct hcomm_boot *boot = hall->boot;
	size_t room = sizeof(boot->why), at;
	int r, listed = 0;

	at = (size_t)snprintf(boot->why, room, "%d of %d ranks came in %.3g s "
			      "(HCOMM_CONNECT_TIMEOUT is %.3g s); missing:",
			      hall->seated, boot->n,
			      (double)(hcomm_now() - boot->start) / NSEC,
			      (double)(boot->deadline - boot->start) / NSEC);
	for (r = 1; r < boot->n && listed < 16; r++) {
		if (boot->fds[r] >= 0)
			continue;
		at += (size_t)snprintf(boot->why + at, room - at, " %d", r);
		listed++;
	}
	if (hall->liars)
		at += (size_t)snprintf(boot->why + at, room - at,
				       "; %u connections did not know the secret",
				       hall->liars);
	if (hall->strangers)
		snprintf(boot->why + at, room - at,
			 "; %u connections were not hcomm's", hall->strangers);
}

static int fill_seats(struct hall *hall)
{
	struct pollfd pfds[GUESTS + 1];
	uint64_t now;
	int i, got, err = 0;

	while (!err && hall->seated < hall->boot->n) {
		now = hcomm_now();
		if (now >= hall->boot->deadline)
			return -ETIMEDOUT;
		drop_stale(hall, now);
		if (hcomm_boot_notice_due(hall->boot)) {
			say_missing(hall);
			hcomm_log(HCOMM_LOG_WARN, "rank 0: %s",
				  hall->boot->why);
		}
		for (i = 0; i < GUESTS; i++)
			pfds[i] = (struct pollfd) { .fd = hall->guests[i].fd,
						    .events = POLLIN };
		pfds[GUESTS] = (struct pollfd) { .fd = hall->listener,
						 .events = POLLIN };
		got = poll(pfds, GUESTS + 1, 100);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got <= 0)
			continue;
		for (i = 0; i < GUESTS; i++)
			if (pfds[i].revents)
				listen_to(hall, &hall->guests[i]);
		if (pfds[GUESTS].revents)
			err = admit(hall);
	}
	return err;
}

static int open_listener(struct hcomm_boot *boot, const struct hcomm_meeting *m)
{
	int fd = hcomm_meeting_take_listener(m->job);
	int port;

	if (fd >= 0)
		return fd;
	if (m->unix_socket) {
		fd = hcomm_listen_unix(m->host);
		if (fd < 0)
			snprintf(boot->why, sizeof(boot->why),
				 "local socket \"%s\" (from %s): %s. Is another "
				 "job with this name running? Set HCOMM_JOB",
				 m->host, m->source, strerror(-fd));
		return fd;
	}
	for (port = 0; port < m->nports; port++) {
		fd = hcomm_listen_tcp((uint16_t)(m->port + port));
		if (fd >= 0)
			return fd;
	}
	snprintf(boot->why, sizeof(boot->why),
		 "rank 0 cannot listen on TCP port %u%s (from %s): %s", m->port,
		 m->nports > 1 ? " nor on those after it" : "", m->source,
		 strerror(-fd));
	return fd;
}

/* Nobody else comes: the listener of a unique id has no use. */
static void hall_not_needed(const struct hcomm_meeting *m)
{
	int fd = hcomm_meeting_take_listener(m->job);

	if (fd >= 0)
		close(fd);
}

static int send_welcome(struct hcomm_boot *boot, hcommResult_t result)
{
	struct hcomm_boot_welcome welcome = {
		.magic = HCOMM_BOOT_MAGIC, .result = result,
		.n = (uint32_t)boot->n,
	};
	int r, err;

	memcpy(welcome.group_id, boot->group_id, sizeof(welcome.group_id));
	if (!boot->authenticated)
		memcpy(welcome.secret, boot->secret, sizeof(welcome.secret));
	if (result)
		memcpy(welcome.text, boot->why, sizeof(welcome.text));
	for (r = 1; r < boot->n; r++) {
		/* Bounded even when the deadline has passed. */
		uint64_t deadline = hcomm_now() + STRANGER_TIME;

		if (boot->fds[r] < 0)
			continue;
		err = hcomm_stream_send(boot->fds[r], &welcome,
					sizeof(welcome), deadline);
		if (!err && !result)
			err = hcomm_stream_send(boot->fds[r], boot->table,
						(size_t)boot->n *
						sizeof(*boot->table), deadline);
		if (err && !result) {
			snprintf(boot->why, sizeof(boot->why),
				 "rank %d ended while the ranks met: %s", r,
				 strerror(-err));
			return err;
		}
	}
	return 0;
}

hcommResult_t hcomm_boot_serve(struct hcomm_boot *boot,
			       const struct hcomm_meeting *m)
{
	hcommResult_t res;
	struct hall *hall;
	int i, err;

	if (hcomm_random(boot->group_id, sizeof(boot->group_id)) ||
	    hcomm_random(boot->secret, sizeof(boot->secret))) {
		snprintf(boot->why, sizeof(boot->why), "no random bytes");
		return HCOMM_SYSTEM_ERROR;
	}
	if (boot->n == 1) {
		hall_not_needed(m);
		return HCOMM_SUCCESS;
	}
	res = hcomm_files_reserve(GUESTS + (unsigned int)boot->n + 1, "rank 0",
				  boot->why, sizeof(boot->why));
	if (res)
		return res;
	hall = calloc(1, sizeof(*hall));
	if (!hall) {
		snprintf(boot->why, sizeof(boot->why), "out of memory");
		return HCOMM_OUT_OF_MEMORY;
	}
	hall->boot = boot;
	hall->meeting = m;
	hall->seated = 1;
	for (i = 0; i < GUESTS; i++)
		hall->guests[i].fd = -1;
	hall->listener = open_listener(boot, m);
	if (hall->listener < 0) {
		free(hall);
		return HCOMM_SYSTEM_ERROR;
	}
	err = fill_seats(hall);
	/* Closed before the welcome: whoever comes later is of the next group. */
	close(hall->listener);
	for (i = 0; i < GUESTS; i++)
		dismiss(&hall->guests[i]);
	if (err == -ETIMEDOUT)
		say_missing(hall);
	else if (err)
		snprintf(boot->why, sizeof(boot->why),
			 "rank 0 cannot take connections any more: %s%s",
			 strerror(-err), hcomm_files_advice(err));
	free(hall);
	if (err) {
		res = err == -ETIMEDOUT ? HCOMM_TIMEOUT : HCOMM_SYSTEM_ERROR;
		send_welcome(boot, res);
		return res;
	}
	return send_welcome(boot, HCOMM_SUCCESS) ? HCOMM_REMOTE_ERROR :
						   HCOMM_SUCCESS;
}
