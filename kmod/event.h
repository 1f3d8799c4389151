/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events are state: one pending entry per (kind, rank), merged and counted
 * until the ring has room; a remote cause can never be pushed back. Windows
 * are too many for an entry each: their events share a pool and merge into one
 * entry of the kind when it is empty.
 */
#ifndef HCOMM_EVENT_H
#define HCOMM_EVENT_H

#include <linux/types.h>

#include "../uapi/hcomm.h"

struct hcomm_member;

struct hcomm_event_slot;

struct hcomm_events {
	struct hcomm_event_slot *slots;	/* made at join, so raising cannot fail */
	u32 first, last;		/* pending slots in order of first cause */
	u32 free;			/* pool for events about windows */
	u64 merged;
};

int hcomm_events_init(struct hcomm_member *member);
void hcomm_events_free(struct hcomm_member *member);

/* Records and moves what fits to the ring. Member lock held. */
void hcomm_event_raise(struct hcomm_member *member, enum hcomm_event_kind kind,
		       u32 rank, u64 value);
/* Refills the ring after the process consumed. Member lock held. */
void hcomm_events_flush(struct hcomm_member *member);

#endif
