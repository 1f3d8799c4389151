// SPDX-License-Identifier: GPL-2.0
/* get_unaligned() and its like are in asm/unaligned.h. */
#include <asm/unaligned.h>

unsigned int probe(const void *p)
{
	return get_unaligned_le32(p);
}
