// SPDX-License-Identifier: GPL-2.0
/*
 * Instances: the class, the region of device numbers and the nodes
 * /dev/hcommN. The table is written at module load and unload only, when no
 * file is open and no peer is connected, so readers need no lock.
 *
 * An instance is announced when all of it works and goes in three steps: no
 * more opens; sessions reset, so that every op and window ends; wait until the
 * last group and proc let go. The memory goes with the last device reference.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>

#include "chardev.h"
#include "compat/compat.h"
#include "debugfs.h"
#include "instance.h"
#include "limits.h"
#include "session.h"
#include "sysfs.h"

static struct hcomm_instance *hcomm_table[HCOMM_MAX_INSTANCES];
static unsigned int hcomm_count;
static dev_t hcomm_region;
static unsigned int hcomm_region_count;

static char *hcomm_devnode(hcomm_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0660;
	return NULL;
}

static struct class hcomm_class = {
	.name = "hcomm",
	.devnode = hcomm_devnode,
};

static void hcomm_instance_free(struct device *dev)
{
	struct hcomm_instance *instance = hcomm_instance_of(dev);

	xa_destroy(&instance->group_handles);
	kfree(instance);
}

static struct hcomm_instance *hcomm_instance_alloc(unsigned int nr)
{
	struct hcomm_instance *instance;

	instance = kzalloc(sizeof(*instance), GFP_KERNEL);
	if (!instance)
		return NULL;
	instance->nr = nr;
	get_random_bytes(instance->id, sizeof(instance->id));
	mutex_init(&instance->groups_lock);
	INIT_LIST_HEAD(&instance->groups);
	xa_init_flags(&instance->group_handles,
		      XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	mutex_init(&instance->procs_lock);
	INIT_LIST_HEAD(&instance->procs);

	device_initialize(&instance->dev);
	instance->dev.class = &hcomm_class;
	instance->dev.devt = MKDEV(MAJOR(hcomm_region), nr);
	instance->dev.groups = hcomm_instance_groups;
	instance->dev.release = hcomm_instance_free;
	cdev_init(&instance->cdev, &hcomm_fops);
	instance->cdev.owner = THIS_MODULE;
	return instance;
}

static int hcomm_instance_create(unsigned int nr)
{
	struct hcomm_instance *instance;
	int ret;

	instance = hcomm_instance_alloc(nr);
	if (!instance)
		return -ENOMEM;
	ret = dev_set_name(&instance->dev, "hcomm%u", nr);
	if (ret)
		goto err_put;
	ret = hcomm_fabric_create(instance);
	if (ret)
		goto err_put;
	hcomm_debugfs_create(instance);
	hcomm_table[nr] = instance;
	hcomm_count = nr + 1;
	ret = cdev_device_add(&instance->cdev, &instance->dev);
	if (ret)
		goto err_fabric;
	hcomm_sysfs_create(instance);
	return 0;

err_fabric:
	hcomm_count = nr;
	hcomm_table[nr] = NULL;
	hcomm_debugfs_destroy(instance);
	hcomm_fabric_destroy(instance);
err_put:
	put_device(&instance->dev);
	return ret;
}

static void hcomm_instance_destroy(struct hcomm_instance *instance)
{
	hcomm_fabric_destroy(instance);
	hcomm_sysfs_destroy(instance);
	cdev_device_del(&instance->cdev, &instance->dev);
	/* Files are closed and sessions reset: teardown items are on the way. */
	wait_var_event(&instance->live, !atomic_read(&instance->live));
	hcomm_debugfs_destroy(instance);
	hcomm_table[instance->nr] = NULL;
	put_device(&instance->dev);
}

int hcomm_instances_create(unsigned int count)
{
	unsigned int nr;
	int ret;

	ret = alloc_chrdev_region(&hcomm_region, 0, count, "hcomm");
	if (ret)
		return ret;
	ret = class_register(&hcomm_class);
	if (ret)
		goto err_region;
	for (nr = 0; nr < count; nr++) {
		ret = hcomm_instance_create(nr);
		if (ret)
			break;
	}
	hcomm_region_count = count;
	if (!ret)
		return 0;
	/* A module whose device may be open cannot fail to load any more. */
	if (nr) {
		pr_warn("hcomm: hcomm%u and higher could not be made: error %d\n",
			nr, ret);
		return 0;
	}
	class_unregister(&hcomm_class);
err_region:
	unregister_chrdev_region(hcomm_region, count);
	return ret;
}

void hcomm_instances_destroy(void)
{
	unsigned int nr = hcomm_count;

	while (nr--)
		hcomm_instance_destroy(hcomm_table[nr]);
	class_unregister(&hcomm_class);
	unregister_chrdev_region(hcomm_region, hcomm_region_count);
}

struct hcomm_instance *hcomm_instance_get(unsigned int nr)
{
	return nr < hcomm_count ? hcomm_table[nr] : NULL;
}

unsigned int hcomm_instance_count(void)
{
	return hcomm_count;
}

void hcomm_instance_hold(struct hcomm_instance *instance)
{
	atomic_inc(&instance->live);
}

void hcomm_instance_drop(struct hcomm_instance *instance)
{
	/* Who waits may free the instance at once: only its address is used. */
	if (atomic_dec_and_test(&instance->live))
		wake_up_var(&instance->live);
}
