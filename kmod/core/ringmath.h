/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Indices of rings shared with user space
 *
 * Heads and tails are free-running u32; the slot is index & (entries - 1),
 * entries a power of two.  The kernel's heads and tails are its own copies; a
 * value read from user memory is read once (READ_ONCE or load-acquire, by the
 * caller), clamped here, and never trusted further: a lying process loses its
 * own entries, nothing else.  A completion slot is reserved when an op is
 * accepted, so posting a completion never fails.
 *
 * Locks: submission side: the member's submit mutex.  Completion side: the
 * member lock.
 */
#ifndef HCOMM_CORE_RINGMATH_H
#define HCOMM_CORE_RINGMATH_H

#include "shim.h"

#define HCOMM_RING_MIN		1u
#define HCOMM_RING_MAX		32768u

static inline bool hcomm_ring_size_valid(u32 entries)
{
	return entries >= HCOMM_RING_MIN && entries <= HCOMM_RING_MAX &&
	       is_power_of_2(entries);
}

static inline u32 hcomm_ring_slot(u32 index, u32 entries)
{
	return index & (entries - 1);
}

/*
 * Submission: entries ready between our head and the user's tail.  A tail more
 * than @entries ahead is a lie: it counts as none, and *@bad is set.
 */
static inline u32 hcomm_ring_ready(u32 head, u32 user_tail, u32 entries,
				   bool *bad)
{
	u32 n = user_tail - head;

	*bad = n > entries;
	return *bad ? 0 : n;
}

/* Completion (or event) ring, producer side. */
struct hcomm_ring_cq {
	u32 entries;
	u32 tail;		/* next slot we fill */
	u32 head;		/* last head of the user we believed */
	u32 reserved;		/* promised to ops in flight */
};

static inline void hcomm_ring_cq_init(struct hcomm_ring_cq *cq, u32 entries)
{
	cq->entries = entries;
	cq->tail = 0;
	cq->head = 0;
	cq->reserved = 0;
}

/*
 * Takes over the user's head.  It may only move forward and not beyond the
 * tail; anything else is ignored and false is returned.
 */
static inline bool hcomm_ring_cq_consume(struct hcomm_ring_cq *cq,
					 u32 user_head)
{
	if (user_head - cq->head > cq->tail - cq->head)
		return false;
	cq->head = user_head;
	return true;
}

/* Slots neither filled nor promised. */
static inline u32 hcomm_ring_cq_free(const struct hcomm_ring_cq *cq)
{
	return cq->entries - (cq->tail - cq->head) - cq->reserved;
}

/* Promises @n slots; false: -EBUSY, the user must reap first. */
static inline bool hcomm_ring_cq_reserve(struct hcomm_ring_cq *cq, u32 n)
{
	if (n > hcomm_ring_cq_free(cq))
		return false;
	cq->reserved += n;
	return true;
}

/* Gives back @n promises whose ops ended without a completion. */
static inline void hcomm_ring_cq_release(struct hcomm_ring_cq *cq, u32 n)
{
	cq->reserved -= min(n, cq->reserved);
}

/*
 * The slot for a completion that was promised.  Fill it, then publish
 * cq->tail with a store-release.
 */
static inline u32 hcomm_ring_cq_post(struct hcomm_ring_cq *cq)
{
	if (cq->reserved)
		cq->reserved--;
	return hcomm_ring_slot(cq->tail++, cq->entries);
}

#endif /* HCOMM_CORE_RINGMATH_H */
