// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every heap has a line for each rank: the owner's own is the source of its
 * hints, the others are where theirs arrive. A line holds the number of the
 * collective in the high half, and 1 + the rank it waits for in the low half. A
 * rank takes back what it said when its wait ends; should that hint find no
 * room, the number tells that it is long ago. Who is late may be some
 * collectives behind.
 *
 * What a stopped process said last is not true any more: it is the culprit.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "exec/blame.h"
#include "exec/comm.h"
#include "exec/transport.h"

#define MOST_BEHIND	HCOMM_SLOTS	/* collectives */

void hcomm_blame_sleep(struct hcommComm *comm, int rank)
{
	__atomic_store_n(&comm->ctrl->waits_for, (uint32_t)(rank + 1),
			 __ATOMIC_RELAXED);
}

void hcomm_blame_awake(struct hcommComm *comm)
{
	__atomic_store_n(&comm->ctrl->waits_for, 0, __ATOMIC_RELAXED);
}

static uint64_t *line_of(struct hcommComm *comm, int rank)
{
	return (uint64_t *)(comm->heap +
			    hcomm_layout_flag(comm->layout.waits,
					      (uint32_t)rank));
}

void hcomm_blame_tell(struct hcommComm *comm, int rank)
{
	size_t at = hcomm_layout_flag(comm->layout.waits, (uint32_t)comm->rank);
	int r;

	if (!comm->transport->hint || comm->nlocal == comm->n)
		return;
	__atomic_store_n(line_of(comm, comm->rank),
			 comm->op << 32 | (uint32_t)(rank + 1),
			 __ATOMIC_RELAXED);
	for (r = 0; r < comm->n; r++)
		if (!hcomm_rank(comm, r)->local)
			comm->transport->hint(comm, r, at, sizeof(uint64_t));
}

/* State "T" or "t" after the name's closing bracket. */
static bool is_stopped(pid_t pid)
{
	char path[40], text[512] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		*text = 0;
	fclose(file);
	state = strrchr(text, ')');
	return state && (!strncmp(state, ") T", 3) ||
			 !strncmp(state, ") t", 3));
}

/* 1 + whom @rank waits for, 0 if it does not say. */
static uint32_t waits_for(struct hcommComm *comm, int rank)
{
	struct hcomm_rank_state *peer = hcomm_rank(comm, rank);
	uint32_t behind;
	uint64_t line;

	if (peer->local)
		return is_stopped(peer->pid) ? 0 :
		       __atomic_load_n(&peer->ctrl->waits_for,
				       __ATOMIC_RELAXED);
	line = __atomic_load_n(line_of(comm, rank), __ATOMIC_RELAXED);
	behind = (uint32_t)comm->op - (uint32_t)(line >> 32);
	return behind < MOST_BEHIND ? (uint32_t)line : 0;
}

int hcomm_blame_find(struct hcommComm *comm, int rank)
{
	uint32_t next;
	int steps;

	for (steps = 0; rank >= 0 && steps < comm->n; steps++) {
		if (rank == comm->rank)
			break;
		next = waits_for(comm, rank);
		if (!next || next > (uint32_t)comm->n ||
		    (int)next - 1 == comm->rank)
			break;
		rank = (int)next - 1;
	}
	return rank;
}
