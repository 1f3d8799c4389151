// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reductions, one block at a time: the block of the first input goes to the
 * scratch, the others are folded into it in the order given, the result goes
 * to every output. The order never depends on timing, so the bits do not
 * either. 16-bit floats are folded as 32-bit ones and rounded once per fold.
 *
 * No state; the scratch belongs to the caller.
 */
#include <stdint.h>
#include <string.h>

#include "reduce/reduce.h"

typedef void fold_fn(void *acc, const void *src, size_t count);
typedef void scale_fn(void *acc, size_t count, int divisor);

/* Inputs may have any alignment: a packed element tells the compiler. */
#define DEFINE_FOLD(name, type, load, expr)				\
static void name(void *acc, const void *src, size_t count)		\
{									\
	const struct { type v; } __attribute__((packed)) *from = src;	\
	load *to = acc;							\
	size_t i;							\
									\
	for (i = 0; i < count; i++) {					\
		load a = to[i], b = (load)from[i].v;			\
									\
		to[i] = (load)(expr);					\
	}								\
}

/*
 * Sums and products wrap: they are taken in an unsigned type wide enough
 * that no promotion makes them signed.
 */
#define DEFINE_INT_FOLDS(sfx, type, wide)				\
DEFINE_FOLD(sum_##sfx, type, type, (wide)a + (wide)b)			\
DEFINE_FOLD(prod_##sfx, type, type, (wide)a * (wide)b)			\
DEFINE_FOLD(min_##sfx, type, type, b < a ? b : a)			\
DEFINE_FOLD(max_##sfx, type, type, b > a ? b : a)			\
DEFINE_FOLD(band_##sfx, type, type, a & b)				\
DEFINE_FOLD(bor_##sfx, type, type, a | b)				\
DEFINE_FOLD(bxor_##sfx, type, type, a ^ b)				\
static void scale_##sfx(void *acc, size_t count, int divisor)		\
{									\
	type *to = acc;							\
	size_t i;							\
									\
	for (i = 0; i < count; i++)					\
		to[i] = (type)(to[i] / (type)divisor);			\
}

DEFINE_INT_FOLDS(i16, int16_t, uint32_t)
DEFINE_INT_FOLDS(u16, uint16_t, uint32_t)
DEFINE_INT_FOLDS(i32, int32_t, uint32_t)
DEFINE_INT_FOLDS(u32, uint32_t, uint32_t)
DEFINE_INT_FOLDS(i64, int64_t, uint64_t)
DEFINE_INT_FOLDS(u64, uint64_t, uint64_t)

/* 8 bits: the divisor may exceed the type, so the division is done in int. */
#define DEFINE_BYTE_FOLDS(sfx, type)					\
DEFINE_FOLD(sum_##sfx, type, type, (uint32_t)a + (uint32_t)b)		\
DEFINE_FOLD(prod_##sfx, type, type, (uint32_t)a * (uint32_t)b)		\
DEFINE_FOLD(min_##sfx, type, type, b < a ? b : a)			\
DEFINE_FOLD(max_##sfx, type, type, b > a ? b : a)			\
DEFINE_FOLD(band_##sfx, type, type, a & b)				\
DEFINE_FOLD(bor_##sfx, type, type, a | b)				\
DEFINE_FOLD(bxor_##sfx, type, type, a ^ b)				\
static void scale_##sfx(void *acc, size_t count, int divisor)		\
{									\
	type *to = acc;							\
	size_t i;							\
									\
	for (i = 0; i < count; i++)					\
		to[i] = (type)(to[i] / divisor);			\
}

DEFINE_BYTE_FOLDS(i8, int8_t)
DEFINE_BYTE_FOLDS(u8, uint8_t)

/* NaN wins: the first one in order stays. */
#define DEFINE_FLOAT_FOLDS(sfx, type)					\
DEFINE_FOLD(sum_##sfx, type, type, a + b)				\
DEFINE_FOLD(prod_##sfx, type, type, a * b)				\
DEFINE_FOLD(min_##sfx, type, type, a != a ? a : b != b || b < a ? b : a)	\
DEFINE_FOLD(max_##sfx, type, type, a != a ? a : b != b || b > a ? b : a)	\
static void scale_##sfx(void *acc, size_t count, int divisor)		\
{									\
	type *to = acc;							\
	size_t i;							\
									\
	for (i = 0; i < count; i++)					\
		to[i] /= (type)divisor;					\
}

DEFINE_FLOAT_FOLDS(f32, float)
DEFINE_FLOAT_FOLDS(f64, double)

DEFINE_FOLD(or_bool, uint8_t, uint8_t, (a | (b != 0)))
DEFINE_FOLD(and_bool, uint8_t, uint8_t, (a & (b != 0)))
DEFINE_FOLD(xor_bool, uint8_t, uint8_t, (a ^ (b != 0)))

static void normalise(void *acc, const void *src, size_t count)
{
	memset(acc, 0, count);
	or_bool(acc, src, count);
}

static float f32_of_bits(uint32_t bits)
{
	float value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint32_t bits_of_f32(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float f32_of_f16(uint16_t half)
{
	uint32_t sign = (uint32_t)(half & 0x8000) << 16;
	uint32_t exp = half >> 10 & 0x1f;
	uint32_t man = half & 0x3ff;

	if (exp == 0x1f)
		return f32_of_bits(sign | 0x7f800000 | man << 13);
	if (exp)
		return f32_of_bits(sign | (exp + 112) << 23 | man << 13);
	/* Zero or subnormal: man * 2^-24 is exact in 32 bits. */
	return f32_of_bits(bits_of_f32((float)man * 0x1p-24f) | sign);
}

static uint16_t f16_of_f32(float value)
{
	uint32_t bits = bits_of_f32(value);
	uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
	uint32_t mag = bits & 0x7fffffff;
	uint32_t odd;

	if (mag > 0x7f800000)		/* NaN, made quiet */
		return sign | 0x7e00 | (mag >> 13 & 0x1ff);
	if (mag >= 0x47800000)		/* 65536 and more */
		return sign | 0x7c00;
	if (mag < 0x38800000) {		/* below 2^-14: the sum rounds for us */
		float sum = f32_of_bits(mag) + 0.5f;

		return sign | (uint16_t)(bits_of_f32(sum) - 0x3f000000);
	}
	odd = mag >> 13 & 1;
	mag += 0xc8000fff + odd;	/* exponent - 112, round to even */
	return sign | (uint16_t)(mag >> 13);
}

static float f32_of_bf16(uint16_t half)
{
	return f32_of_bits((uint32_t)half << 16);
}

static uint16_t bf16_of_f32(float value)
{
	uint32_t bits = bits_of_f32(value);

	if ((bits & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static bool is_half(hcommDataType_t type)
{
	return type == HCOMM_FLOAT16 || type == HCOMM_BFLOAT16;
}

/* Widens @count halves; @to and @from do not overlap. */
static void widen(float *to, const void *from, size_t count,
		  hcommDataType_t type)
{
	const char *bytes = from;
	size_t i;

	for (i = 0; i < count; i++) {
		uint16_t half;

		memcpy(&half, bytes + 2 * i, 2);
		to[i] = type == HCOMM_FLOAT16 ? f32_of_f16(half) :
						f32_of_bf16(half);
	}
}

/* In place: element i is written behind the one that is read. */
static void narrow(void *acc, size_t count, hcommDataType_t type)
{
	const float *from = acc;
	char *to = acc;
	size_t i;

	for (i = 0; i < count; i++) {
		float value;
		uint16_t half;

		memcpy(&value, from + i, sizeof(value));
		half = type == HCOMM_FLOAT16 ? f16_of_f32(value) :
					       bf16_of_f32(value);
		memcpy(to + 2 * i, &half, 2);
	}
}

#define INT_ROW(sfx)							\
	{ sum_##sfx, prod_##sfx, min_##sfx, max_##sfx, sum_##sfx,	\
	  band_##sfx, bor_##sfx, bxor_##sfx }
#define FLOAT_ROW(sfx)							\
	{ sum_##sfx, prod_##sfx, min_##sfx, max_##sfx, sum_##sfx,	\
	  NULL, NULL, NULL }

/* Halves are folded as float32. */
static fold_fn *const folds[HCOMM_NR_TYPES][HCOMM_NR_REDOPS] = {
	[HCOMM_INT8] = INT_ROW(i8),
	[HCOMM_UINT8] = INT_ROW(u8),
	[HCOMM_INT16] = INT_ROW(i16),
	[HCOMM_UINT16] = INT_ROW(u16),
	[HCOMM_INT32] = INT_ROW(i32),
	[HCOMM_UINT32] = INT_ROW(u32),
	[HCOMM_INT64] = INT_ROW(i64),
	[HCOMM_UINT64] = INT_ROW(u64),
	[HCOMM_BOOL] = { or_bool, and_bool, and_bool, or_bool, NULL,
			 and_bool, or_bool, xor_bool },
	[HCOMM_FLOAT16] = FLOAT_ROW(f32),
	[HCOMM_BFLOAT16] = FLOAT_ROW(f32),
	[HCOMM_FLOAT32] = FLOAT_ROW(f32),
	[HCOMM_FLOAT64] = FLOAT_ROW(f64),
};

static scale_fn *const scales[HCOMM_NR_TYPES] = {
	[HCOMM_INT8] = scale_i8,
	[HCOMM_UINT8] = scale_u8,
	[HCOMM_INT16] = scale_i16,
	[HCOMM_UINT16] = scale_u16,
	[HCOMM_INT32] = scale_i32,
	[HCOMM_UINT32] = scale_u32,
	[HCOMM_INT64] = scale_i64,
	[HCOMM_UINT64] = scale_u64,
	[HCOMM_FLOAT16] = scale_f32,
	[HCOMM_BFLOAT16] = scale_f32,
	[HCOMM_FLOAT32] = scale_f32,
	[HCOMM_FLOAT64] = scale_f64,
};

bool hcomm_reduce_defined(hcommDataType_t type, hcommRedOp_t op)
{
	return (unsigned int)type < HCOMM_NR_TYPES &&
	       (unsigned int)op < HCOMM_NR_REDOPS && folds[type][op];
}

/* One block: @count elements that fit the scratch. */
static void reduce_block(char *scratch, const void *const *src, int nsrc,
			 size_t offset, size_t count, hcommDataType_t type,
			 fold_fn *fold)
{
	char *wide = scratch + HCOMM_REDUCE_BLOCK;
	const char *first = (const char *)src[0] + offset;
	int i;

	if (is_half(type))
		widen((float *)scratch, first, count, type);
	else if (type == HCOMM_BOOL)
		normalise(scratch, first, count);
	else
		memcpy(scratch, first, count * hcommTypeSize(type));

	for (i = 1; i < nsrc; i++) {
		const char *from = (const char *)src[i] + offset;

		if (is_half(type)) {
			widen((float *)wide, from, count, type);
			from = wide;
		}
		fold(scratch, from, count);
	}
}

void hcomm_reduce(void *scratch, void *const *dst, int ndst,
		  const void *const *src, int nsrc, size_t count,
		  hcommDataType_t type, hcommRedOp_t op, int divisor)
{
	size_t size = hcommTypeSize(type);
	size_t unit = is_half(type) ? sizeof(float) : size;
	size_t block = HCOMM_REDUCE_BLOCK / unit;
	fold_fn *fold = folds[type][op];
	size_t at;
	int i;

	for (at = 0; at < count; at += block) {
		size_t now = count - at < block ? count - at : block;

		reduce_block(scratch, src, nsrc, at * size, now, type, fold);
		if (divisor > 1)
			scales[type](scratch, now, divisor);
		if (is_half(type))
			narrow(scratch, now, type);
		for (i = 0; i < ndst; i++)
			memcpy((char *)dst[i] + at * size, scratch, now * size);
	}
}
