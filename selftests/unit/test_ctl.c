// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Control messages arrive once and in order although paths are lost. */
#include <kselftest_harness.h>

#include "core/ctl.h"

FIXTURE(ctl)
{
	struct hcomm_ctl tx;
	struct hcomm_ctl rx;
	struct hcomm_ctl_msg msg[8];
	struct list_head done;
};

FIXTURE_SETUP(ctl)
{
	int i;

	hcomm_ctl_init(&self->tx);
	hcomm_ctl_init(&self->rx);
	INIT_LIST_HEAD(&self->done);
	for (i = 0; i < 4; i++)
		hcomm_ctl_queue(&self->tx, &self->msg[i]);
}

FIXTURE_TEARDOWN(ctl)
{
}

static u64 send(struct hcomm_ctl *ctl, int via)
{
	struct hcomm_ctl_msg *msg = hcomm_ctl_peek(ctl, via);

	if (!msg)
		return U64_MAX;
	hcomm_ctl_sent(ctl, via);
	return msg->hdr.seq;
}

TEST_F(ctl, stream_stays_on_one_path)
{
	EXPECT_EQ(send(&self->tx, 2), 0);
	EXPECT_EQ(hcomm_ctl_peek(&self->tx, 1), NULL);
	EXPECT_EQ(send(&self->tx, 2), 1);
	EXPECT_EQ(send(&self->tx, 2), 2);
	EXPECT_EQ(send(&self->tx, 2), 3);
	EXPECT_EQ(send(&self->tx, 2), U64_MAX);
	EXPECT_EQ(hcomm_ctl_queue(&self->tx, &self->msg[4]), 4);
	EXPECT_EQ(send(&self->tx, 2), 4);
}

TEST_F(ctl, what_is_not_acknowledged_goes_again_on_another_path)
{
	int i;

	for (i = 0; i < 4; i++)
		send(&self->tx, 0);
	ASSERT_EQ(hcomm_ctl_ack(&self->tx, 2, &self->done), 0);
	hcomm_ctl_path_lost(&self->tx, 1);
	EXPECT_EQ(hcomm_ctl_peek(&self->tx, 0), NULL);
	hcomm_ctl_path_lost(&self->tx, 0);
	EXPECT_EQ(send(&self->tx, 1), 2);
	EXPECT_EQ(send(&self->tx, 1), 3);
}

TEST_F(ctl, receiver_takes_exactly_the_next)
{
	EXPECT_EQ(hcomm_ctl_receive(&self->rx, 0), 1);
	EXPECT_EQ(hcomm_ctl_receive(&self->rx, 0), 0);
	EXPECT_EQ(hcomm_ctl_receive(&self->rx, 2), -EPROTO);
	EXPECT_EQ(hcomm_ctl_receive(&self->rx, 1), 1);
	EXPECT_EQ(hcomm_ctl_ack_value(&self->rx), 2);
}

TEST_F(ctl, acks_hand_messages_back_in_order)
{
	struct hcomm_ctl_msg *msg;

	send(&self->tx, 0);
	send(&self->tx, 0);
	ASSERT_EQ(hcomm_ctl_ack(&self->tx, 1, &self->done), 0);
	ASSERT_EQ(hcomm_ctl_ack(&self->tx, 1, &self->done), 0);
	msg = list_first_entry(&self->done, struct hcomm_ctl_msg, node);
	EXPECT_EQ(msg, &self->msg[0]);
	EXPECT_TRUE(list_is_last(&msg->node, &self->done));
	EXPECT_EQ(hcomm_ctl_ack(&self->tx, 5, &self->done), -EPROTO);
}

/* After a loss the peer may acknowledge what is queued to go again. */
TEST_F(ctl, ack_before_the_repetition_skips_it)
{
	send(&self->tx, 0);
	send(&self->tx, 0);
	send(&self->tx, 0);
	hcomm_ctl_path_lost(&self->tx, 0);
	ASSERT_EQ(hcomm_ctl_ack(&self->tx, 3, &self->done), 0);
	EXPECT_EQ(send(&self->tx, 1), 3);
	ASSERT_EQ(hcomm_ctl_ack(&self->tx, 4, &self->done), 0);
	EXPECT_EQ(hcomm_ctl_peek(&self->tx, 1), NULL);
}

TEST_F(ctl, acknowledgment_is_due_by_count_and_after_a_loss)
{
	int i;

	hcomm_ctl_path_lost(&self->rx, 0);
	EXPECT_EQ(self->rx.rx_pending, 0);
	for (i = 0; i < HCOMM_CTL_ACK_AFTER; i++) {
		EXPECT_FALSE(hcomm_ctl_ack_due(&self->rx));
		hcomm_ctl_receive(&self->rx, i);
	}
	EXPECT_TRUE(hcomm_ctl_ack_due(&self->rx));
	EXPECT_EQ(hcomm_ctl_ack_value(&self->rx), HCOMM_CTL_ACK_AFTER);
	EXPECT_EQ(self->rx.rx_pending, 0);
	hcomm_ctl_path_lost(&self->rx, 0);
	EXPECT_EQ(self->rx.rx_pending, 1);
}

TEST_F(ctl, flush_hands_everything_back)
{
	int n = 0;

	send(&self->tx, 0);
	hcomm_ctl_flush(&self->tx, &self->done);
	while (!list_empty(&self->done)) {
		list_del_init(self->done.next);
		n++;
	}
	EXPECT_EQ(n, 4);
	EXPECT_EQ(hcomm_ctl_peek(&self->tx, 0), NULL);
}

TEST(only_answers_that_nobody_notes_swamp)
{
	static struct hcomm_ctl_msg msg[HCOMM_CTL_ANSWERS_MAX + 2];
	struct hcomm_ctl ctl;
	struct list_head done;
	int i;

	INIT_LIST_HEAD(&done);
	hcomm_ctl_init(&ctl);
	for (i = 0; i <= HCOMM_CTL_ANSWERS_MAX; i++) {
		msg[i].answer = i;
		hcomm_ctl_queue(&ctl, &msg[i]);
	}
	EXPECT_FALSE(hcomm_ctl_swamped(&ctl));
	/* The first was none. */
	ASSERT_EQ(hcomm_ctl_ack(&ctl, 1, &done), 0);
	msg[i].answer = true;
	hcomm_ctl_queue(&ctl, &msg[i]);
	EXPECT_TRUE(hcomm_ctl_swamped(&ctl));
	ASSERT_EQ(hcomm_ctl_ack(&ctl, 2, &done), 0);
	EXPECT_FALSE(hcomm_ctl_swamped(&ctl));
	hcomm_ctl_flush(&ctl, &done);
	EXPECT_EQ(ctl.answers, 0);
}

TEST_HARNESS_MAIN
