// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Contributions and expected results.
 *
 * Of sums and products of floats every partial result must be exact. Their
 * values are therefore small, and when there are more ranks than may speak at
 * an index, the others are silent there: they contribute 0, or 1.
 */
#include <string.h>

#include "pattern.h"

#define BLOCK		512	/* elements handled at a time */
#define SUM_SPEAKERS	32
#define PROD_SPEAKERS	8
#define MAX_AMPLITUDE	(1LL << 30)

/* Where the values of a contribution come from: low .. low + span - 1. */
struct domain {
	int64_t low;
	uint64_t span;		/* 0 for all 64-bit values */
	bool powers;		/* 1, 2, -1, -2 */
	bool odd;
	int speakers;		/* ranks that speak at an index */
	int64_t silence;	/* what the others contribute */
};

static int64_t power_of(uint64_t hash)
{
	static const int64_t values[] = { 1, 2, -1, -2 };

	return values[hash >> 62];
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void set_symmetric(struct domain *domain, int64_t amplitude)
{
	domain->low = -amplitude;
	domain->span = 2 * amplitude + 1;
}

/* The largest value of which @speakers can be added without loss. */
static int64_t amplitude_of(const struct bench_type *type, int speakers)
{
	unsigned int bits = type->kind == BENCH_SIGNED ? type->bits - 1 :
							 type->bits;

	if (bits > 40)
		return MAX_AMPLITUDE;
	return least(((1LL << bits) - 1) / speakers, MAX_AMPLITUDE);
}

static void set_full(struct domain *domain, const struct bench_type *type)
{
	if (type->kind == BENCH_BOOL) {
		domain->span = 3;
	} else if (type->kind == BENCH_FLOAT) {
		set_symmetric(domain, amplitude_of(type, 1));
	} else if (type->bits < 64) {
		domain->span = 1ULL << type->bits;
		if (type->kind == BENCH_SIGNED)
			domain->low = -(1LL << (type->bits - 1));
	}
}

static void set_addable(struct domain *domain, const struct bench_type *type,
			int nranks)
{
	int64_t amplitude;

	domain->speakers = least(nranks, SUM_SPEAKERS);
	amplitude = amplitude_of(type, domain->speakers);
	if (type->kind == BENCH_UNSIGNED)
		domain->span = amplitude + 1;
	else
		set_symmetric(domain, amplitude);
}

static struct domain domain_of(const struct bench_pattern *pattern)
{
	const struct bench_type *type = pattern->type;
	struct domain domain = { .speakers = pattern->nranks };
	hcommRedOp_t op = pattern->redop ? pattern->redop->id : HCOMM_MAX;
	bool real = type->kind == BENCH_FLOAT;

	if (op == HCOMM_AVG || (op == HCOMM_SUM && real)) {
		set_addable(&domain, type, pattern->nranks);
	} else if (op == HCOMM_PROD && real) {
		domain.powers = true;
		domain.speakers = least(pattern->nranks, PROD_SPEAKERS);
		domain.silence = 1;
	} else {
		set_full(&domain, type);
		domain.odd = op == HCOMM_PROD && type->kind != BENCH_BOOL;
	}
	return domain;
}

static uint64_t mix(uint64_t x)
{
	x *= 0x9e3779b97f4a7c15ULL;
	x ^= x >> 32;
	return x * 0xd6e8feb86659fd93ULL;
}

static uint64_t seed_of(const struct bench_pattern *pattern, int rank)
{
	return mix(mix(pattern->iteration + 1) ^ ((uint64_t)rank + 1));
}

static int64_t draw_one(const struct domain *domain, uint64_t hash)
{
	int64_t value;

	if (domain->powers)
		return power_of(hash);
	value = domain->span ?
		domain->low + (int64_t)((hash >> 32) * domain->span >> 32) :
		(int64_t)hash;
	return domain->odd ? value | 1 : value;
}

static void draw(const struct bench_pattern *pattern,
		 const struct domain *domain, int rank, size_t first,
		 size_t count, int64_t *values)
{
	uint64_t seed = seed_of(pattern, rank);
	size_t place = (first + pattern->iteration + rank) % pattern->nranks;

	for (size_t i = 0; i < count; i++)
		values[i] = draw_one(domain, mix(seed + first + i));
	if (domain->speakers == pattern->nranks)
		return;
	for (size_t i = 0; i < count; i++)
		if ((place + i) % pattern->nranks >= (size_t)domain->speakers)
			values[i] = domain->silence;
}

/* One more rank's @values into @acc. */
#define FOLD(expression)					\
	do {							\
		for (size_t i = 0; i < count; i++) {		\
			uint64_t a = acc[i], b = values[i];	\
								\
			acc[i] = (int64_t)(expression);		\
		}						\
	} while (0)

static void fold(const struct bench_type *type, hcommRedOp_t op, int64_t *acc,
		 const int64_t *values, size_t count)
{
	bool is_signed = type->kind != BENCH_UNSIGNED;

	switch (op) {
	case HCOMM_SUM:
	case HCOMM_AVG:
		FOLD(a + b);
		break;
	case HCOMM_PROD:
		FOLD(a * b);
		break;
	case HCOMM_MIN:
		if (is_signed)
			FOLD((int64_t)a < (int64_t)b ? a : b);
		else
			FOLD(a < b ? a : b);
		break;
	case HCOMM_MAX:
		if (is_signed)
			FOLD((int64_t)a > (int64_t)b ? a : b);
		else
			FOLD(a > b ? a : b);
		break;
	case HCOMM_BAND:
		FOLD(a & b);
		break;
	case HCOMM_BOR:
		FOLD(a | b);
		break;
	default:
		FOLD(a ^ b);
		break;
	}
}

static void to_truth(int64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		values[i] = values[i] != 0;
}

static void reduce(const struct bench_pattern *pattern,
		   const struct domain *domain, size_t first, size_t count,
		   int64_t *acc)
{
	bool truth = pattern->type->kind == BENCH_BOOL;
	int64_t values[BLOCK];

	draw(pattern, domain, 0, first, count, acc);
	if (truth)
		to_truth(acc, count);
	for (int rank = 1; rank < pattern->nranks; rank++) {
		draw(pattern, domain, rank, first, count, values);
		if (truth)
			to_truth(values, count);
		fold(pattern->type, pattern->redop->id, acc, values, count);
	}
	if (truth)
		to_truth(acc, count);
}

static void store_average(const struct bench_pattern *pattern, int64_t *acc,
			  size_t count, void *dst)
{
	double quotients[BLOCK];

	if (pattern->type->kind == BENCH_FLOAT) {
		for (size_t i = 0; i < count; i++)
			quotients[i] = (double)acc[i] / pattern->nranks;
		bench_store_real(pattern->type, dst, quotients, count);
		return;
	}
	for (size_t i = 0; i < count; i++)
		acc[i] /= pattern->nranks;
	bench_store(pattern->type, dst, acc, count);
}

static void expect(const struct bench_pattern *pattern,
		   const struct domain *domain, int source, size_t first,
		   size_t count, void *dst)
{
	int64_t values[BLOCK];

	if (source != BENCH_ALL_RANKS)
		draw(pattern, domain, source, first, count, values);
	else
		reduce(pattern, domain, first, count, values);
	if (source == BENCH_ALL_RANKS && pattern->redop->id == HCOMM_AVG)
		store_average(pattern, values, count, dst);
	else
		bench_store(pattern->type, dst, values, count);
}

static size_t block_of(size_t left)
{
	return left < BLOCK ? left : BLOCK;
}

void bench_pattern_fill(const struct bench_pattern *pattern, int rank,
			size_t first, size_t count, void *dst)
{
	struct domain domain = domain_of(pattern);
	char *to = dst;

	while (count) {
		size_t n = block_of(count);

		expect(pattern, &domain, rank, first, n, to);
		to += n * pattern->type->size;
		first += n;
		count -= n;
	}
}

static void compare(unsigned int size, const unsigned char *want,
		    const unsigned char *got, size_t count, size_t offset,
		    struct bench_wrong *wrong)
{
	for (size_t i = 0; i < count; i++, want += size, got += size) {
		if (!memcmp(want, got, size))
			continue;
		if (!wrong->count) {
			wrong->index = offset + i;
			memcpy(wrong->want, want, size);
			memcpy(wrong->got, got, size);
		}
		wrong->count++;
	}
}

void bench_pattern_check(const struct bench_pattern *pattern, int source,
			 size_t first, size_t count, const void *buf,
			 size_t offset, struct bench_wrong *wrong)
{
	_Alignas(8) unsigned char want[BLOCK * 8];
	struct domain domain = domain_of(pattern);
	unsigned int size = pattern->type->size;
	const unsigned char *got = buf;

	while (count) {
		size_t n = block_of(count);

		expect(pattern, &domain, source, first, n, want);
		if (memcmp(want, got, n * size))
			compare(size, want, got, n, offset, wrong);
		got += n * size;
		first += n;
		offset += n;
		count -= n;
	}
}
