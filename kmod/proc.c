// SPDX-License-Identifier: GPL-2.0
/*
 * Processes. A proc is found by its address space in instance->procs, from the
 * first file bound to it until the last is unbound or the address space goes.
 * Its notifier pins the mm_struct, so that an address in the list is never
 * that of another process. It is unregistered with the last reference, in a
 * work item that waits for a running .release: nothing is freed by a callback
 * that unloading would have to wait for.
 *
 * .release comes when the last user of the address space is gone (exit, exec):
 * the work item ends what the process owned and tells the peers. It comes at
 * most once, and may come while the last reference is dropped elsewhere.
 *
 * Locks: procs_lock, then proc->lock; neither is held while a member ends, nor
 * while anything waits for an mmap_lock: that of one process must not hold up
 * the others.
 */
#include <linux/cred.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "area.h"
#include "instance.h"
#include "limits.h"
#include "member.h"
#include "memory.h"
#include "proc.h"
#include "work.h"

static void hcomm_proc_end(struct hcomm_proc *proc)
{
	struct hcomm_instance *instance = proc->instance;
	struct hcomm_member *member;
	unsigned long index;

	mutex_lock(&instance->procs_lock);
	list_del_init(&proc->node);
	mutex_unlock(&instance->procs_lock);

	mutex_lock(&proc->lock);
	proc->dead = true;
	mutex_unlock(&proc->lock);

	/* Nothing is added any more. */
	xa_for_each(&proc->members, index, member) {
		member = hcomm_proc_member(proc, index);
		if (!member)
			continue;
		hcomm_member_end(member, HCOMM_CAUSE_PROCESS);
		hcomm_member_put(member);
	}
	hcomm_mem_destroy_all(proc);
}

static void hcomm_proc_end_work(struct work_struct *work)
{
	struct hcomm_proc *proc = container_of(work, struct hcomm_proc,
					       end_work);

	hcomm_proc_end(proc);
	hcomm_proc_put(proc);
}

static void hcomm_proc_mm_release(struct mmu_notifier *notifier,
				  struct mm_struct *mm)
{
	struct hcomm_proc *proc = container_of(notifier, struct hcomm_proc,
					       notifier);

	if (kref_get_unless_zero(&proc->ref))
		queue_work(hcomm_teardown_wq, &proc->end_work);
}

static const struct mmu_notifier_ops hcomm_proc_notifier_ops = {
	.release = hcomm_proc_mm_release,
};

static void hcomm_proc_free_work(struct work_struct *work)
{
	struct hcomm_proc *proc = container_of(work, struct hcomm_proc,
					       free_work);
	struct hcomm_instance *instance = proc->instance;

	mmu_notifier_unregister(&proc->notifier, proc->mm);
	xa_destroy(&proc->members);
	xa_destroy(&proc->objects);
	hcomm_area_free(proc->wake_page);
	mutex_destroy(&proc->lock);
	/* Observers look at the proc of a member that they found under RCU. */
	kfree_rcu(proc, rcu);
	hcomm_instance_drop(instance);
}

static struct hcomm_proc *hcomm_proc_create(struct hcomm_instance *instance)
{
	struct hcomm_proc *proc;
	int ret = -ENOMEM;

	proc = kzalloc(sizeof(*proc), GFP_KERNEL_ACCOUNT);
	if (!proc)
		return ERR_PTR(-ENOMEM);
	proc->wake_page = hcomm_area_alloc(PAGE_SIZE);
	if (!proc->wake_page)
		goto err_free;
	kref_init(&proc->ref);
	INIT_LIST_HEAD(&proc->node);
	proc->instance = instance;
	proc->mm = current->mm;
	proc->uid = current_uid();
	proc->pid = task_tgid_nr(current);
	mutex_init(&proc->lock);
	xa_init_flags(&proc->objects, XA_FLAGS_ALLOC1);
	xa_init(&proc->members);
	spin_lock_init(&proc->wake_lock);
	init_waitqueue_head(&proc->wait);
	INIT_WORK(&proc->end_work, hcomm_proc_end_work);
	INIT_WORK(&proc->free_work, hcomm_proc_free_work);

	proc->notifier.ops = &hcomm_proc_notifier_ops;
	ret = mmu_notifier_register(&proc->notifier, current->mm);
	if (ret)
		goto err_area;
	hcomm_instance_hold(instance);
	return proc;

err_area:
	hcomm_area_free(proc->wake_page);
err_free:
	kfree(proc);
	return ERR_PTR(ret);
}

static struct hcomm_proc *hcomm_proc_find(struct hcomm_instance *instance,
					  struct mm_struct *mm)
{
	struct hcomm_proc *proc;

	lockdep_assert_held(&instance->procs_lock);
	list_for_each_entry(proc, &instance->procs, node)
		if (proc->mm == mm)
			return proc;
	return NULL;
}

/* Counts a file for the listed proc of the caller, if need be @fresh. */
static struct hcomm_proc *hcomm_proc_count_file(struct hcomm_instance *instance,
						struct hcomm_proc *fresh)
{
	struct hcomm_proc *proc;

	if (mutex_lock_killable(&instance->procs_lock))
		return ERR_PTR(-EINTR);
	proc = hcomm_proc_find(instance, current->mm);
	if (!proc && fresh) {
		proc = fresh;
		list_add(&proc->node, &instance->procs);
	}
	if (proc) {
		proc->files++;
		hcomm_proc_get(proc);
	}
	mutex_unlock(&instance->procs_lock);
	return proc;
}

/* A new proc is made outside of the lock: its mmap_lock may be held for long. */
struct hcomm_proc *hcomm_proc_bind(struct hcomm_instance *instance)
{
	struct hcomm_proc *proc, *fresh;

	proc = hcomm_proc_count_file(instance, NULL);
	if (proc)
		return proc;
	fresh = hcomm_proc_create(instance);
	if (IS_ERR(fresh))
		return fresh;
	proc = hcomm_proc_count_file(instance, fresh);
	hcomm_proc_put(fresh);
	return proc;
}

void hcomm_proc_unbind(struct hcomm_proc *proc)
{
	struct hcomm_instance *instance = proc->instance;
	bool last;

	mutex_lock(&instance->procs_lock);
	last = !--proc->files;
	if (last)
		list_del_init(&proc->node);	/* the next bind makes another */
	mutex_unlock(&instance->procs_lock);
	if (last)
		hcomm_proc_end(proc);
}

void hcomm_proc_get(struct hcomm_proc *proc)
{
	kref_get(&proc->ref);
}

static void hcomm_proc_release(struct kref *ref)
{
	struct hcomm_proc *proc = container_of(ref, struct hcomm_proc, ref);

	queue_work(hcomm_teardown_wq, &proc->free_work);
}

void hcomm_proc_put(struct hcomm_proc *proc)
{
	kref_put(&proc->ref, hcomm_proc_release);
}

int hcomm_proc_add_member(struct hcomm_proc *proc, struct hcomm_member *member)
{
	int ret;

	if (mutex_lock_killable(&proc->lock))
		return -EINTR;
	ret = -ESHUTDOWN;
	if (proc->dead)
		goto out;
	ret = -EMFILE;
	if (proc->nr_members == HCOMM_MAX_MEMBERS ||
	    proc->next_member == U32_MAX)
		goto out;
	member->index = proc->next_member;
	ret = xa_insert(&proc->members, member->index, member,
			GFP_KERNEL_ACCOUNT);
	if (ret)
		goto out;
	proc->next_member++;
	proc->nr_members++;
	hcomm_member_get(member);
out:
	mutex_unlock(&proc->lock);
	return ret;
}

void hcomm_proc_remove_member(struct hcomm_proc *proc,
			      struct hcomm_member *member)
{
	mutex_lock(&proc->lock);
	xa_erase(&proc->members, member->index);
	proc->nr_members--;
	mutex_unlock(&proc->lock);
	hcomm_member_put(member);
}

struct hcomm_member *hcomm_proc_member(struct hcomm_proc *proc, u32 index)
{
	struct hcomm_member *member;

	rcu_read_lock();
	member = xa_load(&proc->members, index);
	if (member && !kref_get_unless_zero(&member->ref))
		member = NULL;
	rcu_read_unlock();
	return member;
}

void hcomm_proc_notify(struct hcomm_proc *proc, bool urgent)
{
	unsigned long flags;

	spin_lock_irqsave(&proc->wake_lock, flags);
	WRITE_ONCE(proc->activity, proc->activity + 1);
	WRITE_ONCE(proc->wake_page->activity, proc->activity);
	if (urgent) {
		WRITE_ONCE(proc->wake, proc->wake + 1);
		WRITE_ONCE(proc->wake_page->wake, proc->wake);
	}
	spin_unlock_irqrestore(&proc->wake_lock, flags);
	/* The barrier within pairs with that of prepare_to_wait(). */
	if (wq_has_sleeper(&proc->wait))
		wake_up_all(&proc->wait);
}
