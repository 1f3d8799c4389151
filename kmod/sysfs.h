/* SPDX-License-Identifier: GPL-2.0 */
/* What an administrator sees and sets below /sys/class/hcomm/hcommN. */
#ifndef HCOMM_SYSFS_H
#define HCOMM_SYSFS_H

struct attribute_group;

/* For device.groups of an instance: there before the device is announced. */
extern const struct attribute_group *hcomm_instance_groups[];

#endif
