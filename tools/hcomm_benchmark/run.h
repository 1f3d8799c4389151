/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What one rank has while it measures. Every rank does the same steps; rank 0
 * also reports. Functions that return false have said why on standard error.
 */
#ifndef BENCH_RUN_H
#define BENCH_RUN_H

#include <stdatomic.h>

#include "args.h"
#include "buffers.h"
#include "report.h"

/* Memory that the ranks of one node share, without the library. */
struct bench_shared {
	_Atomic uint64_t arrived[BENCH_MAX_LOCAL];	/* at which barrier */
};

struct bench_run {
	const struct bench_args *args;
	struct bench_shared *shared;
	int local;			/* my index on this node */
	hcommComm_t comm;
	int rank;
	int nranks;
	struct bench_buffers buffers[BENCH_NR_MEMORIES];
	uint64_t iteration;		/* of checks: no pattern comes twice */
	uint64_t wrong;			/* found by this rank itself */
	struct bench_report *report;	/* rank 0 only, else NULL */
	char error[640];		/* why this rank stopped */
};

/* What is measured; the parts of a row that are chosen, not found. */
struct bench_case {
	const struct bench_op *op;
	const struct bench_type *type;
	const struct bench_redop *redop;	/* NULL: none */
	enum bench_memory memory;
	int root;
	size_t count;
	bool in_place;
};

/* Keeps the sentence, and writes it to standard error; false. */
bool bench_failed(struct bench_run *run, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* The same about @doing, which ended with @result: what the library says. */
bool bench_refused(struct bench_run *run, const char *doing,
		   hcommResult_t result);

/* The same about the call that @what is. */
bool bench_call_failed(struct bench_run *run, const struct bench_case *what,
		       hcommResult_t result);

/* The call that @what is on this rank. */
struct bench_call bench_call_of(const struct bench_run *run,
				const struct bench_case *what);

/* One call with fresh data, every element of the result checked. */
bool bench_check(struct bench_run *run, const struct bench_case *what,
		 struct bench_sample *sample);

/* Makes a mean over ranks of the time, and sums of what is wrong. */
bool bench_combine(struct bench_run *run, const struct bench_case *what,
		   struct bench_sample *sample);

/* Checks and times @what; all ranks get the same sample. */
bool bench_measure(struct bench_run *run, const struct bench_case *what,
		   struct bench_sample *sample);

/* All rows that the arguments ask for. */
bool bench_sweep(struct bench_run *run);

/* The buckets of a model. */
bool bench_replay(struct bench_run *run);

double bench_now_us(void);

#endif
