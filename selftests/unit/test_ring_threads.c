// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A submission and a completion ring between two threads, as between a process
 * and the kernel: one fills what the other empties, only heads and tails are
 * shared, by acquire and release.  Built with the thread sanitizer.
 */
#include <pthread.h>
#include <sched.h>

#include <kselftest_harness.h>

#include "core/ringmath.h"

#define SQ	16
#define CQ	8
#define OPS	200000

static u32 sq_tail, sq_head, cq_tail, cq_head;
static u64 sqe[SQ], cqe[CQ];

static u32 acquire(u32 *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static void release(u32 *p, u32 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* The kernel's part: takes entries, promises slots, completes. */
static void *engine(void *arg)
{
	struct hcomm_ring_cq cq;
	u32 head = 0, n;
	u64 value, *bad = arg;
	u64 done = 0;
	bool lie;

	hcomm_ring_cq_init(&cq, CQ);
	while (done < OPS) {
		*bad += !hcomm_ring_cq_consume(&cq, acquire(&cq_head));
		n = hcomm_ring_ready(head, acquire(&sq_tail), SQ, &lie);
		*bad += lie;
		if (!n || !hcomm_ring_cq_reserve(&cq, 1)) {
			sched_yield();
			continue;
		}
		value = sqe[hcomm_ring_slot(head, SQ)];
		release(&sq_head, ++head);
		cqe[hcomm_ring_cq_post(&cq)] = value + 1;
		release(&cq_tail, cq.tail);
		done++;
	}
	return NULL;
}

TEST(nothing_is_lost_or_torn_between_two_threads)
{
	u64 submitted = 0, reaped = 0, bad = 0;
	u32 tail = 0, head = 0;
	pthread_t thread;

	ASSERT_EQ(pthread_create(&thread, NULL, engine, &bad), 0);
	while (reaped < OPS) {
		while (submitted < OPS && tail - acquire(&sq_head) < SQ) {
			sqe[hcomm_ring_slot(tail, SQ)] = submitted++ * 2;
			release(&sq_tail, ++tail);
		}
		if (head == acquire(&cq_tail))
			sched_yield();
		while (head != acquire(&cq_tail)) {
			ASSERT_EQ(cqe[hcomm_ring_slot(head, CQ)],
				  reaped * 2 + 1);
			reaped++;
			release(&cq_head, ++head);
		}
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(bad, 0);
}

TEST_HARNESS_MAIN
