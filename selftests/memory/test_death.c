// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * kill -9 at any moment: while pages are pinned, while bytes move out of the
 * dead process, while they move into it. The others learn of it and nothing is
 * left of it.
 */
#include <kselftest_harness.h>

#include "memory.h"

#define KILLS		20
#define LENGTH		(9 * MIB)

FIXTURE(death)
{
	long pins;
};

FIXTURE_SETUP(death)
{
	int fd = device_open(0);

	if (fd == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_GE(fd, 0);
	close(fd);
	ASSERT_TRUE(EVENTUALLY(!left_over(0)));
	self->pins = foll_pins();
}

FIXTURE_TEARDOWN(death)
{
	EXPECT_TRUE(EVENTUALLY(!left_over(0)));
	EXPECT_TRUE(EVENTUALLY(foll_pins() == self->pins));
}

struct job {
	struct hcomm_join group;
	uint16_t opcode;
};

/* Moves bytes between itself, rank 0, and rank 1 until it is killed. */
static int mover_child(void *arg, int in, int out)
{
	struct job *job = arg;
	struct hcomm_sqe sqe = {
		.opcode = job->opcode,
		.rank = 1,
		.length = LENGTH,
	};
	struct hcomm_cqe cqe;
	struct rank r;
	void *p = memory_map(LENGTH);
	int i;

	if (rank_start(&r, 0, &job->group, 0) ||
	    window_make(&r, p, LENGTH, 0, &sqe.object))
		return 1;
	tell(out);
	hear(in);
	for (;;) {
		for (i = 0; i < 20; i++)
			push_sqe(&r, &sqe);
		if (submit(&r, 20) != 20)
			return 2;
		for (i = 0; i < 20; i++) {
			if (!WAIT_UNTIL(&r, pop_cqe(&r, &cqe)) || cqe.result)
				return 3;
			if (!i)
				tell(out);
		}
	}
}

static void kill_movers(struct __test_metadata *_metadata, uint16_t opcode)
{
	struct job job = { .opcode = opcode };
	void *p = memory_map(LENGTH);
	struct hcomm_event event;
	struct child child;
	uint32_t object;
	struct rank r;
	int i;

	for (i = 0; i < KILLS; i++) {
		group_new(&job.group, 2);
		ASSERT_EQ(rank_start(&r, 0, &job.group, 1), 0);
		ASSERT_EQ(window_make(&r, p, LENGTH, 0, &object), 0);
		child = child_start(mover_child, &job);
		ASSERT_TRUE(child_heard(&child));
		tell(child.to);
		ASSERT_TRUE(child_heard(&child));
		usleep(i * 1009 % 7001);
		EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
		ASSERT_TRUE(wait_event(&r, HCOMM_EVENT_MEMBER_DEAD, &event));
		EXPECT_EQ(event.rank, 0);
		EXPECT_EQ(state_of(&r), HCOMM_STATE_ERROR);
		EXPECT_EQ(state_line(&r)->rank, 0);
		EXPECT_EQ(state_line(&r)->error, -EOWNERDEAD);
		/* The window went with the group; the object is ours. */
		EXPECT_TRUE(EVENTUALLY(!mem_destroy(r.fd, object)));
		close(r.fd);
	}
}

TEST_SLOW(death, while_it_puts)
{
	kill_movers(_metadata, HCOMM_OP_PUT);
}

TEST_SLOW(death, while_it_gets)
{
	kill_movers(_metadata, HCOMM_OP_GET);
}

/* Rank 1, into whose memory others move bytes. */
static int target_child(void *arg, int in, int out)
{
	struct job *job = arg;
	void *p = memory_map(LENGTH);
	uint32_t object;
	struct rank r;

	if (rank_start(&r, 0, &job->group, 1) ||
	    window_make(&r, p, LENGTH, 0, &object))
		return 1;
	tell(out);
	hear(in);
	return 0;
}

TEST_SLOW(death, while_others_put_into_it)
{
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_PUT,
		.rank = 1,
		.length = LENGTH,
	};
	void *p = memory_map(LENGTH);
	struct hcomm_cqe cqe;
	struct child child;
	struct job job = {};
	struct rank r;
	int i, n;

	for (i = 0; i < KILLS; i++) {
		group_new(&job.group, 2);
		ASSERT_EQ(rank_start(&r, 0, &job.group, 0), 0);
		ASSERT_EQ(mem_create(r.fd, p, LENGTH, &sqe.object), 0);
		child = child_start(target_child, &job);
		ASSERT_TRUE(child_heard(&child));
		for (n = 0; n < 30; n++)
			push_sqe(&r, &sqe);
		ASSERT_EQ(submit(&r, 30), 30);
		usleep(i * 1009 % 7001);
		EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
		/* Each op ends, the first ones well. */
		ASSERT_TRUE(EVENTUALLY(completions(&r) == 30));
		while (pop_cqe(&r, &cqe))
			EXPECT_TRUE(!cqe.result ||
				    cqe.result == -ESHUTDOWN ||
				    cqe.result == -EOWNERDEAD);
		ASSERT_TRUE(EVENTUALLY(state_of(&r) == HCOMM_STATE_ERROR));
		EXPECT_EQ(mem_destroy(r.fd, sqe.object), 0);
		close(r.fd);
	}
}

static int pinner_child(void *arg, int in, int out)
{
	const size_t bytes = 128 * MIB;
	char *p = memory_map(bytes);
	int fd = device_open(0);
	uint32_t object;

	if (fd < 0)
		return 1;
	tell(out);
	for (;;) {
		if (mem_create(fd, p + 100, bytes - 100, &object) ||
		    mem_destroy(fd, object))
			return 2;
	}
}

TEST_SLOW(death, while_it_pins)
{
	struct child child;
	int i;

	for (i = 0; i < KILLS; i++) {
		child = child_start(pinner_child, NULL);
		ASSERT_TRUE(child_heard(&child));
		usleep(i * 7919 % 60013);
		EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
	}
}

TEST_SLOW(death, while_ops_are_parked)
{
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_PUT,
		.flags = HCOMM_OPF_WAIT,
		.rank = 1,
		.length = LENGTH,
		.wait_value = 1,
	};
	void *p = memory_map(LENGTH);
	struct hcomm_join group;
	struct rank r, other;
	pid_t pid;
	int i, n, status;

	for (i = 0; i < 5; i++) {
		group_new(&group, 2);
		ASSERT_EQ(rank_start(&other, 0, &group, 1), 0);
		pid = fork();
		if (!pid) {
			if (rank_start(&r, 0, &group, 0) ||
			    window_make(&r, p, LENGTH, 0, &sqe.object))
				_exit(1);
			for (n = 0; n < 100; n++)
				push_sqe(&r, &sqe);
			if (submit(&r, 100) != 100)
				_exit(2);
			kill(getpid(), SIGKILL);
		}
		ASSERT_EQ(waitpid(pid, &status, 0), pid);
		EXPECT_TRUE(WIFSIGNALED(status));
		ASSERT_TRUE(EVENTUALLY(state_of(&other) == HCOMM_STATE_ERROR));
		close(other.fd);
	}
}

TEST_HARNESS_MAIN
