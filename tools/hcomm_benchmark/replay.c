// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A model's gradients as a training step sends them: bucket after bucket, all
 * in place in the first bytes of one buffer. A bucket is filled, then a
 * barrier brings the ranks together, then the all-reduce is timed, then its
 * result is checked.
 */
#include <stdlib.h>

#include "run.h"

struct replay {
	struct bench_run *run;
	struct bench_case what;
	struct bench_buckets buckets;
	struct bench_sample *samples;	/* of each bucket, this rank's */
};

static bool time_bucket(struct replay *replay, struct bench_sample *sample)
{
	struct bench_run *run = replay->run;
	struct bench_call call = bench_call_of(run, &replay->what);
	struct bench_pattern pattern = {
		call.type, call.redop, call.nranks, ++run->iteration,
	};
	struct bench_wrong wrong = {};
	hcommResult_t result;
	double start;

	bench_pattern_fill(&pattern, run->rank, 0, call.count, call.recv);
	result = hcommBarrier(run->comm, NULL);
	start = bench_now_us();
	if (result == HCOMM_SUCCESS)
		result = call.op->run(&call);
	sample->time_us += bench_now_us() - start;
	if (result != HCOMM_SUCCESS)
		return bench_call_failed(run, &replay->what, result);
	if (!run->args->checks)
		return true;
	bench_pattern_check(&pattern, BENCH_ALL_RANKS, 0, call.count,
			    call.recv, 0, &wrong);
	sample->checked = true;
	sample->wrong += wrong.count;
	return true;
}

static bool report_bucket(struct replay *replay, int bucket)
{
	struct bench_run *run = replay->run;
	struct bench_case *what = &replay->what;
	struct bench_sample *sample = &replay->samples[bucket];
	struct bench_row row = {
		.op = what->op,
		.type = what->type,
		.redop = what->redop,
		.memory = bench_memory_names[what->memory],
		.root = -1,
		.bucket = bucket,
		.bytes = what->count * what->type->size,
		.count = what->count,
		.nranks = run->nranks,
	};

	sample->time_us /= run->args->iterations;
	if (!bench_combine(run, what, sample))
		return false;
	row.in_place = *sample;
	if (!run->report)
		return true;
	run->report->model.time_us += sample->time_us;
	bench_report_row(run->report, &row);
	return true;
}

static bool replay_pass(struct replay *replay, bool last)
{
	for (size_t i = 0; i < replay->buckets.count; i++) {
		replay->what.count = replay->buckets.elements[i];
		if (!time_bucket(replay, &replay->samples[i]))
			return false;
		if (last && !report_bucket(replay, i))
			return false;
	}
	return true;
}

static bool replay_passes(struct replay *replay)
{
	const struct bench_args *args = replay->run->args;

	for (int pass = 0; pass < args->warmups; pass++)
		if (!replay_pass(replay, false))
			return false;
	for (size_t i = 0; i < replay->buckets.count; i++)
		replay->samples[i].time_us = 0;
	for (int pass = 1; pass <= args->iterations; pass++)
		if (!replay_pass(replay, pass == args->iterations))
			return false;
	return true;
}

static int first_of(const bool *chosen)
{
	int i = 0;

	while (!chosen[i])
		i++;
	return i;
}

static void report_model(struct replay *replay)
{
	struct bench_report *report = replay->run->report;

	report->model.elements = replay->buckets.total;
	report->model.buckets = replay->buckets.count;
	report->model.limited = replay->buckets.limited;
	bench_report_op(report, replay->what.op);
}

bool bench_replay(struct bench_run *run)
{
	const struct bench_args *args = run->args;
	struct replay replay = {
		.run = run,
		.what = {
			.op = bench_op_find("all_reduce"),
			.type = &bench_types[first_of(args->types)],
			.redop = &bench_redops[first_of(args->redops)],
			.memory = first_of(args->memories),
			.root = -1,
			.in_place = true,
		},
	};
	bool ok;

	if (!bench_buckets_get(&replay.buckets, args->model,
			       replay.what.type->size, BENCH_BUCKET_BYTES,
			       args->model_limit))
		return bench_failed(run, "out of memory");
	if (run->report)
		report_model(&replay);
	replay.samples = calloc(replay.buckets.count + 1,
				sizeof(*replay.samples));
	ok = replay.samples ? replay_passes(&replay) : bench_failed(run, "out of memory");
	free(replay.samples);
	bench_buckets_put(&replay.buckets);
	return ok;
}
