// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The models have as many parameters as published, and buckets lose none. */
#include <kselftest_harness.h>

#include "models.h"

static uint64_t sum(const struct bench_tensors *tensors)
{
	uint64_t total = 0;

	for (size_t i = 0; i < tensors->count; i++)
		total += tensors->elements[i];
	return total;
}

static uint64_t sum_of_buckets(const struct bench_buckets *buckets)
{
	uint64_t total = 0;

	for (size_t i = 0; i < buckets->count; i++)
		total += buckets->elements[i];
	return total;
}

FIXTURE(models)
{
	struct bench_tensors tensors;
};

FIXTURE_VARIANT(models)
{
	const char *name;
	uint64_t parameters;
	size_t tensors;
};

FIXTURE_VARIANT_ADD(models, resnet50)
{
	.name = "resnet50",
	.parameters = 25557032,
	.tensors = 161,
};

FIXTURE_VARIANT_ADD(models, bert_large)
{
	.name = "bert-large",
	.parameters = 335141888,
	.tensors = 391,
};

FIXTURE_VARIANT_ADD(models, llama_7b)
{
	.name = "llama-7b",
	.parameters = 6738415616,
	.tensors = 291,
};

FIXTURE_SETUP(models)
{
	const struct bench_model *model = bench_model_find(variant->name);

	ASSERT_NE(NULL, model);
	ASSERT_TRUE(bench_tensors_get(&self->tensors, model));
}

FIXTURE_TEARDOWN(models)
{
	bench_tensors_put(&self->tensors);
}

TEST_F(models, have_the_published_number_of_parameters)
{
	EXPECT_EQ(variant->parameters, sum(&self->tensors));
	EXPECT_EQ(variant->parameters,
		  bench_model_find(variant->name)->parameters);
	EXPECT_EQ(variant->tensors, self->tensors.count);
}

TEST_F(models, lose_no_parameter_in_buckets)
{
	const struct bench_model *model = bench_model_find(variant->name);
	struct bench_buckets buckets;

	for (size_t bytes = 1; bytes <= 8; bytes *= 2) {
		ASSERT_TRUE(bench_buckets_get(&buckets, model, bytes,
					      BENCH_BUCKET_BYTES, 0));
		EXPECT_EQ(variant->parameters, sum_of_buckets(&buckets));
		EXPECT_EQ(variant->parameters, buckets.total);
		EXPECT_FALSE(buckets.limited);
		for (size_t i = 0; i < buckets.count; i++) {
			EXPECT_LE(buckets.elements[i] * bytes,
				  BENCH_BUCKET_BYTES);
			EXPECT_NE(0, buckets.elements[i]);
		}
		bench_buckets_put(&buckets);
	}
}

TEST_F(models, stop_at_the_limit)
{
	const struct bench_model *model = bench_model_find(variant->name);
	struct bench_buckets buckets;

	ASSERT_TRUE(bench_buckets_get(&buckets, model, 4, BENCH_BUCKET_BYTES,
				      30 << 20));
	EXPECT_EQ(30 << 20, buckets.total * 4);
	EXPECT_TRUE(buckets.limited);
	bench_buckets_put(&buckets);
	ASSERT_TRUE(bench_buckets_get(&buckets, model, 4, BENCH_BUCKET_BYTES,
				      variant->parameters * 4));
	EXPECT_EQ(variant->parameters, buckets.total);
	EXPECT_FALSE(buckets.limited);
	bench_buckets_put(&buckets);
}

/* The classifier is the last layer, so its bias opens the first bucket. */
TEST(backward_order_puts_the_last_layer_first)
{
	const struct bench_model *model = bench_model_find("resnet50");
	struct bench_buckets buckets;

	ASSERT_TRUE(bench_buckets_get(&buckets, model, 4, 4 * 1000, 0));
	EXPECT_EQ(1000, buckets.elements[0]);
	EXPECT_EQ(1000, buckets.elements[1]);
	bench_buckets_put(&buckets);
	ASSERT_TRUE(bench_buckets_get(&buckets, model, 4, 4 * 1500, 0));
	EXPECT_EQ(1000, buckets.elements[0]);
	EXPECT_EQ(1500, buckets.elements[1]);
	bench_buckets_put(&buckets);
}

TEST(resnet50_in_float_is_five_buckets)
{
	struct bench_buckets buckets;

	ASSERT_TRUE(bench_buckets_get(&buckets, bench_model_find("resnet50"),
				      4, BENCH_BUCKET_BYTES, 0));
	EXPECT_EQ(5, buckets.count);
	bench_buckets_put(&buckets);
}

TEST(unknown_model_is_not_found)
{
	EXPECT_EQ(NULL, bench_model_find("resnet51"));
}

TEST_HARNESS_MAIN
