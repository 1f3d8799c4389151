/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * /dev/hcommN as this process uses it: one file that never joins a group and
 * owns the memory objects, shared by all groups and windows of the process.
 */
#ifndef HCOMM_DEVICE_H
#define HCOMM_DEVICE_H

#include <stddef.h>
#include <stdint.h>

struct hcomm_device;

/* Opens it or takes another reference; *@dev, or a negative errno. */
int hcomm_device_get(const char *name, struct hcomm_device **dev);
void hcomm_device_put(struct hcomm_device *dev);
const char *hcomm_device_name(const struct hcomm_device *dev);

/* A file for one membership; close-on-exec, or a negative errno. */
int hcomm_device_open(const char *name);

/* Pins memory. On failure @why says what to do. */
int hcomm_device_pin(struct hcomm_device *dev, void *base, size_t bytes,
		     uint32_t *object, char *why, size_t why_bytes);
/* -EBUSY while a window or an operation uses it. */
int hcomm_device_unpin(struct hcomm_device *dev, uint32_t object);

#endif
