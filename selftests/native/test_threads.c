// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks as threads of one process. Each maps the others' heaps at addresses
 * of their own, as processes do; here these are replaced by the owners' own
 * mappings, so that ThreadSanitizer sees who reads what whom wrote, and finds
 * a flag that is not published or not acquired.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

TEST_HARNESS_MAIN
