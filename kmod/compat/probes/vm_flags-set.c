// SPDX-License-Identifier: GPL-2.0
/* vm_flags are changed through functions. */
#include <linux/mm.h>

void probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTCOPY);
	vm_flags_clear(vma, VM_MAYWRITE);
}
