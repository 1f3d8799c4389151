// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Waiting ops come out by threshold, then in the order they came in. */
#include <stdlib.h>

#include <kselftest_harness.h>

#include "core/trigger.h"

#define N	500

static struct hcomm_trigger t[N];
static struct hcomm_trigger_set set;

TEST(ready_ops_come_out_by_threshold_and_age)
{
	struct hcomm_trigger *a;
	u64 last = 0, order = 0;
	int i, n = 0;

	hcomm_trigger_set_init(&set);
	for (i = 0; i < N; i++)
		hcomm_trigger_add(&set, &t[i], rand() % 50);
	EXPECT_EQ(set.count, N);
	while ((a = hcomm_trigger_pop(&set, 24))) {
		ASSERT_GE(a->threshold, last);
		ASSERT_LE(a->threshold, 24);
		if (a->threshold == last && n)
			ASSERT_GT(a->order, order);
		last = a->threshold;
		order = a->order;
		n++;
	}
	for (i = 0; i < N; i++)
		ASSERT_EQ(t[i].queued, t[i].threshold > 24);
	EXPECT_EQ(set.count, N - n);
	while (hcomm_trigger_pop_any(&set))
		n++;
	EXPECT_EQ(n, N);
	EXPECT_EQ(set.root, NULL);
}

/* Random adds, removals and pops against a plain array. */
TEST(random_use_agrees_with_a_plain_list)
{
	struct hcomm_trigger *a, *best;
	int round, i;
	u64 value;

	hcomm_trigger_set_init(&set);
	memset(t, 0, sizeof(t));
	for (round = 0; round < 20000; round++) {
		i = rand() % N;
		switch (rand() % 4) {
		case 0:
		case 1:
			if (!t[i].queued)
				hcomm_trigger_add(&set, &t[i], rand() % 1000);
			break;
		case 2:
			hcomm_trigger_remove(&set, &t[i]);
			ASSERT_FALSE(t[i].queued);
			break;
		default:
			value = rand() % 1000;
			best = NULL;
			for (i = 0; i < N; i++) {
				a = &t[i];
				if (a->queued && a->threshold <= value &&
				    (!best || a->threshold < best->threshold ||
				     (a->threshold == best->threshold &&
				      a->order < best->order)))
					best = a;
			}
			ASSERT_EQ(hcomm_trigger_pop(&set, value), best);
		}
	}
	for (i = 0; i < N; i++)
		hcomm_trigger_remove(&set, &t[i]);
	EXPECT_EQ(set.root, NULL);
	EXPECT_EQ(set.count, 0);
}

TEST(long_chains_do_not_recurse)
{
	static struct hcomm_trigger many[1 << 20];
	int i, n = 0;

	hcomm_trigger_set_init(&set);
	for (i = 0; i < ARRAY_SIZE(many); i++)
		hcomm_trigger_add(&set, &many[i], ARRAY_SIZE(many) - i);
	while (hcomm_trigger_pop_any(&set))
		n++;
	EXPECT_EQ(n, ARRAY_SIZE(many));
}

TEST(counters_stop_at_the_top)
{
	EXPECT_EQ(hcomm_trigger_raise(1, 2), 3);
	EXPECT_EQ(hcomm_trigger_raise(U64_MAX - 1, 1), U64_MAX);
	EXPECT_EQ(hcomm_trigger_raise(U64_MAX - 1, 2), U64_MAX);
	EXPECT_EQ(hcomm_trigger_raise(U64_MAX, U64_MAX), U64_MAX);
}

TEST_HARNESS_MAIN
