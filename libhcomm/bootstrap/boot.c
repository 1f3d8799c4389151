// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The common half of meeting: proofs, rounds, closing. serve.c is rank 0's
 * side, attend.c everybody else's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/boot.h"
#include "bootstrap/proof.h"
#include "bootstrap/stream.h"
#include "bootstrap/wire.h"

#define NOTICE_TIME	5000000000ULL	/* until the log tells who is missing */

void hcomm_boot_proof(const struct hcomm_meeting *meeting,
		      enum hcomm_proof_side side, uint32_t rank, uint32_t n,
		      const uint8_t *client_nonce, const uint8_t *root_nonce,
		      uint8_t *proof)
{
	struct {
		char what[16];
		uint32_t side;
		uint32_t rank;
		uint32_t n;
		uint32_t zero;
		uint8_t client[HCOMM_BOOT_NONCE];
		uint8_t root[HCOMM_BOOT_NONCE];
		uint8_t job[HCOMM_BOOT_ID];
	} said = { .what = "hcomm bootstrap", .side = side, .rank = rank,
		   .n = n };

	memcpy(said.client, client_nonce, sizeof(said.client));
	memcpy(said.root, root_nonce, sizeof(said.root));
	memcpy(said.job, meeting->job, sizeof(said.job));
	hcomm_hmac(meeting->secret, &said, sizeof(said), proof);
}

hcommResult_t hcomm_boot_open(struct hcomm_boot *boot,
			      const struct hcomm_meeting *meeting,
			      const struct hcomm_record *mine, int n,
			      uint64_t timeout_ns)
{
	int i, nfds = mine->rank ? 1 : n;

	memset(boot, 0, sizeof(*boot));
	boot->rank = (int)mine->rank;
	boot->n = n;
	boot->start = hcomm_now();
	boot->deadline = boot->start + timeout_ns;
	boot->authenticated = meeting->authenticated;
	boot->table = calloc((size_t)n, sizeof(*boot->table));
	boot->fds = malloc((size_t)nfds * sizeof(*boot->fds));
	if (!boot->table || !boot->fds) {
		snprintf(boot->why, sizeof(boot->why), "out of memory");
		return HCOMM_OUT_OF_MEMORY;
	}
	for (i = 0; i < nfds; i++)
		boot->fds[i] = -1;
	boot->table[boot->rank] = *mine;
	if (boot->rank)
		return hcomm_boot_attend(boot, meeting);
	return hcomm_boot_serve(boot, meeting);
}

bool hcomm_boot_notice_due(struct hcomm_boot *boot)
{
	if (boot->noticed || hcomm_now() - boot->start < NOTICE_TIME)
		return false;
	boot->noticed = true;
	return true;
}

void hcomm_boot_clean(char *text, size_t room)
{
	size_t i;

	text[room - 1] = 0;
	for (i = 0; text[i]; i++)
		if (text[i] < ' ' || text[i] > '~')
			text[i] = '?';
}

static void set_verdict(struct hcomm_boot_verdict *verdict, int rank,
			hcommResult_t result, const char *text)
{
	memset(verdict, 0, sizeof(*verdict));
	verdict->result = result;
	verdict->rank = (uint32_t)rank;
	if (result && text)
		snprintf(verdict->text, sizeof(verdict->text), "%s", text);
}

static void lost(struct hcomm_boot_verdict *verdict, int rank, int err)
{
	char text[128];

	snprintf(text, sizeof(text), err == -ETIMEDOUT ?
		 "rank %d did not answer while the group was made" :
		 "rank %d ended while the group was made", rank);
	set_verdict(verdict, rank, err == -ETIMEDOUT ? HCOMM_TIMEOUT :
						       HCOMM_REMOTE_ERROR, text);
}

static void gather(struct hcomm_boot *boot, struct hcomm_boot_verdict *worst)
{
	struct hcomm_boot_verdict theirs;
	int r, err;

	for (r = 1; r < boot->n; r++) {
		err = boot->fds[r] < 0 ? -ECONNRESET :
			hcomm_stream_recv(boot->fds[r], &theirs,
					  sizeof(theirs), boot->deadline);
		if (err)
			lost(&theirs, r, err);
		if (theirs.result && !worst->result)
			*worst = theirs;
	}
	for (r = 1; r < boot->n; r++)
		if (boot->fds[r] >= 0)
			hcomm_stream_send(boot->fds[r], worst, sizeof(*worst),
					  boot->deadline);
}

hcommResult_t hcomm_boot_sync(struct hcomm_boot *boot, hcommResult_t result,
			      const char *text)
{
	struct hcomm_boot_verdict verdict;
	int err;

	set_verdict(&verdict, boot->rank, result, text);
	if (!boot->rank) {
		gather(boot, &verdict);
	} else {
		err = hcomm_stream_send(boot->fds[0], &verdict, sizeof(verdict),
					boot->deadline);
		if (!err)
			err = hcomm_stream_recv(boot->fds[0], &verdict,
						sizeof(verdict),
						boot->deadline);
		if (err)
			lost(&verdict, 0, err);
	}
	if (!verdict.result)
		return HCOMM_SUCCESS;
	hcomm_boot_clean(verdict.text, sizeof(verdict.text));
	if ((int)verdict.rank == boot->rank)
		snprintf(boot->why, sizeof(boot->why), "%s", verdict.text);
	else
		snprintf(boot->why, sizeof(boot->why), "rank %u: %.480s",
			 verdict.rank, verdict.text);
	if (verdict.result >= HCOMM_NR_RESULTS)
		return HCOMM_INTERNAL_ERROR;
	return (hcommResult_t)verdict.result;
}

void hcomm_boot_close(struct hcomm_boot *boot)
{
	int i, nfds = boot->rank ? 1 : boot->n;

	if (boot->fds) {
		for (i = 0; i < nfds; i++)
			if (boot->fds[i] >= 0)
				close(boot->fds[i]);
	}
	free(boot->fds);
	free(boot->table);
	boot->fds = NULL;
	boot->table = NULL;
	explicit_bzero(boot->secret, sizeof(boot->secret));
}
