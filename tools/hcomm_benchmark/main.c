// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * hcomm_benchmark: measures operations over hcomm and checks their data.
 *
 *	args		the command line
 *	launch		starts the ranks of this node, one process each
 *	rank		one of them: joins, measures, leaves
 *	sweep, replay	which rows there are: sizes and types, or a model's buckets
 *	measure		one row
 *	ops, element, pattern, models	what is called, with which data
 *	buffers		of the heap or of malloc()
 *	environment	where all this ran
 *	report, report_text, report_json
 */
#include "launch.h"
#include "standard.h"

int main(int argc, char **argv)
{
	struct bench_args args;

	standard_files_open();
	switch (bench_args_parse(&args, argc, argv)) {
	case BENCH_DONE:
		return standard_output_written("hcomm_benchmark") ?
		       BENCH_EXIT_OK : BENCH_EXIT_CANNOT;
	case BENCH_USAGE:
		return BENCH_EXIT_USAGE;
	default:
		return bench_launch(&args);
	}
}
