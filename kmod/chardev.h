/* SPDX-License-Identifier: GPL-2.0 */
/* The file operations of /dev/hcommN, for instance.c to hang on the cdev. */
#ifndef HCOMM_CHARDEV_H
#define HCOMM_CHARDEV_H

#include <linux/fs.h>

extern const struct file_operations hcomm_fops;

#endif
