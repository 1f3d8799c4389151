// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Tables of types and reductions, and how numbers become elements. */
#include <math.h>
#include <string.h>

#include "element.h"

const struct bench_type bench_types[BENCH_NR_TYPES] = {
	{ "int8", NULL, HCOMM_INT8, BENCH_SIGNED, 1, 8 },
	{ "uint8", NULL, HCOMM_UINT8, BENCH_UNSIGNED, 1, 8 },
	{ "int16", NULL, HCOMM_INT16, BENCH_SIGNED, 2, 16 },
	{ "uint16", NULL, HCOMM_UINT16, BENCH_UNSIGNED, 2, 16 },
	{ "int32", NULL, HCOMM_INT32, BENCH_SIGNED, 4, 32 },
	{ "uint32", NULL, HCOMM_UINT32, BENCH_UNSIGNED, 4, 32 },
	{ "int64", NULL, HCOMM_INT64, BENCH_SIGNED, 8, 64 },
	{ "uint64", NULL, HCOMM_UINT64, BENCH_UNSIGNED, 8, 64 },
	{ "bool", NULL, HCOMM_BOOL, BENCH_BOOL, 1, 1 },
	{ "half", "float16", HCOMM_FLOAT16, BENCH_FLOAT, 2, 11 },
	{ "bfloat16", NULL, HCOMM_BFLOAT16, BENCH_FLOAT, 2, 8 },
	{ "float", "float32", HCOMM_FLOAT32, BENCH_FLOAT, 4, 24 },
	{ "double", "float64", HCOMM_FLOAT64, BENCH_FLOAT, 8, 53 },
};

const struct bench_redop bench_redops[BENCH_NR_REDOPS] = {
	{ "sum", HCOMM_SUM },
	{ "prod", HCOMM_PROD },
	{ "min", HCOMM_MIN },
	{ "max", HCOMM_MAX },
	{ "avg", HCOMM_AVG },
	{ "band", HCOMM_BAND },
	{ "bor", HCOMM_BOR },
	{ "bxor", HCOMM_BXOR },
};

const struct bench_type *bench_type_find(const char *name)
{
	for (size_t i = 0; i < BENCH_NR_TYPES; i++) {
		const struct bench_type *type = &bench_types[i];

		if (!strcmp(name, type->name) ||
		    (type->alias && !strcmp(name, type->alias)))
			return type;
	}
	return NULL;
}

const struct bench_redop *bench_redop_find(const char *name)
{
	for (size_t i = 0; i < BENCH_NR_REDOPS; i++)
		if (!strcmp(name, bench_redops[i].name))
			return &bench_redops[i];
	return NULL;
}

bool bench_redop_defined(const struct bench_redop *redop,
			 const struct bench_type *type)
{
	switch (redop->id) {
	case HCOMM_AVG:
		return type->kind != BENCH_BOOL;
	case HCOMM_BAND:
	case HCOMM_BOR:
	case HCOMM_BXOR:
		return type->kind != BENCH_FLOAT;
	default:
		return true;
	}
}

/*
 * The 16-bit float of @significand bits nearest to @value, which must be zero
 * or within the normal range.
 */
static uint16_t small_float(double value, unsigned int significand)
{
	unsigned int fraction = significand - 1;
	unsigned int bias = (1U << (14 - fraction)) - 1;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	double scaled;
	int exponent;

	if (value == 0)
		return sign;
	scaled = rint(ldexp(frexp(fabs(value), &exponent), significand));
	if (scaled == ldexp(1, significand)) {
		scaled /= 2;
		exponent++;
	}
	exponent += bias - 1;
	return sign | exponent << fraction |
	       ((unsigned int)scaled & ((1U << fraction) - 1));
}

static void store_small(const struct bench_type *type, uint16_t *dst,
			const int64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		dst[i] = small_float(values[i], type->bits);
}

#define STORE(ctype, dst, values, count)			\
	do {							\
		ctype *to_ = (dst);				\
								\
		for (size_t i_ = 0; i_ < (count); i_++)		\
			to_[i_] = (ctype)(values)[i_];		\
	} while (0)

void bench_store(const struct bench_type *type, void *dst,
		 const int64_t *values, size_t count)
{
	switch (type->id) {
	case HCOMM_FLOAT16:
	case HCOMM_BFLOAT16:
		store_small(type, dst, values, count);
		return;
	case HCOMM_FLOAT32:
		STORE(float, dst, values, count);
		return;
	case HCOMM_FLOAT64:
		STORE(double, dst, values, count);
		return;
	default:
		break;
	}
	switch (type->size) {
	case 1:
		STORE(uint8_t, dst, values, count);
		break;
	case 2:
		STORE(uint16_t, dst, values, count);
		break;
	case 4:
		STORE(uint32_t, dst, values, count);
		break;
	default:
		STORE(uint64_t, dst, values, count);
		break;
	}
}

void bench_store_real(const struct bench_type *type, void *dst,
		      const double *values, size_t count)
{
	uint16_t *small = dst;

	switch (type->size) {
	case 2:
		for (size_t i = 0; i < count; i++)
			small[i] = small_float(values[i], type->bits);
		break;
	case 4:
		STORE(float, dst, values, count);
		break;
	default:
		STORE(double, dst, values, count);
		break;
	}
}
