// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Every collective gives every rank the right bytes: all types and
 * reductions, counts around every threshold, in place and not, in the heap,
 * outside it and mixed, any root, any number of ranks. Bytes around the
 * result are checked too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "ranks.h"
#include "values.h"

#define GUARD		64
#define GUARD_BYTE	0xa5
#define AREA		((size_t)3 << 19)

enum coll { ALLREDUCE, BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, NR_COLLS };

static const char *const coll_names[] = {
	"all-reduce", "broadcast", "reduce", "all-gather", "reduce-scatter",
};

enum place { HEAP, PRIVATE, MIXED, NR_PLACES };

/* Buffers of one rank, made once. */
struct world {
	hcommComm_t comm;
	int rank;
	int n;
	char *heap[2];
	char *private[2];
	char *expected;
};

struct job {
	enum coll coll;
	size_t count;
	hcommDataType_t type;
	hcommRedOp_t op;
	int root;
	enum place place;
	bool in_place;
	size_t shift;		/* elements that the buffers are moved by */
};

static int open_world(struct world *w, int rank, int n)
{
	void *ptr;
	int i;

	w->comm = ranks_join();
	w->rank = rank;
	w->n = n;
	for (i = 0; i < 2; i++) {
		OK(hcommAllocAligned(w->comm, &ptr, AREA, 4096));
		w->heap[i] = ptr;
		w->private[i] = aligned_alloc(4096, AREA);
		CHECK(w->private[i], "no memory");
	}
	w->expected = malloc(AREA);
	CHECK(w->expected, "no memory");
	return 0;
}

static int close_world(struct world *w)
{
	free(w->private[0]);
	free(w->private[1]);
	free(w->expected);
	OK(hcommFinalize());
	return 0;
}

static char *buffer(struct world *w, const struct job *job, int which)
{
	bool heap = job->place == HEAP ||
		    (job->place == MIXED && (w->rank + which) % 2);

	return (heap ? w->heap : w->private)[which] + GUARD +
	       job->shift * hcommTypeSize(job->type);
}

static size_t in_count(const struct world *w, const struct job *job)
{
	return job->coll == REDUCESCATTER ? job->count * w->n : job->count;
}

static size_t out_count(const struct world *w, const struct job *job)
{
	return job->coll == ALLGATHER ? job->count * w->n : job->count;
}

static void fill_expected(struct world *w, const struct job *job)
{
	size_t size = hcommTypeSize(job->type), i;
	size_t first = job->coll == REDUCESCATTER ? w->rank * job->count : 0;

	for (i = 0; i < out_count(w, job); i++) {
		char *at = w->expected + i * size;

		switch (job->coll) {
		case BROADCAST:
			values_store(at, job->type, job->op, job->root, i);
			break;
		case ALLGATHER:
			values_store(at, job->type, job->op,
				     (int)(i / job->count), i % job->count);
			break;
		default:
			values_reduced(at, job->type, job->op, w->n, first + i);
		}
	}
}

static hcommResult_t run(struct world *w, const struct job *job,
			 const void *in, void *out)
{
	switch (job->coll) {
	case ALLREDUCE:
		return hcommAllReduce(in, out, job->count, job->type, job->op,
				      w->comm, NULL);
	case BROADCAST:
		return hcommBroadcast(in, out, job->count, job->type, job->root,
				      w->comm, NULL);
	case REDUCE:
		return hcommReduce(in, out, job->count, job->type, job->op,
				   job->root, w->comm, NULL);
	case ALLGATHER:
		return hcommAllGather(in, out, job->count, job->type, w->comm,
				      NULL);
	default:
		return hcommReduceScatter(in, out, job->count, job->type,
					  job->op, w->comm, NULL);
	}
}

static int compare(struct world *w, const struct job *job, const char *out)
{
	size_t size = hcommTypeSize(job->type), i;
	size_t bytes = out_count(w, job) * size;

	for (i = 0; i < bytes && out[i] == w->expected[i]; i++)
		;
	CHECK(i == bytes, "%s of %zu %s, %s, root %d, %s, place %d, shift %zu: "
	      "element %zu is wrong", coll_names[job->coll], job->count,
	      hcommTypeName(job->type), hcommRedOpName(job->op), job->root,
	      job->in_place ? "in place" : "out of place", job->place,
	      job->shift, i / size);
	return 0;
}

static int check_guard(const struct job *job, const char *out, size_t bytes)
{
	int i;

	for (i = 1; i <= GUARD; i++)
		CHECK((uint8_t)out[-i] == GUARD_BYTE &&
		      (uint8_t)out[bytes + i - 1] == GUARD_BYTE,
		      "%s of %zu %s: bytes beside the result were written",
		      coll_names[job->coll], job->count,
		      hcommTypeName(job->type));
	return 0;
}

/* Where in the larger buffer the smaller one is, in place. */
static size_t inner(const struct world *w, const struct job *job)
{
	if (job->coll != ALLGATHER && job->coll != REDUCESCATTER)
		return 0;
	return w->rank * job->count * hcommTypeSize(job->type);
}

static int run_job(struct world *w, const struct job *job)
{
	size_t size = hcommTypeSize(job->type), i;
	size_t in_bytes = in_count(w, job) * size;
	size_t out_bytes = out_count(w, job) * size;
	size_t larger = in_bytes > out_bytes ? in_bytes : out_bytes;
	char *in = buffer(w, job, 0), *out = buffer(w, job, 1);

	CHECK(larger + 4 * GUARD < AREA, "the test's buffers are too small");
	if (job->in_place) {
		in = out;
		if (job->coll == ALLGATHER)
			in += inner(w, job);
		if (job->coll == REDUCESCATTER)
			out += inner(w, job);
	}
	/* Only what lies around both is guarded in place. */
	memset((in < out || !job->in_place ? in : out) - GUARD, GUARD_BYTE,
	       job->in_place ? larger + 2 * GUARD : in_bytes);
	if (!job->in_place)
		memset(out - GUARD, GUARD_BYTE, out_bytes + 2 * GUARD);
	for (i = 0; i < in_count(w, job); i++)
		values_store(in + i * size, job->type, job->op, w->rank, i);

	OK(run(w, job, in, out));

	if (job->coll == REDUCE && w->rank != job->root)
		return 0;
	fill_expected(w, job);
	if (compare(w, job, out))
		return 1;
	if (job->in_place && job->coll == REDUCESCATTER)
		return 0;
	return check_guard(job, out, out_bytes);
}

/* ------------------------------------------------------ what is combined */

static const size_t type_counts[] = { 1, 37, 1500 };

/* All types, all reductions. */
static int all_types(int rank, int n, void *arg)
{
	struct world w;
	struct job job = { .root = n / 2 };
	size_t c;
	int type, op;

	if (open_world(&w, rank, n))
		return 1;
	for (type = 0; type < HCOMM_NR_TYPES; type++) {
		for (op = 0; op < HCOMM_NR_REDOPS; op++) {
			job.type = type;
			job.op = op;
			if (!values_defined(type, op))
				continue;
			for (c = 0; c < 3; c++) {
				job.count = type_counts[c];
				job.place = (type + op + c) % NR_PLACES;
				job.in_place = (type + op) % 2;
				job.coll = ALLREDUCE;
				if (run_job(&w, &job))
					return 1;
				job.coll = c % 2 ? REDUCESCATTER : REDUCE;
				if (run_job(&w, &job))
					return 1;
			}
		}
	}
	return close_world(&w);
}

static const size_t counts[] = {
	0, 1, 2, 5, 13, 14, 15, 16, 17, 255, 257, 1023, 1024, 1025, 4099,
	16385, 65537, 70001, 140003, 300007,
};

#define NR_COUNTS	(sizeof(counts) / sizeof(counts[0]))

struct sweep {
	size_t counts;		/* how many of them */
	size_t step;
	int places;		/* at each, of those that take turns */
};

static int sweep_roots(struct world *w, struct job *job)
{
	bool rooted = job->coll == BROADCAST || job->coll == REDUCE;
	int roots[] = { 0, w->n - 1, w->n / 2 };
	int i;

	for (i = 0; i < (rooted && w->n > 1 ? 3 : 1); i++) {
		job->root = roots[i];
		if (run_job(w, job))
			return 1;
	}
	return 0;
}

/* Every collective at every count, place and kind of in place. */
static int all_shapes(int rank, int n, void *arg)
{
	const struct sweep *sweep = arg;
	struct job job = { .type = HCOMM_FLOAT32, .op = HCOMM_SUM };
	struct world w;
	int coll, place, in_place;
	size_t c, largest;

	if (open_world(&w, rank, n))
		return 1;
	for (c = 0; c < sweep->counts; c += sweep->step) {
		for (coll = 0; coll < NR_COLLS; coll++) {
			job.coll = coll;
			job.count = counts[c];
			largest = AREA / 5 / (coll >= ALLGATHER ? n : 1);
			if (job.count > largest)
				job.count = largest;
			for (place = 0; place < sweep->places; place++) {
				job.place = (c + coll + place) % NR_PLACES;
				job.shift = (c + place) % 3;
				for (in_place = 0; in_place < 2; in_place++) {
					job.in_place = in_place;
					if (sweep_roots(&w, &job))
						return 1;
				}
			}
		}
		OK(hcommBarrier(w.comm, NULL));
	}
	return close_world(&w);
}

/* Roots run ahead of readers, and a reader lags. */
static int broadcast_storm(int rank, int n, void *arg)
{
	struct world w;
	uint64_t *data;
	int i, k;

	if (open_world(&w, rank, n))
		return 1;
	data = (uint64_t *)w.private[0];
	for (i = 0; i < (test_instances() > 1 ? 100 : 2000); i++) {
		size_t count = i % 3 ? 3 : 300;
		int root = i % 50 < 40 ? 0 : i % n;

		for (k = 0; k < (int)count; k++)
			data[k] = rank == root ? (uint64_t)i * 1000 + k : 0;
		OK(hcommBroadcast(data, data, count, HCOMM_UINT64, root,
				  w.comm, NULL));
		for (k = 0; k < (int)count; k++)
			CHECK(data[k] == (uint64_t)i * 1000 + k,
			      "round %d element %d is %llu", i, k,
			      (unsigned long long)data[k]);
		if (rank == n - 1 && i % 100 == 0)
			usleep(500);
	}
	return close_world(&w);
}

/* A barrier holds everybody until the last one comes. */
static int barrier_holds(int rank, int n, void *arg)
{
	volatile int *entered = arg;
	hcommComm_t comm = ranks_join();
	int i;

	for (i = 0; i < (test_instances() > 1 ? 10 : 50); i++) {
		if (rank == i % n)
			usleep(1000);
		__atomic_add_fetch(&entered[i], 1, __ATOMIC_SEQ_CST);
		OK(hcommBarrier(comm, NULL));
		CHECK(entered[i] == n, "barrier %d ended when %d of %d were in",
		      i, entered[i], n);
	}
	OK(hcommFinalize());
	return 0;
}

static int pace(void)
{
	return test_instances() ? 3 : 1;
}

FIXTURE(ranks) {
	int none;
};

FIXTURE_SETUP(ranks) {}
FIXTURE_TEARDOWN(ranks) {}

TEST_F_TIMEOUT(ranks, every_type_and_reduction, 1200)
{
	static const int ns[] = { 2, 5, 1, 3, 8, 16 };
	int i, many = test_effort() == 1 ? 2 : test_effort() == 2 ? 4 : 6;

	if (pace() > 1 && many > 2)
		many = 2;

	for (i = 0; i < many; i++) {
		if (!test_possible(ns[i]))
			continue;
		EXPECT_TRUE(ranks_run(ns[i], 120 * pace(), all_types,
				      NULL))
			TH_LOG("with %d ranks", ns[i]);
	}
}

TEST_F_TIMEOUT(ranks, every_size_place_and_root, 1200)
{
	static const int quick[] = { 4, 2, 3 };
	struct sweep sweep = { NR_COUNTS, pace(), 4 - pace() };
	int i;

	for (i = 0; i < 4 - pace(); i++) {
		if (!test_possible(quick[i]))
			continue;
		EXPECT_TRUE(ranks_run(quick[i], 200 * pace(),
				      all_shapes, &sweep))
			TH_LOG("with %d ranks", quick[i]);
	}
}

TEST_F_TIMEOUT(ranks, every_number_of_ranks, 1200)
{
	struct sweep sweep = {
		test_effort() == 3 ? NR_COUNTS : 14, pace(), 4 - pace(),
	};
	int n, step = test_effort() == 1 ? 5 : test_effort() == 2 ? 2 : 1;

	step *= pace();
	for (n = 1; n <= 16; n += step) {
		if (!test_possible(n))
			continue;
		EXPECT_TRUE(ranks_run(n, 200 * pace(), all_shapes,
				      &sweep))
			TH_LOG("with %d ranks", n);
	}
}

TEST_F_TIMEOUT(ranks, roots_that_run_ahead, 1200)
{
	EXPECT_TRUE(ranks_run(4, 60 * pace(), broadcast_storm, NULL));
}

TEST_F_TIMEOUT(ranks, barrier_holds_until_all_are_there, 1200)
{
	int *entered = test_shared(4096);

	EXPECT_TRUE(ranks_run(4, 60 * pace(), barrier_holds, entered));
}

TEST_HARNESS_MAIN
