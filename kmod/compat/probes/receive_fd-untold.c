// SPDX-License-Identifier: GPL-2.0
/* receive_fd() leaves it to the caller to tell user space the number. */
#include <linux/file.h>

int probe(struct file *file)
{
	return receive_fd(file, 0);
}
