/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Element types and reductions as the benchmark knows them: names, widths and
 * conversions of its own, so that the library is not checked against itself.
 */
#ifndef BENCH_ELEMENT_H
#define BENCH_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hcomm.h>

enum bench_kind {
	BENCH_SIGNED,
	BENCH_UNSIGNED,
	BENCH_BOOL,
	BENCH_FLOAT,
};

struct bench_type {
	const char *name;		/* as nccl-tests has it */
	const char *alias;		/* as hcomm.h has it, NULL if the same */
	hcommDataType_t id;
	enum bench_kind kind;
	unsigned int size;		/* bytes */
	unsigned int bits;		/* of an integer, or of a significand */
};

struct bench_redop {
	const char *name;
	hcommRedOp_t id;
};

#define BENCH_NR_TYPES	HCOMM_NR_TYPES
#define BENCH_NR_REDOPS	HCOMM_NR_REDOPS

extern const struct bench_type bench_types[BENCH_NR_TYPES];
extern const struct bench_redop bench_redops[BENCH_NR_REDOPS];

/* NULL when there is none of that name. */
const struct bench_type *bench_type_find(const char *name);
const struct bench_redop *bench_redop_find(const char *name);

bool bench_redop_defined(const struct bench_redop *redop,
			 const struct bench_type *type);

/* Integers wrap; the values of a float type must be exact in it. */
void bench_store(const struct bench_type *type, void *dst,
		 const int64_t *values, size_t count);

/* Float types only; rounds to nearest even, once. */
void bench_store_real(const struct bench_type *type, void *dst,
		      const double *values, size_t count);

#endif
