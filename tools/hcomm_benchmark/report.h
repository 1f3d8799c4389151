/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What was found, and its two forms: a table for people, JSON for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>
#include <sys/types.h>

#include "args.h"
#include "environment.h"

struct bench_sample {
	bool measured;			/* there is such a form */
	bool checked;
	double time_us;			/* of a call, mean over ranks */
	double algbw;			/* GB/s, 10^9 */
	double busbw;
	uint64_t wrong;			/* elements, over all ranks and checks */
	uint64_t outside;		/* bytes written beyond the result */
};

struct bench_row {
	const struct bench_op *op;
	const struct bench_type *type;		/* NULL: no data */
	const struct bench_redop *redop;	/* NULL: none */
	const char *memory;
	int root;			/* -1: none */
	int bucket;			/* of a model, -1: none */
	uint64_t bytes;
	size_t count;
	int nranks;
	struct bench_sample out_of_place;
	struct bench_sample in_place;
};

/* One rank, as it describes itself; fixed size, sent as bytes. */
struct bench_rank_info {
	char host[64];
	char device[16];
	char transport[16];
	int32_t pid;
	int32_t rank;
};

struct bench_group_info {
	int nranks;
	int ninstances;
	bool authenticated;
	struct bench_rank_info *ranks;
};

struct bench_model_info {
	uint64_t elements;		/* of a pass */
	size_t buckets;
	bool limited;
	double time_us;			/* of a pass, in calls */
};

struct bench_totals {
	uint64_t rows;
	uint64_t wrong;
	uint64_t outside;
	bool checked;			/* something was */
	double busbw_sum;
	uint64_t busbw_count;
};

struct bench_report {
	const struct bench_args *args;
	struct bench_environment environment;
	struct bench_group_info group;
	struct bench_totals totals;
	FILE *table;
	FILE *json;			/* NULL: not wanted */
	struct json_object *results;
	struct bench_model_info model;	/* with --model */
};

/* False (said why) when the file cannot be written or memory is short. */
bool bench_report_open(struct bench_report *report,
		       const struct bench_args *args);
void bench_report_begin(struct bench_report *report);
void bench_report_op(struct bench_report *report, const struct bench_op *op);
void bench_report_row(struct bench_report *report,
		      const struct bench_row *row);
/* @error: NULL, or why there are no more rows. False: could not be written. */
bool bench_report_end(struct bench_report *report, const char *error);

double bench_report_busbw(const struct bench_report *report);

/* The two forms. */
void bench_text_begin(const struct bench_report *report);
void bench_text_op(const struct bench_report *report,
		   const struct bench_op *op);
void bench_text_row(const struct bench_report *report,
		    const struct bench_row *row);
void bench_text_end(const struct bench_report *report, const char *error);

bool bench_json_open(struct bench_report *report);
void bench_json_row(struct bench_report *report, const struct bench_row *row);
bool bench_json_end(struct bench_report *report, const char *error);

#endif
