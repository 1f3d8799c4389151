/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The parameters of published models, in the order of the forward pass, and
 * how their gradients are put into buckets.
 */
#ifndef BENCH_MODELS_H
#define BENCH_MODELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_BUCKET_BYTES	((size_t)25 << 20)

struct bench_tensors {
	uint64_t *elements;		/* of each tensor */
	size_t count;
	size_t room;
	bool failed;			/* out of memory */
};

struct bench_model {
	const char *name;
	const char *what;		/* whose shapes these are */
	uint64_t parameters;
	void (*build)(struct bench_tensors *tensors);
};

#define BENCH_NR_MODELS	3

extern const struct bench_model bench_models[BENCH_NR_MODELS];

const struct bench_model *bench_model_find(const char *name);

/* False without memory. */
bool bench_tensors_get(struct bench_tensors *tensors,
		       const struct bench_model *model);
void bench_tensors_put(struct bench_tensors *tensors);

struct bench_buckets {
	size_t *elements;		/* of each bucket */
	size_t count;
	size_t total;			/* elements of all buckets */
	bool limited;			/* the limit left some out */
};

/*
 * Fills buckets of at most @bucket_bytes, last tensor first. A tensor that no
 * longer fits begins a new bucket; one larger than a bucket is cut. Stops when
 * @limit bytes are reached, 0 for all. False without memory.
 */
bool bench_buckets_get(struct bench_buckets *buckets,
		       const struct bench_model *model, size_t element_bytes,
		       size_t bucket_bytes, uint64_t limit);
void bench_buckets_put(struct bench_buckets *buckets);

#endif
