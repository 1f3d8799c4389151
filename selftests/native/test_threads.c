// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks as threads of one process. Each maps the others' heaps at addresses
 * of their own, as processes do; here these are replaced by the owners' own
 * mappings, so that ThreadSanitizer sees who reads what whom wrote, and finds
 * a flag that is not published or not acquired.
 *
 * And several threads that use the groups of one rank.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "exec/comm.h"
#include "ranks.h"

#define MAX_THREADS	5

static struct {
	hcommUniqueId id;
	int n;
	char *heaps[MAX_THREADS];	/* where each owner has it */
	pthread_barrier_t barrier;
} team;

static void use_heaps(hcommComm_t comm, char *const *heaps)
{
	int r;

	pthread_barrier_wait(&team.barrier);
	for (r = 0; r < team.n; r++) {
		comm->ranks[r].heap = heaps[r];
		comm->ranks[r].ctrl = (struct hcomm_ctrl *)heaps[r];
	}
	pthread_barrier_wait(&team.barrier);
}

static int check_sum(const uint32_t *data, size_t count, int n, uint32_t round)
{
	size_t i;

	for (i = 0; i < count; i++)
		CHECK(data[i] == (uint32_t)(n * (n - 1) / 2) + n * round,
		      "element %zu of %zu in round %u is %u", i, count, round,
		      data[i]);
	return 0;
}

static int some_collectives(hcommComm_t comm, uint32_t *data, uint32_t *more,
			    uint32_t round)
{
	static const size_t counts[] = { 1, 14, 15, 900, 1025, 40000, 150000 };
	size_t count = counts[round % 7], i;

	for (i = 0; i < count; i++)
		data[i] = (uint32_t)comm->rank + round;
	OK(hcommAllReduce(data, data, count, HCOMM_UINT32, HCOMM_SUM, comm,
			  NULL));
	if (check_sum(data, count, comm->n, round))
		return 1;
	for (i = 0; i < count; i++)
		data[i] = (uint32_t)comm->rank + round;
	OK(hcommReduce(data, more, count, HCOMM_UINT32, HCOMM_SUM,
		       (int)round % comm->n, comm, NULL));
	if ((int)round % comm->n == comm->rank &&
	    check_sum(more, count, comm->n, round))
		return 1;
	OK(hcommBroadcast(data, data, count, HCOMM_UINT32,
			  (int)round % comm->n, comm, NULL));
	CHECK(data[count - 1] == round % comm->n + round, "broadcast");
	OK(hcommAllGather(&data[0], more, 1, HCOMM_UINT32, comm, NULL));
	OK(hcommGroupStart());
	OK(hcommSend(data, count, HCOMM_UINT32, (comm->rank + 1) % comm->n,
		     comm, NULL));
	OK(hcommRecv(more, count, HCOMM_UINT32,
		     (comm->rank + comm->n - 1) % comm->n, comm, NULL));
	OK(hcommGroupEnd());
	CHECK(more[count - 1] == data[count - 1], "exchange");
	return 0;
}

static int rank_body(int rank)
{
	hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
	char *mapped[MAX_THREADS];
	uint32_t *data, *more, round;
	hcommComm_t comm;
	void *ptr;
	int r;

	config.heap_size = HCOMM_MB(16);
	config.transport = "local";
	OK(hcommCommInitRankConfig(&comm, team.n, team.id, rank, &config));
	for (r = 0; r < team.n; r++)
		mapped[r] = comm->ranks[r].heap;
	team.heaps[rank] = comm->heap;
	use_heaps(comm, team.heaps);
	OK(hcommSymAlloc(comm, &ptr, 150000 * 4));
	data = ptr;
	more = malloc(150000 * 4);
	for (round = 0; round < 42; round++)
		if (some_collectives(comm, data, more, round))
			return 1;
	for (round = 0; round < 7; round++)
		if (some_collectives(comm, more, data, round))
			return 1;
	/* An owner's mapping ends with its group. */
	use_heaps(comm, mapped);
	OK(hcommCommDestroy(comm));
	free(more);
	return 0;
}

static void *rank_thread(void *arg)
{
	return (void *)(intptr_t)rank_body((int)(intptr_t)arg);
}

static int team_process(int rank, int n, void *arg)
{
	pthread_t threads[MAX_THREADS];
	int r, bad = 0;
	void *res;

	team.n = *(int *)arg;
	OK(hcommGetUniqueId(&team.id));
	pthread_barrier_init(&team.barrier, NULL, (unsigned int)team.n);
	for (r = 0; r < team.n; r++)
		CHECK(!pthread_create(&threads[r], NULL, rank_thread,
				      (void *)(intptr_t)r), "no thread");
	for (r = 0; r < team.n; r++) {
		pthread_join(threads[r], &res);
		bad |= res != NULL;
	}
	return bad;
}

/* A group of one rank. */
static int make_alone(hcommComm_t *comm)
{
	hcommUniqueId id;

	OK(hcommGetUniqueId(&id));
	OK(hcommCommInitRank(comm, 1, id, 0));
	return 0;
}

static void *wait_for_signal(void *comm)
{
	return (void *)(intptr_t)hcommWait(0, 1, comm, NULL);
}

static void until_inside(hcommComm_t comm)
{
	while (!__atomic_load_n(&comm->user, __ATOMIC_ACQUIRE))
		usleep(1000);
}

static int exchange_with_myself(const char *from, char *to, hcommComm_t comm)
{
	OK(hcommSend(from, 4, HCOMM_INT8, 0, comm, NULL));
	OK(hcommRecv(to, 4, HCOMM_INT8, 0, comm, NULL));
	return 0;
}

/* One of two groups is in use by another thread: neither's calls run. */
static int refused_end(int rank, int n, void *arg)
{
	char from[4] = "abc", to[2][4] = { "", "" };
	hcommComm_t free, busy;
	pthread_t thread;
	void *res;

	if (make_alone(&free) || make_alone(&busy))
		return 1;
	OK(hcommGroupStart());
	if (exchange_with_myself(from, to[0], free) ||
	    exchange_with_myself(from, to[1], busy))
		return 1;
	CHECK(!pthread_create(&thread, NULL, wait_for_signal, busy),
	      "no thread");
	until_inside(busy);
	CALL(HCOMM_INVALID_USAGE, hcommGroupEnd());
	CHECK(!*to[0] && !*to[1], "calls ran");
	OK(hcommCommAbort(busy));
	pthread_join(thread, &res);
	CHECK((intptr_t)res == HCOMM_ABORTED, "got %d", (int)(intptr_t)res);
	OK(hcommGroupStart());
	if (exchange_with_myself(from, to[0], free))
		return 1;
	OK(hcommGroupEnd());
	CHECK(!memcmp(from, to[0], 4), "the free group is stuck");
	OK(hcommCommDestroy(free));
	OK(hcommCommDestroy(busy));
	return 0;
}

static struct {
	hcommComm_t comm;
	int stop;
} asked;

static void *ask_on(void *arg)
{
	hcommCommInfo_t info = { .size = sizeof(info) };
	intptr_t bad = 0;

	while (!__atomic_load_n(&asked.stop, __ATOMIC_ACQUIRE))
		bad |= hcommCommGetInfo(asked.comm, &info) || !info.heap_free ||
		       info.heap_free > info.heap_size;
	return (void *)bad;
}

static int info_meanwhile(int rank, int n, void *arg)
{
	pthread_t thread;
	void *ptr[8], *bad;
	int i, round;

	if (make_alone(&asked.comm))
		return 1;
	CHECK(!pthread_create(&thread, NULL, ask_on, NULL), "no thread");
	for (round = 0; round < 3000; round++) {
		for (i = 0; i < 8; i++)
			OK(hcommSymAlloc(asked.comm, &ptr[i], 64 + 64 * i));
		for (i = 0; i < 8; i++)
			OK(hcommSymFree(asked.comm, ptr[i]));
		OK(hcommBarrier(asked.comm, NULL));
	}
	__atomic_store_n(&asked.stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, &bad);
	CHECK(!bad, "impossible information");
	OK(hcommCommDestroy(asked.comm));
	return 0;
}

static int init_ended;

static void *wait_in_init(void *arg)
{
	hcommResult_t res = hcommInit();

	__atomic_store_n(&init_ended, 1, __ATOMIC_RELEASE);
	return (void *)(intptr_t)res;
}

/* Rank 1 never comes: meanwhile other threads are not held up. */
static int init_meanwhile(int rank, int n, void *arg)
{
	hcommComm_t other, comm;
	pthread_t thread;
	void *res;

	if (make_alone(&other))
		return 1;
	setenv("HCOMM_NRANKS", "2", 1);
	setenv("HCOMM_CONNECT_TIMEOUT", "5", 1);
	CHECK(!pthread_create(&thread, NULL, wait_in_init, NULL), "no thread");
	do
		CALL(HCOMM_INVALID_USAGE, hcommCommDefault(&comm));
	while (!strstr(hcommCommGetLastError(NULL), "being made") &&
	       !__atomic_load_n(&init_ended, __ATOMIC_ACQUIRE));
	CALL(HCOMM_INVALID_USAGE, hcommInit());
	OK(hcommCommDestroy(other));
	CHECK(!__atomic_load_n(&init_ended, __ATOMIC_ACQUIRE),
	      "hcommInit() kept others waiting");
	pthread_join(thread, &res);
	CHECK((intptr_t)res == HCOMM_TIMEOUT, "got %d", (int)(intptr_t)res);
	return 0;
}

FIXTURE(threads) {
	int none;
};

FIXTURE_SETUP(threads) {}
FIXTURE_TEARDOWN(threads) {}

TEST_F_TIMEOUT(threads, ranks_of_one_process, 1500)
{
	static int teams[] = { 2, 3, 5 };
	int i;

	if (test_instances())
		SKIP(return, "a test of shared memory alone");
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(ranks_run(1, 90, team_process, &teams[i]))
			TH_LOG("with %d threads", teams[i]);
	}
}

TEST_F_TIMEOUT(threads, refused_end_runs_no_call, 300)
{
	EXPECT_TRUE(ranks_run(1, 60, refused_end, NULL));
}

TEST_F_TIMEOUT(threads, information_beside_allocations, 300)
{
	EXPECT_TRUE(ranks_run(1, 60, info_meanwhile, NULL));
}

TEST_F_TIMEOUT(threads, waiting_in_init_holds_nobody, 300)
{
	EXPECT_TRUE(ranks_run(1, 60, init_meanwhile, NULL));
}

TEST_HARNESS_MAIN
