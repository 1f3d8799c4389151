// SPDX-License-Identifier: GPL-2.0
/*
 * A path: two queue pairs of one epoch between a local and a remote port. The
 * small one carries eager data, control and heartbeats, the bulk one WRITEs,
 * each part followed by its header.
 *
 * Queue sizes. Small: 256 receives of 64 + 1024 bytes. Its send queue has 256
 * messages, HCOMM_REG_BATCH registrations and one drain entry. Bulk:
 * recv_queue_depth receives of 64 bytes; send_queue_depth entries for WRITEs
 * and headers, plus one to drain; as a part takes at least two entries, there
 * are half as many header slots. Receives have one entry more, to drain. A
 * completion queue holds all of its send and its receive queue, so it cannot
 * overflow. Of a chain only the SEND at its end is signalled; when the queue
 * pair fails the WRITEs before it complete too, on an entry that ignores it.
 *
 * Going down. Whoever sees an error calls hcomm_path_error(): the state moves
 * once, both connections are closed for posting, the fence and the control
 * stream hear that the path is lost, and the work is queued. The work takes
 * the connections off the path, waits until no sender holds them, moves the
 * queue pairs to the error state and drains them for at most 5 s with an entry
 * of our own (ib_drain_qp() waits without limit), then destroys them whatever
 * the drain said. Nothing completes after that: sends that never did are
 * released by hand. Only then may the fence say that the path is drained.
 *
 * A connection belongs to its path's work. Senders find it under RCU, a builder
 * of registrations references it. conn->lock makes posting exclusive with
 * closing and protects credits and slots; it is the innermost lock.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "fabric.h"
#include "trace.h"

#define HCOMM_SMALL_DEPTH	256
#define HCOMM_DRAIN_TIME	(5 * HZ)
#define HCOMM_REG_TIME		(10 * HZ)
#define HCOMM_RETRY_LEAST	msecs_to_jiffies(20)
#define HCOMM_RETRY_MOST	HZ

/* --------------------------------------------------------- buffers */

static void hcomm_bufs_free(struct hcomm_bufs *bufs, struct ib_device *ib)
{
	unsigned int i;

	for (i = 0; bufs->pages && i * bufs->per_page < bufs->count; i++) {
		if (!bufs->pages[i])
			break;
		ib_dma_unmap_single(ib, bufs->dma[i], PAGE_SIZE, bufs->dir);
		free_page((unsigned long)bufs->pages[i]);
	}
	kvfree(bufs->pages);
	kvfree(bufs->dma);
	bufs->pages = NULL;
	bufs->dma = NULL;
}

static int hcomm_bufs_alloc(struct hcomm_bufs *bufs, struct ib_device *ib,
			    unsigned int count, unsigned int size,
			    enum dma_data_direction dir)
{
	unsigned int pages, i;
	void *page;

	bufs->count = count;
	bufs->size = size;
	bufs->per_page = PAGE_SIZE / size;
	bufs->dir = dir;
	pages = DIV_ROUND_UP(count, bufs->per_page);
	bufs->pages = kvcalloc(pages, sizeof(*bufs->pages), GFP_KERNEL);
	bufs->dma = kvcalloc(pages, sizeof(*bufs->dma), GFP_KERNEL);
	if (!bufs->pages || !bufs->dma)
		goto err;
	for (i = 0; i < pages; i++) {
		page = (void *)get_zeroed_page(GFP_KERNEL);
		if (!page)
			goto err;
		bufs->dma[i] = ib_dma_map_single(ib, page, PAGE_SIZE, dir);
		if (ib_dma_mapping_error(ib, bufs->dma[i])) {
			free_page((unsigned long)page);
			goto err;
		}
		bufs->pages[i] = page;
	}
	return 0;

err:
	hcomm_bufs_free(bufs, ib);
	return -ENOMEM;
}

static void *hcomm_buf(const struct hcomm_bufs *bufs, unsigned int i)
{
	return bufs->pages[i / bufs->per_page] +
	       (i % bufs->per_page) * bufs->size;
}

static u64 hcomm_buf_dma(const struct hcomm_bufs *bufs, unsigned int i)
{
	return bufs->dma[i / bufs->per_page] +
	       (i % bufs->per_page) * bufs->size;
}

/* ------------------------------------------------- a send's life */

struct hcomm_send *hcomm_conn_reserve(struct hcomm_conn *conn,
				      enum hcomm_credit_use use,
				      unsigned int wrs)
{
	struct hcomm_send *send = NULL;

	spin_lock_bh(&conn->lock);
	if (conn->state != HCOMM_CONN_OPEN || conn->sq_free < wrs ||
	    list_empty(&conn->sends_free) ||
	    !hcomm_credit_take(&conn->credit, use)) {
		conn->hungry = true;
		goto out;
	}
	send = list_first_entry(&conn->sends_free, struct hcomm_send, node);
	list_move_tail(&send->node, &conn->sends_busy);
	conn->sq_free -= wrs;
	send->wrs = wrs;
	send->xfer = NULL;
	send->rwin = NULL;
	send->bytes = 0;
	send->credits = hcomm_credit_collect(&conn->credit);
out:
	spin_unlock_bh(&conn->lock);
	return send;
}

void hcomm_conn_unreserve(struct hcomm_send *send)
{
	struct hcomm_conn *conn = send->conn;

	spin_lock_bh(&conn->lock);
	hcomm_credit_uncollect(&conn->credit, send->credits);
	hcomm_credit_untake(&conn->credit);
	conn->sq_free += send->wrs;
	list_move(&send->node, &conn->sends_free);
	spin_unlock_bh(&conn->lock);
}

void *hcomm_send_buf(struct hcomm_send *send)
{
	return hcomm_buf(&send->conn->tx, send->index);
}

/*
 * A send that could not be posted stays among the busy ones: its connection is
 * on the way out, and destroying it releases what they hold. Releasing it here
 * would take locks that the caller's flow lock does not allow.
 */
void hcomm_conn_post(struct hcomm_send *send, u32 len,
		     struct ib_rdma_wr *writes, unsigned int nr_writes)
{
	struct hcomm_conn *conn = send->conn;
	struct ib_sge sge = {
		.addr = hcomm_buf_dma(&conn->tx, send->index),
		.length = len,
		.lkey = conn->qp->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &send->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	struct ib_send_wr *first = &wr;
	int ret = 0;

	ib_dma_sync_single_for_device(conn->qp->device, sge.addr, len,
				      DMA_TO_DEVICE);
	while (nr_writes--) {
		writes[nr_writes].wr.next = first;
		first = &writes[nr_writes].wr;
	}
	atomic64_add(len + send->bytes, &conn->path->bytes_sent);

	spin_lock_bh(&conn->lock);
	if (conn->state == HCOMM_CONN_OPEN)
		ret = ib_post_send(conn->qp, first, NULL);
	if (ret)
		conn->fatal = true;
	spin_unlock_bh(&conn->lock);
	/* The caller holds a flow lock, which is beneath the session's. */
	if (ret)
		hcomm_path_kick(conn->path);
}

bool hcomm_conn_send_header(struct hcomm_conn *conn, enum hcomm_credit_use use,
			    struct hcomm_wire_hdr *h)
{
	struct hcomm_send *send = hcomm_conn_reserve(conn, use, 1);

	if (!send)
		return false;
	h->credits = send->credits;
	hcomm_wire_encode(h, hcomm_send_buf(send));
	hcomm_conn_post(send, HCOMM_WIRE_HEADER, NULL, 0);
	return true;
}

/* What the send carried: its transfer is no longer on a queue pair. */
static void hcomm_send_release(struct hcomm_send *send)
{
	struct hcomm_xfer *xfer = send->xfer;
	struct hcomm_path *path = send->conn->path;

	if (send->bytes) {
		spin_lock_bh(&path->sched_lock);
		hcomm_sched_complete(&path->sched, send->bytes,
				     ktime_get_ns());
		spin_unlock_bh(&path->sched_lock);
	}
	if (send->rwin) {
		hcomm_rwin_posted(send->rwin);
		hcomm_rwin_put(send->rwin);
		send->rwin = NULL;
	}
	if (xfer) {
		send->xfer = NULL;
		hcomm_stream_unposted(xfer->stream);
		hcomm_xfer_put(xfer);
	}
}

static void hcomm_send_credit(struct hcomm_conn *conn)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_CREDIT };
	bool due;

	spin_lock_bh(&conn->lock);
	due = hcomm_credit_due(&conn->credit);
	spin_unlock_bh(&conn->lock);
	if (due)
		hcomm_conn_send_header(conn, HCOMM_CREDIT_RETURN, &h);
}

static void hcomm_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hcomm_send *send = container_of(wc->wr_cqe, struct hcomm_send,
					       cqe);
	struct hcomm_conn *conn = send->conn;

	if (wc->status != IB_WC_SUCCESS)
		hcomm_conn_error(conn, -EIO);
	hcomm_send_release(send);
	spin_lock_bh(&conn->lock);
	conn->sq_free += send->wrs;
	list_move(&send->node, &conn->sends_free);
	spin_unlock_bh(&conn->lock);
	if (wc->status != IB_WC_SUCCESS)
		return;
	hcomm_send_credit(conn);
	if (conn->kind == HCOMM_QP_SMALL)
		hcomm_path_feed(conn->path);
	else
		hcomm_path_pump(conn->path);
}

/* An unsignalled entry: only its failure completes. */
static void hcomm_write_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hcomm_conn *conn = container_of(wc->wr_cqe, struct hcomm_conn,
					       write_cqe);

	if (wc->status != IB_WC_SUCCESS)
		hcomm_conn_error(conn, -EIO);
}

/* --------------------------------------------------------- receives */

static int hcomm_recv_post(struct hcomm_conn *conn, struct hcomm_recv *recv)
{
	struct ib_sge sge = {
		.addr = hcomm_buf_dma(&conn->rx, recv->index),
		.length = conn->rx.size,
		.lkey = conn->qp->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &recv->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	ib_dma_sync_single_for_device(conn->qp->device, sge.addr, sge.length,
				      DMA_FROM_DEVICE);
	return ib_post_recv(conn->qp, &wr, NULL);
}

static void hcomm_recv_handle(struct hcomm_conn *conn, struct hcomm_recv *recv,
			      u32 len)
{
	struct hcomm_wire_msg m;
	const void *buf = hcomm_buf(&conn->rx, recv->index);
	int ret;

	ib_dma_sync_single_for_cpu(conn->qp->device,
				   hcomm_buf_dma(&conn->rx, recv->index),
				   conn->rx.size, DMA_FROM_DEVICE);
	ret = hcomm_wire_decode(buf, len, conn->kind, &m);
	if (ret) {
		hcomm_session_reset_for(conn->session, ret,
					"no such message: %u bytes %*ph",
					len, (int)min(len, 64U), buf);
		return;
	}
	/* A message may overtake the news that the connection stands. */
	if (unlikely(READ_ONCE(conn->state) == HCOMM_CONN_READY))
		hcomm_path_heard(conn);
	spin_lock_bh(&conn->lock);
	hcomm_credit_grant(&conn->credit, m.h.credits);
	spin_unlock_bh(&conn->lock);
	/* The data was written ahead of the message that tells of it. */
	if (m.h.type == HCOMM_WIRE_PART || m.h.type == HCOMM_WIRE_GET_PART)
		atomic64_add(m.h.length, &conn->path->bytes_received);
	atomic64_add(len, &conn->path->bytes_received);
	hcomm_session_received(conn, &m, buf, len);
}

static void hcomm_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hcomm_recv *recv = container_of(wc->wr_cqe, struct hcomm_recv,
					       cqe);
	struct hcomm_conn *conn = wc->qp->qp_context;
	bool granted;

	if (wc->status != IB_WC_SUCCESS) {
		hcomm_conn_error(conn, -EIO);
		return;
	}
	hcomm_recv_handle(conn, recv, wc->byte_len);
	if (hcomm_recv_post(conn, recv)) {
		hcomm_conn_error(conn, -EIO);
		return;
	}
	spin_lock_bh(&conn->lock);
	hcomm_credit_reposted(&conn->credit);
	granted = conn->hungry &&
		  hcomm_credit_room(&conn->credit, HCOMM_CREDIT_DATA);
	if (granted)
		conn->hungry = false;
	spin_unlock_bh(&conn->lock);
	hcomm_send_credit(conn);
	if (!granted)
		return;
	if (conn->kind == HCOMM_QP_SMALL)
		hcomm_path_feed(conn->path);
	else
		hcomm_path_pump(conn->path);
}

/* ------------------------------------------------ the connection */

static void hcomm_drained_send(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct hcomm_conn,
			       drain_send_cqe)->drained_send);
}

static void hcomm_drained_recv(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct hcomm_conn,
			       drain_recv_cqe)->drained_recv);
}

static void hcomm_reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hcomm_conn *conn = container_of(wc->wr_cqe, struct hcomm_conn,
					       reg_cqe);

	if (wc->status != IB_WC_SUCCESS)
		hcomm_conn_error(conn, -EIO);
	else
		WRITE_ONCE(conn->reg_status, 0);
	complete(&conn->reg_done);
}

unsigned int hcomm_conn_receives(const struct hcomm_conn *conn)
{
	return conn->rx.count;
}

/* How deep the queues of a connection are, within what the device can. */
static void hcomm_conn_depths(const struct hcomm_conn *conn,
			      unsigned int *sends, unsigned int *entries,
			      unsigned int *receives)
{
	const struct ib_device_attr *attr = &conn->port->rdev->ib->attrs;
	unsigned int most = min_t(int, attr->max_qp_wr, attr->max_cqe / 2) - 1;

	if (conn->kind == HCOMM_QP_SMALL) {
		*sends = min(most - HCOMM_REG_BATCH, HCOMM_SMALL_DEPTH);
		*entries = *sends + HCOMM_REG_BATCH;
		*receives = min(most, HCOMM_SMALL_DEPTH);
	} else {
		*entries = min(most, conn->session->big ?
			       hcomm_send_depth : hcomm_send_depth / 8);
		*sends = *entries / 2;
		*receives = min(most, conn->session->big ?
				hcomm_recv_depth : hcomm_recv_depth / 8);
	}
}

struct hcomm_conn *hcomm_conn_create(struct hcomm_path *path,
				     enum hcomm_wire_qp kind, u32 epoch,
				     struct hcomm_port *port)
{
	struct hcomm_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	conn->path = path;
	conn->session = path->session;
	conn->port = port;
	conn->kind = kind;
	conn->epoch = epoch;
	refcount_set(&conn->refs, 1);
	init_completion(&conn->unused);
	spin_lock_init(&conn->lock);
	INIT_LIST_HEAD(&conn->sends_free);
	INIT_LIST_HEAD(&conn->sends_busy);
	mutex_init(&conn->reg_lock);
	INIT_LIST_HEAD(&conn->orphans);
	init_completion(&conn->reg_done);
	init_completion(&conn->drained_send);
	init_completion(&conn->drained_recv);
	conn->reg_cqe.done = hcomm_reg_done;
	conn->write_cqe.done = hcomm_write_done;
	conn->drain_send_cqe.done = hcomm_drained_send;
	conn->drain_recv_cqe.done = hcomm_drained_recv;
	return conn;
}

/* The memory of both directions; partly made is undone by hcomm_conn_free(). */
static int hcomm_conn_alloc(struct hcomm_conn *conn, unsigned int sends,
			    unsigned int receives)
{
	struct ib_device *ib = conn->port->rdev->ib;
	unsigned int size = conn->kind == HCOMM_QP_SMALL ?
			    HCOMM_WIRE_MESSAGE : HCOMM_WIRE_HEADER;
	unsigned int i;
	int ret;

	conn->sends = kvcalloc(sends, sizeof(*conn->sends), GFP_KERNEL);
	conn->recvs = kvcalloc(receives, sizeof(*conn->recvs), GFP_KERNEL);
	if (!conn->sends || !conn->recvs)
		return -ENOMEM;
	ret = hcomm_bufs_alloc(&conn->tx, ib, sends, size, DMA_TO_DEVICE);
	if (ret)
		return ret;
	ret = hcomm_bufs_alloc(&conn->rx, ib, receives, size, DMA_FROM_DEVICE);
	if (ret)
		return ret;
	for (i = 0; i < sends; i++) {
		conn->sends[i].cqe.done = hcomm_send_done;
		conn->sends[i].conn = conn;
		conn->sends[i].index = i;
		list_add_tail(&conn->sends[i].node, &conn->sends_free);
	}
	for (i = 0; i < receives; i++) {
		conn->recvs[i].cqe.done = hcomm_recv_done;
		conn->recvs[i].index = i;
	}
	return 0;
}

static void hcomm_conn_free(struct hcomm_conn *conn)
{
	struct ib_device *ib = conn->port->rdev->ib;

	hcomm_bufs_free(&conn->tx, ib);
	hcomm_bufs_free(&conn->rx, ib);
	kvfree(conn->sends);
	kvfree(conn->recvs);
	hcomm_port_put(conn->port);
	mutex_destroy(&conn->reg_lock);
	kfree(conn);
}

/* May be called in hard irq context. */
static void hcomm_qp_event(struct ib_event *event, void *context)
{
	struct hcomm_conn *conn = context;

	if (event->event == IB_EVENT_COMM_EST) {
		rdma_notify(conn->id, IB_EVENT_COMM_EST);
		return;
	}
	WRITE_ONCE(conn->fatal, true);
	hcomm_path_kick(conn->path);
}

static int hcomm_conn_make_qp(struct hcomm_conn *conn, unsigned int entries,
			      unsigned int receives)
{
	struct ib_qp_init_attr attr = {
		.event_handler = hcomm_qp_event,
		.qp_context = conn,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = entries + 1,
			.max_recv_wr = receives + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_pd *pd;
	int ret;

	pd = hcomm_rdev_pd(conn->port->rdev, conn->session->fabric->nr);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	conn->cq = ib_alloc_cq_any(conn->id->device, conn,
				   entries + receives + 2, IB_POLL_SOFTIRQ);
	if (IS_ERR(conn->cq)) {
		ret = PTR_ERR(conn->cq);
		conn->cq = NULL;
		return ret;
	}
	attr.send_cq = conn->cq;
	attr.recv_cq = conn->cq;
	ret = rdma_create_qp(conn->id, pd, &attr);
	if (ret)
		return ret;
	conn->qp = conn->id->qp;
	return 0;
}

int hcomm_conn_setup(struct hcomm_conn *conn)
{
	unsigned int sends, entries, receives, i;
	int ret;

	if (conn->id->device != conn->port->rdev->ib)
		return -EXDEV;
	hcomm_conn_depths(conn, &sends, &entries, &receives);
	ret = hcomm_conn_alloc(conn, sends, receives);
	if (ret)
		return ret;
	ret = hcomm_conn_make_qp(conn, entries, receives);
	if (ret)
		return ret;
	for (i = 0; i < receives; i++) {
		ret = hcomm_recv_post(conn, &conn->recvs[i]);
		if (ret)
			return ret;
	}
	spin_lock_bh(&conn->lock);
	conn->sq_free = entries - (conn->kind == HCOMM_QP_SMALL ?
				   HCOMM_REG_BATCH : 0);
	if (conn->state == HCOMM_CONN_NEW)
		WRITE_ONCE(conn->state, HCOMM_CONN_READY);
	else
		ret = -ECANCELED;
	spin_unlock_bh(&conn->lock);
	return ret;
}

int hcomm_conn_open(struct hcomm_conn *conn, u16 peer_credits)
{
	int ret = 0;

	spin_lock_bh(&conn->lock);
	if (conn->state == HCOMM_CONN_READY) {
		ret = hcomm_credit_init(&conn->credit, conn->rx.count,
					peer_credits);
		if (!ret)
			WRITE_ONCE(conn->state, HCOMM_CONN_OPEN);
	}
	spin_unlock_bh(&conn->lock);
	return ret;
}

void hcomm_conn_close(struct hcomm_conn *conn)
{
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->state, HCOMM_CONN_CLOSED);
	spin_unlock_bh(&conn->lock);
}

struct hcomm_conn *hcomm_conn_get(struct hcomm_path *path,
				  enum hcomm_wire_qp kind)
{
	struct hcomm_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(path->conn[kind]);
	if (conn && !refcount_inc_not_zero(&conn->refs))
		conn = NULL;
	rcu_read_unlock();
	return conn;
}

void hcomm_conn_put(struct hcomm_conn *conn)
{
	if (refcount_dec_and_test(&conn->refs))
		complete(&conn->unused);
}

int hcomm_conn_register(struct hcomm_conn *conn, struct ib_reg_wr *wrs,
			unsigned int count)
{
	unsigned int i;
	int ret = -ENOTCONN;

	for (i = 0; i < count; i++) {
		wrs[i].wr.next = i + 1 < count ? &wrs[i + 1].wr : NULL;
		wrs[i].wr.wr_cqe = &conn->write_cqe;
	}
	wrs[count - 1].wr.wr_cqe = &conn->reg_cqe;
	wrs[count - 1].wr.send_flags = IB_SEND_SIGNALED;

	mutex_lock(&conn->reg_lock);
	reinit_completion(&conn->reg_done);
	WRITE_ONCE(conn->reg_status, -EIO);
	spin_lock_bh(&conn->lock);
	if (conn->state == HCOMM_CONN_OPEN)
		ret = ib_post_send(conn->qp, &wrs[0].wr, NULL);
	spin_unlock_bh(&conn->lock);
	if (!ret && !wait_for_completion_timeout(&conn->reg_done,
						 HCOMM_REG_TIME))
		ret = -ETIMEDOUT;
	if (!ret)
		ret = READ_ONCE(conn->reg_status);
	if (ret && ret != -ENOTCONN)
		hcomm_conn_error(conn, ret);
	mutex_unlock(&conn->reg_lock);
	return ret;
}

void hcomm_conn_orphan(struct hcomm_conn *conn, struct hcomm_table *table)
{
	mutex_lock(&conn->reg_lock);
	list_add(&table->mem_node, &conn->orphans);
	mutex_unlock(&conn->reg_lock);
}

/* Waits, bounded, until everything that was posted has completed. */
static void hcomm_conn_drain(struct hcomm_conn *conn)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_recv_wr recv = { .wr_cqe = &conn->drain_recv_cqe };
	struct ib_rdma_wr send = {
		.wr = {
			.wr_cqe = &conn->drain_send_cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	unsigned long left = HCOMM_DRAIN_TIME;
	bool posted;

	if (ib_modify_qp(conn->qp, &attr, IB_QP_STATE))
		return;
	posted = !ib_post_send(conn->qp, &send.wr, NULL);
	if (!ib_post_recv(conn->qp, &recv, NULL))
		left = wait_for_completion_timeout(&conn->drained_recv, left);
	if (posted)
		left = wait_for_completion_timeout(&conn->drained_send,
						   max(left, 1UL));
	if (!left)
		pr_warn("hcomm%u: a queue pair of %s did not drain\n",
			conn->session->fabric->nr,
			dev_name(&conn->qp->device->dev));
}

void hcomm_conn_abandon(struct hcomm_conn *conn)
{
	hcomm_conn_close(conn);
	if (conn->qp)
		rdma_destroy_qp(conn->id);
	if (conn->cq)
		ib_free_cq(conn->cq);
	hcomm_conn_free(conn);
}

/* Saying good-bye takes a link; see hcomm_port_bury(). */
static bool hcomm_conn_mute(const struct hcomm_conn *conn)
{
	return conn->asked && !hcomm_port_sends(conn->port, conn->id);
}

static void hcomm_conn_end_id(struct hcomm_conn *conn)
{
	if (!hcomm_conn_mute(conn)) {
		rdma_destroy_id(conn->id);
		return;
	}
	rdma_lock_handler(conn->id);
	conn->id->context = NULL;
	rdma_unlock_handler(conn->id);
	hcomm_port_bury(conn->port, conn->id);
}

void hcomm_conn_destroy(struct hcomm_conn *conn)
{
	struct hcomm_table *table, *more;
	struct hcomm_send *send, *next;

	hcomm_conn_close(conn);
	/* A handler that runs finishes; the next ones see the state. */
	if (conn->id) {
		rdma_lock_handler(conn->id);
		rdma_unlock_handler(conn->id);
	}
	if (conn->qp) {
		if (conn->asked && !hcomm_conn_mute(conn))
			rdma_disconnect(conn->id);
		hcomm_conn_drain(conn);
	}
	complete(&conn->reg_done);
	hcomm_conn_put(conn);
	wait_for_completion(&conn->unused);
	if (conn->qp)
		rdma_destroy_qp(conn->id);
	if (conn->cq)
		ib_free_cq(conn->cq);
	if (conn->id)
		hcomm_conn_end_id(conn);
	list_for_each_entry_safe(send, next, &conn->sends_busy, node)
		hcomm_send_release(send);
	list_for_each_entry_safe(table, more, &conn->orphans, mem_node)
		hcomm_table_discard(table, conn->port->rdev->ib);
	hcomm_conn_free(conn);
}

/* ------------------------------------------------------- the path */

void hcomm_path_error(struct hcomm_path *path, int error)
{
	struct hcomm_session *session = path->session;

	spin_lock_bh(&session->lock);
	hcomm_path_lost(path, HCOMM_PATH_DRAINING, error);
	spin_unlock_bh(&session->lock);
}

void hcomm_path_retry(struct hcomm_path *path)
{
	lockdep_assert_held(&path->session->lock);
	path->attempt = 0;
	path->retry_at = jiffies;
	hcomm_path_kick(path);
}

/*
 * An attempt over another port is given up: the peer may not be there, and a
 * longer one would take what is left of the peer's patience.
 */
void hcomm_path_rises(struct hcomm_path *path, const struct hcomm_port *port)
{
	struct hcomm_session *session = path->session;
	const struct hcomm_conn *conn;

	spin_lock_bh(&session->lock);
	if (!session->active || session->state == HCOMM_SESSION_DEAD ||
	    hcomm_path_connected(path->state) ||
	    !hcomm_port_is_home(port, &path->home))
		goto out;
	conn = rcu_dereference_protected(path->conn[HCOMM_QP_SMALL],
					 lockdep_is_held(&session->lock));
	if (path->state == HCOMM_PATH_CONNECTING &&
	    (!conn || conn->port != port))
		hcomm_path_lost(path, HCOMM_PATH_DRAINING, -ENETDOWN);
	hcomm_path_retry(path);
out:
	spin_unlock_bh(&session->lock);
}

/* A connection that was replaced has nothing to say about the path. */
void hcomm_conn_error(struct hcomm_conn *conn, int error)
{
	struct hcomm_path *path = conn->path;
	struct hcomm_session *session = path->session;

	spin_lock_bh(&session->lock);
	if (conn->epoch == path->epoch)
		hcomm_path_lost(path, HCOMM_PATH_DRAINING, error);
	spin_unlock_bh(&session->lock);
}

static unsigned long hcomm_path_backoff(unsigned int attempt)
{
	unsigned long delay = HCOMM_RETRY_LEAST << min(attempt, 8U);

	delay = min_t(unsigned long, delay, HCOMM_RETRY_MOST);
	return delay + get_random_u32() % (delay / 4 + 1);
}

void hcomm_path_trace(const struct hcomm_path *path, enum hcomm_path_state from)
{
	const struct hcomm_session *session = path->session;

	trace_hcomm_path_state(session->fabric->nr, session->peer, path->index,
			       path->epoch, hcomm_path_state_name(from),
			       hcomm_path_state_name(path->state), path->error);
}

bool hcomm_path_lost(struct hcomm_path *path, enum hcomm_path_state to,
		     int error)
{
	struct hcomm_session *session = path->session;
	enum hcomm_path_state from = path->state;
	struct hcomm_conn *conn;
	unsigned int kind;

	lockdep_assert_held(&session->lock);
	if (!hcomm_path_move(&path->state, to))
		return false;
	/* What ended the path tells more than that its session ends, too. */
	if (to != HCOMM_PATH_CLOSING || hcomm_path_connected(from))
		path->error = error;
	hcomm_path_trace(path, from);
	path->retry_at = jiffies + hcomm_path_backoff(path->attempt++);
	WRITE_ONCE(path->clear, false);
	for (kind = 0; kind < 2; kind++) {
		conn = rcu_dereference_protected(path->conn[kind],
						 lockdep_is_held(&session->lock));
		if (conn)
			hcomm_conn_close(conn);
	}
	hcomm_fence_lost(&session->fence, path->index);
	hcomm_ctl_path_lost(&session->ctl, path->index);
	hcomm_path_kick(path);
	return true;
}

void hcomm_path_established(struct hcomm_conn *conn)
{
	struct hcomm_path *path = conn->path;
	struct hcomm_conn *other;
	unsigned int kind;
	bool both = true;
	int ret;

	ret = hcomm_conn_open(conn, conn->peer_credits);
	if (ret) {
		hcomm_conn_error(conn, ret);
		return;
	}
	rcu_read_lock();
	for (kind = 0; kind < 2; kind++) {
		other = rcu_dereference(path->conn[kind]);
		if (!other || other->epoch != conn->epoch ||
		    READ_ONCE(other->state) != HCOMM_CONN_OPEN)
			both = false;
	}
	rcu_read_unlock();
	if (both)
		hcomm_session_connected(path->session, conn->epoch);
	else
		hcomm_path_kick(path);
}

/*
 * The connecting side writes only when both queue pairs stand: its first
 * message tells the accepting side so, whatever the connection manager's news.
 */
void hcomm_path_heard(struct hcomm_conn *conn)
{
	struct hcomm_conn *bulk;

	if (conn->session->active || conn->kind != HCOMM_QP_SMALL)
		return;
	hcomm_path_established(conn);
	rcu_read_lock();
	bulk = rcu_dereference(conn->path->conn[HCOMM_QP_BULK]);
	if (bulk && bulk->epoch == conn->epoch)
		hcomm_path_established(bulk);
	rcu_read_unlock();
}

/* Takes the connections off the path and ends them. */
static void hcomm_path_teardown(struct hcomm_path *path)
{
	struct hcomm_session *session = path->session;
	struct hcomm_fence_result result = {};
	struct hcomm_conn *conns[2];
	unsigned int kind;

	spin_lock_bh(&session->lock);
	for (kind = 0; kind < 2; kind++) {
		conns[kind] = rcu_dereference_protected(path->conn[kind],
							lockdep_is_held(&session->lock));
		RCU_INIT_POINTER(path->conn[kind], NULL);
	}
	spin_unlock_bh(&session->lock);
	if (conns[0] || conns[1])
		synchronize_rcu();
	for (kind = 0; kind < 2; kind++)
		if (conns[kind])
			hcomm_conn_destroy(conns[kind]);
	/* What was received before is looked at before the fence is told. */
	flush_work(&session->inbox_work);
	hcomm_session_unheard(session);
	if (path->announced)
		hcomm_links_path_event(session, HCOMM_EVENT_PATH_DOWN);

	spin_lock_bh(&session->lock);
	spin_lock(&path->sched_lock);
	hcomm_sched_reset(&path->sched);
	spin_unlock(&path->sched_lock);
	path->announced = false;
	hcomm_fence_drained(&session->fence, path->index, &result);
	if (!hcomm_path_move(&path->state, HCOMM_PATH_DOWN))
		hcomm_path_move(&path->state, HCOMM_PATH_DEAD);
	spin_unlock_bh(&session->lock);
}

static void hcomm_poke_end(struct hcomm_path *path)
{
	if (path->poke)
		hcomm_conn_destroy(path->poke);
	path->poke = NULL;
	WRITE_ONCE(path->poke_rdev, NULL);
	WRITE_ONCE(path->poke_over, false);
}

/* Begins an attempt; @kind BULK: goes on with it. */
static void hcomm_path_connect(struct hcomm_path *path,
			       enum hcomm_wire_qp kind, u32 epoch)
{
	struct hcomm_session *session = path->session;
	struct hcomm_candidate to;
	struct hcomm_port *port;
	struct hcomm_conn *small;
	unsigned int attempt;
	u8 src[16];
	int ret;

	spin_lock_bh(&session->lock);
	attempt = path->attempt;
	if (kind == HCOMM_QP_BULK) {
		memcpy(to.addr, path->dst, 16);
		to.port = path->dst_port;
		memcpy(src, path->src, 16);
	} else {
		to = session->candidates[attempt % session->nr_candidates];
		attempt /= session->nr_candidates;
	}
	spin_unlock_bh(&session->lock);

	if (kind == HCOMM_QP_SMALL) {
		port = hcomm_port_choose(session->fabric, to.addr, attempt, src);
	} else {
		small = hcomm_conn_get(path, HCOMM_QP_SMALL);
		port = small ? small->port : NULL;
		if (port)
			hcomm_rdev_get(port->rdev);
		if (small)
			hcomm_conn_put(small);
	}
	if (!port) {
		hcomm_path_error(path, -ENETUNREACH);
		return;
	}
	if (kind == HCOMM_QP_SMALL) {
		spin_lock_bh(&session->lock);
		memcpy(path->src, src, 16);
		memcpy(path->dst, to.addr, 16);
		path->dst_port = to.port;
		spin_unlock_bh(&session->lock);
	}
	ret = hcomm_cm_connect(path, kind, port, epoch);
	if (ret)
		hcomm_path_error(path, ret);
}

static void hcomm_path_poke(struct hcomm_path *path)
{
	struct hcomm_session *session = path->session;
	struct hcomm_candidate to;
	struct hcomm_port *port;
	unsigned int attempt;
	u8 src[16];

	hcomm_poke_end(path);
	spin_lock_bh(&session->lock);
	attempt = path->attempt++;
	to = session->candidates[attempt % session->nr_candidates];
	attempt /= session->nr_candidates;
	path->retry_at = jiffies + hcomm_path_backoff(attempt + 3);
	spin_unlock_bh(&session->lock);
	port = hcomm_port_choose(session->fabric, to.addr, attempt, src);
	if (!port)
		return;
	WRITE_ONCE(path->poke_rdev, port->rdev);
	path->poke = hcomm_cm_poke(path, port, src, to.addr, to.port);
}

/* What the work has to do next; jiffies until then in *@delay. */
enum hcomm_path_step {
	HCOMM_STEP_NOTHING,
	HCOMM_STEP_WAIT,
	HCOMM_STEP_TEARDOWN,
	HCOMM_STEP_SMALL,
	HCOMM_STEP_BULK,
	HCOMM_STEP_POKE,
};

static enum hcomm_path_step hcomm_path_step_connecting(struct hcomm_path *path,
						       unsigned long *delay)
{
	struct hcomm_session *session = path->session;
	struct hcomm_conn *small, *bulk;

	small = rcu_dereference_protected(path->conn[HCOMM_QP_SMALL],
					  lockdep_is_held(&session->lock));
	bulk = rcu_dereference_protected(path->conn[HCOMM_QP_BULK],
					 lockdep_is_held(&session->lock));
	if (time_after_eq(jiffies, path->deadline)) {
		hcomm_path_lost(path, HCOMM_PATH_DRAINING, -ETIMEDOUT);
		return HCOMM_STEP_TEARDOWN;
	}
	if (session->active && small && !bulk &&
	    READ_ONCE(small->state) == HCOMM_CONN_OPEN)
		return HCOMM_STEP_BULK;
	*delay = path->deadline - jiffies;
	return HCOMM_STEP_WAIT;
}

static enum hcomm_path_step hcomm_path_step(struct hcomm_path *path,
					    u32 *epoch, unsigned long *delay)
{
	struct hcomm_session *session = path->session;

	lockdep_assert_held(&session->lock);
	*epoch = path->epoch;
	switch (path->state) {
	case HCOMM_PATH_DRAINING:
	case HCOMM_PATH_CLOSING:
		return HCOMM_STEP_TEARDOWN;
	case HCOMM_PATH_CONNECTING:
		return hcomm_path_step_connecting(path, delay);
	case HCOMM_PATH_NEW:
	case HCOMM_PATH_DOWN:
		break;
	default:
		return HCOMM_STEP_NOTHING;
	}
	if (session->state == HCOMM_SESSION_DEAD || !session->nr_candidates ||
	    (!session->active && session->state != HCOMM_SESSION_NEW))
		return HCOMM_STEP_NOTHING;
	if (time_before(jiffies, path->retry_at)) {
		*delay = path->retry_at - jiffies;
		return HCOMM_STEP_WAIT;
	}
	if (!session->active)
		return HCOMM_STEP_POKE;
	if (hcomm_fence_connect(&session->fence, path->index, epoch))
		return HCOMM_STEP_NOTHING;
	path->epoch = *epoch;
	path->deadline = jiffies + hcomm_attempt_time(path->attempt);
	hcomm_path_move(&path->state, HCOMM_PATH_CONNECTING);
	return HCOMM_STEP_SMALL;
}

static bool hcomm_path_fatal(struct hcomm_path *path)
{
	struct hcomm_conn *conn;
	unsigned int kind;
	bool fatal = false;

	rcu_read_lock();
	for (kind = 0; kind < 2; kind++) {
		conn = rcu_dereference(path->conn[kind]);
		if (conn && READ_ONCE(conn->fatal))
			fatal = true;
	}
	rcu_read_unlock();
	return fatal;
}

static void hcomm_path_run(struct work_struct *work)
{
	struct hcomm_path *path = container_of(to_delayed_work(work),
					       struct hcomm_path, work);
	struct hcomm_session *session = path->session;
	enum hcomm_path_step step;
	unsigned long delay = 0;
	u32 epoch;

	if (hcomm_path_fatal(path))
		hcomm_path_error(path, -EIO);
	if (READ_ONCE(path->poke_over) ||
	    READ_ONCE(session->state) != HCOMM_SESSION_NEW)
		hcomm_poke_end(path);
	for (;;) {
		spin_lock_bh(&session->lock);
		step = hcomm_path_step(path, &epoch, &delay);
		spin_unlock_bh(&session->lock);
		if (step != HCOMM_STEP_TEARDOWN)
			break;
		hcomm_path_teardown(path);
	}

	switch (step) {
	case HCOMM_STEP_SMALL:
		hcomm_path_connect(path, HCOMM_QP_SMALL, epoch);
		delay = hcomm_attempt_time(0);
		break;
	case HCOMM_STEP_BULK:
		hcomm_path_connect(path, HCOMM_QP_BULK, epoch);
		delay = hcomm_attempt_time(0);
		break;
	case HCOMM_STEP_POKE:
		hcomm_path_poke(path);
		delay = HCOMM_RETRY_LEAST;
		break;
	default:
		break;
	}
	/* A kick that came meanwhile is pending already and not postponed. */
	if (delay)
		queue_delayed_work(hcomm_teardown_wq, &path->work, delay);
}

void hcomm_path_init(struct hcomm_path *path, struct hcomm_session *session)
{
	path->session = session;
	path->index = 0;
	path->state = HCOMM_PATH_NEW;
	path->retry_at = jiffies;
	spin_lock_init(&path->sched_lock);
	hcomm_sched_init(&path->sched, HCOMM_STRIPE_MAX);
	INIT_LIST_HEAD(&path->starved);
	INIT_DELAYED_WORK(&path->work, hcomm_path_run);
}

/* The session is off every list: nothing makes a new connection. */
void hcomm_path_end(struct hcomm_path *path, int error)
{
	struct hcomm_session *session = path->session;

	spin_lock_bh(&session->lock);
	hcomm_path_lost(path, HCOMM_PATH_CLOSING, error);
	spin_unlock_bh(&session->lock);
	cancel_delayed_work_sync(&path->work);
	hcomm_poke_end(path);
	hcomm_path_teardown(path);
	/* Events of the queue pairs may have kicked it again. */
	cancel_delayed_work_sync(&path->work);
}

/* ----------------------------------------------- who posts next */

static u64 hcomm_path_cost(struct hcomm_sched_queue *queue, void *arg)
{
	return container_of(queue, struct hcomm_stream, queue)->cost;
}

void hcomm_path_pump(struct hcomm_path *path)
{
	struct hcomm_sched_queue *queue;
	struct hcomm_stream *stream;

	spin_lock_bh(&path->sched_lock);
	if (path->pumping) {
		path->pump_again = true;
		spin_unlock_bh(&path->sched_lock);
		return;
	}
	path->pumping = true;
	while (READ_ONCE(path->clear)) {
		path->pump_again = false;
		queue = hcomm_sched_next(&path->sched, hcomm_path_cost, NULL);
		if (!queue)
			break;
		stream = container_of(queue, struct hcomm_stream, queue);
		hcomm_stream_get(stream);
		spin_unlock_bh(&path->sched_lock);
		if (!hcomm_stream_post_bulk(stream, path)) {
			hcomm_stream_put(stream);
			spin_lock_bh(&path->sched_lock);
			if (!path->pump_again)
				break;
			continue;
		}
		hcomm_stream_put(stream);
		spin_lock_bh(&path->sched_lock);
	}
	path->pumping = false;
	spin_unlock_bh(&path->sched_lock);
}

void hcomm_path_feed(struct hcomm_path *path)
{
	struct hcomm_stream *stream;
	unsigned int count = 0;
	struct list_head *at;

	hcomm_session_push(path->session);
	spin_lock_bh(&path->sched_lock);
	list_for_each(at, &path->starved)
		count++;
	while (count-- && !list_empty(&path->starved)) {
		stream = list_first_entry(&path->starved, struct hcomm_stream,
					  starved_node);
		/* The list's reference becomes ours. */
		list_del_init(&stream->starved_node);
		spin_unlock_bh(&path->sched_lock);
		hcomm_stream_kick(stream);
		hcomm_stream_put(stream);
		spin_lock_bh(&path->sched_lock);
	}
	spin_unlock_bh(&path->sched_lock);
}
