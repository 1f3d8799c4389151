// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The driver around the core, one per side
 *
 * Does what the kernel's session does and nothing cleverer: it moves path
 * states, obeys what the fence returns, posts what the core hands out and gives
 * in what arrives.  Side 0 connects, side 1 accepts.
 */
#include "sim.h"

#define RECEIVES	HCOMM_CREDIT_MIN	/* of each queue pair */

static unsigned int side_of(const struct hcomm_fence *fence)
{
	return fence == &sim.node[1].fence;
}

static void fence_kick(struct hcomm_fence *fence, struct hcomm_flow *f)
{
	node_activate(side_of(fence), flow_index(f));
}

static struct hcomm_flow *fence_find(struct hcomm_fence *fence, u32 group,
				     u32 src, u32 dst)
{
	unsigned int side = side_of(fence);
	struct nflow *nf = &sim.node[side].flow[src % 10];

	if (group != 7 + side || src / 10 != side || dst % 10 != src % 10)
		sim_fail("report names group %u src %u dst %u", group, src,
			 dst);
	return nf->alive ? &nf->f : NULL;
}

/* Catches an access to a flow outside its lock, or twice inside. */
static int locked;

static void fence_lock(struct hcomm_fence *fence, struct hcomm_flow *f)
{
	(void)fence;
	(void)f;
	require(!locked, "flow locked twice");
	locked = 1;
}

static void fence_unlock(struct hcomm_fence *fence, struct hcomm_flow *f)
{
	(void)fence;
	(void)f;
	require(locked, "flow not locked");
	locked = 0;
}

static const struct hcomm_fence_ops fence_ops = {
	.lock	= fence_lock,
	.unlock	= fence_unlock,
	.kick	= fence_kick,
	.find	= fence_find,
};

static const struct hcomm_flow_ops flow_ops = {
	.deliver = app_deliver,
};

/* Starts both halves of a flow at some distance from zero, to see wraps. */
static void flow_base(struct nflow *nf, u64 tx, u64 rx, u64 get, u64 reply)
{
	nf->f.tx.next = tx;
	nf->f.tx.una = tx;
	nf->f.tx.get_next = get;
	nf->f.tx.get_floor = get;
	nf->f.tx.floor_told = get;
	nf->f.tx.reply_next = reply;
	nf->f.tx.reply_floor = reply;
	nf->f.rx.next = rx;
	nf->f.rx.top = rx;
	nf->f.rx.acked = rx;
	nf->last_base = tx;
	nf->announced = rx;
	nf->last_seq = rx;
}

static u64 base_of(unsigned int which)
{
	static const u64 bases[] = { 0, 0xfffffffd, 0x1fffffff8ull, 1000 };

	return bases[(sim.seed >> which) % 4];
}

void node_init(unsigned int side)
{
	struct node *n = &sim.node[side];
	struct nflow *nf;
	unsigned int i, p;

	locked = 0;
	hcomm_fence_init(&n->fence, &fence_ops,
			 HCOMM_FENCE_RECORD + HCOMM_FENCE_PAIR * (1 + rnd(6)));
	hcomm_ctl_init(&n->ctl);
	n->ctl_used = 0;
	for (p = 0; p < sim.npaths; p++) {
		n->path[p].state = HCOMM_PATH_NEW;
		n->path[p].conn = NULL;
		hcomm_sched_init(&n->path[p].sched, HCOMM_STRIPE_MIN);
	}
	for (i = 0; i < sim.nflows; i++) {
		nf = &n->flow[i];
		memset(nf->slots, 0, sizeof(nf->slots));
		memset(nf->gets, 0, sizeof(nf->gets));
		hcomm_flow_init(&nf->f, &flow_ops, nf->slots, sim.window,
				nf->gets);
		nf->f.group = 7 + side;
		nf->f.peer_group = 7 + !side;
		nf->f.src = side * 10 + i;
		nf->f.dst = !side * 10 + i;
		flow_base(nf, base_of(side), base_of(!side), base_of(4 + side),
			  base_of(4 + !side));
		nf->alive = true;
		nf->sum = 0;
		for (p = 0; p < sim.npaths; p++)
			hcomm_sched_queue_init(&nf->queue[p], 1 + i);
		hcomm_fence_flow_add(&n->fence, &nf->f);
	}
}

void node_activate(unsigned int side, unsigned int flow)
{
	struct node *n = &sim.node[side];
	unsigned int p;

	for (p = 0; p < sim.npaths; p++)
		hcomm_sched_activate(&n->path[p].sched,
				     &n->flow[flow].queue[p]);
}

static void complete(unsigned int side, unsigned int flow,
		     struct list_head *done)
{
	struct hcomm_flow_op *op;

	while (!list_empty(done)) {
		op = list_first_entry(done, struct hcomm_flow_op, node);
		list_del_init(&op->node);
		app_done(side, flow, op);
	}
}

/* Ops of any flow: the report may complete several. */
static void complete_any(unsigned int side, struct list_head *done)
{
	struct hcomm_flow_op *op;
	unsigned int i;

	while (!list_empty(done)) {
		op = list_first_entry(done, struct hcomm_flow_op, node);
		list_del_init(&op->node);
		for (i = 0; i < sim.nflows; i++)
			if ((char *)op >= (char *)&sim.app[i] &&
			    (char *)op < (char *)(&sim.app[i] + 1))
				app_done(side, i, op);
	}
}

/* ---- path states ---- */

static void obey(unsigned int side, const struct hcomm_fence_result *r)
{
	struct npath *np;
	unsigned int p, i;

	for (p = 0; p < sim.npaths; p++) {
		np = &sim.node[side].path[p];
		if (r->lost & BIT(p))
			node_lost(side, p);
		if (!(r->cleared & BIT(p)))
			continue;
		hcomm_path_move(&np->state, HCOMM_PATH_UP);
		for (i = 0; i < sim.nflows; i++)
			if (sim.node[side].flow[i].alive)
				hcomm_sched_activate(&np->sched,
						     &sim.node[side].flow[i].queue[p]);
	}
}

static void qps_create(struct conn *c, unsigned int side)
{
	struct npath *np = &sim.node[side].path[c->path];
	unsigned int qp;

	c->side[side].exists = true;
	for (qp = 0; qp < 2; qp++) {
		c->side[side].posted[qp] = RECEIVES;
		hcomm_credit_init(&np->credit[qp], RECEIVES, RECEIVES);
	}
	np->conn = c;
}

bool node_connect(unsigned int path)
{
	struct node *n = &sim.node[0];
	struct npath *np = &n->path[path];
	struct conn *c;
	u32 epoch;

	if (!hcomm_path_move(&np->state, HCOMM_PATH_CONNECTING))
		return false;
	require(!hcomm_fence_connect(&n->fence, path, &epoch),
		"path %u is down and may not be connected", path);
	c = conn_new(path, epoch);
	require(c, "too many connection attempts");
	qps_create(c, 0);
	sim_stats.connections++;
	trace("0: connect path %u epoch %u", path, epoch);
	return true;
}

/* Side 1 is asked for a connection. */
void node_request(struct conn *c)
{
	struct node *n = &sim.node[1];
	struct npath *np = &n->path[c->path];
	struct hcomm_fence_result r = { 0 };
	int ret = hcomm_fence_accept(&n->fence, c->path, c->epoch, &r);

	trace("1: request path %u epoch %u: %d", c->path, c->epoch, ret);
	obey(1, &r);
	if (ret) {
		c->phase = CONN_REJ;
		return;
	}
	require(hcomm_path_move(&np->state, HCOMM_PATH_CONNECTING),
		"accepted in state %s", hcomm_path_state_name(np->state));
	qps_create(c, 1);
	c->phase = CONN_REP;
}

void node_established(struct conn *c, unsigned int side)
{
	struct npath *np = &sim.node[side].path[c->path];
	struct hcomm_fence_result r = { 0 };

	if (np->conn != c || !hcomm_path_move(&np->state, HCOMM_PATH_FENCING))
		return;
	trace("%u: connected path %u epoch %u", side, c->path, c->epoch);
	hcomm_fence_connected(&sim.node[side].fence, c->path, &r);
	obey(side, &r);
}

/* A poster that has not noticed yet asks for parts of the lost path. */
static void late_poster(unsigned int side, unsigned int path)
{
	unsigned int flow, qp, part;

	for (flow = 0; flow < sim.nflows; flow++)
		for (qp = 0; qp < 2; qp++)
			require(!sim.node[side].flow[flow].alive ||
				!hcomm_flow_tx_peek(&sim.node[side].flow[flow].f,
						    path, qp, &part),
				"path %u is lost and gets parts", path);
}

void node_lost(unsigned int side, unsigned int path)
{
	struct node *n = &sim.node[side];
	struct npath *np = &n->path[path];

	if (!hcomm_path_move(&np->state, HCOMM_PATH_DRAINING))
		return;
	sim_stats.losses++;
	trace("%u: lost path %u epoch %u", side, path, np->conn->epoch);
	conn_error(np->conn, side);
	hcomm_sched_reset(&np->sched);
	hcomm_ctl_path_lost(&n->ctl, path);
	hcomm_fence_lost(&n->fence, path);
	late_poster(side, path);
}

/* A time-out, a failed send, a port event. */
bool node_notice(unsigned int side, unsigned int path)
{
	struct npath *np = &sim.node[side].path[path];

	if (!np->conn || !np->conn->broken || np->conn->side[side].err)
		return false;
	node_lost(side, path);
	return true;
}

/* ---- arrivals ---- */

static void ctl_queue(struct node *n, struct hcomm_wire_hdr *h)
{
	struct hcomm_ctl_msg *msg;

	require(n->ctl_used < SIM_CTL, "control messages used up");
	msg = &n->ctl_msg[n->ctl_used++];
	msg->hdr = *h;
	msg->payload_len = 0;
	hcomm_ctl_queue(&n->ctl, msg);
}

static void flow_end(unsigned int side, unsigned int flow)
{
	struct node *n = &sim.node[side];
	struct nflow *nf = &n->flow[flow];
	struct list_head done;
	unsigned int p;

	INIT_LIST_HEAD(&done);
	nf->alive = false;
	for (p = 0; p < sim.npaths; p++)
		hcomm_sched_deactivate(&nf->queue[p]);
	hcomm_fence_flow_del(&n->fence, &nf->f);
	hcomm_flow_kill(&nf->f, -ECONNRESET, &done);
	complete(side, flow, &done);
	app_flow_gone(side, flow);
}

bool node_kill(unsigned int side, unsigned int flow)
{
	struct node *n = &sim.node[side];
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_MEMBER_GONE,
		.group = 7 + !side,
		.src = side * 10 + flow,
	};

	if (!n->flow[flow].alive)
		return false;
	sim_stats.deaths++;
	trace("%u: member %u dies", side, flow);
	flow_end(side, flow);
	ctl_queue(n, &h);
	return true;
}

/* A part of an op, or a request, of the peer. */
static void receive_op(unsigned int side, struct nflow *nf,
		       const struct hcomm_wire_hdr *h)
{
	unsigned int flow = flow_index(&nf->f);
	struct sop *op = app_op(!side, flow, h->seq);
	enum hcomm_flow_verdict v = hcomm_flow_rx_check(&nf->f, h);
	struct hcomm_wire_hdr nack = {
		.type = HCOMM_WIRE_NACK,
		.group = 7 + !side,
		.src = side * 10 + flow,
		.dst = h->src,
		.offset = h->seq,
		.aux = ERANGE,
	};

	if (v == HCOMM_RX_DUPLICATE && sim.twice)
		return;
	require(v == HCOMM_RX_NEW, "op %llu part %u arrives with verdict %d",
		(unsigned long long)h->seq, h->part, v);
	if (op->want_nack && !op->nacked && !op->op.voided) {
		op->nacked = true;
		ctl_queue(&sim.node[side], &nack);
		hcomm_flow_rx_nack(&nf->f, h->seq,
				   sim.node[side].ctl.tx_next - 1);
	}
	if (h->type == HCOMM_WIRE_EAGER && !op->nacked)
		app_eager(side, flow, op);
	if (h->type != HCOMM_WIRE_GET_REQ)
		op->landed |= BIT_ULL(h->part);
	hcomm_flow_rx_place(&nf->f, h, op);
}

static void receive_reply(unsigned int side, struct nflow *nf,
			  const struct hcomm_wire_hdr *h,
			  struct list_head *done)
{
	unsigned int flow = flow_index(&nf->f);
	struct sop *op = app_op(side, flow, h->seq);
	enum hcomm_flow_verdict v = hcomm_flow_reply_check(&nf->f, h);

	if (v == HCOMM_RX_DUPLICATE && sim.twice)
		return;
	require(v == HCOMM_RX_NEW, "reply %llu part %u has verdict %d",
		(unsigned long long)h->seq, h->part, v);
	require(hcomm_flow_reply_op(&nf->f, h) == &op->op,
		"reply of another op");
	if (h->type == HCOMM_WIRE_GET_EAGER)
		app_eager(side, flow, op);
	op->landed |= BIT_ULL(h->part);
	hcomm_flow_reply_place(&nf->f, h, done);
}

static void receive_flow(unsigned int side, const struct hcomm_wire_hdr *h)
{
	unsigned int flow = h->dst % 10;
	struct nflow *nf = &sim.node[side].flow[flow];
	struct list_head done;

	require(h->group == 7 + side && h->dst / 10 == side,
		"message for group %u rank %u", h->group, h->dst);
	if (!nf->alive)
		return;
	INIT_LIST_HEAD(&done);
	require(!hcomm_flow_tx_ack(&nf->f, h->ack, &done), "impossible ack");
	if (h->type == HCOMM_WIRE_GET_REQ || h->type == HCOMM_WIRE_ACK)
		require(!hcomm_flow_tx_floor(&nf->f, h->aux, &done),
			"impossible get floor");
	switch (h->type) {
	case HCOMM_WIRE_ACK:
		break;
	case HCOMM_WIRE_GET_PART:
	case HCOMM_WIRE_GET_EAGER:
	case HCOMM_WIRE_GET_ERR:
		receive_reply(side, nf, h, &done);
		break;
	default:
		receive_op(side, nf, h);
	}
	complete(side, flow, &done);
}

static void receive_control(unsigned int side, const struct hcomm_wire_hdr *h)
{
	struct node *n = &sim.node[side];
	struct nflow *nf = &n->flow[h->src % 10];
	int ret = hcomm_ctl_receive(&n->ctl, h->seq);

	require(ret >= 0, "gap in the control stream");
	if (!ret || !nf->alive)
		return;
	if (h->type == HCOMM_WIRE_MEMBER_GONE)
		flow_end(side, h->src % 10);
	else
		require(!hcomm_flow_tx_nack(&nf->f, h->offset, -(int)h->aux),
			"NACK of op %llu", (unsigned long long)h->offset);
}

static void receive_ctl_ack(unsigned int side, u64 next)
{
	struct node *n = &sim.node[side];
	struct list_head done;
	unsigned int i;

	INIT_LIST_HEAD(&done);
	require(!hcomm_ctl_ack(&n->ctl, next, &done), "impossible control ack");
	for (i = 0; i < sim.nflows; i++)
		hcomm_flow_rx_ctl_acked(&n->flow[i].f, n->ctl.tx_una);
}

static void receive_fence(unsigned int side, unsigned int path,
			  const struct hcomm_wire_msg *m)
{
	struct hcomm_fence_result r = { 0 };
	struct list_head done;

	INIT_LIST_HEAD(&done);
	require(!hcomm_fence_receive(&sim.node[side].fence, path, m, &done, &r),
		"report refused");
	complete_any(side, &done);
	obey(side, &r);
}

/*
 * There is no memory to handle a message: it counts as never arrived and the
 * path is given up, whose end makes the peer repeat it.  What follows on the
 * connection is handled still, but for the other streams of messages, which
 * would have a gap.
 */
static bool dropped(unsigned int side, unsigned int path, u8 type)
{
	struct conn *c = sim.node[side].path[path].conn;

	if (!hcomm_wire_is_flow(type) && c->side[side].deaf)
		return true;
	if (sim.calm || type == HCOMM_WIRE_CREDIT || !one_in(400))
		return false;
	trace("%u: no memory for %s", side, hcomm_wire_type_name(type));
	if (!hcomm_wire_is_flow(type))
		c->side[side].deaf = true;
	node_lost(side, path);
	return true;
}

static void receive(unsigned int side, unsigned int path, unsigned int qp,
		    const struct pkt *p)
{
	struct npath *np = &sim.node[side].path[path];
	struct hcomm_wire_msg m;

	require(!hcomm_wire_decode(p->msg, p->len, qp, &m), "decode: type %u",
		p->msg[0]);
	trace("%u: path %u %s group %u seq %llu part %u/%u", side, path,
	      hcomm_wire_type_name(m.h.type), m.h.group,
	      (unsigned long long)m.h.seq, m.h.part, m.h.parts);
	require(np->conn->twice ||
		np->credit[qp].avail + m.h.credits <= RECEIVES,
		"more credits than receives");
	hcomm_credit_grant(&np->credit[qp], m.h.credits);
	np->conn->side[side].posted[qp]++;
	hcomm_credit_reposted(&np->credit[qp]);
	if (dropped(side, path, m.h.type))
		return;
	if (hcomm_wire_is_flow(m.h.type))
		receive_flow(side, &m.h);
	else if (hcomm_wire_is_control(m.h.type))
		receive_control(side, &m.h);
	else if (m.h.type == HCOMM_WIRE_CTL_ACK)
		receive_ctl_ack(side, m.h.seq);
	else if (m.h.type != HCOMM_WIRE_CREDIT)
		receive_fence(side, path, &m);
}

static bool poll_one(unsigned int side, unsigned int path, unsigned int qp)
{
	struct npath *np = &sim.node[side].path[path];
	struct list_head *cq;
	struct pkt *p;

	cq = &np->conn->side[side].cq[qp];
	if (list_empty(cq))
		return false;
	p = list_first_entry(cq, struct pkt, node);
	list_del_init(&p->node);
	receive(side, path, qp, p);
	pkt_free(p);
	return true;
}

bool node_poll(unsigned int side, unsigned int path, unsigned int qp)
{
	struct npath *np = &sim.node[side].path[path];

	if (!np->conn || np->state == HCOMM_PATH_CONNECTING)
		return false;
	return poll_one(side, path, qp);
}

bool node_drain(unsigned int side, unsigned int path)
{
	struct npath *np = &sim.node[side].path[path];
	struct hcomm_fence_result r = { 0 };

	if (np->state != HCOMM_PATH_DRAINING)
		return false;
	while (poll_one(side, path, one_in(2)) || poll_one(side, path, 0) ||
	       poll_one(side, path, 1))
		;
	trace("%u: drained path %u", side, path);
	np->conn->side[side].exists = false;
	np->conn = NULL;
	hcomm_path_move(&np->state, HCOMM_PATH_DOWN);
	hcomm_fence_drained(&sim.node[side].fence, path, &r);
	obey(side, &r);
	return true;
}

/* ---- departures ---- */

/* Queues a SEND whose credit is taken and whose message is encoded. */
static void post_send(unsigned int side, unsigned int path, unsigned int qp,
		      struct pkt *p, u32 len, u32 bytes)
{
	p->len = len;
	p->bytes = bytes;
	list_add_tail(&p->node,
		      &sim.node[side].path[path].conn->side[side].sq[qp]);
}

static bool send_hdr(unsigned int side, unsigned int path, unsigned int qp,
		     struct hcomm_wire_hdr *h, enum hcomm_credit_use use,
		     struct hcomm_flow *f)
{
	struct hcomm_credit *c = &sim.node[side].path[path].credit[qp];
	struct pkt *p;

	if (!hcomm_credit_take(c, use))
		return false;
	if (f)
		hcomm_flow_stamp(f, h);
	h->credits = hcomm_credit_collect(c);
	p = pkt_new(PKT_SEND);
	hcomm_wire_encode(h, p->msg);
	post_send(side, path, qp, p, HCOMM_WIRE_HEADER, 0);
	return true;
}

static bool send_fence(unsigned int side, unsigned int path)
{
	struct node *n = &sim.node[side];
	struct hcomm_credit *c = &n->path[path].credit[HCOMM_QP_SMALL];
	struct pkt *p;
	u32 len;

	if (!hcomm_fence_wants(&n->fence, path) ||
	    !hcomm_credit_take(c, HCOMM_CREDIT_CONTROL))
		return false;
	p = pkt_new(PKT_SEND);
	len = hcomm_fence_next(&n->fence, path, hcomm_credit_collect(c),
			       p->msg);
	sim_stats.reports++;
	require(len, "fence wants to send but has nothing");
	post_send(side, path, HCOMM_QP_SMALL, p, len, 0);
	return true;
}

static bool send_control(unsigned int side, unsigned int path)
{
	struct node *n = &sim.node[side];
	struct hcomm_ctl_msg *msg = hcomm_ctl_peek(&n->ctl, path);

	if (!msg || !send_hdr(side, path, HCOMM_QP_SMALL, &msg->hdr,
			      HCOMM_CREDIT_CONTROL, NULL))
		return false;
	hcomm_ctl_sent(&n->ctl, path);
	return true;
}

static bool send_control_ack(unsigned int side, unsigned int path)
{
	struct node *n = &sim.node[side];
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_CTL_ACK };

	if (!n->ctl.rx_pending)
		return false;
	if (!hcomm_credit_room(&n->path[path].credit[HCOMM_QP_SMALL],
			       HCOMM_CREDIT_CONTROL))
		return false;
	h.seq = hcomm_ctl_ack_value(&n->ctl);
	return send_hdr(side, path, HCOMM_QP_SMALL, &h, HCOMM_CREDIT_CONTROL,
			NULL);
}

static bool send_credits(unsigned int side, unsigned int path)
{
	struct npath *np = &sim.node[side].path[path];
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_CREDIT };
	unsigned int qp;

	for (qp = 0; qp < 2; qp++)
		if (hcomm_credit_due(&np->credit[qp]) &&
		    send_hdr(side, path, qp, &h, HCOMM_CREDIT_RETURN, NULL))
			return true;
	return false;
}

static bool send_ack(unsigned int side, unsigned int path)
{
	struct node *n = &sim.node[side];
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_ACK };
	unsigned int i;

	for (i = 0; i < sim.nflows; i++)
		if (n->flow[i].alive &&
		    hcomm_flow_ack_due(&n->flow[i].f) != HCOMM_ACK_NONE &&
		    send_hdr(side, path, HCOMM_QP_SMALL, &h,
			     HCOMM_CREDIT_CONTROL, &n->flow[i].f))
			return true;
	return false;
}

struct pick {
	unsigned int side;
	unsigned int path;
	struct nflow *nf;
	struct hcomm_flow_op *op;
	unsigned int part;
	u32 bytes;
};

static u32 part_bytes(const struct hcomm_flow_op *op)
{
	return op->qp == HCOMM_QP_BULK ? HCOMM_WIRE_HEADER + 2500 :
					 HCOMM_WIRE_HEADER;
}

/* The next part of the flow, from the queue pair that has room if one has. */
static u64 part_cost(struct hcomm_sched_queue *q, void *arg)
{
	struct pick *pk = arg;
	struct nflow *nf = container_of(q - pk->path, struct nflow, queue[0]);
	struct npath *np = &sim.node[pk->side].path[pk->path];
	struct hcomm_flow_op *op;
	unsigned int qp, part;

	pk->op = NULL;
	for (qp = 0; qp < 2; qp++) {
		op = hcomm_flow_tx_peek(&nf->f, pk->path, qp, &part);
		if (!op)
			continue;
		if (pk->op && !hcomm_credit_room(&np->credit[qp],
						 HCOMM_CREDIT_DATA))
			continue;
		pk->op = op;
		pk->part = part;
	}
	pk->nf = nf;
	pk->bytes = pk->op ? part_bytes(pk->op) : 0;
	return pk->bytes;
}

static void part_header(const struct hcomm_flow_op *op, unsigned int part,
			struct sop *s, struct hcomm_wire_hdr *h)
{
	h->seq = op->seq;
	h->sem = HCOMM_WIRE_NO_SEM;
	if (op->kind == HCOMM_FLOW_REPLY) {
		h->sem = (u32)op->number;
		h->type = op->qp == HCOMM_QP_BULK ? HCOMM_WIRE_GET_PART :
			  s->get_error ? HCOMM_WIRE_GET_ERR :
					 HCOMM_WIRE_GET_EAGER;
		h->aux = s->get_error ? EIO : 0;
	} else if (op->kind == HCOMM_FLOW_GET) {
		h->type = HCOMM_WIRE_GET_REQ;
		h->sem = (u32)op->number;
		h->length = 1;
	} else {
		h->type = op->qp == HCOMM_QP_BULK ? HCOMM_WIRE_PART :
			  s->type == SOP_EAGER && !op->voided ?
			  HCOMM_WIRE_EAGER : HCOMM_WIRE_SIGNAL;
		if (!op->voided) {
			h->flags = s->flags;
			h->sem = s->has_sem ? 3 : HCOMM_WIRE_NO_SEM;
			h->delta = s->delta;
		}
	}
	if (op->qp == HCOMM_QP_BULK) {
		h->part = part;
		h->parts = op->nparts;
		h->length = 1;
	}
}

static void post_writes(struct pick *pk, struct sop *s)
{
	struct conn *c = sim.node[pk->side].path[pk->path].conn;
	struct pkt *p;
	unsigned int seg;

	for (seg = 0; seg < s->segs; seg++) {
		p = pkt_new(PKT_WRITE);
		p->flow = flow_index(&pk->nf->f);
		p->slot = s->slot;
		p->part = pk->part;
		p->seg = seg;
		p->id = s->id;
		list_add_tail(&p->node,
			      &c->side[pk->side].sq[HCOMM_QP_BULK]);
	}
}

static bool send_part(unsigned int side, unsigned int path)
{
	struct npath *np = &sim.node[side].path[path];
	struct pick pk = { .side = side, .path = path };
	struct hcomm_wire_hdr h = { 0 };
	struct sop *s;
	struct pkt *p;

	if (np->state != HCOMM_PATH_UP)
		return false;
	require(hcomm_fence_may_post(&sim.node[side].fence, path),
		"path %u is up and may not post", path);
	if (!hcomm_sched_next(&np->sched, part_cost, &pk))
		return false;
	if (!hcomm_credit_take(&np->credit[pk.op->qp], HCOMM_CREDIT_DATA))
		return false;
	s = pk.op->kind == HCOMM_FLOW_REPLY ?
	    container_of(pk.op, struct sop, reply) :
	    container_of(pk.op, struct sop, op);
	hcomm_flow_tx_posted(pk.op, pk.part, path);
	if (one_in(64)) {
		hcomm_flow_tx_unpost(&pk.nf->f, pk.op, pk.part);
		hcomm_credit_untake(&np->credit[pk.op->qp]);
		return true;
	}
	hcomm_sched_charge(&np->sched, &pk.nf->queue[path], pk.bytes,
			   sim.step * 1000);
	sim_stats.parts++;
	sim_stats.replays += pk.op->replayed;
	part_header(pk.op, pk.part, s, &h);
	if (pk.op->qp == HCOMM_QP_BULK)
		post_writes(&pk, s);
	hcomm_flow_stamp(&pk.nf->f, &h);
	h.credits = hcomm_credit_collect(&np->credit[pk.op->qp]);
	trace("%u: path %u posts %s seq %llu part %u", side, path,
	      hcomm_wire_type_name(h.type), (unsigned long long)h.seq, h.part);
	p = pkt_new(PKT_SEND);
	hcomm_wire_encode(&h, p->msg);
	post_send(side, path, pk.op->qp, p, HCOMM_WIRE_HEADER, pk.bytes);
	return true;
}

bool node_send(unsigned int side, unsigned int path, unsigned int what)
{
	struct npath *np = &sim.node[side].path[path];

	if (!hcomm_path_connected(np->state) || np->conn->side[side].err)
		return false;
	switch (what) {
	case 0:
		return send_fence(side, path);
	case 1:
		return send_control(side, path);
	case 2:
		return send_control_ack(side, path);
	case 3:
		return send_credits(side, path);
	case 4:
		return send_ack(side, path);
	default:
		return send_part(side, path);
	}
}

/* Nothing moves any more: what must hold then. */
void node_check_idle(void)
{
	unsigned int side, p, qp;
	struct hcomm_credit *a, *b;
	struct npath *np;

	for (side = 0; side < 2; side++) {
		require(list_empty(&sim.node[side].ctl.queue),
			"control message never acknowledged");
		for (p = 0; p < sim.npaths; p++) {
			np = &sim.node[side].path[p];
			require(np->state == HCOMM_PATH_UP, "path %u is %s", p,
				hcomm_path_state_name(np->state));
			require(!hcomm_fence_pending(&sim.node[side].fence, p),
				"fence of path %u is pending", p);
			require(!np->sched.posted, "posted bytes leak");
			for (qp = 0; qp < 2; qp++) {
				a = &np->credit[qp];
				b = &sim.node[!side].path[p].credit[qp];
				require(a->avail + b->owed == RECEIVES ||
					(np->conn->twice &&
					 a->avail + b->owed > RECEIVES),
					"lost credits: path %u qp %u: %u + %u",
					p, qp, a->avail, b->owed);
			}
		}
	}
}
