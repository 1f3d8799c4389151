// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * First fit over a list of blocks in order of their offsets. What the result
 * depends on is the sequence of calls alone: no address, no time. A released
 * block stays out of use until the group has synchronised, since a slower
 * rank may still write to it.
 *
 * Owned by one group; its lock is the group's rule of one thread at a time.
 * Other threads may ask for the largest free block alone.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "memory/symheap.h"

#define GRAIN	64

enum block_state { FREE, USED, RELEASED };

struct hcomm_symheap_block {
	struct hcomm_symheap_block *next;
	size_t offset;
	size_t size;
	enum block_state state;
};

/* FNV-1a over the numbers of a call. */
static void mix(struct hcomm_symheap *heap, uint64_t value)
{
	int i;

	for (i = 0; i < 8; i++) {
		heap->hash ^= value >> (8 * i) & 0xff;
		heap->hash *= 0x100000001b3ULL;
	}
}

int hcomm_symheap_init(struct hcomm_symheap *heap, size_t start, size_t end)
{
	memset(heap, 0, sizeof(*heap));
	heap->start = start;
	heap->end = end;
	heap->hash = 0xcbf29ce484222325ULL;
	heap->blocks = calloc(1, sizeof(*heap->blocks));
	if (!heap->blocks)
		return -ENOMEM;
	heap->blocks->offset = start;
	heap->blocks->size = end - start;
	heap->largest = end - start;
	return 0;
}

static void note_largest(struct hcomm_symheap *heap)
{
	const struct hcomm_symheap_block *block;
	size_t largest = 0;

	for (block = heap->blocks; block; block = block->next)
		if (block->state == FREE && block->size > largest)
			largest = block->size;
	__atomic_store_n(&heap->largest, largest, __ATOMIC_RELAXED);
}

void hcomm_symheap_free_all(struct hcomm_symheap *heap)
{
	struct hcomm_symheap_block *block = heap->blocks, *next;

	for (; block; block = next) {
		next = block->next;
		free(block);
	}
	heap->blocks = NULL;
}

/* Cuts @block so that it ends at @at; the rest is a free block behind it. */
static void cut(struct hcomm_symheap_block *block, size_t at,
		struct hcomm_symheap_block *rest)
{
	rest->offset = at;
	rest->size = block->offset + block->size - at;
	rest->state = FREE;
	rest->next = block->next;
	block->size = at - block->offset;
	block->next = rest;
}

static size_t aligned_in(const struct hcomm_symheap_block *block, size_t size,
			 size_t align)
{
	size_t at = (block->offset + align - 1) & ~(align - 1);
	size_t end = block->offset + block->size;

	if (at < block->offset || at > end || end - at < size)
		return SIZE_MAX;
	return at;
}

static struct hcomm_symheap_block *find(struct hcomm_symheap *heap, size_t size,
					size_t align, size_t *at)
{
	struct hcomm_symheap_block *block;

	for (block = heap->blocks; block; block = block->next) {
		if (block->state != FREE)
			continue;
		*at = aligned_in(block, size, align);
		if (*at != SIZE_MAX)
			return block;
	}
	return NULL;
}

int hcomm_symheap_alloc(struct hcomm_symheap *heap, size_t size, size_t align,
			size_t *offset)
{
	struct hcomm_symheap_block *before, *after, *block;
	size_t at = 0, grains;

	before = malloc(sizeof(*before));
	after = malloc(sizeof(*after));
	if (!before || !after) {
		free(before);
		free(after);
		return -ENOMEM;
	}
	if (align < GRAIN)
		align = GRAIN;
	grains = size > SIZE_MAX - GRAIN ? SIZE_MAX :
					   (size + GRAIN - 1) / GRAIN * GRAIN;
	block = find(heap, grains, align, &at);

	heap->calls++;
	heap->last_size = size;
	heap->last_align_log2 = __builtin_ctzll(align);
	mix(heap, size);
	mix(heap, align);
	mix(heap, block ? at : 0);
	if (!block) {
		free(before);
		free(after);
		return -ENOSPC;
	}

	if (at > block->offset) {
		cut(block, at, before);
		block = before;
	} else {
		free(before);
	}
	if (block->size > grains)
		cut(block, at + grains, after);
	else
		free(after);
	block->state = USED;
	note_largest(heap);
	*offset = at;
	return 0;
}

int hcomm_symheap_release(struct hcomm_symheap *heap, size_t offset)
{
	struct hcomm_symheap_block *block;

	for (block = heap->blocks; block; block = block->next) {
		if (block->offset != offset || block->state != USED)
			continue;
		block->state = RELEASED;
		heap->calls++;
		heap->last_size = 0;
		heap->last_align_log2 = 0;
		mix(heap, ~0ULL);
		mix(heap, offset);
		return 0;
	}
	return -EINVAL;
}

void hcomm_symheap_settle(struct hcomm_symheap *heap)
{
	struct hcomm_symheap_block *block, *next;
	bool any = false;

	for (block = heap->blocks; block; block = block->next) {
		if (block->state == RELEASED) {
			block->state = FREE;
			any = true;
		}
	}
	if (!any)
		return;
	for (block = heap->blocks; block; block = block->next) {
		while ((next = block->next) && block->state == FREE &&
		       next->state == FREE) {
			block->size += next->size;
			block->next = next->next;
			free(next);
		}
	}
	note_largest(heap);
}

size_t hcomm_symheap_largest(const struct hcomm_symheap *heap)
{
	return __atomic_load_n(&heap->largest, __ATOMIC_RELAXED);
}
