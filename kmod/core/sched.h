/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Who posts next on a path
 *
 * Each path has a scheduler; each group that has parts for the path a queue in
 * it.  Deficit round robin over bytes: a queue at the head gets weight * quantum
 * per round and is served while its deficit covers the next part.  There is no
 * global FIFO: one group's backlog never delays another by more than a round.
 * The path's posted bytes are bounded by max(2 stripes, 1 ms at the measured
 * rate), so that little is in doubt when it is lost and a fast path takes more.
 *
 * Locks: the scheduler lock of the path, below the flow lock.
 */
#ifndef HCOMM_CORE_SCHED_H
#define HCOMM_CORE_SCHED_H

#include "shim.h"

#define HCOMM_SCHED_QUANTUM	(64u << 10)
#define HCOMM_SCHED_WEIGHT_MAX	64
#define HCOMM_SCHED_HORIZON_NS	1000000		/* 1 ms */

struct hcomm_sched {
	struct list_head active;
	u64 posted;		/* bytes posted and not completed */
	u64 limit;		/* most bytes posted */
	u64 floor;		/* limit never below: two stripes */
	u64 rate;		/* bytes per second, 0: not measured yet */
	u64 busy_since;		/* ns: start of the running sample */
	u64 sample;		/* bytes completed in it */
};

struct hcomm_sched_queue {
	struct list_head node;	/* on active, or empty */
	u64 deficit;		/* bytes it may post in this round */
	u32 weight;		/* 1..HCOMM_SCHED_WEIGHT_MAX */
	bool fresh;		/* gets its round's bytes at the head */
};

void hcomm_sched_init(struct hcomm_sched *s, u32 stripe);
void hcomm_sched_queue_init(struct hcomm_sched_queue *q, u32 weight);

/* @q has something to post; idempotent. */
void hcomm_sched_activate(struct hcomm_sched *s, struct hcomm_sched_queue *q);
/* @q has nothing (more), or goes away; idempotent. */
void hcomm_sched_deactivate(struct hcomm_sched_queue *q);

/* True when @bytes more may be posted now; one part always fits if idle. */
bool hcomm_sched_room(const struct hcomm_sched *s, u64 bytes);

/*
 * The queue to serve, or NULL when none is active or the path is full.  @cost
 * tells the bytes of the queue's next part (headers count: at least 1), 0: it
 * has none, which deactivates it.  Charge what is posted.
 */
struct hcomm_sched_queue *
hcomm_sched_next(struct hcomm_sched *s,
		 u64 (*cost)(struct hcomm_sched_queue *q, void *arg), void *arg);

/* @bytes of @q were posted at @now_ns. */
void hcomm_sched_charge(struct hcomm_sched *s, struct hcomm_sched_queue *q,
			u64 bytes, u64 now_ns);
/* @bytes completed at @now_ns: makes room, measures the rate. */
void hcomm_sched_complete(struct hcomm_sched *s, u64 bytes, u64 now_ns);
/* The path is lost: nothing is posted; queues stay active. */
void hcomm_sched_reset(struct hcomm_sched *s);

#endif /* HCOMM_CORE_SCHED_H */
