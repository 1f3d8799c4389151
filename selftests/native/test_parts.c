// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The parts of the library that know no device: how a collective is divided
 * (every element once, within the limits, for any spread of ranks), reductions
 * bit by bit, offsets of the heap.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "memory/layout.h"
#include "memory/symheap.h"
#include "ranks.h"
#include "reduce/reduce.h"
#include "schedule/shape.h"

#define STAGE	((size_t)16 << 10)
#define MESSAGE	((size_t)4 << 10)

/* Each element of each block lies in one segment of one chunk. */
static int covers(const struct hcomm_split *split)
{
	int blocks = split->in_blocks > split->out_blocks ?
		     split->in_blocks : split->out_blocks;
	uint8_t *seen = calloc(blocks, split->count);
	size_t chunk, start, length, i;
	int seg, block;

	for (chunk = 0; chunk < split->chunks; chunk++) {
		for (seg = 0; seg < split->nseg; seg++) {
			length = hcomm_split_segment(split, chunk, seg, &block,
						     &start);
			start += chunk * split->piece;
			for (i = 0; i < length; i++)
				seen[block * split->count + start + i]++;
		}
	}
	for (i = 0; i < blocks * split->count; i++)
		CHECK(seen[i] == 1, "kind %d count %zu: element %zu in %d "
		      "segments", split->kind, split->count, i, seen[i]);
	free(seen);
	return 0;
}

static int keeps_limits(const struct hcomm_split *split,
			const struct hcomm_shape *shape)
{
	int blocks = split->blocks ? shape->n : 1, seg, block, k, rank;
	size_t length, start;

	CHECK(blocks * split->piece * split->elem <= STAGE,
	      "kind %d: a chunk of %zu does not fit the stage", split->kind,
	      split->piece);
	for (seg = 0; seg < split->nseg; seg++) {
		length = hcomm_split_segment(split, 0, seg, &block, &start);
		CHECK(shape->ninst == 1 || length * split->elem <= MESSAGE,
		      "kind %d: %zu elements in one message", split->kind,
		      length);
		for (k = 0; k < shape->ninst; k++) {
			rank = hcomm_split_handler(split, shape, seg, k);
			CHECK(shape->inst_of[rank] == k, "handler elsewhere");
		}
		k = hcomm_split_final(split, shape, seg);
		CHECK(k >= 0 && k < shape->ninst, "final nowhere");
		rank = hcomm_split_sink(split, seg);
		CHECK(rank < 0 || shape->inst_of[rank] == k,
		      "the only receiver is not where the value is");
		rank = hcomm_split_source(split, seg);
		CHECK(rank < 0 || shape->inst_of[rank] == k,
		      "the only source is not where the value is");
	}
	return 0;
}

static int divide(int n, int ninst, bool whole)
{
	static const size_t counts[] = { 1, 2, 7, 63, 64, 65, 1000, 5003 };
	struct hcomm_limits limits = { STAGE, MESSAGE, whole };
	struct hcomm_shape shape;
	struct hcomm_split split;
	uint32_t keys[64];
	size_t c, elem;
	int kind, r;

	for (r = 0; r < n; r++)
		keys[r] = r < ninst ? r : (uint32_t)(r * r) % ninst;
	CHECK(!hcomm_shape_init(&shape, n, keys, sizeof(*keys)), "no memory");
	CHECK(shape.ninst == ninst, "%d instances", shape.ninst);
	for (kind = 0; kind < HCOMM_COLL_BARRIER; kind++) {
		for (c = 0; c < 8; c++) {
			for (elem = 1; elem <= 8; elem *= 2) {
				hcomm_split_init(&split, &shape, kind, n / 2,
						 counts[c], elem, &limits);
				if (covers(&split) ||
				    (!whole && keeps_limits(&split, &shape)))
					return 1;
			}
		}
	}
	hcomm_shape_free(&shape);
	return 0;
}

TEST(every_element_is_in_one_segment)
{
	int n, ninst;

	for (n = 1; n <= 64; n += n < 18 ? 1 : 23) {
		for (ninst = 1; ninst <= n && ninst <= 8; ninst++)
			ASSERT_EQ(0, divide(n, ninst, false));
		ASSERT_EQ(0, divide(n, 1, true));
	}
}

static char scratch[HCOMM_REDUCE_SCRATCH] __attribute__((aligned(64)));

static void reduce(void *dst, const void *a, const void *b, size_t count,
		   hcommDataType_t type, hcommRedOp_t op)
{
	const void *src[] = { a, b };

	hcomm_reduce(scratch, &dst, 1, src, b ? 2 : 1, count, type, op, 0);
}

/* Through 32 bits and back without a change; sums rounded to nearest even. */
TEST(halves_are_converted_and_rounded)
{
	static uint16_t in[65536], other[65536], out[65536];
	_Float16 a, b, sum;
	uint32_t i;

	for (i = 0; i < 65536; i++) {
		in[i] = (uint16_t)i;
		other[i] = (uint16_t)(i * 40503u >> 3);
	}
	reduce(out, in, NULL, 65536, HCOMM_FLOAT16, HCOMM_SUM);
	for (i = 0; i < 65536; i++) {
		bool nan = (i & 0x7c00) == 0x7c00 && i & 0x3ff;

		ASSERT_EQ(nan ? i | 0x200 : i, out[i]);
	}
	reduce(out, in, NULL, 65536, HCOMM_BFLOAT16, HCOMM_SUM);
	for (i = 0; i < 65536; i++) {
		bool nan = (i & 0x7f80) == 0x7f80 && i & 0x7f;

		ASSERT_EQ(nan ? i | 0x40 : i, out[i]);
	}
	reduce(out, in, other, 65536, HCOMM_FLOAT16, HCOMM_SUM);
	for (i = 0; i < 65536; i++) {
		memcpy(&a, &in[i], 2);
		memcpy(&b, &other[i], 2);
		sum = (_Float16)((float)a + (float)b);
		if (isnan((float)sum))
			continue;
		ASSERT_EQ(0, memcmp(&sum, &out[i], 2))
			TH_LOG("%04x + %04x = %04x", in[i], other[i], out[i]);
	}
}

TEST(nan_wins_and_integers_wrap)
{
	float a[] = { NAN, 1, 2 }, b[] = { 1, NAN, 3 }, f[3];
	int8_t x[] = { 127, -128, 100 }, y[] = { 1, -1, 3 }, r[3];

	reduce(f, a, b, 3, HCOMM_FLOAT32, HCOMM_MIN);
	EXPECT_TRUE(isnan(f[0]) && isnan(f[1]) && f[2] == 2);
	reduce(f, a, b, 3, HCOMM_FLOAT32, HCOMM_MAX);
	EXPECT_TRUE(isnan(f[0]) && isnan(f[1]) && f[2] == 3);
	reduce(r, x, y, 3, HCOMM_INT8, HCOMM_SUM);
	EXPECT_TRUE(r[0] == -128 && r[1] == 127 && r[2] == 103);
	reduce(r, x, y, 3, HCOMM_INT8, HCOMM_PROD);
	EXPECT_TRUE(r[0] == 127 && r[1] == -128 && r[2] == 44);
}

struct block {
	size_t offset;
	size_t size;
};

/* Two copies of one sequence of calls agree; blocks never overlap. */
TEST(heap_offsets_follow_from_the_calls_alone)
{
	struct hcomm_symheap one, two;
	struct block live[64] = { { 0 } };
	size_t at, other, end = 1 << 20;
	int i, k, j, full = 0;

	srand(7);
	ASSERT_EQ(0, hcomm_symheap_init(&one, 4096, end));
	ASSERT_EQ(0, hcomm_symheap_init(&two, 4096, end));
	for (i = 0; i < 20000; i++) {
		k = rand() % 64;
		if (live[k].size) {
			ASSERT_EQ(0, hcomm_symheap_release(&one,
							   live[k].offset));
			ASSERT_EQ(0, hcomm_symheap_release(&two,
							   live[k].offset));
			ASSERT_EQ(-EINVAL, hcomm_symheap_release(&one,
							live[k].offset));
			live[k].size = 0;
		} else {
			size_t size = 1 + rand() % 40000;
			size_t align = (size_t)1 << rand() % 16;
			int ret = hcomm_symheap_alloc(&one, size, align, &at);

			ASSERT_EQ(ret, hcomm_symheap_alloc(&two, size, align,
							   &other));
			if (ret) {
				full++;
			} else {
				ASSERT_EQ(at, other);
				ASSERT_EQ(0, at % align);
				ASSERT_LE(at + size, end);
				for (j = 0; j < 64; j++)
					ASSERT_TRUE(!live[j].size ||
						at >= live[j].offset +
						      live[j].size ||
						live[j].offset >= at + size);
				live[k] = (struct block) { at, size };
			}
		}
		ASSERT_EQ(one.hash, two.hash);
		if (i % 13 == 0) {
			hcomm_symheap_settle(&one);
			hcomm_symheap_settle(&two);
		}
	}
	EXPECT_GT(full, 10);
	for (k = 0; k < 64; k++)
		if (live[k].size)
			hcomm_symheap_release(&one, live[k].offset);
	hcomm_symheap_settle(&one);
	EXPECT_EQ(end - 4096, hcomm_symheap_largest(&one));
	hcomm_symheap_alloc(&one, 64, 64, &at);
	EXPECT_NE(one.hash, two.hash);
	hcomm_symheap_free_all(&one);
	hcomm_symheap_free_all(&two);
}

TEST(layout_fits_any_heap_it_accepts)
{
	struct hcomm_layout l;
	size_t bytes;
	int n, accepted = 0;

	for (n = 1; n <= 4096; n *= 2) {
		for (bytes = 1 << 20; bytes <= 1 << 30; bytes *= 2) {
			if (hcomm_layout_init(&l, bytes, n, 32))
				continue;
			accepted++;
			ASSERT_LT(l.user, bytes);
			ASSERT_LE(l.out + HCOMM_OUT_SLOTS * l.mail_slot,
				  l.user);
			ASSERT_LE(hcomm_layout_mail(&l, n - 1,
						    HCOMM_MAIL_SLOTS - 1) +
				  l.mail_slot, l.out);
			ASSERT_EQ(0, l.stage_in % 4096);
			ASSERT_EQ(0, l.mail % 64);
		}
	}
	EXPECT_GT(accepted, 50);
	EXPECT_EQ(0, hcomm_layout_init(&l, 8 << 20, 16, 32));
}

TEST_HARNESS_MAIN
