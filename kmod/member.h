/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A member is one rank of one group, owned by the process that joined. It
 * ends at the first of LEAVE, the flush of its file by the joiner, the end of
 * the joiner's address space. Ops, windows and work items hold references to
 * the member, never to its file.
 *
 * member->lock (BH-safe) protects the semaphores, the rings' kernel side, the
 * triggers, the events, the list of ops and, for the transport, the receive
 * side of every flow to this member. Order: group->lock, member->lock, flow,
 * scheduler, path send queue.
 */
#ifndef HCOMM_MEMBER_H
#define HCOMM_MEMBER_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "group.h"
#include "ring.h"
#include "sem.h"
#include "event.h"

struct hcomm_proc;
struct rdma_cgroup;

/* Where a member's ops to remote ranks go: to their streams, or they wait. */
struct hcomm_endpoint {
	spinlock_t lock;		/* before a stream's lock; BH-safe */
	bool ended;
	struct list_head waiting;	/* ops to ranks that are not proven yet */
	unsigned int nr_waiting;	/* written with lock, read without */
	struct xarray streams;		/* rank -> stream; write: lock, RCU readers */
};

struct hcomm_member {
	struct kref ref;
	struct rcu_head rcu;
	struct work_struct free_work;
	struct hcomm_group *group;
	struct hcomm_proc *proc;
	struct rdma_cgroup *cgroup;	/* charged until the member ends */
	u32 rank;
	u32 index;			/* in proc->members */
	u64 op_timeout_ns;

	spinlock_t lock;		/* see above */
	enum hcomm_state state;		/* lock; mirrored in the state line */
	struct hcomm_fault fault;	/* lock; valid when state is ERROR */
	ktime_t fault_at;
	struct hcomm_sems sems;
	struct hcomm_ring ring;
	struct hcomm_events events;
	struct list_head ops;		/* every live op, oldest first */
	struct list_head ready;		/* triggered, not yet dispatched */
	bool draining;			/* one drainer of ready at a time */
	struct hcomm_member *drain_next; /* the drainer's, see member.c */
	struct work_struct drain_work;
	struct work_struct fail_work;	/* slow half of a fault */
	struct delayed_work expire_work; /* hcomm_ops_expire() */
	struct delayed_work seek_work;	/* hcomm_member_seek_later() */
	unsigned long seek_delay;	/* jiffies: longer while it gets no further */
	u32 seek_stuck;			/* the first rank refused */

	struct mutex submit_lock;	/* one submitter; taken killable */
	struct xarray windows;		/* id -> hcomm_window, or a value once gone;
					 * write: windows_lock
					 */
	struct mutex windows_lock;	/* attach, detach, revoke */
	atomic_t nr_windows;		/* not yet quiesced */
	atomic_t nr_keys;		/* of these */

	spinlock_t peers_lock;		/* taken alone, BH-safe */
	struct hcomm_peer *peers;	/* size entries, zero id = not known */

	struct mutex heaps_lock;	/* heaps */
	struct xarray heaps;		/* segment -> file offered; broker.c */

	void *copier;			/* copy.c: ops whose target is local */
	struct hcomm_endpoint endpoint;	/* the transport's, see flow_tx.c */
	u64 ops_submitted;
	u64 ops_completed;
	u64 ops_failed;
	u64 bytes_put;
};

/* Makes the membership and fills what JOIN returns. */
int hcomm_member_join(struct hcomm_proc *proc, struct hcomm_join *arg);
int hcomm_member_set_peers(struct hcomm_member *member,
			   const struct hcomm_set_peers *arg);
/*
 * Looks for its peers again in a while; for now there are too many sessions for
 * @rank and some after it.
 */
void hcomm_member_seek_later(struct hcomm_member *member, u32 rank);
/* Where @rank lives as this member was told, -ENOENT if not. Any context. */
int hcomm_member_peer(struct hcomm_member *member, u32 rank,
		      struct hcomm_peer *peer);

/*
 * Ends the membership once; later calls do nothing. @cause is CAUSE_NONE for
 * LEAVE, CAUSE_PROCESS otherwise. Process context, waits for no peer.
 */
void hcomm_member_end(struct hcomm_member *member, enum hcomm_cause cause);

void hcomm_member_get(struct hcomm_member *member);
void hcomm_member_put(struct hcomm_member *member);	/* any context */

/*
 * 0 while the member is active, else the errno that its ops end with. Lock
 * held.
 */
static inline int hcomm_member_error(const struct hcomm_member *member)
{
	if (likely(member->state == HCOMM_STATE_ACTIVE))
		return 0;
	return member->state == HCOMM_STATE_ERROR ? member->fault.error :
						    -ESHUTDOWN;
}

/*
 * Every user of the lock that may have applied a signal unlocks this way:
 * ops that became ready are dispatched after the lock is dropped, at most 64
 * here, the rest in a work item.
 */
void hcomm_member_lock(struct hcomm_member *member)
	__acquires(&member->lock);
void hcomm_member_unlock(struct hcomm_member *member)
	__releases(&member->lock);

/*
 * Adds @delta to semaphore @sem: release store, triggers, wake-up. Lock held.
 * -EINVAL when there is no such semaphore.
 */
int hcomm_member_signal(struct hcomm_member *member, u32 sem, u32 delta);

/* First fault wins. Lock held. True if this call changed the state. */
bool hcomm_member_fail(struct hcomm_member *member,
		       const struct hcomm_fault *fault);

#endif
