// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every collective publishes its signature with its number before anything
 * else. Ranks that see it compare at once; ranks that wait somewhere else,
 * because a different call takes a different way, come here after 10 ms. What
 * nobody saw at the time is in the signatures of all later calls.
 */
#include <stdio.h>

#include "exec/comm.h"
#include "exec/mismatch.h"

const char *const hcomm_coll_names[] = {
	[HCOMM_COLL_ALLREDUCE] = "AllReduce",
	[HCOMM_COLL_BROADCAST] = "Broadcast",
	[HCOMM_COLL_REDUCE] = "Reduce",
	[HCOMM_COLL_ALLGATHER] = "AllGather",
	[HCOMM_COLL_REDUCESCATTER] = "ReduceScatter",
	[HCOMM_COLL_BARRIER] = "Barrier",
	[HCOMM_COLL_DESTROY] = "CommDestroy",
};

static uint32_t mix(uint32_t hash, uint64_t value)
{
	value ^= hash;
	value *= 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(value >> 32) ^ (uint32_t)value;
}

uint32_t hcomm_history(const struct hcommComm *comm,
		       const struct hcomm_desc *desc)
{
	uint32_t hash = mix((uint32_t)comm->n, desc->kind);

	hash = mix(hash, desc->count);
	hash = mix(hash, (uint64_t)desc->type << 32 | desc->redop);
	hash = mix(hash, (uint64_t)(uint32_t)desc->root);
	return mix(hash, desc->history);
}

uint32_t hcomm_signature(uint32_t history, const struct hcomm_desc *desc)
{
	return mix(history, desc->heap_hash);
}

static void describe(char *text, size_t room, const struct hcomm_desc *desc)
{
	const char *name = desc->kind < HCOMM_NR_COLLS ?
			   hcomm_coll_names[desc->kind] : "?";
	char root[24] = "";

	if (desc->root >= 0)
		snprintf(root, sizeof(root), ", root %d", desc->root);
	if (desc->kind >= HCOMM_COLL_BARRIER)
		snprintf(text, room, "%s", name);
	else
		snprintf(text, room, "%s(%llu %s, %s%s)", name,
			 (unsigned long long)desc->count,
			 hcommTypeName((hcommDataType_t)desc->type),
			 hcommRedOpName((hcommRedOp_t)desc->redop), root);
}

/*
 * The first operation whose two descriptions are still there and differ; they
 * are copied. 0 when there is none.
 */
static uint64_t first_difference(struct hcommComm *comm, int rank,
				 struct hcomm_desc *mine,
				 struct hcomm_desc *theirs)
{
	uint64_t op = comm->op < HCOMM_SLOTS ? 1 : comm->op - HCOMM_SLOTS + 1;

	for (; op <= comm->op; op++) {
		*mine = comm->ctrl->desc[op % HCOMM_SLOTS];
		*theirs = hcomm_rank(comm, rank)->ctrl->desc[op % HCOMM_SLOTS];
		if (mine->op == op && theirs->op == op &&
		    (mine->kind != theirs->kind ||
		     mine->count != theirs->count ||
		     mine->type != theirs->type ||
		     mine->redop != theirs->redop ||
		     mine->root != theirs->root))
			return op;
	}
	return 0;
}

hcommResult_t hcomm_mismatch_fail(struct hcommComm *comm, int rank)
{
	struct hcomm_desc mine, theirs;
	char here[96], there[96];
	uint64_t op = first_difference(comm, rank, &mine, &theirs);

	/* Without a difference they are those of the present operation. */
	if (!op && mine.history != theirs.history)
		return hcomm_comm_fail(comm, HCOMM_MISMATCH, rank, false,
			"rank %d made another call than rank %d as an earlier "
			"operation: make the same calls in the same order on "
			"every rank", rank, comm->rank);
	if (!op)
		return hcomm_comm_fail(comm, HCOMM_MISMATCH, rank, false,
			"rank %d's heap calls differ: its last was number %u "
			"(%llu bytes), here number %u (%llu bytes): allocate "
			"and free the same on every rank", rank,
			theirs.heap_calls,
			(unsigned long long)theirs.heap_size, mine.heap_calls,
			(unsigned long long)mine.heap_size);
	describe(here, sizeof(here), &mine);
	describe(there, sizeof(there), &theirs);
	return hcomm_comm_fail(comm, HCOMM_MISMATCH, rank, false,
		"rank %d calls %s as operation %llu, rank %d calls %s: make "
		"the same calls in the same order on every rank", rank, there,
		(unsigned long long)op, comm->rank, here);
}

hcommResult_t hcomm_mismatch_search(struct hcommComm *comm)
{
	int slot = comm->op % HCOMM_SLOTS, i;
	uint64_t mine = comm->ctrl->slot[slot].word;

	if (!comm->op || (uint32_t)mine != (uint32_t)comm->op)
		return HCOMM_SUCCESS;
	for (i = 0; i < comm->nlocal; i++) {
		struct hcomm_rank_state *peer = hcomm_rank(comm,
							   comm->locals[i]);
		uint64_t theirs = __atomic_load_n(&peer->ctrl->slot[slot].word,
						  __ATOMIC_ACQUIRE);

		if ((uint32_t)theirs == (uint32_t)mine && theirs != mine)
			return hcomm_mismatch_fail(comm, peer->rank);
	}
	return HCOMM_SUCCESS;
}
