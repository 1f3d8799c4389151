// SPDX-License-Identifier: GPL-2.0
/*
 * Memory shared with a process: rings, semaphores, the wake page. vmalloc_user()
 * would not charge it to the caller, so the pages are allocated one by one and
 * mapped; vfree() returns pages and table.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "area.h"
#include "compat/compat.h"

void *hcomm_area_alloc(size_t bytes)
{
	unsigned int nr = bytes >> PAGE_SHIFT;
	unsigned int i = 0;
	struct page **pages;
	void *area;

	pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL_ACCOUNT);
	if (!pages)
		return NULL;
	for (; i < nr; i++) {
		pages[i] = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
		if (!pages[i])
			goto err_pages;
	}
	area = vmap(pages, nr, VM_MAP | VM_USERMAP | VM_MAP_PUT_PAGES,
		    PAGE_KERNEL);
	if (!area)
		goto err_pages;
	return area;

err_pages:
	while (i--)
		__free_page(pages[i]);
	kvfree(pages);
	return NULL;
}

void hcomm_area_free(void *area)
{
	vfree(area);
}

int hcomm_area_map(struct vm_area_struct *vma, void *area, size_t bytes,
		   bool writable)
{
	if (vma->vm_end - vma->vm_start > bytes)
		return -EINVAL;
	if (!writable) {
		if (vma->vm_flags & VM_WRITE)
			return -EACCES;
		vm_flags_clear(vma, VM_MAYWRITE);
	}
	vm_flags_set(vma, VM_DONTCOPY | VM_DONTEXPAND);
	return remap_vmalloc_range(vma, area, 0);
}
