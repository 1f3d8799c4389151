// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hcommGroupStart() and hcommGroupEnd(): a list of calls per thread. At the
 * end, group by group in the order of their first call, all sends and
 * receives run together, then the collectives in order.
 */
#include <stdlib.h>
#include <string.h>

#include "api/face.h"
#include "exec/coll.h"
#include "exec/p2p.h"
#include "exec/run.h"

#define MAX_CALLS	4096

struct noted {
	hcommComm_t comm;
	bool is_p2p;
	bool behind;		/* another of its group */
	union {
		struct hcomm_coll coll;
		struct hcomm_p2p p2p;
	};
};

static __thread struct {
	unsigned int depth;
	hcommResult_t spoiled;
	struct noted *calls;
	int nr;
	int room;
} list;

bool hcomm_group_open(void)
{
	return list.depth > 0;
}

void hcomm_group_spoil(hcommResult_t result)
{
	if (list.depth && !list.spoiled)
		list.spoiled = result;
}

static struct noted *note(hcommComm_t comm, hcommResult_t *res)
{
	struct noted *grown;
	int room = list.room ? 2 * list.room : 16;

	*res = HCOMM_SUCCESS;
	if (list.nr == MAX_CALLS) {
		*res = hcomm_comm_error(comm, HCOMM_INVALID_USAGE,
			"more than %d calls in one group of calls", MAX_CALLS);
	} else if (list.nr == list.room) {
		grown = realloc(list.calls, (size_t)room * sizeof(*grown));
		if (grown) {
			list.calls = grown;
			list.room = room;
		} else {
			*res = hcomm_comm_error(comm, HCOMM_OUT_OF_MEMORY,
						"out of memory");
		}
	}
	if (*res) {
		hcomm_group_spoil(*res);
		return NULL;
	}
	memset(&list.calls[list.nr], 0, sizeof(list.calls[list.nr]));
	list.calls[list.nr].comm = comm;
	__atomic_add_fetch(&comm->noted, 1, __ATOMIC_RELEASE);
	return &list.calls[list.nr++];
}

hcommResult_t hcomm_group_note_coll(hcommComm_t comm,
				    const struct hcomm_coll *coll)
{
	hcommResult_t res;
	struct noted *noted = note(comm, &res);

	if (noted)
		noted->coll = *coll;
	return res;
}

hcommResult_t hcomm_group_note_p2p(hcommComm_t comm,
				   const struct hcomm_p2p *p2p)
{
	hcommResult_t res;
	struct noted *noted = note(comm, &res);

	if (noted) {
		noted->is_p2p = true;
		noted->p2p = *p2p;
	}
	return res;
}

hcommResult_t hcommGroupStart(void)
{
	hcommResult_t res = hcomm_face_process();

	if (res)
		return res;
	list.depth++;
	return HCOMM_SUCCESS;
}

static hcommResult_t run_p2p(hcommComm_t comm)
{
	struct hcomm_p2p *p2p = malloc((size_t)list.nr * sizeof(*p2p));
	struct hcomm_cond *conds = malloc((size_t)list.nr * sizeof(*conds));
	hcommResult_t res = HCOMM_SUCCESS;
	int i, nr = 0;

	if (!p2p || !conds) {
		res = hcomm_comm_error(comm, HCOMM_OUT_OF_MEMORY,
				       "out of memory");
	} else {
		for (i = 0; i < list.nr; i++)
			if (list.calls[i].comm == comm && list.calls[i].is_p2p)
				p2p[nr++] = list.calls[i].p2p;
		if (nr)
			res = hcomm_p2p_run_all(comm, p2p, nr, conds);
	}
	free(p2p);
	free(conds);
	return res;
}

/* All calls of one group, whose user this thread is. */
static hcommResult_t run_group(hcommComm_t comm)
{
	hcommResult_t res = run_p2p(comm);
	int i;

	for (i = 0; i < list.nr && !res; i++) {
		struct noted *call = &list.calls[i];

		if (call->comm != comm || call->is_p2p)
			continue;
		if (call->coll.kind == HCOMM_COLL_BARRIER)
			res = hcomm_run_barrier(comm, call->coll.kind);
		else
			res = hcomm_run_coll(comm, &call->coll);
	}
	return res;
}

static void mark_behind(void)
{
	int i, j;

	for (i = 0; i < list.nr; i++)
		for (j = i + 1; !list.calls[i].behind && j < list.nr; j++)
			if (list.calls[j].comm == list.calls[i].comm)
				list.calls[j].behind = true;
}

/* Ends the use of the first @nr calls' groups. */
static void leave_groups(int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!list.calls[i].behind)
			hcomm_face_leave(list.calls[i].comm, HCOMM_SUCCESS);
}

/* Becomes the user of all groups, or of none. */
static hcommResult_t enter_groups(void)
{
	hcommResult_t res = HCOMM_SUCCESS;
	int i;

	for (i = 0; i < list.nr && !res; i++)
		if (!list.calls[i].behind)
			res = hcomm_face_enter(list.calls[i].comm, NULL);
	if (res)
		leave_groups(i - 1);
	return res;
}

static hcommResult_t run_groups(void)
{
	hcommResult_t res, one;
	int i;

	mark_behind();
	res = enter_groups();
	if (res)
		return res;
	for (i = 0; i < list.nr; i++) {
		if (list.calls[i].behind)
			continue;
		one = run_group(list.calls[i].comm);
		if (one && !res)
			res = one;
		hcomm_face_leave(list.calls[i].comm, one);
	}
	return res;
}

/* The last that is done with the groups: they may be destroyed now. */
static void forget_all(void)
{
	int i;

	for (i = 0; i < list.nr; i++)
		__atomic_sub_fetch(&list.calls[i].comm->noted, 1,
				   __ATOMIC_RELEASE);
	free(list.calls);
	memset(&list, 0, sizeof(list));
}

hcommResult_t hcommGroupEnd(void)
{
	hcommResult_t res = hcomm_face_process();

	if (res)
		return res;
	if (!list.depth)
		return hcomm_face_error(HCOMM_INVALID_USAGE,
			"hcommGroupEnd() without hcommGroupStart()");
	if (--list.depth)
		return HCOMM_SUCCESS;
	res = list.spoiled ? list.spoiled : run_groups();
	forget_all();
	return res;
}
