// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Windows: ids and generations, what is inside and whose they are, taking them
 * back while they are in use; and what an op may say at all.
 */
#include <kselftest_harness.h>

#include "memory.h"

#define LENGTH		(2 * self->page)
#define WINDOW		3

FIXTURE(windows)
{
	struct hcomm_join group;
	struct rank a, b;
	size_t page;
	char *from, *to;	/* objects of a and b, 2 pages each */
	uint32_t source, target;
};

FIXTURE_SETUP(windows)
{
	int ret;

	self->page = getpagesize();
	group_new(&self->group, 4);
	ret = rank_start(&self->a, 0, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(rank_start(&self->b, 0, &self->group, 1), 0);
	self->from = memory_map(LENGTH);
	self->to = memory_map(LENGTH);
	ASSERT_EQ(mem_create(self->a.fd, self->from, LENGTH, &self->source), 0);
	ASSERT_EQ(window_make(&self->b, self->to, LENGTH, WINDOW,
			      &self->target), 0);
}

FIXTURE_TEARDOWN(windows)
{
	close(self->a.fd);
	close(self->b.fd);
}

/* From all of a's object to all of b's window, with signal 7 += 1. */
static struct hcomm_sqe good_put(uint32_t object, uint64_t length)
{
	return (struct hcomm_sqe) {
		.opcode = HCOMM_OP_PUT,
		.flags = HCOMM_OPF_SIGNAL,
		.rank = 1,
		.object = object,
		.window = WINDOW,
		.length = length,
		.sem = 7,
		.delta = 1,
	};
}

static bool quiesced(struct rank *r, uint32_t window)
{
	struct hcomm_event event;

	return wait_event(r, HCOMM_EVENT_QUIESCED, &event) &&
	       event.value == window;
}

TEST_F(windows, an_id_is_used_once)
{
	struct hcomm_win_attach arg = {
		.object = self->target,
		.window = WINDOW,
	};
	uint32_t generation;

	EXPECT_EQ(call(self->b.fd, HCOMM_IOC_WIN_ATTACH, &arg), -EEXIST);
	arg.window = WINDOW + 1;
	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_WIN_ATTACH, &arg), 0);
	generation = arg.generation;
	EXPECT_NE(generation, 0);
	arg.window = WINDOW + 2;
	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_WIN_ATTACH, &arg), 0);
	EXPECT_NE(arg.generation, generation);

	ASSERT_EQ(win_detach(&self->b, WINDOW), 0);
	EXPECT_TRUE(quiesced(&self->b, WINDOW));
	EXPECT_EQ(win_attach(&self->b, self->target, WINDOW), -EEXIST);
	EXPECT_EQ(win_detach(&self->b, WINDOW), -ESTALE);
	EXPECT_EQ(win_detach(&self->b, 99), -ENOENT);
	/* An id of another member is another window. */
	EXPECT_EQ(win_attach(&self->a, self->source, WINDOW), 0);
}

TEST_F(windows, what_is_not_defined_is_refused)
{
	struct hcomm_win_attach attach = {
		.object = self->target,
		.window = 10,
		.flags = 1,
	};
	struct hcomm_win_detach detach = { .window = WINDOW, .flags = 1 };

	EXPECT_EQ(call(self->b.fd, HCOMM_IOC_WIN_ATTACH, &attach), -EINVAL);
	EXPECT_EQ(call(self->b.fd, HCOMM_IOC_WIN_DETACH, &detach), -EINVAL);
	EXPECT_EQ(win_attach(&self->b, self->target, ~0U), -EINVAL);
	EXPECT_EQ(win_attach(&self->b, 0, 10), -ENOENT);
	EXPECT_EQ(win_attach(&self->b, 999, 10), -ENOENT);
	EXPECT_EQ(win_attach(&self->b, self->target, 10), 0);
}

TEST_SLOW(windows, a_member_holds_many_but_not_any_number)
{
	struct hcomm_query query = {};
	uint32_t i;
	int ret = 0;

	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_QUERY, &query), 0);
	for (i = 1; i < query.max_windows && !ret; i++)
		ret = win_attach(&self->b, self->target, 100 + i);
	ASSERT_EQ(ret, 0);
	EXPECT_EQ(win_attach(&self->b, self->target, 99), -ENOSPC);
	/* Nothing was remembered of the refused one. */
	ASSERT_EQ(win_detach(&self->b, WINDOW), 0);
	EXPECT_TRUE(quiesced(&self->b, WINDOW));
	EXPECT_EQ(win_attach(&self->b, self->target, 99), 0);
}

/* Each is counted, whatever memory it is of: a peer keeps keys for each. */
TEST_SLOW(windows, a_members_windows_hold_so_many_bytes_together)
{
	const uint64_t length = 512ULL << 20, all = 256ULL << 30;
	char *big = memory_map(length);
	uint32_t object, i;

	ASSERT_NE(big, MAP_FAILED);
	ASSERT_EQ(mem_create(self->b.fd, big, length, &object), 0);
	/* The fixture has a small one. */
	for (i = 1; i < all / length; i++)
		ASSERT_EQ(win_attach(&self->b, object, 100 + i), 0);
	EXPECT_EQ(win_attach(&self->b, object, 99), -ENOSPC);
	EXPECT_EQ(win_attach(&self->b, self->target, 98), 0);
	ASSERT_EQ(win_detach(&self->b, 101), 0);
	EXPECT_TRUE(quiesced(&self->b, 101));
	EXPECT_EQ(win_attach(&self->b, object, 99), 0);
}

TEST_F(windows, an_object_in_use_is_not_destroyed)
{
	EXPECT_EQ(win_attach(&self->b, self->target, 20), 0);
	EXPECT_EQ(mem_destroy(self->b.fd, self->target), -EBUSY);
	ASSERT_EQ(win_detach(&self->b, WINDOW), 0);
	EXPECT_TRUE(quiesced(&self->b, WINDOW));
	EXPECT_EQ(mem_destroy(self->b.fd, self->target), -EBUSY);
	ASSERT_EQ(win_detach(&self->b, 20), 0);
	EXPECT_TRUE(quiesced(&self->b, 20));
	/* Who has read the event may destroy at once. */
	EXPECT_EQ(mem_destroy(self->b.fd, self->target), 0);
}

TEST_F(windows, an_object_that_a_parked_op_names_is_not_destroyed)
{
	struct hcomm_sqe put = good_put(self->source, 1);

	put.flags |= HCOMM_OPF_WAIT;
	put.wait_sem = 1;
	put.wait_value = 1;
	push_sqe(&self->a, &put);
	ASSERT_EQ(submit(&self->a, 1), 1);
	EXPECT_EQ(mem_destroy(self->a.fd, self->source), -EBUSY);
	push_signal(&self->a, 0, 1, 1);
	ASSERT_EQ(submit(&self->a, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&self->a, completions(&self->a) == 2));
	EXPECT_EQ(mem_destroy(self->a.fd, self->source), 0);
}

TEST_F(windows, an_op_stays_inside)
{
	const uint64_t end = LENGTH;
	const struct {
		uint64_t local, remote, length;
		int result;
	} cases[] = {
		{ 0, 0, end, 0 },
		{ 0, 0, 0, 0 },
		{ end, end, 0, 0 },
		{ 0, end - 1, 1, 0 },
		{ end - 1, 0, 1, 0 },
		{ 0, end, 1, -ERANGE },
		{ 0, end + 1, 0, -ERANGE },
		{ 0, 1, end, -ERANGE },
		{ 1, 0, end, -ERANGE },
		{ end, 0, 1, -ERANGE },
		{ end + 1, 0, 0, -ERANGE },
		{ 0, 0, end + 1, -ERANGE },
		{ 0, ~0ULL, 1, -ERANGE },
		{ 0, ~0ULL, 2, -ERANGE },
		{ 0, -end, end, -ERANGE },
		{ ~0ULL, 0, 1, -ERANGE },
		{ ~0ULL, 0, 2, -ERANGE },
		{ -end, 0, end, -ERANGE },
		{ 1ULL << 63, 0, end, -ERANGE },
		{ 0, 1ULL << 63, end, -ERANGE },
		{ 0, 0, ~0ULL, -EINVAL },
		{ 1, 1, ~0ULL, -EINVAL },
	};
	uint64_t signals = 0;
	struct hcomm_sqe sqe;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		sqe = good_put(self->source, cases[i].length);
		sqe.local_off = cases[i].local;
		sqe.remote_off = cases[i].remote;
		sqe.user_data = i;
		EXPECT_EQ(run_op(&self->a, &sqe), cases[i].result)
			TH_LOG("PUT, case %zu", i);
		if (!cases[i].result)
			signals++;
		EXPECT_EQ(sem_value(&self->b, 7), signals);

		sqe.opcode = HCOMM_OP_GET;
		sqe.flags = 0;
		sqe.sem = 0;
		sqe.delta = 0;
		EXPECT_EQ(run_op(&self->a, &sqe), cases[i].result)
			TH_LOG("GET, case %zu", i);
	}
	EXPECT_EQ(state_of(&self->a), HCOMM_STATE_ACTIVE);
}

TEST_F(windows, a_failing_op_moves_no_byte_and_gives_no_signal)
{
	struct hcomm_sqe sqe = good_put(self->source, LENGTH);

	memset(self->from, 1, LENGTH);
	sqe.window = 4;
	EXPECT_EQ(run_op(&self->a, &sqe), -ENOENT);
	sqe = good_put(self->source, LENGTH);
	sqe.remote_off = 1;
	EXPECT_EQ(run_op(&self->a, &sqe), -ERANGE);
	sqe = good_put(self->source, LENGTH);
	sqe.sem = self->b.join.nr_sems;
	EXPECT_EQ(run_op(&self->a, &sqe), -EINVAL);
	sqe.sem = 0xffff;
	EXPECT_EQ(run_op(&self->a, &sqe), -EINVAL);
	EXPECT_EQ(not_all((void *)self->to, LENGTH, 0), -1);
	EXPECT_EQ(sem_value(&self->b, 7), 0);

	ASSERT_EQ(win_detach(&self->b, WINDOW), 0);
	sqe = good_put(self->source, LENGTH);
	EXPECT_EQ(run_op(&self->a, &sqe), -ESTALE);
	sqe.opcode = HCOMM_OP_GET;
	sqe.flags = 0;
	sqe.sem = 0;
	sqe.delta = 0;
	EXPECT_EQ(run_op(&self->a, &sqe), -ESTALE);
	EXPECT_EQ(not_all((void *)self->to, LENGTH, 0), -1);
	EXPECT_EQ(sem_value(&self->b, 7), 0);
}

TEST_F(windows, a_window_of_another_group_is_not_found)
{
	struct hcomm_sqe sqe = good_put(self->source, 1);
	struct hcomm_join other;
	struct rank c, d;

	group_new(&other, 2);
	ASSERT_EQ(rank_start(&c, 0, &other, 0), 0);
	ASSERT_EQ(rank_start(&d, 0, &other, 1), 0);
	EXPECT_EQ(run_op(&c, &sqe), -ENOENT);
	EXPECT_EQ(not_all((void *)self->to, LENGTH, 0), -1);

	/* The same object in two groups: one's end is not the other's. */
	ASSERT_EQ(win_attach(&d, self->target, WINDOW), 0);
	self->from[0] = 5;
	EXPECT_EQ(run_op(&c, &sqe), 0);
	EXPECT_EQ(self->to[0], 5);
	ASSERT_EQ(win_detach(&self->b, WINDOW), 0);
	self->from[0] = 6;
	EXPECT_EQ(run_op(&c, &sqe), 0);
	EXPECT_EQ(self->to[0], 6);
	sqe.user_data = 1;
	EXPECT_EQ(run_op(&self->a, &sqe), -ESTALE);
	close(c.fd);
	close(d.fd);
}

TEST_F(windows, a_member_that_ended_has_no_windows)
{
	struct hcomm_sqe sqe = good_put(self->source, 1);
	struct hcomm_abort abort = {};

	ASSERT_EQ(ioctl(self->b.fd, HCOMM_IOC_LEAVE), 0);
	EXPECT_EQ(run_op(&self->a, &sqe), -ESHUTDOWN);
	EXPECT_EQ(win_attach(&self->b, self->target, 30), -ESHUTDOWN);
	ASSERT_EQ(call(self->a.fd, HCOMM_IOC_ABORT, &abort), 0);
	EXPECT_EQ(win_attach(&self->a, self->source, 30), -ECANCELED);
	/* The objects are the process's and can go. */
	EXPECT_TRUE(EVENTUALLY(!mem_destroy(self->a.fd, self->target)));
	EXPECT_EQ(mem_destroy(self->a.fd, self->source), 0);
}

TEST_SLOW(windows, one_in_use_is_quiesced_when_the_copy_is_over)
{
	const size_t length = 16 * MIB;
	char *big = memory_map(length), *there = memory_map(length);
	struct hcomm_sqe sqe = { .opcode = HCOMM_OP_PUT, .rank = 1,
				 .length = length, .window = 50 };
	uint32_t source, target, seen_busy = 0;
	struct hcomm_event event;
	struct hcomm_join other;
	struct rank sibling;
	size_t at;
	int i, ret;

	group_new(&other, 1);
	ASSERT_EQ(rank_start(&sibling, 0, &other, 0), 0);
	ASSERT_EQ(mem_create(self->a.fd, big, length, &source), 0);
	ASSERT_EQ(mem_create(self->b.fd, there, length, &target), 0);
	ASSERT_EQ(win_attach(&sibling, target, 1), 0);
	sqe.object = source;

	for (i = 0; i < 20 && seen_busy < 3; i++, sqe.window++) {
		memset(big, i + 1, length);
		memset(there, 0, length);
		ASSERT_EQ(win_attach(&self->b, target, sqe.window), 0);
		push_sqe(&self->a, &sqe);
		ASSERT_EQ(submit(&self->a, 1), 1);
		ASSERT_EQ(win_detach(&self->b, sqe.window), 0);
		EXPECT_TRUE(WAIT_UNTIL(&sibling, pop_event(&sibling, &event) &&
				       event.kind == HCOMM_EVENT_NOT_QUIESCED &&
				       event.value == 1));
		if (win_attach(&sibling, target, 100 + i) == -EBUSY)
			seen_busy++;
		EXPECT_TRUE(quiesced(&self->b, sqe.window));
		/*
		 * Found before the detach, it has moved all of its bytes; or
		 * it came too late, and then none.
		 */
		ret = next_result(&self->a, 0);
		EXPECT_TRUE(!ret || ret == -ESTALE);
		for (at = 0; at < length; at += self->page)
			if (there[at] != (ret ? 0 : i + 1))
				break;
		EXPECT_GE(at, length);
	}
	EXPECT_GT(seen_busy, 0);
	close(sibling.fd);
}

/* ------------------------------------------------ what an op may say */

TEST_SLOW(windows, every_field_that_an_opcode_does_not_use_is_zero)
{
	const struct hcomm_sqe zero = {};
	struct {
		struct hcomm_sqe sqe;
		uint32_t rank : 1, data : 1, sem : 1, wait : 1;
		uint8_t flags;
	} ops[] = {
		{ { .opcode = HCOMM_OP_NOP }, .flags = HCOMM_OPF_SILENT },
		{ good_put(self->source, 1), .rank = 1, .data = 1, .sem = 1,
		  .flags = HCOMM_OPF_SIGNAL | HCOMM_OPF_UNORDERED |
			   HCOMM_OPF_SILENT },
		{ { .opcode = HCOMM_OP_PUT, .rank = 1, .object = self->source,
		    .window = WINDOW }, .rank = 1, .data = 1,
		  .flags = HCOMM_OPF_SIGNAL | HCOMM_OPF_UNORDERED |
			   HCOMM_OPF_SILENT },
		{ { .opcode = HCOMM_OP_GET, .rank = 1, .object = self->source,
		    .window = WINDOW }, .rank = 1, .data = 1,
		  .flags = HCOMM_OPF_SILENT },
		{ { .opcode = HCOMM_OP_SIGNAL, .rank = 1, .sem = 1,
		    .delta = 1 }, .rank = 1, .sem = 1,
		  .flags = HCOMM_OPF_UNORDERED | HCOMM_OPF_SILENT },
		{ { .opcode = HCOMM_OP_WAIT }, .wait = 1,
		  .flags = HCOMM_OPF_SILENT },
		{ { .opcode = HCOMM_OP_FENCE, .rank = 1 }, .rank = 1,
		  .flags = HCOMM_OPF_SILENT },
	};
	struct hcomm_sqe sqe;
	uint8_t flag;
	size_t i;

#define REFUSED(field, value)						\
do {									\
	sqe = ops[i].sqe;						\
	sqe.field = (value);						\
	EXPECT_EQ(run_op(&self->a, &sqe), -EINVAL)			\
		TH_LOG("op %zu, " #field, i);				\
} while (0)

	for (i = 0; i < sizeof(ops) / sizeof(*ops); i++) {
		EXPECT_EQ(run_op(&self->a, &ops[i].sqe), 0)
			TH_LOG("op %zu", i);
		REFUSED(reserved, 1);
		REFUSED(rank, ops[i].rank ? 4 : 1);
		REFUSED(rank, ~0U);
		if (!ops[i].data) {
			REFUSED(object, 1);
			REFUSED(window, 1);
			REFUSED(local_off, 1);
			REFUSED(remote_off, 1);
			REFUSED(length, 1);
		}
		if (!ops[i].sem) {
			REFUSED(sem, 1);
			REFUSED(delta, 1);
		}
		if (ops[i].wait) {
			REFUSED(wait_sem, self->a.join.nr_sems);
			REFUSED(wait_sem, 0xffff);
		} else {
			REFUSED(wait_sem, 1);
			REFUSED(wait_value, 1);
		}
		for (flag = 1; flag; flag <<= 1) {
			if ((ops[i].flags & flag) ||
			    (flag == HCOMM_OPF_WAIT && !ops[i].wait))
				continue;
			REFUSED(flags, ops[i].sqe.flags | flag);
		}
	}
	for (i = HCOMM_OP_COPY + 1; i < 256; i++) {
		sqe = zero;
		sqe.opcode = i;
		EXPECT_EQ(run_op(&self->a, &sqe), -EINVAL);
	}
#undef REFUSED
}

TEST_F(windows, an_op_names_an_object_of_its_process)
{
	struct hcomm_sqe sqe = good_put(self->source, 1);

	sqe.object = 0;
	EXPECT_EQ(run_op(&self->a, &sqe), -ENOENT);
	sqe.object = 77;
	EXPECT_EQ(run_op(&self->a, &sqe), -ENOENT);
	sqe.object = ~0U;
	EXPECT_EQ(run_op(&self->a, &sqe), -ENOENT);
	ASSERT_EQ(mem_destroy(self->a.fd, self->source), 0);
	sqe.object = self->source;
	EXPECT_EQ(run_op(&self->a, &sqe), -ENOENT);
	EXPECT_EQ(sem_value(&self->b, 7), 0);
}

TEST_HARNESS_MAIN
