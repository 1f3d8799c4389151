// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Which ranks share an instance. Made once per group, read-only afterwards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/shape.h"

/* The first rank with the same key as @rank. */
static int first_like(const char *keys, size_t key_bytes, int rank)
{
	int r = 0;

	while (memcmp(keys + r * key_bytes, keys + rank * key_bytes, key_bytes))
		r++;
	return r;
}

static void fill(struct hcomm_shape *shape, const void *keys, size_t key_bytes)
{
	int r, k, at = 0;

	for (r = 0; r < shape->n; r++) {
		int like = first_like(keys, key_bytes, r);

		shape->inst_of[r] = like == r ? shape->ninst++ :
						shape->inst_of[like];
	}
	shape->owners = shape->n;
	for (k = 0; k < shape->ninst; k++) {
		shape->first[k] = at;
		for (r = 0; r < shape->n; r++) {
			if (shape->inst_of[r] != k)
				continue;
			shape->index_of[r] = at - shape->first[k];
			shape->rank[at++] = r;
		}
		if (at - shape->first[k] < shape->owners)
			shape->owners = at - shape->first[k];
	}
	shape->first[k] = at;
}

int hcomm_shape_init(struct hcomm_shape *shape, int n, const void *keys,
		     size_t key_bytes)
{
	memset(shape, 0, sizeof(*shape));
	shape->n = n;
	shape->inst_of = calloc(n, sizeof(int));
	shape->index_of = calloc(n, sizeof(int));
	shape->first = calloc(n + 1, sizeof(int));
	shape->rank = calloc(n, sizeof(int));
	if (!shape->inst_of || !shape->index_of || !shape->first ||
	    !shape->rank) {
		hcomm_shape_free(shape);
		return -ENOMEM;
	}
	fill(shape, keys, key_bytes);
	return 0;
}

void hcomm_shape_free(struct hcomm_shape *shape)
{
	free(shape->inst_of);
	free(shape->index_of);
	free(shape->first);
	free(shape->rank);
	memset(shape, 0, sizeof(*shape));
}
