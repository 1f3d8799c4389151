// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Joins, tells the others who it is, measures, leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rank.h"

bool bench_root_exists(const struct bench_args *args, int nranks)
{
	if (args->root < nranks)
		return true;
	fprintf(stderr, "hcomm_benchmark: -r %d: there are ranks 0 to %d\n",
		args->root, nranks - 1);
	return false;
}

/* HCOMM_HEAP_SIZE of the user is left alone. */
static void size_heap(size_t bytes)
{
	size_t want = bench_buffers_heap(bytes);
	char text[32];

	if (want <= HCOMM_MB(64))
		return;
	snprintf(text, sizeof(text), "%zu", want);
	setenv("HCOMM_HEAP_SIZE", text, 0);
}

static size_t largest_buffer(const struct bench_args *args)
{
	return args->model ? BENCH_BUCKET_BYTES : args->max_bytes;
}

static bool join(struct bench_run *run, hcommCommInfo_t *info)
{
	const char *rank = getenv("HCOMM_RANK");
	hcommResult_t result;

	if (rank)
		run->rank = atoi(rank);
	if (run->args->memories[BENCH_HEAP])
		size_heap(largest_buffer(run->args));
	result = hcommInit();
	if (result == HCOMM_NOT_SUPPORTED && run->args->ninstances)
		return bench_refused(run, "joining the group (--instances needs the module)",
				     result);
	if (result != HCOMM_SUCCESS)
		return bench_refused(run, "joining the group", result);
	result = hcommCommDefault(&run->comm);
	if (result == HCOMM_SUCCESS)
		result = hcommCommGetInfo(run->comm, info);
	if (result != HCOMM_SUCCESS)
		return bench_refused(run, "asking about the group", result);
	run->rank = info->rank;
	run->nranks = info->nranks;
	return true;
}

static bool get_buffers(struct bench_run *run)
{
	size_t bytes = largest_buffer(run->args);

	for (int i = 0; i < BENCH_NR_MEMORIES; i++) {
		char doing[80];
		hcommResult_t result;

		if (!run->args->memories[i])
			continue;
		result = bench_buffers_get(&run->buffers[i], i, bytes,
					   run->comm);
		if (result == HCOMM_SUCCESS)
			continue;
		snprintf(doing, sizeof(doing),
			 "two %s buffers of %zu bytes", bench_memory_names[i],
			 bytes);
		return bench_refused(run, doing, result);
	}
	return true;
}

static void put_buffers(struct bench_run *run)
{
	for (int i = 0; i < BENCH_NR_MEMORIES; i++)
		if (run->args->memories[i])
			bench_buffers_put(&run->buffers[i], i, run->comm);
}

/* Text that another process wrote. */
static void clean(char *text, size_t room)
{
	text[room - 1] = '\0';
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

static bool gather_infos(struct bench_run *run, const hcommCommInfo_t *comm,
			 struct bench_rank_info *all)
{
	struct bench_rank_info own = {
		.pid = getpid(),
		.rank = run->rank,
	};
	hcommResult_t result;

	gethostname(own.host, sizeof(own.host) - 1);
	memcpy(own.device, comm->device, sizeof(own.device));
	memcpy(own.transport, comm->transport, sizeof(own.transport));
	result = hcommAllGather(&own, all, sizeof(own), HCOMM_UINT8, run->comm,
				NULL);
	if (result != HCOMM_SUCCESS)
		return bench_refused(run, "gathering the ranks' names", result);
	for (int i = 0; i < run->nranks; i++) {
		clean(all[i].host, sizeof(all[i].host));
		clean(all[i].device, sizeof(all[i].device));
		clean(all[i].transport, sizeof(all[i].transport));
	}
	return true;
}

static bool introduce(struct bench_run *run, const hcommCommInfo_t *comm)
{
	struct bench_rank_info *all = calloc(run->nranks, sizeof(*all));

	if (!all)
		return bench_failed(run, "out of memory");
	if (!gather_infos(run, comm, all)) {
		free(all);
		return false;
	}
	if (!run->report) {
		free(all);
		return true;
	}
	run->report->group = (struct bench_group_info){
		.nranks = run->nranks,
		.ninstances = comm->ninstances,
		.authenticated = comm->authenticated,
		.ranks = all,
	};
	bench_report_begin(run->report);
	return true;
}

static bool work(struct bench_run *run, const hcommCommInfo_t *comm)
{
	bool ok;

	if (!introduce(run, comm) || !get_buffers(run))
		return false;
	ok = run->args->model ? bench_replay(run) : bench_sweep(run);
	if (ok)
		put_buffers(run);
	return ok;
}

static int judge(const struct bench_run *run)
{
	const struct bench_report *report = run->report;
	int code = run->wrong ? BENCH_EXIT_BAD : BENCH_EXIT_OK;

	if (!report)
		return code;
	if (report->totals.wrong || report->totals.outside)
		code = BENCH_EXIT_BAD;
	if (bench_report_busbw(report) < run->args->min_bw) {
		fprintf(stderr, "hcomm_benchmark: average bus bandwidth %g GB/s is below --min-bw %g\n",
			bench_report_busbw(report), run->args->min_bw);
		code = BENCH_EXIT_BAD;
	}
	return code;
}

/* With a group: from the first call of a measurement to the last. */
static int run_group(struct bench_run *run, const hcommCommInfo_t *comm)
{
	struct bench_report report;
	bool ok;
	int code;

	if (!run->rank) {
		if (!bench_report_open(&report, run->args))
			return BENCH_EXIT_CANNOT;
		run->report = &report;
	}
	ok = work(run, comm);
	code = ok ? judge(run) : BENCH_EXIT_CANNOT;
	if (run->report && !bench_report_end(&report, ok ? NULL : run->error))
		code = BENCH_EXIT_CANNOT;
	return code;
}

int bench_rank_main(const struct bench_args *args,
		    struct bench_shared *shared, int local)
{
	struct bench_run run = {
		.args = args,
		.shared = shared,
		.local = local,
	};
	hcommCommInfo_t comm = { .size = sizeof(comm) };
	hcommResult_t result;
	int code;

	if (!join(&run, &comm))
		return BENCH_EXIT_CANNOT;
	if (!bench_root_exists(args, run.nranks))
		return BENCH_EXIT_USAGE;
	code = run_group(&run, &comm);
	if (code == BENCH_EXIT_CANNOT)
		return code;
	result = hcommFinalize();
	if (result != HCOMM_SUCCESS) {
		bench_refused(&run, "leaving the group", result);
		return BENCH_EXIT_CANNOT;
	}
	return code;
}
