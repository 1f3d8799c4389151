// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One row: first checked calls, each with data of its own, then timed calls
 * on what the last check left in the buffers.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "run.h"

#define POISON	0xa5

double bench_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

bool bench_failed(struct bench_run *run, const char *format, ...)
{
	va_list ap;
	int at;

	at = snprintf(run->error, sizeof(run->error), "rank %d: ", run->rank);
	va_start(ap, format);
	vsnprintf(run->error + at, sizeof(run->error) - at, format, ap);
	va_end(ap);
	fprintf(stderr, "hcomm_benchmark: %s\n", run->error);
	return false;
}

/* The library begins its texts with the rank, as bench_failed() does. */
static const char *without_rank(const struct bench_run *run, const char *text)
{
	char rank[32];
	int length = snprintf(rank, sizeof(rank), "rank %d: ", run->rank);

	return strncmp(text, rank, length) ? text : text + length;
}

bool bench_refused(struct bench_run *run, const char *doing,
		   hcommResult_t result)
{
	const char *text = without_rank(run, hcommCommGetLastError(run->comm));

	return bench_failed(run, "%s: %s: %s", doing,
			    hcommGetErrorName(result),
			    *text ? text : hcommGetErrorString(result));
}

static void describe(const struct bench_run *run,
		     const struct bench_case *what, char *to, size_t room)
{
	size_t elements = bench_op_elements(what->op, what->count,
					    run->nranks);
	int at = snprintf(to, room, "%s", what->op->name);

	if (!what->op->moves)
		return;
	snprintf(to + at, room - at, " of %zu bytes (%s%s%s, %s, %s)",
		 elements * what->type->size, what->type->name,
		 what->redop ? ", " : "", what->redop ? what->redop->name : "",
		 what->in_place ? "in place" : "out of place",
		 bench_memory_names[what->memory]);
}

bool bench_call_failed(struct bench_run *run, const struct bench_case *what,
		       hcommResult_t result)
{
	char call[160];

	describe(run, what, call, sizeof(call));
	return bench_refused(run, call, result);
}

static char *own_block(const struct bench_run *run,
		       const struct bench_case *what, char *buffer)
{
	return buffer + run->rank * what->count * what->type->size;
}

struct bench_call bench_call_of(const struct bench_run *run,
				const struct bench_case *what)
{
	const struct bench_buffers *buffers = &run->buffers[what->memory];
	struct bench_call call = {
		.op = what->op,
		.type = what->type,
		.redop = what->redop,
		.root = what->root,
		.rank = run->rank,
		.nranks = run->nranks,
		.count = what->count,
		.send = buffers->send,
		.recv = buffers->recv,
		.comm = run->comm,
	};

	if (!what->in_place)
		return call;
	if (what->op->send_all)
		call.recv = own_block(run, what, buffers->send);
	else if (what->op->recv_all)
		call.send = own_block(run, what, buffers->recv);
	else
		call.send = call.recv;
	return call;
}

static size_t recv_bytes(const struct bench_call *call)
{
	return bench_op_recv_blocks(call->op, call->nranks) * call->count *
	       call->type->size;
}

static void check_blocks(const struct bench_call *call,
			 const struct bench_pattern *pattern,
			 struct bench_wrong *wrong)
{
	int blocks = bench_op_recv_blocks(call->op, call->nranks);
	size_t first = call->op->send_all ? call->rank * call->count : 0;
	const char *from = call->recv;

	for (int block = 0; block < blocks; block++) {
		bench_pattern_check(pattern, call->op->source(call, block),
				    first, call->count, from,
				    block * call->count, wrong);
		from += call->count * call->type->size;
	}
}

static const char *hex(char *to, const unsigned char *bytes, unsigned int size)
{
	int at = 0;

	while (size--)
		at += sprintf(to + at, "%02x", bytes[size]);
	return to;
}

/* An element as one number, most significant byte first. */
static void tell_wrong(const struct bench_run *run,
		       const struct bench_case *what,
		       const struct bench_wrong *wrong)
{
	unsigned int size = what->type->size;
	char call[160], got[17], want[17];

	describe(run, what, call, sizeof(call));
	fprintf(stderr,
		"hcomm_benchmark: rank %d: %s: %llu elements are wrong, the first is number %zu: 0x%s instead of 0x%s\n",
		run->rank, call, (unsigned long long)wrong->count,
		wrong->index, hex(got, wrong->got, size),
		hex(want, wrong->want, size));
}

static bool check_data(struct bench_run *run, const struct bench_case *what,
		       struct bench_sample *sample)
{
	const struct bench_buffers *buffers = &run->buffers[what->memory];
	struct bench_call call = bench_call_of(run, what);
	struct bench_pattern pattern = {
		what->type, what->redop, run->nranks, ++run->iteration,
	};
	bool guarded = call.recv == buffers->recv;
	struct bench_wrong wrong = {};
	hcommResult_t result;

	memset(call.recv, POISON, recv_bytes(&call));
	if (guarded)
		bench_guard_set(buffers, recv_bytes(&call));
	bench_pattern_fill(&pattern, run->rank, 0,
			   bench_op_send_blocks(call.op, call.nranks) *
				   call.count,
			   (void *)call.send);
	sample->checked = true;
	result = what->op->run(&call);
	if (result != HCOMM_SUCCESS)
		return bench_call_failed(run, what, result);
	if (bench_call_receives(&call))
		check_blocks(&call, &pattern, &wrong);
	if (wrong.count)
		tell_wrong(run, what, &wrong);
	sample->wrong += wrong.count;
	if (guarded)
		sample->outside += bench_guard_check(buffers,
						     recv_bytes(&call));
	return true;
}

/* After a barrier the ranks of this node are seen to have come to it. */
static bool check_barrier(struct bench_run *run, const struct bench_case *what,
			  struct bench_sample *sample)
{
	_Atomic uint64_t *arrived = run->shared->arrived;
	struct bench_call call = bench_call_of(run, what);
	hcommResult_t result;

	sample->checked = run->args->local_ranks > 1;
	run->iteration++;
	atomic_store(&arrived[run->local], run->iteration);
	result = what->op->run(&call);
	if (result != HCOMM_SUCCESS)
		return bench_call_failed(run, what, result);
	for (int i = 0; i < run->args->local_ranks; i++)
		if (atomic_load(&arrived[i]) < run->iteration)
			sample->wrong++;
	return true;
}

bool bench_check(struct bench_run *run, const struct bench_case *what,
		 struct bench_sample *sample)
{
	return what->op->moves ? check_data(run, what, sample) :
				 check_barrier(run, what, sample);
}

static bool time_calls(struct bench_run *run, const struct bench_case *what,
		       struct bench_sample *sample)
{
	struct bench_call call = bench_call_of(run, what);
	const struct bench_args *args = run->args;
	hcommResult_t result = HCOMM_SUCCESS;
	double start;

	for (int i = 0; i < args->warmups && result == HCOMM_SUCCESS; i++)
		result = what->op->run(&call);
	if (result == HCOMM_SUCCESS)
		result = hcommBarrier(run->comm, NULL);
	start = bench_now_us();
	for (int i = 0; i < args->iterations && result == HCOMM_SUCCESS; i++)
		result = what->op->run(&call);
	sample->time_us = (bench_now_us() - start) / args->iterations;
	return result == HCOMM_SUCCESS || bench_call_failed(run, what, result);
}

static void set_bandwidths(const struct bench_run *run,
			   const struct bench_case *what,
			   struct bench_sample *sample)
{
	size_t elements = bench_op_elements(what->op, what->count,
					    run->nranks);

	if (!what->op->moves || sample->time_us <= 0)
		return;
	sample->algbw = elements * what->type->size / sample->time_us / 1e3;
	sample->busbw = sample->algbw * what->op->factor(run->nranks);
}

/* What ranks tell each other; whole numbers, so that nothing is rounded. */
enum { SHARE_NS, SHARE_WRONG, SHARE_OUTSIDE, SHARES };

static bool share(struct bench_run *run, const uint64_t *own, uint64_t *all)
{
	hcommResult_t result = hcommAllGather(own, all, SHARES, HCOMM_UINT64,
					      run->comm, NULL);

	return result == HCOMM_SUCCESS ||
	       bench_refused(run, "gathering results", result);
}

bool bench_combine(struct bench_run *run, const struct bench_case *what,
		   struct bench_sample *sample)
{
	uint64_t own[SHARES] = {
		[SHARE_NS] = sample->time_us * 1e3,
		[SHARE_WRONG] = sample->wrong,
		[SHARE_OUTSIDE] = sample->outside,
	};
	uint64_t *all = calloc(run->nranks, sizeof(own));
	bool ok = all ? share(run, own, all) :
			bench_failed(run, "out of memory");
	double sum = 0;

	run->wrong += sample->wrong + sample->outside;
	sample->wrong = 0;
	sample->outside = 0;
	for (int rank = 0; ok && rank < run->nranks; rank++) {
		sum += all[rank * SHARES + SHARE_NS] / 1e3;
		sample->wrong += all[rank * SHARES + SHARE_WRONG];
		sample->outside += all[rank * SHARES + SHARE_OUTSIDE];
	}
	free(all);
	sample->time_us = sum / run->nranks;
	sample->measured = true;
	set_bandwidths(run, what, sample);
	return ok;
}

bool bench_measure(struct bench_run *run, const struct bench_case *what,
		   struct bench_sample *sample)
{
	for (int i = 0; i < run->args->checks; i++)
		if (!bench_check(run, what, sample))
			return false;
	return time_calls(run, what, sample) &&
	       bench_combine(run, what, sample);
}
