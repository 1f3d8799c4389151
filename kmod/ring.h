/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Submission, completion and event rings of one member, shared with the
 * process. The kernel works on its own copies of heads and tails. A
 * completion slot is reserved when an SQE is taken, so nothing overflows.
 */
#ifndef HCOMM_RING_H
#define HCOMM_RING_H

#include <linux/types.h>

#include "core/ringmath.h"
#include "../uapi/hcomm.h"

struct hcomm_member;

struct hcomm_ring {
	void *shared;			/* area.h: indices, CQEs, events */
	struct hcomm_sqe *sqes;		/* area.h */
	struct hcomm_ring_setup layout;
	u32 sq_head;			/* the kernel's own copy; submit_lock */
	struct hcomm_ring_cq cq;	/* member lock */
	struct hcomm_ring_cq events;	/* member lock; nothing is promised */
	bool starved;			/* member lock; a slot was asked for in vain */
	bool ready;			/* stored with release when all is set */
};

int hcomm_ring_setup(struct hcomm_member *member, struct hcomm_ring_setup *arg);
void hcomm_ring_free(struct hcomm_member *member);
/* The areas are there and stay. Any context. */
bool hcomm_ring_is_ready(const struct hcomm_member *member);

/*
 * Takes up to @count SQEs in the caller's context: copies, checks, reserves a
 * completion slot, starts. Returns how many were taken or a negative errno
 * when none was.
 */
int hcomm_ring_submit(struct hcomm_member *member, u32 count);

/*
 * Writes the CQE of an op that holds a reserved slot, or gives the slot back
 * when the op is silent and succeeded. True: a slot has been asked for in vain,
 * so the process hears of this one. Member lock held.
 */
bool hcomm_ring_complete(struct hcomm_member *member, const struct hcomm_cqe *cqe,
			 bool silent);
/* Writes an event if there is room. Member lock held. */
bool hcomm_ring_post_event(struct hcomm_member *member,
			   const struct hcomm_event *event);
/* Completions or events that the process has not consumed. Member lock held. */
bool hcomm_ring_readable(struct hcomm_member *member);

#endif
