/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file operations of /dev/hcommN, for instance.c to hang on the cdev, and
 * the mmap offsets that set-up calls return.
 */
#ifndef HCOMM_CHARDEV_H
#define HCOMM_CHARDEV_H

#include <linux/fs.h>

#define HCOMM_MAP_RINGS		0x00000000ULL
#define HCOMM_MAP_SQES		0x10000000ULL
#define HCOMM_MAP_SEMS		0x20000000ULL
#define HCOMM_MAP_WAKE		0x30000000ULL

extern const struct file_operations hcomm_fops;

#endif
