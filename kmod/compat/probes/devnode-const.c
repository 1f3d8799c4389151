// SPDX-License-Identifier: GPL-2.0
/* struct class has a devnode() that gets a const device. */
#include <linux/device.h>

static char *devnode(const struct device *dev, umode_t *mode)
{
	return NULL;
}

struct class probe = { .devnode = devnode };
