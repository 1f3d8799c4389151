/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The command line. */
#ifndef BENCH_ARGS_H
#define BENCH_ARGS_H

#include "models.h"
#include "ops.h"

enum bench_memory {
	BENCH_HEAP,
	BENCH_MALLOC,
	BENCH_NR_MEMORIES,
};

#define BENCH_MAX_INSTANCES	64
#define BENCH_MAX_LOCAL		256	/* ranks that one call can fork */
#define BENCH_ROOT_ALL		(-1)

struct bench_args {
	bool ops[BENCH_NR_OPS];		/* by index of bench_ops, and so on */
	bool types[BENCH_NR_TYPES];
	bool redops[BENCH_NR_REDOPS];
	bool memories[BENCH_NR_MEMORIES];
	int root;
	uint64_t min_bytes;
	uint64_t max_bytes;
	uint64_t step_bytes;		/* 0: multiply by step_factor */
	uint64_t step_factor;
	int iterations;
	int warmups;
	int checks;
	int local_ranks;
	bool local_ranks_given;
	const char *instances[BENCH_MAX_INSTANCES];
	int ninstances;
	const struct bench_model *model;
	uint64_t model_limit;		/* bytes, 0: none */
	const char *json;		/* file, "-", NULL */
	double min_bw;			/* GB/s; 0: none */
	int argc;
	char **argv;
};

enum bench_verdict {
	BENCH_RUN,
	BENCH_DONE,			/* --help, --version */
	BENCH_USAGE,
};

extern const char *const bench_memory_names[BENCH_NR_MEMORIES];

/* Says on standard error which argument is wrong, and why. */
enum bench_verdict bench_args_parse(struct bench_args *args, int argc,
				    char **argv);

/* Sizes from the smallest on; false after the largest one. */
bool bench_args_next_size(const struct bench_args *args, uint64_t *bytes);

#endif
