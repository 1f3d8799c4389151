// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bad input is a result and a text, never a crash, and leaves the group as it
 * was: after each refusal a collective still works.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "ranks.h"

#define BAD(call)	CALL(HCOMM_INVALID_ARGUMENT, call)
#define USAGE(call)	CALL(HCOMM_INVALID_USAGE, call)

static int still_works(hcommComm_t comm, int n)
{
	uint64_t data = 1;

	OK(hcommAllReduce(&data, &data, 1, HCOMM_UINT64, HCOMM_SUM, comm,
			  NULL));
	CHECK(data == (uint64_t)n, "the sum is %llu", (unsigned long long)data);
	return 0;
}

static int collectives(int rank, int n, void *arg)
{
	hcommStream_t stream = (hcommStream_t)&n;
	hcommComm_t c = ranks_join();
	float d[64] = { 0 }, *e = d + 32;

	BAD(hcommAllReduce(d, e, 4, HCOMM_FLOAT32, HCOMM_SUM, NULL, NULL));
	BAD(hcommAllReduce(NULL, e, 4, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d, NULL, 4, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d, d + 1, 4, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d + 1, d, 4, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d, e, -1, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d, e, SIZE_MAX / 4, HCOMM_FLOAT32, HCOMM_SUM, c,
			   NULL));
	BAD(hcommAllReduce(d, e, 4, 77, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d, e, 4, -1, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(d, e, 4, HCOMM_FLOAT32, 8, c, NULL));
	BAD(hcommAllReduce(d, e, 4, HCOMM_FLOAT32, HCOMM_BXOR, c, NULL));
	BAD(hcommAllReduce(d, e, 4, HCOMM_BOOL, HCOMM_AVG, c, NULL));
	CALL(HCOMM_NOT_SUPPORTED, hcommAllReduce(d, e, 4, HCOMM_FLOAT32,
						 HCOMM_SUM, c, stream));
	CHECK(strstr(hcommCommGetLastError(c), "streams"), "%s",
	      hcommCommGetLastError(c));
	BAD(hcommBroadcast(d, e, 4, HCOMM_FLOAT32, n, c, NULL));
	BAD(hcommBroadcast(d, e, 4, HCOMM_FLOAT32, -1, c, NULL));
	BAD(hcommBroadcast(d, NULL, 4, HCOMM_FLOAT32, 0, c, NULL));
	BAD(hcommReduce(d, e, 4, HCOMM_FLOAT32, HCOMM_SUM, n, c, NULL));
	BAD(hcommReduce(NULL, e, 4, HCOMM_FLOAT32, HCOMM_SUM, 0, c, NULL));
	BAD(hcommAllGather(d, d + 1, 8, HCOMM_FLOAT32, c, NULL));
	BAD(hcommReduceScatter(d, d + 1, 8, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	BAD(hcommReduceScatter(d, e, SIZE_MAX / 8, HCOMM_FLOAT32, HCOMM_SUM, c,
			       NULL));
	BAD(hcommSend(NULL, 4, HCOMM_FLOAT32, 0, c, NULL));
	BAD(hcommSend(d, 4, HCOMM_FLOAT32, n, c, NULL));
	BAD(hcommRecv(d, 4, 99, 0, c, NULL));
	USAGE(hcommSend(d, 4, HCOMM_FLOAT32, rank, c, NULL));
	CHECK(strstr(hcommCommGetLastError(c), "GroupStart"), "%s",
	      hcommCommGetLastError(c));
	if (still_works(c, n))
		return 1;
	/* Nothing to read or write: nothing can be wrong with it. */
	OK(hcommAllReduce(NULL, NULL, 0, HCOMM_FLOAT32, HCOMM_SUM, c, NULL));
	OK(hcommBroadcast(NULL, NULL, 0, HCOMM_FLOAT32, 0, c, NULL));
	OK(hcommAllGather(NULL, NULL, 0, HCOMM_FLOAT32, c, NULL));
	if (still_works(c, n))
		return 1;
	OK(hcommFinalize());
	USAGE(hcommFinalize());
	USAGE(hcommCommDefault(&c));
	return 0;
}

static int calls_in_groups(int rank, int n, void *arg)
{
	hcommComm_t c = ranks_join();
	uint64_t d = 1;

	USAGE(hcommGroupEnd());
	/* One refused call spoils all, and nothing was started. */
	OK(hcommGroupStart());
	OK(hcommAllReduce(&d, &d, 1, HCOMM_UINT64, HCOMM_SUM, c, NULL));
	BAD(hcommAllReduce(&d, &d, 1, HCOMM_UINT64, 99, c, NULL));
	BAD(hcommGroupEnd());
	CHECK(d == 1, "a spoiled group of calls ran");
	/* What the list still needs cannot be destroyed. */
	OK(hcommGroupStart());
	OK(hcommAllReduce(&d, &d, 1, HCOMM_UINT64, HCOMM_SUM, c, NULL));
	USAGE(hcommCommDestroy(c));
	CHECK(strstr(hcommCommGetLastError(c), "1 call") &&
	      strstr(hcommCommGetLastError(c), "hcommGroupEnd()"), "%s",
	      hcommCommGetLastError(c));
	OK(hcommGroupEnd());
	CHECK(d == (uint64_t)n, "the sum is %llu", (unsigned long long)d);
	OK(hcommGroupStart());
	OK(hcommGroupEnd());
	if (still_works(c, n))
		return 1;
	OK(hcommFinalize());
	return 0;
}

static int heap_and_one_sided(int rank, int n, void *arg)
{
	hcommComm_t c = ranks_join();
	char d[64], *heap;
	hcommWin_t win = NULL;
	hcommCommInfo_t info = { .size = sizeof(info) };
	uint64_t off;
	void *ptr, *peer;

	BAD(hcommSymAlloc(c, NULL, 64));
	BAD(hcommSymAlloc(c, &ptr, 0));
	BAD(hcommAllocAligned(c, &ptr, 64, 48));
	BAD(hcommAllocAligned(c, &ptr, 64, (size_t)2 << 30));
	CALL(HCOMM_OUT_OF_MEMORY, hcommSymAlloc(c, &ptr, (size_t)1 << 40));
	CALL(HCOMM_OUT_OF_MEMORY, hcommSymAlloc(c, &ptr, SIZE_MAX));
	OK(hcommSymAlloc(c, &ptr, 4096));
	heap = ptr;
	BAD(hcommSymFree(c, d));
	BAD(hcommSymFree(c, heap + 64));
	BAD(hcommSymPtr(c, d, 0, &peer));
	BAD(hcommSymPtr(c, heap, n, &peer));
	BAD(hcommSymOffset(c, d, &off));
	OK(hcommSymOffset(c, heap, &off));
	OK(hcommCommGetInfo(c, &info));

	BAD(hcommPut(d, 64, n, NULL, off, c, NULL));
	BAD(hcommPut(NULL, 64, 0, NULL, off, c, NULL));
	BAD(hcommPut(d, 64, 0, NULL, 0, c, NULL));
	BAD(hcommPut(d, 64, 0, NULL, UINT64_MAX, c, NULL));
	BAD(hcommPut(d, SIZE_MAX, 0, NULL, off, c, NULL));
	BAD(hcommPut(d, 64, 0, NULL, off + info.heap_size, c, NULL));
	BAD(hcommGet(d, 64, 0, NULL, 64, c, NULL));
	BAD(hcommSignal(0, info.user_semaphores, 1, c, NULL));
	BAD(hcommSignal(0, 0, 0, c, NULL));
	BAD(hcommSignal(0, 0, 0x80000001, c, NULL));
	BAD(hcommSignal(-1, 0, 1, c, NULL));
	BAD(hcommWait(info.user_semaphores, 1, c, NULL));
	BAD(hcommFence(n, c, NULL));

	BAD(hcommWinCreate(NULL, d, 64, HCOMM_MEM_HOST));
	BAD(hcommWinCreate(&win, NULL, 64, HCOMM_MEM_HOST));
	BAD(hcommWinCreate(&win, d, 0, HCOMM_MEM_HOST));
	BAD(hcommWinCreate(&win, d, 64, 9));
	CALL(HCOMM_NOT_SUPPORTED, hcommWinCreate(&win, d, HCOMM_GB(2),
						 HCOMM_MEM_GPU));
	CHECK(strstr(hcommCommGetLastError(NULL), "dma-buf"), "%s",
	      hcommCommGetLastError(NULL));
	BAD(hcommWinAttach(c, NULL, 0));
	BAD(hcommWinDestroy(NULL));
	BAD(hcommCommGetInfo(c, NULL));
	info.size = 2;
	BAD(hcommCommGetInfo(c, &info));

	/* Freed once, and again only after another allocation. */
	OK(hcommSymFree(c, heap));
	BAD(hcommSymFree(c, heap));
	if (still_works(c, n))
		return 1;
	OK(hcommSymAlloc(c, &ptr, 4096));
	CHECK(ptr == heap, "the space was not used again");
	OK(hcommFinalize());
	return 0;
}

/* Aligned in offset and address; the same offset everywhere. */
static int alignment(int rank, int n, void *arg)
{
	hcommComm_t c = ranks_join();
	hcommCommInfo_t info = { .size = sizeof(info) };
	uint64_t offsets[3], all[64 * 3];
	void *ptr[3], *peer;
	int i, r;

	OK(hcommSymAlloc(c, &ptr[0], 100));
	OK(hcommAllocAligned(c, &ptr[1], 1000, (size_t)1 << 21));
	OK(hcommSymAlloc(c, &ptr[2], 100));
	CHECK((uintptr_t)ptr[1] % (1 << 21) == 0, "address %p", ptr[1]);
	CHECK(ptr[2] < ptr[1], "the space before an alignment is lost");
	for (i = 0; i < 3; i++)
		OK(hcommSymOffset(c, ptr[i], &offsets[i]));
	CHECK(offsets[1] % (1 << 21) == 0, "offset");
	OK(hcommAllGather(offsets, all, 3, HCOMM_UINT64, c, NULL));
	OK(hcommCommGetInfo(c, &info));
	for (r = 0; r < n; r++) {
		CHECK(!memcmp(all + 3 * r, offsets, sizeof(offsets)),
		      "rank %d has other offsets", r);
		OK(hcommSymPtr(c, ptr[0], r, &peer));
		CHECK(r != rank || peer == ptr[0], "own pointer");
	}
	CHECK(info.rank == rank && info.nranks == n, "info");
	OK(hcommFinalize());
	return 0;
}

/* The number that the next file would get. */
static int next_file(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* hcommInit() with the variable says what the text names, without waiting. */
static int bad_variable(const char *name, const char *value, const char *text)
{
	setenv(name, value, 1);
	BAD(hcommInit());
	CHECK(strstr(hcommCommGetLastError(NULL), name) &&
	      strstr(hcommCommGetLastError(NULL), text), "%s=%s: %s", name,
	      value, hcommCommGetLastError(NULL));
	unsetenv(name);
	return 0;
}

static int variables(int rank, int n, void *arg)
{
	char dir[] = "/tmp/hcomm-test-XXXXXX", fifo[64], large[64];
	char endless[1200] = "";
	int fd, bad;
	hcommUniqueId id;

	CHECK(mkdtemp(dir), "no folder");
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	snprintf(large, sizeof(large), "%s/large", dir);
	memset(endless, 'j', sizeof(endless) - 1);
	fd = open(large, O_CREAT | O_WRONLY, 0600);
	CHECK(!mkfifo(fifo, 0600) && !ftruncate(fd, 4097), "no files");
	close(fd);
	bad = bad_variable("HCOMM_SECRET_FILE", fifo, "regular") |
	      bad_variable("HCOMM_SECRET_FILE", "/dev/zero", "regular") |
	      bad_variable("HCOMM_SECRET_FILE", dir, "regular") |
	      bad_variable("HCOMM_SECRET_FILE", large, "more than 4096") |
	      bad_variable("HCOMM_DEBUG", "bogus", "TRACE") |
	      bad_variable("HCOMM_DEBUG", "INFOS", "TRACE") |
	      bad_variable("HCOMM_JOB", "a/b", "none of them \"/\"") |
	      bad_variable("HCOMM_JOB", endless, "...\": expected at most");
	unlink(fifo);
	unlink(large);
	rmdir(dir);
	if (bad)
		return 1;
	setenv("HCOMM_SOCKET_IFNAME", "nowhere0", 1);
	BAD(hcommGetUniqueId(&id));
	CHECK(strstr(hcommCommGetLastError(NULL), "nowhere0"), "%s",
	      hcommCommGetLastError(NULL));
	setenv("HCOMM_SOCKET_IFNAME", "lo", 1);
	OK(hcommGetUniqueId(&id));
	return 0;
}

static int alone(int rank, int n, void *arg)
{
	hcommUniqueId id = { "hcomm1,nonsense" };
	hcommConfig_t config = HCOMM_CONFIG_INITIALIZER;
	hcommComm_t c;
	int file;

	BAD(hcommCommInitRank(NULL, 1, id, 0));
	BAD(hcommCommInitRank(&c, 0, id, 0));
	BAD(hcommCommInitRank(&c, 5000, id, 0));
	BAD(hcommCommInitRank(&c, 2, id, 2));
	BAD(hcommCommInitRank(&c, 2, id, -1));
	BAD(hcommCommInitRank(&c, 1, id, 0));
	CHECK(!c, "the handle was not cleared");
	BAD(hcommGetUniqueId(NULL));
	file = next_file();
	OK(hcommGetUniqueId(&id));
	config.magic = 0;
	BAD(hcommCommInitRankConfig(&c, 1, id, 0, &config));
	config = (hcommConfig_t)HCOMM_CONFIG_INITIALIZER;
	config.size = 10000;
	BAD(hcommCommInitRankConfig(&c, 1, id, 0, &config));
	config = (hcommConfig_t)HCOMM_CONFIG_INITIALIZER;
	config.heap_size = 4096;
	BAD(hcommCommInitRankConfig(&c, 1, id, 0, &config));
	config.heap_size = HCOMM_MB(8);
	config.transport = "smoke";
	BAD(hcommCommInitRankConfig(&c, 1, id, 0, &config));
	config.transport = NULL;
	OK(hcommCommInitRankConfig(&c, 1, id, 0, &config));
	if (still_works(c, 1))
		return 1;
	OK(hcommCommDestroy(c));
	CHECK(next_file() == file, "a file is left open");
	BAD(hcommCommDestroy(NULL));
	BAD(hcommCommDestroy(c));
	BAD(hcommCommAbort(c));
	CHECK(strstr(hcommCommGetLastError(NULL), "destroyed"), "%s",
	      hcommCommGetLastError(NULL));

	setenv("HCOMM_HEAP_SIZE", "12 parsecs", 1);
	BAD(hcommInit());
	CHECK(strstr(hcommCommGetLastError(NULL), "HCOMM_HEAP_SIZE"), "%s",
	      hcommCommGetLastError(NULL));
	setenv("HCOMM_HEAP_SIZE", "8MiB", 1);
	setenv("HCOMM_RANK", "7", 1);
	BAD(hcommInit());
	CHECK(strstr(hcommCommGetLastError(NULL), "HCOMM_RANK"), "%s",
	      hcommCommGetLastError(NULL));
	setenv("HCOMM_RANK", "0", 1);
	OK(hcommInit());
	USAGE(hcommInit());
	OK(hcommFinalize());
	OK(hcommInit());
	OK(hcommFinalize());
	return 0;
}

/* How often @text is in a file. */
static int occurrences(const char *name, const char *text)
{
	FILE *file = fopen(name, "r");
	char line[1024];
	int nr = 0;

	while (file && fgets(line, sizeof(line), file))
		nr += strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return nr;
}

static int logs_errors(int rank, int n, void *file)
{
	hcommUniqueId id = { "hcomm1,nonsense" };
	hcommComm_t c;
	char level[80];

	snprintf(level, sizeof(level), "INFO:%s", (char *)file);
	setenv("HCOMM_DEBUG", level, 1);
	BAD(hcommCommInitRank(&c, 1, id, 0));
	c = ranks_join();
	BAD(hcommBroadcast(NULL, NULL, 0, HCOMM_FLOAT32, 77, c, NULL));
	BAD(hcommSymAlloc(c, NULL, 64));
	OK(hcommFinalize());
	CHECK(occurrences(file, "no unique id made") == 1, "making a group");
	CHECK(occurrences(file, "root 77") == 1, "a refused collective");
	CHECK(occurrences(file, "ptr is NULL") == 1, "a refused allocation");
	return 0;
}

FIXTURE(arguments) {
	int n;
};

FIXTURE_SETUP(arguments)
{
	self->n = test_instances() > 2 ? test_instances() : 2;
}

FIXTURE_TEARDOWN(arguments) {}

TEST_F_TIMEOUT(arguments, of_collectives, 300)
{
	EXPECT_TRUE(ranks_run(self->n, 50, collectives, NULL));
}

TEST_F_TIMEOUT(arguments, of_groups_of_calls, 300)
{
	EXPECT_TRUE(ranks_run(self->n, 50, calls_in_groups, NULL));
}

TEST_F_TIMEOUT(arguments, of_heap_windows_and_one_sided_calls, 300)
{
	EXPECT_TRUE(ranks_run(self->n, 50, heap_and_one_sided, NULL));
}

TEST_F_TIMEOUT(arguments, of_set_up, 300)
{
	if (test_instances() > 1)
		SKIP(return, "one rank, one instance");
	EXPECT_TRUE(ranks_run(1, 50, alone, NULL));
}

TEST_F_TIMEOUT(arguments, alignment_is_kept_and_offsets_are_equal, 300)
{
	EXPECT_TRUE(ranks_run(self->n + 1, 50, alignment, NULL));
}

TEST_F_TIMEOUT(arguments, errors_are_logged_once_each, 300)
{
	char file[] = "/tmp/hcomm-test-XXXXXX";
	int fd = mkstemp(file);

	ASSERT_LE(0, fd);
	EXPECT_TRUE(ranks_run(1, 30, logs_errors, file));
	close(fd);
	unlink(file);
}

TEST_F_TIMEOUT(arguments, of_the_environment, 300)
{
	EXPECT_TRUE(ranks_run(1, 30, variables, NULL));
}

TEST_HARNESS_MAIN
