/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A memory object is a pinned range of a process, made once per process and
 * instance and shared by all groups of that process. The transport hangs its
 * registrations (one table of MRs per RDMA device) on the object; they go
 * with the object's last window or, for purely local operands, with the
 * object.
 */
#ifndef HCOMM_MEMORY_H
#define HCOMM_MEMORY_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "../uapi/hcomm.h"

struct hcomm_instance;
struct hcomm_proc;
struct page;

struct hcomm_mem {
	struct kref ref;
	struct hcomm_proc *proc;
	u32 handle;
	u64 base;			/* user address, for observers */
	u64 length;
	u32 base_off;			/* of the first byte in the first page */
	unsigned long nr_pages;
	unsigned long nr_pinned;	/* of them; all once visible */
	struct page **pages;

	spinlock_t lock;		/* windows, revoking; BH-safe */
	struct list_head windows;	/* hcomm_window.mem_node */
	unsigned int nr_windows;
	unsigned int revoking;		/* windows on their way out */
	unsigned int users;		/* ops that name the object */

	struct mutex mr_lock;		/* tables; session side (mr.c) */
	struct list_head mr_tables;
	struct list_head node;		/* every object that still exists, memory.c */
	bool orphaned;			/* charged to the uid, not to the mm */
	struct work_struct free_work;
};

int hcomm_mem_create(struct hcomm_proc *proc, struct hcomm_mem_create *arg);
int hcomm_mem_destroy(struct hcomm_proc *proc, u32 handle);
/* Drops the handles of all objects of a proc that ended. Process context. */
void hcomm_mem_destroy_all(struct hcomm_proc *proc);

struct hcomm_mem *hcomm_mem_find(struct hcomm_proc *proc, u32 handle);
/* The same for an op: until hcomm_mem_unuse() the object cannot be destroyed. */
struct hcomm_mem *hcomm_mem_use(struct hcomm_proc *proc, u32 handle);
void hcomm_mem_unuse(struct hcomm_mem *mem);	/* any context; drops the ref */
void hcomm_mem_get(struct hcomm_mem *mem);
void hcomm_mem_put(struct hcomm_mem *mem);	/* any context */

/* True if [off, off + len) lies inside the object; no overflow. */
bool hcomm_mem_inside(const struct hcomm_mem *mem, u64 off, u64 len);

/* Copies between the pinned pages and a kernel buffer. Any context. */
void hcomm_mem_write(struct hcomm_mem *mem, u64 off, const void *src, size_t len);
void hcomm_mem_read(struct hcomm_mem *mem, u64 off, void *dst, size_t len);
/* Between two objects; handles overlap of the same object as memmove does. */
void hcomm_mem_copy(struct hcomm_mem *dst, u64 dst_off, struct hcomm_mem *src,
		    u64 src_off, size_t len);

/* Every object of an instance that is still pinned, for observers. */
void hcomm_mem_for_each(struct hcomm_instance *instance,
			void (*fn)(struct hcomm_mem *mem, void *arg), void *arg);

#endif
