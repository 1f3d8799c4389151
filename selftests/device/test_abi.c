// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The calls of /dev/hcommN as such: sizes, flags, reserved fields, pointers,
 * order, and who may call. What the calls do is tested elsewhere.
 */
#include <kselftest_harness.h>

#include "device.h"

/* A call with another size than its own. */
static unsigned long sized(unsigned long cmd, unsigned int size)
{
	return _IOC(_IOC_READ | _IOC_WRITE, _IOC_TYPE(cmd), _IOC_NR(cmd), size);
}

/* Every call that wants a membership and has a structure. */
static const unsigned long member_calls[] = {
	HCOMM_IOC_SET_PEERS,
	HCOMM_IOC_RING_SETUP,
	HCOMM_IOC_ENTER,
	HCOMM_IOC_WIN_ATTACH,
	HCOMM_IOC_WIN_DETACH,
	HCOMM_IOC_HEAP_OFFER,
	HCOMM_IOC_HEAP_TAKE,
	HCOMM_IOC_ABORT,
	HCOMM_IOC_GET_ERROR,
};

static const unsigned long other_calls[] = {
	HCOMM_IOC_QUERY,
	HCOMM_IOC_JOIN,
	HCOMM_IOC_MEM_CREATE,
	HCOMM_IOC_MEM_DESTROY,
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

FIXTURE(abi)
{
	int fd;
	struct hcomm_join join;
};

FIXTURE_SETUP(abi)
{
	self->fd = device_open(0);
	if (self->fd == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_GE(self->fd, 0);
	group_new(&self->join, 2);
}

FIXTURE_TEARDOWN(abi)
{
	close(self->fd);
}

TEST_F(abi, query_tells_what_there_is)
{
	struct hcomm_query query;

	memset(&query, 0xff, sizeof(query));
	ASSERT_EQ(call(self->fd, HCOMM_IOC_QUERY, &query), 0);
	EXPECT_EQ(query.abi, HCOMM_ABI_VERSION);
	EXPECT_EQ(query.instance, 0);
	EXPECT_TRUE(query.features & HCOMM_FEAT_BROKER);
	EXPECT_EQ(query.page_size, getpagesize());
	EXPECT_EQ(query.max_ranks, HCOMM_MAX_RANKS);
	EXPECT_GT(query.max_sq_entries, 0);
	EXPECT_GE(query.max_cq_entries, query.max_sq_entries);
	EXPECT_NE(memchr(query.version, 0, sizeof(query.version)), NULL);
	EXPECT_NE(query.version[0], 0);
}

TEST_F(abi, query_of_two_files_names_the_same_instance)
{
	struct hcomm_query a, b;
	int fd = device_open(0);

	ASSERT_GE(fd, 0);
	memset(&a, 0, sizeof(a));
	memset(&b, 0, sizeof(b));
	ASSERT_EQ(call(self->fd, HCOMM_IOC_QUERY, &a), 0);
	ASSERT_EQ(call(fd, HCOMM_IOC_QUERY, &b), 0);
	EXPECT_EQ(memcmp(a.instance_id, b.instance_id, HCOMM_ID_BYTES), 0);
	close(fd);
}

TEST_F(abi, query_fills_no_more_than_a_short_caller_has)
{
	unsigned char buf[sizeof(struct hcomm_query)];

	memset(buf, 0xee, sizeof(buf));
	ASSERT_EQ(call(self->fd, sized(HCOMM_IOC_QUERY, 8), buf), 0);
	EXPECT_EQ(buf[0], HCOMM_ABI_VERSION);
	EXPECT_EQ(buf[8], 0xee);
}

TEST_F(abi, unknown_numbers_and_types_are_not_tty)
{
	char buf[256] = "";

	EXPECT_EQ(call(self->fd, _IOWR(HCOMM_IOC_MAGIC, 0x0e, buf), buf),
		  -ENOTTY);
	EXPECT_EQ(call(self->fd, _IOWR(HCOMM_IOC_MAGIC, 0xff, buf), buf),
		  -ENOTTY);
	EXPECT_EQ(call(self->fd, _IOWR('T', 0x00, buf), buf), -ENOTTY);
	EXPECT_EQ(call(self->fd, TIOCGWINSZ, buf), -ENOTTY);
}

TEST_F(abi, longer_structures_pass_when_the_tail_is_zero)
{
	struct { struct hcomm_query q; char tail[64]; } query = {};
	struct { struct hcomm_join j; char tail[64]; } join = {};
	struct { struct hcomm_get_error e; char tail[64]; } error = {};

	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_QUERY, sizeof(query)), &query),
		  0);
	EXPECT_EQ(query.q.abi, HCOMM_ABI_VERSION);
	join.j = self->join;
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_JOIN, sizeof(join)), &join), 0);
	EXPECT_NE(join.j.nr_sems, 0);
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_GET_ERROR, sizeof(error)),
		       &error), 0);
	EXPECT_EQ(error.e.state, HCOMM_STATE_ACTIVE);
}

TEST_F(abi, longer_structures_fail_when_the_tail_is_not_zero)
{
	char buf[256] = "";
	size_t i;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	buf[255] = 1;
	for (i = 0; i < NR(member_calls); i++)
		EXPECT_EQ(call(self->fd, sized(member_calls[i], 256), buf),
			  -E2BIG)
			TH_LOG("number %lu", _IOC_NR(member_calls[i]));
	for (i = 0; i < NR(other_calls); i++)
		EXPECT_EQ(call(self->fd, sized(other_calls[i], 256), buf),
			  -E2BIG)
			TH_LOG("number %lu", _IOC_NR(other_calls[i]));
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_LEAVE, 256), buf), -E2BIG);
}

TEST_F(abi, shorter_structures_are_completed_with_zeroes)
{
	struct hcomm_enter enter;
	struct hcomm_abort abort_arg;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	/* What the kernel does not read cannot be wrong. */
	memset(&enter, 0xff, sizeof(enter));
	enter.flags = 0;
	enter.to_submit = 0;
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_ENTER, 8), &enter), 0);
	EXPECT_EQ(enter.submitted, 0xffffffff);
	memset(&abort_arg, 0xff, sizeof(abort_arg));
	abort_arg.error = -EIO;
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_ABORT, 4), &abort_arg), 0);
}

TEST_F(abi, join_of_a_short_structure_has_no_size)
{
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_JOIN, 48), &self->join),
		  -EINVAL);
}

TEST_F(abi, heap_take_wants_a_place_for_the_descriptor)
{
	struct hcomm_heap_take take = {};

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	EXPECT_EQ(call(self->fd, sized(HCOMM_IOC_HEAP_TAKE, 8), &take),
		  -EINVAL);
}

TEST_F(abi, bad_pointers_fault)
{
	void *bad[] = { NULL, (void *)8, (void *)0xffff800000000000UL };
	size_t i, j;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	for (j = 0; j < NR(bad); j++) {
		for (i = 0; i < NR(member_calls); i++)
			EXPECT_EQ(call(self->fd, member_calls[i], bad[j]),
				  -EFAULT)
				TH_LOG("number %lu", _IOC_NR(member_calls[i]));
		for (i = 0; i < NR(other_calls); i++)
			EXPECT_EQ(call(self->fd, other_calls[i], bad[j]),
				  -EFAULT)
				TH_LOG("number %lu", _IOC_NR(other_calls[i]));
	}
}

TEST_F(abi, answers_to_read_only_memory_fault)
{
	struct hcomm_query *query = mmap(NULL, getpagesize(), PROT_READ,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(query, MAP_FAILED);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_QUERY, query), -EFAULT);
}

TEST_F(abi, bad_pointers_within_structures_fault)
{
	struct hcomm_join join = self->join;
	struct hcomm_set_peers peers = { .peers = 8, .count = 1 };
	struct hcomm_enter enter = {
		.flags = HCOMM_ENTER_WAIT, .nr_waits = 1, .waits = 8,
	};

	join.peers = 8;
	join.nr_peers = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &join), -EFAULT);
	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &peers), -EFAULT);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EFAULT);
}

enum { BAD_JOINS = 12 };

/* The first of many bad ones that is not refused, or BAD_JOINS. */
static __attribute__((noinline)) int
join_badly(int fd, const struct hcomm_join *good)
{
	struct hcomm_peer peers[2][2] = {};
	struct hcomm_join bad[BAD_JOINS];
	int i;

	for (i = 0; i < BAD_JOINS; i++)
		bad[i] = *good;
	bad[0].flags = 1U << 1;
	bad[1].flags = 1U << 31;
	bad[2].reserved = 1;
	bad[3].size = 0;
	bad[4].size = HCOMM_MAX_RANKS + 1;
	bad[5].rank = 2;
	bad[6].rank = HCOMM_NO_RANK;
	bad[7].nr_peers = 3;
	bad[8].user_sems = 1025;
	bad[9].op_timeout_ns = HCOMM_MAX_TIMEOUT_NS + 1;
	peers[0][1].reserved0 = 1;
	bad[10].nr_peers = 2;
	bad[10].peers = (uintptr_t)peers[0];
	peers[1][1].reserved1 = 1;
	bad[11].nr_peers = 2;
	bad[11].peers = (uintptr_t)peers[1];
	for (i = 0; i < BAD_JOINS; i++)
		if (call(fd, HCOMM_IOC_JOIN, &bad[i]) != -EINVAL)
			return i;
	return i;
}

TEST_F(abi, join_refuses_what_it_does_not_know)
{
	EXPECT_EQ(join_badly(self->fd, &self->join), BAD_JOINS);
	/* None of it has left a trace: the rank is free. */
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
}

TEST_F(abi, join_tells_semaphores_and_offsets)
{
	struct hcomm_join join = self->join;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &join), 0);
	EXPECT_EQ(join.nr_sems, HCOMM_USER_SEMS + HCOMM_CHANNEL_SEMS + 2 * 2);
	EXPECT_EQ(join.sem_bytes % getpagesize(), 0);
	EXPECT_GE(join.sem_bytes, HCOMM_SEM_LINE *
		  (HCOMM_SEM_FIRST_LINE + join.nr_sems));
	EXPECT_NE(join.sem_off, join.wake_off);
}

TEST_F(abi, calls_refuse_flags_they_do_not_know)
{
	struct hcomm_ring_setup setup = { .flags = 1 };
	struct hcomm_enter enter = { .flags = 1U << 2 };
	struct hcomm_mem_create create = {
		.base = (uintptr_t)self, .length = 1, .flags = 1,
	};
	struct hcomm_mem_destroy destroy = { .flags = 1 };
	struct hcomm_win_attach attach = { .flags = 1 };
	struct hcomm_win_detach detach = { .flags = 1 };
	struct hcomm_abort abort_arg = { .flags = 1 };
	struct hcomm_heap_take take = { .reserved = 1 };

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_RING_SETUP, &setup), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &create), -EINVAL);
	create.flags = 0;
	create.kind = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &create), -EINVAL);
	create.kind = 0;
	create.reserved = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &create), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_DESTROY, &destroy), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_WIN_ATTACH, &attach), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_WIN_DETACH, &detach), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ABORT, &abort_arg), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_HEAP_TAKE, &take), -EINVAL);
}

TEST_F(abi, enter_refuses_what_is_out_of_range)
{
	struct hcomm_wait wait = {};
	struct hcomm_enter enter = {};

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	enter.flags = HCOMM_ENTER_WAIT;
	enter.waits = (uintptr_t)&wait;
	enter.nr_waits = HCOMM_MAX_WAITS + 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EINVAL);
	enter.nr_waits = 1;
	enter.timeout_ns = HCOMM_MAX_TIMEOUT_NS + 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EINVAL);
	enter.timeout_ns = 0;
	wait.member = 77;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -ENOENT);
	wait.member = self->join.member;
	wait.sem = self->join.nr_sems;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EINVAL);
	wait.sem = 0xffffffff;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EINVAL);
	memset(&enter, 0, sizeof(enter));
	enter.flags = HCOMM_ENTER_WAKE;
	enter.wake_rank = 2;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -EINVAL);
	enter.wake_rank = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -ENOENT);
}

TEST_F(abi, abort_takes_errnos_only)
{
	struct hcomm_abort arg = { .error = 1 };

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ABORT, &arg), -EINVAL);
	arg.error = -4096;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ABORT, &arg), -EINVAL);
	arg.error = INT32_MIN;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ABORT, &arg), -EINVAL);
}

TEST_F(abi, calls_before_join_are_not_connected)
{
	char buf[256] = "";
	size_t i;

	for (i = 0; i < NR(member_calls); i++)
		EXPECT_EQ(call(self->fd, member_calls[i], buf), -ENOTCONN)
			TH_LOG("number %lu", _IOC_NR(member_calls[i]));
	EXPECT_EQ(call(self->fd, HCOMM_IOC_LEAVE, NULL), -ENOTCONN);
	EXPECT_EQ(map(self->fd, getpagesize(), PROT_READ, 0), NULL);
	EXPECT_EQ(errno, ENOTCONN);
}

TEST_F(abi, a_memory_object_does_not_make_a_member)
{
	struct hcomm_mem_destroy destroy = { .object = 1 };
	struct hcomm_enter enter = {};

	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_DESTROY, &destroy), -ENOENT);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -ENOTCONN);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
}

TEST_F(abi, one_file_joins_once)
{
	struct hcomm_join other;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	group_new(&other, 1);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &other), -EISCONN);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &other), -EISCONN);
}

TEST_F(abi, submitting_wants_rings)
{
	struct hcomm_enter enter = { .to_submit = 1 };

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_ENTER, &enter), -ENXIO);
}

TEST_F(abi, calls_after_leave_are_shut_down)
{
	struct hcomm_get_error error;
	char buf[256] = "";
	size_t i;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	ASSERT_EQ(call(self->fd, HCOMM_IOC_LEAVE, NULL), 0);
	for (i = 0; i < NR(member_calls); i++) {
		if (member_calls[i] == HCOMM_IOC_GET_ERROR)
			continue;
		EXPECT_EQ(call(self->fd, member_calls[i], buf), -ESHUTDOWN)
			TH_LOG("number %lu", _IOC_NR(member_calls[i]));
	}
	EXPECT_EQ(call(self->fd, HCOMM_IOC_LEAVE, NULL), -ESHUTDOWN);
	EXPECT_EQ(map(self->fd, getpagesize(), PROT_READ, self->join.sem_off),
		  NULL);
	EXPECT_EQ(errno, ESHUTDOWN);
	memset(&error, 0, sizeof(error));
	EXPECT_EQ(call(self->fd, HCOMM_IOC_GET_ERROR, &error), 0);
	EXPECT_EQ(error.state, HCOMM_STATE_LEFT);
}

TEST_F(abi, peers_may_be_completed_but_not_replaced)
{
	struct hcomm_peer peers[2] = {};
	struct hcomm_set_peers set = {
		.peers = (uintptr_t)peers, .first = 0, .count = 2,
	};

	peers[0].instance_id[3] = 7;
	self->join.peers = (uintptr_t)peers;
	self->join.nr_peers = 1;
	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	peers[1].instance_id[3] = 8;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &set), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &set), 0);
	peers[0].instance_id[3] = 9;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &set), -EEXIST);
	set.first = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &set), -EINVAL);
	set.first = 0xffffffff;
	set.count = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &set), -EINVAL);
	set.first = 0;
	peers[0].instance_id[3] = 7;
	peers[0].reserved1 = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_SET_PEERS, &set), -EINVAL);
}

TEST_F(abi, the_secret_opens_the_group)
{
	struct rank other;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	self->join.secret[31] ^= 1;
	EXPECT_EQ(rank_join(&other, 0, &self->join, 1), -EACCES);
	self->join.secret[31] ^= 1;
	self->join.size = 3;
	EXPECT_EQ(rank_join(&other, 0, &self->join, 1), -EACCES);
	self->join.size = 2;
	self->join.flags = HCOMM_JOIN_UNAUTHENTICATED;
	EXPECT_EQ(rank_join(&other, 0, &self->join, 1), -EACCES);
	self->join.flags = 0;
	EXPECT_EQ(rank_join(&other, 0, &self->join, 1), 0);
}

TEST_F(abi, a_rank_is_taken_once)
{
	struct rank other;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	EXPECT_EQ(rank_join(&other, 0, &self->join, 0), -EEXIST);
	EXPECT_EQ(rank_join(&other, 0, &self->join, 1), 0);
	/* Nor again when it has left, as long as the group is there. */
	EXPECT_EQ(call(self->fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(rank_join(&other, 0, &self->join, 0), -EEXIST);
}

/* Returns how many calls were not refused as foreign. */
static int foreign_calls(void *arg, int in, int out)
{
	int fd = *(int *)arg;
	char buf[256] = "";
	int wrong = 0;
	size_t i;

	for (i = 0; i < NR(member_calls); i++)
		wrong += call(fd, member_calls[i], buf) != -EPERM;
	for (i = 1; i < NR(other_calls); i++)
		wrong += call(fd, other_calls[i], buf) != -EPERM;
	wrong += call(fd, HCOMM_IOC_LEAVE, NULL) != -EPERM;
	wrong += call(fd, HCOMM_IOC_QUERY, buf) != 0;
	wrong += map(fd, getpagesize(), PROT_READ, 0x20000000) || errno != EPERM;
	wrong += map(fd, getpagesize(), PROT_READ, 0) || errno != EPERM;
	return wrong;
}

TEST_F(abi, a_forked_child_may_only_query)
{
	struct child child;
	struct hcomm_get_error error = {};

	ASSERT_EQ(call(self->fd, HCOMM_IOC_JOIN, &self->join), 0);
	child = child_start(foreign_calls, &self->fd);
	EXPECT_EQ(child_end(&child), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_GET_ERROR, &error), 0);
	EXPECT_EQ(error.state, HCOMM_STATE_ACTIVE);
}

TEST_F(abi, a_file_not_open_for_both_may_only_query)
{
	int fd = open("/dev/hcomm0", O_RDONLY);
	struct hcomm_query query = {};

	ASSERT_GE(fd, 0);
	EXPECT_EQ(call(fd, HCOMM_IOC_QUERY, &query), 0);
	EXPECT_EQ(call(fd, HCOMM_IOC_JOIN, &self->join), -EBADF);
	close(fd);
}

TEST_F(abi, a_process_has_a_limited_number_of_members)
{
	struct hcomm_query query = {};
	struct hcomm_join join;
	struct rank last;
	uint32_t i;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_QUERY, &query), 0);
	for (i = 0; i < query.max_members; i++) {
		group_new(&join, 1);
		ASSERT_EQ(rank_join(&last, 0, &join, 0), 0);
	}
	group_new(&join, 1);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &join), -EMFILE);
	EXPECT_EQ(call(last.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_JOIN, &join), 0);
}

TEST_HARNESS_MAIN
