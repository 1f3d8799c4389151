/* SPDX-License-Identifier: GPL-2.0 */
/* What an administrator sees and sets below /sys/class/hcomm/hcommN. */
#ifndef HCOMM_SYSFS_H
#define HCOMM_SYSFS_H

struct attribute_group;
struct hcomm_instance;

/* For device.groups of an instance: there before the device is announced. */
extern const struct attribute_group *hcomm_instance_groups[];

/*
 * The directories of ports and sessions, while the device is registered; the
 * sessions have ended when they go.
 */
void hcomm_sysfs_create(struct hcomm_instance *instance);
void hcomm_sysfs_destroy(struct hcomm_instance *instance);

#endif
