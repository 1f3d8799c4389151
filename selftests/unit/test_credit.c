// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Receives are never overrun, and two sides that ran dry free each other. */
#include <kselftest_harness.h>

#include "core/credit.h"

#define N	64

FIXTURE(credit)
{
	struct hcomm_credit a;
	struct hcomm_credit b;
};

FIXTURE_SETUP(credit)
{
	ASSERT_EQ(hcomm_credit_init(&self->a, N, N), 0);
	ASSERT_EQ(hcomm_credit_init(&self->b, N, N), 0);
}

FIXTURE_TEARDOWN(credit)
{
}

static int take_all(struct hcomm_credit *c, enum hcomm_credit_use use)
{
	int n = 0;

	while (hcomm_credit_take(c, use))
		n++;
	return n;
}

/* @n messages of the peer are handled and their receives posted again. */
static void handle(struct hcomm_credit *c, int n)
{
	while (n--)
		hcomm_credit_reposted(c);
}

TEST_F(credit, data_leaves_sixteen_and_control_one)
{
	EXPECT_EQ(hcomm_credit_room(&self->a, HCOMM_CREDIT_DATA), N - 16);
	EXPECT_EQ(take_all(&self->a, HCOMM_CREDIT_DATA), N - 16);
	EXPECT_EQ(hcomm_credit_room(&self->a, HCOMM_CREDIT_DATA), 0);
	EXPECT_EQ(take_all(&self->a, HCOMM_CREDIT_CONTROL), 15);
	EXPECT_EQ(take_all(&self->a, HCOMM_CREDIT_RETURN), 1);
	hcomm_credit_untake(&self->a);
	EXPECT_EQ(self->a.avail, 1);
}

TEST_F(credit, too_few_receives_are_refused)
{
	EXPECT_EQ(hcomm_credit_init(&self->a, N, HCOMM_CREDIT_MIN - 1),
		  -EPROTO);
	EXPECT_EQ(hcomm_credit_init(&self->a, HCOMM_CREDIT_MIN - 1, N),
		  -EPROTO);
	EXPECT_EQ(hcomm_credit_init(&self->a, N, HCOMM_CREDIT_MIN), 0);
	EXPECT_EQ(self->a.avail, HCOMM_CREDIT_MIN);
}

TEST_F(credit, never_more_than_were_posted)
{
	hcomm_credit_grant(&self->a, 1);
	EXPECT_EQ(self->a.avail, N);
	ASSERT_TRUE(hcomm_credit_take(&self->a, HCOMM_CREDIT_DATA));
	ASSERT_TRUE(hcomm_credit_take(&self->a, HCOMM_CREDIT_DATA));
	hcomm_credit_grant(&self->a, 1);
	EXPECT_EQ(self->a.avail, N - 1);
	hcomm_credit_grant(&self->a, U16_MAX);
	EXPECT_EQ(self->a.avail, N);
	ASSERT_TRUE(hcomm_credit_take(&self->a, HCOMM_CREDIT_DATA));
	hcomm_credit_grant(&self->a, 1);
	hcomm_credit_untake(&self->a);
	EXPECT_EQ(self->a.avail, N);
}

TEST_F(credit, collected_credits_can_be_put_back)
{
	u16 n;

	handle(&self->b, 5);
	n = hcomm_credit_collect(&self->b);
	EXPECT_EQ(n, 5);
	EXPECT_EQ(hcomm_credit_collect(&self->b), 0);
	hcomm_credit_uncollect(&self->b, n);
	EXPECT_EQ(hcomm_credit_collect(&self->b), 5);
}

TEST_F(credit, both_dry_sides_free_each_other)
{
	u16 n;

	/* everything is sent, then everything handled */
	ASSERT_EQ(take_all(&self->a, HCOMM_CREDIT_DATA) +
		  take_all(&self->a, HCOMM_CREDIT_CONTROL), N - 1);
	ASSERT_EQ(take_all(&self->b, HCOMM_CREDIT_DATA) +
		  take_all(&self->b, HCOMM_CREDIT_CONTROL), N - 1);
	handle(&self->b, N - 1);
	handle(&self->a, N - 1);
	ASSERT_TRUE(hcomm_credit_due(&self->a));
	ASSERT_TRUE(hcomm_credit_take(&self->a, HCOMM_CREDIT_RETURN));
	n = hcomm_credit_collect(&self->a);
	hcomm_credit_grant(&self->b, n);
	handle(&self->b, 1);
	EXPECT_EQ(self->b.avail, N);
	ASSERT_TRUE(hcomm_credit_due(&self->b));
	ASSERT_TRUE(hcomm_credit_take(&self->b, HCOMM_CREDIT_RETURN));
	n = hcomm_credit_collect(&self->b);
	hcomm_credit_grant(&self->a, n);
	EXPECT_EQ(self->a.avail, N);
}

TEST_F(credit, returning_credits_ends)
{
	struct hcomm_credit *c[2] = { &self->a, &self->b };
	int i, sent = 0;

	take_all(&self->a, HCOMM_CREDIT_DATA);
	handle(&self->b, N - 16);
	for (i = 1; hcomm_credit_due(c[i & 1]) && sent < 100; i++, sent++) {
		ASSERT_TRUE(hcomm_credit_take(c[i & 1], HCOMM_CREDIT_RETURN));
		hcomm_credit_grant(c[!(i & 1)],
				   hcomm_credit_collect(c[i & 1]));
		handle(c[!(i & 1)], 1);
	}
	EXPECT_EQ(sent, 1);
}

TEST_HARNESS_MAIN
