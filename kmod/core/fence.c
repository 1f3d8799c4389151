// SPDX-License-Identifier: GPL-2.0
/*
 * Epochs of paths and the reports that end them
 *
 * Owns, for each path of a session, which connections are dead and drained on
 * this side, which of them the peer knows of and which the peer reported on.
 * The session's driver calls it under the session lock; flows are reached under
 * their own lock through the hooks.  It outlives every path and flow of the
 * session.
 */
#include "fence.h"

/* The last epoch that is over: live connections are not. */
static u32 lost_epoch(const struct hcomm_fence_path *fp)
{
	return fp->live ? fp->epoch - 1 : fp->epoch;
}

/* We owe the peer a report that can be made now. */
static bool report_owed(const struct hcomm_fence_path *fp)
{
	u32 lost = lost_epoch(fp);

	return fp->drained >= lost && fp->told < lost;
}

static void flow_lock(struct hcomm_fence *fence, struct hcomm_flow *flow)
{
	if (fence->ops->lock)
		fence->ops->lock(fence, flow);
}

static void flow_unlock(struct hcomm_fence *fence, struct hcomm_flow *flow)
{
	if (fence->ops->unlock)
		fence->ops->unlock(fence, flow);
}

void hcomm_fence_init(struct hcomm_fence *fence,
		      const struct hcomm_fence_ops *ops, u32 chunk_bytes)
{
	memset(fence, 0, sizeof(*fence));
	INIT_LIST_HEAD(&fence->flows);
	fence->ops = ops;
	fence->chunk_bytes = chunk_bytes;
}

void hcomm_fence_flow_add(struct hcomm_fence *fence, struct hcomm_flow *flow)
{
	list_add_tail(&flow->node, &fence->flows);
}

/* The flow told after @flow, or NULL. */
static struct hcomm_flow *flow_after(struct hcomm_fence *fence,
				     struct hcomm_flow *flow)
{
	if (list_is_last(&flow->node, &fence->flows))
		return NULL;
	return list_next_entry(flow, node);
}

static void cursor_move(struct hcomm_fence_path *fp, struct hcomm_flow *flow)
{
	fp->flow = flow;
	fp->at.seq = 0;
	fp->at.get = 0;
}

void hcomm_fence_flow_del(struct hcomm_fence *fence, struct hcomm_flow *flow)
{
	struct hcomm_fence_path *fp;

	for (fp = fence->path; fp < fence->path + HCOMM_PATHS; fp++)
		if (fp->flow == flow)
			cursor_move(fp, flow_after(fence, flow));
	list_del_init(&flow->node);
}

int hcomm_fence_connect(struct hcomm_fence *fence, unsigned int path,
			u32 *epoch)
{
	struct hcomm_fence_path *fp = &fence->path[path];

	if (fp->live || fp->drained < fp->epoch)
		return -EBUSY;
	if (fp->epoch == U32_MAX)
		return -EOVERFLOW;
	*epoch = ++fp->epoch;
	fp->live = true;
	return 0;
}

int hcomm_fence_accept(struct hcomm_fence *fence, unsigned int path, u32 epoch,
		       struct hcomm_fence_result *result)
{
	if (epoch <= fence->path[path].epoch)
		return -ESTALE;
	return hcomm_fence_accept_first(fence, path, epoch, result);
}

int hcomm_fence_accept_first(struct hcomm_fence *fence, unsigned int path,
			     u32 epoch, struct hcomm_fence_result *result)
{
	struct hcomm_fence_path *fp = &fence->path[path];

	if (fp->live) {
		result->lost |= BIT(path);
		return -EBUSY;
	}
	if (fp->drained < fp->epoch)
		return -EBUSY;
	fp->epoch = epoch;
	fp->drained = epoch - 1;
	fp->live = true;
	return 0;
}

/*
 * Both drains are over when ours is and the peer reported: nothing of the lost
 * connections can land any more, what is not placed may go again.
 */
static void try_release(struct hcomm_fence *fence, unsigned int path,
			struct hcomm_fence_result *result)
{
	struct hcomm_fence_path *fp = &fence->path[path];
	u32 lost = lost_epoch(fp);
	struct hcomm_flow *flow;
	bool again;

	if (fp->fenced < lost && fp->drained >= lost && fp->heard >= lost) {
		fp->fenced = lost;
		list_for_each_entry(flow, &fence->flows, node) {
			flow_lock(fence, flow);
			again = hcomm_flow_path_fenced(flow, path);
			flow_unlock(fence, flow);
			if (again)
				fence->ops->kick(fence, flow);
		}
	}
	if (hcomm_fence_may_post(fence, path))
		result->cleared |= BIT(path);
}

void hcomm_fence_connected(struct hcomm_fence *fence, unsigned int path,
			   struct hcomm_fence_result *result)
{
	struct hcomm_fence_path *fp = &fence->path[path];

	if (!fp->live)
		return;
	fp->connected = true;
	try_release(fence, path, result);
	result->send |= hcomm_fence_wants(fence, path);
}

void hcomm_fence_lost(struct hcomm_fence *fence, unsigned int path)
{
	struct hcomm_fence_path *fp = &fence->path[path];
	struct hcomm_fence_path *other;
	struct hcomm_flow *flow;

	if (!fp->live)
		return;
	fp->live = false;
	fp->connected = false;
	fp->reporting = false;
	for (other = fence->path; other < fence->path + HCOMM_PATHS; other++) {
		if (other->reporting && other->via == path)
			other->reporting = false;
		if (other->ack_due && other->ack_via == path)
			other->ack_due = false;
	}
	list_for_each_entry(flow, &fence->flows, node) {
		flow_lock(fence, flow);
		hcomm_flow_path_lost(flow, path);
		flow_unlock(fence, flow);
	}
}

/* True when some connected path could carry a message that is waiting. */
static bool any_wants(const struct hcomm_fence *fence)
{
	unsigned int via;

	for (via = 0; via < HCOMM_PATHS; via++)
		if (hcomm_fence_wants(fence, via))
			return true;
	return false;
}

void hcomm_fence_drained(struct hcomm_fence *fence, unsigned int path,
			 struct hcomm_fence_result *result)
{
	struct hcomm_fence_path *fp = &fence->path[path];

	if (fp->live)
		return;
	fp->drained = fp->epoch;
	try_release(fence, path, result);
	result->send |= any_wants(fence);
}

bool hcomm_fence_may_post(const struct hcomm_fence *fence, unsigned int path)
{
	const struct hcomm_fence_path *fp = &fence->path[path];

	return fp->connected && fp->fenced >= fp->epoch - 1;
}

bool hcomm_fence_pending(const struct hcomm_fence *fence, unsigned int path)
{
	const struct hcomm_fence_path *fp = &fence->path[path];
	u32 lost = lost_epoch(fp);

	return fp->drained < lost || fp->told < lost || fp->fenced < lost;
}

bool hcomm_fence_wants(const struct hcomm_fence *fence, unsigned int via)
{
	const struct hcomm_fence_path *fp;

	if (!fence->path[via].connected)
		return false;
	for (fp = fence->path; fp < fence->path + HCOMM_PATHS; fp++) {
		if (fp->ack_due && fp->ack_via == via)
			return true;
		if (!report_owed(fp))
			continue;
		if (!fp->reporting || (fp->via == via && !fp->told_all))
			return true;
	}
	return false;
}

static void report_begin(struct hcomm_fence *fence, struct hcomm_fence_path *fp,
			 unsigned int via)
{
	struct hcomm_flow *first = NULL;

	if (!list_empty(&fence->flows))
		first = list_first_entry(&fence->flows, struct hcomm_flow,
					 node);
	fp->reporting = true;
	fp->told_all = false;
	fp->via = via;
	fp->report_epoch = lost_epoch(fp);
	fp->attempt++;
	fp->chunk = 0;
	cursor_move(fp, first);
}

static void record_put(u8 *p, const struct hcomm_flow *flow, unsigned int nops,
		       unsigned int ngets)
{
	hcomm_put_le32(p, flow->peer_group);
	hcomm_put_le32(p + 4, flow->dst);
	hcomm_put_le32(p + 8, flow->src);
	hcomm_put_le16(p + 12, nops);
	hcomm_put_le16(p + 14, ngets);
	hcomm_put_le64(p + 16, hcomm_flow_rx_ack(flow));
	hcomm_put_le64(p + 24, flow->tx.get_floor);
}

/* Fills one chunk from the cursor on; returns its bytes. */
static u32 report_fill(struct hcomm_fence *fence, struct hcomm_fence_path *fp,
		       u8 *payload)
{
	const u32 least = HCOMM_FENCE_RECORD + HCOMM_FENCE_PAIR;
	struct hcomm_flow *flow;
	unsigned int nops, ngets;
	bool whole;
	u32 len = 0;
	u32 room;

	while ((flow = fp->flow) && len + least <= fence->chunk_bytes) {
		whole = true;
		flow_lock(fence, flow);
		if (!hcomm_flow_report_empty(flow)) {
			room = fence->chunk_bytes - len - HCOMM_FENCE_RECORD;
			whole = hcomm_flow_report_build(flow, &fp->at,
							payload + len +
							HCOMM_FENCE_RECORD,
							room / HCOMM_FENCE_PAIR,
							&nops, &ngets);
			record_put(payload + len, flow, nops, ngets);
			len += HCOMM_FENCE_RECORD +
			       (nops + ngets) * HCOMM_FENCE_PAIR;
		}
		flow_unlock(fence, flow);
		if (!whole)
			break;
		cursor_move(fp, flow_after(fence, flow));
	}
	return len;
}

static u32 report_chunk(struct hcomm_fence *fence, unsigned int path,
			u16 credits, u8 *buf)
{
	struct hcomm_fence_path *fp = &fence->path[path];
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_FENCED,
		.credits = credits,
		.part = path,
		.generation = fp->report_epoch,
		.aux = fp->attempt,
		.offset = fp->chunk++,
	};

	h.length = report_fill(fence, fp, buf + HCOMM_WIRE_HEADER);
	if (!fp->flow) {
		h.flags = HCOMM_WIRE_F_LAST;
		fp->told_all = true;
	}
	hcomm_wire_encode(&h, buf);
	return HCOMM_WIRE_HEADER + h.length;
}

static u32 fence_ack(struct hcomm_fence_path *fp, unsigned int path,
		     u16 credits, u8 *buf)
{
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_FENCE_ACK,
		.credits = credits,
		.part = path,
		.generation = fp->ack_epoch,
	};

	fp->ack_due = false;
	hcomm_wire_encode(&h, buf);
	return HCOMM_WIRE_HEADER;
}

u32 hcomm_fence_next(struct hcomm_fence *fence, unsigned int via, u16 credits,
		     void *buf)
{
	struct hcomm_fence_path *fp;
	unsigned int path;

	if (!fence->path[via].connected)
		return 0;
	for (path = 0; path < HCOMM_PATHS; path++) {
		fp = &fence->path[path];
		if (fp->ack_due && fp->ack_via == via)
			return fence_ack(fp, path, credits, buf);
		if (!report_owed(fp))
			continue;
		if (!fp->reporting)
			report_begin(fence, fp, via);
		if (fp->via == via && !fp->told_all)
			return report_chunk(fence, path, credits, buf);
	}
	return 0;
}

bool hcomm_fence_record_next(const struct hcomm_wire_msg *m, u32 *pos,
			     struct hcomm_fence_record *r, const u8 **pairs)
{
	const u8 *p = m->payload + *pos;
	u32 bytes;

	if (m->payload_len - *pos < HCOMM_FENCE_RECORD)
		return false;
	r->group = hcomm_get_le32(p);
	r->src = hcomm_get_le32(p + 4);
	r->dst = hcomm_get_le32(p + 8);
	r->nops = hcomm_get_le16(p + 12);
	r->ngets = hcomm_get_le16(p + 14);
	r->ack = hcomm_get_le64(p + 16);
	r->floor = hcomm_get_le64(p + 24);
	bytes = ((u32)r->nops + r->ngets) * HCOMM_FENCE_PAIR;
	if (m->payload_len - *pos - HCOMM_FENCE_RECORD < bytes)
		return false;
	*pairs = p + HCOMM_FENCE_RECORD;
	*pos += HCOMM_FENCE_RECORD + bytes;
	return true;
}

static int records_apply(struct hcomm_fence *fence,
			 const struct hcomm_wire_msg *m, struct list_head *done)
{
	struct hcomm_fence_record r;
	struct hcomm_flow *flow;
	const u8 *pairs;
	u32 pos = 0;
	int ret;

	while (hcomm_fence_record_next(m, &pos, &r, &pairs)) {
		flow = fence->ops->find(fence, r.group, r.src, r.dst);
		if (!flow)
			continue;
		flow_lock(fence, flow);
		ret = hcomm_flow_report_apply(flow, r.ack, r.floor, pairs,
					      r.nops, r.ngets, done);
		flow_unlock(fence, flow);
		if (ret)
			return ret;
	}
	return 0;
}

/*
 * Takes @m as the next chunk of the newest attempt, if it is that.  Chunks of
 * an attempt given up by the peer may still come in; they are true but too few.
 */
static bool chunk_expected(struct hcomm_fence_path *fp,
			   const struct hcomm_wire_hdr *h)
{
	if (!h->offset && (s32)(h->aux - fp->in_attempt) > 0) {
		fp->in_attempt = h->aux;
		fp->in_epoch = h->generation;
		fp->in_chunk = 0;
		fp->in_open = true;
	}
	if (!fp->in_open || h->aux != fp->in_attempt ||
	    h->offset != fp->in_chunk || h->generation != fp->in_epoch)
		return false;
	fp->in_chunk++;
	return true;
}

/* The peer says that epochs up to @epoch are dead: so they are here. */
static void note_epoch(struct hcomm_fence *fence, unsigned int path, u32 epoch,
		       struct hcomm_fence_result *result)
{
	struct hcomm_fence_path *fp = &fence->path[path];
	bool drained = !fp->live && fp->drained == fp->epoch;

	if (epoch < fp->epoch)
		return;
	if (fp->live)
		result->lost |= BIT(path);
	fp->epoch = epoch;
	if (drained)
		fp->drained = epoch;
}

static int receive_report(struct hcomm_fence *fence, unsigned int via,
			  const struct hcomm_wire_msg *m,
			  struct list_head *done,
			  struct hcomm_fence_result *result)
{
	unsigned int path = m->h.part;
	struct hcomm_fence_path *fp = &fence->path[path];
	u32 epoch = m->h.generation;
	int ret;

	if (via == path && epoch >= fp->epoch)
		return -EPROTO;
	note_epoch(fence, path, epoch, result);
	if (!chunk_expected(fp, &m->h))
		return 0;
	ret = records_apply(fence, m, done);
	if (ret)
		return ret;
	if (!(m->h.flags & HCOMM_WIRE_F_LAST))
		return 0;
	fp->in_open = false;
	fp->heard = max(fp->heard, epoch);
	fp->ack_due = true;
	fp->ack_via = via;
	fp->ack_epoch = epoch;
	try_release(fence, path, result);
	return 0;
}

static int receive_ack(struct hcomm_fence *fence,
		       const struct hcomm_wire_msg *m)
{
	struct hcomm_fence_path *fp = &fence->path[m->h.part];
	u32 epoch = m->h.generation;

	if (epoch > fp->drained)
		return -EPROTO;
	fp->told = max(fp->told, epoch);
	if (fp->told >= fp->report_epoch)
		fp->reporting = false;
	return 0;
}

int hcomm_fence_receive(struct hcomm_fence *fence, unsigned int via,
			const struct hcomm_wire_msg *m, struct list_head *done,
			struct hcomm_fence_result *result)
{
	int ret;

	if (m->h.part >= HCOMM_PATHS)
		return -EPROTO;
	if (m->h.type == HCOMM_WIRE_FENCED)
		ret = receive_report(fence, via, m, done, result);
	else
		ret = receive_ack(fence, m);
	result->send |= hcomm_fence_wants(fence, via);
	return ret;
}
