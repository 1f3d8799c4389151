// SPDX-License-Identifier: GPL-2.0
/*
 * Semaphores and the sleep of ENTER. The values live in the kernel; the pages,
 * one 64-byte line each, are written for the process to read and never read
 * back. An op with a threshold waits in its semaphore's heap and goes to
 * member->ready when the semaphore reaches it.
 *
 * Locks: the member lock, for values, pages and triggers. The sleeper reads
 * values without it: it looks after it has queued itself, a signal is stored
 * before hcomm_proc_notify() looks for sleepers.
 */
#include <linux/hrtimer.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "area.h"
#include "member.h"
#include "op.h"
#include "proc.h"
#include "sem.h"

/* One wait of a WAIT_ANY, resolved. */
struct hcomm_waiter {
	struct hcomm_member *member;
	u32 sem;
	u64 value;
};

static void *hcomm_sems_line(struct hcomm_sems *sems, u32 line)
{
	return sems->pages + (size_t)line * HCOMM_SEM_LINE;
}

int hcomm_sems_init(struct hcomm_member *member, u32 count)
{
	struct hcomm_sems *sems = &member->sems;
	u32 i;

	sems->count = count;
	sems->bytes = PAGE_ALIGN((size_t)(HCOMM_SEM_FIRST_LINE + count) *
				 HCOMM_SEM_LINE);
	sems->pages = hcomm_area_alloc(sems->bytes);
	sems->values = kvcalloc(count, sizeof(*sems->values),
				GFP_KERNEL_ACCOUNT);
	sems->triggers = kvcalloc(count, sizeof(*sems->triggers),
				  GFP_KERNEL_ACCOUNT);
	if (!sems->pages || !sems->values || !sems->triggers) {
		hcomm_sems_free(member);
		return -ENOMEM;
	}
	for (i = 0; i < count; i++)
		hcomm_trigger_set_init(&sems->triggers[i]);
	return 0;
}

void hcomm_sems_free(struct hcomm_member *member)
{
	struct hcomm_sems *sems = &member->sems;

	kvfree(sems->triggers);
	kvfree(sems->values);
	hcomm_area_free(sems->pages);
	sems->triggers = NULL;
	sems->values = NULL;
	sems->pages = NULL;
}

int hcomm_sems_add(struct hcomm_member *member, u32 sem, u32 delta)
{
	struct hcomm_sems *sems = &member->sems;
	struct hcomm_trigger *trigger;
	struct hcomm_op *op;
	u64 *line, value;

	lockdep_assert_held(&member->lock);
	if (sem >= sems->count)
		return -EINVAL;
	sem = array_index_nospec(sem, sems->count);
	line = hcomm_sems_line(sems, HCOMM_SEM_FIRST_LINE + sem);
	value = hcomm_trigger_raise(sems->values[sem], delta);

	/* Pairs with the load-acquire in hcomm_wait_look(). */
	smp_store_release(&sems->values[sem], value);
	/* Pairs with the load-acquire of the process. */
	smp_store_release(line, value);
	while ((trigger = hcomm_trigger_pop(&sems->triggers[sem], value))) {
		op = container_of(trigger, struct hcomm_op, trigger);
		list_add_tail(&op->node, &member->ready);
	}
	return 0;
}

bool hcomm_sems_park(struct hcomm_member *member, struct hcomm_op *op)
{
	struct hcomm_sems *sems = &member->sems;
	u32 sem = array_index_nospec(op->sqe.wait_sem, sems->count);

	lockdep_assert_held(&member->lock);
	if (sems->values[sem] >= op->sqe.wait_value)
		return false;
	hcomm_trigger_add(&sems->triggers[sem], &op->trigger,
			  op->sqe.wait_value);
	return true;
}

void hcomm_sems_unpark(struct hcomm_member *member, struct hcomm_op *op)
{
	struct hcomm_sems *sems = &member->sems;
	u32 sem = array_index_nospec(op->sqe.wait_sem, sems->count);

	lockdep_assert_held(&member->lock);
	hcomm_trigger_remove(&sems->triggers[sem], &op->trigger);
}

void hcomm_sems_publish_state(struct hcomm_member *member)
{
	struct hcomm_state_line *line = hcomm_sems_line(&member->sems, 0);

	lockdep_assert_held(&member->lock);
	WRITE_ONCE(line->error, member->fault.error);
	WRITE_ONCE(line->cause, member->fault.cause);
	WRITE_ONCE(line->rank, member->fault.rank);
	WRITE_ONCE(line->op, member->fault.op);
	/* Pairs with the load-acquire by which the process reads the state. */
	smp_store_release(&line->state, member->state);
}

static void hcomm_wait_drop(struct hcomm_waiter *waiters, u32 nr)
{
	while (nr--)
		hcomm_member_put(waiters[nr].member);
}

static int hcomm_wait_resolve(struct hcomm_proc *proc,
			      struct hcomm_waiter *waiters, u64 uaddr, u32 nr)
{
	struct hcomm_wait waits[HCOMM_MAX_WAITS];
	struct hcomm_member *member;
	u32 i;

	if (copy_from_user(waits, u64_to_user_ptr(uaddr),
			   nr * sizeof(*waits)))
		return -EFAULT;
	for (i = 0; i < nr; i++) {
		member = hcomm_proc_member(proc, waits[i].member);
		if (!member) {
			hcomm_wait_drop(waiters, i);
			return -ENOENT;
		}
		waiters[i].member = member;
		waiters[i].sem = waits[i].sem;
		waiters[i].value = waits[i].value;
		if (waits[i].sem >= member->sems.count) {
			hcomm_wait_drop(waiters, i + 1);
			return -EINVAL;
		}
	}
	return 0;
}

static bool hcomm_wait_active(struct hcomm_member *member)
{
	return READ_ONCE(member->state) == HCOMM_STATE_ACTIVE;
}

/* True when the sleep is over; fills arg->ready. */
static bool hcomm_wait_look(struct hcomm_proc *proc, struct hcomm_member *self,
			    const struct hcomm_waiter *waiters,
			    struct hcomm_enter *arg)
{
	bool active = hcomm_wait_active(self);
	u32 i;

	arg->ready = 0;
	for (i = 0; i < arg->nr_waits; i++) {
		struct hcomm_sems *sems = &waiters[i].member->sems;
		u32 sem = array_index_nospec(waiters[i].sem, sems->count);

		/* Pairs with the store-release in hcomm_sems_add(). */
		if (smp_load_acquire(&sems->values[sem]) >= waiters[i].value)
			arg->ready |= 1U << i;
		active = active && hcomm_wait_active(waiters[i].member);
	}
	if (arg->ready || !active || READ_ONCE(proc->wake) != arg->wake)
		return true;
	return !arg->nr_waits && READ_ONCE(proc->activity) != arg->activity;
}

int hcomm_wait_any(struct hcomm_proc *proc, struct hcomm_member *self,
		   struct hcomm_enter *arg)
{
	struct hcomm_waiter waiters[HCOMM_MAX_WAITS];
	ktime_t deadline = ktime_add_ns(ktime_get(), arg->timeout_ns);
	bool expired = false;
	DEFINE_WAIT(wait);
	int ret;

	ret = hcomm_wait_resolve(proc, waiters, arg->waits, arg->nr_waits);
	if (ret)
		return ret;
	for (;;) {
		prepare_to_wait(&proc->wait, &wait, TASK_INTERRUPTIBLE);
		ret = 0;
		if (hcomm_wait_look(proc, self, waiters, arg))
			break;
		ret = -ETIME;
		if (expired)
			break;
		ret = -EINTR;
		if (signal_pending(current))
			break;
		expired = !schedule_hrtimeout_range(&deadline,
						    current->timer_slack_ns,
						    HRTIMER_MODE_ABS);
	}
	finish_wait(&proc->wait, &wait);
	hcomm_wait_drop(waiters, arg->nr_waits);
	return ret;
}

int hcomm_wake_rank(struct hcomm_member *self, u32 rank)
{
	struct hcomm_member *member;

	if (rank >= self->group->size)
		return -EINVAL;
	member = hcomm_group_member(self->group, rank);
	if (!member)
		return -ENOENT;
	hcomm_proc_notify(member->proc, true);
	hcomm_member_put(member);
	return 0;
}
