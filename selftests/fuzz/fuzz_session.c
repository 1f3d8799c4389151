// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hostile peer that is past the door: any sequence of well-formed messages,
 * in any state, may be refused but breaks nothing of ours: ops come back at most
 * once and windows, credits and lists stay sound.
 *
 * Input: commands of one byte, each followed by what it needs.
 */
#include <stdlib.h>

#include "core/credit.h"
#include "core/ctl.h"
#include "core/fence.h"
#include "core/flow.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define must(cond) do { if (!(cond)) abort(); } while (0)

#define WINDOW	8
#define OPS	64
#define PATHS	3

struct op {
	struct hcomm_flow_op op;
	bool out;		/* in the core's hands */
};

static struct hcomm_fence fence;
static struct hcomm_ctl ctl;
static struct hcomm_flow flow;
static struct hcomm_flow_slot slots[WINDOW];
static struct hcomm_flow_get gets[HCOMM_FLOW_GETS];
static struct hcomm_credit credit;
static struct op ops[OPS];
static struct op replies[OPS];
static unsigned int nops, nreplies;
static u64 due;			/* ordered deliveries seen */
static const u8 *in;
static size_t left;

static u8 byte(void)
{
	if (!left)
		return 0;
	left--;
	return *in++;
}

static void complete(struct list_head *done)
{
	struct hcomm_flow_op *fop;
	struct op *op;

	while (!list_empty(done)) {
		fop = list_first_entry(done, struct hcomm_flow_op, node);
		list_del_init(&fop->node);
		must(list_empty(&fop->todo));
		op = container_of(fop, struct op, op);
		must(op->out);
		op->out = false;
	}
}

static void deliver(struct hcomm_flow *f, u64 seq,
		    const struct hcomm_flow_slot *slot)
{
	struct op *r;

	if (!(slot->flags & HCOMM_WIRE_F_UNORDERED)) {
		must(seq >= due);
		due = seq + 1;
	}
	if (slot->type != HCOMM_WIRE_GET_REQ || nreplies == OPS)
		return;
	r = &replies[nreplies];
	r->out = hcomm_flow_tx_reply(f, &r->op, seq,
				     hcomm_flow_reply_number(f, slot->sem),
				     seq & 1, 1 + (seq & 3));
	nreplies += r->out;
}

static const struct hcomm_flow_ops flow_ops = { .deliver = deliver };

static void kick(struct hcomm_fence *fc, struct hcomm_flow *f)
{
	must(fc == &fence && f == &flow);
}

static struct hcomm_flow *find(struct hcomm_fence *fc, u32 group, u32 src,
			       u32 dst)
{
	(void)fc;
	return group == 1 && !src && dst == 1 ? &flow : NULL;
}

static const struct hcomm_fence_ops fence_ops = { .kick = kick, .find = find };

static void reset(void)
{
	memset(slots, 0, sizeof(slots));
	memset(gets, 0, sizeof(gets));
	memset(ops, 0, sizeof(ops));
	memset(replies, 0, sizeof(replies));
	nops = 0;
	nreplies = 0;
	due = 0;
	hcomm_fence_init(&fence, &fence_ops, HCOMM_WIRE_PAYLOAD);
	hcomm_ctl_init(&ctl);
	hcomm_credit_init(&credit, 32, 32);
	hcomm_flow_init(&flow, &flow_ops, slots, WINDOW, gets);
	flow.group = 1;
	flow.dst = 1;
	hcomm_fence_flow_add(&fence, &flow);
}

static void submit(u8 how)
{
	struct op *op = &ops[nops];

	if (nops == OPS)
		return;
	if (hcomm_flow_tx_admit(&flow, &op->op,
				how & 1 ? HCOMM_FLOW_GET : HCOMM_FLOW_OP,
				how & 1 ? 0 : how >> 1 & 1,
				how & 1 ? 1 : 1 + (how >> 2 & 7)))
		return;
	op->out = true;
	nops++;
	if (how & 0x80)
		hcomm_flow_tx_void(&flow, &op->op, -ETIMEDOUT);
}

static void post(u8 how)
{
	unsigned int path = how % PATHS;
	struct hcomm_flow_op *op;
	unsigned int part;

	if (!hcomm_fence_may_post(&fence, path))
		return;
	op = hcomm_flow_tx_peek(&flow, path, how >> 7, &part);
	if (op)
		hcomm_flow_tx_posted(op, part, path);
}

static void connection(u8 how)
{
	struct hcomm_fence_result r = { 0 };
	unsigned int path = how % PATHS;
	u8 msg[HCOMM_WIRE_MESSAGE];
	u32 epoch;

	switch (how / PATHS % 6) {
	case 0:
		hcomm_fence_connect(&fence, path, &epoch);
		break;
	case 1:
		hcomm_fence_accept(&fence, path, byte(), &r);
		break;
	case 2:
		hcomm_fence_connected(&fence, path, &r);
		break;
	case 3:
		hcomm_fence_lost(&fence, path);
		hcomm_ctl_path_lost(&ctl, path);
		break;
	case 4:
		hcomm_fence_drained(&fence, path, &r);
		break;
	default:
		epoch = hcomm_fence_next(&fence, path, 0, msg);
		must(epoch <= HCOMM_WIRE_MESSAGE);
	}
}

static void arrive_flow(const struct hcomm_wire_msg *m, struct list_head *done)
{
	if (m->h.group != 1 || m->h.dst || m->h.src != 1)
		return;
	if (hcomm_flow_tx_ack(&flow, m->h.ack, done))
		return;
	switch (m->h.type) {
	case HCOMM_WIRE_ACK:
		hcomm_flow_tx_floor(&flow, m->h.aux, done);
		break;
	case HCOMM_WIRE_GET_PART:
	case HCOMM_WIRE_GET_EAGER:
	case HCOMM_WIRE_GET_ERR:
		hcomm_flow_reply_op(&flow, &m->h);
		hcomm_flow_reply_place(&flow, &m->h, done);
		break;
	case HCOMM_WIRE_GET_REQ:
		hcomm_flow_tx_floor(&flow, m->h.aux, done);
		/* fall through */
	default:
		hcomm_flow_rx_place(&flow, &m->h, NULL);
	}
}

/* A message of the right shape, its fields small numbers from the input. */
static u32 message(u8 *buf)
{
	struct hcomm_wire_hdr h = {
		.group = 1, .src = 1, .type = byte(), .flags = byte(),
		.seq = byte(), .ack = byte(), .part = byte(), .parts = byte(),
		.generation = byte(), .sem = byte(), .offset = byte(),
		.length = byte(), .aux = byte(), .credits = byte(),
	};
	u32 n = byte() * 4;

	if (n > left)
		n = left;
	if (h.type == HCOMM_WIRE_FENCED || h.type == HCOMM_WIRE_EAGER)
		h.length = n;
	hcomm_wire_encode(&h, buf);
	memcpy(buf + HCOMM_WIRE_HEADER, in, n);
	in += n;
	left -= n;
	return HCOMM_WIRE_HEADER + n;
}

static void arrive(u8 how)
{
	struct hcomm_fence_result r = { 0 };
	u8 buf[HCOMM_WIRE_MESSAGE];
	struct hcomm_wire_msg m;
	struct list_head done;
	u32 len = message(buf);

	INIT_LIST_HEAD(&done);
	if (!hcomm_wire_decode(buf, len, how & 1, &m)) {
		hcomm_credit_grant(&credit, m.h.credits);
		if (hcomm_wire_is_flow(m.h.type))
			arrive_flow(&m, &done);
		else if (m.h.type == HCOMM_WIRE_FENCED ||
			 m.h.type == HCOMM_WIRE_FENCE_ACK)
			hcomm_fence_receive(&fence, (how >> 1) % PATHS, &m,
					    &done, &r);
		else if (m.h.type == HCOMM_WIRE_CTL_ACK)
			hcomm_ctl_ack(&ctl, m.h.seq, &done);
		else if (m.h.type == HCOMM_WIRE_NACK)
			hcomm_flow_tx_nack(&flow, m.h.offset, -(int)m.h.aux);
		else if (hcomm_wire_is_control(m.h.type))
			hcomm_ctl_receive(&ctl, m.h.seq);
	}
	complete(&done);
}

static void check(void)
{
	unsigned int i;

	must(flow.tx.next - flow.tx.una <= WINDOW);
	must(flow.tx.get_next - flow.tx.get_floor <= HCOMM_FLOW_GETS);
	must(hcomm_flow_rx_ack(&flow) <= flow.rx.next);
	must(flow.rx.top - flow.rx.next <= WINDOW || flow.rx.top <=
	     flow.rx.next);
	must(credit.avail <= credit.limit);
	for (i = 0; i < nops; i++) {
		must(!(ops[i].op.unposted & ops[i].op.posted));
		must(!(ops[i].op.doubt & ops[i].op.placed));
		must(ops[i].out || !ops[i].op.unposted);
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct list_head done;
	unsigned int i;
	u8 what;

	in = data;
	left = size;
	reset();
	while (left) {
		what = byte();
		switch (what & 3) {
		case 0:
			submit(byte());
			break;
		case 1:
			post(byte());
			break;
		case 2:
			connection(byte());
			break;
		default:
			arrive(what >> 2);
		}
		check();
	}
	INIT_LIST_HEAD(&done);
	hcomm_flow_kill(&flow, -ECONNRESET, &done);
	complete(&done);
	for (i = 0; i < OPS; i++)
		must(!ops[i].out && !replies[i].out);
	return 0;
}
