// SPDX-License-Identifier: GPL-2.0
/* class_create() takes the owning module and the name. */
#include <linux/device.h>
#include <linux/module.h>

struct class *probe(void)
{
	return class_create(THIS_MODULE, "probe");
}
