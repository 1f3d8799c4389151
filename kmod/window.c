// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: exporting a memory object into a group, and taking it back.
 *
 * Attach. Under member->windows_lock: the id must be new to the membership,
 * the object must have no window on its way out (a peer that still has the
 * right to write through the old one would write into the new one's data),
 * then the window is found by local ranks, then the transport is told.
 *
 * Revoke. The entry of the id becomes a value, so nobody finds the window any
 * more and the id stays used; the other windows of the object are told that
 * the memory is not quiet; the transport takes the keys back from the peers,
 * which ends in hcomm_window_quiesced(). Who found the window before may still
 * copy and holds a reference.
 *
 * Quiesced. With the last reference quiesce_work tells the owner and lets go
 * of the object. It may come long after the member has ended; the window keeps
 * the member's memory, not its life.
 *
 * Locks: windows_lock (outside all others but proc->lock) serialises attach,
 * detach and revoke; the table is read under RCU in any context. The state and
 * the object's list are under mem->lock.
 */
#include <linux/atomic.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "charge.h"
#include "fabric.h"
#include "limits.h"
#include "member.h"
#include "memory.h"
#include "session.h"
#include "trace.h"
#include "window.h"
#include "work.h"

void hcomm_windows_init(struct hcomm_member *member)
{
	xa_init(&member->windows);
	mutex_init(&member->windows_lock);
	atomic_set(&member->nr_windows, 0);
	atomic_set(&member->nr_keys, 0);
}

void hcomm_windows_free(struct hcomm_member *member)
{
	xa_destroy(&member->windows);
	mutex_destroy(&member->windows_lock);
}

/* Starts anywhere, so that one of an earlier life of the module is stale. */
static u32 hcomm_window_new_generation(void)
{
	static atomic_t last;
	static u32 start;
	u32 generation;

	get_random_once(&start, sizeof(start));
	do {
		generation = start + atomic_inc_return(&last);
	} while (!generation);
	return generation;
}

static void hcomm_window_quiesce_work(struct work_struct *work)
{
	struct hcomm_window *window = container_of(work, struct hcomm_window,
						   quiesce_work);
	struct hcomm_member *member = window->member;
	struct hcomm_mem *mem = window->mem;

	/* First the object, so that who reads the event may destroy it. */
	spin_lock_bh(&mem->lock);
	window->state = HCOMM_WINDOW_QUIESCED;
	list_del(&window->mem_node);
	mem->nr_windows--;
	mem->revoking--;
	spin_unlock_bh(&mem->lock);
	hcomm_mem_put(mem);

	trace_hcomm_revoke(member->group->id, member->rank, window->id,
			   window->generation, true);
	/* Who reads the event may attach another, too. */
	atomic_sub(window->nr_keys, &member->nr_keys);
	atomic_dec(&member->nr_windows);
	hcomm_cgroup_uncharge(HCOMM_CHARGE_WINDOW, window->cg);
	hcomm_member_lock(member);
	hcomm_event_raise(member, HCOMM_EVENT_QUIESCED, member->rank,
			  window->id);
	hcomm_member_unlock(member);

	hcomm_member_put(member);
	kfree_rcu(window, rcu);
}

static void hcomm_window_last_put(struct kref *ref)
{
	struct hcomm_window *window = container_of(ref, struct hcomm_window,
						   ref);

	queue_work(hcomm_teardown_wq, &window->quiesce_work);
}

void hcomm_window_get(struct hcomm_window *window)
{
	kref_get(&window->ref);
}

void hcomm_window_put(struct hcomm_window *window)
{
	kref_put(&window->ref, hcomm_window_last_put);
}

void hcomm_window_quiesced(struct hcomm_window *window)
{
	hcomm_window_put(window);
}

/* What a peer has to keep for it at the most, whatever the device. */
static u32 hcomm_window_keys(const struct hcomm_mem *mem)
{
	return ((mem->base_off + mem->length - 1) >> HCOMM_MR_SHIFT_LEAST) + 1;
}

static struct hcomm_window *hcomm_window_alloc(struct hcomm_member *member,
					       struct hcomm_mem *mem, u32 id)
{
	struct hcomm_window *window;
	int ret;

	window = kzalloc(sizeof(*window), GFP_KERNEL_ACCOUNT);
	if (!window)
		return ERR_PTR(-ENOMEM);
	ret = hcomm_cgroup_charge(HCOMM_CHARGE_WINDOW, &window->cg);
	if (ret) {
		kfree(window);
		return ERR_PTR(ret);
	}
	kref_init(&window->ref);
	hcomm_member_get(member);
	window->member = member;
	hcomm_mem_get(mem);
	window->mem = mem;
	window->nr_keys = hcomm_window_keys(mem);
	window->id = id;
	window->generation = hcomm_window_new_generation();
	window->state = HCOMM_WINDOW_LIVE;
	INIT_WORK(&window->quiesce_work, hcomm_window_quiesce_work);
	return window;
}

/* Only for a window that nobody has seen. */
static void hcomm_window_discard(struct hcomm_window *window)
{
	hcomm_cgroup_uncharge(HCOMM_CHARGE_WINDOW, window->cg);
	hcomm_mem_put(window->mem);
	hcomm_member_put(window->member);
	kfree(window);
}

/* Enters the window into its object and its member, or neither. */
static int hcomm_window_publish(struct hcomm_window *window)
{
	struct hcomm_member *member = window->member;
	struct hcomm_mem *mem = window->mem;
	int ret;

	lockdep_assert_held(&member->windows_lock);

	spin_lock_bh(&member->lock);
	ret = hcomm_member_error(member);
	spin_unlock_bh(&member->lock);
	if (ret)
		return ret;
	if (xa_load(&member->windows, window->id))
		return -EEXIST;
	if (atomic_read(&member->nr_windows) >= HCOMM_MAX_WINDOWS ||
	    window->nr_keys > HCOMM_MAX_KEYS - atomic_read(&member->nr_keys))
		return -ENOSPC;
	ret = xa_reserve(&member->windows, window->id, GFP_KERNEL_ACCOUNT);
	if (ret)
		return ret;

	spin_lock_bh(&mem->lock);
	if (mem->revoking) {
		spin_unlock_bh(&mem->lock);
		xa_release(&member->windows, window->id);
		return -EBUSY;
	}
	list_add_tail(&window->mem_node, &mem->windows);
	mem->nr_windows++;
	spin_unlock_bh(&mem->lock);

	atomic_inc(&member->nr_windows);
	atomic_add(window->nr_keys, &member->nr_keys);
	xa_store(&member->windows, window->id, window, GFP_KERNEL_ACCOUNT);
	hcomm_session_window_up(window);
	return 0;
}

int hcomm_window_attach(struct hcomm_member *member,
			struct hcomm_win_attach *arg)
{
	struct hcomm_window *window;
	struct hcomm_mem *mem;
	int ret;

	if (arg->flags || arg->window >= HCOMM_WINDOW_IDS)
		return -EINVAL;
	/* Used, so that MEM_DESTROY cannot pass by. */
	mem = hcomm_mem_use(member->proc, arg->object);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	window = hcomm_window_alloc(member, mem, arg->window);
	if (IS_ERR(window)) {
		ret = PTR_ERR(window);
		goto out;
	}
	arg->generation = window->generation;

	mutex_lock(&member->windows_lock);
	ret = hcomm_window_publish(window);
	mutex_unlock(&member->windows_lock);
	if (ret)
		hcomm_window_discard(window);
out:
	hcomm_mem_unuse(mem);
	return ret;
}

/*
 * Tells the object's other windows that the memory can still change. Those of
 * a member that has failed or ended are on their way out themselves.
 */
static void hcomm_window_tell_siblings(struct hcomm_window *window)
{
	struct hcomm_mem *mem = window->mem;
	struct hcomm_window *sibling, *last = NULL;

	spin_lock_bh(&mem->lock);
	list_for_each_entry(sibling, &mem->windows, mem_node) {
		if (sibling->state != HCOMM_WINDOW_LIVE ||
		    READ_ONCE(sibling->member->state) != HCOMM_STATE_ACTIVE ||
		    !kref_get_unless_zero(&sibling->ref))
			continue;
		spin_unlock_bh(&mem->lock);

		if (last)
			hcomm_window_put(last);
		last = sibling;
		hcomm_member_lock(sibling->member);
		hcomm_event_raise(sibling->member, HCOMM_EVENT_NOT_QUIESCED,
				  sibling->member->rank, sibling->id);
		hcomm_member_unlock(sibling->member);

		/* The reference keeps the sibling on the list. */
		spin_lock_bh(&mem->lock);
	}
	spin_unlock_bh(&mem->lock);
	if (last)
		hcomm_window_put(last);
}

static void hcomm_window_revoke(struct hcomm_window *window)
{
	struct hcomm_member *member = window->member;
	struct hcomm_mem *mem = window->mem;
	bool first;

	lockdep_assert_held(&member->windows_lock);

	/* Replaces an entry, so it cannot fail. */
	xa_store(&member->windows, window->id, xa_mk_value(1),
		 GFP_KERNEL_ACCOUNT);
	spin_lock_bh(&mem->lock);
	window->state = HCOMM_WINDOW_REVOKING;
	first = !mem->revoking++;
	spin_unlock_bh(&mem->lock);

	trace_hcomm_revoke(member->group->id, member->rank, window->id,
			   window->generation, false);
	/* None was added while others were revoking: they know. */
	if (first)
		hcomm_window_tell_siblings(window);
	/* The window may be gone when this returns. */
	hcomm_session_window_down(window);
}

int hcomm_window_detach(struct hcomm_member *member, u32 id)
{
	struct hcomm_window *window;
	int ret = 0;

	mutex_lock(&member->windows_lock);
	window = xa_load(&member->windows, id);
	if (!window)
		ret = -ENOENT;
	else if (xa_is_value(window))
		ret = -ESTALE;
	else
		hcomm_window_revoke(window);
	mutex_unlock(&member->windows_lock);
	return ret;
}

void hcomm_windows_revoke(struct hcomm_member *member)
{
	struct hcomm_window *window;
	unsigned long id;

	mutex_lock(&member->windows_lock);
	xa_for_each(&member->windows, id, window) {
		if (!xa_is_value(window))
			hcomm_window_revoke(window);
		cond_resched();
	}
	mutex_unlock(&member->windows_lock);
}

struct hcomm_window *hcomm_window_find(struct hcomm_member *member, u32 id,
				       u32 generation)
{
	struct hcomm_window *window;

	rcu_read_lock();
	window = xa_load(&member->windows, id);
	if (!window)
		window = ERR_PTR(-ENOENT);
	else if (xa_is_value(window) ||
		 (generation && generation != window->generation) ||
		 !kref_get_unless_zero(&window->ref))
		window = ERR_PTR(-ESTALE);
	rcu_read_unlock();
	return window;
}

struct hcomm_window *hcomm_window_next(struct hcomm_member *member, u32 *id)
{
	struct hcomm_window *window, *found = NULL;
	unsigned long at;

	rcu_read_lock();
	xa_for_each_start(&member->windows, at, window, *id) {
		if (xa_is_value(window) || !kref_get_unless_zero(&window->ref))
			continue;
		*id = at;
		found = window;
		break;
	}
	rcu_read_unlock();
	return found;
}
