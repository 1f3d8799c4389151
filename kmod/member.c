// SPDX-License-Identifier: GPL-2.0
/*
 * Members: how a membership begins, fails and ends.
 *
 * JOIN makes everything first and enters the member into the two tables by
 * which it is found, its process's and its group's, last. The process's table
 * holds a reference until the membership ends; everyone else takes one to use
 * it. A fault changes the state at once and does the rest in fail_work. The
 * end changes the state, takes the member out of the group, tells local and
 * remote peers, and only then cleans up: a peer learns of a death before
 * anything that may take time.
 *
 * Both wait for the submitter once after the change of state: whoever took
 * submit_lock later has seen it, so the ops found after that are all there are
 * but for those in the hands of an owner, who looks at the state itself.
 *
 * Ready ops: whoever drops the member lock with ops on the ready list becomes
 * their drainer, unless there is one. An op can apply a signal that makes ops
 * of another member ready; the members wait in a list of this CPU for the
 * drainer that runs here already, so nothing nests.
 */
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "broker.h"
#include "charge.h"
#include "chardev.h"
#include "copy.h"
#include "instance.h"
#include "limits.h"
#include "member.h"
#include "op.h"
#include "proc.h"
#include "session.h"
#include "trace.h"
#include "window.h"
#include "work.h"

#define HCOMM_DRAIN_BUDGET	64
#define HCOMM_SEEK_LEAST	(HZ / 2UL)
#define HCOMM_SEEK_MOST		(HZ * 8UL)

/* With bottom halves disabled on the CPU that owns it. */
struct hcomm_drain {
	struct hcomm_member *first;	/* through drain_next, each referenced */
	bool running;
};

static DEFINE_PER_CPU(struct hcomm_drain, hcomm_drain);

/* False when the budget ended before the list did. */
static bool hcomm_member_drain(struct hcomm_member *member,
			       unsigned int *budget)
{
	struct hcomm_op *op;

	for (;;) {
		spin_lock(&member->lock);
		op = list_first_entry_or_null(&member->ready, struct hcomm_op,
					      node);
		if (!op)
			member->draining = false;
		else if (*budget)
			list_del_init(&op->node);
		spin_unlock(&member->lock);
		if (!op)
			return true;
		if (!*budget)
			return false;
		--*budget;
		hcomm_op_dispatch(op);
	}
}

/* Bottom halves are disabled. Takes over a reference to @member. */
static void hcomm_drain_run(struct hcomm_member *member)
{
	struct hcomm_drain *drain = this_cpu_ptr(&hcomm_drain);
	unsigned int budget = HCOMM_DRAIN_BUDGET;

	member->drain_next = drain->first;
	drain->first = member;
	if (drain->running)
		return;
	drain->running = true;
	while ((member = drain->first)) {
		drain->first = member->drain_next;
		if (hcomm_member_drain(member, &budget))
			hcomm_member_put(member);
		else
			queue_work(hcomm_progress_wq, &member->drain_work);
	}
	drain->running = false;
}

static void hcomm_member_drain_work(struct work_struct *work)
{
	local_bh_disable();
	hcomm_drain_run(container_of(work, struct hcomm_member, drain_work));
	local_bh_enable();
}

void hcomm_member_lock(struct hcomm_member *member)
	__acquires(&member->lock)
{
	spin_lock_bh(&member->lock);
}

void hcomm_member_unlock(struct hcomm_member *member)
	__releases(&member->lock)
{
	if (list_empty(&member->ready) || member->draining) {
		spin_unlock_bh(&member->lock);
		return;
	}
	member->draining = true;
	hcomm_member_get(member);
	spin_unlock(&member->lock);
	hcomm_drain_run(member);
	local_bh_enable();
}

int hcomm_member_signal(struct hcomm_member *member, u32 sem, u32 delta)
{
	int ret;

	ret = hcomm_sems_add(member, sem, delta);
	if (ret)
		return ret;
	trace_hcomm_signal(member->group->id, member->rank, sem, delta,
			   member->sems.values[array_index_nospec(sem, member->sems.count)]);
	hcomm_proc_notify(member->proc, false);
	return 0;
}

static void hcomm_member_set_state(struct hcomm_member *member,
				   enum hcomm_state state)
{
	lockdep_assert_held(&member->lock);
	member->fault_at = ktime_get();
	/* Who looks without the lock reads the fault only under it. */
	WRITE_ONCE(member->state, state);
	hcomm_sems_publish_state(member);
}

bool hcomm_member_fail(struct hcomm_member *member,
		       const struct hcomm_fault *fault)
{
	lockdep_assert_held(&member->lock);
	if (member->state != HCOMM_STATE_ACTIVE)
		return false;
	member->fault = *fault;
	hcomm_member_set_state(member, HCOMM_STATE_ERROR);
	trace_hcomm_error(member->group->id, member->rank, fault->cause,
			  fault->error, fault->rank, fault->op);
	hcomm_event_raise(member, HCOMM_EVENT_GROUP_ERROR, fault->rank,
			  fault->cause);
	hcomm_member_get(member);
	queue_work(hcomm_progress_wq, &member->fail_work);
	return true;
}

static void hcomm_member_settle(struct hcomm_member *member)
{
	mutex_lock(&member->submit_lock);
	mutex_unlock(&member->submit_lock);
}

/* The state changes from ACTIVE to ERROR once, so this is queued once. */
static void hcomm_member_fail_work(struct work_struct *work)
{
	struct hcomm_member *member = container_of(work, struct hcomm_member,
						   fail_work);

	hcomm_member_settle(member);
	hcomm_ops_cancel(member, member->fault.error);
	hcomm_windows_revoke(member);
	hcomm_member_put(member);
}

static void hcomm_member_tell_local(struct hcomm_member *member,
				    enum hcomm_cause cause)
{
	const struct hcomm_fault fault = hcomm_fault_of_death(member->rank);

	hcomm_group_mourn(member->group, member->rank, cause);
	/* Ahead of its MEMBER_GONE, which waits for what it had posted. */
	if (cause != HCOMM_CAUSE_NONE)
		hcomm_session_group_fault(member->group, member->rank, &fault);
}

void hcomm_member_end(struct hcomm_member *member, enum hcomm_cause cause)
{
	hcomm_member_lock(member);
	if (member->state == HCOMM_STATE_LEFT) {
		hcomm_member_unlock(member);
		return;
	}
	hcomm_member_set_state(member, HCOMM_STATE_LEFT);
	hcomm_proc_notify(member->proc, true);
	hcomm_member_unlock(member);
	trace_hcomm_leave(member->group->instance->nr, member->group->id,
			  member->rank, cause);

	hcomm_group_remove_member(member->group, member);
	hcomm_member_tell_local(member, cause);
	hcomm_member_settle(member);
	hcomm_session_member_down(member, cause);

	if (cancel_delayed_work(&member->seek_work))
		hcomm_member_put(member);
	cancel_delayed_work_sync(&member->expire_work);
	hcomm_ops_cancel(member, -ESHUTDOWN);
	hcomm_windows_revoke(member);
	hcomm_broker_forget(member);
	hcomm_cgroup_uncharge(HCOMM_CHARGE_MEMBER, member->cgroup);
	hcomm_proc_remove_member(member->proc, member);
}

static void hcomm_member_free(struct hcomm_member *member)
{
	hcomm_copier_free(member);
	hcomm_endpoint_free(member);
	hcomm_windows_free(member);
	hcomm_ring_free(member);
	hcomm_events_free(member);
	hcomm_sems_free(member);
	kvfree(member->peers);
	hcomm_group_put(member->group);
	hcomm_proc_put(member->proc);
	kfree_rcu(member, rcu);
}

static void hcomm_member_free_work(struct work_struct *work)
{
	hcomm_member_free(container_of(work, struct hcomm_member, free_work));
}

void hcomm_member_get(struct hcomm_member *member)
{
	kref_get(&member->ref);
}

static void hcomm_member_release(struct kref *ref)
{
	struct hcomm_member *member = container_of(ref, struct hcomm_member,
						   ref);

	queue_work(hcomm_teardown_wq, &member->free_work);
}

void hcomm_member_put(struct hcomm_member *member)
{
	kref_put(&member->ref, hcomm_member_release);
}

static bool hcomm_peer_known(const struct hcomm_peer *peer)
{
	return memchr_inv(peer->instance_id, 0, sizeof(peer->instance_id));
}

/* True if @now may stand where the table has @old. */
static bool hcomm_peer_agrees(const struct hcomm_peer *old,
			      const struct hcomm_peer *now)
{
	return !hcomm_peer_known(old) || !hcomm_peer_known(now) ||
	       !memcmp(old->instance_id, now->instance_id,
		       sizeof(old->instance_id));
}

static int hcomm_peers_merge(struct hcomm_member *member, u32 first,
			     const struct hcomm_peer *peers, u32 count)
{
	struct hcomm_peer *table = member->peers + first;
	int ret = 0;
	u32 i;

	for (i = 0; i < count; i++)
		if (peers[i].reserved0 || peers[i].reserved1)
			return -EINVAL;

	spin_lock_bh(&member->peers_lock);
	for (i = 0; i < count && !ret; i++)
		if (!hcomm_peer_agrees(&table[i], &peers[i]))
			ret = -EEXIST;
	for (i = 0; i < count && !ret; i++)
		if (hcomm_peer_known(&peers[i]))
			table[i] = peers[i];
	spin_unlock_bh(&member->peers_lock);
	return ret;
}

static int hcomm_peers_read(struct hcomm_member *member, u64 uaddr, u32 first,
			    u32 count)
{
	struct hcomm_peer *peers;
	int ret;

	if (first > member->group->size || count > member->group->size - first)
		return -EINVAL;
	if (!count)
		return 0;
	peers = kvmalloc_array(count, sizeof(*peers), GFP_KERNEL_ACCOUNT);
	if (!peers)
		return -ENOMEM;
	if (copy_from_user(peers, u64_to_user_ptr(uaddr),
			   count * sizeof(*peers)))
		ret = -EFAULT;
	else
		ret = hcomm_peers_merge(member, first, peers, count);
	kvfree(peers);
	return ret;
}

int hcomm_member_set_peers(struct hcomm_member *member,
			   const struct hcomm_set_peers *arg)
{
	int ret;

	ret = hcomm_peers_read(member, arg->peers, arg->first, arg->count);
	if (!ret)
		hcomm_session_peers_set(member);
	return ret;
}

static void hcomm_member_seek_work(struct work_struct *work)
{
	struct hcomm_member *member = container_of(to_delayed_work(work),
						   struct hcomm_member,
						   seek_work);

	if (READ_ONCE(member->state) == HCOMM_STATE_ACTIVE)
		hcomm_session_peers_set(member);
	hcomm_member_put(member);
}

void hcomm_member_seek_later(struct hcomm_member *member, u32 rank)
{
	unsigned long delay = HCOMM_SEEK_LEAST;

	hcomm_member_get(member);
	if (READ_ONCE(member->seek_stuck) == rank)
		delay = min(2 * READ_ONCE(member->seek_delay), HCOMM_SEEK_MOST);
	if (queue_delayed_work(hcomm_teardown_wq, &member->seek_work, delay)) {
		WRITE_ONCE(member->seek_stuck, rank);
		WRITE_ONCE(member->seek_delay, delay);
	} else {
		hcomm_member_put(member);
	}
}

int hcomm_member_peer(struct hcomm_member *member, u32 rank,
		      struct hcomm_peer *peer)
{
	if (rank >= member->group->size)
		return -ENOENT;
	rank = array_index_nospec(rank, member->group->size);
	spin_lock_bh(&member->peers_lock);
	*peer = member->peers[rank];
	spin_unlock_bh(&member->peers_lock);
	return hcomm_peer_known(peer) ? 0 : -ENOENT;
}

static void hcomm_member_init(struct hcomm_member *member,
			      struct hcomm_proc *proc,
			      struct hcomm_group *group,
			      const struct hcomm_join *arg)
{
	kref_init(&member->ref);
	hcomm_proc_get(proc);
	member->proc = proc;
	member->group = group;
	member->rank = arg->rank;
	member->op_timeout_ns = arg->op_timeout_ns ? : HCOMM_OP_TIMEOUT_NS;
	member->fault.rank = HCOMM_NO_RANK;
	member->fault_at = ktime_get();
	spin_lock_init(&member->lock);
	INIT_LIST_HEAD(&member->ops);
	INIT_LIST_HEAD(&member->ready);
	INIT_WORK(&member->free_work, hcomm_member_free_work);
	INIT_WORK(&member->drain_work, hcomm_member_drain_work);
	INIT_WORK(&member->fail_work, hcomm_member_fail_work);
	INIT_DELAYED_WORK(&member->expire_work, hcomm_ops_expire);
	INIT_DELAYED_WORK(&member->seek_work, hcomm_member_seek_work);
	member->seek_stuck = HCOMM_NO_RANK;
	mutex_init(&member->submit_lock);
	spin_lock_init(&member->peers_lock);
	mutex_init(&member->heaps_lock);
	xa_init(&member->heaps);
	hcomm_windows_init(member);
	hcomm_endpoint_init(member);
}

/* A member that nobody can find yet; takes over the reference to @group. */
static struct hcomm_member *hcomm_member_create(struct hcomm_proc *proc,
						struct hcomm_group *group,
						const struct hcomm_join *arg)
{
	struct hcomm_member *member;
	u32 nr_sems;
	int ret;

	member = kzalloc(sizeof(*member), GFP_KERNEL_ACCOUNT);
	if (!member) {
		hcomm_group_put(group);
		return ERR_PTR(-ENOMEM);
	}
	hcomm_member_init(member, proc, group, arg);
	nr_sems = (arg->user_sems ? : HCOMM_USER_SEMS) + HCOMM_CHANNEL_SEMS +
		  2 * arg->size;
	ret = -ENOMEM;
	member->peers = kvcalloc(arg->size, sizeof(*member->peers),
				 GFP_KERNEL_ACCOUNT);
	if (!member->peers)
		goto err_put;
	ret = hcomm_sems_init(member, nr_sems);
	if (ret)
		goto err_put;
	ret = hcomm_events_init(member);
	if (ret)
		goto err_put;
	ret = hcomm_copier_init(member);
	if (ret)
		goto err_put;
	ret = hcomm_peers_read(member, arg->peers, 0, arg->nr_peers);
	if (ret)
		goto err_put;
	hcomm_member_lock(member);
	hcomm_sems_publish_state(member);
	hcomm_member_unlock(member);
	return member;

err_put:
	hcomm_member_put(member);
	return ERR_PTR(ret);
}

/* Makes the member findable; the tables keep it from now on. */
static int hcomm_member_enter(struct hcomm_member *member)
{
	int ret;

	ret = hcomm_cgroup_charge(HCOMM_CHARGE_MEMBER, &member->cgroup);
	if (ret)
		return ret;
	ret = hcomm_proc_add_member(member->proc, member);
	if (ret)
		goto err_cgroup;
	ret = hcomm_group_add_member(member->group, member);
	if (ret)
		goto err_proc;
	return 0;

err_proc:
	hcomm_proc_remove_member(member->proc, member);
err_cgroup:
	hcomm_cgroup_uncharge(HCOMM_CHARGE_MEMBER, member->cgroup);
	return ret;
}

static int hcomm_join_check(const struct hcomm_join *arg)
{
	if (arg->flags & ~HCOMM_JOIN_UNAUTHENTICATED || arg->reserved)
		return -EINVAL;
	if (!arg->size || arg->size > HCOMM_MAX_RANKS ||
	    arg->rank >= arg->size || arg->nr_peers > arg->size)
		return -EINVAL;
	if (arg->user_sems > HCOMM_MAX_USER_SEMS ||
	    arg->op_timeout_ns > HCOMM_MAX_TIMEOUT_NS)
		return -EINVAL;
	return 0;
}

int hcomm_member_join(struct hcomm_proc *proc, struct hcomm_join *arg)
{
	struct hcomm_member *member;
	struct hcomm_group *group;
	int ret;

	ret = hcomm_join_check(arg);
	if (ret)
		return ret;
	group = hcomm_group_open(proc->instance, arg->group_id, arg->secret,
				 arg->size,
				 arg->flags & HCOMM_JOIN_UNAUTHENTICATED);
	if (IS_ERR(group))
		return PTR_ERR(group);
	member = hcomm_member_create(proc, group, arg);
	if (IS_ERR(member))
		return PTR_ERR(member);
	ret = hcomm_member_enter(member);
	if (ret)
		goto out;

	trace_hcomm_join(proc->instance->nr, group->id, member->rank,
			 group->size, proc->pid);
	hcomm_session_member_up(member);
	arg->member = member->index;
	arg->nr_sems = member->sems.count;
	arg->sem_off = HCOMM_MAP_SEMS;
	arg->sem_bytes = member->sems.bytes;
	arg->wake_off = HCOMM_MAP_WAKE;
out:
	hcomm_member_put(member);
	return ret;
}
