// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ops between ranks of one instance: every byte at every size around a
 * threshold, order of signals, fences, copies that overlap, ends.
 */
#include <kselftest_harness.h>

#include <pthread.h>

#include "memory.h"

#define ROOM		(9 * MIB + 64 * KIB)
#define SHIFT		100	/* base of the target, in its page */
#define GUARD		64
#define WINDOW		1

FIXTURE(local)
{
	struct hcomm_join group;
	struct rank a, b;
	unsigned char *from, *to;
	uint32_t source, target;	/* whole of from; of to from SHIFT on */
};

FIXTURE_SETUP(local)
{
	int ret;

	group_new(&self->group, 3);
	ret = rank_start(&self->a, 0, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(rank_start(&self->b, 0, &self->group, 1), 0);
	self->from = memory_map(ROOM);
	self->to = memory_shared(ROOM);
	ASSERT_EQ(mem_create(self->a.fd, self->from, ROOM, &self->source), 0);
	ASSERT_EQ(window_make(&self->b, self->to + SHIFT, ROOM - SHIFT, WINDOW,
			      &self->target), 0);
}

FIXTURE_TEARDOWN(local)
{
	close(self->a.fd);
	close(self->b.fd);
}

static struct hcomm_sqe sqe_put(uint32_t object, uint64_t length)
{
	return (struct hcomm_sqe) {
		.opcode = HCOMM_OP_PUT,
		.rank = 1,
		.object = object,
		.window = WINDOW,
		.length = length,
	};
}

static const size_t sizes[] = {
	0, 1, 2, 63, 64, 1023, 1024, 1025, 4095, 4096, 4097, 8191, 8192, 8193,
	65535, 65536, 65537, 262143, 262144, 262145, 9 * MIB,
};

#define NR_SIZES	(sizeof(sizes) / sizeof(*sizes))

TEST_SLOW(local, put_moves_exactly_its_bytes)
{
	const size_t offsets[][2] = { { 0, 0 }, { 100, 0 }, { 1, 4095 } };
	struct hcomm_sqe sqe;
	unsigned char *at;
	size_t i, j, n;

	for (i = 0; i < NR_SIZES; i++) {
		for (j = 0; j < 3; j++) {
			n = sizes[i];
			sqe = sqe_put(self->source, n);
			sqe.local_off = offsets[j][0];
			sqe.remote_off = GUARD + offsets[j][1];
			sqe.user_data = i;
			at = self->to + SHIFT + sqe.remote_off;
			fill(self->from + sqe.local_off, n, i * 3 + j);
			memset(at - GUARD, 0xee, n + 2 * GUARD);
			ASSERT_EQ(run_op(&self->a, &sqe), 0);
			EXPECT_EQ(differs(at, n, i * 3 + j), -1)
				TH_LOG("%zu bytes", n);
			EXPECT_EQ(not_all(at - GUARD, GUARD, 0xee), -1);
			EXPECT_EQ(not_all(at + n, GUARD, 0xee), -1);
		}
	}
	EXPECT_EQ(self->a.cq_head, 3 * NR_SIZES);
}

TEST_SLOW(local, get_moves_exactly_its_bytes)
{
	struct hcomm_sqe sqe;
	unsigned char *at;
	size_t i, n;

	for (i = 0; i < NR_SIZES; i++) {
		n = sizes[i];
		sqe = sqe_put(self->source, n);
		sqe.opcode = HCOMM_OP_GET;
		sqe.local_off = GUARD + 5;
		sqe.remote_off = 3;
		at = self->from + sqe.local_off;
		fill(self->to + SHIFT + 3, n, i);
		memset(at - GUARD, 0xee, n + 2 * GUARD);
		ASSERT_EQ(run_op(&self->a, &sqe), 0);
		EXPECT_EQ(differs(at, n, i), -1) TH_LOG("%zu bytes", n);
		EXPECT_EQ(not_all(at - GUARD, GUARD, 0xee), -1);
		EXPECT_EQ(not_all(at + n, GUARD, 0xee), -1);
	}
}

TEST_SLOW(local, copy_moves_within_a_rank_and_signals_itself)
{
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_COPY,
		.flags = HCOMM_OPF_SIGNAL,
		.window = 9,
		.sem = 2,
		.delta = 3,
	};
	unsigned char *own = memory_map(ROOM);
	uint32_t object;
	size_t i;

	ASSERT_EQ(window_make(&self->a, own, ROOM, 9, &object), 0);
	sqe.object = self->source;
	for (i = 0; i < NR_SIZES; i++) {
		sqe.length = sizes[i];
		sqe.remote_off = 7;
		fill(self->from, sizes[i], i);
		ASSERT_EQ(run_op(&self->a, &sqe), 0);
		EXPECT_EQ(differs(own + 7, sizes[i], i), -1);
		EXPECT_EQ(sem_value(&self->a, 2), 3 * (i + 1));
	}
	sqe.sem = self->a.join.nr_sems;
	EXPECT_EQ(run_op(&self->a, &sqe), -EINVAL);
}

TEST_SLOW(local, copy_within_an_object_is_memmove)
{
	const size_t lengths[] = { 8192, 65536 + 1, 3 * MIB + 5 };
	const size_t shifts[] = { 1, 100, 4096, 65536, 65537 };
	struct hcomm_sqe sqe = { .opcode = HCOMM_OP_COPY, .window = 9 };
	const size_t base = 16;
	size_t i, j, n;

	ASSERT_EQ(win_attach(&self->a, self->source, 9), 0);
	sqe.object = self->source;
	for (i = 0; i < 3; i++) {
		for (j = 0; j < 5; j++) {
			n = lengths[i];
			sqe.length = n;
			fill(self->from + base, n, i);
			sqe.local_off = base;
			sqe.remote_off = base + shifts[j];
			ASSERT_EQ(run_op(&self->a, &sqe), 0);
			EXPECT_EQ(differs(self->from + sqe.remote_off, n, i),
				  -1) TH_LOG("%zu up by %zu", n, shifts[j]);
			sqe.local_off = base + shifts[j];
			sqe.remote_off = base;
			ASSERT_EQ(run_op(&self->a, &sqe), 0);
			EXPECT_EQ(differs(self->from + base, n, i), -1)
				TH_LOG("%zu down by %zu", n, shifts[j]);
		}
	}
}

TEST_SLOW(local, a_rank_may_be_its_own_target)
{
	struct hcomm_sqe sqe = sqe_put(self->target, 5000);

	sqe.flags = HCOMM_OPF_SIGNAL;
	sqe.sem = 1;
	sqe.delta = 1;
	sqe.remote_off = 20000;
	fill(self->to + SHIFT, 5000, 1);
	EXPECT_EQ(run_op(&self->b, &sqe), 0);
	EXPECT_EQ(differs(self->to + SHIFT + 20000, 5000, 1), -1);
	EXPECT_EQ(sem_value(&self->b, 1), 1);
}

TEST_SLOW(local, a_silent_op_says_nothing_unless_it_fails)
{
	struct hcomm_sqe sqe = sqe_put(self->source, 10000);
	struct hcomm_sqe signal = {
		.opcode = HCOMM_OP_SIGNAL,
		.flags = HCOMM_OPF_SILENT,
		.rank = 1,
		.sem = 0,
		.delta = 1,
	};
	int i;

	sqe.flags = HCOMM_OPF_SILENT;
	for (i = 0; i < 100; i++) {
		push_sqe(&self->a, &sqe);
		push_sqe(&self->a, &signal);
	}
	sqe.remote_off = ROOM;
	sqe.user_data = 42;
	push_sqe(&self->a, &sqe);
	ASSERT_EQ(submit(&self->a, 201), 201);
	EXPECT_EQ(next_result(&self->a, 42), -ERANGE);
	EXPECT_EQ(completions(&self->a), 0);
	EXPECT_EQ(sem_value(&self->b, 0), 100);
}

TEST_SLOW(local, a_fence_follows_all_earlier_ops)
{
	struct hcomm_sqe fence = {
		.opcode = HCOMM_OP_FENCE,
		.rank = 1,
		.user_data = 100,
	};
	struct hcomm_sqe sqe;
	uint64_t i;

	for (i = 0; i < 4; i++) {
		sqe = sqe_put(self->source, i % 2 ? 10 : 4 * MIB);
		sqe.user_data = i;
		push_sqe(&self->a, &sqe);
	}
	push_sqe(&self->a, &fence);
	ASSERT_EQ(submit(&self->a, 5), 5);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(next_result(&self->a, i), 0);
	EXPECT_EQ(next_result(&self->a, 100), 0);
	/* Of nothing it follows at once. */
	fence.rank = 0;
	EXPECT_EQ(run_op(&self->a, &fence), 0);
}

/*
 * The receiver looks at each slot on the very signal that announces it and
 * writes over it at once: a late byte of an earlier op would show at the end.
 */
#define ROUNDS		40
#define BIG		(MIB + 3)
#define SMALL		(4 * KIB)

struct receiver {
	struct rank *b;
	unsigned char *to;
	int wrong;
};

static size_t slot_off(uint64_t n)
{
	return (n / 2 % 4) * (BIG + SMALL) + (n % 2 ? BIG : 0);
}

static size_t slot_len(uint64_t n)
{
	return n % 2 ? SMALL : BIG;
}

static void *receive_slots(void *arg)
{
	struct receiver *r = arg;
	unsigned char *slot;
	uint64_t n;

	for (n = 0; n < 2 * ROUNDS; n++) {
		if (!WAIT_UNTIL(r->b, sem_value(r->b, 3) > n)) {
			r->wrong = 1000;
			return NULL;
		}
		slot = r->to + SHIFT + slot_off(n);
		if (differs(slot, slot_len(n), n) >= 0)
			r->wrong++;
		memset(slot, 0xdd, slot_len(n));
		/* The receiver's own signal frees the slot. */
		push_signal(r->b, 0, 4, 1);
		submit(r->b, 1);
	}
	return NULL;
}

TEST_SLOW(local, a_small_op_does_not_overtake_a_big_one)
{
	struct receiver receiver = { .b = &self->b, .to = self->to };
	struct hcomm_sqe sqe;
	pthread_t thread;
	uint64_t n;
	size_t at;

	memset(self->to, 0xdd, ROOM);
	ASSERT_EQ(pthread_create(&thread, NULL, receive_slots, &receiver), 0);
	for (n = 0; n < 2 * ROUNDS; n++) {
		at = slot_off(n);
		ASSERT_TRUE(WAIT_UNTIL(&self->a,
				       sem_value(&self->a, 4) + 8 > n));
		fill(self->from + at, slot_len(n), n);
		sqe = sqe_put(self->source, slot_len(n));
		sqe.flags = HCOMM_OPF_SIGNAL;
		sqe.local_off = at;
		sqe.remote_off = at;
		sqe.sem = 3;
		sqe.delta = 1;
		sqe.user_data = n;
		push_sqe(&self->a, &sqe);
		if (n % 2)
			ASSERT_EQ(submit(&self->a, 2), 2);
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(receiver.wrong, 0);
	for (n = 0; n < 2 * ROUNDS; n++)
		EXPECT_EQ(next_result(&self->a, n), 0);
	EXPECT_EQ(not_all(self->to + SHIFT, 4 * (BIG + SMALL), 0xdd), -1);
}

/* ------------------------------------------------- between processes */

struct pair {
	struct hcomm_join group;
	unsigned char *heap;	/* shared with the child */
};

/* Rank 2: exports the heap, is told by signal, answers by signal. */
static int echo_child(void *arg, int in, int out)
{
	struct pair *pair = arg;
	struct hcomm_sqe sqe;
	uint32_t object;
	struct rank r;
	size_t i;

	if (rank_start(&r, 0, &pair->group, 2) ||
	    window_make(&r, pair->heap + SHIFT, ROOM - SHIFT, WINDOW, &object))
		return 1;
	tell(out);
	for (i = 0; i < NR_SIZES; i++) {
		if (!WAIT_UNTIL(&r, sem_value(&r, 0) > i))
			return 2;
		if (differs(pair->heap + SHIFT, sizes[i], i) >= 0)
			return 3;
		/* Back to rank 0, a page further. */
		sqe = sqe_put(object, sizes[i]);
		sqe.flags = HCOMM_OPF_SIGNAL;
		sqe.rank = 0;
		sqe.window = 5;
		sqe.delta = 1;
		if (run_op(&r, &sqe))
			return 4;
	}
	hear(in);
	return 0;
}

TEST_SLOW(local, ranks_of_two_processes_exchange_every_size)
{
	struct pair pair = { .group = self->group,
			     .heap = memory_shared(ROOM) };
	unsigned char *back = memory_map(ROOM);
	struct hcomm_sqe sqe;
	struct child child;
	uint32_t object;
	size_t i;

	ASSERT_EQ(window_make(&self->a, back, ROOM, 5, &object), 0);
	child = child_start(echo_child, &pair);
	ASSERT_TRUE(child_heard(&child));
	for (i = 0; i < NR_SIZES; i++) {
		fill(self->from, sizes[i], i);
		sqe = sqe_put(self->source, sizes[i]);
		sqe.flags = HCOMM_OPF_SIGNAL;
		sqe.rank = 2;
		sqe.delta = 1;
		ASSERT_EQ(run_op(&self->a, &sqe), 0);
		ASSERT_TRUE(WAIT_UNTIL(&self->a, sem_value(&self->a, 0) > i));
		EXPECT_EQ(differs(back, sizes[i], i), -1)
			TH_LOG("%zu bytes", sizes[i]);
	}
	tell(child.to);
	EXPECT_EQ(child_end(&child), 0);
}

/* --------------------------------------------------------------- ends */

TEST_SLOW(local, ops_to_who_left_end_with_eshutdown)
{
	struct hcomm_sqe fence = { .opcode = HCOMM_OP_FENCE, .rank = 1 };
	struct hcomm_sqe sqe = sqe_put(self->source, 4 * MIB);
	struct hcomm_event event;
	int i, ret;

	for (i = 0; i < 50; i++)
		push_sqe(&self->a, &sqe);
	ASSERT_EQ(submit(&self->a, 50), 50);
	ASSERT_EQ(ioctl(self->b.fd, HCOMM_IOC_LEAVE), 0);
	for (i = 0; i < 50; i++) {
		ret = next_result(&self->a, 0);
		EXPECT_TRUE(!ret || ret == -ESHUTDOWN);
	}
	EXPECT_EQ(ret, -ESHUTDOWN);
	EXPECT_TRUE(wait_event(&self->a, HCOMM_EVENT_MEMBER_LEFT, &event));
	EXPECT_EQ(event.rank, 1);
	EXPECT_EQ(run_op(&self->a, &fence), -ESHUTDOWN);
	EXPECT_EQ(state_of(&self->a), HCOMM_STATE_ACTIVE);
}

TEST_SLOW(local, abort_ends_every_op_once)
{
	struct hcomm_sqe sqe = sqe_put(self->source, 9 * MIB);
	struct hcomm_abort abort = { .error = -EDOM };
	struct hcomm_cqe cqe;
	uint64_t seen = 0;
	int i;

	for (i = 0; i < 60; i++) {
		sqe.user_data = i;
		push_sqe(&self->a, &sqe);
	}
	ASSERT_EQ(submit(&self->a, 60), 60);
	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_ABORT, &abort), 0);
	ASSERT_TRUE(EVENTUALLY(completions(&self->a) == 60));
	for (i = 0; i < 60; i++) {
		ASSERT_TRUE(pop_cqe(&self->a, &cqe));
		EXPECT_TRUE(!cqe.result || cqe.result == -EDOM);
		EXPECT_FALSE(seen & 1ULL << cqe.user_data);
		seen |= 1ULL << cqe.user_data;
	}
	EXPECT_EQ(cqe.result, -EDOM);
	/* Who has seen all completions may destroy the object at once. */
	EXPECT_EQ(mem_destroy(self->a.fd, self->source), 0);
}

/* Slots that silent ops give back are told of to who asked for one in vain. */
TEST_F(local, who_found_no_slot_is_woken_by_silent_ops)
{
	struct hcomm_sqe sqe = sqe_put(self->source, 8 * MIB);
	uint32_t wake, activity;
	struct rank tight;
	int ret, i;

	ASSERT_EQ(rank_join(&tight, 0, &self->group, 2), 0);
	ASSERT_EQ(rank_rings(&tight, 8, 2, 0), 0);
	ASSERT_EQ(rank_map_sems(&tight), 0);
	sqe.flags = HCOMM_OPF_SILENT;
	for (i = 0; i < 20; i++) {
		push_sqe(&tight, &sqe);
		do {
			wake = load32(&tight.wake->wake);
			activity = load32(&tight.wake->activity);
			ret = submit(&tight, 1);
			if (ret == -EBUSY)
				ASSERT_EQ(wait_change(&tight, wake, activity,
						      FAR), 0);
		} while (ret == -EBUSY);
		ASSERT_EQ(ret, 1);
	}
	close(tight.fd);
}

/* How many ops wait before the rank is there, and come with it. */
#define EARLY	20

TEST_F(local, ops_to_a_rank_that_is_not_there_yet_wait_and_keep_their_order)
{
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_SIGNAL,
		.rank = 2,
		.sem = 1,
		.delta = 1,
	};
	struct rank late;
	uint64_t i;

	for (i = 0; i < 2 * EARLY; i++) {
		sqe.user_data = i;
		push_sqe(&self->a, &sqe);
	}
	ASSERT_EQ(submit(&self->a, EARLY), EARLY);
	EXPECT_EQ(completions(&self->a), 0);
	ASSERT_EQ(rank_start(&late, 0, &self->group, 2), 0);
	ASSERT_EQ(submit(&self->a, EARLY), EARLY);
	for (i = 0; i < 2 * EARLY; i++)
		EXPECT_EQ(next_result(&self->a, i), 0);
	EXPECT_EQ(sem_value(&late, 1), 2 * EARLY);
	close(late.fd);
}

TEST_F(local, ops_that_wait_for_a_rank_go_when_it_comes)
{
	struct rank late;

	push_signal(&self->a, 2, 1, 7);
	ASSERT_EQ(submit(&self->a, 1), 1);
	ASSERT_EQ(rank_start(&late, 0, &self->group, 2), 0);
	EXPECT_TRUE(EVENTUALLY(sem_value(&late, 1) == 7));
	EXPECT_EQ(next_result(&self->a, 0), 0);
	close(late.fd);
}

TEST_HARNESS_MAIN
