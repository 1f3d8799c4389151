// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Two threads at once where one ends what the other uses: objects, windows,
 * ops, memberships. What is proved is what the kernel does not report, and
 * that in the end every op has ended once and nothing is left.
 */
#include <kselftest_harness.h>

#include <pthread.h>

#include "memory.h"

#define LENGTH		(256 * KIB)

FIXTURE(races)
{
	uint32_t rounds;
};

FIXTURE_SETUP(races)
{
	int fd = device_open(0);

	if (fd == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_GE(fd, 0);
	close(fd);
	self->rounds = scaled(200);
}

FIXTURE_TEARDOWN(races)
{
	EXPECT_TRUE(EVENTUALLY(!left_over(0)));
	EXPECT_TRUE(EVENTUALLY(!vm_pin_kib()));
}

/* Meets the other thread here, so that both go on at the same moment. */
struct duel {
	pthread_barrier_t start;
	struct rank r, other;
	uint32_t object;
	int fd;
	long result;
};

static void *destroy_all(void *arg)
{
	struct duel *duel = arg;
	uint32_t object;

	pthread_barrier_wait(&duel->start);
	for (object = 1; object <= 64; object++)
		if (!mem_destroy(duel->fd, object))
			duel->result++;
	return NULL;
}

TEST_SLOW(races, destroying_objects_and_closing_the_file)
{
	char *base = memory_map(64 * KIB);
	struct duel duel = {};
	pthread_t thread;
	uint32_t i, n, object;

	pthread_barrier_init(&duel.start, NULL, 2);
	for (i = 0; i < self->rounds; i++) {
		duel.fd = device_open(0);
		ASSERT_GE(duel.fd, 0);
		for (n = 0; n < 64; n++)
			ASSERT_EQ(mem_create(duel.fd, base, 64 * KIB, &object),
				  0);
		ASSERT_EQ(pthread_create(&thread, NULL, destroy_all, &duel), 0);
		pthread_barrier_wait(&duel.start);
		close(duel.fd);
		pthread_join(thread, NULL);
	}
}

/* Handles are small numbers: another thread guesses them as they are made. */
TEST_SLOW(races, making_objects_and_destroying_them_by_guess)
{
	char *base = memory_map(64 * KIB);
	struct duel duel = {};
	pthread_t thread;
	uint32_t i, n, object;
	long made = 0;

	pthread_barrier_init(&duel.start, NULL, 2);
	duel.fd = device_open(0);
	ASSERT_GE(duel.fd, 0);
	for (i = 0; i < self->rounds; i++) {
		ASSERT_EQ(pthread_create(&thread, NULL, destroy_all, &duel), 0);
		pthread_barrier_wait(&duel.start);
		for (n = 0; n < 64; n++) {
			ASSERT_EQ(mem_create(duel.fd, base, 64 * KIB, &object), 0);
			made++;
		}
		pthread_join(thread, NULL);
		for (object = 1; object <= 64; object++)
			made -= !mem_destroy(duel.fd, object);
	}
	EXPECT_EQ(made, duel.result);
	close(duel.fd);
}

static void *attach_many(void *arg)
{
	struct duel *duel = arg;
	uint32_t id;

	pthread_barrier_wait(&duel->start);
	for (id = 0; id < 200; id++) {
		duel->result = win_attach(&duel->r, duel->object, id);
		if (duel->result && duel->result != -EBUSY)
			break;
		if (!duel->result && id % 3 == 2)
			win_detach(&duel->r, id);
	}
	return NULL;
}

TEST_SLOW(races, attaching_windows_and_ending_the_membership)
{
	char *base = memory_map(LENGTH);
	struct hcomm_abort abort = {};
	struct hcomm_join group;
	struct duel duel = {};
	pthread_t thread;
	uint32_t i;

	pthread_barrier_init(&duel.start, NULL, 2);
	for (i = 0; i < self->rounds; i++) {
		group_new(&group, 2);
		ASSERT_EQ(rank_start(&duel.r, 0, &group, 0), 0);
		ASSERT_EQ(mem_create(duel.r.fd, base, LENGTH, &duel.object),
			  0);
		ASSERT_EQ(pthread_create(&thread, NULL, attach_many, &duel), 0);
		pthread_barrier_wait(&duel.start);
		if (i % 2)
			call(duel.r.fd, HCOMM_IOC_ABORT, &abort);
		else
			ioctl(duel.r.fd, HCOMM_IOC_LEAVE);
		pthread_join(thread, NULL);
		EXPECT_TRUE(!duel.result || duel.result == -ESHUTDOWN ||
			    duel.result == -EBUSY ||
			    duel.result == -ECANCELED);
		/* Whatever was attached is revoked: the object is free. */
		EXPECT_TRUE(EVENTUALLY(!mem_destroy(duel.r.fd, duel.object)));
		close(duel.r.fd);
	}
}

static void *put_many(void *arg)
{
	struct duel *duel = arg;
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_PUT,
		.rank = 1,
		.object = duel->object,
	};
	int i, ret;

	pthread_barrier_wait(&duel->start);
	for (i = 0; i < 200; i++) {
		sqe.length = i % 4 == 3 ? LENGTH : 100;
		sqe.flags = i % 8 == 5 ? HCOMM_OPF_WAIT : 0;
		sqe.wait_value = sqe.flags ? 1 : 0;
		sqe.user_data = i;
		push_sqe(&duel->r, &sqe);
		if (i % 10 != 9)
			continue;
		ret = submit(&duel->r, 10);
		if (ret > 0)
			duel->result += ret;
		if (ret != 10)
			break;
	}
	return NULL;
}

/* Every op that was taken has ended, once. */
static void expect_ends(struct __test_metadata *_metadata, struct duel *duel)
{
	struct hcomm_cqe cqe;
	uint64_t seen[4] = {};
	long i;

	EXPECT_TRUE(EVENTUALLY(completions(&duel->r) >= duel->result));
	for (i = 0; pop_cqe(&duel->r, &cqe); i++) {
		ASSERT_LT(cqe.user_data, 200);
		EXPECT_FALSE(seen[cqe.user_data / 64] &
			     1ULL << cqe.user_data % 64);
		seen[cqe.user_data / 64] |= 1ULL << cqe.user_data % 64;
	}
	EXPECT_EQ(i, duel->result);
}

TEST_SLOW(races, submitting_ops_and_failing_the_group)
{
	char *from = memory_map(LENGTH), *to = memory_map(LENGTH);
	struct hcomm_abort abort = {};
	struct hcomm_join group;
	struct duel duel = {};
	pthread_t thread;
	uint32_t i, target;

	pthread_barrier_init(&duel.start, NULL, 2);
	for (i = 0; i < self->rounds; i++) {
		group_new(&group, 2);
		duel.result = 0;
		ASSERT_EQ(rank_start(&duel.r, 0, &group, 0), 0);
		ASSERT_EQ(rank_start(&duel.other, 0, &group, 1), 0);
		ASSERT_EQ(mem_create(duel.r.fd, from, LENGTH, &duel.object), 0);
		ASSERT_EQ(window_make(&duel.other, to, LENGTH, 0, &target), 0);
		ASSERT_EQ(pthread_create(&thread, NULL, put_many, &duel), 0);
		pthread_barrier_wait(&duel.start);
		if (i % 2)
			sched_yield();
		call(duel.other.fd, HCOMM_IOC_ABORT, &abort);
		pthread_join(thread, NULL);
		expect_ends(_metadata, &duel);
		EXPECT_EQ(mem_destroy(duel.r.fd, duel.object), 0);
		close(duel.r.fd);
		close(duel.other.fd);
	}
}

TEST_SLOW(races, submitting_ops_and_taking_the_window_back)
{
	char *from = memory_map(LENGTH), *to = memory_map(LENGTH);
	struct hcomm_sqe kick = { .opcode = HCOMM_OP_SIGNAL, .delta = 1,
				  .flags = HCOMM_OPF_SILENT };
	struct hcomm_event event;
	struct hcomm_join group;
	struct duel duel = {};
	pthread_t thread;
	uint32_t i, target;

	pthread_barrier_init(&duel.start, NULL, 2);
	for (i = 0; i < self->rounds; i++) {
		group_new(&group, 2);
		duel.result = 0;
		ASSERT_EQ(rank_start(&duel.r, 0, &group, 0), 0);
		ASSERT_EQ(rank_start(&duel.other, 0, &group, 1), 0);
		ASSERT_EQ(mem_create(duel.r.fd, from, LENGTH, &duel.object), 0);
		ASSERT_EQ(window_make(&duel.other, to, LENGTH, 0, &target), 0);
		ASSERT_EQ(pthread_create(&thread, NULL, put_many, &duel), 0);
		pthread_barrier_wait(&duel.start);
		if (i % 2)
			sched_yield();
		ASSERT_EQ(win_detach(&duel.other, 0), 0);
		ASSERT_TRUE(wait_event(&duel.other, HCOMM_EVENT_QUIESCED,
				       &event));
		/* Quiet: from here on no op may change a byte. */
		memset(to, 0x77, LENGTH);
		pthread_join(thread, NULL);
		push_sqe(&duel.other, &kick);
		ASSERT_EQ(submit(&duel.other, 1), 1);
		expect_ends(_metadata, &duel);
		EXPECT_EQ(not_all((void *)to, LENGTH, 0x77), -1);
		EXPECT_EQ(mem_destroy(duel.other.fd, target), 0);
		close(duel.r.fd);
		close(duel.other.fd);
	}
}

TEST_HARNESS_MAIN
