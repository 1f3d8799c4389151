// SPDX-License-Identifier: GPL-2.0
/*
 * Receiving: messages of a flow, in softirq context.
 *
 * A message names our group by the handle we gave this session, a rank of ours
 * and one of the peer's. The stream of the pair exists only if the peer proved
 * its rank on this very session, so finding it is the check of who speaks.
 *
 * What an op asks for is checked before any lock (window, bounds, semaphore).
 * Then, under the destination member's lock and the stream's, the message is
 * placed: eager data is copied, signals are applied in the flow's order, GET
 * requests become transfers of ours. An op that is wrong is placed as well, or
 * the flow would stand still, but marked: its signal is not applied, and a NACK
 * in the control stream is acknowledged before the op is.
 *
 * Acknowledgments ride on whatever leaves for the peer's member; a timer of
 * 50 us sends those that found no ride.
 */
#include <linux/slab.h>

#include "compat/compat.h"
#include "fabric.h"
#include "member.h"
#include "memory.h"
#include "session.h"
#include "window.h"

/* ---------------------------------------------------- acknowledgments */

static bool hcomm_stream_send_ack(struct hcomm_stream *stream)
{
	struct hcomm_path *path = &stream->link->session->path;
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_ACK };
	struct hcomm_conn *conn;
	struct hcomm_send *send = NULL;

	lockdep_assert_held(&stream->lock);
	if (stream->dead || hcomm_flow_ack_due(&stream->flow) == HCOMM_ACK_NONE)
		return true;
	rcu_read_lock();
	conn = rcu_dereference(path->conn[HCOMM_QP_SMALL]);
	if (conn && READ_ONCE(path->clear))
		send = hcomm_conn_reserve(conn, HCOMM_CREDIT_CONTROL, 1);
	if (send) {
		hcomm_flow_stamp(&stream->flow, &h);
		h.credits = send->credits;
		hcomm_wire_encode(&h, hcomm_send_buf(send));
		hcomm_conn_post(send, HCOMM_WIRE_HEADER, NULL, 0);
	}
	rcu_read_unlock();
	/* Without a path the report that follows its loss says it all. */
	return send || !conn;
}

static enum hrtimer_restart hcomm_ack_timer(struct hrtimer *timer)
{
	struct hcomm_stream *stream = container_of(timer, struct hcomm_stream,
						   ack_timer);
	bool sent;

	spin_lock(&stream->lock);
	sent = hcomm_stream_send_ack(stream);
	stream->ack_armed = !sent;
	spin_unlock(&stream->lock);
	if (!sent) {
		hrtimer_forward_now(timer, ns_to_ktime(NSEC_PER_MSEC));
		return HRTIMER_RESTART;
	}
	hcomm_stream_put(stream);
	return HRTIMER_NORESTART;
}

void hcomm_stream_ack_later(struct hcomm_stream *stream)
{
	lockdep_assert_held(&stream->lock);
	if (stream->ack_armed || stream->dead ||
	    hcomm_flow_ack_due(&stream->flow) == HCOMM_ACK_NONE)
		return;
	stream->ack_armed = true;
	hcomm_stream_get(stream);
	hrtimer_start(&stream->ack_timer, ns_to_ktime(HCOMM_FLOW_ACK_NS),
		      HRTIMER_MODE_REL_SOFT);
}

static void hcomm_stream_ack(struct hcomm_stream *stream)
{
	if (hcomm_flow_ack_due(&stream->flow) != HCOMM_ACK_NOW ||
	    !hcomm_stream_send_ack(stream))
		hcomm_stream_ack_later(stream);
}

/* ----------------------------------------------------------- delivery */

static u8 hcomm_reply_qp(const struct hcomm_xfer *xfer)
{
	return xfer->error || xfer->length <= HCOMM_EAGER_MAX ?
	       HCOMM_QP_SMALL : HCOMM_QP_BULK;
}

/* An op of the peer is due: both locks are held. */
static void hcomm_stream_deliver(struct hcomm_flow *flow, u64 seq,
				 const struct hcomm_flow_slot *slot)
{
	struct hcomm_stream *stream = container_of(flow, struct hcomm_stream,
						   flow);
	struct hcomm_xfer *xfer = slot->cookie;
	bool failed;
	u8 qp;

	failed = __test_and_clear_bit(seq & flow->rx.mask, stream->failed);
	if (slot->type == HCOMM_WIRE_GET_REQ) {
		qp = hcomm_reply_qp(xfer);
		if (!hcomm_flow_tx_reply(flow, &xfer->flow_op, seq,
					 xfer->number, qp,
					 qp == HCOMM_QP_BULK ?
					 xfer->stripe.parts : 1))
			hcomm_xfer_put(xfer);
		return;
	}
	if (slot->sem != HCOMM_WIRE_NO_SEM && !failed)
		hcomm_member_signal(stream->member, slot->sem, slot->delta);
}

const struct hcomm_flow_ops hcomm_stream_hooks = {
	.deliver = hcomm_stream_deliver,
};

/* Tells the peer that its op is wrong; the note's sequence, 0: it cannot. */
static bool hcomm_stream_nack(struct hcomm_stream *stream, u64 seq, int error,
			      u64 *ctl_seq)
{
	struct hcomm_session *session = stream->link->session;
	struct hcomm_note *note;

	note = hcomm_note_alloc(HCOMM_WIRE_NACK, 0, GFP_ATOMIC);
	if (!note)
		return false;
	note->msg.hdr.group = stream->flow.peer_group;
	note->msg.hdr.src = stream->flow.src;
	note->msg.hdr.dst = stream->flow.dst;
	note->msg.hdr.offset = seq;
	note->msg.hdr.aux = -error;
	note->msg.answer = true;
	WRITE_ONCE(session->nacks, true);
	*ctl_seq = hcomm_session_note(session, note);
	return true;
}

int hcomm_nack_received(struct hcomm_session *session,
			const struct hcomm_wire_msg *m)
{
	struct hcomm_stream *stream;
	struct hcomm_link *link;
	int ret = 0;

	if (m->h.src >= HCOMM_MAX_RANKS || m->h.dst >= HCOMM_MAX_RANKS)
		return -EPROTO;
	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	stream = link ? xa_load(&link->streams,
				hcomm_stream_index(m->h.dst, m->h.src)) : NULL;
	if (stream) {
		spin_lock_bh(&stream->lock);
		if (!stream->dead)
			ret = hcomm_flow_tx_nack(&stream->flow, m->h.offset,
						 -(int)m->h.aux);
		spin_unlock_bh(&stream->lock);
	}
	mutex_unlock(&session->links_lock);
	return ret;
}

/* ------------------------------------------------------ one message */

struct hcomm_arrival {
	struct hcomm_window *window;	/* named by the op, referenced */
	struct hcomm_xfer *reply;	/* GET_REQ: our answer */
	int error;			/* the op is wrong */
	u64 ctl_seq;			/* and this note says so */
	struct list_head done;
};

static int hcomm_arrival_window(struct hcomm_stream *stream,
				const struct hcomm_wire_hdr *h,
				struct hcomm_arrival *a)
{
	struct hcomm_window *window;

	window = hcomm_window_find(stream->member, h->window, h->generation);
	if (IS_ERR(window))
		return PTR_ERR(window);
	a->window = window;
	return hcomm_mem_inside(window->mem, h->offset, h->length) ?
	       0 : -ERANGE;
}

/* Checks an op of the peer. False: no memory, the path has to repeat it. */
static bool hcomm_arrival_check(struct hcomm_stream *stream,
				const struct hcomm_wire_hdr *h,
				struct hcomm_arrival *a)
{
	if (h->type != HCOMM_WIRE_SIGNAL)
		a->error = hcomm_arrival_window(stream, h, a);
	if (!a->error && h->sem != HCOMM_WIRE_NO_SEM &&
	    h->sem >= stream->member->sems.count)
		a->error = -EINVAL;
	return !a->error ||
	       hcomm_stream_nack(stream, h->seq, a->error, &a->ctl_seq);
}

/* Where the peer wants its data; false: no memory. */
static bool hcomm_reply_target(struct hcomm_xfer *xfer,
			       const struct hcomm_wire_msg *m)
{
	struct hcomm_wire_keys keys;
	struct hcomm_geom local = {
		.length = xfer->mem->length,
		.base_off = xfer->mem->base_off,
		.mr_shift = HCOMM_WIRE_MR_SHIFT_MAX,
	};
	struct hcomm_geom remote;
	u32 i;

	if (hcomm_wire_keys_decode(m, &keys) ||
	    keys.mr_shift < HCOMM_MR_SHIFT_LEAST) {
		xfer->error = -EPROTO;
		return true;
	}
	remote.length = keys.length;
	remote.base_off = keys.base_off;
	remote.mr_shift = keys.mr_shift;
	xfer->iova = keys.iova;
	xfer->error = hcomm_stripe_init(&xfer->stripe, &local, xfer->local_off,
					&remote, 0, xfer->length,
					HCOMM_STRIPE_MAX);
	if (xfer->error)
		return true;
	xfer->keys = kmalloc_array(keys.count, sizeof(*xfer->keys), GFP_ATOMIC);
	if (!xfer->keys)
		return false;
	for (i = 0; i < keys.count; i++)
		xfer->keys[i] = hcomm_wire_key(m, i);
	return true;
}

/* A GET request becomes the transfer that will answer it. */
static bool hcomm_arrival_get(struct hcomm_stream *stream,
			      const struct hcomm_wire_msg *m,
			      struct hcomm_arrival *a)
{
	struct hcomm_xfer *xfer;

	xfer = hcomm_xfer_alloc(stream, HCOMM_XFER_REPLY);
	if (!xfer)
		return false;
	a->reply = xfer;
	xfer->error = hcomm_arrival_window(stream, &m->h, a);
	xfer->window = a->window;
	a->window = NULL;
	if (xfer->error)
		return true;
	xfer->mem = xfer->window->mem;
	xfer->local_off = m->h.offset;
	xfer->length = m->h.length;
	return xfer->length <= HCOMM_EAGER_MAX || hcomm_reply_target(xfer, m);
}

static enum hcomm_flow_verdict hcomm_place_op(struct hcomm_stream *stream,
					      const struct hcomm_wire_msg *m,
					      struct hcomm_arrival *a)
{
	struct hcomm_session *session = stream->link->session;
	struct hcomm_flow *flow = &stream->flow;
	enum hcomm_flow_verdict verdict;
	const struct hcomm_wire_hdr *h = &m->h;

	verdict = hcomm_flow_rx_check(flow, h);
	if (verdict != HCOMM_RX_NEW)
		return verdict;
	if (a->error) {
		__set_bit(h->seq & flow->rx.mask, stream->failed);
		hcomm_flow_rx_nack(flow, h->seq, a->ctl_seq);
		/* It may have been acknowledged before we came here. */
		hcomm_flow_rx_ctl_acked(flow, READ_ONCE(session->ctl.tx_una));
	} else if (h->type == HCOMM_WIRE_EAGER) {
		hcomm_mem_write(a->window->mem, h->offset, m->payload,
				m->payload_len);
	}
	if (a->reply) {
		a->reply->number = hcomm_flow_reply_number(flow, h->sem);
		/* The request itself told the floor. */
		if (a->reply->number >= flow->tx.reply_floor + HCOMM_FLOW_GETS)
			return HCOMM_RX_OUT_OF_WINDOW;
		verdict = hcomm_flow_rx_place(flow, h, a->reply);
		a->reply = NULL;
		return verdict;
	}
	return hcomm_flow_rx_place(flow, h, NULL);
}

static enum hcomm_flow_verdict hcomm_place_reply(struct hcomm_stream *stream,
						 const struct hcomm_wire_msg *m,
						 struct hcomm_arrival *a)
{
	struct hcomm_flow *flow = &stream->flow;
	enum hcomm_flow_verdict verdict;
	struct hcomm_flow_op *fop;
	struct hcomm_xfer *xfer;

	verdict = hcomm_flow_reply_check(flow, &m->h);
	if (verdict != HCOMM_RX_NEW)
		return verdict;
	if (m->h.type == HCOMM_WIRE_GET_EAGER) {
		fop = hcomm_flow_reply_op(flow, &m->h);
		if (!fop)
			return HCOMM_RX_DUPLICATE;
		xfer = container_of(fop, struct hcomm_xfer, flow_op);
		if (m->payload_len != xfer->length)
			return HCOMM_RX_INCONSISTENT;
		hcomm_mem_write(xfer->mem, xfer->local_off, m->payload,
				m->payload_len);
	}
	return hcomm_flow_reply_place(flow, &m->h, &a->done);
}

/* Both locks are held. */
static int hcomm_stream_place(struct hcomm_stream *stream,
			      const struct hcomm_wire_msg *m,
			      struct hcomm_arrival *a)
{
	enum hcomm_flow_verdict verdict = HCOMM_RX_NEW;
	struct hcomm_flow *flow = &stream->flow;
	int ret;

	lockdep_assert_held(&stream->lock);
	ret = hcomm_flow_tx_ack(flow, m->h.ack, &a->done);
	if (!ret && (m->h.type == HCOMM_WIRE_ACK ||
		     m->h.type == HCOMM_WIRE_GET_REQ))
		ret = hcomm_flow_tx_floor(flow, m->h.aux, &a->done);
	if (ret)
		return ret;
	switch (m->h.type) {
	case HCOMM_WIRE_PART:
	case HCOMM_WIRE_EAGER:
	case HCOMM_WIRE_SIGNAL:
	case HCOMM_WIRE_GET_REQ:
		verdict = hcomm_place_op(stream, m, a);
		break;
	case HCOMM_WIRE_GET_PART:
	case HCOMM_WIRE_GET_EAGER:
	case HCOMM_WIRE_GET_ERR:
		verdict = hcomm_place_reply(stream, m, a);
		break;
	default:
		break;
	}
	if (verdict == HCOMM_RX_OUT_OF_WINDOW ||
	    verdict == HCOMM_RX_INCONSISTENT)
		return -EPROTO;
	hcomm_stream_ack(stream);
	return 0;
}

/*
 * With what we know, for the one who has to find out which side is wrong. The
 * numbers have moved on, perhaps; the message's have not.
 */
static void hcomm_stream_violated(struct hcomm_stream *stream,
				  const struct hcomm_wire_msg *m)
{
	struct hcomm_session *session = stream->link->session;
	struct hcomm_flow_tx *tx = &stream->flow.tx;
	struct hcomm_flow_rx *rx = &stream->flow.rx;

	pr_warn_ratelimited("hcomm%u: stream of rank %u to %u: sent %llu acknowledged %llu replies %llu to %llu gets %llu to %llu, received %llu to %llu\n",
			    session->fabric->nr, stream->flow.src,
			    stream->flow.dst, tx->next, tx->una,
			    tx->reply_floor, tx->reply_next, tx->get_floor,
			    tx->get_next, rx->next, rx->top);
	hcomm_session_violated(session, &m->h, "a message of a stream is wrong");
}

/*
 * A software device may deliver a message twice. What is wrong with it now,
 * because its window has ended since, was not when it was placed.
 */
static bool hcomm_stream_knows(struct hcomm_stream *stream,
			       const struct hcomm_wire_hdr *h)
{
	bool known;

	spin_lock_bh(&stream->lock);
	known = hcomm_flow_rx_check(&stream->flow, h) == HCOMM_RX_DUPLICATE;
	spin_unlock_bh(&stream->lock);
	return known;
}

static void hcomm_stream_receive(struct hcomm_stream *stream,
				 struct hcomm_conn *conn,
				 const struct hcomm_wire_msg *m)
{
	struct hcomm_member *member = stream->member;
	struct hcomm_arrival a = {};
	bool more = false;
	bool ok = true;
	int ret = 0;

	INIT_LIST_HEAD(&a.done);
	if (READ_ONCE(stream->dead))
		return;
	switch (m->h.type) {
	case HCOMM_WIRE_PART:
	case HCOMM_WIRE_EAGER:
	case HCOMM_WIRE_SIGNAL:
		ok = hcomm_stream_knows(stream, &m->h) ||
		     hcomm_arrival_check(stream, &m->h, &a);
		break;
	case HCOMM_WIRE_GET_REQ:
		ok = hcomm_arrival_get(stream, m, &a);
		break;
	default:
		break;
	}
	if (!ok) {
		/* Not placed, so the peer repeats it on the next connection. */
		hcomm_conn_error(conn, -ENOMEM);
		goto out;
	}
	hcomm_member_lock(member);
	spin_lock(&stream->lock);
	if (!stream->dead) {
		ret = hcomm_stream_place(stream, m, &a);
		more = !list_empty(&stream->flow.tx.replies) ||
		       !list_empty(&a.done);
		list_splice_tail(&a.done, &stream->done);
	}
	spin_unlock(&stream->lock);
	hcomm_member_unlock(member);
	if (more)
		hcomm_stream_finish(stream);
	if (ret)
		hcomm_stream_violated(stream, m);
	else if (more)
		hcomm_stream_kick(stream);
out:
	if (a.window)
		hcomm_window_put(a.window);
	if (a.reply)
		hcomm_xfer_put(a.reply);
}

void hcomm_stream_message(struct hcomm_session *session,
			  struct hcomm_conn *conn,
			  const struct hcomm_wire_msg *m)
{
	struct hcomm_stream *stream = NULL;
	struct hcomm_link *link;

	if (m->h.src >= HCOMM_MAX_RANKS || m->h.dst >= HCOMM_MAX_RANKS) {
		hcomm_session_violated(session, &m->h, "no such rank");
		return;
	}
	rcu_read_lock();
	link = xa_load(&session->handles, m->h.group);
	if (link)
		stream = xa_load(&link->streams,
				 hcomm_stream_index(m->h.dst, m->h.src));
	if (stream && !kref_get_unless_zero(&stream->ref))
		stream = NULL;
	rcu_read_unlock();
	/* The group or the rank has ended here; the peer is being told. */
	if (!stream)
		return;
	hcomm_stream_receive(stream, conn, m);
	hcomm_stream_put(stream);
}

void hcomm_stream_init_rx(struct hcomm_stream *stream)
{
	hrtimer_setup(&stream->ack_timer, hcomm_ack_timer, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_SOFT);
}
