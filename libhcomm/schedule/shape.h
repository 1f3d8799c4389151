/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The shape of a group: which ranks share an instance, and how the work of a
 * collective is divided among them. Pure: the same inputs give the same
 * answer on every rank; nothing here knows a device or a buffer.
 */
#ifndef HCOMM_SHAPE_H
#define HCOMM_SHAPE_H

#include <stdbool.h>
#include <stddef.h>

#include "hcomm.h"

/*
 * Instances are numbered by their lowest rank. Ranks of instance k are
 * rank[first[k]] .. rank[first[k + 1] - 1], ascending.
 */
struct hcomm_shape {
	int n;				/* ranks */
	int ninst;
	int owners;			/* smallest number of ranks of an instance */
	int *inst_of;			/* by rank */
	int *index_of;			/* by rank: index in its instance */
	int *first;
	int *rank;
};

/* @keys: n identities of @key_bytes each. 0 or -ENOMEM. */
int hcomm_shape_init(struct hcomm_shape *shape, int n, const void *keys,
		     size_t key_bytes);
void hcomm_shape_free(struct hcomm_shape *shape);

static inline int hcomm_shape_local(const struct hcomm_shape *shape, int inst)
{
	return shape->first[inst + 1] - shape->first[inst];
}

static inline int hcomm_shape_rank(const struct hcomm_shape *shape, int inst,
				   int index)
{
	return shape->rank[shape->first[inst] + index];
}

enum hcomm_coll_kind {
	HCOMM_COLL_ALLREDUCE,
	HCOMM_COLL_BROADCAST,
	HCOMM_COLL_REDUCE,
	HCOMM_COLL_ALLGATHER,
	HCOMM_COLL_REDUCESCATTER,
	HCOMM_COLL_BARRIER,
	HCOMM_COLL_DESTROY,	/* a barrier of its own name */
	HCOMM_NR_COLLS,
};

/*
 * A division of a collective. Buffers are @in_blocks and @out_blocks blocks
 * of @count elements. The work goes in chunks: chunk c is elements
 * [c * piece, (c + 1) * piece) of every block. A chunk is @nseg segments.
 * Each segment is in one block; at every instance one rank handles it there,
 * and at one instance, the final one, it gets its value.
 */
struct hcomm_split {
	enum hcomm_coll_kind kind;
	int root;
	size_t count;
	size_t elem;			/* bytes of an element */
	int in_blocks;
	int out_blocks;
	int nseg;
	size_t piece;
	size_t chunks;
	size_t quantum;			/* elements of a segment, sliced kinds */
	bool reduces;			/* all ranks contribute, else one */
	bool blocks;			/* segment = block, else slice */
};

struct hcomm_limits {
	size_t stage;			/* bytes of a staging slot */
	size_t message;			/* bytes of one message's payload */
	bool whole;			/* one chunk: nobody stages, one instance */
};

void hcomm_split_init(struct hcomm_split *split,
		      const struct hcomm_shape *shape,
		      enum hcomm_coll_kind kind, int root, size_t count,
		      size_t elem, const struct hcomm_limits *limits);

/* Elements of chunk @chunk in each block. */
size_t hcomm_split_chunk(const struct hcomm_split *split, size_t chunk);

/*
 * Where segment @seg lies in chunk @chunk: *@block, *@start (in elements from
 * the chunk's start in the block); returns its length in elements, maybe 0.
 */
size_t hcomm_split_segment(const struct hcomm_split *split, size_t chunk,
			   int seg, int *block, size_t *start);

int hcomm_split_handler(const struct hcomm_split *split,
			const struct hcomm_shape *shape, int seg, int inst);
int hcomm_split_final(const struct hcomm_split *split,
		      const struct hcomm_shape *shape, int seg);

/* The only rank that contributes to / receives @seg; -1 if all do. */
int hcomm_split_source(const struct hcomm_split *split, int seg);
int hcomm_split_sink(const struct hcomm_split *split, int seg);

#endif
