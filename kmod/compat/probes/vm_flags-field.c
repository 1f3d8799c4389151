// SPDX-License-Identifier: GPL-2.0
/* vm_flags is a field to write to. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma)
{
	vma->vm_flags |= VM_DONTCOPY;
}
