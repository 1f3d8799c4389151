// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Epochs, reports and replay between two sides of a session. */
#include <stdlib.h>

#include <kselftest_harness.h>

#include "core/fence.h"

#define WINDOW	HCOMM_FLOW_WINDOW
#define FLOWS	3

struct side {
	struct hcomm_fence fence;
	struct hcomm_flow flow[FLOWS];
	struct hcomm_flow_slot *slots[FLOWS];
	struct hcomm_flow_get gets[FLOWS][HCOMM_FLOW_GETS];
	int kicks;
};

static struct side *sides;
static struct hcomm_flow_op (*op)[WINDOW];
static struct list_head done;

static void deliver(struct hcomm_flow *flow, u64 seq,
		    const struct hcomm_flow_slot *slot)
{
}

static const struct hcomm_flow_ops flow_ops = { .deliver = deliver };

static struct hcomm_flow *find(struct hcomm_fence *fence, u32 group, u32 src,
			       u32 dst)
{
	struct hcomm_flow *flow;

	list_for_each_entry(flow, &fence->flows, node)
		if (flow->group == group && flow->src == src &&
		    flow->dst == dst)
			return flow;
	return NULL;
}

static void kick(struct hcomm_fence *fence, struct hcomm_flow *flow)
{
	container_of(fence, struct side, fence)->kicks++;
}

static const struct hcomm_fence_ops fence_ops = { .find = find, .kick = kick };

FIXTURE(fence)
{
	u8 msg[HCOMM_WIRE_MESSAGE];
	struct hcomm_fence_result r;
};

FIXTURE_SETUP(fence)
{
	struct side *s;
	int i, k;

	sides = calloc(2, sizeof(*sides));
	op = calloc(FLOWS, sizeof(*op));
	INIT_LIST_HEAD(&done);
	for (i = 0; i < 2; i++) {
		s = &sides[i];
		hcomm_fence_init(&s->fence, &fence_ops, HCOMM_WIRE_PAYLOAD);
		for (k = 0; k < FLOWS; k++) {
			s->slots[k] = calloc(WINDOW, sizeof(*s->slots[k]));
			hcomm_flow_init(&s->flow[k], &flow_ops, s->slots[k],
					WINDOW, s->gets[k]);
			s->flow[k].group = 10 + i;
			s->flow[k].peer_group = 11 - i;
			s->flow[k].src = 100 * i + k;
			s->flow[k].dst = 100 * !i + k;
			hcomm_fence_flow_add(&s->fence, &s->flow[k]);
		}
	}
	memset(&self->r, 0, sizeof(self->r));
}

FIXTURE_TEARDOWN(fence)
{
	int i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < FLOWS; k++)
			free(sides[i].slots[k]);
	free(sides);
	free(op);
}

static void connect(int path)
{
	struct hcomm_fence_result r = { 0 };
	u32 epoch;

	if (hcomm_fence_connect(&sides[0].fence, path, &epoch) ||
	    hcomm_fence_accept(&sides[1].fence, path, epoch, &r))
		abort();
	hcomm_fence_connected(&sides[0].fence, path, &r);
	hcomm_fence_connected(&sides[1].fence, path, &r);
}

static void lose(int side, int path)
{
	struct hcomm_fence_result r = { 0 };

	hcomm_fence_lost(&sides[side].fence, path);
	hcomm_fence_drained(&sides[side].fence, path, &r);
}

/* Moves one message from @from over @via; its length, or 0, or an error. */
static int pass(int from, int via, struct hcomm_fence_result *r)
{
	u8 msg[HCOMM_WIRE_MESSAGE];
	struct hcomm_wire_msg m;
	u32 len;
	int ret;

	len = hcomm_fence_next(&sides[from].fence, via, 0, msg);
	if (!len)
		return 0;
	ret = hcomm_wire_decode(msg, len, HCOMM_QP_SMALL, &m);
	if (!ret)
		ret = hcomm_fence_receive(&sides[!from].fence, via, &m, &done,
					  r);
	return ret ? ret : (int)len;
}

/* Both directions until nothing moves; how many messages. */
static int settle(int via)
{
	struct hcomm_fence_result r = { 0 };
	int n = 0;

	while (pass(0, via, &r) > 0 || pass(1, via, &r) > 0)
		n++;
	return n;
}

/* @n ops of one part on flow @k of side 0, posted on @path. */
static void post(int k, int path, int n)
{
	struct hcomm_flow *f = &sides[0].flow[k];
	unsigned int part;
	int i;

	for (i = 0; i < n; i++) {
		hcomm_flow_tx_admit(f, &op[k][i], HCOMM_FLOW_OP,
				    HCOMM_QP_BULK, 1);
		hcomm_flow_tx_peek(f, path, HCOMM_QP_BULK, &part);
		hcomm_flow_tx_posted(&op[k][i], part, path);
	}
}

static void arrive(int k, u64 seq)
{
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_PART, .seq = seq, .parts = 1,
	};

	hcomm_flow_rx_place(&sides[1].flow[k], &h, NULL);
}

TEST_F(fence, first_connection_needs_no_report)
{
	connect(0);
	EXPECT_TRUE(hcomm_fence_may_post(&sides[0].fence, 0));
	EXPECT_TRUE(hcomm_fence_may_post(&sides[1].fence, 0));
	EXPECT_FALSE(hcomm_fence_wants(&sides[0].fence, 0));
	EXPECT_EQ(settle(0), 0);
}

TEST_F(fence, replay_waits_for_the_peers_report)
{
	connect(0);
	connect(1);
	post(0, 0, 3);
	arrive(0, 1);
	lose(0, 0);
	EXPECT_EQ(op[0][0].doubt, 1);
	/* the peer learns of the loss from our report */
	ASSERT_GT(pass(0, 1, &self->r), 0);
	EXPECT_EQ(self->r.lost, 1);
	EXPECT_EQ(op[0][0].doubt, 1);
	lose(1, 0);
	settle(1);
	EXPECT_EQ(op[0][0].unposted, 1);
	EXPECT_EQ(op[0][1].placed, 1);
	EXPECT_EQ(op[0][2].unposted, 1);
	EXPECT_GT(sides[0].kicks, 0);
	EXPECT_FALSE(hcomm_fence_pending(&sides[0].fence, 0));
	EXPECT_FALSE(hcomm_fence_pending(&sides[1].fence, 0));
}

TEST_F(fence, no_report_before_the_drain)
{
	connect(0);
	connect(1);
	hcomm_fence_lost(&sides[0].fence, 0);
	EXPECT_FALSE(hcomm_fence_wants(&sides[0].fence, 1));
	hcomm_fence_drained(&sides[0].fence, 0, &self->r);
	EXPECT_TRUE(self->r.send);
	EXPECT_TRUE(hcomm_fence_wants(&sides[0].fence, 1));
}

TEST_F(fence, no_replay_before_our_own_drain)
{
	connect(0);
	connect(1);
	post(0, 0, 1);
	hcomm_fence_lost(&sides[0].fence, 0);
	lose(1, 0);
	settle(1);
	EXPECT_EQ(op[0][0].doubt, 1);
	hcomm_fence_drained(&sides[0].fence, 0, &self->r);
	EXPECT_EQ(op[0][0].unposted, 1);
}

TEST_F(fence, only_path_is_fenced_over_its_next_connection)
{
	connect(0);
	post(0, 0, 2);
	lose(0, 0);
	lose(1, 0);
	connect(0);
	EXPECT_FALSE(hcomm_fence_may_post(&sides[0].fence, 0));
	EXPECT_EQ(op[0][0].doubt, 1);
	ASSERT_GT(pass(1, 0, &self->r), 0);
	EXPECT_EQ(self->r.cleared, 1);
	EXPECT_TRUE(hcomm_fence_may_post(&sides[0].fence, 0));
	EXPECT_EQ(op[0][0].unposted, 1);
}

TEST_F(fence, large_report_comes_in_chunks_and_counts_when_whole)
{
	int i, chunks = 0;

	connect(0);
	connect(1);
	post(1, 0, WINDOW);
	for (i = 1; i < WINDOW; i += 2)
		arrive(1, i);
	lose(0, 0);
	lose(1, 0);
	while (hcomm_fence_may_post(&sides[1].fence, 1) &&
	       op[1][0].doubt && chunks < 100) {
		ASSERT_GT(pass(1, 1, &self->r), 0);
		chunks++;
	}
	/* 512 pairs of 16 bytes, 62 in a chunk */
	EXPECT_EQ(chunks, 9);
	for (i = 0; i < WINDOW; i++)
		ASSERT_EQ(op[1][i].unposted, !(i & 1));
}

TEST_F(fence, report_starts_again_when_its_path_is_lost)
{
	int i;

	connect(0);
	connect(1);
	connect(2);
	post(1, 0, WINDOW);
	for (i = 1; i < WINDOW; i += 2)
		arrive(1, i);
	lose(0, 0);
	lose(1, 0);
	ASSERT_GT(pass(1, 1, &self->r), 0);
	ASSERT_GT(pass(1, 1, &self->r), 0);
	lose(0, 1);
	lose(1, 1);
	EXPECT_EQ(op[1][0].doubt, 1);
	settle(2);
	for (i = 0; i < WINDOW; i++)
		ASSERT_EQ(op[1][i].unposted, !(i & 1));
	EXPECT_FALSE(hcomm_fence_pending(&sides[0].fence, 0));
	EXPECT_FALSE(hcomm_fence_pending(&sides[0].fence, 1));
}

TEST_F(fence, lost_answer_is_asked_for_again)
{
	connect(0);
	connect(1);
	connect(2);
	lose(0, 0);
	lose(1, 0);
	/* whole report arrives, its FENCE_ACK is lost with path 1 */
	ASSERT_GT(pass(1, 1, &self->r), 0);
	hcomm_fence_next(&sides[0].fence, 1, 0, self->msg);
	lose(0, 1);
	lose(1, 1);
	EXPECT_TRUE(hcomm_fence_pending(&sides[1].fence, 0));
	settle(2);
	EXPECT_FALSE(hcomm_fence_pending(&sides[1].fence, 0));
}

TEST_F(fence, next_connection_waits_for_the_drain)
{
	u32 epoch;

	connect(0);
	hcomm_fence_lost(&sides[0].fence, 0);
	EXPECT_EQ(hcomm_fence_connect(&sides[0].fence, 0, &epoch), -EBUSY);
	hcomm_fence_drained(&sides[0].fence, 0, &self->r);
	ASSERT_EQ(hcomm_fence_connect(&sides[0].fence, 0, &epoch), 0);
	EXPECT_EQ(epoch, 2);
	/* the acceptor thought the old one alive */
	EXPECT_EQ(hcomm_fence_accept(&sides[1].fence, 0, 2, &self->r), -EBUSY);
	EXPECT_EQ(self->r.lost, 1);
	hcomm_fence_lost(&sides[1].fence, 0);
	EXPECT_EQ(hcomm_fence_accept(&sides[1].fence, 0, 2, &self->r), -EBUSY);
	hcomm_fence_drained(&sides[1].fence, 0, &self->r);
	EXPECT_EQ(hcomm_fence_accept(&sides[1].fence, 0, 2, &self->r), 0);
	EXPECT_EQ(hcomm_fence_accept(&sides[1].fence, 0, 2, &self->r),
		  -ESTALE);
}

TEST_F(fence, first_request_is_not_bound_by_an_earlier_one)
{
	struct hcomm_fence *b = &sides[1].fence;

	ASSERT_EQ(hcomm_fence_accept_first(b, 0, U32_MAX, &self->r), 0);
	EXPECT_EQ(hcomm_fence_accept_first(b, 0, 1, &self->r), -EBUSY);
	EXPECT_EQ(self->r.lost, 1);
	hcomm_fence_lost(b, 0);
	EXPECT_EQ(hcomm_fence_accept_first(b, 0, 1, &self->r), -EBUSY);
	hcomm_fence_drained(b, 0, &self->r);
	EXPECT_EQ(hcomm_fence_accept_first(b, 0, 1, &self->r), 0);
	EXPECT_EQ(hcomm_fence_accept(b, 0, 1, &self->r), -ESTALE);
}

TEST_F(fence, report_rules_out_connections_that_are_still_asked_for)
{
	u32 epoch;

	connect(1);
	ASSERT_EQ(hcomm_fence_connect(&sides[0].fence, 0, &epoch), 0);
	lose(0, 0);
	settle(1);
	EXPECT_EQ(hcomm_fence_accept(&sides[1].fence, 0, epoch, &self->r),
		  -ESTALE);
	ASSERT_EQ(hcomm_fence_connect(&sides[0].fence, 0, &epoch), 0);
	EXPECT_EQ(hcomm_fence_accept(&sides[1].fence, 0, epoch, &self->r), 0);
}

TEST_F(fence, report_about_the_connection_it_came_by_is_refused)
{
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_FENCED, .flags = HCOMM_WIRE_F_LAST,
		.part = 0, .generation = 1, .aux = 1,
	};
	struct hcomm_wire_msg m = { .h = h };

	connect(0);
	EXPECT_EQ(hcomm_fence_receive(&sides[0].fence, 0, &m, &done, &self->r),
		  -EPROTO);
	m.h.type = HCOMM_WIRE_FENCE_ACK;
	EXPECT_EQ(hcomm_fence_receive(&sides[0].fence, 0, &m, &done, &self->r),
		  -EPROTO);
	m.h.part = HCOMM_PATHS;
	EXPECT_EQ(hcomm_fence_receive(&sides[0].fence, 0, &m, &done, &self->r),
		  -EPROTO);
}

TEST_F(fence, flow_that_ends_while_it_is_told_is_left_out)
{
	int i;

	connect(0);
	connect(1);
	post(0, 0, WINDOW);
	post(2, 0, 4);
	for (i = 1; i < WINDOW; i += 2)
		arrive(0, i);
	arrive(2, 1);
	lose(0, 0);
	lose(1, 0);
	ASSERT_GT(pass(1, 1, &self->r), 0);
	hcomm_fence_flow_del(&sides[1].fence, &sides[1].flow[0]);
	settle(1);
	EXPECT_EQ(op[2][0].unposted, 1);
	EXPECT_EQ(op[2][1].placed, 1);
	hcomm_fence_flow_del(&sides[0].fence, &sides[0].flow[0]);
}

TEST_F(fence, several_losses_are_one_report_later)
{
	connect(0);
	connect(1);
	post(0, 0, 2);
	lose(0, 0);
	lose(1, 0);
	connect(0);
	lose(0, 0);
	lose(1, 0);
	connect(0);
	EXPECT_FALSE(hcomm_fence_may_post(&sides[0].fence, 0));
	settle(0);
	EXPECT_TRUE(hcomm_fence_may_post(&sides[0].fence, 0));
	EXPECT_EQ(op[0][1].unposted, 1);
}

TEST_HARNESS_MAIN
