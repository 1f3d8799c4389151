// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Shapes follow from each architecture's published hyperparameters; no table
 * of numbers is kept. The sums are known and tested.
 */
#include <stdlib.h>
#include <string.h>

#include "models.h"

static void add(struct bench_tensors *tensors, uint64_t elements)
{
	if (tensors->count == tensors->room) {
		size_t room = tensors->room ? 2 * tensors->room : 256;
		uint64_t *more = reallocarray(tensors->elements, room,
					      sizeof(*more));

		if (!more) {
			tensors->failed = true;
			return;
		}
		tensors->elements = more;
		tensors->room = room;
	}
	tensors->elements[tensors->count++] = elements;
}

static void add_conv(struct bench_tensors *t, uint64_t out, uint64_t in,
		     uint64_t kernel)
{
	add(t, out * in * kernel * kernel);
}

/* Weight and bias: of a batch norm, or of a layer norm. */
static void add_norm(struct bench_tensors *t, uint64_t width)
{
	add(t, width);
	add(t, width);
}

static void add_linear(struct bench_tensors *t, uint64_t out, uint64_t in)
{
	add(t, out * in);
	add(t, out);
}

/* 1x1, 3x3, 1x1 with four times the width; the first of a stage projects. */
static void add_bottleneck(struct bench_tensors *t, uint64_t in,
			   uint64_t width, bool projects)
{
	uint64_t out = 4 * width;

	add_conv(t, width, in, 1);
	add_norm(t, width);
	add_conv(t, width, width, 3);
	add_norm(t, width);
	add_conv(t, out, width, 1);
	add_norm(t, out);
	if (projects) {
		add_conv(t, out, in, 1);
		add_norm(t, out);
	}
}

static void build_resnet50(struct bench_tensors *t)
{
	static const int blocks[] = { 3, 4, 6, 3 };
	uint64_t in = 64;

	add_conv(t, 64, 3, 7);
	add_norm(t, 64);
	for (int stage = 0; stage < 4; stage++) {
		uint64_t width = 64ULL << stage;

		for (int block = 0; block < blocks[stage]; block++) {
			add_bottleneck(t, in, width, block == 0);
			in = 4 * width;
		}
	}
	add_linear(t, 1000, in);
}

static void build_bert_large(struct bench_tensors *t)
{
	const uint64_t vocabulary = 30522, positions = 512, segments = 2;
	const uint64_t hidden = 1024, inner = 4096;

	add(t, vocabulary * hidden);
	add(t, positions * hidden);
	add(t, segments * hidden);
	add_norm(t, hidden);
	for (int layer = 0; layer < 24; layer++) {
		for (int i = 0; i < 4; i++)	/* query, key, value, output */
			add_linear(t, hidden, hidden);
		add_norm(t, hidden);
		add_linear(t, inner, hidden);
		add_linear(t, hidden, inner);
		add_norm(t, hidden);
	}
	add_linear(t, hidden, hidden);
}

static void build_llama_7b(struct bench_tensors *t)
{
	const uint64_t vocabulary = 32000, hidden = 4096, inner = 11008;

	add(t, vocabulary * hidden);
	for (int layer = 0; layer < 32; layer++) {
		for (int i = 0; i < 4; i++)	/* query, key, value, output */
			add(t, hidden * hidden);
		for (int i = 0; i < 3; i++)	/* gate, up, down */
			add(t, inner * hidden);
		add(t, hidden);
		add(t, hidden);
	}
	add(t, hidden);
	add(t, vocabulary * hidden);
}

const struct bench_model bench_models[BENCH_NR_MODELS] = {
	{ "resnet50", "ResNet-50, 1000 classes", 25557032, build_resnet50 },
	{ "bert-large", "BERT-large, uncased, with pooler", 335141888,
	  build_bert_large },
	{ "llama-7b", "LLaMA 7B", 6738415616, build_llama_7b },
};

const struct bench_model *bench_model_find(const char *name)
{
	for (size_t i = 0; i < BENCH_NR_MODELS; i++)
		if (!strcmp(name, bench_models[i].name))
			return &bench_models[i];
	return NULL;
}

bool bench_tensors_get(struct bench_tensors *tensors,
		       const struct bench_model *model)
{
	*tensors = (struct bench_tensors){};
	model->build(tensors);
	if (tensors->failed)
		bench_tensors_put(tensors);
	return !tensors->failed;
}

void bench_tensors_put(struct bench_tensors *tensors)
{
	free(tensors->elements);
	tensors->elements = NULL;
}

/* Buckets in the making: @open is what the last, unfinished one holds. */
struct filling {
	struct bench_buckets *buckets;
	size_t capacity;
	size_t open;
};

static void close_bucket(struct filling *filling)
{
	struct bench_buckets *buckets = filling->buckets;

	if (!filling->open)
		return;
	buckets->elements[buckets->count++] = filling->open;
	buckets->total += filling->open;
	filling->open = 0;
}

static void put_tensor(struct filling *filling, uint64_t elements)
{
	if (filling->open + elements > filling->capacity)
		close_bucket(filling);
	while (elements > filling->capacity) {
		filling->open = filling->capacity;
		close_bucket(filling);
		elements -= filling->capacity;
	}
	filling->open += elements;
}

static void fill(struct filling *filling, const struct bench_tensors *tensors,
		 uint64_t room)
{
	for (size_t i = tensors->count; i-- && room;) {
		uint64_t elements = tensors->elements[i];

		if (elements > room) {
			elements = room;
			filling->buckets->limited = true;
		} else if (elements == room && i) {
			filling->buckets->limited = true;
		}
		put_tensor(filling, elements);
		room -= elements;
	}
	close_bucket(filling);
}

bool bench_buckets_get(struct bench_buckets *buckets,
		       const struct bench_model *model, size_t element_bytes,
		       size_t bucket_bytes, uint64_t limit)
{
	uint64_t room = limit ? limit / element_bytes : UINT64_MAX;
	struct filling filling = {
		.buckets = buckets,
		.capacity = bucket_bytes / element_bytes,
	};
	struct bench_tensors tensors;
	size_t most;

	*buckets = (struct bench_buckets){};
	if (!bench_tensors_get(&tensors, model))
		return false;
	most = tensors.count + model->parameters / filling.capacity + 1;
	buckets->elements = calloc(most, sizeof(*buckets->elements));
	if (buckets->elements)
		fill(&filling, &tensors, room);
	bench_tensors_put(&tensors);
	return buckets->elements;
}

void bench_buckets_put(struct bench_buckets *buckets)
{
	free(buckets->elements);
	buckets->elements = NULL;
}
