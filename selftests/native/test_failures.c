// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A rank that dies, stops, aborts, leaves or makes another call ends the
 * group on all ranks, soon, with a result and a text that names it; and who
 * waits for it does not burn its CPU.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "ranks.h"

#define MSEC	1000000ULL
#define SEC	(1000 * MSEC)

/* Shared with the parent. */
struct scene {
	uint64_t event_ns;	/* when it happened */
	uint64_t running;	/* ranks that are in their loop */
	int victim;
	size_t count;
	uint64_t slack_ns;	/* how late the others may learn of it */
};

static struct scene *new_scene(int victim, size_t count)
{
	struct scene *scene = test_shared(sizeof(*scene));

	scene->victim = victim;
	scene->count = count;
	/* A second, but on the debug kernel everything is slow. */
	scene->slack_ns = test_patience() > 2 ? 5 * SEC : SEC;
	return scene;
}

/* All-reduces until one fails. *@res is how. */
static int loop(hcommComm_t comm, struct scene *scene, hcommResult_t *res,
		int rounds)
{
	float *data = calloc(scene->count, sizeof(*data));
	int i;

	CHECK(data, "no memory");
	for (i = 0; i < rounds; i++) {
		if (i == 3)
			__atomic_add_fetch(&scene->running, 1,
					   __ATOMIC_SEQ_CST);
		*res = hcommAllReduce(data, data, scene->count, HCOMM_FLOAT32,
				      HCOMM_SUM, comm, NULL);
		if (*res)
			break;
	}
	free(data);
	return 0;
}

static int names(const char *text, int rank)
{
	char wanted[16];

	snprintf(wanted, sizeof(wanted), "rank %d", rank);
	return strstr(text, wanted) != NULL;
}

/* What every rank but the victim must see. */
static int learns(struct scene *scene, hcommComm_t comm, hcommResult_t got,
		  hcommResult_t wanted)
{
	uint64_t now = test_now_ns(), event;
	const char *text = hcommCommGetLastError(comm);
	const char *after;
	hcommResult_t async;

	event = __atomic_load_n(&scene->event_ns, __ATOMIC_SEQ_CST);
	CHECK(got == wanted, "%s, not %s: %s", hcommGetErrorName(got),
	      hcommGetErrorName(wanted), text);
	CHECK(event && now - event < scene->slack_ns, "learned after %.3f s",
	      (double)(now - event) / 1e9);
	after = strchr(text, ':');
	CHECK(after && names(after, scene->victim), "does not name rank %d: %s",
	      scene->victim, text);
	/* It stays, and destroying does not wait for anybody. */
	CALL(wanted, hcommBarrier(comm, NULL));
	OK(hcommCommGetAsyncError(comm, &async));
	CHECK(async == wanted, "async is %s", hcommGetErrorName(async));
	now = test_now_ns();
	OK(hcommFinalize());
	CHECK(test_now_ns() - now < 3 * SEC * test_patience(), "destroying took %.3f s",
	      (double)(test_now_ns() - now) / 1e9);
	return 0;
}

static int survive(int rank, int n, void *arg)
{
	struct scene *scene = arg;
	hcommComm_t comm = ranks_join();
	hcommResult_t res = HCOMM_SUCCESS;

	if (loop(comm, scene, &res, 1000000000))
		return 1;
	if (rank == scene->victim)
		return 0;
	return learns(scene, comm, res, HCOMM_REMOTE_ERROR);
}

static void wait_running(struct scene *scene, int n)
{
	uint64_t end = test_now_ns() + 60 * SEC;

	while (__atomic_load_n(&scene->running, __ATOMIC_SEQ_CST) < (uint64_t)n &&
	       test_now_ns() < end)
		usleep(1000);
}

/* All ended with 0 but the one that was killed. */
static bool others_good(const struct ranks *ranks, int victim)
{
	bool good = true;
	int r;

	for (r = 0; r < ranks->n; r++) {
		if (r == victim || !ranks->status[r])
			continue;
		good = false;
		if (WIFSIGNALED(ranks->status[r]))
			fprintf(stderr, "# rank %d: signal %d\n", r,
				WTERMSIG(ranks->status[r]));
	}
	return good;
}

static bool kill_one(int n, int victim, size_t count, unsigned int delay_us)
{
	struct scene *scene = new_scene(victim, count);
	struct ranks ranks;

	ranks_start(&ranks, n, survive, scene);
	wait_running(scene, n);
	usleep(delay_us);
	__atomic_store_n(&scene->event_ns, test_now_ns(), __ATOMIC_SEQ_CST);
	kill(ranks.pid[victim], SIGKILL);
	return ranks_wait(&ranks, 30) && others_good(&ranks, victim);
}

FIXTURE(failures) {
	int n;
};

FIXTURE_SETUP(failures)
{
	self->n = test_instances() > 4 ? test_instances() : 4;
	setenv("HCOMM_HEAP_SIZE", "8M", 1);
}

FIXTURE_TEARDOWN(failures) {}

TEST_F_TIMEOUT(failures, death_at_random_moments, 3600)
{
	static const size_t counts[] = { 2, 3000, 200000, 1000003 };
	unsigned int seed = (unsigned int)test_now_ns();
	int kills = test_full() ? 100 : test_effort() == 1 ? 8 : 20;
	int i;

	TH_LOG("seed %u", seed);
	srand(seed);
	for (i = 0; i < kills; i++) {
		int victim = rand() % self->n;
		unsigned int delay = (unsigned int)rand() % 30000;

		EXPECT_TRUE(kill_one(self->n, victim, counts[i % 4], delay))
			TH_LOG("kill %d: rank %d, %zu elements, %u us", i,
			       victim, counts[i % 4], delay);
	}
}

/* ------------------------------------------------------------- stopped */

static int outwait(int rank, int n, void *arg)
{
	struct scene *scene = arg;
	hcommComm_t comm = ranks_join();
	hcommResult_t res = HCOMM_SUCCESS;

	if (loop(comm, scene, &res, 1000000000))
		return 1;
	if (rank == scene->victim)
		return 0;
	return learns(scene, comm, res, HCOMM_TIMEOUT);
}

TEST_F_TIMEOUT(failures, stopped_rank_is_a_timeout_and_costs_no_cpu, 600)
{
	struct scene *scene = new_scene(1, 3000);
	uint64_t before[MAX_RANKS], used, wall;
	struct ranks ranks;
	int r;

	setenv("HCOMM_TIMEOUT", "3", 1);
	scene->slack_ns += 3 * SEC + 500 * MSEC;
	ranks_start(&ranks, self->n, outwait, scene);
	wait_running(scene, self->n);
	scene->event_ns = test_now_ns();
	kill(ranks.pid[1], SIGSTOP);
	usleep(300000);
	for (r = 0; r < self->n; r++)
		before[r] = test_cpu_ns(ranks.pid[r]);
	wall = test_now_ns();
	usleep(2000000);
	wall = test_now_ns() - wall;
	for (r = 0; r < self->n; r++) {
		used = test_cpu_ns(ranks.pid[r]) - before[r];
		/* Emulated CPUs count what the host took away as used. */
		EXPECT_LT(used, test_instances() ? wall / 4 : wall / 20)
			TH_LOG("rank %d used %llu of %llu us", r,
			       (unsigned long long)used / 1000,
			       (unsigned long long)wall / 1000);
	}
	usleep(3000000);
	kill(ranks.pid[1], SIGKILL);
	EXPECT_TRUE(ranks_wait(&ranks, 30));
	EXPECT_TRUE(others_good(&ranks, 1));
}

/* -------------------------------------------------------------- crowded */

struct crowd {
	uint64_t slowest_ns;
	uint64_t total_ns;
};

static int crowd_rank(int rank, int n, void *arg)
{
	struct crowd *crowd = arg;
	hcommComm_t comm;
	cpu_set_t set;
	uint64_t data, start, began, took, slowest = 0;
	int i, rounds = test_instances() ? 50 : 2000;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	CPU_SET(1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	comm = ranks_join();
	OK(hcommBarrier(comm, NULL));
	began = test_now_ns();
	for (i = 0; i < rounds; i++) {
		data = (uint64_t)rank + i;
		start = test_now_ns();
		OK(hcommAllReduce(&data, &data, 1, HCOMM_UINT64, HCOMM_SUM,
				  comm, NULL));
		took = test_now_ns() - start;
		if (took > slowest)
			slowest = took;
		CHECK(data == (uint64_t)n * (n - 1) / 2 + (uint64_t)n * i,
		      "round %d: %llu", i, (unsigned long long)data);
	}
	if (!rank) {
		crowd->slowest_ns = slowest;
		crowd->total_ns = (test_now_ns() - began) / rounds;
	}
	OK(hcommFinalize());
	return 0;
}

TEST_F_TIMEOUT(failures, eight_ranks_on_two_cpus_do_not_spin, 1500)
{
	struct crowd *crowd = test_shared(sizeof(*crowd));

	EXPECT_TRUE(ranks_run(8, 250, crowd_rank, crowd));
	TH_LOG("8 B all-reduce: %llu us each, slowest %llu us",
	       (unsigned long long)crowd->total_ns / 1000,
	       (unsigned long long)crowd->slowest_ns / 1000);
	/* Spinning ranks need 12 ms each: a time slice per step. */
	if (!test_instances()) {
		EXPECT_LT(crowd->total_ns, 2 * MSEC);
	}
}

/* ---------------------------------------------------------------- abort */

static int aborts(int rank, int n, void *arg)
{
	struct scene *scene = arg;
	hcommComm_t comm = ranks_join();
	hcommResult_t res = HCOMM_SUCCESS;

	if (rank == scene->victim) {
		if (loop(comm, scene, &res, test_instances() ? 5 : 50))
			return 1;
		CHECK(!res, "%s", hcommCommGetLastError(comm));
		__atomic_store_n(&scene->event_ns, test_now_ns(),
				 __ATOMIC_SEQ_CST);
		OK(hcommCommAbort(comm));
		OK(hcommCommAbort(comm));
		CALL(HCOMM_ABORTED, hcommBarrier(comm, NULL));
		OK(hcommFinalize());
		return 0;
	}
	if (loop(comm, scene, &res, 1000000000))
		return 1;
	return learns(scene, comm, res, HCOMM_ABORTED);
}

TEST_F_TIMEOUT(failures, abort_ends_all_ranks, 600)
{
	EXPECT_TRUE(ranks_run(self->n, 50, aborts, new_scene(2, 3000)));
	EXPECT_TRUE(ranks_run(self->n, 50, aborts, new_scene(0, 100000)));
}

static void *abort_later(void *arg)
{
	usleep(100000);
	return (void *)(intptr_t)hcommCommAbort(arg);
}

/* Nobody comes; another thread of the waiting process gives up. */
static int aborts_itself(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	pthread_t thread;
	uint64_t data = 1, start = test_now_ns();
	void *res;

	if (rank) {
		/* Learns of it from its own call, late. */
		usleep(200000);
		CALL(HCOMM_ABORTED, hcommBarrier(comm, NULL));
		OK(hcommFinalize());
		return 0;
	}
	CHECK(!pthread_create(&thread, NULL, abort_later, comm), "no thread");
	CALL(HCOMM_ABORTED, hcommAllReduce(&data, &data, 1, HCOMM_UINT64,
					   HCOMM_SUM, comm, NULL));
	CHECK(test_now_ns() - start < 2 * SEC, "took too long");
	pthread_join(thread, &res);
	CHECK(!res, "abort failed");
	OK(hcommFinalize());
	return 0;
}

TEST_F_TIMEOUT(failures, another_thread_may_abort, 300)
{
	EXPECT_TRUE(ranks_run(self->n, 30, aborts_itself, NULL));
}

/* ------------------------------------------------------------- mismatch */

enum difference { COUNT, KIND, TYPE, OP, ROOT, SIZE_CLASS, HEAP, TWO_ROOTS,
		  NOBODY_WAITS, LEAVE, NR_DIFFERENCES };

static const char *const differences[] = {
	"count", "kind", "type", "reduction", "root", "size class", "heap",
	"root of a small broadcast", "call of which nobody waits",
	"destroy",
};

/* What no rank could see in the call itself is told by the next one. */
static hcommResult_t both_right(hcommResult_t res, hcommComm_t comm)
{
	return res ? res : hcommBarrier(comm, NULL);
}

static hcommResult_t differ(hcommComm_t comm, enum difference what, bool odd,
			    void *data)
{
	void *ptr;

	switch (what) {
	case COUNT:
		return hcommAllReduce(data, data, odd ? 8 : 9, HCOMM_FLOAT32,
				      HCOMM_SUM, comm, NULL);
	case KIND:
		return odd ? hcommBarrier(comm, NULL) :
			     hcommAllReduce(data, data, 8, HCOMM_FLOAT32,
					    HCOMM_SUM, comm, NULL);
	case TYPE:
		return hcommAllReduce(data, data, 8, odd ? HCOMM_FLOAT32 :
				      HCOMM_INT32, HCOMM_SUM, comm, NULL);
	case OP:
		return hcommAllReduce(data, data, 8, HCOMM_FLOAT32, odd ?
				      HCOMM_MAX : HCOMM_SUM, comm, NULL);
	case ROOT:
		return hcommBroadcast(data, data, 4000, HCOMM_FLOAT32, odd,
				      comm, NULL);
	case SIZE_CLASS:
		return hcommAllReduce(data, data, odd ? 8 : 20000,
				      HCOMM_FLOAT32, HCOMM_SUM, comm, NULL);
	case HEAP:
		hcommSymAlloc(comm, &ptr, odd ? 4096 : 8192);
		return hcommBarrier(comm, NULL);
	case TWO_ROOTS:
		return both_right(hcommBroadcast(data, data, 1, HCOMM_FLOAT32,
						 odd, comm, NULL), comm);
	case NOBODY_WAITS:
		return both_right(odd ?
			hcommReduce(data, data, 1, HCOMM_FLOAT32, HCOMM_SUM, 0,
				    comm, NULL) :
			hcommBroadcast(data, data, 1, HCOMM_FLOAT32, 0, comm,
				       NULL), comm);
	default:
		return hcommBarrier(comm, NULL);
	}
}

static int mismatches(int rank, int n, void *arg)
{
	enum difference what = *(enum difference *)arg;
	hcommComm_t comm = ranks_join();
	void *data = calloc(20000, 4);
	hcommResult_t res;
	uint64_t start;

	/* The failure may overtake the end of this on a slow rank. */
	res = hcommBarrier(comm, NULL);
	start = test_now_ns();
	if (what == LEAVE && rank == 1) {
		free(data);
		OK(hcommFinalize());
		return 0;
	}
	if (!res)
		res = differ(comm, what, rank == 1, data);
	CHECK(res == HCOMM_MISMATCH, "%s: %s", hcommGetErrorName(res),
	      hcommCommGetLastError(comm));
	CHECK(test_now_ns() - start < 2 * SEC * test_patience(), "found after %.3f s",
	      (double)(test_now_ns() - start) / 1e9);
	/* Inside one instance the next call is the one that fails. */
	CHECK((what != TWO_ROOTS && what != NOBODY_WAITS) ||
	      test_instances() ||
	      strstr(hcommCommGetLastError(comm), "as operation 2") ||
	      strstr(hcommCommGetLastError(comm), "different calls"), "%s",
	      hcommCommGetLastError(comm));
	CHECK(names(hcommCommGetLastError(comm), 1) ||
	      strstr(hcommCommGetLastError(comm), "different calls"), "%s",
	      hcommCommGetLastError(comm));
	OK(hcommFinalize());
	free(data);
	return 0;
}

TEST_F_TIMEOUT(failures, different_calls_are_named, 600)
{
	enum difference *what = test_shared(sizeof(*what));
	int d;

	/* Ranks 0 and 1 are on one instance with up to two of them. */
	if (test_instances() > 2)
		SKIP(return, "compared inside an instance only");
	for (d = 0; d < NR_DIFFERENCES; d++) {
		*what = d;
		EXPECT_TRUE(ranks_run(self->n, 30, mismatches, what))
			TH_LOG("different %s", differences[d]);
	}
}

static int mismatch_at_last(int rank, int n, void *file)
{
	hcommComm_t comm;
	char level[80];

	snprintf(level, sizeof(level), "WARN:%s", (char *)file);
	setenv("HCOMM_DEBUG", level, 1);
	comm = ranks_join();
	OK(hcommBroadcast(&n, &n, 1, HCOMM_INT32, rank, comm, NULL));
	OK(hcommFinalize());
	return 0;
}

TEST_F_TIMEOUT(failures, different_last_calls_are_logged, 300)
{
	char file[] = "/tmp/hcomm-test-XXXXXX", text[2048];
	int fd = mkstemp(file);
	ssize_t got;

	if (test_instances())
		SKIP(return, "ranks of several instances meet in a broadcast");
	ASSERT_LE(0, fd);
	EXPECT_TRUE(ranks_run(2, 30, mismatch_at_last, file));
	got = read(fd, text, sizeof(text) - 1);
	ASSERT_LT(0, got);
	text[got] = 0;
	EXPECT_NE(NULL, strstr(text, "root 1) as operation 1"))
		TH_LOG("%s", text);
	close(fd);
	unlink(file);
}

/* ------------------------------------------------------------- processes */

static int child_is_refused(hcommComm_t comm)
{
	hcommUniqueId id;
	uint64_t data = 1;
	int version;

	CALL(HCOMM_INVALID_USAGE, hcommAllReduce(&data, &data, 1, HCOMM_UINT64,
						 HCOMM_SUM, comm, NULL));
	CALL(HCOMM_INVALID_USAGE, hcommInit());
	CALL(HCOMM_INVALID_USAGE, hcommGetUniqueId(&id));
	CALL(HCOMM_INVALID_USAGE, hcommCommDestroy(comm));
	CALL(HCOMM_INVALID_USAGE, hcommGroupStart());
	OK(hcommGetVersion(&version));
	CHECK(strstr(hcommCommGetLastError(NULL), "fork"), "%s",
	      hcommCommGetLastError(NULL));
	return 0;
}

static int forks(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	uint64_t data = 1;
	pid_t child;
	int status, i;

	for (i = 0; i < 3; i++) {
		child = fork();
		if (!child)
			_exit(child_is_refused(comm));
		/* The child's life and end change nothing for the group. */
		data = 1;
		OK(hcommAllReduce(&data, &data, 1, HCOMM_UINT64, HCOMM_SUM,
				  comm, NULL));
		CHECK(data == (uint64_t)n, "wrong sum");
		CHECK(waitpid(child, &status, 0) == child && !status,
		      "the child saw something else: %d", status);
	}
	OK(hcommBarrier(comm, NULL));
	OK(hcommFinalize());
	return 0;
}

TEST_F_TIMEOUT(failures, forked_child_is_refused_and_harmless, 300)
{
	EXPECT_TRUE(ranks_run(self->n, 30, forks, NULL));
}

static void *second_thread(void *arg)
{
	uint64_t data = 1;

	usleep(50000);
	return (void *)(intptr_t)hcommAllReduce(&data, &data, 1, HCOMM_UINT64,
						HCOMM_SUM, arg, NULL);
}

static int two_threads(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();
	pthread_t thread;
	void *res;

	if (!rank) {
		CHECK(!pthread_create(&thread, NULL, second_thread, comm),
		      "no thread");
		OK(hcommBarrier(comm, NULL));
		pthread_join(thread, &res);
		CHECK((intptr_t)res == HCOMM_INVALID_USAGE, "got %d",
		      (int)(intptr_t)res);
	} else {
		usleep(300000);
		OK(hcommBarrier(comm, NULL));
	}
	OK(hcommFinalize());
	return 0;
}

TEST_F_TIMEOUT(failures, second_thread_is_refused, 300)
{
	EXPECT_TRUE(ranks_run(2, 30, two_threads, NULL));
}

TEST_HARNESS_MAIN
