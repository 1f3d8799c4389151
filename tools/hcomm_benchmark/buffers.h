/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Send and receive buffers of one kind of memory, used by all rows. */
#ifndef BENCH_BUFFERS_H
#define BENCH_BUFFERS_H

#include "args.h"

#define BENCH_GUARD	64UL		/* bytes before and after recv */

struct bench_buffers {
	char *send;
	char *recv;
	size_t bytes;			/* of each, without the guards */
	void *memory[2];
};

/* What the two take of a heap, with what rounding may cost. */
size_t bench_buffers_heap(size_t bytes);

/* Collective for a heap. */
hcommResult_t bench_buffers_get(struct bench_buffers *buffers,
				enum bench_memory kind, size_t bytes,
				hcommComm_t comm);
void bench_buffers_put(struct bench_buffers *buffers, enum bench_memory kind,
		       hcommComm_t comm);

/* @bytes from recv on are what an operation may write. */
void bench_guard_set(const struct bench_buffers *buffers, size_t bytes);
/* Guard bytes that were written, too. */
size_t bench_guard_check(const struct bench_buffers *buffers, size_t bytes);

#endif
