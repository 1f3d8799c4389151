// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Windows of application memory: any base, any length, of a size of its own
 * on each rank; what lies outside is refused; what is destroyed is gone, and
 * the group lives on.
 */
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "ranks.h"

#define BASE	100		/* the window's offset in its first page */

static size_t size_of(int rank)
{
	return 200000 + (size_t)rank * 1000 + 1;
}

static uint8_t value(int from, int to, size_t i)
{
	return (uint8_t)(from * 71 + to * 13 + i * 7 + i / 251);
}

static const size_t lengths[] = { 1, 1023, 1024, 1025, 4095, 4097, 65536,
				  65537, 150001 };

#define NR_LENGTHS	(sizeof(lengths) / sizeof(lengths[0]))

struct area {
	hcommComm_t comm;
	hcommWin_t win;
	uint8_t *memory;
	uint8_t *base;
	size_t room;
};

static int open_area(struct area *a, int rank)
{
	a->comm = ranks_join();
	a->room = (BASE + size_of(rank) + 8192) / 4096 * 4096;
	a->memory = aligned_alloc(4096, a->room);
	CHECK(a->memory, "no memory");
	memset(a->memory, 0xee, a->room);
	a->base = a->memory + BASE;
	OK(hcommWinCreate(&a->win, a->base, size_of(rank), HCOMM_MEM_HOST));
	return 0;
}

static int close_area(struct area *a)
{
	OK(hcommWinDestroy(a->win));
	OK(hcommFinalize());
	free(a->memory);
	return 0;
}

static int check_bytes(const uint8_t *data, int from, int to, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		CHECK(data[i] == value(from, to, i),
		      "byte %zu of %zu from %d to %d", i, length, from, to);
	return 0;
}

static int outside_is_untouched(const struct area *a, int rank)
{
	size_t i;

	for (i = 0; i < BASE; i++)
		CHECK(a->memory[i] == 0xee, "byte %zu before the window", i);
	for (i = BASE + size_of(rank); i < a->room; i++)
		CHECK(a->memory[i] == 0xee, "byte %zu after the window", i);
	return 0;
}

/* Everybody writes to its right neighbour, then reads from its left one. */
static int put_and_get(int rank, int n, void *arg)
{
	int right = (rank + 1) % n, left = (rank + n - 1) % n;
	uint8_t *data = malloc(size_of(rank));
	struct area a;
	size_t l, i, at;

	if (open_area(&a, rank))
		return 1;
	OK(hcommWinAttach(a.comm, a.win, 0));
	for (l = 0; l < NR_LENGTHS; l++) {
		/* Once at the start, once at the very end. */
		at = l % 2 ? size_of(right) - lengths[l] : 0;
		for (i = 0; i < lengths[l]; i++)
			data[i] = value(rank, right, i);
		OK(hcommPutSignal(data, lengths[l], right, a.win, at, 5, 1,
				  a.comm, NULL));
		memset(data, 0, lengths[l]);
		OK(hcommWait(5, l + 1, a.comm, NULL));
		at = l % 2 ? size_of(rank) - lengths[l] : 0;
		if (check_bytes(a.base + at, left, rank, lengths[l]))
			return 1;
		OK(hcommBarrier(a.comm, NULL));
		at = l % 2 ? size_of(right) - lengths[l] : 0;
		OK(hcommGet(data, lengths[l], right, a.win, at, a.comm, NULL));
		if (check_bytes(data, rank, right, lengths[l]))
			return 1;
		OK(hcommQuiet(a.comm, NULL));
		OK(hcommBarrier(a.comm, NULL));
	}
	if (outside_is_untouched(&a, rank))
		return 1;
	/* From window to window: read where it lies. */
	for (i = 0; i < 5000; i++)
		a.base[i] = value(rank, rank, i);
	OK(hcommBarrier(a.comm, NULL));
	OK(hcommPutSignal(a.base, 5000, right, a.win, 6001, 5, 1, a.comm,
			  NULL));
	OK(hcommWait(5, NR_LENGTHS + 1, a.comm, NULL));
	if (check_bytes(a.base + 6001, left, left, 5000))
		return 1;
	OK(hcommBarrier(a.comm, NULL));
	free(data);
	return close_area(&a);
}

static int bounds(int rank, int n, void *arg)
{
	int peer = (rank + 1) % n;
	uint8_t data[64] = { 0 };
	struct area a;
	size_t end = size_of(peer);

	if (open_area(&a, rank))
		return 1;
	CALL(HCOMM_INVALID_USAGE, hcommPut(data, 64, peer, a.win, 0, a.comm,
					   NULL));
	CHECK(strstr(hcommCommGetLastError(a.comm), "hcommWinAttach"), "%s",
	      hcommCommGetLastError(a.comm));
	OK(hcommWinAttach(a.comm, a.win, 0));
	CALL(HCOMM_INVALID_USAGE, hcommWinAttach(a.comm, a.win, 0));
	CALL(HCOMM_INVALID_ARGUMENT, hcommPut(data, 64, peer, a.win, end - 63,
					      a.comm, NULL));
	CALL(HCOMM_INVALID_ARGUMENT, hcommPut(data, 64, peer, a.win,
					      UINT64_MAX - 3, a.comm, NULL));
	CALL(HCOMM_INVALID_ARGUMENT, hcommGet(data, 64, peer, a.win, end,
					      a.comm, NULL));
	OK(hcommPut(data, 64, peer, a.win, end - 64, a.comm, NULL));
	OK(hcommQuiet(a.comm, NULL));
	OK(hcommBarrier(a.comm, NULL));
	return close_area(&a);
}

/* Rank 1 takes its window away; the others learn it from an error. */
static int destroyed(int rank, int n, void *arg)
{
	uint8_t data[64] = { 0 };
	hcommResult_t res;
	struct area a;

	if (open_area(&a, rank))
		return 1;
	OK(hcommWinAttach(a.comm, a.win, 0));
	OK(hcommPut(data, 64, 1, a.win, 0, a.comm, NULL));
	OK(hcommQuiet(a.comm, NULL));
	OK(hcommBarrier(a.comm, NULL));
	if (rank == 1) {
		OK(hcommWinDestroy(a.win));
		OK(hcommBarrier(a.comm, NULL));
		OK(hcommBarrier(a.comm, NULL));
		OK(hcommFinalize());
		return 0;
	}
	OK(hcommBarrier(a.comm, NULL));
	res = hcommPut(data, 64, 1, a.win, 0, a.comm, NULL);
	if (!res)
		res = hcommQuiet(a.comm, NULL);
	CHECK(res == HCOMM_INVALID_USAGE, "%s: %s", hcommGetErrorName(res),
	      hcommCommGetLastError(a.comm));
	OK(hcommBarrier(a.comm, NULL));
	return close_area(&a);
}

/* The same memory again and again: nothing stays pinned. */
static int again(int rank, int n, void *arg)
{
	struct area a;
	int i;

	if (open_area(&a, rank))
		return 1;
	for (i = 0; i < 10; i++) {
		OK(hcommWinAttach(a.comm, a.win, 0));
		OK(hcommBarrier(a.comm, NULL));
		OK(hcommWinDestroy(a.win));
		OK(hcommWinCreate(&a.win, a.base, size_of(rank),
				  HCOMM_MEM_HOST));
	}
	return close_area(&a);
}

static int without_device(int rank, int n, void *arg)
{
	static char memory[4096];
	hcommWin_t win;

	ranks_join();
	CALL(HCOMM_NOT_SUPPORTED, hcommWinCreate(&win, memory, sizeof(memory),
						 HCOMM_MEM_HOST));
	CHECK(strstr(hcommCommGetLastError(NULL), "module"), "%s",
	      hcommCommGetLastError(NULL));
	OK(hcommFinalize());
	return 0;
}

FIXTURE(windows) {
	int n;
};

FIXTURE_SETUP(windows)
{
	self->n = test_instances() > 3 ? test_instances() : 3;
}

FIXTURE_TEARDOWN(windows) {}

TEST_F_TIMEOUT(windows, puts_and_gets_at_any_base_and_length, 1000)
{
	if (!test_instances())
		SKIP(return, "windows need the module");
	EXPECT_TRUE(ranks_run(self->n, 190, put_and_get, NULL));
}

TEST_F_TIMEOUT(windows, bounds_are_kept_and_the_group_lives, 300)
{
	if (!test_instances())
		SKIP(return, "windows need the module");
	EXPECT_TRUE(ranks_run(self->n, 50, bounds, NULL));
}

TEST_F_TIMEOUT(windows, what_is_destroyed_is_an_error_for_its_users, 300)
{
	if (!test_instances())
		SKIP(return, "windows need the module");
	EXPECT_TRUE(ranks_run(self->n, 50, destroyed, NULL));
}

TEST_F_TIMEOUT(windows, made_again_and_again, 450)
{
	if (!test_instances())
		SKIP(return, "windows need the module");
	EXPECT_TRUE(ranks_run(self->n, 80, again, NULL));
}

TEST_F_TIMEOUT(windows, without_the_module_say_so, 300)
{
	if (test_instances())
		SKIP(return, "the module is there");
	EXPECT_TRUE(ranks_run(2, 20, without_device, NULL));
}

TEST_HARNESS_MAIN
