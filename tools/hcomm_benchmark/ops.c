// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How each operation is called, and what its result consists of. */
#include <string.h>

#include "ops.h"

static hcommResult_t run_all_reduce(const struct bench_call *c)
{
	return hcommAllReduce(c->send, c->recv, c->count, c->type->id,
			      c->redop->id, c->comm, NULL);
}

static hcommResult_t run_all_gather(const struct bench_call *c)
{
	return hcommAllGather(c->send, c->recv, c->count, c->type->id, c->comm,
			      NULL);
}

static hcommResult_t run_reduce_scatter(const struct bench_call *c)
{
	return hcommReduceScatter(c->send, c->recv, c->count, c->type->id,
				  c->redop->id, c->comm, NULL);
}

static hcommResult_t run_broadcast(const struct bench_call *c)
{
	return hcommBroadcast(c->send, c->recv, c->count, c->type->id, c->root,
			      c->comm, NULL);
}

static hcommResult_t run_reduce(const struct bench_call *c)
{
	return hcommReduce(c->send, c->recv, c->count, c->type->id,
			   c->redop->id, c->root, c->comm, NULL);
}

static int previous(const struct bench_call *c)
{
	return (c->rank + c->nranks - 1) % c->nranks;
}

/* A ring: everybody sends to the next rank. */
static hcommResult_t run_sendrecv(const struct bench_call *c)
{
	int next = (c->rank + 1) % c->nranks;
	hcommResult_t result, ended;

	result = hcommGroupStart();
	if (result != HCOMM_SUCCESS)
		return result;
	result = hcommSend(c->send, c->count, c->type->id, next, c->comm, NULL);
	if (result == HCOMM_SUCCESS)
		result = hcommRecv(c->recv, c->count, c->type->id, previous(c),
				   c->comm, NULL);
	ended = hcommGroupEnd();
	return result == HCOMM_SUCCESS ? ended : result;
}

static hcommResult_t run_barrier(const struct bench_call *c)
{
	return hcommBarrier(c->comm, NULL);
}

static int from_all(const struct bench_call *call, int block)
{
	(void)call;
	(void)block;
	return BENCH_ALL_RANKS;
}

static int from_root(const struct bench_call *call, int block)
{
	(void)block;
	return call->root;
}

static int from_previous(const struct bench_call *call, int block)
{
	(void)block;
	return previous(call);
}

static int from_each(const struct bench_call *call, int block)
{
	(void)call;
	return block;
}

static double once(int nranks)
{
	(void)nranks;
	return 1;
}

static double all_but_own(int nranks)
{
	return (double)(nranks - 1) / nranks;
}

static double twice_all_but_own(int nranks)
{
	return 2 * all_but_own(nranks);
}

static double none(int nranks)
{
	(void)nranks;
	return 0;
}

const struct bench_op bench_ops[BENCH_NR_OPS] = {
	{
		.name = "all_reduce",
		.moves = true,
		.reduces = true,
		.in_place = true,
		.run = run_all_reduce,
		.source = from_all,
		.factor = twice_all_but_own,
	},
	{
		.name = "all_gather",
		.moves = true,
		.in_place = true,
		.recv_all = true,
		.run = run_all_gather,
		.source = from_each,
		.factor = all_but_own,
	},
	{
		.name = "reduce_scatter",
		.moves = true,
		.reduces = true,
		.in_place = true,
		.send_all = true,
		.run = run_reduce_scatter,
		.source = from_all,
		.factor = all_but_own,
	},
	{
		.name = "broadcast",
		.moves = true,
		.rooted = true,
		.in_place = true,
		.run = run_broadcast,
		.source = from_root,
		.factor = once,
	},
	{
		.name = "reduce",
		.moves = true,
		.reduces = true,
		.rooted = true,
		.in_place = true,
		.run = run_reduce,
		.source = from_all,
		.factor = once,
	},
	{
		.name = "sendrecv",
		.moves = true,
		.run = run_sendrecv,
		.source = from_previous,
		.factor = once,
	},
	{
		.name = "barrier",
		.run = run_barrier,
		.factor = none,
	},
};

const struct bench_op *bench_op_find(const char *name)
{
	for (size_t i = 0; i < BENCH_NR_OPS; i++)
		if (!strcmp(name, bench_ops[i].name))
			return &bench_ops[i];
	return NULL;
}

static size_t share(const struct bench_op *op, int nranks)
{
	return op->send_all || op->recv_all ? nranks : 1;
}

size_t bench_op_count(const struct bench_op *op, size_t elements, int nranks)
{
	return op->moves ? elements / share(op, nranks) : 0;
}

size_t bench_op_elements(const struct bench_op *op, size_t count, int nranks)
{
	return count * share(op, nranks);
}

int bench_op_send_blocks(const struct bench_op *op, int nranks)
{
	return op->send_all ? nranks : 1;
}

int bench_op_recv_blocks(const struct bench_op *op, int nranks)
{
	return op->recv_all ? nranks : 1;
}

bool bench_call_receives(const struct bench_call *call)
{
	if (!call->op->moves)
		return false;
	return !(call->op->reduces && call->op->rooted) ||
	       call->rank == call->root;
}
