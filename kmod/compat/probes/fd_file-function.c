// SPDX-License-Identifier: GPL-2.0
/* the file of a struct fd is asked for with fd_file(). */
#include <linux/file.h>

struct file *probe(struct fd f)
{
	return fd_file(f);
}
