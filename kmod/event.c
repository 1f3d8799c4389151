// SPDX-License-Identifier: GPL-2.0
/*
 * Events of a member: a table of slots made at join and a list through it of
 * what waits for room in the ring. A kind that is about a rank has a slot for
 * every rank and one for "no rank"; the two kinds about windows draw from a
 * pool and have one more slot each for what came when the pool was empty.
 *
 * Locks: the member lock, for all of it.
 */
#include <linux/slab.h>

#include "member.h"
#include "event.h"
#include "proc.h"

#define HCOMM_EVENT_NIL		U32_MAX
#define HCOMM_EVENT_POOL	256
#define HCOMM_EVENT_KINDS	9	/* kinds count from 1 */

struct hcomm_event_slot {
	u32 kind;
	u32 rank;
	u64 value;
	u32 count;			/* 0: not pending */
	u32 next;
};

static bool hcomm_event_about_window(enum hcomm_event_kind kind)
{
	return kind == HCOMM_EVENT_QUIESCED ||
	       kind == HCOMM_EVENT_NOT_QUIESCED;
}

/* Slots by (kind, rank); those of the window kinds are the merged ones. */
static u32 hcomm_event_fixed(struct hcomm_member *member)
{
	return HCOMM_EVENT_KINDS * (member->group->size + 1);
}

int hcomm_events_init(struct hcomm_member *member)
{
	struct hcomm_events *events = &member->events;
	u32 fixed = hcomm_event_fixed(member);
	u32 i;

	events->slots = kvcalloc(fixed + HCOMM_EVENT_POOL,
				 sizeof(*events->slots), GFP_KERNEL_ACCOUNT);
	if (!events->slots)
		return -ENOMEM;
	events->first = HCOMM_EVENT_NIL;
	events->last = HCOMM_EVENT_NIL;
	events->free = HCOMM_EVENT_NIL;
	for (i = fixed; i < fixed + HCOMM_EVENT_POOL; i++) {
		events->slots[i].next = events->free;
		events->free = i;
	}
	return 0;
}

void hcomm_events_free(struct hcomm_member *member)
{
	kvfree(member->events.slots);
}

static u32 hcomm_event_slot(struct hcomm_member *member,
			    enum hcomm_event_kind kind, u32 rank)
{
	struct hcomm_events *events = &member->events;
	u32 size = member->group->size;
	u32 i;

	if (hcomm_event_about_window(kind)) {
		i = events->free;
		if (i != HCOMM_EVENT_NIL) {
			events->free = events->slots[i].next;
			return i;
		}
		rank = size;
	}
	return kind * (size + 1) + min(rank, size);
}

void hcomm_event_raise(struct hcomm_member *member, enum hcomm_event_kind kind,
		       u32 rank, u64 value)
{
	struct hcomm_events *events = &member->events;
	u32 i = hcomm_event_slot(member, kind, rank);
	struct hcomm_event_slot *slot = &events->slots[i];

	lockdep_assert_held(&member->lock);
	slot->kind = kind;
	slot->rank = rank;
	slot->value = value;
	if (hcomm_event_about_window(kind) && i < hcomm_event_fixed(member))
		slot->value = HCOMM_ANY_WINDOW;
	if (slot->count) {
		slot->count++;
		events->merged++;
	} else {
		slot->count = 1;
		slot->next = HCOMM_EVENT_NIL;
		if (events->last == HCOMM_EVENT_NIL)
			events->first = i;
		else
			events->slots[events->last].next = i;
		events->last = i;
	}
	hcomm_events_flush(member);
	hcomm_proc_notify(member->proc, true);
}

void hcomm_events_flush(struct hcomm_member *member)
{
	struct hcomm_events *events = &member->events;

	lockdep_assert_held(&member->lock);
	while (events->first != HCOMM_EVENT_NIL) {
		u32 i = events->first;
		struct hcomm_event_slot *slot = &events->slots[i];
		struct hcomm_event event = {
			.kind = slot->kind,
			.rank = slot->rank,
			.value = slot->value,
			.count = slot->count,
		};

		if (!hcomm_ring_post_event(member, &event))
			return;
		slot->count = 0;
		events->first = slot->next;
		if (events->first == HCOMM_EVENT_NIL)
			events->last = HCOMM_EVENT_NIL;
		if (i >= hcomm_event_fixed(member)) {
			slot->next = events->free;
			events->free = i;
		}
	}
}
