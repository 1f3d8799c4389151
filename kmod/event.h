/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Events are state: one pending entry per (kind, rank), merged and counted
 * until the ring has room; a remote cause can never be pushed back.
 */
#ifndef HCOMM_EVENT_H
#define HCOMM_EVENT_H

#include <linux/list.h>
#include <linux/types.h>

#include "../uapi/hcomm.h"

struct hcomm_member;

struct hcomm_events {
	struct list_head pending;	/* dirty entries in order of first cause */
	void *slots;			/* event.c: one per kind and rank, made at join */
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
