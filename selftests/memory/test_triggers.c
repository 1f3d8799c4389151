// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ops that wait for a semaphore, chains and storms of them, and the deadline
 * that every op has.
 */
#include <kselftest_harness.h>

#include "memory.h"

#define STORM		2000
#define RING		16

FIXTURE(triggers)
{
	struct hcomm_join group;
	struct rank a, b;
};

/* Rings that hold a storm. */
static int start(struct rank *r, const struct hcomm_join *group, uint32_t nr)
{
	int ret = rank_join(r, 0, group, nr);

	if (!ret)
		ret = rank_map_sems(r);
	if (!ret)
		ret = rank_rings(r, 4096, 8192, 0);
	return ret;
}

FIXTURE_SETUP(triggers)
{
	int ret;

	group_new(&self->group, RING);
	ret = start(&self->a, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(start(&self->b, &self->group, 1), 0);
}

FIXTURE_TEARDOWN(triggers)
{
	close(self->a.fd);
	close(self->b.fd);
}

/* Adds 1 to @sem of rank @to when own @wait_sem reaches @value. */
static struct hcomm_sqe when(uint16_t wait_sem, uint64_t value, uint32_t to,
			     uint16_t sem)
{
	return (struct hcomm_sqe) {
		.opcode = HCOMM_OP_SIGNAL,
		.flags = HCOMM_OPF_WAIT,
		.rank = to,
		.sem = sem,
		.delta = 1,
		.wait_sem = wait_sem,
		.wait_value = value,
	};
}

static int drain(struct rank *r, uint32_t count)
{
	struct hcomm_cqe cqe;
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (!WAIT_UNTIL(r, pop_cqe(r, &cqe)))
			return -ETIME;
		if (cqe.result)
			return cqe.result;
	}
	return completions(r) ? -E2BIG : 0;
}

TEST_SLOW(triggers, a_wait_ends_when_its_value_is_reached)
{
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_WAIT,
		.user_data = 1,
		.wait_sem = 3,
		.wait_value = 5,
	};

	push_sqe(&self->a, &sqe);
	sqe.user_data = 2;
	sqe.wait_value = 4;
	push_sqe(&self->a, &sqe);
	ASSERT_EQ(submit(&self->a, 2), 2);
	push_signal(&self->b, 0, 3, 3);
	ASSERT_EQ(submit(&self->b, 1), 1);
	ASSERT_EQ(drain(&self->b, 1), 0);
	EXPECT_EQ(completions(&self->a), 0);
	push_signal(&self->b, 0, 3, 1);
	ASSERT_EQ(submit(&self->b, 1), 1);
	EXPECT_EQ(next_result(&self->a, 2), 0);
	EXPECT_EQ(completions(&self->a), 0);
	push_signal(&self->b, 0, 3, 100);
	ASSERT_EQ(submit(&self->b, 1), 1);
	EXPECT_EQ(next_result(&self->a, 1), 0);
	/* What is reached already does not wait. */
	EXPECT_EQ(run_op(&self->a, &sqe), 0);
}

TEST_SLOW(triggers, a_nop_and_a_fence_wait_as_well)
{
	struct hcomm_sqe nop = {
		.opcode = HCOMM_OP_NOP,
		.flags = HCOMM_OPF_WAIT,
		.user_data = 1,
		.wait_sem = 1,
		.wait_value = 1,
	};
	struct hcomm_sqe fence = nop;

	fence.opcode = HCOMM_OP_FENCE;
	fence.rank = 1;
	fence.user_data = 2;
	push_sqe(&self->a, &nop);
	push_sqe(&self->a, &fence);
	ASSERT_EQ(submit(&self->a, 2), 2);
	EXPECT_EQ(completions(&self->a), 0);
	push_signal(&self->b, 0, 1, 1);
	ASSERT_EQ(submit(&self->b, 1), 1);
	EXPECT_EQ(next_result(&self->a, 1), 0);
	EXPECT_EQ(next_result(&self->a, 2), 0);
}

TEST_SLOW(triggers, data_moves_when_the_signal_comes_not_before)
{
	const size_t length = 100 * KIB;
	unsigned char *from = memory_map(length), *to = memory_map(length);
	uint32_t source, target;
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_PUT,
		.flags = HCOMM_OPF_WAIT | HCOMM_OPF_SIGNAL,
		.rank = 1,
		.length = length,
		.sem = 8,
		.delta = 1,
		.wait_sem = 7,
		.wait_value = 1,
	};

	ASSERT_EQ(mem_create(self->a.fd, from, length, &source), 0);
	ASSERT_EQ(window_make(&self->b, to, length, 0, &target), 0);
	sqe.object = source;
	push_sqe(&self->a, &sqe);
	ASSERT_EQ(submit(&self->a, 1), 1);
	/* The source may be written until it is announced. */
	fill(from, length, 9);
	EXPECT_EQ(not_all(to, length, 0), -1);
	push_signal(&self->b, 0, 7, 1);
	ASSERT_EQ(submit(&self->b, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&self->b, sem_value(&self->b, 8) == 1));
	EXPECT_EQ(differs(to, length, 9), -1);
	EXPECT_EQ(drain(&self->a, 1), 0);
}

TEST_SLOW(triggers, thresholds_are_reached_in_any_order)
{
	struct hcomm_sqe sqe;
	uint32_t i, x = 12345;

	/* Thresholds 1..STORM in a scattered order, all on one semaphore. */
	for (i = 0; i < STORM; i++) {
		x = (x + 1237) % STORM;
		sqe = when(0, 1 + x, 1, 5);
		push_sqe(&self->a, &sqe);
	}
	ASSERT_EQ(submit(&self->a, STORM), STORM);
	for (i = 0; i < STORM; ) {
		push_signal(&self->b, 0, 0, 1 + i % 7);
		ASSERT_EQ(submit(&self->b, 1), 1);
		ASSERT_EQ(drain(&self->b, 1), 0);
		i += 1 + i % 7;
		ASSERT_TRUE(WAIT_UNTIL(&self->b, sem_value(&self->b, 5) ==
				       (i < STORM ? i : STORM)));
	}
	EXPECT_EQ(drain(&self->a, STORM), 0);
}

TEST_SLOW(triggers, one_signal_starts_a_storm)
{
	struct hcomm_sqe sqe = when(0, 1, 1, 5);
	uint32_t i;

	for (i = 0; i < STORM; i++)
		push_sqe(&self->a, &sqe);
	ASSERT_EQ(submit(&self->a, STORM), STORM);
	EXPECT_EQ(completions(&self->a), 0);
	push_signal(&self->b, 0, 0, 1);
	ASSERT_EQ(submit(&self->b, 1), 1);
	EXPECT_EQ(drain(&self->a, STORM), 0);
	EXPECT_EQ(sem_value(&self->b, 5), STORM);
}

/* Each op starts the next: nested, the stack would not last. */
TEST_SLOW(triggers, a_chain_within_a_rank_does_not_nest)
{
	struct hcomm_sqe sqe;
	uint32_t i;

	for (i = 0; i < STORM; i++) {
		sqe = when(0, 1 + i, 0, 0);
		push_sqe(&self->a, &sqe);
	}
	ASSERT_EQ(submit(&self->a, STORM), STORM);
	push_signal(&self->b, 0, 0, 1);
	ASSERT_EQ(submit(&self->b, 1), 1);
	EXPECT_EQ(drain(&self->a, STORM), 0);
	EXPECT_EQ(sem_value(&self->a, 0), STORM + 1);
}

TEST_SLOW(triggers, a_chain_around_many_ranks_does_not_nest)
{
	const uint32_t laps = STORM / RING;
	struct rank ranks[RING], *r;
	struct hcomm_join group;
	struct hcomm_sqe sqe;
	uint32_t i, lap;

	group_new(&group, RING);
	for (i = 0; i < RING; i++)
		ASSERT_EQ(start(&ranks[i], &group, i), 0);
	for (i = 0; i < RING; i++) {
		r = &ranks[i];
		for (lap = 1; lap <= laps; lap++) {
			sqe = when(0, lap, (i + 1) % RING, 0);
			push_sqe(r, &sqe);
		}
		ASSERT_EQ(submit(r, laps), laps);
	}
	push_signal(&ranks[1], 0, 0, 1);
	ASSERT_EQ(submit(&ranks[1], 1), 1);
	for (i = 0; i < RING; i++) {
		EXPECT_EQ(drain(&ranks[i], laps + (i == 1)), 0);
		EXPECT_TRUE(WAIT_UNTIL(&ranks[i], sem_value(&ranks[i], 0) ==
				       laps + !i));
	}
	for (i = 0; i < RING; i++)
		close(ranks[i].fd);
}

TEST_SLOW(triggers, abort_ends_what_is_parked_each_once)
{
	struct hcomm_sqe sqe = when(0, 1, 1, 5);
	struct hcomm_abort abort = {};
	struct hcomm_cqe cqe;
	uint32_t i;

	for (i = 0; i < STORM; i++)
		push_sqe(&self->a, &sqe);
	ASSERT_EQ(submit(&self->a, STORM), STORM);
	ASSERT_EQ(call(self->a.fd, HCOMM_IOC_ABORT, &abort), 0);
	ASSERT_TRUE(EVENTUALLY(completions(&self->a) == STORM));
	for (i = 0; i < STORM; i++) {
		ASSERT_TRUE(pop_cqe(&self->a, &cqe));
		EXPECT_EQ(cqe.result, -ECANCELED);
	}
	EXPECT_FALSE(pop_cqe(&self->a, &cqe));
	EXPECT_EQ(sem_value(&self->b, 5), 0);
}

/* ---------------------------------------------------------- deadlines */

TEST_SLOW(triggers, an_op_that_waits_too_long_ends_alone)
{
	struct hcomm_sqe sqe, nop = { .opcode = HCOMM_OP_NOP };
	struct hcomm_join group;
	uint64_t begin;
	struct rank r;
	uint32_t i;

	group_new(&group, 1);
	group.op_timeout_ns = 50 * MSEC;
	ASSERT_EQ(start(&r, &group, 0), 0);
	begin = now_ns();
	for (i = 0; i < 100; i++) {
		sqe = when(0, 1, 0, 1);
		sqe.user_data = i;
		push_sqe(&r, &sqe);
	}
	ASSERT_EQ(submit(&r, 100), 100);
	EXPECT_EQ(next_result(&r, 0), -ETIMEDOUT);
	EXPECT_GE(now_ns() - begin, 40 * MSEC);
	for (i = 1; i < 100; i++)
		EXPECT_EQ(next_result(&r, i), -ETIMEDOUT);

	/* The others do not suffer, and the signal starts nothing later. */
	EXPECT_EQ(state_of(&r), HCOMM_STATE_ACTIVE);
	EXPECT_EQ(run_op(&r, &nop), 0);
	push_signal(&r, 0, 0, 1);
	ASSERT_EQ(submit(&r, 1), 1);
	EXPECT_EQ(drain(&r, 1), 0);
	EXPECT_EQ(sem_value(&r, 1), 0);

	/* And the next deadline is watched, too. */
	sqe = when(0, 2, 0, 1);
	EXPECT_EQ(run_op(&r, &sqe), -ETIMEDOUT);
	close(r.fd);
}

TEST_SLOW(triggers, deadlines_and_signals_race_and_each_op_ends_once)
{
	const int rounds = on_debug_kernel() ? 20 : 100;
	struct hcomm_sqe sqe = when(0, 1, 0, 1);
	struct hcomm_join group;
	struct hcomm_cqe cqe;
	uint32_t i, good = 0;
	uint64_t begin;
	struct rank r;
	int round;

	group_new(&group, 1);
	group.op_timeout_ns = 20 * MSEC;
	ASSERT_EQ(start(&r, &group, 0), 0);
	for (round = 0; round < rounds; round++) {
		sqe.wait_value = round + 1;
		begin = now_ns();
		for (i = 0; i < 50; i++)
			push_sqe(&r, &sqe);
		ASSERT_EQ(submit(&r, 50), 50);
		while (now_ns() < begin + (10 + round % 30) * MSEC &&
		       !completions(&r))
			sched_yield();
		push_signal(&r, 0, 0, 1);
		ASSERT_EQ(submit(&r, 1), 1);
		for (i = 0; i < 51; i++) {
			ASSERT_TRUE(WAIT_UNTIL(&r, pop_cqe(&r, &cqe)));
			EXPECT_TRUE(!cqe.result || cqe.result == -ETIMEDOUT);
			good += !cqe.result;
		}
		EXPECT_EQ(completions(&r), 0);
	}
	/* What ended well has signalled, what did not has not. */
	EXPECT_EQ(sem_value(&r, 1) + rounds, good);
	EXPECT_EQ(state_of(&r), HCOMM_STATE_ACTIVE);
	close(r.fd);
}

TEST_HARNESS_MAIN
