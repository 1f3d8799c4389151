/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ops between one local and one remote member
 *
 * struct hcomm_flow holds both directions between a local member and a remote
 * one: tx, the ops we send, and rx, the ops we receive; each is numbered by its
 * own 64-bit sequence.  The same struct exists, mirrored, in the peer.
 *
 * Sender.  An op is 1..64 parts.  A part is unposted, posted (on a path), in
 * doubt (posted on a path that was lost) or placed (the peer said so).  A part
 * in doubt is never posted again before the peer, whose queue pair of that path
 * is dead and drained, has told which parts it has (fence.h): a WRITE that is
 * repeated after its arrival was announced overwrites memory the peer's user
 * may already use for something else.  Ops complete by the cumulative
 * acknowledgment, in order; at most `window` are open.
 *
 * Receiver.  `next` is the first op not yet placed; arrivals up to next + window
 * are remembered as bitmaps of parts.  Signals and GET requests are delivered
 * strictly in sequence, each when all ops before it are placed, unless the op
 * is UNORDERED.
 *
 * GETs.  A GET request is an op like any other; its reply is a separate op of
 * the peer, identified by the get number (counted from 0 in each flow) and kept
 * outside the peer's own sequence.  The requester remembers placed reply parts
 * from the floor (lowest unfinished get) on; the owner keeps a reply until the
 * floor has passed it.  At most 64 gets are in flight.
 *
 * Locks: every function wants the flow lock of @flow held by the caller, which
 * must also exclude fence.c's access (its lock hooks).  Nothing sleeps.
 * Lifetime: ops, slots and the get table belong to the caller; an op must live
 * until it was handed back on a `done` list.  Completed ops are handed back and
 * not called back because completing takes the member lock, which ranks above
 * the flow lock.
 */
#ifndef HCOMM_CORE_FLOW_H
#define HCOMM_CORE_FLOW_H

#include "shim.h"
#include "wire.h"

#define HCOMM_FLOW_WINDOW	1024	/* open ops of one flow */
#define HCOMM_FLOW_GETS		64	/* gets in flight */
#define HCOMM_FLOW_ACK_OPS	32	/* acknowledge after so many ops... */
#define HCOMM_FLOW_ACK_NS	50000	/* ...or so long */

enum hcomm_flow_kind {
	HCOMM_FLOW_OP,		/* PUT, SIGNAL: done when acknowledged */
	HCOMM_FLOW_GET,		/* done when acknowledged and answered */
	HCOMM_FLOW_REPLY,	/* done when the peer's get floor passed it */
	HCOMM_FLOW_MARK,	/* no message; done when all before it are */
};

/* The sender's half of an op, embedded in the caller's. */
struct hcomm_flow_op {
	struct list_head node;	/* on tx.open, tx.gets_open, tx.replies, done */
	struct list_head todo;	/* on tx.todo[qp] while parts are unposted */
	u64 seq;		/* REPLY: of the request */
	u64 number;		/* GET, REPLY: get number */
	u64 unposted;		/* bitmaps over parts, disjoint */
	u64 posted;
	u64 doubt;
	u64 placed;
	int status;		/* 0, or -errno of a NACK, GET_ERR or kill */
	u8 kind;
	u8 qp;			/* enum hcomm_wire_qp its parts travel on */
	u8 nparts;
	bool acked;		/* GET: request acknowledged */
	bool answered;		/* GET: whole reply placed */
	bool voided;		/* post a SIGNAL without semaphore instead */
	bool replayed;		/* a part of it was in doubt once */
	u8 path[HCOMM_WIRE_PARTS];	/* of each part posted or in doubt */
};

/* What the receiver remembers of an op that is not retired. */
struct hcomm_flow_slot {
	u64 placed;
	void *cookie;		/* the caller's, as given with the last part */
	u32 sem;
	u32 delta;
	u32 aux;
	u8 nparts;		/* 0: slot is empty */
	u8 type;		/* enum hcomm_wire_type of the message */
	u8 flags;		/* HCOMM_WIRE_F_* of the message */
	bool delivered;
};

/* What the requester remembers of a get at or above the floor. */
struct hcomm_flow_get {
	u64 placed;
	struct hcomm_flow_op *op;	/* NULL once finished */
	u8 nparts;		/* 0: no reply part arrived */
	bool finished;
};

enum hcomm_flow_verdict {
	HCOMM_RX_NEW,		/* first arrival: (to be) placed */
	HCOMM_RX_DUPLICATE,	/* already placed: drop; the peer broke a rule
				 * if it was written
				 */
	HCOMM_RX_OUT_OF_WINDOW,	/* the peer broke the window: protocol error */
	HCOMM_RX_INCONSISTENT,	/* parts of one op disagree: protocol error */
};

enum hcomm_flow_ack {
	HCOMM_ACK_NONE,		/* nothing to acknowledge */
	HCOMM_ACK_LATER,	/* arm a timer of HCOMM_FLOW_ACK_NS */
	HCOMM_ACK_NOW,		/* send an ACK unless a header is leaving */
};

struct hcomm_flow;

struct hcomm_flow_ops {
	/*
	 * Op @seq is due in its place of the order: answer the GET (slot->type
	 * GET_REQ, whose slot->sem is the get number), otherwise apply the
	 * signal (slot->sem unless HCOMM_WIRE_NO_SEM).  Called with the flow lock held, from
	 * hcomm_flow_rx_place() only, for every op exactly once.
	 */
	void (*deliver)(struct hcomm_flow *flow, u64 seq,
			const struct hcomm_flow_slot *slot);
};

struct hcomm_flow_tx {
	u64 next;		/* sequence of the next op */
	u64 una;		/* all ops below are acknowledged */
	struct list_head open;	/* ops and marks by sequence, not acked */
	struct list_head gets_open;	/* acked GETs that wait for the reply */
	struct list_head replies;	/* REPLY ops by number */
	struct list_head todo[2];	/* by enum hcomm_wire_qp */
	struct hcomm_flow_get *gets;	/* HCOMM_FLOW_GETS, or NULL */
	u64 get_next;		/* number of the next get */
	u64 get_floor;		/* all gets below are finished */
	u64 floor_told;		/* last get floor that left */
	u64 reply_next;		/* above every reply queued */
	u64 reply_floor;	/* the peer's get floor */
	u32 window;
	u32 blocked;		/* paths whose parts in doubt await a report */
};

struct hcomm_flow_rx {
	u64 next;		/* all ops below are placed */
	u64 top;		/* above every op of which a part arrived */
	u64 cap;		/* never acknowledge beyond, U64_MAX: no cap */
	u64 cap_ctl;		/* control message that lifts the cap */
	u64 acked;		/* last cumulative ack that left */
	struct hcomm_flow_slot *slots;
	u32 mask;		/* window - 1 */
};

struct hcomm_flow {
	struct list_head node;	/* on the session's fence (fence.h) */
	const struct hcomm_flow_ops *ops;
	u32 group;		/* our handle of the group: peers write it */
	u32 peer_group;		/* the peer's handle: we write it */
	u32 src;		/* local rank */
	u32 dst;		/* remote rank */
	bool killed;		/* in no report */
	struct hcomm_flow_tx tx;
	struct hcomm_flow_rx rx;
};

/*
 * @slots: @window zeroed slots; @window is a power of two up to
 * HCOMM_FLOW_WINDOW, equal on both sides (the kernel uses HCOMM_FLOW_WINDOW).
 * @gets: HCOMM_FLOW_GETS zeroed entries, or NULL and hcomm_flow_gets() later.
 */
void hcomm_flow_init(struct hcomm_flow *flow, const struct hcomm_flow_ops *ops,
		     struct hcomm_flow_slot *slots, u32 window,
		     struct hcomm_flow_get *gets);

/* Supplies the get table before the first GET of the flow. */
void hcomm_flow_gets(struct hcomm_flow *flow, struct hcomm_flow_get *gets);

/* ---- sender ---- */

/* True when hcomm_flow_tx_admit() would take an op of @kind. */
bool hcomm_flow_tx_room(const struct hcomm_flow *flow, u8 kind);

/*
 * Gives @op its sequence and queues its parts.  @kind OP or GET (nparts 1 for
 * everything on the small QP).  -EAGAIN: window or gets full, park the op
 * (order within the flow is the caller's: park behind what is parked).
 */
int hcomm_flow_tx_admit(struct hcomm_flow *flow, struct hcomm_flow_op *op,
			u8 kind, u8 qp, unsigned int nparts);

/*
 * Queues @op as a mark: it comes back on a done list when every op admitted
 * before it is acknowledged.  False: that is the case already, @op not used.
 */
bool hcomm_flow_tx_mark(struct hcomm_flow *flow, struct hcomm_flow_op *op);

/*
 * Queues the reply to get @number, whose request was op @seq of the peer.
 * False: the peer's floor has passed it, or it has a reply already (the peer
 * asks twice under one number): nothing is to be sent.
 */
bool hcomm_flow_tx_reply(struct hcomm_flow *flow, struct hcomm_flow_op *op,
			 u64 seq, u64 number, u8 qp, unsigned int nparts);

/*
 * The next part to post on path @path and QP kind @qp: its op, and its number
 * in *@part; NULL when there is none or the path is blocked.  Changes nothing.
 */
struct hcomm_flow_op *hcomm_flow_tx_peek(struct hcomm_flow *flow,
					 unsigned int path, u8 qp,
					 unsigned int *part);

/*
 * @part of @op is about to be posted on @path.  Must be called under the same
 * hold of the flow lock as the peek, before the post, so that losing the path
 * finds it.  If the path then refuses the post (it is going down), leave it:
 * the fence will return it.  A refusal for lack of room: hcomm_flow_tx_unpost().
 */
void hcomm_flow_tx_posted(struct hcomm_flow_op *op, unsigned int part,
			  unsigned int path);
/* Takes back a part that surely never reached the queue pair. */
void hcomm_flow_tx_unpost(struct hcomm_flow *flow, struct hcomm_flow_op *op,
			  unsigned int part);

/* True when no part of @op was ever handed to a path and not taken back. */
bool hcomm_flow_tx_untouched(const struct hcomm_flow_op *op);
/* A get whose request may have left waits for its reply. */
bool hcomm_flow_tx_getting(const struct hcomm_flow *flow);

/*
 * Turns an untouched op into a bare SIGNAL message without semaphore, which
 * only fills its place in the sequence, and sets op->status.  The caller may
 * complete it towards the user at once but keeps @op until it is done.  -EBUSY:
 * something was posted, the op cannot be given up alone.
 */
int hcomm_flow_tx_void(struct hcomm_flow *flow, struct hcomm_flow_op *op,
		       int status);

/*
 * Cumulative acknowledgment from any header of the flow.  Completed ops move
 * to @done in order.  -EPROTO: acknowledges what was never (or not again)
 * posted.
 */
int hcomm_flow_tx_ack(struct hcomm_flow *flow, u32 ack, struct list_head *done);

/*
 * NACK of op @seq (never of a GET, whose error is its reply): remembers the
 * error until the op is acknowledged.  -EPROTO: no such op is open.
 */
int hcomm_flow_tx_nack(struct hcomm_flow *flow, u64 seq, int status);

/* The peer's get floor (low 32 bits) from GET_REQ or ACK: completes replies. */
int hcomm_flow_tx_floor(struct hcomm_flow *flow, u32 floor,
			struct list_head *done);

/* ---- receiver ---- */

/*
 * What hcomm_flow_rx_place() would say of this header (PART, EAGER, SIGNAL,
 * GET_REQ of the peer to us).  For EAGER: check, copy the payload, place, all
 * under one hold of the flow lock.
 */
enum hcomm_flow_verdict hcomm_flow_rx_check(const struct hcomm_flow *flow,
					    const struct hcomm_wire_hdr *h);

/*
 * The part that @h announces is in memory: records it and delivers what became
 * due.  @cookie is kept for deliver(); only ops of one part may have one.
 */
enum hcomm_flow_verdict hcomm_flow_rx_place(struct hcomm_flow *flow,
					    const struct hcomm_wire_hdr *h,
					    void *cookie);

/*
 * A part of a reply to one of our gets (GET_PART, GET_EAGER, GET_ERR): check
 * and place as above.  A finished GET moves to @done.
 */
enum hcomm_flow_verdict hcomm_flow_reply_check(const struct hcomm_flow *flow,
					       const struct hcomm_wire_hdr *h);
enum hcomm_flow_verdict hcomm_flow_reply_place(struct hcomm_flow *flow,
					       const struct hcomm_wire_hdr *h,
					       struct list_head *done);
/*
 * The op of a get that @h answers, to find the destination of a GET_EAGER;
 * NULL if unknown or killed.
 */
struct hcomm_flow_op *hcomm_flow_reply_op(const struct hcomm_flow *flow,
					  const struct hcomm_wire_hdr *h);

/*
 * Op @seq of the peer fails on our side and control message @ctl_seq tells so.
 * Call it before placing the op: no acknowledgment covers the op until the
 * peer acknowledged that message (hcomm_flow_rx_ctl_acked()).
 */
void hcomm_flow_rx_nack(struct hcomm_flow *flow, u64 seq, u64 ctl_seq);
void hcomm_flow_rx_ctl_acked(struct hcomm_flow *flow, u64 ctl_una);

/* Expands the low half of a get number in a request of the peer. */
u64 hcomm_flow_reply_number(const struct hcomm_flow *flow, u32 low);

/* Whether an acknowledgment should leave. */
enum hcomm_flow_ack hcomm_flow_ack_due(const struct hcomm_flow *flow);

/*
 * Fills group, src, dst and ack (and, in ACK and GET_REQ, the get floor in aux)
 * of a header about to be posted, and counts it as the acknowledgment.  Losing
 * that message is harmless: the report that follows a lost path repeats it.
 */
void hcomm_flow_stamp(struct hcomm_flow *flow, struct hcomm_wire_hdr *h);

/* ---- path loss, death: called by fence.c and by the owner ---- */

/* Everything posted on @path is in doubt from now on. */
void hcomm_flow_path_lost(struct hcomm_flow *flow, unsigned int path);

/*
 * The whole report about @path was applied: what is still in doubt there was
 * not placed and becomes unposted.  True when there is something to post.
 */
bool hcomm_flow_path_fenced(struct hcomm_flow *flow, unsigned int path);

/*
 * One record of a report: cumulative ack, the peer's get floor, @nops pairs
 * (sequence, bitmap) and @ngets pairs (get number, bitmap), 16 bytes each,
 * ascending, in wire order at @pairs.  -EPROTO for impossible content.
 */
int hcomm_flow_report_apply(struct hcomm_flow *flow, u64 ack, u64 floor,
			    const u8 *pairs, unsigned int nops,
			    unsigned int ngets, struct list_head *done);

/* Where building a report stands in one flow. */
struct hcomm_flow_cursor {
	u64 seq;
	u64 get;
};

/* True when a report need not mention the flow: nothing ever arrived. */
bool hcomm_flow_report_empty(const struct hcomm_flow *flow);

/* The cumulative acknowledgment of what arrived. */
u64 hcomm_flow_rx_ack(const struct hcomm_flow *flow);

/*
 * Appends up to @room pairs from *@at on to @pairs and moves *@at; sets *@nops
 * and *@ngets.  True when the flow is told completely.
 */
bool hcomm_flow_report_build(const struct hcomm_flow *flow,
			     struct hcomm_flow_cursor *at, u8 *pairs,
			     unsigned int room, unsigned int *nops,
			     unsigned int *ngets);

/*
 * Ends the flow (member gone, group aborted, session reset): every open op,
 * mark, get and reply moves to @done with @status unless it has an error
 * already.  Afterwards nothing is peeked and arrivals are not to be placed.
 */
void hcomm_flow_kill(struct hcomm_flow *flow, int status,
		     struct list_head *done);

#endif /* HCOMM_CORE_FLOW_H */
