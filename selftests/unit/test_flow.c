// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Sequence, parts, order, replay and acknowledgment of one flow. */
#include <kselftest_harness.h>

#include "core/flow.h"

#define WINDOW	16

struct delivery {
	u64 seq;
	u32 sem;
	u32 delta;
};

static struct delivery got[64];
static int ngot;

static void deliver(struct hcomm_flow *flow, u64 seq,
		    const struct hcomm_flow_slot *slot)
{
	got[ngot].seq = seq;
	got[ngot].sem = slot->sem;
	got[ngot++].delta = slot->delta;
}

static const struct hcomm_flow_ops ops = { .deliver = deliver };

FIXTURE(flow)
{
	struct hcomm_flow f;
	struct hcomm_flow_slot slots[WINDOW];
	struct hcomm_flow_get gets[HCOMM_FLOW_GETS];
	struct hcomm_flow_op op[80];
	struct list_head done;
};

FIXTURE_SETUP(flow)
{
	ngot = 0;
	memset(self->slots, 0, sizeof(self->slots));
	memset(self->gets, 0, sizeof(self->gets));
	hcomm_flow_init(&self->f, &ops, self->slots, WINDOW, self->gets);
	INIT_LIST_HEAD(&self->done);
}

FIXTURE_TEARDOWN(flow)
{
}

static int admit(struct hcomm_flow *f, struct hcomm_flow_op *op, int parts)
{
	return hcomm_flow_tx_admit(f, op, HCOMM_FLOW_OP,
				   parts > 1 ? HCOMM_QP_BULK : HCOMM_QP_SMALL,
				   parts);
}

/* Posts everything that can go over @path; returns how many parts. */
static int post_all(struct hcomm_flow *f, int path)
{
	struct hcomm_flow_op *op;
	unsigned int part;
	int qp, n = 0;

	for (qp = 0; qp < 2; qp++)
		while ((op = hcomm_flow_tx_peek(f, path, qp, &part))) {
			hcomm_flow_tx_posted(op, part, path);
			n++;
		}
	return n;
}

static int count(struct list_head *list)
{
	struct list_head *p;
	int n = 0;

	for (p = list->next; p != list; p = p->next)
		n++;
	return n;
}

static struct hcomm_flow_op *take(struct list_head *done)
{
	struct hcomm_flow_op *op;

	if (list_empty(done))
		return NULL;
	op = list_first_entry(done, struct hcomm_flow_op, node);
	list_del_init(&op->node);
	return op;
}

static struct hcomm_wire_hdr part(u64 seq, int part, int parts)
{
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_PART, .seq = seq, .part = part,
		.parts = parts, .sem = 1, .delta = seq + 1,
	};

	return h;
}

static int place(struct hcomm_flow *f, u64 seq, int p, int parts)
{
	struct hcomm_wire_hdr h = part(seq, p, parts);

	return hcomm_flow_rx_place(f, &h, NULL);
}

TEST_F(flow, ops_complete_in_order_by_cumulative_ack)
{
	int i;

	for (i = 0; i < 4; i++)
		ASSERT_EQ(admit(&self->f, &self->op[i], 1), 0);
	ASSERT_EQ(post_all(&self->f, 0), 4);
	ASSERT_EQ(hcomm_flow_tx_ack(&self->f, 3, &self->done), 0);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(take(&self->done), &self->op[i]);
	ASSERT_EQ(take(&self->done), NULL);
	ASSERT_EQ(hcomm_flow_tx_ack(&self->f, 2, &self->done), 0);
	ASSERT_EQ(take(&self->done), NULL);
	ASSERT_EQ(hcomm_flow_tx_ack(&self->f, 4, &self->done), 0);
	ASSERT_EQ(take(&self->done), &self->op[3]);
}

TEST_F(flow, window_bounds_open_ops)
{
	int i;

	for (i = 0; i < WINDOW; i++)
		ASSERT_EQ(admit(&self->f, &self->op[i], 1), 0);
	EXPECT_FALSE(hcomm_flow_tx_room(&self->f, HCOMM_FLOW_OP));
	EXPECT_EQ(admit(&self->f, &self->op[i], 1), -EAGAIN);
	post_all(&self->f, 0);
	hcomm_flow_tx_ack(&self->f, 1, &self->done);
	EXPECT_EQ(admit(&self->f, &self->op[i], 1), 0);
}

TEST_F(flow, parts_are_1_to_64)
{
	EXPECT_EQ(admit(&self->f, &self->op[0], 0), -EINVAL);
	EXPECT_EQ(admit(&self->f, &self->op[0], 65), -EINVAL);
	EXPECT_EQ(admit(&self->f, &self->op[0], 64), 0);
	EXPECT_EQ(post_all(&self->f, 0), 64);
}

TEST_F(flow, acks_of_what_was_never_posted_are_refused)
{
	admit(&self->f, &self->op[0], 2);
	EXPECT_EQ(hcomm_flow_tx_ack(&self->f, 1, &self->done), -EPROTO);
	post_all(&self->f, 0);
	EXPECT_EQ(hcomm_flow_tx_ack(&self->f, 2, &self->done), -EPROTO);
	EXPECT_EQ(hcomm_flow_tx_ack(&self->f, 1, &self->done), 0);
	EXPECT_EQ(count(&self->done), 1);
}

TEST_F(flow, acks_wrap_at_32_bits)
{
	int i;

	self->f.tx.next = 0xfffffffeull;
	self->f.tx.una = 0xfffffffeull;
	for (i = 0; i < 4; i++)
		admit(&self->f, &self->op[i], 1);
	post_all(&self->f, 0);
	ASSERT_EQ(hcomm_flow_tx_ack(&self->f, 1, &self->done), 0);
	EXPECT_EQ(count(&self->done), 3);
	EXPECT_EQ(self->f.tx.una, 0x100000001ull);
	ASSERT_EQ(hcomm_flow_tx_ack(&self->f, 0xffffffff, &self->done), 0);
	EXPECT_EQ(self->f.tx.una, 0x100000001ull);
}

TEST_F(flow, mark_completes_after_all_before_it)
{
	EXPECT_FALSE(hcomm_flow_tx_mark(&self->f, &self->op[9]));
	admit(&self->f, &self->op[0], 1);
	ASSERT_TRUE(hcomm_flow_tx_mark(&self->f, &self->op[9]));
	admit(&self->f, &self->op[1], 1);
	EXPECT_EQ(post_all(&self->f, 0), 2);
	hcomm_flow_tx_ack(&self->f, 1, &self->done);
	EXPECT_EQ(take(&self->done), &self->op[0]);
	EXPECT_EQ(take(&self->done), &self->op[9]);
	EXPECT_EQ(take(&self->done), NULL);
}

TEST_F(flow, signals_wait_for_all_earlier_ops)
{
	ASSERT_EQ(place(&self->f, 1, 0, 1), HCOMM_RX_NEW);
	ASSERT_EQ(place(&self->f, 0, 0, 2), HCOMM_RX_NEW);
	EXPECT_EQ(ngot, 0);
	ASSERT_EQ(place(&self->f, 0, 1, 2), HCOMM_RX_NEW);
	ASSERT_EQ(ngot, 2);
	EXPECT_EQ(got[0].seq, 0);
	EXPECT_EQ(got[0].delta, 1);
	EXPECT_EQ(got[1].seq, 1);
	EXPECT_EQ(got[1].delta, 2);
}

TEST_F(flow, unordered_signals_do_not_wait_and_apply_once)
{
	struct hcomm_wire_hdr h = part(1, 0, 1);

	h.flags = HCOMM_WIRE_F_UNORDERED;
	ASSERT_EQ(hcomm_flow_rx_place(&self->f, &h, NULL), HCOMM_RX_NEW);
	EXPECT_EQ(ngot, 1);
	place(&self->f, 0, 0, 1);
	EXPECT_EQ(ngot, 2);
	EXPECT_EQ(self->f.rx.next, 2);
}

TEST_F(flow, arrivals_are_judged)
{
	struct hcomm_wire_hdr h = part(3, 1, 4);

	EXPECT_EQ(place(&self->f, 3, 1, 4), HCOMM_RX_NEW);
	EXPECT_EQ(place(&self->f, 3, 1, 4), HCOMM_RX_DUPLICATE);
	EXPECT_EQ(place(&self->f, 3, 2, 5), HCOMM_RX_INCONSISTENT);
	h.part = 2;
	h.delta++;
	EXPECT_EQ(hcomm_flow_rx_check(&self->f, &h), HCOMM_RX_INCONSISTENT);
	EXPECT_EQ(place(&self->f, WINDOW, 0, 1), HCOMM_RX_OUT_OF_WINDOW);
	EXPECT_EQ(place(&self->f, U64_MAX, 0, 1), HCOMM_RX_OUT_OF_WINDOW);
	EXPECT_EQ(place(&self->f, 0, 0, 1), HCOMM_RX_NEW);
	EXPECT_EQ(place(&self->f, 0, 0, 1), HCOMM_RX_DUPLICATE);
	EXPECT_EQ(place(&self->f, WINDOW, 0, 1), HCOMM_RX_NEW);
	EXPECT_EQ(ngot, 1);
}

TEST_F(flow, parts_in_doubt_wait_for_the_report)
{
	struct hcomm_flow_op *op;
	unsigned int p;

	admit(&self->f, &self->op[0], 4);
	op = hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_BULK, &p);
	hcomm_flow_tx_posted(op, p, 0);
	op = hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_BULK, &p);
	hcomm_flow_tx_posted(op, p, 0);
	hcomm_flow_path_lost(&self->f, 0);
	EXPECT_EQ(hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_BULK, &p), NULL);
	/* the rest takes another path, parts 0 and 1 do not */
	ASSERT_EQ(post_all(&self->f, 1), 2);
	EXPECT_EQ(self->op[0].doubt, 3);
	EXPECT_EQ(self->op[0].posted, 12);
	EXPECT_TRUE(hcomm_flow_path_fenced(&self->f, 0));
	EXPECT_EQ(self->op[0].unposted, 3);
	ASSERT_EQ(hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_BULK, &p),
		  &self->op[0]);
	EXPECT_EQ(p, 0);
}

TEST_F(flow, replayed_ops_go_first)
{
	unsigned int p;

	admit(&self->f, &self->op[0], 1);
	admit(&self->f, &self->op[1], 1);
	ASSERT_EQ(post_all(&self->f, 0), 2);
	admit(&self->f, &self->op[2], 1);
	hcomm_flow_path_lost(&self->f, 0);
	hcomm_flow_path_fenced(&self->f, 0);
	EXPECT_EQ(hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_SMALL, &p),
		  &self->op[0]);
	hcomm_flow_tx_posted(&self->op[0], 0, 0);
	EXPECT_EQ(hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_SMALL, &p),
		  &self->op[1]);
}

/* Builds a report of @from's arrivals in one piece and applies it to @to. */
static int report(struct hcomm_flow *from, struct hcomm_flow *to,
		  struct list_head *done)
{
	struct hcomm_flow_cursor at = { 0 };
	unsigned int nops, ngets;
	u8 pairs[16 * 128];

	if (!hcomm_flow_report_build(from, &at, pairs, 128, &nops, &ngets))
		return -1;
	return hcomm_flow_report_apply(to, hcomm_flow_rx_ack(from),
				       from->tx.get_floor, pairs, nops, ngets,
				       done);
}

FIXTURE(pair)
{
	struct hcomm_flow a;
	struct hcomm_flow b;
	struct hcomm_flow_slot slots[2][WINDOW];
	struct hcomm_flow_get gets[2][HCOMM_FLOW_GETS];
	struct hcomm_flow_op op[80];
	struct hcomm_flow_op reply[80];
	struct list_head done;
};

FIXTURE_SETUP(pair)
{
	ngot = 0;
	memset(self->slots, 0, sizeof(self->slots));
	memset(self->gets, 0, sizeof(self->gets));
	hcomm_flow_init(&self->a, &ops, self->slots[0], WINDOW, self->gets[0]);
	hcomm_flow_init(&self->b, &ops, self->slots[1], WINDOW, self->gets[1]);
	INIT_LIST_HEAD(&self->done);
}

FIXTURE_TEARDOWN(pair)
{
}

TEST_F(pair, report_marks_what_is_placed_and_only_that)
{
	admit(&self->a, &self->op[0], 3);
	admit(&self->a, &self->op[1], 2);
	admit(&self->a, &self->op[2], 1);
	ASSERT_EQ(post_all(&self->a, 0), 6);
	place(&self->b, 0, 0, 3);
	place(&self->b, 0, 2, 3);
	place(&self->b, 1, 0, 2);
	place(&self->b, 1, 1, 2);
	hcomm_flow_path_lost(&self->a, 0);
	ASSERT_EQ(report(&self->b, &self->a, &self->done), 0);
	hcomm_flow_path_fenced(&self->a, 0);
	EXPECT_EQ(self->op[0].unposted, 2);
	EXPECT_EQ(self->op[0].placed, 5);
	EXPECT_EQ(self->op[1].unposted, 0);
	EXPECT_EQ(self->op[2].unposted, 1);
	EXPECT_EQ(count(&self->done), 0);
	place(&self->b, 0, 1, 3);
	ASSERT_EQ(hcomm_flow_tx_ack(&self->a, 1, &self->done), 0);
	EXPECT_EQ(count(&self->done), 1);
}

TEST_F(pair, report_carries_the_acknowledgment)
{
	admit(&self->a, &self->op[0], 1);
	post_all(&self->a, 0);
	place(&self->b, 0, 0, 1);
	hcomm_flow_path_lost(&self->a, 0);
	ASSERT_EQ(report(&self->b, &self->a, &self->done), 0);
	EXPECT_EQ(take(&self->done), &self->op[0]);
}

TEST_F(pair, reports_of_what_was_never_posted_are_refused)
{
	admit(&self->a, &self->op[0], 1);
	place(&self->b, 1, 0, 1);
	EXPECT_EQ(report(&self->b, &self->a, &self->done), -EPROTO);
	admit(&self->a, &self->op[1], 1);
	EXPECT_EQ(report(&self->b, &self->a, &self->done), -EPROTO);
	post_all(&self->a, 0);
	EXPECT_EQ(report(&self->b, &self->a, &self->done), 0);
}

static struct hcomm_wire_hdr reply(const struct hcomm_flow_op *op, int p,
				   int parts)
{
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_GET_PART, .seq = op->seq,
		.sem = (u32)op->number, .part = p, .parts = parts,
	};

	return h;
}

static int get(struct hcomm_flow *f, struct hcomm_flow_op *op)
{
	return hcomm_flow_tx_admit(f, op, HCOMM_FLOW_GET, HCOMM_QP_SMALL, 1);
}

TEST_F(pair, get_completes_when_acknowledged_and_answered)
{
	struct hcomm_wire_hdr h;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(get(&self->a, &self->op[i]), 0);
		post_all(&self->a, 0);
	}
	/* the first: acknowledged, then answered */
	hcomm_flow_tx_ack(&self->a, 1, &self->done);
	EXPECT_EQ(count(&self->done), 0);
	h = reply(&self->op[0], 1, 2);
	EXPECT_EQ(hcomm_flow_reply_place(&self->a, &h, &self->done), 0);
	EXPECT_EQ(hcomm_flow_reply_place(&self->a, &h, &self->done),
		  HCOMM_RX_DUPLICATE);
	h.part = 0;
	h.parts = 3;
	EXPECT_EQ(hcomm_flow_reply_check(&self->a, &h), HCOMM_RX_INCONSISTENT);
	h.parts = 2;
	EXPECT_EQ(hcomm_flow_reply_place(&self->a, &h, &self->done), 0);
	EXPECT_EQ(take(&self->done), &self->op[0]);
	EXPECT_EQ(self->a.tx.get_floor, 1);
	/* the second the other way round */
	h = reply(&self->op[1], 0, 1);
	EXPECT_EQ(hcomm_flow_reply_place(&self->a, &h, &self->done), 0);
	EXPECT_EQ(count(&self->done), 0);
	hcomm_flow_tx_ack(&self->a, 2, &self->done);
	EXPECT_EQ(take(&self->done), &self->op[1]);
	h.sem = 2;
	EXPECT_EQ(hcomm_flow_reply_check(&self->a, &h),
		  HCOMM_RX_OUT_OF_WINDOW);
}

TEST_F(pair, get_error_is_the_status)
{
	struct hcomm_wire_hdr h;

	get(&self->a, &self->op[0]);
	post_all(&self->a, 0);
	hcomm_flow_tx_ack(&self->a, 1, &self->done);
	h = reply(&self->op[0], 0, 1);
	h.type = HCOMM_WIRE_GET_ERR;
	h.aux = ERANGE;
	hcomm_flow_reply_place(&self->a, &h, &self->done);
	EXPECT_EQ(take(&self->done), &self->op[0]);
	EXPECT_EQ(self->op[0].status, -ERANGE);
}

TEST_F(pair, sixty_four_gets_count_from_the_oldest_unfinished)
{
	struct hcomm_wire_hdr h;
	int i;

	for (i = 0; i < HCOMM_FLOW_GETS; i++) {
		ASSERT_EQ(get(&self->a, &self->op[i]), 0);
		post_all(&self->a, 0);
		hcomm_flow_tx_ack(&self->a, i + 1, &self->done);
	}
	EXPECT_FALSE(hcomm_flow_tx_room(&self->a, HCOMM_FLOW_GET));
	EXPECT_TRUE(hcomm_flow_tx_room(&self->a, HCOMM_FLOW_OP));
	EXPECT_EQ(get(&self->a, &self->op[i]), -EAGAIN);
	h = reply(&self->op[1], 0, 1);
	hcomm_flow_reply_place(&self->a, &h, &self->done);
	EXPECT_EQ(get(&self->a, &self->op[i]), -EAGAIN);
	h = reply(&self->op[0], 0, 1);
	hcomm_flow_reply_place(&self->a, &h, &self->done);
	EXPECT_EQ(self->a.tx.get_floor, 2);
	EXPECT_EQ(get(&self->a, &self->op[i]), 0);
}

TEST_F(pair, replies_live_until_the_floor_passes)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_ACK };

	ASSERT_TRUE(hcomm_flow_tx_reply(&self->b, &self->reply[1], 1, 1,
					HCOMM_QP_BULK, 2));
	ASSERT_TRUE(hcomm_flow_tx_reply(&self->b, &self->reply[0], 0, 0,
					HCOMM_QP_BULK, 1));
	/* Asked for twice. */
	EXPECT_FALSE(hcomm_flow_tx_reply(&self->b, &self->reply[2], 2, 1,
					 HCOMM_QP_BULK, 1));
	EXPECT_EQ(hcomm_flow_tx_floor(&self->b, 1, &self->done), -EPROTO);
	ASSERT_EQ(post_all(&self->b, 0), 3);
	EXPECT_EQ(hcomm_flow_tx_floor(&self->b, 1, &self->done), 0);
	EXPECT_EQ(take(&self->done), &self->reply[0]);
	EXPECT_EQ(take(&self->done), NULL);
	hcomm_flow_path_lost(&self->b, 0);
	EXPECT_EQ(self->reply[1].doubt, 3);
	hcomm_flow_path_fenced(&self->b, 0);
	EXPECT_EQ(post_all(&self->b, 1), 2);
	self->a.tx.get_floor = 2;
	hcomm_flow_stamp(&self->a, &h);
	EXPECT_EQ(hcomm_flow_tx_floor(&self->b, h.aux, &self->done), 0);
	EXPECT_EQ(take(&self->done), &self->reply[1]);
	EXPECT_FALSE(hcomm_flow_tx_reply(&self->b, &self->reply[2], 1, 1,
					 HCOMM_QP_BULK, 1));
}

TEST_F(flow, only_untouched_ops_can_be_given_up)
{
	unsigned int p;

	admit(&self->f, &self->op[0], 4);
	admit(&self->f, &self->op[1], 4);
	ASSERT_EQ(hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_BULK, &p),
		  &self->op[0]);
	hcomm_flow_tx_posted(&self->op[0], p, 0);
	EXPECT_EQ(hcomm_flow_tx_void(&self->f, &self->op[0], -ETIMEDOUT),
		  -EBUSY);
	hcomm_flow_tx_unpost(&self->f, &self->op[0], p);
	EXPECT_TRUE(hcomm_flow_tx_untouched(&self->op[0]));
	ASSERT_EQ(hcomm_flow_tx_void(&self->f, &self->op[1], -ETIMEDOUT), 0);
	EXPECT_TRUE(self->op[1].voided);
	ASSERT_EQ(hcomm_flow_tx_peek(&self->f, 0, HCOMM_QP_SMALL, &p),
		  &self->op[1]);
	ASSERT_EQ(post_all(&self->f, 0), 5);
	hcomm_flow_path_lost(&self->f, 0);
	hcomm_flow_path_fenced(&self->f, 0);
	EXPECT_EQ(hcomm_flow_tx_void(&self->f, &self->op[0], -ETIMEDOUT),
		  -EBUSY);
	ASSERT_EQ(post_all(&self->f, 0), 5);
	hcomm_flow_tx_ack(&self->f, 2, &self->done);
	EXPECT_EQ(take(&self->done)->status, 0);
	EXPECT_EQ(take(&self->done)->status, -ETIMEDOUT);
}

TEST_F(flow, voided_get_does_not_hold_the_floor)
{
	get(&self->f, &self->op[0]);
	ASSERT_EQ(hcomm_flow_tx_void(&self->f, &self->op[0], -ETIMEDOUT), 0);
	EXPECT_EQ(self->f.tx.get_floor, 1);
	post_all(&self->f, 0);
	hcomm_flow_tx_ack(&self->f, 1, &self->done);
	EXPECT_EQ(take(&self->done), &self->op[0]);
}

TEST_F(flow, nack_holds_the_acknowledgment_back)
{
	place(&self->f, 0, 0, 1);
	hcomm_flow_rx_nack(&self->f, 1, 7);
	place(&self->f, 1, 0, 1);
	place(&self->f, 2, 0, 1);
	EXPECT_EQ(ngot, 3);
	EXPECT_EQ(hcomm_flow_rx_ack(&self->f), 1);
	hcomm_flow_rx_ctl_acked(&self->f, 7);
	EXPECT_EQ(hcomm_flow_rx_ack(&self->f), 1);
	hcomm_flow_rx_ctl_acked(&self->f, 8);
	EXPECT_EQ(hcomm_flow_rx_ack(&self->f), 3);
}

TEST_F(flow, window_counts_from_the_acknowledgment)
{
	int i;

	hcomm_flow_rx_nack(&self->f, 0, 0);
	for (i = 0; i < WINDOW; i++)
		ASSERT_EQ(place(&self->f, i, 0, 1), HCOMM_RX_NEW);
	EXPECT_EQ(place(&self->f, i, 0, 1), HCOMM_RX_OUT_OF_WINDOW);
	hcomm_flow_rx_ctl_acked(&self->f, 1);
	EXPECT_EQ(place(&self->f, i, 0, 1), HCOMM_RX_NEW);
}

TEST_F(flow, nack_is_the_status_of_its_op)
{
	admit(&self->f, &self->op[0], 1);
	admit(&self->f, &self->op[1], 1);
	post_all(&self->f, 0);
	EXPECT_EQ(hcomm_flow_tx_nack(&self->f, 1, -ESTALE), 0);
	EXPECT_EQ(hcomm_flow_tx_nack(&self->f, 2, -ESTALE), -EPROTO);
	hcomm_flow_tx_ack(&self->f, 2, &self->done);
	EXPECT_EQ(take(&self->done)->status, 0);
	EXPECT_EQ(take(&self->done)->status, -ESTALE);
}

TEST_F(flow, acks_leave_by_count_or_timer)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_EAGER };
	int i;

	EXPECT_EQ(hcomm_flow_ack_due(&self->f), HCOMM_ACK_NONE);
	place(&self->f, 1, 0, 1);
	EXPECT_EQ(hcomm_flow_ack_due(&self->f), HCOMM_ACK_NONE);
	place(&self->f, 0, 0, 1);
	EXPECT_EQ(hcomm_flow_ack_due(&self->f), HCOMM_ACK_LATER);
	for (i = 2; i < WINDOW / 2; i++)
		place(&self->f, i, 0, 1);
	EXPECT_EQ(hcomm_flow_ack_due(&self->f), HCOMM_ACK_NOW);
	hcomm_flow_stamp(&self->f, &h);
	EXPECT_EQ(h.ack, WINDOW / 2);
	EXPECT_EQ(h.aux, 0);
	EXPECT_EQ(hcomm_flow_ack_due(&self->f), HCOMM_ACK_NONE);
}

TEST_F(flow, stamp_names_both_ends)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_SIGNAL };

	self->f.group = 1;
	self->f.peer_group = 2;
	self->f.src = 3;
	self->f.dst = 4;
	hcomm_flow_stamp(&self->f, &h);
	EXPECT_EQ(h.group, 2);
	EXPECT_EQ(h.src, 3);
	EXPECT_EQ(h.dst, 4);
}

TEST_F(flow, kill_hands_everything_back_once)
{
	int i;

	admit(&self->f, &self->op[0], 4);
	get(&self->f, &self->op[1]);
	get(&self->f, &self->op[2]);
	hcomm_flow_tx_mark(&self->f, &self->op[3]);
	hcomm_flow_tx_reply(&self->f, &self->op[4], 0, 0, HCOMM_QP_BULK, 2);
	post_all(&self->f, 0);
	hcomm_flow_tx_nack(&self->f, 0, -ERANGE);
	hcomm_flow_tx_ack(&self->f, 2, &self->done);
	EXPECT_EQ(take(&self->done), &self->op[0]);
	EXPECT_EQ(take(&self->done), NULL);
	hcomm_flow_path_lost(&self->f, 0);
	hcomm_flow_kill(&self->f, -ECONNRESET, &self->done);
	EXPECT_EQ(count(&self->done), 4);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(take(&self->done)->status, -ECONNRESET);
	EXPECT_FALSE(hcomm_flow_path_fenced(&self->f, 0));
	EXPECT_EQ(hcomm_flow_tx_ack(&self->f, 3, &self->done), 0);
	EXPECT_EQ(count(&self->done), 0);
}

/* Its floor passed gets whose replies the peer may not have posted yet. */
TEST_F(flow, what_was_killed_is_in_no_report)
{
	get(&self->f, &self->op[0]);
	EXPECT_FALSE(hcomm_flow_report_empty(&self->f));
	hcomm_flow_kill(&self->f, -ECONNRESET, &self->done);
	EXPECT_TRUE(hcomm_flow_report_empty(&self->f));
}

TEST_F(flow, a_get_waits_from_its_request_to_its_reply)
{
	EXPECT_FALSE(hcomm_flow_tx_getting(&self->f));
	get(&self->f, &self->op[0]);
	EXPECT_FALSE(hcomm_flow_tx_getting(&self->f));
	post_all(&self->f, 0);
	EXPECT_TRUE(hcomm_flow_tx_getting(&self->f));
	hcomm_flow_tx_ack(&self->f, 1, &self->done);
	EXPECT_TRUE(hcomm_flow_tx_getting(&self->f));
	hcomm_flow_kill(&self->f, -ECONNRESET, &self->done);
	EXPECT_FALSE(hcomm_flow_tx_getting(&self->f));
}

/* Refusals are numbered in one order and may be told to the flow in another. */
TEST_F(flow, cap_is_lifted_by_the_last_of_its_refusals)
{
	hcomm_flow_rx_nack(&self->f, 1, 8);
	hcomm_flow_rx_nack(&self->f, 0, 7);
	hcomm_flow_rx_ctl_acked(&self->f, 8);
	EXPECT_EQ(self->f.rx.cap, 0);
	hcomm_flow_rx_ctl_acked(&self->f, 9);
	EXPECT_EQ(self->f.rx.cap, UINT64_MAX);
}

TEST_HARNESS_MAIN
