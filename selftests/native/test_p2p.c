// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sends meet receives in order, at any size; grouped calls need no order; and
 * one-sided puts, gets and signals keep their promises on the heap.
 */
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "ranks.h"

static uint32_t value(int from, int to, size_t round, size_t i)
{
	return (uint32_t)(from * 1000003 + to * 10007 + round * 101 + i);
}

static void fill(uint32_t *data, int from, int to, size_t round, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		data[i] = value(from, to, round, i);
}

static int check(const uint32_t *data, int from, int to, size_t round,
		 size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		CHECK(data[i] == value(from, to, round, i),
		      "%d to %d, round %zu, element %zu of %zu", from, to,
		      round, i, count);
	return 0;
}

static const size_t sizes[] = {
	0, 1, 3, 15, 16, 17, 255, 1000, 4096, 16384, 16385, 70001, 300007,
};

#define NR_SIZES	(sizeof(sizes) / sizeof(sizes[0]))
#define LARGEST		300007

static int in_turn(int rank, int n, void *arg)
{
	uint32_t *data = malloc(LARGEST * sizeof(*data));
	hcommComm_t comm = ranks_join();
	size_t s;
	int r;

	/* 0 to 1, 1 to 2, ... back to 0, at every size. */
	for (s = 0; s < NR_SIZES; s++) {
		for (r = 0; r < n; r++) {
			int to = (r + 1) % n;

			if (rank == r) {
				fill(data, r, to, s, sizes[s]);
				OK(hcommSend(data, sizes[s], HCOMM_UINT32, to,
					     comm, NULL));
			}
			if (rank == to) {
				memset(data, 0, sizes[s] * 4);
				OK(hcommRecv(data, sizes[s], HCOMM_UINT32, r,
					     comm, NULL));
				if (check(data, r, to, s, sizes[s]))
					return 1;
			}
		}
	}
	OK(hcommFinalize());
	free(data);
	return 0;
}

/* Everybody to everybody, sends first: would hang without the group. */
static int all_at_once(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	size_t count, s, room = 70001;
	uint32_t *out = malloc((size_t)n * room * 4), *in;
	uint64_t sum = 1;
	int r;

	in = malloc((size_t)n * room * 4);
	for (s = 0; s < NR_SIZES - 1; s++) {
		count = sizes[s];
		for (r = 0; r < n; r++)
			fill(out + r * room, rank, r, s, count);
		memset(in, 0, (size_t)n * room * 4);
		OK(hcommGroupStart());
		for (r = n - 1; r >= 0; r--)
			OK(hcommSend(out + r * room, count, HCOMM_UINT32, r,
				     comm, NULL));
		OK(hcommGroupStart());
		for (r = 0; r < n; r++)
			OK(hcommRecv(in + r * room, count, HCOMM_UINT32, r,
				     comm, NULL));
		OK(hcommGroupEnd());
		sum = 1;
		OK(hcommAllReduce(&sum, &sum, 1, HCOMM_UINT64, HCOMM_SUM, comm,
				  NULL));
		CHECK(sum == 1, "a noted call ran too early");
		OK(hcommGroupEnd());
		CHECK(sum == (uint64_t)n, "sum is %llu",
		      (unsigned long long)sum);
		for (r = 0; r < n; r++)
			if (check(in + r * room, r, rank, s, count))
				return 1;
	}
	OK(hcommFinalize());
	free(out);
	free(in);
	return 0;
}

/* Several between the same two keep their order, mixed with collectives. */
static int keeps_order(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	uint32_t data[100];
	int i, to = (rank + 1) % n, from = (rank + n - 1) % n;

	for (i = 0; i < (test_instances() > 1 ? 60 : 300); i++) {
		OK(hcommGroupStart());
		fill(data, rank, to, i, 100);
		OK(hcommSend(data, 50, HCOMM_UINT32, to, comm, NULL));
		OK(hcommSend(data + 50, 50, HCOMM_UINT32, to, comm, NULL));
		{
			uint32_t first[50], second[50];

			OK(hcommRecv(first, 50, HCOMM_UINT32, from, comm,
				     NULL));
			OK(hcommRecv(second, 50, HCOMM_UINT32, from, comm,
				     NULL));
			OK(hcommGroupEnd());
			if (check(first, from, rank, i, 50))
				return 1;
			CHECK(second[0] == value(from, rank, i, 50),
			      "the second came first");
		}
		if (i % 7 == 0)
			OK(hcommBarrier(comm, NULL));
	}
	OK(hcommFinalize());
	return 0;
}

static int wrong_size(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	uint32_t data[8] = { 0 };

	if (!rank) {
		OK(hcommSend(data, 8, HCOMM_UINT32, 1, comm, NULL));
		CALL(HCOMM_MISMATCH, hcommBarrier(comm, NULL));
	} else if (rank == 1) {
		CALL(HCOMM_MISMATCH, hcommRecv(data, 7, HCOMM_UINT32, 0, comm,
					       NULL));
		CHECK(strstr(hcommCommGetLastError(comm), "32 bytes"), "%s",
		      hcommCommGetLastError(comm));
	} else {
		CALL(HCOMM_MISMATCH, hcommBarrier(comm, NULL));
	}
	OK(hcommFinalize());
	return 0;
}

/* Puts and signals into the heap of every rank. */
static int one_sided(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	size_t room = 70001, count, s;
	uint32_t *heap, *data = malloc(room * 4), *got = malloc(room * 4);
	uint64_t offset;
	void *ptr;
	int r;

	OK(hcommSymAlloc(comm, &ptr, (size_t)n * room * 4));
	heap = ptr;
	OK(hcommSymOffset(comm, heap, &offset));
	for (s = 0; s < NR_SIZES - 1; s++) {
		count = sizes[s];
		for (r = 0; r < n; r++) {
			uint64_t to = offset + (uint64_t)rank * room * 4;

			fill(data, rank, r, s, count);
			if (s % 2) {
				OK(hcommPut(data, count * 4, r, NULL, to, comm,
					    NULL));
				OK(hcommSignal(r, 3, 1, comm, NULL));
			} else {
				OK(hcommPutSignal(data, count * 4, r, NULL, to,
						  3, 1, comm, NULL));
			}
			/* The source may be reused at once. */
			memset(data, 0xff, count * 4);
		}
		OK(hcommWait(3, (s + 1) * n, comm, NULL));
		for (r = 0; r < n; r++)
			if (check(heap + r * room, r, rank, s, count))
				return 1;
		OK(hcommQuiet(comm, NULL));
		OK(hcommBarrier(comm, NULL));
		for (r = 0; r < n; r++) {
			int k = (r + 1) % n;

			OK(hcommGet(got, count * 4, r, NULL,
				    offset + (uint64_t)k * room * 4, comm,
				    NULL));
			if (check(got, k, r, s, count))
				return 1;
		}
		OK(hcommFence(0, comm, NULL));
		OK(hcommBarrier(comm, NULL));
	}
	OK(hcommFinalize());
	free(data);
	free(got);
	return 0;
}

/* Semaphore >= v means that the first v puts of that rank are there. */
static int signals_in_order(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	int i, rounds = 300;
	uint32_t *slots, mine;
	uint64_t offset;
	void *ptr;

	OK(hcommSymAlloc(comm, &ptr, rounds * 4096));
	slots = ptr;
	memset(slots, 0, rounds * 4096);
	OK(hcommSymOffset(comm, slots, &offset));
	OK(hcommBarrier(comm, NULL));
	if (rank == n - 1) {
		for (i = 0; i < rounds; i++) {
			mine = i + 1;
			OK(hcommPutSignal(&mine, 4, 0, NULL, offset + i * 4096,
					  7, 1, comm, NULL));
		}
	}
	if (!rank) {
		for (i = 0; i < rounds; i++) {
			OK(hcommWait(7, i + 1, comm, NULL));
			CHECK(slots[i * 1024] == (uint32_t)i + 1,
			      "signal %d came before its data", i);
		}
	}
	OK(hcommFinalize());
	return 0;
}

FIXTURE(p2p) {
	int n;
};

FIXTURE_SETUP(p2p)
{
	self->n = test_instances() > 3 ? test_instances() : 3;
}

FIXTURE_TEARDOWN(p2p) {}

TEST_F_TIMEOUT(p2p, sends_in_turn_at_every_size, 1500)
{
	EXPECT_TRUE(ranks_run(self->n, 120, in_turn, NULL));
	EXPECT_TRUE(ranks_run(self->n + 2, 170, in_turn, NULL));
}

TEST_F_TIMEOUT(p2p, grouped_exchange_needs_no_order, 1500)
{
	EXPECT_TRUE(ranks_run(self->n, 120, all_at_once, NULL));
	EXPECT_TRUE(ranks_run(self->n + 3, 170, all_at_once, NULL));
	if (test_possible(1)) {
		EXPECT_TRUE(ranks_run(1, 60, all_at_once, NULL));
	}
}

TEST_F_TIMEOUT(p2p, sends_between_two_keep_their_order, 1500)
{
	EXPECT_TRUE(ranks_run(self->n, 200, keeps_order, NULL));
}

TEST_F_TIMEOUT(p2p, sizes_that_differ_are_named, 300)
{
	EXPECT_TRUE(ranks_run(self->n, 50, wrong_size, NULL));
}

TEST_F_TIMEOUT(p2p, puts_gets_and_signals, 1500)
{
	EXPECT_TRUE(ranks_run(self->n, 200, one_sided, NULL));
}

TEST_F_TIMEOUT(p2p, signals_follow_the_data_in_order, 600)
{
	EXPECT_TRUE(ranks_run(self->n, 100, signals_in_order, NULL));
}

TEST_HARNESS_MAIN
