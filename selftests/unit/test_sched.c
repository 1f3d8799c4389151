// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shares of a path, and how much of it is in doubt at once. */
#include <kselftest_harness.h>

#include "core/sched.h"

#define STRIPE	(256u << 10)

struct group {
	struct hcomm_sched_queue q;
	u64 cost;		/* of each of its parts */
	u64 left;		/* parts */
	u64 sent;		/* bytes */
};

static u64 cost(struct hcomm_sched_queue *q, void *arg)
{
	struct group *g = container_of(q, struct group, q);

	return g->left ? g->cost : 0;
}

static struct group *serve(struct hcomm_sched *s, u64 now)
{
	struct hcomm_sched_queue *q = hcomm_sched_next(s, cost, NULL);
	struct group *g;

	if (!q)
		return NULL;
	g = container_of(q, struct group, q);
	hcomm_sched_charge(s, q, g->cost, now);
	g->left--;
	g->sent += g->cost;
	return g;
}

static void group_init(struct hcomm_sched *s, struct group *g, u32 weight,
		       u64 cost, u64 left)
{
	hcomm_sched_queue_init(&g->q, weight);
	g->cost = cost;
	g->left = left;
	g->sent = 0;
	hcomm_sched_activate(s, &g->q);
}

TEST(groups_share_by_bytes_not_by_parts)
{
	struct hcomm_sched s;
	struct group a, b;
	struct group *g;
	int i;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 1, STRIPE, 100000);
	group_init(&s, &b, 1, 1000, 100000000);
	for (i = 0; i < 200000; i++) {
		g = serve(&s, i);
		ASSERT_NE(g, NULL);
		hcomm_sched_complete(&s, g->cost, i);
	}
	EXPECT_LT(a.sent, b.sent * 101 / 100 + STRIPE);
	EXPECT_LT(b.sent, a.sent * 101 / 100 + STRIPE);
}

TEST(weights_divide_the_path)
{
	struct hcomm_sched s;
	struct group a, b;
	struct group *g;
	int i;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 3, STRIPE, 1000000);
	group_init(&s, &b, 1, STRIPE, 1000000);
	for (i = 0; i < 40000; i++) {
		g = serve(&s, i);
		hcomm_sched_complete(&s, g->cost, i);
	}
	EXPECT_LT(a.sent, b.sent * 31 / 10);
	EXPECT_GT(a.sent, b.sent * 29 / 10);
}

TEST(small_group_waits_one_round_behind_a_backlog)
{
	struct hcomm_sched s;
	struct group a, b;
	struct group *g;
	u64 before;
	int i;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 1, STRIPE, 1000000);
	for (i = 0; i < 1000; i++) {
		g = serve(&s, i);
		hcomm_sched_complete(&s, g->cost, i);
	}
	before = a.sent;
	group_init(&s, &b, 1, 64, 1);
	do {
		g = serve(&s, i);
		hcomm_sched_complete(&s, g->cost, i);
	} while (g != &b);
	EXPECT_LE(a.sent - before, STRIPE);
}

TEST(posted_bytes_are_bounded)
{
	struct hcomm_sched s;
	struct group a;
	int n = 0;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 1, STRIPE, 100);
	while (serve(&s, 0))
		n++;
	EXPECT_EQ(n, 2);
	hcomm_sched_complete(&s, STRIPE, 10);
	EXPECT_EQ(serve(&s, 10), &a);
	EXPECT_EQ(serve(&s, 10), NULL);
}

TEST(part_above_the_limit_passes_when_idle)
{
	struct hcomm_sched s;

	hcomm_sched_init(&s, 4096);
	EXPECT_TRUE(hcomm_sched_room(&s, 1 << 20));
	s.posted = 1;
	EXPECT_FALSE(hcomm_sched_room(&s, 1 << 20));
	EXPECT_TRUE(hcomm_sched_room(&s, 8191));
	EXPECT_FALSE(hcomm_sched_room(&s, 8192));
}

TEST(limit_is_a_millisecond_at_the_measured_rate)
{
	struct hcomm_sched s;
	struct group a;
	u64 now = 0;
	int i;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 1, STRIPE, 1000000);
	/* 4 GB/s: a stripe in 65 us */
	for (i = 0; i < 1000; i++) {
		while (serve(&s, now))
			;
		now += 65536;
		hcomm_sched_complete(&s, STRIPE, now);
	}
	EXPECT_GT(s.limit, 3900000);
	EXPECT_LT(s.limit, 4100000);
	/* 100 MB/s: the floor */
	for (i = 0; i < 1000; i++) {
		while (serve(&s, now))
			;
		now += 2621440;
		hcomm_sched_complete(&s, STRIPE, now);
	}
	EXPECT_EQ(s.limit, 2 * STRIPE);
}

TEST(empty_queues_leave_and_come_back)
{
	struct hcomm_sched s;
	struct group a, b;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 1, 100, 1);
	group_init(&s, &b, 1, 100, 0);
	EXPECT_EQ(serve(&s, 0), &a);
	EXPECT_EQ(serve(&s, 0), NULL);
	EXPECT_TRUE(list_empty(&s.active));
	b.left = 1;
	hcomm_sched_activate(&s, &b.q);
	hcomm_sched_activate(&s, &b.q);
	EXPECT_EQ(serve(&s, 0), &b);
	hcomm_sched_deactivate(&b.q);
	hcomm_sched_deactivate(&b.q);
	EXPECT_EQ(serve(&s, 0), NULL);
}

TEST(lost_path_has_nothing_posted)
{
	struct hcomm_sched s;
	struct group a;

	hcomm_sched_init(&s, STRIPE);
	group_init(&s, &a, 1, STRIPE, 100);
	while (serve(&s, 0))
		;
	hcomm_sched_reset(&s);
	EXPECT_EQ(s.posted, 0);
	/* completions of the lost connection that come late */
	hcomm_sched_complete(&s, STRIPE, 5);
	EXPECT_EQ(s.posted, 0);
	EXPECT_EQ(serve(&s, 0), &a);
}

TEST_HARNESS_MAIN
