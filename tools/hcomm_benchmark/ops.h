/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The operations that can be measured: one row of a table each. */
#ifndef BENCH_OPS_H
#define BENCH_OPS_H

#include "element.h"
#include "pattern.h"

/* One call, as one rank makes it. */
struct bench_call {
	const struct bench_op *op;
	const struct bench_type *type;
	const struct bench_redop *redop;
	int root;
	int rank;
	int nranks;
	size_t count;			/* elements of the call's argument */
	const void *send;
	void *recv;
	hcommComm_t comm;
};

struct bench_op {
	const char *name;
	bool moves;			/* has buffers */
	bool reduces;
	bool rooted;
	bool in_place;			/* has an in-place form */
	bool send_all;			/* send buffer: a block for every rank */
	bool recv_all;			/* receive buffer: one of every rank */
	hcommResult_t (*run)(const struct bench_call *call);
	/* Whose data is in block @block of the result; BENCH_ALL_RANKS. */
	int (*source)(const struct bench_call *call, int block);
	/* Bus bandwidth is this times the algorithm's bandwidth. */
	double (*factor)(int nranks);
};

#define BENCH_NR_OPS	7

extern const struct bench_op bench_ops[BENCH_NR_OPS];

const struct bench_op *bench_op_find(const char *name);

/* The count argument with which @op handles at most @elements in all. */
size_t bench_op_count(const struct bench_op *op, size_t elements, int nranks);

/* Elements in all, which is what sizes and bandwidths count. */
size_t bench_op_elements(const struct bench_op *op, size_t count, int nranks);

/* Blocks of count elements in each buffer. */
int bench_op_send_blocks(const struct bench_op *op, int nranks);
int bench_op_recv_blocks(const struct bench_op *op, int nranks);

/* Has @call's rank a result to check? */
bool bench_call_receives(const struct bench_call *call);

#endif
