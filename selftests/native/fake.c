// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A transport made from the local one. Operations are done when they are
 * posted, their completions come some polls later. Semaphores lie in the heap
 * behind the reach of the library. Ranks are spread unevenly on purpose.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/comm.h"
#include "exec/onesided.h"
#include "exec/wait.h"
#include "fake.h"
#include "ranks.h"

#define SEMS		(32 + 32 + 2 * MAX_RANKS)
#define PENDING		256

static struct {
	struct hcomm_transport ops;
	char *heaps[MAX_RANKS];
	size_t sems;			/* offset in each heap */
	int everybody[MAX_RANKS];
	struct {
		uint64_t cookie;
		int rank;
	} pending[PENDING];
	unsigned int first, last;	/* of pending */
	unsigned int seed;
} fake;

static uint64_t *sem_of(int rank, uint32_t sem)
{
	return (uint64_t *)(fake.heaps[rank] + fake.sems +
			    (size_t)sem * HCOMM_LINE);
}

static hcommResult_t fake_post(struct hcommComm *comm,
			       const struct hcomm_remote *remote)
{
	char *here = comm->heap + remote->local;
	char *there = fake.heaps[remote->rank] + remote->remote;

	if (remote->kind == HCOMM_REMOTE_PUT)
		memcpy(there, here, remote->bytes);
	else if (remote->kind == HCOMM_REMOTE_GET)
		memcpy(here, there, remote->bytes);
	if (remote->signal) {
		__atomic_fetch_add(sem_of(remote->rank, remote->sem),
				   remote->delta, __ATOMIC_SEQ_CST);
		hcomm_wake(comm, remote->rank);
	}
	if (remote->cookie != HCOMM_COOKIE_NONE) {
		fake.pending[fake.last % PENDING].cookie = remote->cookie;
		fake.pending[fake.last++ % PENDING].rank = remote->rank;
	}
	return HCOMM_SUCCESS;
}

static void fake_poll(struct hcommComm *comm)
{
	while (fake.first != fake.last && rand_r(&fake.seed) % 3) {
		uint64_t cookie = fake.pending[fake.first % PENDING].cookie;
		int rank = fake.pending[fake.first++ % PENDING].rank;

		if (cookie & HCOMM_COOKIE_OUT_MASK)
			comm->out[(cookie & HCOMM_COOKIE_OUT_MASK) -
				  HCOMM_COOKIE_OUT(0)].pending--;
		if (cookie & HCOMM_COOKIE_ONESIDED)
			hcomm_onesided_end(comm, rank, 0);
		comm->completions++;
	}
}

static const uint64_t *fake_semaphore(struct hcommComm *comm, uint32_t sem)
{
	return sem_of(comm->rank, sem);
}

static uint32_t fake_data_sem(struct hcommComm *comm, int source)
{
	return 64 + 2 * (uint32_t)source;
}

static uint32_t fake_credit_sem(struct hcommComm *comm, int destination)
{
	return 65 + 2 * (uint32_t)destination;
}

static void fake_abort(struct hcommComm *comm, hcommResult_t result,
		       int culprit, uint64_t op)
{
	struct hcommComm all = *comm;

	all.locals = fake.everybody;
	all.nlocal = comm->n;
	hcomm_transport_local.abort(&all, result, culprit, op);
}

static void fake_close(struct hcommComm *comm)
{
	comm->locals = fake.everybody;
	comm->nlocal = comm->n;
	hcomm_transport_local.close(comm);
}

int fake_instances(hcommComm_t comm, int instances)
{
	uint32_t keys[MAX_RANKS];
	void *sems;
	int r;

	OK(hcommSymAlloc(comm, &sems, SEMS * HCOMM_LINE));
	memset(sems, 0, SEMS * HCOMM_LINE);
	OK(hcommBarrier(comm, NULL));
	memset(&fake, 0, sizeof(fake));
	fake.sems = (size_t)((char *)sems - comm->heap);
	fake.seed = (unsigned int)comm->rank + 1;
	/* Uneven: the last instance has what is left, others have fewer. */
	for (r = 0; r < comm->n; r++)
		keys[r] = r < instances ? r : (uint32_t)(r * r) % instances;
	hcomm_shape_free(&comm->shape);
	CHECK(!hcomm_shape_init(&comm->shape, comm->n, keys, sizeof(*keys)),
	      "no memory");
	comm->inst = comm->shape.inst_of[comm->rank];
	comm->nlocal = hcomm_shape_local(&comm->shape, comm->inst);
	comm->locals = comm->shape.rank + comm->shape.first[comm->inst];
	for (r = 0; r < comm->n; r++) {
		fake.everybody[r] = r;
		fake.heaps[r] = comm->ranks[r].heap;
		comm->ranks[r].local = comm->shape.inst_of[r] == comm->inst;
		if (!comm->ranks[r].local)
			comm->ranks[r].heap = NULL;
	}
	fake.ops = hcomm_transport_local;
	fake.ops.name = "fake";
	fake.ops.close = fake_close;
	fake.ops.abort = fake_abort;
	fake.ops.post = fake_post;
	fake.ops.poll = fake_poll;
	fake.ops.semaphore = fake_semaphore;
	fake.ops.data_sem = fake_data_sem;
	fake.ops.credit_sem = fake_credit_sem;
	comm->transport = &fake.ops;
	/* Nobody goes on while a rank is still in the barrier above. */
	OK(hcommBarrier(comm, NULL));
	return 0;
}
