// SPDX-License-Identifier: GPL-2.0
/*
 * Streams: the ops between one local member and one remote rank, in both
 * directions (core/flow.h), and the transfers that are their pieces.
 *
 * A stream is made when both ranks are known to be proven (link_up.c), found by
 * (local, remote) rank in its link's table by the receive path and by remote
 * rank in its member's table by the submitters, both under RCU, and is on the
 * session's fence. hcomm_stream_kill() takes it out of all three, hands every
 * op back and marks it dead under its lock: nothing is posted, placed or
 * signalled after that. What is still on a queue pair holds references, to the
 * stream and through the transfer to the memory; the link keeps the stream
 * among its dying ones until there is none.
 *
 * Ops to a rank that is not proven yet wait in their member's endpoint, in
 * order, and move to the stream when it is made. An op is on one of the two
 * lists, or on none; with both locks held (endpoint, then stream) it is known
 * which. Nobody moves ops through a list of his own.
 *
 * A transfer is referenced by the flow (until it comes back on a done list), by
 * each send that carries it, and by the lingering list of a GET given up.
 */
#include <linux/slab.h>

#include "compat/compat.h"
#include "fabric.h"
#include "member.h"
#include "memory.h"
#include "op.h"
#include "session.h"
#include "window.h"

static struct kmem_cache *hcomm_xfer_cache;

int hcomm_streams_init(void)
{
	hcomm_xfer_cache = KMEM_CACHE(hcomm_xfer, SLAB_ACCOUNT);
	return hcomm_xfer_cache ? 0 : -ENOMEM;
}

void hcomm_streams_exit(void)
{
	rcu_barrier();
	kmem_cache_destroy(hcomm_xfer_cache);
}

/* --------------------------------------------------------- transfers */

struct hcomm_xfer *hcomm_xfer_alloc(struct hcomm_stream *stream,
				    enum hcomm_xfer_kind kind)
{
	struct hcomm_xfer *xfer;

	xfer = kmem_cache_zalloc(hcomm_xfer_cache, GFP_ATOMIC);
	if (!xfer)
		return NULL;
	kref_init(&xfer->ref);
	INIT_LIST_HEAD(&xfer->flow_op.node);
	INIT_LIST_HEAD(&xfer->flow_op.todo);
	hcomm_stream_get(stream);
	xfer->stream = stream;
	xfer->kind = kind;
	xfer->sem = HCOMM_WIRE_NO_SEM;
	return xfer;
}

void hcomm_xfer_get(struct hcomm_xfer *xfer)
{
	kref_get(&xfer->ref);
}

static void hcomm_xfer_release(struct kref *ref)
{
	struct hcomm_xfer *xfer = container_of(ref, struct hcomm_xfer, ref);

	if (xfer->op)
		hcomm_op_put(xfer->op);
	if (xfer->window)
		hcomm_window_put(xfer->window);
	if (xfer->rwin)
		hcomm_rwin_put(xfer->rwin);
	hcomm_stream_put(xfer->stream);
	kfree(xfer->keys);
	kmem_cache_free(hcomm_xfer_cache, xfer);
}

void hcomm_xfer_put(struct hcomm_xfer *xfer)
{
	kref_put(&xfer->ref, hcomm_xfer_release);
}

/* One piece of the op is done; true when it was the last. */
static bool hcomm_op_piece(struct hcomm_xfer *xfer)
{
	struct hcomm_op *op = xfer->op;

	lockdep_assert_held(&xfer->stream->lock);
	if (xfer->flow_op.status && !op->tx.status)
		op->tx.status = xfer->flow_op.status;
	op->tx.seq = xfer->flow_op.seq;
	return !--op->tx.open && op->tx.whole;
}

/*
 * The next transfer to finish: what the flow handed back, in that order, then
 * FENCEs whose GETs have all been answered. Those GETs were handed back before
 * the floor passed them, so with nothing else to finish they are finished.
 */
static struct hcomm_xfer *hcomm_stream_finished(struct hcomm_stream *stream)
{
	struct hcomm_xfer *xfer;

	lockdep_assert_held(&stream->lock);
	while ((xfer = list_first_entry_or_null(&stream->done,
						struct hcomm_xfer,
						flow_op.node))) {
		/* One message may acknowledge it and answer a GET before it. */
		if (xfer->kind != HCOMM_XFER_MARK || xfer->flow_op.status)
			break;
		list_move_tail(&xfer->flow_op.node, &stream->fences);
	}
	if (!xfer)
		xfer = list_first_entry_or_null(&stream->fences,
						struct hcomm_xfer,
						flow_op.node);
	if (!xfer || (xfer->kind == HCOMM_XFER_MARK && !xfer->flow_op.status &&
		      xfer->gets > stream->flow.tx.get_floor))
		return NULL;
	list_del_init(&xfer->flow_op.node);
	return xfer;
}

/* Finishes transfers, one caller at a time, so that ops end in order. */
void hcomm_stream_finish(struct hcomm_stream *stream)
{
	struct hcomm_xfer *xfer;
	bool last;

	spin_lock_bh(&stream->lock);
	if (stream->finishing) {
		spin_unlock_bh(&stream->lock);
		return;
	}
	stream->finishing = true;
	while ((xfer = hcomm_stream_finished(stream))) {
		last = xfer->op && hcomm_op_piece(xfer);
		if (xfer->flow_op.replayed)
			atomic64_inc(&stream->link->session->path.replayed);
		spin_unlock_bh(&stream->lock);
		if (last)
			hcomm_op_complete(xfer->op, xfer->op->tx.status,
					  xfer->op->tx.seq);
		hcomm_xfer_put(xfer);
		spin_lock_bh(&stream->lock);
	}
	stream->finishing = false;
	spin_unlock_bh(&stream->lock);
}

void hcomm_xfers_done(struct list_head *done)
{
	struct hcomm_stream *stream;
	struct hcomm_xfer *xfer;

	while ((xfer = list_first_entry_or_null(done, struct hcomm_xfer,
						flow_op.node))) {
		stream = xfer->stream;
		hcomm_stream_get(stream);
		spin_lock_bh(&stream->lock);
		list_move_tail(&xfer->flow_op.node, &stream->done);
		spin_unlock_bh(&stream->lock);
		hcomm_stream_finish(stream);
		hcomm_stream_kick(stream);
		hcomm_stream_put(stream);
	}
}

/* ----------------------------------------------------------- streams */

void hcomm_stream_get(struct hcomm_stream *stream)
{
	kref_get(&stream->ref);
}

static void hcomm_stream_free_work(struct work_struct *work)
{
	struct hcomm_stream *stream = container_of(work, struct hcomm_stream,
						   free_work);

	hrtimer_cancel(&stream->ack_timer);
	hcomm_remote_put(stream->remote);
	hcomm_member_put(stream->member);
	hcomm_link_put(stream->link);
	kvfree(stream->slots);
	kfree(stream->gets);
	kfree_rcu(stream, rcu);
}

static void hcomm_stream_release(struct kref *ref)
{
	struct hcomm_stream *stream = container_of(ref, struct hcomm_stream,
						   ref);

	queue_work(hcomm_teardown_wq, &stream->free_work);
}

void hcomm_stream_put(struct hcomm_stream *stream)
{
	kref_put(&stream->ref, hcomm_stream_release);
}

static struct hcomm_stream *hcomm_stream_alloc(struct hcomm_link *link,
					       struct hcomm_member *member,
					       struct hcomm_remote *remote)
{
	struct hcomm_stream *stream;

	stream = kzalloc(sizeof(*stream), GFP_KERNEL_ACCOUNT);
	if (!stream)
		return NULL;
	stream->slots = kvcalloc(HCOMM_FLOW_WINDOW, sizeof(*stream->slots),
				 GFP_KERNEL_ACCOUNT);
	stream->gets = kcalloc(HCOMM_FLOW_GETS, sizeof(*stream->gets),
			       GFP_KERNEL_ACCOUNT);
	if (!stream->slots || !stream->gets) {
		kvfree(stream->slots);
		kfree(stream->gets);
		kfree(stream);
		return NULL;
	}
	kref_init(&stream->ref);
	INIT_WORK(&stream->free_work, hcomm_stream_free_work);
	spin_lock_init(&stream->lock);
	INIT_LIST_HEAD(&stream->parked);
	INIT_LIST_HEAD(&stream->fences);
	INIT_LIST_HEAD(&stream->done);
	INIT_LIST_HEAD(&stream->starved_node);
	hcomm_sched_queue_init(&stream->queue, 1);
	hcomm_flow_init(&stream->flow, &hcomm_stream_hooks, stream->slots,
			HCOMM_FLOW_WINDOW, stream->gets);
	stream->flow.peer_group = link->peer_handle;
	stream->flow.src = member->rank;
	stream->flow.dst = remote->rank;
	hcomm_stream_init_tx(stream);
	hcomm_stream_init_rx(stream);
	hcomm_link_get(link);
	stream->link = link;
	hcomm_member_get(member);
	stream->member = member;
	refcount_inc(&remote->refs);
	stream->remote = remote;
	return stream;
}

/* Ops that waited for this rank come first. */
static int hcomm_stream_enlist(struct hcomm_stream *stream)
{
	struct hcomm_endpoint *endpoint = &stream->member->endpoint;
	u32 rank = stream->flow.dst;
	struct hcomm_op *op, *next;
	int ret;

	ret = xa_reserve_bh(&endpoint->streams, rank, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;
	spin_lock_bh(&endpoint->lock);
	spin_lock(&stream->lock);
	list_for_each_entry_safe(op, next, &endpoint->waiting, node)
		if (op->sqe.rank == rank) {
			list_move_tail(&op->node, &stream->parked);
			hcomm_endpoint_waited(endpoint, op);
		}
	xa_store_bh(&endpoint->streams, rank, stream, GFP_ATOMIC);
	spin_unlock(&stream->lock);
	spin_unlock_bh(&endpoint->lock);
	return 0;
}

int hcomm_stream_create(struct hcomm_link *link, struct hcomm_member *member,
			struct hcomm_remote *remote, bool open)
{
	unsigned long index = hcomm_stream_index(member->rank, remote->rank);
	struct hcomm_session *session = link->session;
	struct hcomm_stream *stream;
	int ret;

	lockdep_assert_held(&session->links_lock);
	if (link->faulted || xa_load(&link->streams, index))
		return 0;
	stream = hcomm_stream_alloc(link, member, remote);
	if (!stream)
		return -ENOMEM;
	stream->open = open;
	spin_lock_bh(&session->lock);
	hcomm_fence_flow_add(&session->fence, &stream->flow);
	spin_unlock_bh(&session->lock);
	ret = xa_insert_bh(&link->streams, index, stream, GFP_KERNEL_ACCOUNT);
	if (!ret)
		ret = hcomm_stream_enlist(stream);
	if (ret) {
		xa_erase_bh(&link->streams, index);
		spin_lock_bh(&session->lock);
		hcomm_fence_flow_del(&session->fence, &stream->flow);
		spin_unlock_bh(&session->lock);
		hcomm_stream_put(stream);
		return ret;
	}
	hcomm_stream_kick(stream);
	return 0;
}

void hcomm_stream_open(struct hcomm_stream *stream)
{
	spin_lock_bh(&stream->lock);
	stream->open = true;
	spin_unlock_bh(&stream->lock);
	hcomm_stream_kick(stream);
}

/* Answers that were not due yet are not sent any more. */
static void hcomm_stream_drop_requests(struct hcomm_stream *stream,
				       struct list_head *done)
{
	struct hcomm_flow_slot *slot;
	struct hcomm_xfer *xfer;
	unsigned int i;

	lockdep_assert_held(&stream->lock);
	for (i = 0; i < HCOMM_FLOW_WINDOW; i++) {
		slot = &stream->slots[i];
		if (!slot->nparts || !slot->cookie || slot->delivered)
			continue;
		xfer = slot->cookie;
		slot->cookie = NULL;
		list_add_tail(&xfer->flow_op.node, done);
	}
}

/* Of what came back: GETs that the peer may still answer go to @lingering. */
static void hcomm_stream_sort(struct list_head *done,
			      struct list_head *lingering)
{
	struct hcomm_xfer *xfer, *next;

	list_for_each_entry_safe(xfer, next, done, flow_op.node) {
		if (xfer->kind != HCOMM_XFER_GET || xfer->flow_op.answered ||
		    hcomm_flow_tx_untouched(&xfer->flow_op))
			continue;
		list_move_tail(&xfer->flow_op.node, lingering);
	}
}

static void hcomm_stream_cut_off(struct hcomm_stream *stream)
{
	struct hcomm_link *link = stream->link;
	struct hcomm_session *session = link->session;
	struct hcomm_endpoint *endpoint = &stream->member->endpoint;
	struct hcomm_path *path = &session->path;
	bool starved;

	xa_erase_bh(&link->streams, hcomm_stream_index(stream->flow.src,
						       stream->flow.dst));
	spin_lock_bh(&endpoint->lock);
	xa_erase_bh(&endpoint->streams, stream->flow.dst);
	spin_unlock_bh(&endpoint->lock);
	spin_lock_bh(&session->lock);
	hcomm_fence_flow_del(&session->fence, &stream->flow);
	spin_unlock_bh(&session->lock);

	spin_lock_bh(&path->sched_lock);
	stream->cost = 0;
	hcomm_sched_deactivate(&stream->queue);
	starved = !list_empty(&stream->starved_node);
	list_del_init(&stream->starved_node);
	spin_unlock_bh(&path->sched_lock);
	if (starved)
		hcomm_stream_put(stream);
}

static void hcomm_stream_end_parked(struct hcomm_stream *stream, int status)
{
	struct hcomm_op *op;

	for (;;) {
		spin_lock_bh(&stream->lock);
		op = list_first_entry_or_null(&stream->parked, struct hcomm_op,
					      node);
		if (op)
			list_del_init(&op->node);
		spin_unlock_bh(&stream->lock);
		if (!op)
			return;
		hcomm_op_complete(op, status, 0);
		hcomm_op_put(op);
	}
}

void hcomm_stream_kill(struct hcomm_stream *stream, int status, bool linger)
{
	struct hcomm_link *link = stream->link;
	struct hcomm_xfer *xfer;
	LIST_HEAD(lingering);
	LIST_HEAD(done);

	lockdep_assert_held(&link->session->links_lock);
	spin_lock_bh(&stream->lock);
	stream->dead = true;
	stream->status = status;
	hcomm_flow_kill(&stream->flow, status, &done);
	list_splice_tail_init(&stream->fences, &done);
	hcomm_stream_drop_requests(stream, &done);
	spin_unlock_bh(&stream->lock);
	/*
	 * From here nothing parks, activates or starves it again. As long as
	 * it is found, what is on no list of the endpoint's is on its own.
	 */
	hcomm_stream_end_parked(stream, status);
	hcomm_stream_cut_off(stream);

	hcomm_stream_sort(&done, &lingering);
	list_for_each_entry(xfer, &lingering, flow_op.node)
		hcomm_op_complete(xfer->op, status, xfer->flow_op.seq);
	list_for_each_entry(xfer, &done, flow_op.node)
		if (!xfer->flow_op.status)
			xfer->flow_op.status = status;
	hcomm_xfers_done(&done);
	if (linger)
		hcomm_advert_linger(link, stream->flow.src, stream->flow.dst,
				    &lingering);
	else
		hcomm_xfers_release(&lingering);
	/* The tables' reference. */
	list_add_tail(&stream->dying_node, &link->dying);
	hcomm_link_kick(link);
}

void hcomm_stream_unposted(struct hcomm_stream *stream)
{
	if (atomic_dec_and_test(&stream->posted) && READ_ONCE(stream->dead))
		hcomm_link_kick(stream->link);
}

/* -------------------------------------------- all of a session's streams */

void hcomm_streams_kick(struct hcomm_session *session)
{
	struct hcomm_stream *stream;
	struct hcomm_link *link;
	unsigned long index;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node)
		xa_for_each(&link->streams, index, stream)
			hcomm_stream_kick(stream);
	mutex_unlock(&session->links_lock);
	hcomm_path_pump(&session->path);
}

void hcomm_link_kick_remote(struct hcomm_link *link, u32 rank)
{
	struct hcomm_stream *stream;
	unsigned long index;

	lockdep_assert_held(&link->session->links_lock);
	xa_for_each(&link->streams, index, stream)
		if (stream->flow.dst == rank)
			hcomm_stream_kick(stream);
}

void hcomm_streams_lift(struct hcomm_session *session, u64 una)
{
	struct hcomm_stream *stream;
	struct hcomm_link *link;
	unsigned long index;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node) {
		xa_for_each(&link->streams, index, stream) {
			spin_lock_bh(&stream->lock);
			hcomm_flow_rx_ctl_acked(&stream->flow, una);
			hcomm_stream_ack_later(stream);
			spin_unlock_bh(&stream->lock);
		}
	}
	mutex_unlock(&session->links_lock);
}

bool hcomm_streams_getting(struct hcomm_session *session)
{
	struct hcomm_stream *stream;
	struct hcomm_link *link;
	unsigned long index;
	bool getting = false;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node) {
		xa_for_each(&link->streams, index, stream) {
			spin_lock_bh(&stream->lock);
			getting |= hcomm_flow_tx_getting(&stream->flow);
			spin_unlock_bh(&stream->lock);
		}
	}
	mutex_unlock(&session->links_lock);
	return getting;
}

/* The fence's view: called with session->lock held. */

static void hcomm_fence_lock(struct hcomm_fence *fence, struct hcomm_flow *flow)
	__acquires(flow)
{
	spin_lock(&container_of(flow, struct hcomm_stream, flow)->lock);
}

static void hcomm_fence_unlock(struct hcomm_fence *fence,
			       struct hcomm_flow *flow)
	__releases(flow)
{
	spin_unlock(&container_of(flow, struct hcomm_stream, flow)->lock);
}

/* The path's coming up kicks all streams, outside the session's lock. */
static void hcomm_fence_kick(struct hcomm_fence *fence, struct hcomm_flow *flow)
{
	struct hcomm_session *session = container_of(fence,
						     struct hcomm_session,
						     fence);

	session->kick = true;
}

static struct hcomm_flow *hcomm_fence_find(struct hcomm_fence *fence, u32 group,
					   u32 src, u32 dst)
{
	struct hcomm_session *session = container_of(fence,
						     struct hcomm_session,
						     fence);
	struct hcomm_stream *stream = NULL;
	struct hcomm_link *link;

	if (src >= HCOMM_MAX_RANKS || dst >= HCOMM_MAX_RANKS)
		return NULL;
	rcu_read_lock();
	link = xa_load(&session->handles, group);
	if (link)
		stream = xa_load(&link->streams, hcomm_stream_index(src, dst));
	rcu_read_unlock();
	/* It cannot leave the fence while session->lock is held. */
	return stream ? &stream->flow : NULL;
}

const struct hcomm_fence_ops hcomm_fence_hooks = {
	.lock = hcomm_fence_lock,
	.unlock = hcomm_fence_unlock,
	.kick = hcomm_fence_kick,
	.find = hcomm_fence_find,
};
