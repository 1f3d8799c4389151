// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Offsets in a heap. Staging and messages shrink until the library's part is
 * at most half of a small heap: a locked-memory limit of 8 MiB is common.
 */
#include <errno.h>
#include <string.h>

#include "memory/layout.h"

#define PAGE		((size_t)65536)	/* the largest page size there is */
#define STAGE_MAX	((size_t)256 << 10)
#define STAGE_MIN	((size_t)16 << 10)
#define MESSAGE_MAX	((size_t)64 << 10)
#define MESSAGE_MIN	((size_t)1 << 10)

static size_t align_up(size_t value, size_t align)
{
	return (value + align - 1) / align * align;
}

static void place(struct hcomm_layout *l)
{
	size_t at = align_up(sizeof(struct hcomm_ctrl), HCOMM_LINE);

	l->tail = at;
	at += (size_t)l->n * HCOMM_LINE;
	l->head = at;
	at += (size_t)l->n * HCOMM_LINE;
	l->waits = at;
	at += (size_t)l->n * HCOMM_LINE;
	l->sems = at;
	at += (size_t)l->user_sems * HCOMM_LINE;
	l->stage_in = align_up(at, 4096);
	l->stage_out = l->stage_in + HCOMM_STAGE_SLOTS * l->stage;
	l->mail = l->stage_out + HCOMM_STAGE_SLOTS * l->stage;
	l->mail_slot = sizeof(struct hcomm_mail_head) + l->message;
	l->out = l->mail + (size_t)l->n * HCOMM_MAIL_SLOTS * l->mail_slot;
	at = l->out + HCOMM_OUT_SLOTS * l->mail_slot;
	l->user = align_up(at, PAGE);
}

int hcomm_layout_init(struct hcomm_layout *layout, size_t bytes, int n,
		      uint32_t user_sems)
{
	memset(layout, 0, sizeof(*layout));
	layout->n = n;
	layout->user_sems = user_sems;
	layout->bytes = bytes;
	layout->stage = STAGE_MAX;
	layout->message = MESSAGE_MAX;
	place(layout);
	while (layout->user > bytes / 2) {
		if (layout->message > MESSAGE_MIN)
			layout->message /= 2;
		if (layout->stage > STAGE_MIN)
			layout->stage /= 2;
		else if (layout->message == MESSAGE_MIN)
			break;
		place(layout);
	}
	return layout->user < bytes ? 0 : -ENOSPC;
}
