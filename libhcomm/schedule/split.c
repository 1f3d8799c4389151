// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a collective is divided. One form serves all: at each instance the
 * handler of a segment reduces what the local ranks contribute; handlers of
 * other instances send that to the final one; it combines in instance order,
 * gives the result to the local receivers and to the other handlers, which
 * give it to theirs. With one instance this is "each rank reduces its slice
 * from all inputs and stores it to all outputs"; with several, all-reduce is
 * a direct reduce-scatter and all-gather between instances.
 *
 * Kinds differ in who contributes and who receives, and in what a segment is:
 * a slice of the one block, or a whole block of n.
 */
#include <stdint.h>

#include "schedule/shape.h"

#define LINE	64

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t ceil_div(size_t a, size_t b)
{
	return a / b + (a % b != 0);
}

static int nr_segments(const struct hcomm_split *split,
		       const struct hcomm_shape *shape)
{
	if (split->blocks)
		return shape->n;
	if (split->kind == HCOMM_COLL_ALLREDUCE)
		return shape->owners * shape->ninst;
	return shape->owners;
}

/* Whole lines, so that two ranks never write one line of an output. */
static size_t line_elements(const struct hcomm_split *split)
{
	return LINE / split->elem ? LINE / split->elem : 1;
}

static size_t largest_piece(const struct hcomm_split *split,
			    const struct hcomm_shape *shape,
			    const struct hcomm_limits *limits)
{
	size_t blocks = split->blocks ? shape->n : 1;
	size_t bytes = limits->stage / blocks;
	size_t line = line_elements(split);
	size_t piece;

	if (shape->ninst > 1)
		bytes = min_size(bytes, limits->message *
				 (split->blocks ? 1 : split->nseg));
	piece = bytes / split->elem;
	/* Rounding up to lines must not make a segment too long. */
	if (!split->blocks)
		line *= split->nseg;
	if (piece >= line)
		piece -= piece % line;
	return piece ? piece : 1;
}

void hcomm_split_init(struct hcomm_split *split,
		      const struct hcomm_shape *shape,
		      enum hcomm_coll_kind kind, int root, size_t count,
		      size_t elem, const struct hcomm_limits *limits)
{
	size_t line;

	*split = (struct hcomm_split) {
		.kind = kind, .root = root, .count = count, .elem = elem,
		.reduces = kind != HCOMM_COLL_BROADCAST &&
			   kind != HCOMM_COLL_ALLGATHER,
		.blocks = kind == HCOMM_COLL_ALLGATHER ||
			  kind == HCOMM_COLL_REDUCESCATTER,
	};
	split->in_blocks = kind == HCOMM_COLL_REDUCESCATTER ? shape->n : 1;
	split->out_blocks = kind == HCOMM_COLL_ALLGATHER ? shape->n : 1;
	split->nseg = nr_segments(split, shape);
	split->piece = limits->whole ? count :
				       largest_piece(split, shape, limits);
	split->piece = min_size(split->piece, count);
	split->chunks = ceil_div(count, split->piece);
	line = line_elements(split);
	split->quantum = ceil_div(ceil_div(split->piece, split->nseg), line) *
			 line;
}

size_t hcomm_split_chunk(const struct hcomm_split *split, size_t chunk)
{
	return min_size(split->piece, split->count - chunk * split->piece);
}

size_t hcomm_split_segment(const struct hcomm_split *split, size_t chunk,
			   int seg, int *block, size_t *start)
{
	size_t length = hcomm_split_chunk(split, chunk);

	*block = split->blocks ? seg : 0;
	*start = split->blocks ? 0 : seg * split->quantum;
	if (split->blocks)
		return length;
	if (*start >= length) {
		*start = length;
		return 0;
	}
	return min_size(split->quantum, length - *start);
}

int hcomm_split_handler(const struct hcomm_split *split,
			const struct hcomm_shape *shape, int seg, int inst)
{
	int index;

	if (!split->blocks)
		return hcomm_shape_rank(shape, inst, seg % shape->owners);
	if (shape->inst_of[seg] == inst)
		return seg;
	index = shape->index_of[seg] % hcomm_shape_local(shape, inst);
	return hcomm_shape_rank(shape, inst, index);
}

int hcomm_split_final(const struct hcomm_split *split,
		      const struct hcomm_shape *shape, int seg)
{
	if (split->blocks)
		return shape->inst_of[seg];
	if (split->kind == HCOMM_COLL_ALLREDUCE)
		return seg / shape->owners;
	return shape->inst_of[split->root];
}

int hcomm_split_source(const struct hcomm_split *split, int seg)
{
	if (split->kind == HCOMM_COLL_BROADCAST)
		return split->root;
	return split->kind == HCOMM_COLL_ALLGATHER ? seg : -1;
}

int hcomm_split_sink(const struct hcomm_split *split, int seg)
{
	if (split->kind == HCOMM_COLL_REDUCE)
		return split->root;
	return split->kind == HCOMM_COLL_REDUCESCATTER ? seg : -1;
}
