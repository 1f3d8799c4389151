/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Submission, completion and event rings of one member, shared with the
 * process. The kernel works on its own copies of heads and tails. A
 * completion slot is reserved when an SQE is taken, so nothing overflows.
 */
#ifndef HCOMM_RING_H
#define HCOMM_RING_H

#include <linux/types.h>

#include "../uapi/hcomm.h"

struct hcomm_member;
struct hcomm_op;
struct vm_area_struct;

struct hcomm_ring {
	void *shared;			/* area.h: indices, CQEs, events */
	struct hcomm_sqe *sqes;		/* area.h */
	struct hcomm_ring_setup layout;
	u32 sq_mask, cq_mask, event_mask;
	u32 sq_head;			/* kernel's own copies */
	u32 cq_tail;
	u32 cq_reserved;		/* slots promised to ops in flight */
	u32 event_tail;
};

int hcomm_ring_setup(struct hcomm_member *member, struct hcomm_ring_setup *arg);
void hcomm_ring_free(struct hcomm_member *member);

/*
 * Takes up to @count SQEs in the caller's context: copies, checks, reserves a
 * completion slot, starts. Returns how many were taken or a negative errno
 * when none was.
 */
int hcomm_ring_submit(struct hcomm_member *member, u32 count);

/* Writes the CQE of an op that holds a reserved slot. Member lock held. */
void hcomm_ring_complete(struct hcomm_member *member, const struct hcomm_cqe *cqe,
			 bool silent);

#endif
