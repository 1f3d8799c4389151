// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The data of hcomm_benchmark's checks: contributions of ranks reduced here,
 * in the compiler's own arithmetic and in any order, are what is expected, and
 * whatever a broken collective could deliver instead is found.
 */
#include <math.h>

#include <kselftest_harness.h>

#include "pattern.h"

#define COUNT	1500		/* three blocks, the last one not full */
#define RANKS	64

static const struct bench_type *type_of(hcommDataType_t id)
{
	for (int i = 0; i < BENCH_NR_TYPES; i++)
		if (bench_types[i].id == id)
			return &bench_types[i];
	return NULL;
}

static float from_bfloat16(uint16_t bits)
{
	uint32_t word = (uint32_t)bits << 16;
	float value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

/* Exact: float holds all 16-bit floats. */
static double to_double(const struct bench_type *type, const void *from)
{
	_Float16 half;
	uint16_t bits;

	switch (type->id) {
	case HCOMM_FLOAT16:
		memcpy(&half, from, sizeof(half));
		return half;
	case HCOMM_BFLOAT16:
		memcpy(&bits, from, sizeof(bits));
		return from_bfloat16(bits);
	case HCOMM_FLOAT32:
		return *(const float *)from;
	default:
		return *(const double *)from;
	}
}

static bool same_float(const struct bench_type *type, double value,
		       const void *stored)
{
	_Float16 half = value;

	if (type->id == HCOMM_FLOAT16)
		return !memcmp(&half, stored, sizeof(half));
	if (type->id == HCOMM_FLOAT32)
		return (float)value == *(const float *)stored;
	if (type->id == HCOMM_FLOAT64)
		return value == *(const double *)stored;
	/* Nearest: no neighbour is nearer. */
	for (int step = -1; step <= 1; step += 2) {
		uint16_t other = *(const uint16_t *)stored + step;

		if (fabs(from_bfloat16(other) - value) <
		    fabs(to_double(type, stored) - value))
			return false;
	}
	return true;
}

/* One more input, as the type's own arithmetic would take it. */
static double fold_real(hcommRedOp_t op, double a, double b)
{
	switch (op) {
	case HCOMM_PROD:
		return a * b;
	case HCOMM_MIN:
		return a < b ? a : b;
	case HCOMM_MAX:
		return a > b ? a : b;
	default:
		return a + b;
	}
}

static double round_to(const struct bench_type *type, double value)
{
	_Alignas(8) char element[8];

	bench_store_real(type, element, &value, 1);
	return to_double(type, element);
}

FIXTURE(pattern)
{
	_Alignas(64) char in[RANKS][COUNT * 8];
	_Alignas(64) char out[COUNT * 8];
	int nranks;
};

FIXTURE_VARIANT(pattern)
{
	int nranks;
};

FIXTURE_VARIANT_ADD(pattern, one_rank)
{
	.nranks = 1,
};

FIXTURE_VARIANT_ADD(pattern, three_ranks)
{
	.nranks = 3,
};

FIXTURE_VARIANT_ADD(pattern, more_ranks_than_speakers)
{
	.nranks = RANKS,
};

FIXTURE_SETUP(pattern)
{
	self->nranks = variant->nranks;
}

FIXTURE_TEARDOWN(pattern)
{
}

static struct bench_pattern fill(FIXTURE_DATA(pattern) *self,
				 const struct bench_type *type,
				 const struct bench_redop *redop)
{
	struct bench_pattern pattern = { type, redop, self->nranks, 7 };

	for (int rank = 0; rank < self->nranks; rank++)
		bench_pattern_fill(&pattern, rank, 0, COUNT, self->in[rank]);
	return pattern;
}

/* In the order of ranks, or backwards, rounding after every step. */
static double reduce_real(FIXTURE_DATA(pattern) *self,
			  const struct bench_type *type, hcommRedOp_t op,
			  size_t index, bool backwards)
{
	double acc = 0;

	for (int i = 0; i < self->nranks; i++) {
		int rank = backwards ? self->nranks - 1 - i : i;
		double value = to_double(type, self->in[rank] +
					 index * type->size);

		acc = i ? round_to(type, fold_real(op, acc, value)) : value;
	}
	return op == HCOMM_AVG ? acc / self->nranks : acc;
}

TEST_F(pattern, of_floats_has_one_result_in_any_order)
{
	for (int t = HCOMM_FLOAT16; t <= HCOMM_FLOAT64; t++)
		for (int o = HCOMM_SUM; o <= HCOMM_AVG; o++) {
			const struct bench_type *type = type_of(t);
			struct bench_pattern pattern =
				fill(self, type, &bench_redops[o]);
			struct bench_wrong wrong = {};

			for (size_t i = 0; i < COUNT; i++) {
				double up = reduce_real(self, type, o, i, false);
				double down = reduce_real(self, type, o, i, true);

				ASSERT_EQ(up, down);
				bench_store_real(type, self->out + i * type->size,
						 &up, 1);
				ASSERT_TRUE(same_float(type, up, self->out +
						       i * type->size));
			}
			bench_pattern_check(&pattern, BENCH_ALL_RANKS, 0, COUNT,
					    self->out, 0, &wrong);
			EXPECT_EQ(0, wrong.count) {
				TH_LOG("%s %s", type->name, bench_redops[o].name);
			}
		}
}

#define INTEGERS(ctype, op)						\
	do {								\
		for (size_t i = 0; i < COUNT; i++) {			\
			ctype a = ((ctype *)self->in[0])[i];		\
									\
			for (int r = 1; r < self->nranks; r++) {	\
				ctype b = ((ctype *)self->in[r])[i];	\
									\
				a = integer_##ctype(op, a, b);		\
			}						\
			((ctype *)self->out)[i] = op == HCOMM_AVG ?	\
				(ctype)(a / (wide_##ctype)self->nranks) : a; \
		}							\
	} while (0)

#define INTEGER(ctype, wide)						\
	typedef wide wide_##ctype;					\
	static ctype integer_##ctype(hcommRedOp_t op, ctype a, ctype b)	\
	{								\
		switch (op) {						\
		case HCOMM_PROD: return (uint64_t)a * (uint64_t)b;	\
		case HCOMM_MIN: return a < b ? a : b;			\
		case HCOMM_MAX: return a > b ? a : b;			\
		case HCOMM_BAND: return a & b;				\
		case HCOMM_BOR: return a | b;				\
		case HCOMM_BXOR: return a ^ b;				\
		default: return (uint64_t)a + (uint64_t)b;		\
		}							\
	}

INTEGER(int8_t, int)
INTEGER(uint8_t, int)
INTEGER(int16_t, int)
INTEGER(uint16_t, int)
INTEGER(int32_t, int)
INTEGER(uint32_t, unsigned int)
INTEGER(int64_t, int64_t)
INTEGER(uint64_t, uint64_t)

static void reduce_integers(FIXTURE_DATA(pattern) *self, hcommDataType_t type,
			    hcommRedOp_t op)
{
	switch (type) {
	case HCOMM_INT8: INTEGERS(int8_t, op); break;
	case HCOMM_UINT8: INTEGERS(uint8_t, op); break;
	case HCOMM_INT16: INTEGERS(int16_t, op); break;
	case HCOMM_UINT16: INTEGERS(uint16_t, op); break;
	case HCOMM_INT32: INTEGERS(int32_t, op); break;
	case HCOMM_UINT32: INTEGERS(uint32_t, op); break;
	case HCOMM_INT64: INTEGERS(int64_t, op); break;
	default: INTEGERS(uint64_t, op); break;
	}
}

TEST_F(pattern, of_integers_is_reduced_as_c_does)
{
	for (int t = HCOMM_INT8; t <= HCOMM_UINT64; t++)
		for (int o = 0; o < BENCH_NR_REDOPS; o++) {
			struct bench_pattern pattern =
				fill(self, type_of(t), &bench_redops[o]);
			struct bench_wrong wrong = {};

			reduce_integers(self, t, bench_redops[o].id);
			bench_pattern_check(&pattern, BENCH_ALL_RANKS, 0, COUNT,
					    self->out, 0, &wrong);
			EXPECT_EQ(0, wrong.count) {
				TH_LOG("%s %s", type_of(t)->name,
				       bench_redops[o].name);
			}
		}
}

static uint8_t truth(hcommRedOp_t op, bool a, bool b)
{
	switch (op) {
	case HCOMM_SUM:
	case HCOMM_MAX:
	case HCOMM_BOR:
		return a || b;
	case HCOMM_BXOR:
		return a != b;
	default:
		return a && b;
	}
}

TEST_F(pattern, of_bools_is_reduced_as_truth)
{
	for (int o = 0; o < BENCH_NR_REDOPS; o++) {
		struct bench_wrong wrong = {};
		struct bench_pattern pattern;

		if (!bench_redop_defined(&bench_redops[o], type_of(HCOMM_BOOL)))
			continue;
		pattern = fill(self, type_of(HCOMM_BOOL), &bench_redops[o]);
		for (size_t i = 0; i < COUNT; i++) {
			uint8_t a = self->in[0][i] != 0;

			for (int rank = 1; rank < self->nranks; rank++)
				a = truth(bench_redops[o].id, a,
					  self->in[rank][i]);
			self->out[i] = a;
		}
		bench_pattern_check(&pattern, BENCH_ALL_RANKS, 0, COUNT,
				    self->out, 0, &wrong);
		EXPECT_EQ(0, wrong.count);
	}
}

static uint64_t wrong_as(const struct bench_pattern *pattern, int source,
			 size_t first, size_t count, const void *buf)
{
	struct bench_wrong wrong = {};

	bench_pattern_check(pattern, source, first, count, buf, 0, &wrong);
	return wrong.count;
}

/* Most elements differ: one value in few may be the same by chance. */
TEST_F(pattern, differs_by_rank_index_and_iteration)
{
	for (int t = 0; t < BENCH_NR_TYPES; t++) {
		struct bench_pattern pattern = fill(self, &bench_types[t], NULL);
		struct bench_pattern later = pattern;
		size_t size = bench_types[t].size;

		later.iteration++;
		EXPECT_EQ(0, wrong_as(&pattern, 0, 0, COUNT, self->in[0]));
		EXPECT_LT(COUNT / 2, wrong_as(&pattern, self->nranks, 0, COUNT,
					      self->in[0]));
		EXPECT_LT(COUNT / 2, wrong_as(&later, 0, 0, COUNT,
					      self->in[0]));
		EXPECT_LT(COUNT / 2, wrong_as(&pattern, 0, 0, COUNT - 1,
					      self->in[0] + size));
	}
}

/* A result that lacks one rank's contribution, or has one twice. */
TEST(pattern_shows_a_missing_rank)
{
	struct bench_pattern all = { NULL, NULL, 4, 3 };
	static _Alignas(8) char out[COUNT * 8];

	for (int t = 0; t < BENCH_NR_TYPES; t++)
		for (int o = HCOMM_SUM; o <= HCOMM_AVG; o++) {
			struct bench_pattern three;

			all.type = &bench_types[t];
			all.redop = &bench_redops[o];
			if (!bench_redop_defined(all.redop, all.type))
				continue;
			bench_pattern_fill(&all, BENCH_ALL_RANKS, 0, COUNT, out);
			EXPECT_EQ(0, wrong_as(&all, BENCH_ALL_RANKS, 0, COUNT,
					      out));
			three = all;
			three.nranks = 3;
			bench_pattern_fill(&three, BENCH_ALL_RANKS, 0, COUNT,
					   out);
			EXPECT_NE(0, wrong_as(&all, BENCH_ALL_RANKS, 0, COUNT,
					      out));
		}
}

TEST(one_flipped_bit_is_found_and_placed)
{
	struct bench_pattern pattern = {
		type_of(HCOMM_FLOAT32), &bench_redops[0], 2, 1,
	};
	static float out[COUNT];
	struct bench_wrong wrong = {};

	bench_pattern_fill(&pattern, BENCH_ALL_RANKS, 0, COUNT, out);
	((unsigned char *)out)[1030 * sizeof(float)] ^= 1;
	bench_pattern_check(&pattern, BENCH_ALL_RANKS, 0, COUNT, out, 100,
			    &wrong);
	EXPECT_EQ(1, wrong.count);
	EXPECT_EQ(1130, wrong.index);
	EXPECT_EQ(wrong.want[0] ^ 1, wrong.got[0]);
}

TEST(names_are_found_with_their_aliases)
{
	EXPECT_EQ(HCOMM_FLOAT32, bench_type_find("float")->id);
	EXPECT_EQ(HCOMM_FLOAT32, bench_type_find("float32")->id);
	EXPECT_EQ(HCOMM_FLOAT16, bench_type_find("half")->id);
	EXPECT_EQ(NULL, bench_type_find("quad"));
	EXPECT_EQ(HCOMM_BXOR, bench_redop_find("bxor")->id);
	EXPECT_EQ(NULL, bench_redop_find(""));
}

TEST(tables_are_in_the_order_of_the_library)
{
	for (int i = 0; i < BENCH_NR_TYPES; i++)
		EXPECT_EQ(i, (int)bench_types[i].id);
	for (int i = 0; i < BENCH_NR_REDOPS; i++)
		EXPECT_EQ(i, (int)bench_redops[i].id);
}

TEST_HARNESS_MAIN
