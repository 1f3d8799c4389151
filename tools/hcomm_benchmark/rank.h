/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A rank's life, in a process of its own. */
#ifndef BENCH_RANK_H
#define BENCH_RANK_H

#include "run.h"

enum bench_exit {
	BENCH_EXIT_OK,
	BENCH_EXIT_BAD,			/* wrong data, or too slow */
	BENCH_EXIT_USAGE,
	BENCH_EXIT_CANNOT,
};

/* Joins the group that the environment describes; an enum bench_exit. */
int bench_rank_main(const struct bench_args *args,
		    struct bench_shared *shared, int local);

/* False, said why, when the root is no rank. */
bool bench_root_exists(const struct bench_args *args, int nranks);

#endif
