// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Keeps the sums, and hands every row to the table and to the JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"
#include "standard.h"

static FILE *open_json(const char *name)
{
	FILE *file;

	if (!strcmp(name, "-"))
		return stdout;
	file = fopen(name, "we");
	if (!file)
		fprintf(stderr, "hcomm_benchmark: --json %s: %s\n", name,
			strerror(errno));
	return file;
}

bool bench_report_open(struct bench_report *report,
		       const struct bench_args *args)
{
	*report = (struct bench_report){ .args = args, .table = stdout };
	if (args->json) {
		report->json = open_json(args->json);
		if (!report->json || !bench_json_open(report))
			return false;
	}
	if (report->json == stdout)
		report->table = stderr;
	bench_environment_get(&report->environment);
	return true;
}

void bench_report_begin(struct bench_report *report)
{
	bench_text_begin(report);
}

void bench_report_op(struct bench_report *report, const struct bench_op *op)
{
	bench_text_op(report, op);
}

static void add_sample(struct bench_totals *totals, const struct bench_row *row,
		       const struct bench_sample *sample)
{
	if (!sample->measured)
		return;
	totals->checked |= sample->checked;
	totals->wrong += sample->wrong;
	totals->outside += sample->outside;
	if (!row->op->moves)
		return;
	totals->busbw_sum += sample->busbw;
	totals->busbw_count++;
}

void bench_report_row(struct bench_report *report, const struct bench_row *row)
{
	report->totals.rows++;
	add_sample(&report->totals, row, &row->out_of_place);
	add_sample(&report->totals, row, &row->in_place);
	bench_text_row(report, row);
	if (report->json)
		bench_json_row(report, row);
}

double bench_report_busbw(const struct bench_report *report)
{
	const struct bench_totals *totals = &report->totals;

	return totals->busbw_count ? totals->busbw_sum / totals->busbw_count :
				     0;
}

bool bench_report_end(struct bench_report *report, const char *error)
{
	bool ok = true;

	bench_text_end(report, error);
	if (report->json)
		ok = bench_json_end(report, error);
	if (!ok)
		fprintf(stderr, "hcomm_benchmark: --json %s: %s\n",
			report->args->json, strerror(errno));
	if (report->table == stdout &&
	    !standard_output_written("hcomm_benchmark"))
		ok = false;
	bench_environment_put(&report->environment);
	free(report->group.ranks);
	return ok;
}
