/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What may be sent again after a path was lost
 *
 * One struct hcomm_fence per session.  Each connection of a path (both its QPs)
 * has an epoch, numbered by the connecting side, one per attempt.  When a path
 * is lost, on either side and for any reason:
 *
 *   1 hcomm_fence_lost(): every part posted on it is in doubt;
 *   2 the driver moves both QPs to error, drains them, processes every good
 *     completion, destroys them, then hcomm_fence_drained();
 *   3 from then on this side owes the peer a report: "of path p, all epochs up
 *     to e are dead here; of each flow I have this".  It leaves over any
 *     connected path (hcomm_fence_next()), in 1 KiB chunks, starts again on
 *     another path if that one is lost too, until a FENCE_ACK arrives;
 *   4 the peer's report arrives (hcomm_fence_receive()): placed parts are
 *     marked chunk by chunk.  When the report is whole and our own drain is
 *     over, the parts still in doubt become unposted and go out again.
 *
 * A new connection of the path may be made once the old one is drained here
 * (hcomm_fence_connect(), hcomm_fence_accept()); it carries reports and control
 * messages at once, and parts when hcomm_fence_may_post().  A peer that did not
 * notice the loss learns it from the report (lost in struct hcomm_fence_result).
 *
 * Driver's duties: a post after hcomm_fence_lost() is refused under the path's
 * own send lock; every message that arrived is given in, also while draining,
 * and none after hcomm_fence_drained().
 *
 * Locks: the caller serialises all calls on one fence (session lock).  The lock
 * and unlock hooks bracket each access to a flow.  Order: session > flow.
 */
#ifndef HCOMM_CORE_FENCE_H
#define HCOMM_CORE_FENCE_H

#include "shim.h"
#include "flow.h"
#include "wire.h"

struct hcomm_fence;

struct hcomm_fence_ops {
	/* The flow lock; both NULL where the session lock is the flow lock. */
	void (*lock)(struct hcomm_fence *fence, struct hcomm_flow *flow);
	void (*unlock)(struct hcomm_fence *fence, struct hcomm_flow *flow);
	/* @flow has parts to post again; called outside the flow lock. */
	void (*kick)(struct hcomm_fence *fence, struct hcomm_flow *flow);
	/* The flow on this fence with our handle and these ranks, or NULL. */
	struct hcomm_flow *(*find)(struct hcomm_fence *fence, u32 group,
				   u32 src, u32 dst);
};

struct hcomm_fence_path {
	u32 epoch;		/* highest connection begun or ruled out */
	u32 drained;		/* all connections up to this are drained */
	u32 told;		/* peer acknowledged our report up to this */
	u32 heard;		/* whole report of the peer up to this */
	u32 fenced;		/* doubts resolved up to this */
	bool live;		/* connection `epoch` is begun, not lost */
	bool connected;		/* ...and established */

	/* our report on its way */
	bool reporting;
	bool told_all;		/* last chunk left, FENCE_ACK awaited */
	u8 via;
	u32 report_epoch;
	u32 attempt;
	u32 chunk;
	struct hcomm_flow *flow;	/* cursor: next flow to tell of */
	struct hcomm_flow_cursor at;

	/* the peer's report arriving */
	u32 in_epoch;
	u32 in_attempt;
	u32 in_chunk;		/* next chunk expected */
	bool in_open;

	/* FENCE_ACK to send */
	bool ack_due;
	u8 ack_via;
	u32 ack_epoch;
};

struct hcomm_fence {
	const struct hcomm_fence_ops *ops;
	u32 chunk_bytes;	/* most payload of one FENCED message */
	struct list_head flows;	/* struct hcomm_flow.node */
	struct hcomm_fence_path path[HCOMM_PATHS];
};

/* What the driver must do after a call. */
struct hcomm_fence_result {
	u32 lost;		/* take these live paths down */
	u32 cleared;		/* these paths may carry parts now */
	bool send;		/* hcomm_fence_next() has something */
};

/*
 * @chunk_bytes: HCOMM_FENCE_RECORD + HCOMM_FENCE_PAIR at least,
 * HCOMM_WIRE_PAYLOAD at most.
 */
void hcomm_fence_init(struct hcomm_fence *fence,
		      const struct hcomm_fence_ops *ops, u32 chunk_bytes);

/* The flow's lock is not needed: nobody else knows it yet (any more). */
void hcomm_fence_flow_add(struct hcomm_fence *fence, struct hcomm_flow *flow);
void hcomm_fence_flow_del(struct hcomm_fence *fence, struct hcomm_flow *flow);

/*
 * Connecting side: begins the next connection of @path and returns its epoch in
 * *@epoch.  -EBUSY: the one before is not lost and drained yet.
 */
int hcomm_fence_connect(struct hcomm_fence *fence, unsigned int path,
			u32 *epoch);

/*
 * Accepting side: the peer asks for connection @epoch.  -ESTALE: refuse, it is
 * old.  -EBUSY: an older one is not drained yet; if result->lost names it, it
 * still looked alive: take it down, accept later or refuse.
 */
int hcomm_fence_accept(struct hcomm_fence *fence, unsigned int path, u32 epoch,
		       struct hcomm_fence_result *result);

/*
 * The same while the session has never been open: anybody can ask, and what
 * was asked before, with however high an epoch, binds nobody.
 */
int hcomm_fence_accept_first(struct hcomm_fence *fence, unsigned int path,
			     u32 epoch, struct hcomm_fence_result *result);

/* Both QPs of the live connection are established. */
void hcomm_fence_connected(struct hcomm_fence *fence, unsigned int path,
			   struct hcomm_fence_result *result);

/* The live connection (or attempt) of @path is lost; no-op when none is. */
void hcomm_fence_lost(struct hcomm_fence *fence, unsigned int path);

/* It is drained: no message of it will be given in any more. */
void hcomm_fence_drained(struct hcomm_fence *fence, unsigned int path,
			 struct hcomm_fence_result *result);

/* True when parts may be posted on @path. */
bool hcomm_fence_may_post(const struct hcomm_fence *fence, unsigned int path);

/* True when path losses are not fully resolved (for sysfs and closing). */
bool hcomm_fence_pending(const struct hcomm_fence *fence, unsigned int path);

/*
 * Builds the next message (FENCED or FENCE_ACK) for the connected path @via in
 * @buf (HCOMM_WIRE_MESSAGE bytes) with @credits in its header; returns its
 * length or 0.  The message counts as sent: if it cannot be posted, @via is
 * lost.  Ask first hcomm_fence_wants(), which changes nothing.
 */
bool hcomm_fence_wants(const struct hcomm_fence *fence, unsigned int via);
u32 hcomm_fence_next(struct hcomm_fence *fence, unsigned int via, u16 credits,
		     void *buf);

/*
 * A FENCED or FENCE_ACK message arrived over path @via.  Completed ops move to
 * @done.  -EPROTO: the peer is wrong, reset the session.
 */
int hcomm_fence_receive(struct hcomm_fence *fence, unsigned int via,
			const struct hcomm_wire_msg *m, struct list_head *done,
			struct hcomm_fence_result *result);

/* Payload of FENCED: records of 32 bytes, each followed by its pairs. */
#define HCOMM_FENCE_RECORD	32
#define HCOMM_FENCE_PAIR	16

struct hcomm_fence_record {
	u32 group;		/* handle of the reader */
	u32 src;		/* rank of the reader's member (data's source) */
	u32 dst;		/* rank of the writer's member */
	u16 nops;
	u16 ngets;
	u64 ack;
	u64 floor;
};

/*
 * Reads the record at *@pos of a FENCED payload that hcomm_wire_decode()
 * accepted, sets *@pairs and moves *@pos behind its pairs.  False at the end.
 */
bool hcomm_fence_record_next(const struct hcomm_wire_msg *m, u32 *pos,
			     struct hcomm_fence_record *r, const u8 **pairs);

#endif /* HCOMM_CORE_FENCE_H */
