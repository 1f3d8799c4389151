/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Offsets of the symmetric heap. Every rank runs the same calls on a private
 * copy, so that equal calls give equal offsets without a message; a hash of
 * the calls tells whether they were equal.
 */
#ifndef HCOMM_SYMHEAP_H
#define HCOMM_SYMHEAP_H

#include <stdint.h>
#include <stddef.h>

struct hcomm_symheap_block;

struct hcomm_symheap {
	size_t start;
	size_t end;
	struct hcomm_symheap_block *blocks;	/* by offset, covering it all */
	uint64_t hash;
	uint32_t calls;
	uint64_t last_size;
	uint32_t last_align_log2;
	size_t largest;			/* atomic: of the free blocks */
};

/* Offsets in [start, end). */
int hcomm_symheap_init(struct hcomm_symheap *heap, size_t start, size_t end);
void hcomm_symheap_free_all(struct hcomm_symheap *heap);

/* 0 and *offset, -ENOSPC, or -ENOMEM (of the process, not the same on ranks). */
int hcomm_symheap_alloc(struct hcomm_symheap *heap, size_t size, size_t align,
			size_t *offset);
/* -EINVAL when nothing was allocated at @offset. Usable again after settle. */
int hcomm_symheap_release(struct hcomm_symheap *heap, size_t offset);
/* Every rank has seen all earlier calls: released blocks may be used again. */
void hcomm_symheap_settle(struct hcomm_symheap *heap);
/* Bytes of the largest free block. Any thread. */
size_t hcomm_symheap_largest(const struct hcomm_symheap *heap);

#endif
