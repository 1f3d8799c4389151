// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of an instance: one value per file, documented in
 * Documentation/ABI/testing/sysfs-class-hcomm.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "instance.h"
#include "session.h"
#include "sysfs.h"

static ssize_t instance_id_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%*phN\n", HCOMM_ID_BYTES,
			  hcomm_instance_of(dev)->id);
}
static DEVICE_ATTR_RO(instance_id);

static ssize_t listen_port_show(struct device *dev,
				struct device_attribute *attr, char *buf)
{
	struct hcomm_query query = {};

	hcomm_fabric_query(hcomm_instance_of(dev), &query);
	return sysfs_emit(buf, "%u\n", query.listen_port);
}
static DEVICE_ATTR_RO(listen_port);

static struct attribute *hcomm_instance_attrs[] = {
	&dev_attr_instance_id.attr,
	&dev_attr_listen_port.attr,
	NULL
};

static const struct attribute_group hcomm_instance_group = {
	.attrs = hcomm_instance_attrs,
};

const struct attribute_group *hcomm_instance_groups[] = {
	&hcomm_instance_group,
	NULL
};
