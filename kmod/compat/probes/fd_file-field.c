// SPDX-License-Identifier: GPL-2.0
/* the file of a struct fd is a field. */
#include <linux/file.h>

struct file *probe(struct fd f)
{
	return f.file;
}
