// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The table: the columns of nccl-tests in their order and widths, everything
 * else behind a '#'.
 */
#include <string.h>

#include "report.h"

static const char *chosen_memories(const struct bench_args *args)
{
	if (args->memories[BENCH_HEAP] && args->memories[BENCH_MALLOC])
		return "heap,malloc";
	return args->memories[BENCH_HEAP] ? "heap" : "malloc";
}

static void settings(FILE *to, const struct bench_args *args)
{
	fputs("# ", to);
	if (args->model)
		fprintf(to, "model %s ", args->model->name);
	else
		fprintf(to, "minBytes %llu maxBytes %llu step: %llu(%s) ",
			(unsigned long long)args->min_bytes,
			(unsigned long long)args->max_bytes,
			(unsigned long long)(args->step_bytes ?
						     args->step_bytes :
						     args->step_factor),
			args->step_bytes ? "bytes" : "factor");
	fprintf(to, "warmup iters: %d iters: %d validation: %d buffers: %s\n",
		args->warmups, args->iterations, args->checks,
		chosen_memories(args));
}

static void versions(FILE *to, const struct bench_environment *env)
{
	fprintf(to, "# hcomm_benchmark %d.%d.%d library %s module %s kernel %s\n",
		HCOMM_MAJOR, HCOMM_MINOR, HCOMM_PATCH, env->library,
		*env->module ? env->module : "not loaded", env->kernel);
}

/* Who reads these figures as a hardware's must be told. */
static void warnings(FILE *to, const struct bench_environment *env)
{
	if (env->emulated)
		fprintf(to, "# Emulated processor (%s): times are not those of hardware\n",
			env->hypervisor);
	if (!env->software_rdma)
		return;
	fputs("# Software RDMA:", to);
	for (size_t i = 0; i < env->ndevices; i++)
		if (env->devices[i].software)
			fprintf(to, " %s (%s)", env->devices[i].name,
				env->devices[i].protocol);
	fputs(": bandwidths are not those of an adapter\n", to);
}

static void ranks(FILE *to, const struct bench_group_info *group)
{
	fputs("#\n# Using devices\n", to);
	for (int i = 0; i < group->nranks; i++) {
		const struct bench_rank_info *rank = &group->ranks[i];

		fprintf(to, "#  Rank %2d Pid %6d on %10s device %s\n",
			rank->rank, rank->pid, rank->host,
			*rank->device ? rank->device : rank->transport);
	}
	if (!group->authenticated)
		fputs("# Ranks did not prove a secret to each other\n", to);
}

void bench_text_begin(const struct bench_report *report)
{
	FILE *to = report->table;

	versions(to, &report->environment);
	warnings(to, &report->environment);
	settings(to, report->args);
	ranks(to, &report->group);
	fflush(to);
}

static void model(FILE *to, const struct bench_report *report)
{
	const struct bench_model *model = report->args->model;

	fprintf(to, "#\n# %s: %llu parameters, %llu of them a pass in %zu buckets of at most %zu bytes%s\n",
		model->what, (unsigned long long)model->parameters,
		(unsigned long long)report->model.elements,
		report->model.buckets, BENCH_BUCKET_BYTES,
		report->model.limited ? " (limited)" : "");
}

void bench_text_op(const struct bench_report *report,
		   const struct bench_op *op)
{
	FILE *to = report->table;

	if (report->args->model)
		model(to, report);
	fprintf(to, "#\n# %s\n#\n", op->name);
	fputs("#                                                              out-of-place                       in-place          \n"
	      "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong\n"
	      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)        \n",
	      to);
	fflush(to);
}

static void print_time(FILE *to, double us)
{
	fprintf(to, "  %7.*f", us >= 10000 ? 0 : us >= 100 ? 1 : 2, us);
}

static void print_sample(FILE *to, const struct bench_sample *sample)
{
	if (!sample->measured) {
		fprintf(to, "  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A",
			"N/A");
		return;
	}
	print_time(to, sample->time_us);
	fprintf(to, "  %6.2f  %6.2f", sample->algbw, sample->busbw);
	if (sample->checked)
		fprintf(to, "  %6llu", (unsigned long long)sample->wrong);
	else
		fprintf(to, "  %6s", "N/A");
}

void bench_text_row(const struct bench_report *report,
		    const struct bench_row *row)
{
	FILE *to = report->table;

	fprintf(to, "%12llu  %12zu  %8s  %6s  %6d",
		(unsigned long long)row->bytes, row->count,
		row->type ? row->type->name : "none",
		row->redop ? row->redop->name : "none", row->root);
	print_sample(to, &row->out_of_place);
	print_sample(to, &row->in_place);
	fputc('\n', to);
	fflush(to);
}

static void verdict(FILE *to, const struct bench_totals *totals)
{
	uint64_t wrong = totals->wrong + totals->outside;

	if (totals->checked)
		fprintf(to, "# Out of bounds values : %llu %s\n",
			(unsigned long long)wrong, wrong ? "FAILED" : "OK");
	else
		fputs("# Out of bounds values : N/A (not checked)\n", to);
}

void bench_text_end(const struct bench_report *report, const char *error)
{
	const struct bench_args *args = report->args;
	FILE *to = report->table;

	if (error) {
		fprintf(to, "# Stopped: %s\n", error);
		return;
	}
	verdict(to, &report->totals);
	if (args->model)
		fprintf(to, "# One pass             : %.1f ms of all-reduces\n",
			report->model.time_us / 1e3);
	if (report->totals.busbw_count)
		fprintf(to, "# Avg bus bandwidth    : %g %s\n",
			bench_report_busbw(report),
			bench_report_busbw(report) < args->min_bw ? "FAILED" :
								    "OK");
}
