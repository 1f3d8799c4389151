// SPDX-License-Identifier: GPL-2.0
/* get_unaligned() and its like are in linux/unaligned.h. */
#include <linux/unaligned.h>

unsigned int probe(const void *p)
{
	return get_unaligned_le32(p);
}
