/* SPDX-License-Identifier: GPL-2.0 */
/*
 * compat.h - one name for what kernels call differently
 *
 * hcomm_config.h is written by probe.sh, which compiled the files of probes/
 * against the kernel at hand: nothing here asks for a version, which a
 * distribution's backports would make a lie.  An interface that is a name of
 * its own in the newer kernel gets that name in the older one, too; where both
 * have the same name with other arguments, there is an hcomm_ form of it.
 */
#ifndef HCOMM_COMPAT_H
#define HCOMM_COMPAT_H

#include "hcomm_config.h"

#include <linux/device.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/timer.h>
#include <linux/uaccess.h>

#ifdef HCOMM_HAVE_UNALIGNED_LINUX
#include <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif

#ifdef HCOMM_HAVE_CLASS_CREATE_NAME
#define hcomm_class_create(name)	class_create(name)
#else
#define hcomm_class_create(name)	class_create(THIS_MODULE, name)
#endif

/* The type behind the first argument of struct class's devnode(). */
#ifdef HCOMM_HAVE_DEVNODE_CONST
#define hcomm_devnode_device		const struct device
#else
#define hcomm_devnode_device		struct device
#endif

#ifndef HCOMM_HAVE_VM_FLAGS_SET
static inline void vm_flags_set(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags |= flags;
}

static inline void vm_flags_clear(struct vm_area_struct *vma, vm_flags_t flags)
{
	vma->vm_flags &= ~flags;
}
#endif

/* In a TP_fast_assign(): the source is that of the matching __string(). */
#ifdef HCOMM_HAVE_ASSIGN_STR_DST
#define hcomm_assign_str(dst, src)	__assign_str(dst)
#else
#define hcomm_assign_str(dst, src)	__assign_str(dst, src)
#endif

#ifdef HCOMM_HAVE_IMPORT_NS_TOKEN
#define HCOMM_IMPORT_NS(ns)		MODULE_IMPORT_NS(ns)
#else
#define HCOMM_IMPORT_NS(ns)		MODULE_IMPORT_NS(#ns)
#endif

#ifndef HCOMM_HAVE_FD_FILE_FUNCTION
#define fd_file(f)			((f).file)
#endif

/* A descriptor of @file for the caller, its number in @ufd, or neither. */
static inline int hcomm_receive_fd(struct file *file, int __user *ufd,
				   unsigned int flags)
{
#ifdef HCOMM_HAVE_RECEIVE_FD_TOLD
	return receive_fd(file, ufd, flags);
#else
	int fd = receive_fd(file, flags);

	if (fd >= 0 && put_user(fd, ufd)) {
		close_fd(fd);
		return -EFAULT;
	}
	return fd;
#endif
}

#ifndef HCOMM_HAVE_TIMER_DELETE_TIMER
#define timer_delete_sync(timer)	del_timer_sync(timer)
#endif

#ifndef HCOMM_HAVE_TIMER_CONTAINER_OF
#define timer_container_of(var, timer, field) from_timer(var, timer, field)
#endif

#ifndef HCOMM_HAVE_HRTIMER_SETUP
static inline void
hrtimer_setup(struct hrtimer *timer,
	      enum hrtimer_restart (*function)(struct hrtimer *timer),
	      clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* HCOMM_COMPAT_H */
