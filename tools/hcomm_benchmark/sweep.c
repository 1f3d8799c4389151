// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * All combinations of the arguments, one table for each operation. Loops from
 * the outside in: operations, buffers, types, reductions, roots, sizes.
 */
#include "run.h"

static bool measure_row(struct bench_run *run, const struct bench_case *what)
{
	struct bench_case in_place = *what;
	const struct bench_op *op = what->op;
	size_t elements = bench_op_elements(op, what->count, run->nranks);
	struct bench_row row = {
		.op = op,
		.type = op->moves ? what->type : NULL,
		.redop = what->redop,
		.memory = op->moves ? bench_memory_names[what->memory] :
				      "none",
		.root = what->root,
		.bucket = -1,
		.bytes = elements * what->type->size,
		.count = what->count,
		.nranks = run->nranks,
	};

	in_place.in_place = true;
	if (!bench_measure(run, what, &row.out_of_place))
		return false;
	if (op->in_place && !bench_measure(run, &in_place, &row.in_place))
		return false;
	if (run->report)
		bench_report_row(run->report, &row);
	return true;
}

static bool sweep_sizes(struct bench_run *run, struct bench_case *what)
{
	uint64_t bytes = run->args->min_bytes;

	do {
		what->count = bench_op_count(what->op,
					     bytes / what->type->size,
					     run->nranks);
		if (!measure_row(run, what))
			return false;
	} while (what->op->moves && bench_args_next_size(run->args, &bytes));
	return true;
}

static bool sweep_roots(struct bench_run *run, struct bench_case *what)
{
	int root = run->args->root;

	what->root = -1;
	if (!what->op->rooted)
		return sweep_sizes(run, what);
	if (root != BENCH_ROOT_ALL) {
		what->root = root;
		return sweep_sizes(run, what);
	}
	for (root = 0; root < run->nranks; root++) {
		what->root = root;
		if (!sweep_sizes(run, what))
			return false;
	}
	return true;
}

static bool sweep_redops(struct bench_run *run, struct bench_case *what)
{
	what->redop = NULL;
	if (!what->op->reduces)
		return sweep_roots(run, what);
	for (int i = 0; i < BENCH_NR_REDOPS; i++) {
		what->redop = &bench_redops[i];
		if (run->args->redops[i] &&
		    bench_redop_defined(what->redop, what->type) &&
		    !sweep_roots(run, what))
			return false;
	}
	return true;
}

static bool sweep_types(struct bench_run *run, struct bench_case *what)
{
	for (int i = 0; i < BENCH_NR_TYPES; i++) {
		what->type = &bench_types[i];
		if (run->args->types[i] && !sweep_redops(run, what))
			return false;
	}
	return true;
}

static bool sweep_memories(struct bench_run *run, struct bench_case *what)
{
	for (int i = 0; i < BENCH_NR_MEMORIES; i++) {
		what->memory = i;
		if (run->args->memories[i] && !sweep_types(run, what))
			return false;
	}
	return true;
}

/* A barrier has nothing to vary. */
static bool sweep_barrier(struct bench_run *run, struct bench_case *what)
{
	what->type = &bench_types[0];
	return sweep_roots(run, what);
}

bool bench_sweep(struct bench_run *run)
{
	for (int i = 0; i < BENCH_NR_OPS; i++) {
		struct bench_case what = { .op = &bench_ops[i] };

		if (!run->args->ops[i])
			continue;
		if (run->report)
			bench_report_op(run->report, what.op);
		if (!(what.op->moves ? sweep_memories(run, &what) :
				       sweep_barrier(run, &what)))
			return false;
	}
	return true;
}
