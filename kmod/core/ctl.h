/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The control stream of a session
 *
 * Proofs, adverts, revokes, death notices, NACKs and aborts must arrive once
 * and in order although any path may be lost.  They carry a sequence of their
 * own, travel over one path at a time, are kept until the peer acknowledged
 * them (CTL_ACK, HEARTBEAT) and start again on another path when theirs is
 * lost.  The receiver takes exactly the next one; unlike WRITEs, dropping a
 * duplicate here is in time.
 *
 * Locks: the caller serialises all calls (session lock).  Messages belong to
 * the caller until they come back on a `done` list.
 */
#ifndef HCOMM_CORE_CTL_H
#define HCOMM_CORE_CTL_H

#include "shim.h"
#include "wire.h"

#define HCOMM_CTL_NO_PATH	0xff
#define HCOMM_CTL_ACK_AFTER	8	/* CTL_ACK at once after so many */
#define HCOMM_CTL_ANSWERS_MAX	16384	/* kept, see hcomm_ctl_swamped() */

/* One message, embedded in the caller's; hdr.seq is set by queueing. */
struct hcomm_ctl_msg {
	struct list_head node;
	struct hcomm_wire_hdr hdr;
	u32 payload_len;	/* bytes of payload the caller keeps with it */
	bool answer;		/* a message of the peer made us send it */
};

struct hcomm_ctl {
	struct list_head queue;	/* by sequence, from the first not acked */
	struct hcomm_ctl_msg *unsent;	/* first not sent over `via`, or NULL */
	u64 tx_next;
	u64 tx_una;
	u64 rx_next;
	u32 rx_pending;		/* received and not acknowledged */
	u32 answers;		/* of those in queue */
	u8 via;
};

void hcomm_ctl_init(struct hcomm_ctl *ctl);

/* Queues @msg and returns its sequence. */
u64 hcomm_ctl_queue(struct hcomm_ctl *ctl, struct hcomm_ctl_msg *msg);

/*
 * The peer asks on and takes note of no answer, which a correct one does not:
 * it acknowledges while it sends.  Without this bound its questions would fill
 * our memory.
 */
static inline bool hcomm_ctl_swamped(const struct hcomm_ctl *ctl)
{
	return ctl->answers > HCOMM_CTL_ANSWERS_MAX;
}

/*
 * The next message to post over the connected path @via, or NULL: nothing to
 * send, or the stream is on another path.  hcomm_ctl_sent() when it is posted.
 */
struct hcomm_ctl_msg *hcomm_ctl_peek(struct hcomm_ctl *ctl, unsigned int via);
void hcomm_ctl_sent(struct hcomm_ctl *ctl, unsigned int via);

/*
 * @path is lost, whether the stream was on it or not: what was sent over it and
 * not acknowledged goes again, and so does our acknowledgment.
 */
void hcomm_ctl_path_lost(struct hcomm_ctl *ctl, unsigned int path);

/*
 * The peer expects @next: acknowledged messages move to @done.  -EPROTO for a
 * value it cannot know.
 */
int hcomm_ctl_ack(struct hcomm_ctl *ctl, u64 next, struct list_head *done);

/* A control message arrived: 1 handle it, 0 duplicate, -EPROTO gap. */
int hcomm_ctl_receive(struct hcomm_ctl *ctl, u64 seq);

/*
 * Whether a CTL_ACK is due now.  While rx_pending is not 0 one must leave
 * within a heartbeat's time.
 */
static inline bool hcomm_ctl_ack_due(const struct hcomm_ctl *ctl)
{
	return ctl->rx_pending >= HCOMM_CTL_ACK_AFTER;
}

/* The value for CTL_ACK and HEARTBEAT; counts as acknowledged. */
u64 hcomm_ctl_ack_value(struct hcomm_ctl *ctl);

/* Session reset: every kept message moves to @done. */
void hcomm_ctl_flush(struct hcomm_ctl *ctl, struct list_head *done);

#endif /* HCOMM_CORE_CTL_H */
