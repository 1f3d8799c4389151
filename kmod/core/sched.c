// SPDX-License-Identifier: GPL-2.0
/*
 * Deficit round robin of one path
 *
 * Owns the order of the active queues and the count of posted bytes.  Called by
 * the path's poster and by its completions under the scheduler lock; queues
 * belong to groups and must be deactivated before they are freed.
 */
#include "sched.h"

#define SAMPLE_NS	200000		/* shortest sample of the rate */

void hcomm_sched_init(struct hcomm_sched *s, u32 stripe)
{
	memset(s, 0, sizeof(*s));
	INIT_LIST_HEAD(&s->active);
	s->floor = 2 * (u64)stripe;
	s->limit = s->floor;
}

void hcomm_sched_queue_init(struct hcomm_sched_queue *q, u32 weight)
{
	INIT_LIST_HEAD(&q->node);
	q->deficit = 0;
	q->weight = max(1u, min_t(u32, weight, HCOMM_SCHED_WEIGHT_MAX));
	q->fresh = false;
}

void hcomm_sched_activate(struct hcomm_sched *s, struct hcomm_sched_queue *q)
{
	if (!list_empty(&q->node))
		return;
	q->deficit = 0;
	q->fresh = true;
	list_add_tail(&q->node, &s->active);
}

void hcomm_sched_deactivate(struct hcomm_sched_queue *q)
{
	list_del_init(&q->node);
	q->deficit = 0;
}

bool hcomm_sched_room(const struct hcomm_sched *s, u64 bytes)
{
	return !s->posted ||
	       (s->posted < s->limit && bytes <= s->limit - s->posted);
}

struct hcomm_sched_queue *
hcomm_sched_next(struct hcomm_sched *s,
		 u64 (*cost)(struct hcomm_sched_queue *q, void *arg), void *arg)
{
	struct hcomm_sched_queue *q;
	u64 bytes;

	while (!list_empty(&s->active)) {
		q = list_first_entry(&s->active, struct hcomm_sched_queue,
				     node);
		bytes = cost(q, arg);
		if (!bytes) {
			hcomm_sched_deactivate(q);
			continue;
		}
		if (q->fresh) {
			q->fresh = false;
			q->deficit += (u64)q->weight * HCOMM_SCHED_QUANTUM;
		}
		if (q->deficit >= bytes)
			return hcomm_sched_room(s, bytes) ? q : NULL;
		q->fresh = true;
		list_move_tail(&q->node, &s->active);
	}
	return NULL;
}

void hcomm_sched_charge(struct hcomm_sched *s, struct hcomm_sched_queue *q,
			u64 bytes, u64 now_ns)
{
	if (!s->posted) {
		s->busy_since = now_ns;
		s->sample = 0;
	}
	s->posted += bytes;
	q->deficit -= min(bytes, q->deficit);
}

/*
 * A sample runs only while something is posted.  A path that is not kept full
 * is measured too low, which does no harm: the limit falls to its floor and
 * rises within a few samples once it binds.
 */
static void rate_update(struct hcomm_sched *s, u64 now_ns)
{
	u64 ns = now_ns - s->busy_since;
	u64 rate;

	if ((s64)ns < SAMPLE_NS)
		return;
	rate = div64_u64(s->sample * 1000000, div64_u64(ns, 1000) + 1);
	s->rate = s->rate ? s->rate - s->rate / 4 + rate / 4 : rate;
	s->limit = max(s->floor,
		       div64_u64(s->rate, 1000000000 / HCOMM_SCHED_HORIZON_NS));
	s->busy_since = now_ns;
	s->sample = 0;
}

void hcomm_sched_complete(struct hcomm_sched *s, u64 bytes, u64 now_ns)
{
	bytes = min(bytes, s->posted);
	s->posted -= bytes;
	s->sample += bytes;
	rate_update(s, now_ns);
}

void hcomm_sched_reset(struct hcomm_sched *s)
{
	s->posted = 0;
	s->sample = 0;
	s->rate = 0;
	s->limit = s->floor;
}
