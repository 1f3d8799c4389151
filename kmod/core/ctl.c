// SPDX-License-Identifier: GPL-2.0
/*
 * Order and repetition of the control stream
 *
 * Owns the sequence numbers and the order of kept messages; the session's
 * driver encodes, posts and handles them under the session lock.
 */
#include "ctl.h"

void hcomm_ctl_init(struct hcomm_ctl *ctl)
{
	memset(ctl, 0, sizeof(*ctl));
	INIT_LIST_HEAD(&ctl->queue);
	ctl->via = HCOMM_CTL_NO_PATH;
}

u64 hcomm_ctl_queue(struct hcomm_ctl *ctl, struct hcomm_ctl_msg *msg)
{
	msg->hdr.seq = ctl->tx_next++;
	list_add_tail(&msg->node, &ctl->queue);
	ctl->answers += msg->answer;
	if (!ctl->unsent)
		ctl->unsent = msg;
	return msg->hdr.seq;
}

struct hcomm_ctl_msg *hcomm_ctl_peek(struct hcomm_ctl *ctl, unsigned int via)
{
	if (ctl->via != HCOMM_CTL_NO_PATH && ctl->via != via)
		return NULL;
	return ctl->unsent;
}

void hcomm_ctl_sent(struct hcomm_ctl *ctl, unsigned int via)
{
	struct hcomm_ctl_msg *msg = ctl->unsent;

	ctl->via = via;
	ctl->unsent = list_is_last(&msg->node, &ctl->queue) ?
		      NULL : list_next_entry(msg, node);
}

void hcomm_ctl_path_lost(struct hcomm_ctl *ctl, unsigned int path)
{
	/* an acknowledgment may have gone with it */
	if (ctl->rx_next)
		ctl->rx_pending++;
	if (ctl->via != path)
		return;
	ctl->via = HCOMM_CTL_NO_PATH;
	ctl->unsent = list_empty(&ctl->queue) ? NULL :
		      list_first_entry(&ctl->queue, struct hcomm_ctl_msg, node);
}

int hcomm_ctl_ack(struct hcomm_ctl *ctl, u64 next, struct list_head *done)
{
	struct hcomm_ctl_msg *msg;

	if (next <= ctl->tx_una)
		return 0;
	if (next > ctl->tx_next)
		return -EPROTO;
	ctl->tx_una = next;
	while (!list_empty(&ctl->queue)) {
		msg = list_first_entry(&ctl->queue, struct hcomm_ctl_msg, node);
		if (msg->hdr.seq >= next)
			break;
		if (ctl->unsent == msg)
			ctl->unsent = list_is_last(&msg->node, &ctl->queue) ?
				      NULL : list_next_entry(msg, node);
		ctl->answers -= msg->answer;
		list_move_tail(&msg->node, done);
	}
	return 0;
}

int hcomm_ctl_receive(struct hcomm_ctl *ctl, u64 seq)
{
	if (seq > ctl->rx_next)
		return -EPROTO;
	ctl->rx_pending++;
	if (seq < ctl->rx_next)
		return 0;
	ctl->rx_next++;
	return 1;
}

u64 hcomm_ctl_ack_value(struct hcomm_ctl *ctl)
{
	ctl->rx_pending = 0;
	return ctl->rx_next;
}

void hcomm_ctl_flush(struct hcomm_ctl *ctl, struct list_head *done)
{
	struct hcomm_ctl_msg *msg, *next;

	ctl->unsent = NULL;
	ctl->answers = 0;
	list_for_each_entry_safe(msg, next, &ctl->queue, node)
		list_move_tail(&msg->node, done);
}
