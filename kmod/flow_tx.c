// SPDX-License-Identifier: GPL-2.0
/*
 * Sending: from an accepted op to messages on a queue pair.
 *
 * hcomm_session_submit() puts the op on its stream, or lets it wait until its
 * rank is proven. hcomm_stream_kick() admits ops from the head of the line into
 * the flow (never past one that cannot go: its window is not advertised yet,
 * the flow's window of 1024 or the 64 GETs are used up) and posts what travels
 * on the small queue pair: signals, puts of up to 1 KiB, GET requests and small
 * answers. Parts of larger transfers are posted by hcomm_path_pump() in the
 * order of the path's scheduler. A put longer than 64 stripes is several flow
 * ops, of which the last carries the signal.
 *
 * What cannot go now is taken up again by whoever removes the reason: a
 * completion or a credit (hcomm_path_feed(), hcomm_path_pump()), an
 * acknowledgment, an advert, a path, a registration.
 *
 * Under one hold of the stream's lock a part is taken from the flow, marked as
 * posted and posted, so that losing the path finds it. A post that fails closes
 * the connection, and the fence returns the part. A part whose window was
 * revoked meanwhile is announced without its data: the owner refuses it, and
 * the flow's order has no hole.
 */
#include <linux/bitops.h>

#include "compat/compat.h"
#include "copy.h"
#include "fabric.h"
#include "member.h"
#include "memory.h"
#include "op.h"
#include "session.h"

/* A part of at most an MR's size crosses one boundary on either side. */
#define HCOMM_SEGS_MAX		3
static_assert(BIT(HCOMM_MR_SHIFT_LEAST) >= HCOMM_STRIPE_MAX);

#define HCOMM_PIECE_MAX		((u64)HCOMM_STRIPE_MAX * HCOMM_WIRE_PARTS)

/* ------------------------------------------------------------ building */

static void hcomm_build_work(struct work_struct *work)
{
	struct hcomm_stream *stream = container_of(work, struct hcomm_stream,
						   build_work);
	struct hcomm_path *path = &stream->link->session->path;
	struct hcomm_mem *mem = stream->build_mem;
	struct hcomm_table *table = ERR_PTR(-ENOTCONN);
	struct hcomm_conn *conn;

	conn = hcomm_conn_get(path, HCOMM_QP_SMALL);
	if (conn) {
		table = hcomm_table_build(mem, conn);
		/* Tried again when the path is back. */
		if (IS_ERR(table))
			hcomm_conn_error(conn, PTR_ERR(table));
		hcomm_conn_put(conn);
	}
	spin_lock_bh(&stream->lock);
	stream->build_mem = NULL;
	spin_unlock_bh(&stream->lock);
	hcomm_mem_put(mem);
	/* Whatever it was: the path may have come back while build_mem stood. */
	hcomm_stream_kick(stream);
	hcomm_path_pump(path);
	hcomm_stream_put(stream);
}

/* The registrations of @mem on the connection's device, or NULL: later. */
static struct hcomm_table *hcomm_stream_table(struct hcomm_stream *stream,
					      struct hcomm_mem *mem,
					      struct hcomm_conn *conn)
{
	struct hcomm_table *table;

	lockdep_assert_held(&stream->lock);
	table = hcomm_table_find(mem, conn->port->rdev);
	if (table || stream->build_mem)
		return table;
	hcomm_mem_get(mem);
	stream->build_mem = mem;
	hcomm_stream_get(stream);
	queue_work(hcomm_register_wq, &stream->build_work);
	return NULL;
}

/* ------------------------------------------------------------- admission */

static void hcomm_xfer_take_op(struct hcomm_xfer *xfer, struct hcomm_op *op)
{
	hcomm_op_get(op);
	xfer->op = op;
	xfer->mem = op->mem;
	if (op->sqe.opcode == HCOMM_OP_SIGNAL ||
	    op->sqe.flags & HCOMM_OPF_SIGNAL) {
		xfer->sem = op->sqe.sem;
		xfer->delta = op->sqe.delta;
	}
	if (op->sqe.flags & HCOMM_OPF_UNORDERED)
		xfer->flags = HCOMM_WIRE_F_UNORDERED;
}

/*
 * The next piece of a put or get. 0: filled in, -EAGAIN: the window is not
 * known yet, other errors end the op.
 */
static int hcomm_piece_fill(struct hcomm_stream *stream, struct hcomm_op *op,
			    struct hcomm_xfer *xfer)
{
	const struct hcomm_sqe *sqe = &op->sqe;
	bool get = sqe->opcode == HCOMM_OP_GET;
	u64 left = sqe->length - op->tx.offset;
	struct hcomm_geom local = {
		.length = op->mem->length,
		.base_off = op->mem->base_off,
		.mr_shift = HCOMM_WIRE_MR_SHIFT_MAX,
	};
	struct hcomm_rwin *rwin;

	rwin = hcomm_rwin_find(stream->remote, sqe->window);
	if (!rwin)
		return -EAGAIN;
	if (IS_ERR(rwin))
		return PTR_ERR(rwin);
	xfer->rwin = rwin;
	if (!hcomm_in_range(sqe->remote_off, sqe->length, rwin->geom.length))
		return -ERANGE;
	xfer->window_id = rwin->id;
	xfer->generation = rwin->generation;
	xfer->local_off = sqe->local_off + op->tx.offset;
	xfer->remote_off = sqe->remote_off + op->tx.offset;
	xfer->length = min_t(u64, left, HCOMM_PIECE_MAX);
	if (!xfer->length)
		xfer->kind = xfer->sem == HCOMM_WIRE_NO_SEM ?
			     HCOMM_XFER_VOID : HCOMM_XFER_SIGNAL;
	else if (get)
		xfer->kind = HCOMM_XFER_GET;
	else if (xfer->length <= HCOMM_EAGER_MAX)
		xfer->kind = HCOMM_XFER_EAGER;
	else
		xfer->kind = HCOMM_XFER_PUT;
	/* The signal is the last piece's. */
	if (xfer->length < left) {
		xfer->sem = HCOMM_WIRE_NO_SEM;
		xfer->delta = 0;
	}
	if (xfer->kind != HCOMM_XFER_PUT)
		return 0;
	return hcomm_stripe_init(&xfer->stripe, &local, xfer->local_off,
				 &rwin->geom, xfer->remote_off, xfer->length,
				 HCOMM_STRIPE_MAX);
}

/* FENCE: 1 when it is done already. */
static int hcomm_admit_mark(struct hcomm_stream *stream, struct hcomm_op *op,
			    struct hcomm_xfer *xfer)
{
	xfer->gets = stream->flow.tx.get_next;
	if (!hcomm_flow_tx_mark(&stream->flow, &xfer->flow_op)) {
		/* What was before it may still be on its way to the ring. */
		if (!stream->finishing && list_empty(&stream->done) &&
		    list_empty(&stream->fences) &&
		    xfer->gets <= stream->flow.tx.get_floor)
			return 1;
		list_add_tail(&xfer->flow_op.node, &stream->fences);
	}
	op->tx.open = 1;
	op->tx.whole = true;
	return 0;
}

/*
 * Takes the next piece of @op into the flow. 0: taken, -EAGAIN: not now, 1 or
 * another error: the op is over.
 */
static int hcomm_admit_piece(struct hcomm_stream *stream, struct hcomm_op *op)
{
	struct hcomm_xfer *xfer;
	bool get, data;
	int ret;

	lockdep_assert_held(&stream->lock);
	get = op->sqe.opcode == HCOMM_OP_GET;
	data = get || op->sqe.opcode == HCOMM_OP_PUT;
	if (!hcomm_flow_tx_room(&stream->flow,
				get ? HCOMM_FLOW_GET : HCOMM_FLOW_OP))
		return -EAGAIN;
	xfer = hcomm_xfer_alloc(stream, op->sqe.opcode == HCOMM_OP_FENCE ?
				HCOMM_XFER_MARK : HCOMM_XFER_SIGNAL);
	if (!xfer)
		return -ENOMEM;
	hcomm_xfer_take_op(xfer, op);
	if (xfer->kind == HCOMM_XFER_MARK) {
		ret = hcomm_admit_mark(stream, op, xfer);
		if (ret)
			goto err;
		return 0;
	}
	if (data) {
		ret = hcomm_piece_fill(stream, op, xfer);
		if (ret)
			goto err;
	}
	ret = hcomm_flow_tx_admit(&stream->flow, &xfer->flow_op,
				  xfer->kind == HCOMM_XFER_GET ?
				  HCOMM_FLOW_GET : HCOMM_FLOW_OP,
				  xfer->kind == HCOMM_XFER_PUT ?
				  HCOMM_QP_BULK : HCOMM_QP_SMALL,
				  xfer->kind == HCOMM_XFER_PUT ?
				  xfer->stripe.parts : 1);
	if (ret)
		goto err;
	op->tx.offset += xfer->length;
	op->tx.open++;
	op->tx.whole = !data || op->tx.offset == op->sqe.length;
	return 0;

err:
	hcomm_xfer_put(xfer);
	return ret;
}

/* Admits what can go; an op that is over is returned off the list. */
static struct hcomm_op *hcomm_stream_admit(struct hcomm_stream *stream,
					   int *status)
{
	struct hcomm_op *op;
	int ret;

	lockdep_assert_held(&stream->lock);
	while ((op = list_first_entry_or_null(&stream->parked, struct hcomm_op,
					      node))) {
		ret = hcomm_admit_piece(stream, op);
		if (ret == -EAGAIN)
			return NULL;
		if (!ret && !op->tx.whole)
			continue;
		list_del_init(&op->node);
		if (!ret) {
			/* The pieces hold it. */
			hcomm_op_put(op);
			continue;
		}
		if (op->tx.open) {
			/* Pieces are on their way: the last one ends it. */
			op->tx.status = ret;
			op->tx.whole = true;
			hcomm_op_put(op);
			continue;
		}
		*status = ret > 0 ? 0 : ret;
		return op;
	}
	return NULL;
}

/* ------------------------------------------------------ the small queue */

static void hcomm_stream_starve(struct hcomm_stream *stream,
				struct hcomm_path *path)
{
	lockdep_assert_held(&stream->lock);
	spin_lock(&path->sched_lock);
	if (list_empty(&stream->starved_node)) {
		hcomm_stream_get(stream);
		list_add_tail(&stream->starved_node, &path->starved);
	}
	spin_unlock(&path->sched_lock);
}

static u32 hcomm_get_keys(struct hcomm_xfer *xfer,
			  const struct hcomm_table *table, u8 *payload)
{
	u64 size = BIT_ULL(table->geom.mr_shift);
	u64 at = hcomm_table_iova(table, xfer->local_off);
	u64 first = at >> table->geom.mr_shift;
	struct hcomm_wire_keys keys = {
		.length = xfer->length,
		.iova = at,
		.base_off = at & (size - 1),
		.mr_shift = table->geom.mr_shift,
	};
	u32 rkeys[HCOMM_PIECE_MAX / BIT(HCOMM_MR_SHIFT_LEAST) + 2];

	keys.count = ((at + xfer->length - 1) >> table->geom.mr_shift) - first +
		     1;
	for (at = 0; at < keys.count; at++)
		rkeys[at] = table->mrs[first + at].mr->rkey;
	return hcomm_wire_keys_encode(&keys, rkeys, payload);
}

/* Fills header and payload; the payload's length. */
static u32 hcomm_small_fill(struct hcomm_xfer *xfer,
			    const struct hcomm_table *table,
			    struct hcomm_wire_hdr *h, u8 *payload)
{
	const struct hcomm_flow_op *fop = &xfer->flow_op;

	*h = (struct hcomm_wire_hdr) {
		.seq = fop->seq,
		.parts = 1,
		.sem = xfer->sem,
		.delta = xfer->delta,
		.flags = xfer->flags,
	};
	if (fop->voided) {
		h->type = HCOMM_WIRE_SIGNAL;
		h->sem = HCOMM_WIRE_NO_SEM;
		h->delta = 0;
		return 0;
	}
	switch (xfer->kind) {
	case HCOMM_XFER_EAGER:
		h->type = HCOMM_WIRE_EAGER;
		h->window = xfer->window_id;
		h->generation = xfer->generation;
		h->offset = xfer->remote_off;
		h->length = xfer->length;
		hcomm_mem_read(xfer->mem, xfer->local_off, payload,
			       xfer->length);
		return xfer->length;
	case HCOMM_XFER_GET:
		h->type = HCOMM_WIRE_GET_REQ;
		h->window = xfer->window_id;
		h->generation = xfer->generation;
		h->offset = xfer->remote_off;
		h->length = xfer->length;
		h->sem = (u32)fop->number;
		return table ? hcomm_get_keys(xfer, table, payload) : 0;
	case HCOMM_XFER_REPLY:
		h->sem = (u32)fop->number;
		h->delta = 0;
		if (xfer->error) {
			h->type = HCOMM_WIRE_GET_ERR;
			h->aux = -xfer->error;
			return 0;
		}
		h->type = HCOMM_WIRE_GET_EAGER;
		h->length = xfer->length;
		hcomm_mem_read(xfer->mem, xfer->local_off, payload,
			       xfer->length);
		return xfer->length;
	default:
		h->type = HCOMM_WIRE_SIGNAL;
		return 0;
	}
}

/* Posts the next small message. False: there is none, or it cannot go now. */
static bool hcomm_stream_post_small(struct hcomm_stream *stream,
				    struct hcomm_conn *conn)
{
	struct hcomm_path *path = conn->path;
	struct hcomm_table *table = NULL;
	struct hcomm_flow_op *fop;
	struct hcomm_wire_hdr h;
	struct hcomm_xfer *xfer;
	struct hcomm_send *send;
	unsigned int part;
	u32 len;
	u8 *buf;

	lockdep_assert_held(&stream->lock);
	fop = hcomm_flow_tx_peek(&stream->flow, path->index, HCOMM_QP_SMALL,
				 &part);
	if (!fop)
		return false;
	xfer = container_of(fop, struct hcomm_xfer, flow_op);
	if (xfer->kind == HCOMM_XFER_GET && !fop->voided &&
	    xfer->length > HCOMM_EAGER_MAX) {
		table = hcomm_stream_table(stream, xfer->mem, conn);
		if (!table)
			return false;
	}
	send = hcomm_conn_reserve(conn, HCOMM_CREDIT_DATA, 1);
	if (!send) {
		hcomm_stream_starve(stream, path);
		/* Once more: room may have come before we were on the list. */
		send = hcomm_conn_reserve(conn, HCOMM_CREDIT_DATA, 1);
		if (!send)
			return false;
	}
	buf = hcomm_send_buf(send);
	len = hcomm_small_fill(xfer, table, &h, buf + HCOMM_WIRE_HEADER);
	hcomm_flow_tx_posted(fop, part, path->index);
	hcomm_flow_stamp(&stream->flow, &h);
	h.credits = send->credits;
	hcomm_wire_encode(&h, buf);
	hcomm_xfer_get(xfer);
	send->xfer = xfer;
	atomic_inc(&stream->posted);
	hcomm_conn_post(send, HCOMM_WIRE_HEADER + len, NULL, 0);
	return true;
}

/* ------------------------------------------------------- the bulk queue */

/* The scheduler hears what the stream's next part costs. */
static void hcomm_stream_activate(struct hcomm_stream *stream,
				  struct hcomm_path *path)
{
	struct hcomm_flow_op *fop;
	struct hcomm_xfer *xfer;
	unsigned int part;
	u32 len = 0;

	lockdep_assert_held(&stream->lock);
	fop = stream->dead || !stream->open ? NULL :
	      hcomm_flow_tx_peek(&stream->flow, path->index, HCOMM_QP_BULK,
				 &part);
	if (fop) {
		xfer = container_of(fop, struct hcomm_xfer, flow_op);
		hcomm_stripe_part(&xfer->stripe, part, &len);
		len += HCOMM_WIRE_HEADER;
	}
	spin_lock(&path->sched_lock);
	stream->cost = len;
	if (len)
		hcomm_sched_activate(&path->sched, &stream->queue);
	spin_unlock(&path->sched_lock);
}

/* Keys of the same window that were sent again, over another device. */
static bool hcomm_xfer_renew(struct hcomm_xfer *xfer)
{
	struct hcomm_rwin *rwin;

	rwin = hcomm_rwin_find(xfer->stream->remote, xfer->window_id);
	if (IS_ERR_OR_NULL(rwin))
		return false;
	if (rwin == xfer->rwin || rwin->generation != xfer->generation) {
		hcomm_rwin_put(rwin);
		return false;
	}
	hcomm_rwin_put(xfer->rwin);
	xfer->rwin = rwin;
	return true;
}

/* The WRITEs of @part; their number. */
static unsigned int hcomm_part_writes(struct hcomm_xfer *xfer, u32 part,
				      const struct hcomm_table *table,
				      struct hcomm_conn *conn,
				      struct ib_rdma_wr *writes,
				      struct ib_sge *sges)
{
	struct hcomm_stripe_seg seg;
	unsigned int n = 0;
	u32 pos = 0;
	u32 rkey;
	u64 iova;

	xfer->stripe.local = table->geom;
	if (xfer->kind == HCOMM_XFER_PUT)
		xfer->stripe.remote = xfer->rwin->geom;
	while (n < HCOMM_SEGS_MAX &&
	       hcomm_stripe_next(&xfer->stripe, part, &pos, &seg)) {
		if (xfer->kind == HCOMM_XFER_PUT) {
			rkey = xfer->rwin->keys[seg.remote_mr];
			iova = xfer->rwin->iova + seg.remote_off;
		} else {
			rkey = xfer->keys[seg.remote_mr];
			iova = xfer->iova + seg.remote_off;
		}
		sges[n] = (struct ib_sge) {
			.addr = hcomm_table_iova(table, seg.local_off),
			.length = seg.length,
			.lkey = table->mrs[seg.local_mr].mr->lkey,
		};
		writes[n] = (struct ib_rdma_wr) {
			.wr = {
				.wr_cqe = &conn->write_cqe,
				.sg_list = &sges[n],
				.num_sge = 1,
				.opcode = IB_WR_RDMA_WRITE,
			},
			.remote_addr = iova,
			.rkey = rkey,
		};
		n++;
	}
	return n;
}

static void hcomm_part_header(struct hcomm_xfer *xfer, u32 part,
			      struct hcomm_wire_hdr *h)
{
	const struct hcomm_flow_op *fop = &xfer->flow_op;
	u32 len;
	u64 off = hcomm_stripe_part(&xfer->stripe, part, &len);

	*h = (struct hcomm_wire_hdr) {
		.type = HCOMM_WIRE_PART,
		.flags = xfer->flags,
		.seq = fop->seq,
		.part = part,
		.parts = xfer->stripe.parts,
		.window = xfer->window_id,
		.generation = xfer->generation,
		.sem = xfer->sem,
		.delta = xfer->delta,
		.offset = xfer->remote_off + off,
		.length = len,
	};
	if (xfer->kind == HCOMM_XFER_REPLY) {
		h->type = HCOMM_WIRE_GET_PART;
		h->sem = (u32)fop->number;
		h->delta = 0;
		h->window = 0;
		h->generation = 0;
		h->offset = off;
	}
}

/* A slot for @part with its @n WRITEs, which hold the keys they use. */
static struct hcomm_send *hcomm_part_reserve(struct hcomm_xfer *xfer, u32 part,
					     const struct hcomm_table *table,
					     struct hcomm_conn *conn,
					     struct ib_rdma_wr *writes,
					     struct ib_sge *sges,
					     unsigned int *n)
{
	struct hcomm_send *send;

	for (;;) {
		*n = hcomm_part_writes(xfer, part, table, conn, writes, sges);
		send = hcomm_conn_reserve(conn, HCOMM_CREDIT_DATA, *n + 1);
		if (!send || xfer->kind != HCOMM_XFER_PUT)
			return send;
		if (hcomm_rwin_post(xfer->rwin)) {
			hcomm_rwin_get(xfer->rwin);
			send->rwin = xfer->rwin;
			return send;
		}
		/* Without keys: the peer, who took them, has no such window. */
		if (!hcomm_xfer_renew(xfer)) {
			*n = 0;
			return send;
		}
		hcomm_conn_unreserve(send);
	}
}

static int hcomm_stream_post_part(struct hcomm_stream *stream,
				  struct hcomm_conn *conn,
				  struct hcomm_flow_op *fop, unsigned int part)
{
	struct hcomm_xfer *xfer = container_of(fop, struct hcomm_xfer, flow_op);
	struct ib_rdma_wr writes[HCOMM_SEGS_MAX];
	struct ib_sge sges[HCOMM_SEGS_MAX];
	struct hcomm_path *path = conn->path;
	const struct hcomm_table *table;
	struct hcomm_wire_hdr h;
	struct hcomm_send *send;
	unsigned int n;

	table = hcomm_stream_table(stream, xfer->mem, conn);
	if (!table)
		return -EAGAIN;
	send = hcomm_part_reserve(xfer, part, table, conn, writes, sges, &n);
	if (!send)
		return -EBUSY;
	hcomm_part_header(xfer, part, &h);
	hcomm_flow_tx_posted(fop, part, path->index);
	hcomm_flow_stamp(&stream->flow, &h);
	h.credits = send->credits;
	hcomm_wire_encode(&h, hcomm_send_buf(send));
	hcomm_xfer_get(xfer);
	send->xfer = xfer;
	send->bytes = h.length;
	atomic_inc(&stream->posted);
	spin_lock(&path->sched_lock);
	hcomm_sched_charge(&path->sched, &stream->queue, h.length,
			   ktime_get_ns());
	spin_unlock(&path->sched_lock);
	hcomm_conn_post(send, HCOMM_WIRE_HEADER, writes, n);
	return 0;
}

bool hcomm_stream_post_bulk(struct hcomm_stream *stream,
			    struct hcomm_path *path)
{
	struct hcomm_flow_op *fop = NULL;
	struct hcomm_conn *conn;
	unsigned int part;
	int ret = -EAGAIN;

	rcu_read_lock();
	conn = rcu_dereference(path->conn[HCOMM_QP_BULK]);
	spin_lock_bh(&stream->lock);
	if (conn && !stream->dead && READ_ONCE(path->clear))
		fop = hcomm_flow_tx_peek(&stream->flow, path->index,
					 HCOMM_QP_BULK, &part);
	if (fop)
		ret = hcomm_stream_post_part(stream, conn, fop, part);
	if (!ret) {
		hcomm_stream_activate(stream, path);
	} else if (ret == -EAGAIN) {
		/* Nothing, or a registration to wait for: others may go. */
		spin_lock(&path->sched_lock);
		stream->cost = 0;
		spin_unlock(&path->sched_lock);
	}
	spin_unlock_bh(&stream->lock);
	rcu_read_unlock();
	return ret != -EBUSY;
}

/* ------------------------------------------------------------- kick */

void hcomm_stream_kick(struct hcomm_stream *stream)
{
	struct hcomm_path *path = &stream->link->session->path;
	struct hcomm_conn *conn;
	struct hcomm_op *over;
	int status;
	bool bulk;

	do {
		bulk = false;
		over = NULL;
		rcu_read_lock();
		conn = rcu_dereference(path->conn[HCOMM_QP_SMALL]);
		spin_lock_bh(&stream->lock);
		if (!stream->dead && stream->open) {
			over = hcomm_stream_admit(stream, &status);
			while (conn && READ_ONCE(path->clear) &&
			       hcomm_stream_post_small(stream, conn))
				;
			hcomm_stream_activate(stream, path);
			bulk = stream->cost;
		}
		spin_unlock_bh(&stream->lock);
		rcu_read_unlock();
		if (over) {
			hcomm_op_complete(over, status, 0);
			hcomm_op_put(over);
		}
	} while (over);
	if (bulk)
		hcomm_path_pump(path);
}

/* ------------------------------------------------------ ops come and go */

/* The stream to @rank, referenced. endpoint->lock held or not. */
static struct hcomm_stream *hcomm_stream_to(struct hcomm_member *member,
					    u32 rank)
{
	struct hcomm_stream *stream;

	rcu_read_lock();
	stream = xa_load(&member->endpoint.streams, rank);
	if (stream && !kref_get_unless_zero(&stream->ref))
		stream = NULL;
	rcu_read_unlock();
	return stream;
}

void hcomm_endpoint_waited(struct hcomm_endpoint *endpoint,
			   struct hcomm_op *op)
{
	lockdep_assert_held(&endpoint->lock);
	if (!op->waiting)
		return;
	op->waiting = false;
	/* Pairs with the load-acquire in hcomm_op_hand_over(). */
	smp_store_release(&endpoint->nr_waiting, endpoint->nr_waiting - 1);
}

/* The rank is on this instance, or was. */
static bool hcomm_op_is_local(const struct hcomm_op *op)
{
	struct hcomm_group *group = op->member->group;
	struct hcomm_member *target = hcomm_group_member(group, op->sqe.rank);

	if (target)
		hcomm_member_put(target);
	return target || hcomm_group_rank_gone(group, op->sqe.rank);
}

/*
 * 0: parked or waiting, and kept; -EAGAIN: not ours; otherwise what the op ends
 * with.
 */
static int hcomm_op_park(struct hcomm_op *op, struct hcomm_stream **pstream)
{
	struct hcomm_member *member = op->member;
	struct hcomm_endpoint *endpoint = &member->endpoint;
	struct hcomm_stream *stream;
	int ret = 0;

	spin_lock_bh(&endpoint->lock);
	stream = hcomm_stream_to(member, op->sqe.rank);
	if (stream) {
		spin_lock(&stream->lock);
		if (stream->dead)
			ret = stream->status;
		else
			list_add_tail(&op->node, &stream->parked);
		spin_unlock(&stream->lock);
	} else if (endpoint->ended ||
		   hcomm_group_remote_gone(member->group, op->sqe.rank)) {
		ret = -ESHUTDOWN;
	} else if (hcomm_op_is_local(op)) {
		/* Who joins looks for those that wait once it can be found. */
		ret = -EAGAIN;
	} else {
		op->waiting = true;
		WRITE_ONCE(endpoint->nr_waiting, endpoint->nr_waiting + 1);
		list_add_tail(&op->node, &endpoint->waiting);
	}
	spin_unlock_bh(&endpoint->lock);
	*pstream = stream;
	return ret;
}

bool hcomm_session_submit(struct hcomm_op *op)
{
	struct hcomm_stream *stream;
	int ret;

	hcomm_op_get(op);
	ret = hcomm_op_park(op, &stream);
	if (ret) {
		if (ret != -EAGAIN)
			hcomm_op_complete(op, ret, 0);
		hcomm_op_put(op);
	}
	if (!stream)
		return ret != -EAGAIN;
	if (!ret)
		hcomm_stream_kick(stream);
	hcomm_stream_put(stream);
	return true;
}

void hcomm_session_unwait(struct hcomm_member *member,
			  struct hcomm_member *target)
{
	struct hcomm_endpoint *endpoint = &member->endpoint;
	struct hcomm_op *op, *next;

	spin_lock_bh(&member->lock);
	spin_lock(&endpoint->lock);
	list_for_each_entry_safe(op, next, &endpoint->waiting, node) {
		if (op->sqe.rank != target->rank)
			continue;
		list_del_init(&op->node);
		op->owner = HCOMM_OP_COPIER;
		hcomm_copy_defer(op, target);
		hcomm_endpoint_waited(endpoint, op);
		/* The list's; the copier has its own. */
		hcomm_op_put(op);
	}
	spin_unlock(&endpoint->lock);
	spin_unlock_bh(&member->lock);
}

void hcomm_endpoints_unwait(struct hcomm_member *target)
{
	struct hcomm_group *group = target->group;
	struct hcomm_member *member;
	unsigned long rank;

	for (rank = 0; (member = hcomm_group_next(group, &rank)); rank++) {
		hcomm_session_unwait(member, target);
		hcomm_member_put(member);
	}
}

/* The op's pieces in the flow: voids the only one if it is untouched. */
static bool hcomm_stream_void(struct hcomm_stream *stream, struct hcomm_op *op,
			      int status)
{
	struct hcomm_flow_op *fop;
	struct hcomm_xfer *xfer;

	lockdep_assert_held(&stream->lock);
	if (stream->dead || op->tx.open != 1 || !op->tx.whole)
		return false;
	list_for_each_entry(fop, &stream->flow.tx.open, node) {
		xfer = container_of(fop, struct hcomm_xfer, flow_op);
		if (xfer->op != op)
			continue;
		if (xfer->kind == HCOMM_XFER_MARK)
			return true;
		return !hcomm_flow_tx_void(&stream->flow, fop, status);
	}
	return false;
}

/*
 * Takes the op off the list it waits on, if it does. Pieces that are on their
 * way may all arrive: it has not been done for that.
 */
static bool hcomm_op_unlist(struct hcomm_op *op, int status)
{
	if (list_empty(&op->node))
		return false;
	list_del_init(&op->node);
	op->tx.whole = true;
	if (!op->tx.status)
		op->tx.status = status;
	return true;
}

bool hcomm_session_cancel(struct hcomm_op *op, int status)
{
	struct hcomm_member *member = op->member;
	struct hcomm_stream *stream;
	bool listed, back;

	spin_lock_bh(&member->endpoint.lock);
	stream = hcomm_stream_to(member, op->sqe.rank);
	if (stream) {
		spin_lock(&stream->lock);
		listed = hcomm_op_unlist(op, status);
		back = listed ? !op->tx.open :
			hcomm_stream_void(stream, op, status);
		spin_unlock(&stream->lock);
	} else {
		listed = op->waiting && hcomm_op_unlist(op, status);
		hcomm_endpoint_waited(&member->endpoint, op);
		back = listed;
	}
	spin_unlock_bh(&member->endpoint.lock);
	if (listed)
		hcomm_op_put(op);
	if (stream) {
		hcomm_stream_kick(stream);
		hcomm_stream_put(stream);
	}
	return back;
}

/* Ends the ops to @rank (all if it is HCOMM_NO_RANK) that wait for a proof. */
static void hcomm_endpoint_fail(struct hcomm_member *member, u32 rank,
				int status)
{
	struct hcomm_endpoint *endpoint = &member->endpoint;
	struct hcomm_op *op, *found;

	do {
		found = NULL;
		spin_lock_bh(&endpoint->lock);
		list_for_each_entry(op, &endpoint->waiting, node) {
			if (rank == HCOMM_NO_RANK || op->sqe.rank == rank) {
				found = op;
				list_del_init(&op->node);
				hcomm_endpoint_waited(endpoint, op);
				break;
			}
		}
		spin_unlock_bh(&endpoint->lock);
		if (found) {
			hcomm_op_complete(found, status, 0);
			hcomm_op_put(found);
		}
	} while (found);
}

void hcomm_endpoint_end(struct hcomm_member *member, int status)
{
	spin_lock_bh(&member->endpoint.lock);
	WRITE_ONCE(member->endpoint.ended, true);
	spin_unlock_bh(&member->endpoint.lock);
	hcomm_endpoint_fail(member, HCOMM_NO_RANK, status);
}

void hcomm_endpoints_fail(struct hcomm_group *group, u32 rank, int status)
{
	struct hcomm_member *member;
	unsigned long mine;

	for (mine = 0; (member = hcomm_group_next(group, &mine)); mine++) {
		hcomm_endpoint_fail(member, rank, status);
		hcomm_member_put(member);
	}
}

void hcomm_stream_init_tx(struct hcomm_stream *stream)
{
	INIT_WORK(&stream->build_work, hcomm_build_work);
}
