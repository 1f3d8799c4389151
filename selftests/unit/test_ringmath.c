// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ring indices wrap, lies of user space count as nothing, slots are promised. */
#include <kselftest_harness.h>

#include "core/ringmath.h"

TEST(sizes_are_powers_of_two_within_limits)
{
	EXPECT_TRUE(hcomm_ring_size_valid(1));
	EXPECT_TRUE(hcomm_ring_size_valid(HCOMM_RING_MAX));
	EXPECT_FALSE(hcomm_ring_size_valid(0));
	EXPECT_FALSE(hcomm_ring_size_valid(3));
	EXPECT_FALSE(hcomm_ring_size_valid(2 * HCOMM_RING_MAX));
	EXPECT_FALSE(hcomm_ring_size_valid(U32_MAX));
}

TEST(ready_entries_are_counted_across_the_wrap)
{
	bool bad;

	EXPECT_EQ(hcomm_ring_ready(0xfffffffe, 3, 8, &bad), 5);
	EXPECT_FALSE(bad);
	EXPECT_EQ(hcomm_ring_ready(7, 7, 8, &bad), 0);
	EXPECT_FALSE(bad);
	EXPECT_EQ(hcomm_ring_ready(7, 15, 8, &bad), 8);
	EXPECT_FALSE(bad);
	EXPECT_EQ(hcomm_ring_slot(0xffffffff, 8), 7);
}

TEST(lying_tails_count_as_nothing)
{
	bool bad;

	EXPECT_EQ(hcomm_ring_ready(7, 16, 8, &bad), 0);
	EXPECT_TRUE(bad);
	EXPECT_EQ(hcomm_ring_ready(7, 6, 8, &bad), 0);
	EXPECT_TRUE(bad);
	EXPECT_EQ(hcomm_ring_ready(7, 0x80000007, 8, &bad), 0);
	EXPECT_TRUE(bad);
}

TEST(promised_slots_are_never_given_twice)
{
	struct hcomm_ring_cq cq;
	int i;

	hcomm_ring_cq_init(&cq, 4);
	EXPECT_FALSE(hcomm_ring_cq_reserve(&cq, 5));
	EXPECT_TRUE(hcomm_ring_cq_reserve(&cq, 3));
	EXPECT_FALSE(hcomm_ring_cq_reserve(&cq, 2));
	EXPECT_TRUE(hcomm_ring_cq_reserve(&cq, 1));
	for (i = 0; i < 4; i++)
		EXPECT_EQ(hcomm_ring_cq_post(&cq), i);
	EXPECT_FALSE(hcomm_ring_cq_reserve(&cq, 1));
	EXPECT_TRUE(hcomm_ring_cq_consume(&cq, 2));
	EXPECT_TRUE(hcomm_ring_cq_reserve(&cq, 2));
	EXPECT_FALSE(hcomm_ring_cq_reserve(&cq, 1));
	hcomm_ring_cq_release(&cq, 1);
	EXPECT_EQ(hcomm_ring_cq_free(&cq), 1);
	hcomm_ring_cq_release(&cq, 7);
	EXPECT_EQ(hcomm_ring_cq_free(&cq), 2);
}

TEST(lying_heads_free_nothing)
{
	struct hcomm_ring_cq cq;

	hcomm_ring_cq_init(&cq, 4);
	cq.tail = 1;
	cq.head = 0xfffffffe;
	EXPECT_FALSE(hcomm_ring_cq_consume(&cq, 0xfffffffd));
	EXPECT_FALSE(hcomm_ring_cq_consume(&cq, 2));
	EXPECT_EQ(hcomm_ring_cq_free(&cq), 1);
	EXPECT_TRUE(hcomm_ring_cq_consume(&cq, 0xffffffff));
	EXPECT_EQ(hcomm_ring_cq_free(&cq), 2);
	EXPECT_TRUE(hcomm_ring_cq_consume(&cq, 0));
	EXPECT_FALSE(hcomm_ring_cq_consume(&cq, 0xffffffff));
	EXPECT_TRUE(hcomm_ring_cq_consume(&cq, 1));
	EXPECT_EQ(hcomm_ring_cq_free(&cq), 4);
}

TEST_HARNESS_MAIN
