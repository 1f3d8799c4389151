// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ops, destination memory, the adversary and the oracle
 *
 * Every destination is a slot of cells, one cell a WRITE.  A slot belongs to
 * one op from the moment that op is made until its arrival is announced: by the
 * first ordered signal at or after it, by its own signal if it is unordered, or
 * by the completion of a get.  At that very instant the oracle checks that each
 * cell holds what the op sent, and the adversary poisons the slot and takes it.
 * A WRITE into a slot that is not its op's is the violation that fencing exists
 * to prevent.
 */
#include "sim.h"

#define POISON	0xdeadbeef
#define DELTA(id) (1 + (id) % 5)

static u32 op_id(unsigned int side, unsigned int flow, unsigned int i)
{
	return 1 + (side * SIM_FLOWS + flow) * SIM_OPS + i;
}

static struct sop *op_by_id(u32 id)
{
	u32 i = id - 1;

	return &sim.app[i / SIM_OPS % SIM_FLOWS].op[i / SIM_OPS / SIM_FLOWS]
						   [i % SIM_OPS];
}

static unsigned int sender_of(u32 id)
{
	return (id - 1) / SIM_OPS / SIM_FLOWS;
}

/* The op with sequence @seq of @sender's flow. */
struct sop *app_op(unsigned int sender, unsigned int flow, u64 seq)
{
	u64 i = seq - sim.node[sender].flow[flow].last_base;

	require(i < sim.app[flow].issued[sender], "op %llu was never issued",
		(unsigned long long)seq);
	return &sim.app[flow].op[sender][i];
}

void app_init(void)
{
	struct app_flow *a;
	unsigned int f, side, i;

	for (f = 0; f < sim.nflows; f++) {
		a = &sim.app[f];
		for (side = 0; side < 2; side++) {
			a->issued[side] = 0;
			a->wanted[side] = one_in(4) ? 1 : 2 + rnd(14);
			if (one_in(16))
				a->wanted[side] = SIM_OPS;
			for (i = 0; i < SIM_SLOTS; i++) {
				a->put[side][i].state = SLOT_FREE;
				a->get[side][i].state = SLOT_FREE;
			}
		}
	}
}

static struct mem_slot *slot_of(const struct sop *op, unsigned int flow)
{
	unsigned int sender = sender_of(op->id);

	return op->type == SOP_GET ? &sim.app[flow].get[sender][op->slot] :
				     &sim.app[flow].put[sender][op->slot];
}

static int slot_find(struct mem_slot *slots)
{
	unsigned int first = rnd(SIM_SLOTS);
	unsigned int i;

	for (i = 0; i < SIM_SLOTS; i++)
		if (slots[(first + i) % SIM_SLOTS].state == SLOT_FREE)
			return (first + i) % SIM_SLOTS;
	return -1;
}

static bool has_memory(const struct sop *op)
{
	return op->type != SOP_SIGNAL;
}

/* Picks what the op is; false: no memory for it now. */
static bool op_make(struct sop *op, struct app_flow *a, unsigned int side,
		    bool last)
{
	int slot;

	op->type = last ? SOP_SIGNAL : rnd(4);
	op->nparts = 1;
	op->segs = 1 + rnd(SIM_SEGS);
	op->has_sem = last || one_in(2);
	op->flags = !last && one_in(5) ? HCOMM_WIRE_F_UNORDERED : 0;
	op->delta = op->has_sem ? DELTA(op->id) : 0;
	op->want_nack = !last && op->type != SOP_GET && one_in(12);
	if (op->type == SOP_PUT)
		op->nparts = one_in(20) ? sim.part_max : 1 + rnd(4);
	if (op->type == SOP_GET) {
		op->flags = 0;
		op->has_sem = false;
		op->delta = 0;
		op->get_error = one_in(8);
		op->reply_qp = op->get_error || one_in(3) ? HCOMM_QP_SMALL :
							    HCOMM_QP_BULK;
		if (op->reply_qp == HCOMM_QP_BULK)
			op->nparts = 1 + rnd(4);
	}
	if (op->reply_qp == HCOMM_QP_SMALL && op->type != SOP_PUT)
		op->segs = 1;
	if (!has_memory(op))
		return true;
	slot = slot_find(op->type == SOP_GET ? a->get[side] : a->put[side]);
	if (slot < 0)
		return false;
	op->slot = slot;
	return true;
}

static void slot_take(struct mem_slot *m, const struct sop *op)
{
	unsigned int part, seg;

	m->state = SLOT_NET;
	m->owner = op->id;
	for (part = 0; part < op->nparts; part++)
		for (seg = 0; seg < SIM_SEGS; seg++)
			m->cell[part][seg] = POISON;
}

bool app_issue(unsigned int side, unsigned int flow)
{
	struct app_flow *a = &sim.app[flow];
	struct nflow *nf = &sim.node[side].flow[flow];
	u32 i = a->issued[side];
	struct sop *op = &a->op[side][i];
	u8 kind;

	if (i == a->wanted[side] || !nf->alive)
		return false;
	memset(op, 0, sizeof(*op));
	op->id = op_id(side, flow, i);
	if (!op_make(op, a, side, i + 1 == a->wanted[side])) {
		/* every slot waits for a signal */
		op->type = SOP_SIGNAL;
		op->nparts = 1;
		op->has_sem = true;
		op->delta = DELTA(op->id);
		op->flags = 0;
	}
	kind = op->type == SOP_GET ? HCOMM_FLOW_GET : HCOMM_FLOW_OP;
	if (hcomm_flow_tx_admit(&nf->f, &op->op, kind,
				op->type == SOP_PUT ? HCOMM_QP_BULK :
						      HCOMM_QP_SMALL,
				op->type == SOP_PUT ? op->nparts : 1))
		return false;
	if (has_memory(op))
		slot_take(slot_of(op, flow), op);
	a->issued[side]++;
	node_activate(side, flow);
	trace("%u: flow %u op %llu type %u parts %u%s%s slot %u", side, flow,
	      (unsigned long long)op->op.seq, op->type, op->nparts,
	      op->has_sem ? " sem" : "", op->flags ? " unordered" : "",
	      op->slot);
	return true;
}

/* The owner gets round to answering a get. */
bool app_answer(unsigned int side, unsigned int flow)
{
	struct nflow *nf = &sim.node[side].flow[flow];
	struct app_flow *a = &sim.app[flow];
	struct sop *op;
	u64 number;
	u32 i;

	if (!nf->alive)
		return false;
	for (i = 0; i < a->issued[!side]; i++) {
		op = &a->op[!side][i];
		if (op->type != SOP_GET || !op->requested || op->reply_queued)
			continue;
		number = hcomm_flow_reply_number(&nf->f, (u32)op->op.number);
		require(number == op->op.number, "get number misread");
		require(hcomm_flow_tx_reply(&nf->f, &op->reply, op->op.seq,
					    number, op->reply_qp, op->nparts),
			"get %llu is over before its reply",
			(unsigned long long)number);
		op->reply_queued = true;
		node_activate(side, flow);
		return true;
	}
	return false;
}

/* The user is done with a slot: the sender may use it again. */
bool app_free(unsigned int side, unsigned int flow)
{
	struct app_flow *a = &sim.app[flow];
	bool some = false;
	unsigned int i;

	for (i = 0; i < SIM_SLOTS; i++) {
		if (a->put[side][i].state == SLOT_APP) {
			a->put[side][i].state = SLOT_FREE;
			some = true;
		}
		if (a->get[side][i].state == SLOT_APP) {
			a->get[side][i].state = SLOT_FREE;
			some = true;
		}
	}
	return some;
}

/* The deadline of an op passes before anything of it was posted. */
bool app_void(unsigned int side, unsigned int flow)
{
	struct app_flow *a = &sim.app[flow];
	struct nflow *nf = &sim.node[side].flow[flow];
	u32 i = a->issued[side];
	struct sop *op;

	if (!i || i == a->wanted[side] || !nf->alive)
		return false;
	op = &a->op[side][i - 1];
	if (op->finished || hcomm_flow_tx_void(&nf->f, &op->op, -ETIMEDOUT))
		return false;
	trace("%u: flow %u op %llu is voided", side, flow,
	      (unsigned long long)op->op.seq);
	node_activate(side, flow);
	return true;
}

static void cell_write(struct sop *op, unsigned int flow, unsigned int part,
		       unsigned int seg)
{
	struct mem_slot *m = slot_of(op, flow);

	require(m->state == SLOT_NET && m->owner == op->id,
		"op %llu of side %u is written after its arrival was announced",
		(unsigned long long)op->op.seq, sender_of(op->id));
	m->cell[part][seg] = op->id;
}

/* A WRITE of side @from lands. */
void app_write(const struct pkt *p, unsigned int from)
{
	if (sim.node[!from].flow[p->flow].alive)
		cell_write(op_by_id(p->id), p->flow, p->part, p->seg);
}

/* The payload of an eager message is copied on @side. */
void app_eager(unsigned int side, unsigned int flow, struct sop *op)
{
	(void)side;
	cell_write(op, flow, 0, 0);
}

/* The user may look now, and does; then the memory is his. */
static void announce(struct sop *op, unsigned int flow)
{
	struct mem_slot *m = slot_of(op, flow);
	unsigned int part, seg;
	bool nothing = op->op.voided || (op->type == SOP_EAGER && op->nacked);

	if (op->announced || !has_memory(op))
		return;
	op->announced = true;
	require(m->owner == op->id, "slot changed hands");
	for (part = 0; part < op->nparts && !nothing; part++)
		for (seg = 0; seg < op->segs; seg++)
			require(m->cell[part][seg] == op->id,
				"op %llu of side %u announced before part %u",
				(unsigned long long)op->op.seq,
				sender_of(op->id), part);
	for (part = 0; part < op->nparts; part++)
		for (seg = 0; seg < op->segs; seg++)
			m->cell[part][seg] = POISON;
	m->state = one_in(2) ? SLOT_APP : SLOT_FREE;
	m->owner = 0;
}

/* Everything of the peer's flow up to @seq is announced by a signal. */
static void announce_until(unsigned int side, unsigned int flow,
			   struct nflow *nf, u64 seq)
{
	struct sop *op;

	for (; nf->announced <= seq; nf->announced++) {
		op = app_op(!side, flow, nf->announced);
		if (op->type != SOP_GET)
			announce(op, flow);
	}
}

static void check_order(unsigned int side, unsigned int flow,
			struct nflow *nf, u64 seq)
{
	struct sop *op;

	for (; nf->last_seq <= seq; nf->last_seq++) {
		op = app_op(!side, flow, nf->last_seq);
		require(op->delivered == 1,
			"op %llu is due before op %llu",
			(unsigned long long)seq,
			(unsigned long long)nf->last_seq);
	}
}

void app_deliver(struct hcomm_flow *f, u64 seq,
		 const struct hcomm_flow_slot *slot)
{
	unsigned int side = flow_side(f);
	unsigned int flow = flow_index(f);
	struct nflow *nf = &sim.node[side].flow[flow];
	struct sop *op = app_op(!side, flow, seq);

	trace("%u: flow %u op %llu is due", side, flow,
	      (unsigned long long)seq);
	require(slot->cookie == op, "cookie of another op");
	require(!op->delivered++, "op %llu is due twice",
		(unsigned long long)seq);
	if (!(slot->flags & HCOMM_WIRE_F_UNORDERED))
		check_order(side, flow, nf, seq);
	if (op->type == SOP_GET && !op->op.voided) {
		require(slot->type == HCOMM_WIRE_GET_REQ, "get is no request");
		op->requested = true;
		if (one_in(2))
			app_answer(side, flow);
		return;
	}
	if (slot->sem == HCOMM_WIRE_NO_SEM || op->nacked)
		return;
	require(op->has_sem && !op->op.voided, "signal out of nothing");
	nf->sum += slot->delta;
	if (slot->flags & HCOMM_WIRE_F_UNORDERED)
		announce(op, flow);
	else
		announce_until(side, flow, nf, seq);
}

static u64 whole(const struct sop *op)
{
	return hcomm_mask(op->nparts);
}

static void reply_done(unsigned int side, unsigned int flow, struct sop *op)
{
	require(!op->reply_done, "reply completes twice");
	op->reply_done = true;
	if (op->reply.status == -ECONNRESET) {
		require(!sim.node[side].flow[flow].alive,
			"reply reset without a death");
		return;
	}
	require(op->landed == whole(op), "reply completes before it is placed");
}

static void get_done(struct sop *op, unsigned int flow)
{
	require(op->op.status == (op->get_error ? -EIO : 0),
		"get ends with %d", op->op.status);
	require(op->landed == whole(op), "get completes before it is placed");
	if (!op->get_error) {
		announce(op, flow);
		return;
	}
	op->announced = true;
	slot_of(op, flow)->state = SLOT_APP;
	slot_of(op, flow)->owner = 0;
}

/* The core hands back an op. */
void app_done(unsigned int side, unsigned int flow, struct hcomm_flow_op *fop)
{
	struct sop *op;

	if (fop->kind == HCOMM_FLOW_REPLY) {
		reply_done(side, flow, container_of(fop, struct sop, reply));
		return;
	}
	op = container_of(fop, struct sop, op);
	trace("%u: flow %u op %llu done %d", side, flow,
	      (unsigned long long)fop->seq, fop->status);
	require(!op->finished, "op %llu completes twice",
		(unsigned long long)fop->seq);
	op->finished = true;
	sim_stats.ops++;
	if (!sim.node[side].flow[flow].alive) {
		require(fop->status, "op succeeds in a dead flow");
		return;
	}
	if (fop->voided) {
		require(fop->status == -ETIMEDOUT, "voided op ends with %d",
			fop->status);
		if (has_memory(op) && op->type == SOP_GET)
			slot_of(op, flow)->state = SLOT_APP;
		return;
	}
	if (op->type == SOP_GET) {
		get_done(op, flow);
		return;
	}
	require(op->landed == whole(op),
		"op %llu completes before it is placed",
		(unsigned long long)fop->seq);
	require(fop->status == (op->nacked ? -ERANGE : 0),
		"op %llu ends with %d", (unsigned long long)fop->seq,
		fop->status);
}

/* The flow ended on @side: every op of it must be back. */
void app_flow_gone(unsigned int side, unsigned int flow)
{
	struct app_flow *a = &sim.app[flow];
	u32 i;

	for (i = 0; i < a->issued[side]; i++)
		require(a->op[side][i].finished, "op %u outlives its flow", i);
	for (i = 0; i < a->issued[!side]; i++)
		require(a->op[!side][i].reply_queued ==
			a->op[!side][i].reply_done, "reply outlives its flow");
}

static void check_side(unsigned int side, unsigned int flow)
{
	struct app_flow *a = &sim.app[flow];
	u64 sum = 0;
	struct sop *op;
	u32 i;

	for (i = 0; i < a->issued[side]; i++) {
		op = &a->op[side][i];
		require(op->finished, "side %u flow %u op %u never completes",
			side, flow, i);
		require(op->delivered == 1, "op %u is due %u times", i,
			op->delivered);
		require(op->type != SOP_GET || op->op.voided || op->reply_done,
			"reply %u never completes", i);
		if (!op->op.voided && !op->nacked)
			sum += op->delta;
	}
	require(a->issued[side] == a->wanted[side], "flow %u stands still",
		flow);
	require(sum == sim.node[!side].flow[flow].sum,
		"semaphore is %llu and should be %llu",
		(unsigned long long)sim.node[!side].flow[flow].sum,
		(unsigned long long)sum);
}

/* Nothing moves any more: is everything done? */
void app_finished(void)
{
	unsigned int side, flow;

	for (flow = 0; flow < sim.nflows; flow++)
		for (side = 0; side < 2; side++) {
			require(sim.node[0].flow[flow].alive ==
				sim.node[1].flow[flow].alive,
				"death of flow %u not heard", flow);
			if (sim.node[side].flow[flow].alive)
				check_side(side, flow);
			else
				app_flow_gone(side, flow);
		}
}
