// SPDX-License-Identifier: GPL-2.0
/*
 * Rings of a member. One area holds the six indices, each on a line of its
 * own, the CQEs and the events; the SQEs have another. The arithmetic is the
 * core's; here are the barriers: an index is stored with release after what it
 * announces and loaded with acquire before. Entries and indices that the
 * process can write are read once.
 *
 * The rings are made once and go with the member; mappings keep the pages.
 *
 * Locks: submit_lock for the submission side, the member lock for the rest.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "area.h"
#include "chardev.h"
#include "limits.h"
#include "member.h"
#include "op.h"
#include "proc.h"
#include "ring.h"
#include "trace.h"

#define HCOMM_RING_LINE		64
#define HCOMM_RING_FIRST	512	/* bytes before the CQEs */

static u32 *hcomm_ring_word(const struct hcomm_ring *ring, u32 at)
{
	return ring->shared + at;
}

static struct hcomm_cqe *hcomm_ring_cqes(const struct hcomm_ring *ring)
{
	return ring->shared + ring->layout.cqes_at;
}

static struct hcomm_event *hcomm_ring_event(const struct hcomm_ring *ring)
{
	return ring->shared + ring->layout.events_at;
}

/* Rounds up; 0 is @standard. -EINVAL beyond @max. */
static int hcomm_ring_entries(u32 *entries, u32 standard, u32 max)
{
	u32 n = *entries ? *entries : standard;

	if (n > max)
		return -EINVAL;
	*entries = roundup_pow_of_two(n);
	return 0;
}

static int hcomm_ring_layout(struct hcomm_ring_setup *arg)
{
	if (arg->flags)
		return -EINVAL;
	if (hcomm_ring_entries(&arg->sq_entries, 256, HCOMM_MAX_SQ_ENTRIES) ||
	    hcomm_ring_entries(&arg->cq_entries, 2 * arg->sq_entries,
			       HCOMM_MAX_CQ_ENTRIES) ||
	    hcomm_ring_entries(&arg->event_entries, 1024,
			       HCOMM_MAX_EVENT_ENTRIES))
		return -EINVAL;

	arg->sq_head_at = 0 * HCOMM_RING_LINE;
	arg->sq_tail_at = 1 * HCOMM_RING_LINE;
	arg->cq_head_at = 2 * HCOMM_RING_LINE;
	arg->cq_tail_at = 3 * HCOMM_RING_LINE;
	arg->event_head_at = 4 * HCOMM_RING_LINE;
	arg->event_tail_at = 5 * HCOMM_RING_LINE;
	arg->cqes_at = HCOMM_RING_FIRST;
	arg->events_at = arg->cqes_at +
			 arg->cq_entries * sizeof(struct hcomm_cqe);
	arg->ring_off = HCOMM_MAP_RINGS;
	arg->ring_bytes = PAGE_ALIGN(arg->events_at +
				     (u64)arg->event_entries *
				     sizeof(struct hcomm_event));
	arg->sqe_off = HCOMM_MAP_SQES;
	arg->sqe_bytes = PAGE_ALIGN((u64)arg->sq_entries *
				    sizeof(struct hcomm_sqe));
	return 0;
}

static int hcomm_ring_make(struct hcomm_member *member,
			   const struct hcomm_ring_setup *layout)
{
	struct hcomm_ring *ring = &member->ring;
	void *shared, *sqes;

	shared = hcomm_area_alloc(layout->ring_bytes);
	if (!shared)
		return -ENOMEM;
	sqes = hcomm_area_alloc(layout->sqe_bytes);
	if (!sqes) {
		hcomm_area_free(shared);
		return -ENOMEM;
	}
	hcomm_member_lock(member);
	ring->shared = shared;
	ring->sqes = sqes;
	ring->layout = *layout;
	hcomm_ring_cq_init(&ring->cq, layout->cq_entries);
	hcomm_ring_cq_init(&ring->events, layout->event_entries);
	/* Pairs with the load-acquire in hcomm_ring_is_ready(). */
	smp_store_release(&ring->ready, true);
	hcomm_events_flush(member);
	hcomm_member_unlock(member);
	return 0;
}

int hcomm_ring_setup(struct hcomm_member *member, struct hcomm_ring_setup *arg)
{
	int ret;

	ret = hcomm_ring_layout(arg);
	if (ret)
		return ret;
	if (mutex_lock_killable(&member->submit_lock))
		return -EINTR;
	if (member->ring.ready)
		ret = -EEXIST;
	else
		ret = hcomm_ring_make(member, arg);
	mutex_unlock(&member->submit_lock);
	return ret;
}

void hcomm_ring_free(struct hcomm_member *member)
{
	hcomm_area_free(member->ring.sqes);
	hcomm_area_free(member->ring.shared);
}

bool hcomm_ring_is_ready(const struct hcomm_member *member)
{
	/* Pairs with the store-release in hcomm_ring_make(). */
	return smp_load_acquire(&member->ring.ready);
}

/* What the process has consumed of the completions. */
static void hcomm_ring_reap(struct hcomm_ring *ring)
{
	u32 *head = hcomm_ring_word(ring, ring->layout.cq_head_at);

	/* Pairs with the process's store-release: it is done with the CQEs. */
	hcomm_ring_cq_consume(&ring->cq, smp_load_acquire(head));
}

static void hcomm_ring_reap_events(struct hcomm_ring *ring)
{
	u32 *head = hcomm_ring_word(ring, ring->layout.event_head_at);

	/* Pairs with the process's store-release: it is done with the events. */
	hcomm_ring_cq_consume(&ring->events, smp_load_acquire(head));
}

/* Promises a completion slot, or says why there is none. */
static int hcomm_ring_reserve(struct hcomm_member *member)
{
	int ret;

	hcomm_member_lock(member);
	ret = hcomm_member_error(member);
	if (!ret) {
		hcomm_ring_reap(&member->ring);
		if (!hcomm_ring_cq_reserve(&member->ring.cq, 1)) {
			member->ring.starved = true;
			ret = -EBUSY;
		}
	}
	hcomm_member_unlock(member);
	return ret;
}

static void hcomm_ring_fetch(struct hcomm_ring *ring, struct hcomm_sqe *sqe)
{
	u32 slot = hcomm_ring_slot(ring->sq_head, ring->layout.sq_entries);
	const u64 *from = (const u64 *)&ring->sqes[slot];
	u64 *to = (u64 *)sqe;
	unsigned int i;

	BUILD_BUG_ON(sizeof(*sqe) != 64);
	for (i = 0; i < sizeof(*sqe) / sizeof(*to); i++)
		to[i] = READ_ONCE(from[i]);
}

/* Starts the op of one SQE. False: refused, and completed with its errno. */
static bool hcomm_ring_start(struct hcomm_member *member,
			     const struct hcomm_sqe *sqe)
{
	struct hcomm_op *op;

	trace_hcomm_op_submit(member->group->id, member->rank, sqe);
	op = hcomm_op_create(member, sqe);
	if (IS_ERR(op)) {
		struct hcomm_cqe cqe = {
			.user_data = sqe->user_data,
			.result = PTR_ERR(op),
			.rank = sqe->rank,
		};

		hcomm_member_lock(member);
		hcomm_ring_complete(member, &cqe, false);
		hcomm_proc_notify(member->proc, false);
		hcomm_member_unlock(member);
		return false;
	}
	hcomm_op_dispatch(op);
	return true;
}

static int hcomm_ring_take(struct hcomm_member *member, u32 count)
{
	struct hcomm_ring *ring = &member->ring;
	struct hcomm_sqe sqe;
	int ret = 0;
	u32 tail, n, taken = 0;
	bool bad;

	lockdep_assert_held(&member->submit_lock);
	/* Pairs with the process's store-release after it wrote the SQEs. */
	tail = smp_load_acquire(hcomm_ring_word(ring, ring->layout.sq_tail_at));
	n = hcomm_ring_ready(ring->sq_head, tail, ring->layout.sq_entries, &bad);
	if (bad)
		return -EINVAL;
	n = min(n, count);
	while (taken < n) {
		ret = hcomm_ring_reserve(member);
		if (ret)
			break;
		hcomm_ring_fetch(ring, &sqe);
		ring->sq_head++;
		/* Pairs with the load-acquire that precedes reuse of the slot. */
		smp_store_release(hcomm_ring_word(ring,
						  ring->layout.sq_head_at),
				  ring->sq_head);
		taken++;
		/* Those behind a refused one may be meant to follow it only. */
		if (!hcomm_ring_start(member, &sqe) ||
		    fatal_signal_pending(current))
			break;
		cond_resched();
	}
	return taken ? taken : ret;
}

int hcomm_ring_submit(struct hcomm_member *member, u32 count)
{
	int ret;

	if (mutex_lock_killable(&member->submit_lock))
		return -EINTR;
	ret = member->ring.ready ? hcomm_ring_take(member, count) : -ENXIO;
	mutex_unlock(&member->submit_lock);
	return ret;
}

bool hcomm_ring_complete(struct hcomm_member *member,
			 const struct hcomm_cqe *cqe, bool silent)
{
	struct hcomm_ring *ring = &member->ring;
	bool starved = ring->starved;
	u32 slot;

	lockdep_assert_held(&member->lock);
	BUILD_BUG_ON(sizeof(*cqe) != 32);
	ring->starved = false;
	if (silent) {
		hcomm_ring_cq_release(&ring->cq, 1);
		return starved;
	}
	slot = hcomm_ring_cq_post(&ring->cq);
	hcomm_ring_cqes(ring)[slot] = *cqe;
	/* Pairs with the process's load-acquire of the tail. */
	smp_store_release(hcomm_ring_word(ring, ring->layout.cq_tail_at),
			  ring->cq.tail);
	return starved;
}

bool hcomm_ring_post_event(struct hcomm_member *member,
			   const struct hcomm_event *event)
{
	struct hcomm_ring *ring = &member->ring;
	u32 slot;

	lockdep_assert_held(&member->lock);
	BUILD_BUG_ON(sizeof(*event) != 32);
	if (!ring->ready)
		return false;
	hcomm_ring_reap_events(ring);
	if (!hcomm_ring_cq_free(&ring->events))
		return false;
	slot = hcomm_ring_cq_post(&ring->events);
	hcomm_ring_event(ring)[slot] = *event;
	/* Pairs with the process's load-acquire of the tail. */
	smp_store_release(hcomm_ring_word(ring, ring->layout.event_tail_at),
			  ring->events.tail);
	return true;
}

bool hcomm_ring_readable(struct hcomm_member *member)
{
	struct hcomm_ring *ring = &member->ring;

	lockdep_assert_held(&member->lock);
	if (!ring->ready)
		return false;
	hcomm_ring_reap(ring);
	hcomm_ring_reap_events(ring);
	return ring->cq.tail != ring->cq.head ||
	       ring->events.tail != ring->events.head;
}
