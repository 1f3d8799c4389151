/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The data of a check: what each rank contributes, and what must come out.
 *
 * Every element is a function of (iteration, rank, index), so a stale, moved
 * or foreign element is seen. Values are chosen such that the result is one
 * exact number whatever the order of the additions: all is computed in 64-bit
 * integers, and turned into elements last.
 */
#ifndef BENCH_PATTERN_H
#define BENCH_PATTERN_H

#include "element.h"

struct bench_pattern {
	const struct bench_type *type;
	const struct bench_redop *redop;	/* NULL: data is only moved */
	int nranks;
	uint64_t iteration;
};

#define BENCH_ALL_RANKS	(-1)	/* as a source: reduced over the ranks */

/* Elements @first to @first + @count - 1 of what @rank contributes. */
void bench_pattern_fill(const struct bench_pattern *pattern, int rank,
			size_t first, size_t count, void *dst);

struct bench_wrong {
	uint64_t count;
	size_t index;			/* of the first one, in the buffer */
	unsigned char want[8];
	unsigned char got[8];
};

/*
 * Adds to @wrong the elements of @buf that are not elements @first to
 * @first + @count - 1 of @source. @offset is where @buf is in its buffer, in
 * elements.
 */
void bench_pattern_check(const struct bench_pattern *pattern, int source,
			 size_t first, size_t count, const void *buf,
			 size_t offset, struct bench_wrong *wrong);

#endif
