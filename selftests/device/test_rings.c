// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rings: sizes, order, what a process may do to the indices without hurting
 * anyone but itself, mappings, events, poll, GET_ERROR.
 */
#include <kselftest_harness.h>

#include <pthread.h>

#include "device.h"

FIXTURE(rings)
{
	struct hcomm_join group;
	struct rank r;
	size_t page;
};

FIXTURE_SETUP(rings)
{
	int ret;

	self->page = getpagesize();
	group_new(&self->group, 4);
	ret = rank_join(&self->r, 0, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(rank_map_sems(&self->r), 0);
}

FIXTURE_TEARDOWN(rings)
{
	close(self->r.fd);
}

TEST_F(rings, sizes_are_rounded_up_and_bounded)
{
	struct hcomm_ring_setup setup = { .sq_entries = 1U << 31 };
	struct hcomm_query query = {};
	struct rank *r = &self->r;

	ASSERT_EQ(call(r->fd, HCOMM_IOC_QUERY, &query), 0);
	EXPECT_EQ(call(r->fd, HCOMM_IOC_RING_SETUP, &setup), -EINVAL);
	setup.sq_entries = query.max_sq_entries + 1;
	EXPECT_EQ(call(r->fd, HCOMM_IOC_RING_SETUP, &setup), -EINVAL);
	setup.sq_entries = 1;
	setup.cq_entries = query.max_cq_entries + 1;
	EXPECT_EQ(call(r->fd, HCOMM_IOC_RING_SETUP, &setup), -EINVAL);
	setup.cq_entries = 0;
	setup.event_entries = 0xffffffff;
	EXPECT_EQ(call(r->fd, HCOMM_IOC_RING_SETUP, &setup), -EINVAL);

	ASSERT_EQ(rank_rings(r, 5, 0, 3), 0);
	EXPECT_EQ(r->setup.sq_entries, 8);
	EXPECT_EQ(r->setup.cq_entries, 16);
	EXPECT_EQ(r->setup.event_entries, 4);
	EXPECT_EQ(call(r->fd, HCOMM_IOC_RING_SETUP, &setup), -EINVAL);
	setup.event_entries = 0;
	EXPECT_EQ(call(r->fd, HCOMM_IOC_RING_SETUP, &setup), -EEXIST);
}

TEST_F(rings, zero_is_the_standard_size)
{
	struct rank *r = &self->r;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	EXPECT_EQ(r->setup.sq_entries, 256);
	EXPECT_EQ(r->setup.cq_entries, 512);
	EXPECT_EQ(r->setup.event_entries, 1024);
}

TEST_F(rings, largest_rings_work)
{
	struct hcomm_query query = {};
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;
	uint32_t i;

	ASSERT_EQ(call(r->fd, HCOMM_IOC_QUERY, &query), 0);
	ASSERT_EQ(rank_rings(r, query.max_sq_entries, query.max_cq_entries,
			     16384), 0);
	r->ring[r->setup.ring_bytes - 1] = 1;
	((char *)r->sqes)[r->setup.sqe_bytes - 1] = 1;
	for (i = 0; i < 300; i++)
		push_nop(r, i);
	ASSERT_EQ(submit(r, query.max_sq_entries), 300);
	for (i = 0; i < 300; i++) {
		ASSERT_TRUE(pop_cqe(r, &cqe));
		ASSERT_EQ(cqe.user_data, i);
	}
}

TEST_F(rings, ops_complete_in_order_through_many_laps)
{
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;
	uint64_t i;

	ASSERT_EQ(rank_rings(r, 4, 4, 0), 0);
	for (i = 0; i < scaled(1000); i++) {
		push_nop(r, i);
		ASSERT_EQ(submit(r, 1), 1);
		ASSERT_EQ(load32(ring_word(r, r->setup.sq_head_at)), i + 1);
		ASSERT_TRUE(pop_cqe(r, &cqe));
		ASSERT_EQ(cqe.user_data, i);
		ASSERT_EQ(cqe.result, 0);
		ASSERT_FALSE(pop_cqe(r, &cqe));
	}
}

TEST_F(rings, no_more_is_taken_than_there_is)
{
	struct rank *r = &self->r;

	ASSERT_EQ(rank_rings(r, 8, 16, 0), 0);
	EXPECT_EQ(submit(r, 5), 0);
	push_nop(r, 1);
	push_nop(r, 2);
	EXPECT_EQ(submit(r, 1), 1);
	EXPECT_EQ(submit(r, 0xffffffff), 1);
	EXPECT_EQ(completions(r), 2);
}

TEST_F(rings, a_tail_that_jumps_too_far_is_refused)
{
	struct rank *r = &self->r;
	uint32_t *tail;

	ASSERT_EQ(rank_rings(r, 8, 16, 0), 0);
	tail = ring_word(r, r->setup.sq_tail_at);
	store32(tail, 9);
	EXPECT_EQ(submit(r, 1), -EINVAL);
	store32(tail, 0xffffffff);
	EXPECT_EQ(submit(r, 1), -EINVAL);
	store32(tail, 0x80000000);
	EXPECT_EQ(submit(r, 1), -EINVAL);
	EXPECT_EQ(completions(r), 0);
	store32(tail, 0);
	push_nop(r, 7);
	EXPECT_EQ(submit(r, 1), 1);
}

TEST_F(rings, a_full_completion_ring_holds_back_submissions)
{
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;
	uint64_t i, seen = 0;

	ASSERT_EQ(rank_rings(r, 16, 4, 0), 0);
	for (i = 0; i < 16; i++)
		push_nop(r, i);
	EXPECT_EQ(submit(r, 16), 4);
	EXPECT_EQ(submit(r, 16), -EBUSY);
	while (seen < 16) {
		ASSERT_TRUE(pop_cqe(r, &cqe));
		ASSERT_EQ(cqe.user_data, seen++);
		if (seen <= 12) {
			ASSERT_EQ(submit(r, 16), 1);
		}
	}
	EXPECT_FALSE(pop_cqe(r, &cqe));
	EXPECT_EQ(submit(r, 1), 0);
}

TEST_F(rings, ops_in_flight_keep_their_completion_slots)
{
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;
	int i;

	ASSERT_EQ(rank_rings(r, 8, 4, 0), 0);
	for (i = 0; i < 4; i++) {
		struct hcomm_sqe *sqe = next_sqe(r);

		sqe->opcode = HCOMM_OP_WAIT;
		sqe->wait_value = 1;
		push(r);
	}
	EXPECT_EQ(submit(r, 4), 4);
	push_signal(r, 0, 0, 1);
	EXPECT_EQ(submit(r, 1), -EBUSY);
	EXPECT_FALSE(pop_cqe(r, &cqe));
}

TEST_F(rings, lies_about_the_completion_head_gain_nothing)
{
	struct rank *r = &self->r;
	uint32_t *head;
	int i;

	ASSERT_EQ(rank_rings(r, 16, 4, 0), 0);
	head = ring_word(r, r->setup.cq_head_at);
	for (i = 0; i < 8; i++)
		push_nop(r, i);
	ASSERT_EQ(submit(r, 8), 4);
	store32(head, 5);
	EXPECT_EQ(submit(r, 8), -EBUSY);
	store32(head, 0xffffffff);
	EXPECT_EQ(submit(r, 8), -EBUSY);
	store32(head, 2);
	EXPECT_EQ(submit(r, 8), 2);
	store32(head, 0);
	EXPECT_EQ(submit(r, 8), -EBUSY);
}

TEST_F(rings, what_the_kernel_writes_it_does_not_read)
{
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;

	ASSERT_EQ(rank_rings(r, 8, 8, 0), 0);
	push_nop(r, 1);
	ASSERT_EQ(submit(r, 1), 1);
	store32(ring_word(r, r->setup.sq_head_at), 12345);
	store32(ring_word(r, r->setup.cq_tail_at), 54321);
	push_nop(r, 2);
	ASSERT_EQ(submit(r, 1), 1);
	EXPECT_EQ(load32(ring_word(r, r->setup.sq_head_at)), 2);
	EXPECT_EQ(load32(ring_word(r, r->setup.cq_tail_at)), 2);
	ASSERT_TRUE(pop_cqe(r, &cqe));
	EXPECT_EQ(cqe.user_data, 1);
	ASSERT_TRUE(pop_cqe(r, &cqe));
	EXPECT_EQ(cqe.user_data, 2);
}

TEST_F(rings, an_invalid_entry_completes_with_its_errno_and_ends_the_taking)
{
	static const struct hcomm_sqe bad[] = {
		{ .opcode = 99 },
		{ .opcode = 255 },
		{ .flags = 0x80 },
		{ .reserved = 1 },
		{ .opcode = HCOMM_OP_SIGNAL, .rank = 4 },
		{ .opcode = HCOMM_OP_WAIT, .wait_sem = 0xffff },
		{ .length = 1 },
	};
	const int cases = sizeof(bad) / sizeof(bad[0]);
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;
	struct hcomm_sqe *sqe;
	int i;

	ASSERT_EQ(rank_rings(r, 16, 16, 0), 0);
	for (i = 0; i < cases; i++) {
		sqe = next_sqe(r);
		*sqe = bad[i];
		sqe->user_data = 100 + i;
		push(r);
	}
	push_nop(r, 200);
	for (i = 0; i < cases; i++) {
		EXPECT_EQ(submit(r, 16), 1);
		ASSERT_TRUE(pop_cqe(r, &cqe));
		EXPECT_EQ(cqe.user_data, 100 + i);
		EXPECT_EQ(cqe.result, -EINVAL)
			TH_LOG("case %d", i);
		EXPECT_FALSE(pop_cqe(r, &cqe));
	}
	EXPECT_EQ(submit(r, 16), 1);
	ASSERT_TRUE(pop_cqe(r, &cqe));
	EXPECT_EQ(cqe.user_data, 200);
	EXPECT_EQ(cqe.result, 0);
}

TEST_F(rings, silent_ops_complete_without_an_entry_and_free_their_slot)
{
	struct rank *r = &self->r;
	struct hcomm_sqe *sqe;
	struct hcomm_cqe cqe;
	int i;

	ASSERT_EQ(rank_rings(r, 8, 2, 0), 0);
	for (i = 0; i < 100; i++) {
		sqe = next_sqe(r);
		sqe->opcode = HCOMM_OP_NOP;
		sqe->flags = HCOMM_OPF_SILENT;
		push(r);
		ASSERT_EQ(submit(r, 1), 1);
	}
	EXPECT_FALSE(pop_cqe(r, &cqe));
	/* A failure is told all the same. */
	sqe = next_sqe(r);
	sqe->opcode = HCOMM_OP_NOP;
	sqe->flags = HCOMM_OPF_SILENT;
	sqe->length = 1;
	push(r);
	ASSERT_EQ(submit(r, 1), 1);
	ASSERT_TRUE(pop_cqe(r, &cqe));
	EXPECT_EQ(cqe.result, -EINVAL);
}

TEST_F(rings, mappings_are_shared_whole_regions)
{
	struct rank *r = &self->r;
	size_t page = self->page;

	ASSERT_EQ(rank_rings(r, 256, 512, 1024), 0);
	EXPECT_EQ(mmap(NULL, page, PROT_READ, MAP_PRIVATE, r->fd,
		       r->setup.ring_off), MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(mmap(NULL, page, PROT_READ, MAP_PRIVATE, r->fd,
		       r->join.sem_off), MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(map(r->fd, page, PROT_READ, 0x70000000), NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(map(r->fd, page, PROT_READ, r->setup.ring_off + page), NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(map(r->fd, r->setup.ring_bytes + page, PROT_READ,
		      r->setup.ring_off), NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(map(r->fd, r->setup.sqe_bytes + page, PROT_READ,
		      r->setup.sqe_off), NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(map(r->fd, r->join.sem_bytes + page, PROT_READ,
		      r->join.sem_off), NULL);
	EXPECT_EQ(errno, EINVAL);
	EXPECT_EQ(map(r->fd, 2 * page, PROT_READ, r->join.wake_off), NULL);
	EXPECT_EQ(errno, EINVAL);
}

TEST_F(rings, ring_mappings_want_rings)
{
	struct rank *r = &self->r;

	EXPECT_EQ(map(r->fd, self->page, PROT_READ, 0), NULL);
	EXPECT_EQ(errno, ENXIO);
}

TEST_F(rings, semaphores_and_wake_page_are_never_writable)
{
	struct rank *r = &self->r;

	EXPECT_EQ(map(r->fd, self->page, PROT_READ | PROT_WRITE,
		      r->join.sem_off), NULL);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(map(r->fd, self->page, PROT_READ | PROT_WRITE,
		      r->join.wake_off), NULL);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(mprotect(r->sems, self->page, PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
	EXPECT_EQ(mprotect((void *)r->wake, self->page,
			   PROT_READ | PROT_WRITE), -1);
	EXPECT_EQ(errno, EACCES);
}

TEST_F(rings, not_even_through_proc_mem)
{
	struct rank *r = &self->r;
	int fd = open("/proc/self/mem", O_RDWR);
	uint64_t one = 1;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(pwrite(fd, &one, sizeof(one), (uintptr_t)r->sems), -1);
	EXPECT_EQ(pwrite(fd, &one, sizeof(one), (uintptr_t)r->wake), -1);
	EXPECT_EQ(state_of(r), HCOMM_STATE_ACTIVE);
	close(fd);
}

TEST_F(rings, mappings_do_not_grow)
{
	struct rank *r = &self->r;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	EXPECT_EQ(mremap(r->ring, r->setup.ring_bytes,
			 r->setup.ring_bytes + self->page, MREMAP_MAYMOVE),
		  MAP_FAILED);
	EXPECT_EQ(mremap(r->sems, r->join.sem_bytes,
			 r->join.sem_bytes + self->page, MREMAP_MAYMOVE),
		  MAP_FAILED);
	EXPECT_EQ(mremap((void *)r->wake, self->page, 2 * self->page,
			 MREMAP_MAYMOVE), MAP_FAILED);
}

static int look_at_mappings(void *arg, int in, int out)
{
	struct rank *r = arg;
	unsigned char vec[1];
	void *maps[] = { r->ring, r->sqes, r->sems, (void *)r->wake };
	unsigned int i;
	int there = 0;

	for (i = 0; i < 4; i++)
		there += mincore(maps[i], getpagesize(), vec) == 0;
	return there;
}

TEST_F(rings, mappings_are_not_inherited)
{
	struct rank *r = &self->r;
	struct child child;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	EXPECT_EQ(look_at_mappings(r, -1, -1), 4);
	child = child_start(look_at_mappings, r);
	EXPECT_EQ(child_end(&child), 0);
}

TEST_F(rings, mappings_outlive_the_membership)
{
	struct rank *r = &self->r;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	push_nop(r, 1);
	ASSERT_EQ(submit(r, 1), 1);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(state_of(r), HCOMM_STATE_LEFT);
	close(r->fd);
	EXPECT_EQ(completions(r), 1);
	EXPECT_EQ(state_of(r), HCOMM_STATE_LEFT);
	munmap(r->sems, r->join.sem_bytes);
	store32(ring_word(r, r->setup.sq_tail_at), 77);
	self->r.fd = -1;
}

static short poll_now(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	return poll(&pfd, 1, 0) < 0 ? -1 : pfd.revents;
}

TEST_F(rings, poll_tells_of_completions)
{
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;

	EXPECT_EQ(poll_now(r->fd), 0);
	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	EXPECT_EQ(poll_now(r->fd), 0);
	push_nop(r, 1);
	ASSERT_EQ(submit(r, 1), 1);
	EXPECT_EQ(poll_now(r->fd), POLLIN);
	ASSERT_TRUE(pop_cqe(r, &cqe));
	EXPECT_EQ(poll_now(r->fd), 0);
}

TEST_F(rings, poll_tells_of_events_and_errors)
{
	struct hcomm_abort arg = {};
	struct rank other, *r = &self->r;
	struct hcomm_event event;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	ASSERT_EQ(rank_join(&other, 0, &self->group, 1), 0);
	ASSERT_EQ(call(other.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(poll_now(r->fd), POLLIN);
	ASSERT_TRUE(pop_event(r, &event));
	EXPECT_EQ(event.kind, HCOMM_EVENT_MEMBER_LEFT);
	EXPECT_EQ(event.rank, 1);
	EXPECT_EQ(event.count, 1);
	EXPECT_EQ(poll_now(r->fd), 0);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_ABORT, &arg), 0);
	EXPECT_EQ(poll_now(r->fd), POLLIN | POLLERR);
	ASSERT_TRUE(pop_event(r, &event));
	EXPECT_EQ(event.kind, HCOMM_EVENT_GROUP_ERROR);
	EXPECT_EQ(event.value, HCOMM_CAUSE_ABORT);
	EXPECT_EQ(poll_now(r->fd), POLLERR);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(poll_now(r->fd), POLLERR | POLLHUP);
}

static int poll_of_a_stranger(void *arg, int in, int out)
{
	struct rank *r = arg;

	(void)in;
	(void)out;
	return poll_now(r->fd) == POLLIN ? 0 : 1;
}

/* As a kernel thread asks for aio: not by the address space of the owner. */
TEST_F(rings, poll_tells_a_forked_child_the_same)
{
	struct rank *r = &self->r;
	struct child child;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	push_nop(r, 1);
	ASSERT_EQ(submit(r, 1), 1);
	child = child_start(poll_of_a_stranger, r);
	EXPECT_EQ(child_end(&child), 0);
	EXPECT_EQ(poll_now(r->fd), POLLIN);
}

static void *submit_soon(void *arg)
{
	struct rank *r = arg;

	push_nop(r, 1);
	return (void *)(intptr_t)submit(r, 1);
}

TEST_F(rings, poll_is_woken)
{
	struct rank *r = &self->r;
	struct pollfd pfd = { .fd = r->fd, .events = POLLIN };
	pthread_t thread;
	void *ret;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	ASSERT_EQ(pthread_create(&thread, NULL, submit_soon, r), 0);
	EXPECT_EQ(poll(&pfd, 1, 60000), 1);
	EXPECT_EQ(pfd.revents, POLLIN);
	pthread_join(thread, &ret);
	EXPECT_EQ((intptr_t)ret, 1);
}

TEST_F(rings, events_wait_for_room_and_keep_their_order)
{
	struct rank other[4], *r = &self->r;
	struct hcomm_event event;
	uint32_t i;

	ASSERT_EQ(rank_rings(r, 0, 0, 1), 0);
	for (i = 1; i < 4; i++)
		ASSERT_EQ(rank_join(&other[i], 0, &self->group, i), 0);
	for (i = 1; i < 4; i++)
		ASSERT_EQ(call(other[i].fd, HCOMM_IOC_LEAVE, NULL), 0);
	for (i = 1; i < 4; i++) {
		ASSERT_TRUE(pop_event(r, &event));
		EXPECT_EQ(event.kind, HCOMM_EVENT_MEMBER_LEFT);
		EXPECT_EQ(event.rank, i);
		EXPECT_FALSE(pop_event(r, &event));
		EXPECT_EQ(submit(r, 0), 0);
	}
	EXPECT_FALSE(pop_event(r, &event));
}

TEST_F(rings, events_before_the_rings_are_kept)
{
	struct rank other, *r = &self->r;
	struct hcomm_event event;

	ASSERT_EQ(rank_join(&other, 0, &self->group, 2), 0);
	ASSERT_EQ(call(other.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	ASSERT_TRUE(pop_event(r, &event));
	EXPECT_EQ(event.kind, HCOMM_EVENT_MEMBER_LEFT);
	EXPECT_EQ(event.rank, 2);
}

/* More windows than an unread ring can tell of one by one. */
TEST_F(rings, a_flood_of_window_events_is_merged)
{
	enum { WINDOWS = 400 };
	struct hcomm_mem_create create = { .length = 4096 };
	struct rank *r = &self->r;
	uint64_t single = 0, merged = 0;
	struct hcomm_event event;
	uint32_t i;

	create.base = (uintptr_t)mmap(NULL, 4096, PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(rank_rings(r, 0, 0, 1), 0);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_MEM_CREATE, &create), 0);
	for (i = 0; i < WINDOWS; i++) {
		struct hcomm_win_attach attach = {
			.object = create.object, .window = i,
		};
		struct hcomm_win_detach detach = { .window = i };

		/* The last one of the object is still on its way out. */
		ASSERT_TRUE(WAIT_UNTIL(r, call(r->fd, HCOMM_IOC_WIN_ATTACH,
					       &attach) != -EBUSY));
		ASSERT_EQ(call(r->fd, HCOMM_IOC_WIN_DETACH, &detach), 0);
	}
	while (single + merged < WINDOWS) {
		ASSERT_TRUE(wait_event(r, HCOMM_EVENT_QUIESCED, &event));
		if (event.value == HCOMM_ANY_WINDOW) {
			merged += event.count;
		} else {
			EXPECT_LT(event.value, WINDOWS);
			EXPECT_EQ(event.count, 1);
			single++;
		}
	}
	EXPECT_GE(single, 256);
	EXPECT_GT(merged, 0);
	EXPECT_EQ(single + merged, WINDOWS);
}

TEST_F(rings, abort_is_told_to_all_with_its_reason)
{
	struct hcomm_abort arg = { .error = -EPROTO, .op = 4711 };
	struct hcomm_get_error error = {};
	struct rank other, *r = &self->r;
	int fd;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	ASSERT_EQ(rank_start(&other, 0, &self->group, 3), 0);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_GET_ERROR, &error), 0);
	EXPECT_EQ(error.state, HCOMM_STATE_ACTIVE);
	EXPECT_EQ(error.cause, HCOMM_CAUSE_NONE);
	EXPECT_EQ(error.rank, HCOMM_NO_RANK);
	ASSERT_EQ(call(other.fd, HCOMM_IOC_ABORT, &arg), 0);
	for (fd = r->fd; fd >= 0; fd = fd == r->fd ? other.fd : -1) {
		ASSERT_EQ(call(fd, HCOMM_IOC_GET_ERROR, &error), 0);
		EXPECT_EQ(error.state, HCOMM_STATE_ERROR);
		EXPECT_EQ(error.error, -EPROTO);
		EXPECT_EQ(error.cause, HCOMM_CAUSE_ABORT);
		EXPECT_EQ(error.rank, 3);
		EXPECT_EQ(error.op, 4711);
		EXPECT_LT(error.age_ns, FAR);
	}
	EXPECT_EQ(state_of(r), HCOMM_STATE_ERROR);
	EXPECT_EQ(state_line(r)->error, -EPROTO);
	EXPECT_EQ(state_line(r)->cause, HCOMM_CAUSE_ABORT);
	EXPECT_EQ(state_line(r)->rank, 3);
	EXPECT_EQ(state_line(r)->op, 4711);
	push_nop(r, 1);
	EXPECT_EQ(submit(r, 1), -EPROTO);
	/* The first reason stays, for who comes later as well. */
	arg.error = -EIO;
	EXPECT_EQ(call(r->fd, HCOMM_IOC_ABORT, &arg), 0);
	EXPECT_EQ(state_line(r)->error, -EPROTO);
	ASSERT_EQ(rank_start(&other, 0, &self->group, 2), 0);
	EXPECT_EQ(state_of(&other), HCOMM_STATE_ERROR);
	EXPECT_EQ(state_line(&other)->error, -EPROTO);
}

TEST_F(rings, abort_without_an_errno_is_cancelled)
{
	struct hcomm_abort arg = {};
	struct rank *r = &self->r;

	ASSERT_EQ(call(r->fd, HCOMM_IOC_ABORT, &arg), 0);
	EXPECT_EQ(state_line(r)->error, -ECANCELED);
}

TEST_F(rings, abort_ends_ops_that_wait)
{
	struct hcomm_abort arg = { .error = -EPROTO };
	struct rank *r = &self->r;
	struct hcomm_cqe cqe;
	struct hcomm_sqe *sqe;
	uint32_t i;

	ASSERT_EQ(rank_rings(r, 0, 0, 0), 0);
	for (i = 0; i < 10; i++) {
		sqe = next_sqe(r);
		sqe->opcode = HCOMM_OP_WAIT;
		sqe->wait_sem = i % 3;
		sqe->wait_value = 1;
		sqe->user_data = i;
		push(r);
	}
	ASSERT_EQ(submit(r, 10), 10);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_ABORT, &arg), 0);
	for (i = 0; i < 10; i++) {
		ASSERT_TRUE(WAIT_UNTIL(r, pop_cqe(r, &cqe)));
		EXPECT_EQ(cqe.user_data, i);
		EXPECT_EQ(cqe.result, -EPROTO);
	}
}

TEST_HARNESS_MAIN
