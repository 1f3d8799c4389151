/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ops that wait for a semaphore
 *
 * Each semaphore has a heap of the ops that wait for it, smallest threshold
 * first and, among equals, in the order they were added.  When the semaphore
 * rises the caller pops what is ready, one by one and without nesting, into its
 * one list of ready ops.  An intrusive pairing heap: adding is constant,
 * popping and removing cost O(log n) on average, nothing is allocated.
 *
 * Locks: the member lock (signals apply under it).
 */
#ifndef HCOMM_CORE_TRIGGER_H
#define HCOMM_CORE_TRIGGER_H

#include "shim.h"

/* Embedded in the waiting op. */
struct hcomm_trigger {
	struct hcomm_trigger *child;
	struct hcomm_trigger *next;	/* sibling */
	struct hcomm_trigger *prev;	/* sibling, or parent of the first */
	u64 threshold;
	u64 order;
	bool queued;
};

/* One per semaphore; zero is empty. */
struct hcomm_trigger_set {
	struct hcomm_trigger *root;
	u64 order;
	u32 count;
};

static inline void hcomm_trigger_set_init(struct hcomm_trigger_set *set)
{
	set->root = NULL;
	set->order = 0;
	set->count = 0;
}

/* @t fires when the semaphore is >= @threshold. */
void hcomm_trigger_add(struct hcomm_trigger_set *set, struct hcomm_trigger *t,
		       u64 threshold);
/* Takes @t out if it is in; used when an op ends otherwise. */
void hcomm_trigger_remove(struct hcomm_trigger_set *set,
			  struct hcomm_trigger *t);
/* The next one that is ready at @value, taken out; NULL: none. */
struct hcomm_trigger *hcomm_trigger_pop(struct hcomm_trigger_set *set,
					u64 value);
/* Any one, taken out, whatever its threshold: for ending a member. */
struct hcomm_trigger *hcomm_trigger_pop_any(struct hcomm_trigger_set *set);

/* @value + @delta, stopping at U64_MAX: a counter never goes back. */
static inline u64 hcomm_trigger_raise(u64 value, u64 delta)
{
	return value > U64_MAX - delta ? U64_MAX : value + delta;
}

#endif /* HCOMM_CORE_TRIGGER_H */
