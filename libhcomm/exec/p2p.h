/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Sends and receives, as things that run until they have to wait. */
#ifndef HCOMM_P2P_H
#define HCOMM_P2P_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/wait.h"

struct hcommComm;

struct hcomm_p2p {
	/* The caller's. */
	bool send;
	int peer;
	hcommDataType_t type;
	size_t bytes;
	const char *src;
	char *dst;

	/* The executor's. */
	bool started;
	bool done;
	uint64_t number;	/* among the sends from one rank to another */
	size_t at;
};

/*
 * Runs @nr of them to the end, those of one pair in order, all others
 * together. @conds has room for @nr.
 */
hcommResult_t hcomm_p2p_run_all(struct hcommComm *comm, struct hcomm_p2p *p2p,
				int nr, struct hcomm_cond *conds);

#endif
