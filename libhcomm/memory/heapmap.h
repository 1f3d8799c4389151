/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Heaps as files and as addresses. A heap is a sealed memfd of its final
 * size; it is mapped at the same address on every rank where that can be had,
 * and nothing depends on it.
 */
#ifndef HCOMM_HEAPMAP_H
#define HCOMM_HEAPMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCOMM_HEAP_BASES	8

/*
 * A reservation for one's own heap and those of n peers, @stride apart:
 * own at @base, rank r at @base + (1 + r) * @stride.
 */
struct hcomm_reserve {
	char *base;
	size_t stride;
	size_t bytes;
};

/* A new heap file, or a negative errno; @why is set where that says too little. */
int hcomm_heap_create(size_t bytes, char *why, size_t why_bytes);
/* 0 when @fd is a sealed file of @bytes; a peer could not shrink it later. */
int hcomm_heap_check(int fd, size_t bytes);

/* Bit i: base number i can be reserved for @bytes of heap and @n ranks. */
uint32_t hcomm_reserve_probe(size_t bytes, int n);
/* At base number @index, or anywhere when it is negative. 0 or -errno. */
int hcomm_reserve_init(struct hcomm_reserve *reserve, size_t bytes, int n,
		       int index);
/* Unmaps everything that was mapped in it as well. */
void hcomm_reserve_free(struct hcomm_reserve *reserve);
/* Maps @fd at place @index (0 own, 1 + r rank r); NULL and errno. */
void *hcomm_reserve_map(struct hcomm_reserve *reserve, int index, int fd,
			size_t bytes);

#endif
