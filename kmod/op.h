/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An op is one accepted SQE on its way. It holds its member, its local memory
 * object and a completion slot; it needs no credentials and no mm to run.
 *
 * Life: taken (on member->ops) -> parked on a semaphore, or dispatched ->
 * owned by copy.c (target on this instance) or by session.c (elsewhere) ->
 * hcomm_op_complete() exactly once.
 *
 * References: one is dropped by the completion. One travels: ring -> dispatch,
 * or ring -> dispatch -> semaphore -> ready list -> dispatch; the last dispatch
 * drops it when the owner has taken over. A fault completes every op of its
 * member at once, whoever owns it: an owner that still looks at the op, or
 * whose hardware still reads the buffer, needs a reference of its own. The
 * object stays pinned until the last is gone.
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
struct work_struct;

enum hcomm_op_owner {
	HCOMM_OP_WAITING,		/* parked, ready, or about to dispatch */
	HCOMM_OP_TRANSIT,		/* being handed over */
	HCOMM_OP_COPIER,
	HCOMM_OP_SESSION,
};

struct hcomm_op {
	struct kref ref;
	struct hcomm_member *member;
	struct hcomm_mem *mem;		/* NULL when the opcode has no local data */
	struct hcomm_sqe sqe;		/* checked copy */
	ktime_t deadline;
	enum hcomm_op_owner owner;	/* member->lock */
	bool done;			/* member->lock */
	struct list_head member_node;	/* member->ops */
	struct list_head node;		/* owner's queue, or member->ready; empty
					 * when on none: list_del_init()
					 */
	struct hcomm_trigger trigger;	/* parked while queued */
	bool waiting;			/* on endpoint->waiting; its lock */
	struct hcomm_member *target;	/* copy.c, referenced */
	struct {			/* flow_tx.c; the stream's lock */
		u64 offset;		/* bytes handed to the flow so far */
		u64 seq;		/* of the last piece */
		u32 open;		/* pieces in the flow */
		int status;		/* first error of a piece */
		bool whole;		/* no piece is missing */
	} tx;
};

int hcomm_ops_init(void);
void hcomm_ops_exit(void);

/*
 * Checks the SQE and makes the op; the completion slot is reserved already.
 * Process context. An error pointer is the result the CQE has to tell.
 */
struct hcomm_op *hcomm_op_create(struct hcomm_member *member,
				 const struct hcomm_sqe *sqe);
/*
 * Hands the op to its owner and drops the travelling reference. Once after
 * hcomm_op_create() and once for each op taken from member->ready. No lock
 * held, any context.
 */
void hcomm_op_dispatch(struct hcomm_op *op);
/*
 * Ends the op: CQE, wake-up, drops the creation reference. Idempotent: the
 * first call wins, so a fault and a late ack may race; who comes second needs
 * a reference to call at all. No lock held, any context.
 */
void hcomm_op_complete(struct hcomm_op *op, int result, u64 flow_seq);
/*
 * Nothing reads or writes the op's object any more. Who says so before it
 * completes the op lets the process destroy the object as soon as it sees the
 * completion; else the object is busy until the last reference. By the owner.
 */
void hcomm_op_drop_object(struct hcomm_op *op);
void hcomm_op_get(struct hcomm_op *op);
void hcomm_op_put(struct hcomm_op *op);		/* any context */

/*
 * Ends every op of a member that is no longer active, those that are posted
 * included; a local copy that runs at this moment ends by itself within its
 * next 64 KiB. Process context.
 */
void hcomm_ops_cancel(struct hcomm_member *member, int result);

/*
 * The function of member->expire_work, which hcomm_op_create() arms. Who ends
 * the member cancels the work after the state has changed.
 */
void hcomm_ops_expire(struct work_struct *work);

#endif
