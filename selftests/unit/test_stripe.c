// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Parts and segments cover an op exactly and cross no boundary. */
#include <stdlib.h>

#include <kselftest_harness.h>

#include "core/stripe.h"

static u64 rnd64(void)
{
	return (u64)rand() << 40 ^ (u64)rand() << 20 ^ rand();
}

/* NULL, or what is wrong with the cut. */
static const char *check(const struct hcomm_stripe *s)
{
	struct hcomm_stripe_seg seg;
	u64 at = 0, off;
	u32 part, len, pos, sum, n;
	u32 limit = hcomm_stripe_segs_max(s->stripe, s->local.mr_shift,
					  s->remote.mr_shift);

	if (!s->parts || s->parts > HCOMM_WIRE_PARTS)
		return "number of parts";
	for (part = 0; part < s->parts; part++) {
		off = hcomm_stripe_part(s, part, &len);
		if (off != at || !len || len > s->stripe)
			return "part";
		pos = 0;
		sum = 0;
		n = 0;
		while (hcomm_stripe_next(s, part, &pos, &seg)) {
			if (!seg.length || seg.local_off != s->local_off + at +
			    sum || seg.remote_off != s->remote_off + at + sum)
				return "segment";
			if (hcomm_geom_mr(&s->local, seg.local_off) !=
			    hcomm_geom_mr(&s->local,
					  seg.local_off + seg.length - 1) ||
			    seg.local_mr != hcomm_geom_mr(&s->local,
							  seg.local_off))
				return "local boundary";
			if (hcomm_geom_mr(&s->remote, seg.remote_off) !=
			    hcomm_geom_mr(&s->remote,
					  seg.remote_off + seg.length - 1) ||
			    seg.remote_mr != hcomm_geom_mr(&s->remote,
							   seg.remote_off))
				return "remote boundary";
			sum += seg.length;
			n++;
		}
		if (sum != len || n != hcomm_stripe_segs(s, part))
			return "sum of segments";
		if (n > limit)
			return "too many segments";
		at += len;
	}
	hcomm_stripe_part(s, part, &len);
	return at == s->length && !len ? NULL : "sum of parts";
}

static void geom_random(struct hcomm_geom *g)
{
	g->mr_shift = HCOMM_WIRE_MR_SHIFT_MIN + rand() % 12;
	g->base_off = rnd64() & ((1u << g->mr_shift) - 1);
	g->length = 1 + rnd64() % (40ull << 20);
}

TEST(random_ops_are_covered_exactly)
{
	struct hcomm_geom a, b;
	struct hcomm_stripe s;
	const char *wrong;
	u64 len, la, lb;
	u32 stripe;
	int i;

	for (i = 0; i < 3000; i++) {
		geom_random(&a);
		geom_random(&b);
		stripe = HCOMM_STRIPE_MIN * (1 + rand() % 64);
		len = 1 + rnd64() % min(a.length, b.length);
		len = min(len, hcomm_stripe_length_max(stripe));
		la = rnd64() % (a.length - len + 1);
		lb = rnd64() % (b.length - len + 1);
		ASSERT_EQ(hcomm_stripe_init(&s, &a, la, &b, lb, len, stripe),
			  0);
		wrong = check(&s);
		ASSERT_EQ(wrong, NULL) {
			TH_LOG("%s: round %d", wrong, i);
		}
	}
}

TEST(lengths_around_each_threshold)
{
	static const u64 marks[] = {
		1, 1024, 4096, HCOMM_STRIPE_MAX, 1 << 20, 9 << 20,
		16 << 20,
	};
	struct hcomm_geom g = { .length = 32 << 20, .mr_shift = 20 };
	struct hcomm_stripe s;
	int i, d;
	u64 len;

	for (g.base_off = 0; g.base_off <= 100; g.base_off += 100)
		for (i = 0; i < ARRAY_SIZE(marks); i++)
			for (d = -1; d <= 1; d++) {
				len = marks[i] + d;
				if (!len || len > 16 << 20)
					continue;
				ASSERT_EQ(hcomm_stripe_init(&s, &g, 4095, &g,
							    1, len,
							    HCOMM_STRIPE_MAX),
					  0);
				ASSERT_EQ(check(&s), NULL);
			}
}

TEST(impossible_ops_are_refused)
{
	struct hcomm_geom g = { .length = 64 << 20, .mr_shift = 20 };
	struct hcomm_geom bad = g;
	struct hcomm_stripe s;
	u32 max = HCOMM_STRIPE_MAX;

	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &g, 0, 0, max), -EINVAL);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &g, 0, 1, max * 2), -EINVAL);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &g, 0, 1, 0), -EINVAL);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &g, 0, 1, 5000), -EINVAL);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &g, 0, (16 << 20) + 1, max),
		  -E2BIG);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 64 << 20, &g, 0, 1, max), -ERANGE);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &g, U64_MAX, 1, max), -ERANGE);
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 1, &g, 0, U64_MAX, max), -ERANGE);
	bad.mr_shift = 64;
	EXPECT_EQ(hcomm_stripe_init(&s, &g, 0, &bad, 0, 1, max), -EINVAL);
	bad.mr_shift = 20;
	bad.base_off = 1 << 20;
	EXPECT_EQ(hcomm_stripe_init(&s, &bad, 0, &g, 0, 1, max), -EINVAL);
	bad.base_off = 1;
	bad.length = U64_MAX;
	EXPECT_EQ(hcomm_stripe_init(&s, &bad, 0, &g, 0, 1, max), -EINVAL);
}

TEST(ops_at_the_end_of_the_address_space_do_not_wrap)
{
	struct hcomm_geom g = { .length = U64_MAX, .mr_shift = 31 };
	struct hcomm_stripe s;

	ASSERT_EQ(hcomm_stripe_init(&s, &g, U64_MAX - (1 << 20), &g,
				    U64_MAX - (2 << 20), 1 << 20,
				    HCOMM_STRIPE_MAX), 0);
	EXPECT_EQ(check(&s), NULL);
}

TEST(span_counts_the_regions_of_a_range)
{
	struct hcomm_geom g = {
		.length = 10 << 20, .mr_shift = 20, .base_off = 100,
	};
	u64 first, n;

	ASSERT_EQ(hcomm_geom_span(&g, 0, 10 << 20, &first, &n), 0);
	EXPECT_EQ(first, 0);
	EXPECT_EQ(n, 11);
	ASSERT_EQ(hcomm_geom_span(&g, (1 << 20) - 100, 1, &first, &n), 0);
	EXPECT_EQ(first, 1);
	EXPECT_EQ(n, 1);
	ASSERT_EQ(hcomm_geom_span(&g, (1 << 20) - 101, 2, &first, &n), 0);
	EXPECT_EQ(first, 0);
	EXPECT_EQ(n, 2);
	EXPECT_EQ(hcomm_geom_span(&g, 10 << 20, 1, &first, &n), -ERANGE);
	EXPECT_EQ(hcomm_geom_span(&g, 0, 0, &first, &n), -ERANGE);
}

TEST(chosen_stripe_is_valid_and_uses_the_paths)
{
	u64 len;
	u32 s;
	int paths;

	for (paths = 0; paths <= 16; paths++)
		for (len = 1; len < 1ull << 40; len = len * 3 + 1) {
			s = hcomm_stripe_choose(len, paths);
			ASSERT_GE(s, 64 << 10);
			ASSERT_LE(s, HCOMM_STRIPE_MAX);
			ASSERT_EQ(s % HCOMM_STRIPE_MIN, 0);
		}
	EXPECT_EQ(hcomm_stripe_choose(512 << 10, 4), 128 << 10);
	EXPECT_EQ(hcomm_stripe_choose(1 << 30, 4), HCOMM_STRIPE_MAX);
}

TEST_HARNESS_MAIN
