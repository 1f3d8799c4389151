/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An op is one accepted SQE on its way. It holds its member, its local memory
 * object and a completion slot; it needs no credentials and no mm to run.
 *
 * Life: taken (on member->ops) -> parked on a semaphore, or dispatched ->
 * owned by copy.c (target on this instance) or by session.c (elsewhere) ->
 * hcomm_op_complete() exactly once. Owners may hold extra references while
 * hardware still reads the buffer: the object stays pinned until the last.
 */
#ifndef HCOMM_OP_H
#define HCOMM_OP_H

#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/list.h>

#include "core/flow.h"
#include "core/trigger.h"
#include "../uapi/hcomm.h"

struct hcomm_member;
struct hcomm_mem;

struct hcomm_op {
	struct kref ref;
	struct hcomm_member *member;
	struct hcomm_mem *mem;		/* NULL when the opcode has no local data */
	struct hcomm_sqe sqe;		/* checked copy */
	ktime_t deadline;
	bool done;			/* member->lock */
	struct list_head member_node;	/* member->ops */
	struct list_head node;		/* owner's queue: ready, copier or flow */
	struct hcomm_trigger trigger;	/* parked while queued */
	struct hcomm_flow_op tx;	/* flow state, session.c */
	void *flow;			/* session.c */
};

int hcomm_ops_init(void);
void hcomm_ops_exit(void);

/* Checks the SQE and makes the op; the completion slot is reserved already. */
struct hcomm_op *hcomm_op_create(struct hcomm_member *member,
				 const struct hcomm_sqe *sqe);
/* Hands the op to its owner. No lock held, any context. */
void hcomm_op_dispatch(struct hcomm_op *op);
/*
 * Ends the op: CQE, wake-up, drops the creation reference. Idempotent: the
 * first call wins, so a fault and a late ack may race. No lock held, any
 * context.
 */
void hcomm_op_complete(struct hcomm_op *op, int result, u64 flow_seq);
void hcomm_op_get(struct hcomm_op *op);
void hcomm_op_put(struct hcomm_op *op);		/* any context */

/* Ends all that can end now: parked, local, and remote with nothing posted. */
void hcomm_ops_cancel(struct hcomm_member *member, int result);

#endif
