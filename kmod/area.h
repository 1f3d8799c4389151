/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Areas: zeroed kernel memory that a process maps, charged to its cgroup. A
 * mapping keeps the pages, not the area: an area may be freed while mapped.
 */
#ifndef HCOMM_AREA_H
#define HCOMM_AREA_H

#include <linux/types.h>

struct vm_area_struct;

/* @bytes is a multiple of the page size. NULL when memory is short. */
void *hcomm_area_alloc(size_t bytes);
/* NULL is nothing to free. Process context. */
void hcomm_area_free(void *area);

/*
 * For .mmap: maps the first pages of the area, shared, not inherited by fork,
 * not to grow; never writable unless @writable.
 */
int hcomm_area_map(struct vm_area_struct *vma, void *area, size_t bytes,
		   bool writable);

#endif
