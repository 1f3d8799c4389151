/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Semaphores: one 64-byte line each in pages that the process maps read-only;
 * lines 0 and 1 tell the group's state. And the one place to sleep.
 */
#ifndef HCOMM_SEM_H
#define HCOMM_SEM_H

#include <linux/types.h>

#include "../uapi/hcomm.h"

struct hcomm_member;
struct hcomm_op;
struct hcomm_proc;
struct hcomm_trigger_set;

struct hcomm_sems {
	void *pages;			/* area.h */
	size_t bytes;
	u32 count;
	u64 *values;			/* the kernel's copies; pages are write-only */
	struct hcomm_trigger_set *triggers; /* one per semaphore */
};

int hcomm_sems_init(struct hcomm_member *member, u32 count);
void hcomm_sems_free(struct hcomm_member *member);

/* Adds and publishes; moves ops whose threshold is reached to member->ready. */
int hcomm_sems_add(struct hcomm_member *member, u32 sem, u32 delta);

/* Parks @op until its threshold; false if it is reached already. Lock held. */
bool hcomm_sems_park(struct hcomm_member *member, struct hcomm_op *op);
void hcomm_sems_unpark(struct hcomm_member *member, struct hcomm_op *op);

/* Publishes state and fault in line 0. Lock held. */
void hcomm_sems_publish_state(struct hcomm_member *member);

/* The sleep of ENTER. @self is the member of the file. */
int hcomm_wait_any(struct hcomm_proc *proc, struct hcomm_member *self,
		   struct hcomm_enter *arg);
/* The wake of ENTER: notifies the process of local rank @rank. */
int hcomm_wake_rank(struct hcomm_member *self, u32 rank);

#endif
