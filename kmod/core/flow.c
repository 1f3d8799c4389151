// SPDX-License-Identifier: GPL-2.0
/*
 * Sequence, parts, order and replay of one flow
 *
 * Owns the bitmaps of parts and nothing else: storage, locks and posting are
 * the caller's (flow.h says which).  fence.c decides when a lost path's parts
 * may go again; the session's driver calls everything else.
 */
#include "flow.h"

void hcomm_flow_init(struct hcomm_flow *flow, const struct hcomm_flow_ops *ops,
		     struct hcomm_flow_slot *slots, u32 window,
		     struct hcomm_flow_get *gets)
{
	memset(flow, 0, sizeof(*flow));
	INIT_LIST_HEAD(&flow->node);
	INIT_LIST_HEAD(&flow->tx.open);
	INIT_LIST_HEAD(&flow->tx.gets_open);
	INIT_LIST_HEAD(&flow->tx.replies);
	INIT_LIST_HEAD(&flow->tx.todo[HCOMM_QP_SMALL]);
	INIT_LIST_HEAD(&flow->tx.todo[HCOMM_QP_BULK]);
	flow->ops = ops;
	flow->tx.window = window;
	flow->tx.gets = gets;
	flow->rx.slots = slots;
	flow->rx.mask = window - 1;
	flow->rx.cap = U64_MAX;
}

void hcomm_flow_gets(struct hcomm_flow *flow, struct hcomm_flow_get *gets)
{
	flow->tx.gets = gets;
}

static struct hcomm_flow_get *get_slot(const struct hcomm_flow *flow,
				       u64 number)
{
	return &flow->tx.gets[number % HCOMM_FLOW_GETS];
}

static void op_init(struct hcomm_flow_op *op, u8 kind, u8 qp,
		    unsigned int nparts)
{
	INIT_LIST_HEAD(&op->node);
	INIT_LIST_HEAD(&op->todo);
	op->seq = 0;
	op->number = 0;
	op->unposted = nparts ? hcomm_mask(nparts) : 0;
	op->posted = 0;
	op->doubt = 0;
	op->placed = 0;
	op->status = 0;
	op->kind = kind;
	op->qp = qp;
	op->nparts = nparts;
	op->acked = false;
	op->answered = false;
	op->voided = false;
	op->replayed = false;
}

/* The peer has parts @bits of @op. */
static void op_settle(struct hcomm_flow_op *op, u64 bits)
{
	op->unposted &= ~bits;
	op->posted &= ~bits;
	op->doubt &= ~bits;
	op->placed |= bits;
	if (!op->unposted)
		list_del_init(&op->todo);
}

/*
 * The peer cannot have parts that were never posted.  Parts that returned from
 * a lost path it may yet turn out to have: when its member died between, the
 * report did not mention the flow, and what it said before can come in late
 * over another path.
 */
static bool op_impossible(const struct hcomm_flow_op *op, u64 bits)
{
	return (op->unposted & bits) && !op->replayed;
}

/* ---- sender ---- */

bool hcomm_flow_tx_room(const struct hcomm_flow *flow, u8 kind)
{
	const struct hcomm_flow_tx *tx = &flow->tx;

	if (tx->next - tx->una >= tx->window)
		return false;
	return kind != HCOMM_FLOW_GET ||
	       (tx->gets && tx->get_next - tx->get_floor < HCOMM_FLOW_GETS);
}

int hcomm_flow_tx_admit(struct hcomm_flow *flow, struct hcomm_flow_op *op,
			u8 kind, u8 qp, unsigned int nparts)
{
	struct hcomm_flow_tx *tx = &flow->tx;
	struct hcomm_flow_get *get;

	if (!nparts || nparts > HCOMM_WIRE_PARTS)
		return -EINVAL;
	if (!hcomm_flow_tx_room(flow, kind))
		return -EAGAIN;
	op_init(op, kind, qp, nparts);
	op->seq = tx->next++;
	if (kind == HCOMM_FLOW_GET) {
		op->number = tx->get_next++;
		get = get_slot(flow, op->number);
		memset(get, 0, sizeof(*get));
		get->op = op;
	}
	list_add_tail(&op->node, &tx->open);
	list_add_tail(&op->todo, &tx->todo[qp]);
	return 0;
}

bool hcomm_flow_tx_mark(struct hcomm_flow *flow, struct hcomm_flow_op *op)
{
	struct hcomm_flow_tx *tx = &flow->tx;

	if (tx->una == tx->next)
		return false;
	op_init(op, HCOMM_FLOW_MARK, HCOMM_QP_SMALL, 0);
	op->seq = tx->next;
	list_add_tail(&op->node, &tx->open);
	return true;
}

bool hcomm_flow_tx_reply(struct hcomm_flow *flow, struct hcomm_flow_op *op,
			 u64 seq, u64 number, u8 qp, unsigned int nparts)
{
	struct hcomm_flow_tx *tx = &flow->tx;
	struct hcomm_flow_op *later;
	struct list_head *at = &tx->replies;

	if (number < tx->reply_floor)
		return false;
	op_init(op, HCOMM_FLOW_REPLY, qp, nparts);
	op->seq = seq;
	op->number = number;
	list_for_each_entry(later, &tx->replies, node) {
		if (later->number == number)
			return false;
		if (later->number > number) {
			at = &later->node;
			break;
		}
	}
	list_add_tail(&op->node, at);
	list_add_tail(&op->todo, &tx->todo[qp]);
	tx->reply_next = max(tx->reply_next, number + 1);
	return true;
}

struct hcomm_flow_op *hcomm_flow_tx_peek(struct hcomm_flow *flow,
					 unsigned int path, u8 qp,
					 unsigned int *part)
{
	struct list_head *todo = &flow->tx.todo[qp];
	struct hcomm_flow_op *op;

	if (list_empty(todo) || (flow->tx.blocked & BIT(path)))
		return NULL;
	op = list_first_entry(todo, struct hcomm_flow_op, todo);
	*part = __ffs64(op->unposted);
	return op;
}

void hcomm_flow_tx_posted(struct hcomm_flow_op *op, unsigned int part,
			  unsigned int path)
{
	u64 bit = BIT_ULL(part);

	op->unposted &= ~bit;
	op->posted |= bit;
	op->path[part] = path;
	if (!op->unposted)
		list_del_init(&op->todo);
}

/* Parts @bits, in whatever state, are to be posted (again), before others. */
static void op_requeue(struct hcomm_flow_op *op, u64 bits,
		       struct list_head *todo)
{
	if (!op->unposted)
		list_add_tail(&op->todo, todo);
	op->posted &= ~bits;
	op->doubt &= ~bits;
	op->unposted |= bits;
}

void hcomm_flow_tx_unpost(struct hcomm_flow *flow, struct hcomm_flow_op *op,
			  unsigned int part)
{
	struct list_head again;

	INIT_LIST_HEAD(&again);
	op_requeue(op, BIT_ULL(part) & op->posted, &again);
	list_splice_init(&again, &flow->tx.todo[op->qp]);
}

bool hcomm_flow_tx_untouched(const struct hcomm_flow_op *op)
{
	return !op->replayed && !(op->posted | op->doubt | op->placed);
}

bool hcomm_flow_tx_getting(const struct hcomm_flow *flow)
{
	const struct hcomm_flow_op *op;

	if (!list_empty(&flow->tx.gets_open))
		return true;
	list_for_each_entry(op, &flow->tx.open, node)
		if (op->kind == HCOMM_FLOW_GET && !op->answered &&
		    !hcomm_flow_tx_untouched(op))
			return true;
	return false;
}

/* Get @number needs no more of the peer: moves the floor. */
static void get_finish(struct hcomm_flow *flow, u64 number)
{
	struct hcomm_flow_tx *tx = &flow->tx;
	struct hcomm_flow_get *get = get_slot(flow, number);

	get->finished = true;
	get->op = NULL;
	while (tx->get_floor < tx->get_next &&
	       get_slot(flow, tx->get_floor)->finished)
		tx->get_floor++;
}

int hcomm_flow_tx_void(struct hcomm_flow *flow, struct hcomm_flow_op *op,
		       int status)
{
	if (op->kind == HCOMM_FLOW_REPLY || op->kind == HCOMM_FLOW_MARK)
		return -EINVAL;
	if (op->acked || !hcomm_flow_tx_untouched(op))
		return -EBUSY;
	if (op->kind == HCOMM_FLOW_GET) {
		op->answered = true;
		get_finish(flow, op->number);
	}
	op->kind = HCOMM_FLOW_OP;
	op->voided = true;
	op->status = status;
	op->nparts = 1;
	op->unposted = 1;
	op->qp = HCOMM_QP_SMALL;
	list_del_init(&op->todo);
	list_add(&op->todo, &flow->tx.todo[HCOMM_QP_SMALL]);
	return 0;
}

static int tx_ack(struct hcomm_flow *flow, u64 ack, struct list_head *done)
{
	struct hcomm_flow_tx *tx = &flow->tx;
	struct hcomm_flow_op *op, *next;

	if (ack <= tx->una)
		return 0;
	if (ack > tx->next)
		return -EPROTO;
	list_for_each_entry(op, &tx->open, node) {
		if (op->seq >= ack)
			break;
		if (op_impossible(op, U64_MAX))
			return -EPROTO;
	}
	tx->una = ack;
	list_for_each_entry_safe(op, next, &tx->open, node) {
		if (op->kind == HCOMM_FLOW_MARK ? op->seq > ack : op->seq >= ack)
			break;
		op->acked = true;
		if (op->kind != HCOMM_FLOW_MARK)
			op_settle(op, hcomm_mask(op->nparts));
		if (op->kind == HCOMM_FLOW_GET && !op->answered)
			list_move_tail(&op->node, &tx->gets_open);
		else
			list_move_tail(&op->node, done);
	}
	return 0;
}

/* The 64-bit value near @base whose low half is @low; older ones wrap below. */
static u64 expand(u64 base, u32 low)
{
	return base + (s64)(s32)(low - (u32)base);
}

int hcomm_flow_tx_ack(struct hcomm_flow *flow, u32 ack, struct list_head *done)
{
	s32 ahead = (s32)(ack - (u32)flow->tx.una);

	if (ahead <= 0)
		return 0;
	return tx_ack(flow, flow->tx.una + ahead, done);
}

int hcomm_flow_tx_nack(struct hcomm_flow *flow, u64 seq, int status)
{
	struct hcomm_flow_op *op;

	list_for_each_entry(op, &flow->tx.open, node) {
		if (op->seq != seq || op->kind != HCOMM_FLOW_OP)
			continue;
		if (!op->status)
			op->status = status;
		return 0;
	}
	return -EPROTO;
}

static int tx_floor(struct hcomm_flow *flow, u64 floor, struct list_head *done)
{
	struct hcomm_flow_tx *tx = &flow->tx;
	struct hcomm_flow_op *op, *next;

	if (floor <= tx->reply_floor)
		return 0;
	list_for_each_entry(op, &tx->replies, node) {
		if (op->number >= floor)
			break;
		if (op_impossible(op, U64_MAX))
			return -EPROTO;
	}
	tx->reply_floor = floor;
	/* gets voided before they were sent leave holes */
	tx->reply_next = max(tx->reply_next, floor);
	list_for_each_entry_safe(op, next, &tx->replies, node) {
		if (op->number >= floor)
			break;
		op_settle(op, hcomm_mask(op->nparts));
		list_move_tail(&op->node, done);
	}
	return 0;
}

int hcomm_flow_tx_floor(struct hcomm_flow *flow, u32 floor,
			struct list_head *done)
{
	s32 ahead = (s32)(floor - (u32)flow->tx.reply_floor);

	if (ahead <= 0)
		return 0;
	return tx_floor(flow, flow->tx.reply_floor + ahead, done);
}

/* ---- receiver ---- */

static unsigned int hdr_parts(const struct hcomm_wire_hdr *h)
{
	return h->type == HCOMM_WIRE_PART || h->type == HCOMM_WIRE_GET_PART ?
	       h->parts : 1;
}

static bool slot_full(const struct hcomm_flow_slot *slot)
{
	return slot->nparts && slot->placed == hcomm_mask(slot->nparts);
}

enum hcomm_flow_verdict hcomm_flow_rx_check(const struct hcomm_flow *flow,
					    const struct hcomm_wire_hdr *h)
{
	const struct hcomm_flow_rx *rx = &flow->rx;
	const struct hcomm_flow_slot *slot = &rx->slots[h->seq & rx->mask];

	if (h->seq < rx->next)
		return HCOMM_RX_DUPLICATE;
	if (h->seq - hcomm_flow_rx_ack(flow) > rx->mask)
		return HCOMM_RX_OUT_OF_WINDOW;
	if (!slot->nparts)
		return HCOMM_RX_NEW;
	if (slot->nparts != hdr_parts(h) || slot->type != h->type ||
	    slot->flags != h->flags || slot->sem != h->sem ||
	    slot->delta != h->delta || slot->aux != h->aux)
		return HCOMM_RX_INCONSISTENT;
	if (slot->placed & BIT_ULL(h->part))
		return HCOMM_RX_DUPLICATE;
	return HCOMM_RX_NEW;
}

/* Retires what is placed from `next` on, delivering in order. */
static void rx_advance(struct hcomm_flow *flow)
{
	struct hcomm_flow_rx *rx = &flow->rx;
	struct hcomm_flow_slot *slot = &rx->slots[rx->next & rx->mask];
	struct hcomm_flow_slot due;
	u64 seq;

	while (slot_full(slot)) {
		due = *slot;
		memset(slot, 0, sizeof(*slot));
		seq = rx->next++;
		if (!due.delivered)
			flow->ops->deliver(flow, seq, &due);
		slot = &rx->slots[rx->next & rx->mask];
	}
}

enum hcomm_flow_verdict hcomm_flow_rx_place(struct hcomm_flow *flow,
					    const struct hcomm_wire_hdr *h,
					    void *cookie)
{
	enum hcomm_flow_verdict verdict = hcomm_flow_rx_check(flow, h);
	struct hcomm_flow_rx *rx = &flow->rx;
	struct hcomm_flow_slot *slot = &rx->slots[h->seq & rx->mask];

	if (verdict != HCOMM_RX_NEW)
		return verdict;
	if (!slot->nparts) {
		slot->nparts = hdr_parts(h);
		slot->type = h->type;
		slot->flags = h->flags;
		slot->sem = h->sem;
		slot->delta = h->delta;
		slot->aux = h->aux;
		slot->cookie = cookie;
	}
	slot->placed |= BIT_ULL(h->part);
	rx->top = max(rx->top, h->seq + 1);
	if (slot_full(slot) && (h->flags & HCOMM_WIRE_F_UNORDERED)) {
		slot->delivered = true;
		flow->ops->deliver(flow, h->seq, slot);
	}
	if (h->seq == rx->next)
		rx_advance(flow);
	return HCOMM_RX_NEW;
}

enum hcomm_flow_verdict hcomm_flow_reply_check(const struct hcomm_flow *flow,
					       const struct hcomm_wire_hdr *h)
{
	const struct hcomm_flow_tx *tx = &flow->tx;
	const struct hcomm_flow_get *get;
	s32 ahead = (s32)(h->sem - (u32)tx->get_floor);
	u64 number;

	if (ahead < 0)
		return HCOMM_RX_DUPLICATE;
	number = tx->get_floor + ahead;
	if (number >= tx->get_next)
		return HCOMM_RX_OUT_OF_WINDOW;
	get = get_slot(flow, number);
	if (get->finished)
		return HCOMM_RX_DUPLICATE;
	if (get->op->seq != h->seq || op_impossible(get->op, U64_MAX))
		return HCOMM_RX_INCONSISTENT;
	if (!get->nparts)
		return HCOMM_RX_NEW;
	if (get->nparts != hdr_parts(h))
		return HCOMM_RX_INCONSISTENT;
	if (get->placed & BIT_ULL(h->part))
		return HCOMM_RX_DUPLICATE;
	return HCOMM_RX_NEW;
}

enum hcomm_flow_verdict hcomm_flow_reply_place(struct hcomm_flow *flow,
					       const struct hcomm_wire_hdr *h,
					       struct list_head *done)
{
	enum hcomm_flow_verdict verdict = hcomm_flow_reply_check(flow, h);
	struct hcomm_flow_get *get;
	struct hcomm_flow_op *op;
	u64 number;

	if (verdict != HCOMM_RX_NEW)
		return verdict;
	number = expand(flow->tx.get_floor, h->sem);
	get = get_slot(flow, number);
	op = get->op;
	op_settle(op, 1);
	get->nparts = hdr_parts(h);
	get->placed |= BIT_ULL(h->part);
	if (h->type == HCOMM_WIRE_GET_ERR && !op->status)
		op->status = -(int)h->aux;
	if (get->placed != hcomm_mask(get->nparts))
		return HCOMM_RX_NEW;
	op->answered = true;
	get_finish(flow, number);
	if (op->acked)
		list_move_tail(&op->node, done);
	return HCOMM_RX_NEW;
}

struct hcomm_flow_op *hcomm_flow_reply_op(const struct hcomm_flow *flow,
					  const struct hcomm_wire_hdr *h)
{
	u64 number = expand(flow->tx.get_floor, h->sem);

	if (number < flow->tx.get_floor || number >= flow->tx.get_next)
		return NULL;
	return get_slot(flow, number)->op;
}

void hcomm_flow_rx_nack(struct hcomm_flow *flow, u64 seq, u64 ctl_seq)
{
	struct hcomm_flow_rx *rx = &flow->rx;

	rx->cap = min(rx->cap, seq);
	rx->cap_ctl = max(rx->cap_ctl, ctl_seq);
}

void hcomm_flow_rx_ctl_acked(struct hcomm_flow *flow, u64 ctl_una)
{
	struct hcomm_flow_rx *rx = &flow->rx;

	if (rx->cap != U64_MAX && ctl_una > rx->cap_ctl)
		rx->cap = U64_MAX;
}

u64 hcomm_flow_reply_number(const struct hcomm_flow *flow, u32 low)
{
	return expand(flow->tx.reply_next, low);
}

u64 hcomm_flow_rx_ack(const struct hcomm_flow *flow)
{
	return min(flow->rx.next, flow->rx.cap);
}

enum hcomm_flow_ack hcomm_flow_ack_due(const struct hcomm_flow *flow)
{
	u64 n = hcomm_flow_rx_ack(flow) - flow->rx.acked +
		flow->tx.get_floor - flow->tx.floor_told;
	u32 now = min_t(u32, HCOMM_FLOW_ACK_OPS, (flow->rx.mask + 2) / 2);

	if (!n)
		return HCOMM_ACK_NONE;
	return n >= now ? HCOMM_ACK_NOW : HCOMM_ACK_LATER;
}

void hcomm_flow_stamp(struct hcomm_flow *flow, struct hcomm_wire_hdr *h)
{
	h->group = flow->peer_group;
	h->src = flow->src;
	h->dst = flow->dst;
	flow->rx.acked = hcomm_flow_rx_ack(flow);
	h->ack = (u32)flow->rx.acked;
	if (h->type == HCOMM_WIRE_ACK || h->type == HCOMM_WIRE_GET_REQ) {
		flow->tx.floor_told = flow->tx.get_floor;
		h->aux = (u32)flow->tx.floor_told;
	}
}

/* ---- path loss, death ---- */

/* The parts among @bits that went over @path. */
static u64 op_parts_on(const struct hcomm_flow_op *op, u64 bits,
		       unsigned int path)
{
	unsigned int part;
	u64 on = 0;

	while (bits) {
		part = __ffs64(bits);
		bits &= bits - 1;
		if (op->path[part] == path)
			on |= BIT_ULL(part);
	}
	return on;
}

static void doubt_list(struct list_head *ops, unsigned int path)
{
	struct hcomm_flow_op *op;
	u64 bits;

	list_for_each_entry(op, ops, node) {
		bits = op_parts_on(op, op->posted, path);
		op->posted &= ~bits;
		op->doubt |= bits;
		op->replayed |= bits != 0;
	}
}

void hcomm_flow_path_lost(struct hcomm_flow *flow, unsigned int path)
{
	flow->tx.blocked |= BIT(path);
	doubt_list(&flow->tx.open, path);
	doubt_list(&flow->tx.replies, path);
}

static void release_list(struct hcomm_flow *flow, struct list_head *ops,
			 unsigned int path)
{
	struct list_head again[2];
	struct hcomm_flow_op *op;
	unsigned int qp;
	u64 bits;

	for (qp = 0; qp < 2; qp++)
		INIT_LIST_HEAD(&again[qp]);
	list_for_each_entry(op, ops, node) {
		bits = op_parts_on(op, op->doubt, path);
		if (bits)
			op_requeue(op, bits, &again[op->qp]);
	}
	for (qp = 0; qp < 2; qp++)
		list_splice_init(&again[qp], &flow->tx.todo[qp]);
}

bool hcomm_flow_path_fenced(struct hcomm_flow *flow, unsigned int path)
{
	struct hcomm_flow_tx *tx = &flow->tx;

	tx->blocked &= ~BIT(path);
	release_list(flow, &tx->open, path);
	release_list(flow, &tx->replies, path);
	return !list_empty(&tx->todo[HCOMM_QP_SMALL]) ||
	       !list_empty(&tx->todo[HCOMM_QP_BULK]);
}

/*
 * Applies @n pairs to the ascending list @ops; ids below @low are history, ids
 * from @high on were never sent.
 */
static int pairs_apply(struct list_head *ops, bool replies, u64 low, u64 high,
		       const u8 *pairs, unsigned int n)
{
	struct hcomm_flow_op *op = list_first_entry(ops, struct hcomm_flow_op,
						    node);
	u64 id, at, bits;

	for (; n; n--, pairs += 16) {
		id = hcomm_get_le64(pairs);
		if (id < low)
			continue;
		if (id >= high)
			return -EPROTO;
		for (; &op->node != ops; op = list_next_entry(op, node)) {
			at = replies ? op->number : op->seq;
			if (at < id || op->kind == HCOMM_FLOW_MARK)
				continue;
			if (at > id)
				break;
			bits = hcomm_get_le64(pairs + 8) &
			       hcomm_mask(op->nparts);
			if (op_impossible(op, bits))
				return -EPROTO;
			op_settle(op, bits);
			break;
		}
	}
	return 0;
}

int hcomm_flow_report_apply(struct hcomm_flow *flow, u64 ack, u64 floor,
			    const u8 *pairs, unsigned int nops,
			    unsigned int ngets, struct list_head *done)
{
	struct hcomm_flow_tx *tx = &flow->tx;
	int ret;

	ret = tx_ack(flow, ack, done);
	if (ret)
		return ret;
	ret = tx_floor(flow, floor, done);
	if (ret)
		return ret;
	ret = pairs_apply(&tx->open, false, tx->una, tx->next, pairs, nops);
	if (ret)
		return ret;
	return pairs_apply(&tx->replies, true, tx->reply_floor, tx->reply_next,
			   pairs + 16 * nops, ngets);
}

bool hcomm_flow_report_empty(const struct hcomm_flow *flow)
{
	return flow->killed || (!flow->rx.top && !flow->tx.get_next);
}

static void put_pair(u8 *pairs, unsigned int n, u64 id, u64 bits)
{
	hcomm_put_le64(pairs + 16 * n, id);
	hcomm_put_le64(pairs + 16 * n + 8, bits);
}

bool hcomm_flow_report_build(const struct hcomm_flow *flow,
			     struct hcomm_flow_cursor *at, u8 *pairs,
			     unsigned int room, unsigned int *nops,
			     unsigned int *ngets)
{
	const struct hcomm_flow_rx *rx = &flow->rx;
	const struct hcomm_flow_tx *tx = &flow->tx;
	unsigned int n = 0;
	u64 bits;

	at->seq = max(at->seq, hcomm_flow_rx_ack(flow));
	at->get = max(at->get, tx->get_floor);
	for (; at->seq < rx->top && n < room; at->seq++) {
		bits = at->seq < rx->next ? U64_MAX :
		       rx->slots[at->seq & rx->mask].placed;
		if (bits)
			put_pair(pairs, n++, at->seq, bits);
	}
	*nops = n;
	for (; at->get < tx->get_next && n < room; at->get++) {
		bits = get_slot(flow, at->get)->placed;
		if (bits)
			put_pair(pairs, n++, at->get, bits);
	}
	*ngets = n - *nops;
	return at->seq >= rx->top && at->get >= tx->get_next;
}

static void kill_list(struct list_head *ops, int status, struct list_head *done)
{
	struct hcomm_flow_op *op, *next;

	list_for_each_entry_safe(op, next, ops, node) {
		if (!op->status)
			op->status = status;
		list_del_init(&op->todo);
		list_move_tail(&op->node, done);
	}
}

void hcomm_flow_kill(struct hcomm_flow *flow, int status,
		     struct list_head *done)
{
	struct hcomm_flow_tx *tx = &flow->tx;

	kill_list(&tx->open, status, done);
	kill_list(&tx->gets_open, status, done);
	kill_list(&tx->replies, status, done);
	tx->una = tx->next;
	tx->get_floor = tx->get_next;
	tx->floor_told = tx->get_floor;
	tx->reply_floor = tx->reply_next;
	/* What a floor says of replies that the peer still has is not so. */
	flow->killed = true;
}
