/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A proc is one process (address space) on one instance: it owns memory
 * objects, memberships, the wake page and the place to sleep. It is made by
 * the first JOIN or MEM_CREATE and ends with the last file bound to it or
 * with the address space, whichever comes first; the structure itself lives
 * until the last reference (members, objects, ops) is gone.
 */
#ifndef HCOMM_PROC_H
#define HCOMM_PROC_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "../uapi/hcomm.h"

struct hcomm_instance;
struct hcomm_member;

struct hcomm_proc {
	struct kref ref;
	struct rcu_head rcu;
	struct hcomm_instance *instance;
	struct mm_struct *mm;		/* pinned by the notifier, never for access */
	struct mmu_notifier notifier;
	kuid_t uid;			/* of the first caller; caps count against it */
	pid_t pid;			/* tgid in init_pid_ns, for observers */
	struct list_head node;		/* instance->procs, procs_lock */
	unsigned int files;		/* bound, not yet unbound; procs_lock */

	struct mutex lock;		/* objects, members, dead */
	struct xarray objects;		/* handle -> hcomm_mem */
	struct xarray members;		/* index -> hcomm_member, holds a reference */
	u32 next_member;		/* indices are never used twice */
	unsigned int nr_members;
	bool dead;			/* no new members and objects */

	struct hcomm_wake_page *wake_page; /* area.h; written, never read */
	spinlock_t wake_lock;		/* the two generations; innermost lock */
	u32 wake;
	u32 activity;
	wait_queue_head_t wait;
	struct work_struct end_work;	/* ends members and objects after death */
	struct work_struct free_work;
};

/*
 * Finds or makes the proc of current->mm and binds the calling file to it; the
 * reference is the file's until its release.
 */
struct hcomm_proc *hcomm_proc_bind(struct hcomm_instance *instance);
/* The owner's last use of a bound file: at zero files the objects go. */
void hcomm_proc_unbind(struct hcomm_proc *proc);
void hcomm_proc_get(struct hcomm_proc *proc);
void hcomm_proc_put(struct hcomm_proc *proc);	/* any context */

/* Gives @member its index and the proc's reference to it. */
int hcomm_proc_add_member(struct hcomm_proc *proc, struct hcomm_member *member);
/* Drops that reference. */
void hcomm_proc_remove_member(struct hcomm_proc *proc,
			      struct hcomm_member *member);
/* A referenced member that has not ended, or NULL. */
struct hcomm_member *hcomm_proc_member(struct hcomm_proc *proc, u32 index);

/*
 * Something changed: bumps activity, and wake too when @urgent, then wakes
 * sleepers. Any context. The matching read is in hcomm_wait_any().
 */
void hcomm_proc_notify(struct hcomm_proc *proc, bool urgent);

#endif
