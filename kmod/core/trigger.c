// SPDX-License-Identifier: GPL-2.0
/*
 * The pairing heap behind hcomm_trigger_set
 *
 * Owns only the links between waiting ops; called under the member lock.  No
 * function recurses: the depth of the heap is the user's doing.
 */
#include "trigger.h"

static bool before(const struct hcomm_trigger *a, const struct hcomm_trigger *b)
{
	if (a->threshold != b->threshold)
		return a->threshold < b->threshold;
	return a->order < b->order;
}

/* Joins two heaps without siblings. */
static struct hcomm_trigger *meld(struct hcomm_trigger *a,
				  struct hcomm_trigger *b)
{
	struct hcomm_trigger *low;

	if (!a)
		return b;
	if (!b)
		return a;
	low = before(b, a) ? b : a;
	if (low == b)
		b = a;
	b->prev = low;
	b->next = low->child;
	if (b->next)
		b->next->prev = b;
	low->child = b;
	return low;
}

/* Joins a list of siblings: in pairs, then the pairs from the last to first. */
static struct hcomm_trigger *meld_all(struct hcomm_trigger *first)
{
	struct hcomm_trigger *pairs = NULL;
	struct hcomm_trigger *root = NULL;
	struct hcomm_trigger *a, *b;

	while (first) {
		a = first;
		b = a->next;
		first = b ? b->next : NULL;
		a->next = NULL;
		a->prev = NULL;
		if (b) {
			b->next = NULL;
			b->prev = NULL;
		}
		a = meld(a, b);
		a->next = pairs;
		pairs = a;
	}
	while (pairs) {
		a = pairs;
		pairs = a->next;
		a->next = NULL;
		root = meld(root, a);
	}
	return root;
}

void hcomm_trigger_add(struct hcomm_trigger_set *set, struct hcomm_trigger *t,
		       u64 threshold)
{
	t->child = NULL;
	t->next = NULL;
	t->prev = NULL;
	t->threshold = threshold;
	t->order = set->order++;
	t->queued = true;
	set->root = meld(set->root, t);
	set->count++;
}

void hcomm_trigger_remove(struct hcomm_trigger_set *set,
			  struct hcomm_trigger *t)
{
	struct hcomm_trigger *rest;

	if (!t->queued)
		return;
	rest = meld_all(t->child);
	if (t == set->root) {
		set->root = rest;
	} else {
		if (t->prev->child == t)
			t->prev->child = t->next;
		else
			t->prev->next = t->next;
		if (t->next)
			t->next->prev = t->prev;
		set->root = meld(set->root, rest);
	}
	t->queued = false;
	set->count--;
}

struct hcomm_trigger *hcomm_trigger_pop(struct hcomm_trigger_set *set,
					u64 value)
{
	struct hcomm_trigger *t = set->root;

	if (!t || t->threshold > value)
		return NULL;
	hcomm_trigger_remove(set, t);
	return t;
}

struct hcomm_trigger *hcomm_trigger_pop_any(struct hcomm_trigger_set *set)
{
	return hcomm_trigger_pop(set, U64_MAX);
}
