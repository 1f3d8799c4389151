// SPDX-License-Identifier: GPL-2.0
/*
 * Ops whose target is on the same instance.
 *
 * A member has a few queues; all its ops to one rank go through the same one,
 * in order, each finished with its signal before the next begins. So a signal
 * follows its own data and that of all earlier ops, and a FENCE that is
 * reached has nothing to wait for.
 *
 * A queue that is not idle has one runner, which holds a reference to the
 * member: the submitter, the outermost submitter of this CPU, or the work
 * item. Small ops run where they are submitted, with bottom halves off.
 * Applying a signal may dispatch ops that waited for it, and these are
 * submitted from within: they do not run there but are left to the outermost
 * submitter of this CPU, so the stack does not grow with the chain. After
 * HCOMM_COPY_BATCH ops the rest goes to work items, large ops always.
 *
 * A queued op holds a reference to itself, to its target and, as every op, to
 * its object: neither side's process needs to live. A window is found when the
 * op runs and is referenced while bytes move.
 *
 * Locks: queue->lock is a leaf. Member locks are taken one at a time, the
 * target's for the signal, the source's by the completion.
 */
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "copy.h"
#include "member.h"
#include "memory.h"
#include "op.h"
#include "window.h"
#include "work.h"

#define HCOMM_COPY_QUEUES	64
#define HCOMM_COPY_BATCH	64
#define HCOMM_COPY_SMALL	SZ_8K
#define HCOMM_COPY_PIECE	SZ_64K
#define HCOMM_COPY_TURN		SZ_16M	/* before another queue's turn */

struct hcomm_copy_queue {
	spinlock_t lock;		/* ops, running */
	struct list_head ops;		/* not started */
	bool running;			/* somebody takes from ops */
	struct list_head pending;	/* hcomm_copy_cpu.pending */
	struct work_struct work;
	struct hcomm_member *member;
};

struct hcomm_copier {
	u32 mask;
	struct hcomm_copy_queue queues[];
};

/* Used with bottom halves off. */
struct hcomm_copy_cpu {
	bool active;
	struct list_head pending;	/* queues to run, by hcomm_copy_queue */
};

static DEFINE_PER_CPU(struct hcomm_copy_cpu, hcomm_copy_cpus);

void hcomm_copy_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		INIT_LIST_HEAD(&per_cpu(hcomm_copy_cpus, cpu).pending);
}

static bool hcomm_copy_is_small(const struct hcomm_op *op)
{
	return op->sqe.length <= HCOMM_COPY_SMALL;
}

static int hcomm_copy_error(struct hcomm_member *member)
{
	int error;

	if (likely(READ_ONCE(member->state) == HCOMM_STATE_ACTIVE))
		return 0;
	spin_lock_bh(&member->lock);
	error = hcomm_member_error(member);
	spin_unlock_bh(&member->lock);
	return error;
}

/* Why the op cannot go on. The target's fault says more than our end. */
static int hcomm_copy_stopped(struct hcomm_op *op)
{
	return hcomm_copy_error(op->target) ?: hcomm_copy_error(op->member);
}

/*
 * Moves the bytes. Pieces go from the end when the ranges overlap that way,
 * as within a piece.
 */
static int hcomm_copy_move(struct hcomm_op *op, struct hcomm_mem *dst,
			   u64 dst_off, struct hcomm_mem *src, u64 src_off,
			   bool may_sleep)
{
	bool backward = dst == src && dst_off > src_off;
	u64 left = op->sqe.length;
	u64 at = 0;
	size_t n;
	int ret;

	while (left) {
		n = min_t(u64, left, HCOMM_COPY_PIECE);
		left -= n;
		hcomm_mem_copy(dst, dst_off + (backward ? left : at),
			       src, src_off + (backward ? left : at), n);
		at += n;
		if (!left)
			break;
		if (may_sleep)
			cond_resched();
		ret = hcomm_copy_stopped(op);
		if (ret)
			return ret;
	}
	return 0;
}

static int hcomm_copy_data(struct hcomm_op *op, bool may_sleep)
{
	const struct hcomm_sqe *sqe = &op->sqe;
	struct hcomm_window *window;
	int ret = -ERANGE;

	window = hcomm_window_find(op->target, sqe->window, 0);
	if (IS_ERR(window))
		return PTR_ERR(window);
	if (!hcomm_mem_inside(window->mem, sqe->remote_off, sqe->length))
		goto out;
	if (sqe->opcode == HCOMM_OP_GET)
		ret = hcomm_copy_move(op, op->mem, sqe->local_off, window->mem,
				      sqe->remote_off, may_sleep);
	else
		ret = hcomm_copy_move(op, window->mem, sqe->remote_off,
				      op->mem, sqe->local_off, may_sleep);
out:
	hcomm_window_put(window);
	return ret;
}

static bool hcomm_copy_signals(const struct hcomm_op *op)
{
	return op->sqe.opcode == HCOMM_OP_SIGNAL ||
	       op->sqe.flags & HCOMM_OPF_SIGNAL;
}

static int hcomm_copy_signal(struct hcomm_op *op)
{
	struct hcomm_member *target = op->target;
	int ret;

	hcomm_member_lock(target);
	ret = hcomm_member_error(target);
	if (!ret)
		ret = hcomm_member_signal(target,
					  array_index_nospec(op->sqe.sem,
							     target->sems.count),
					  op->sqe.delta);
	hcomm_member_unlock(target);
	return ret;
}

static void hcomm_copy_run(struct hcomm_op *op, bool may_sleep)
{
	bool signals = hcomm_copy_signals(op);
	int ret;

	ret = hcomm_copy_stopped(op);
	/* An op whose signal cannot be applied moves no byte either. */
	if (!ret && signals && op->sqe.sem >= op->target->sems.count)
		ret = -EINVAL;
	if (!ret && op->mem)
		ret = hcomm_copy_data(op, may_sleep);
	if (!ret && signals)
		ret = hcomm_copy_signal(op);

	hcomm_member_put(op->target);
	hcomm_op_drop_object(op);
	hcomm_op_complete(op, ret, 0);
	hcomm_op_put(op);
}

/*
 * The next op if it is the runner's to run. False with *@op NULL: the queue is
 * idle now. False with *@op set: there is one, but only for a work item.
 */
static bool hcomm_copy_take(struct hcomm_copy_queue *queue, bool small_only,
			    struct hcomm_op **op)
{
	bool taken = false;

	spin_lock_bh(&queue->lock);
	*op = list_first_entry_or_null(&queue->ops, struct hcomm_op, node);
	if (!*op) {
		queue->running = false;
	} else if (!small_only || hcomm_copy_is_small(*op)) {
		list_del_init(&(*op)->node);
		taken = true;
	}
	spin_unlock_bh(&queue->lock);
	return taken;
}

/* In bytes: an op without data is no less work than a small copy. */
static u64 hcomm_copy_cost(const struct hcomm_op *op)
{
	return max_t(u64, op->sqe.length, HCOMM_COPY_SMALL);
}

static void hcomm_copy_work(struct work_struct *work)
{
	struct hcomm_copy_queue *queue = container_of(work,
						      struct hcomm_copy_queue,
						      work);
	struct hcomm_member *member = queue->member;
	u64 left = HCOMM_COPY_TURN;
	struct hcomm_op *op;

	while (hcomm_copy_take(queue, false, &op)) {
		left -= min(left, hcomm_copy_cost(op));
		hcomm_copy_run(op, true);
		cond_resched();
		if (left)
			continue;
		/* Others have their turn; the runner's reference goes along. */
		queue_work(hcomm_copy_wq, &queue->work);
		return;
	}
	/* The queue may go with the member. */
	hcomm_member_put(member);
}

/* Runs what is small and at the head; hands over the rest. */
static void hcomm_copy_run_small(struct hcomm_copy_queue *queue, u32 *budget)
{
	struct hcomm_member *member = queue->member;
	struct hcomm_op *op;

	while (*budget && hcomm_copy_take(queue, true, &op)) {
		hcomm_copy_run(op, false);
		(*budget)--;
	}
	if (!*budget || op)
		queue_work(hcomm_copy_wq, &queue->work);
	else
		hcomm_member_put(member);
}

/* @queue has just got its first op and we are to see that it runs. */
static void hcomm_copy_start(struct hcomm_copy_queue *queue)
{
	u32 budget = HCOMM_COPY_BATCH;
	struct hcomm_copy_cpu *cpu;

	local_bh_disable();
	cpu = this_cpu_ptr(&hcomm_copy_cpus);
	list_add_tail(&queue->pending, &cpu->pending);
	if (cpu->active)
		goto out;
	cpu->active = true;
	while (!list_empty(&cpu->pending)) {
		queue = list_first_entry(&cpu->pending,
					 struct hcomm_copy_queue, pending);
		list_del_init(&queue->pending);
		hcomm_copy_run_small(queue, &budget);
	}
	cpu->active = false;
out:
	local_bh_enable();
}

static struct hcomm_copy_queue *hcomm_copy_queue_of(const struct hcomm_op *op)
{
	struct hcomm_copier *copier = op->member->copier;
	u32 rank = op->sqe.opcode == HCOMM_OP_COPY ? op->member->rank :
						     op->sqe.rank;

	return &copier->queues[rank & copier->mask];
}

/* True: the queue was idle, and the caller is to see that it runs. */
static bool hcomm_copy_enqueue(struct hcomm_copy_queue *queue,
			       struct hcomm_op *op, struct hcomm_member *target)
{
	bool start;

	hcomm_op_get(op);
	hcomm_member_get(target);
	op->target = target;

	spin_lock_bh(&queue->lock);
	list_add_tail(&op->node, &queue->ops);
	start = !queue->running;
	if (start) {
		queue->running = true;
		hcomm_member_get(queue->member);
	}
	spin_unlock_bh(&queue->lock);
	return start;
}

void hcomm_copy_submit(struct hcomm_op *op, struct hcomm_member *target)
{
	struct hcomm_copy_queue *queue = hcomm_copy_queue_of(op);
	bool small = hcomm_copy_is_small(op);

	if (!hcomm_copy_enqueue(queue, op, target))
		return;
	if (small)
		hcomm_copy_start(queue);
	else
		queue_work(hcomm_copy_wq, &queue->work);
}

void hcomm_copy_defer(struct hcomm_op *op, struct hcomm_member *target)
{
	struct hcomm_copy_queue *queue = hcomm_copy_queue_of(op);

	if (hcomm_copy_enqueue(queue, op, target))
		queue_work(hcomm_copy_wq, &queue->work);
}

bool hcomm_copy_retract(struct hcomm_op *op)
{
	struct hcomm_copy_queue *queue = hcomm_copy_queue_of(op);
	bool queued;

	spin_lock_bh(&queue->lock);
	queued = !list_empty(&op->node);
	if (queued)
		list_del_init(&op->node);
	spin_unlock_bh(&queue->lock);

	if (queued) {
		hcomm_member_put(op->target);
		hcomm_op_put(op);
	}
	return queued;
}

int hcomm_copier_init(struct hcomm_member *member)
{
	u32 count = roundup_pow_of_two(min_t(u32, member->group->size,
					     HCOMM_COPY_QUEUES));
	struct hcomm_copy_queue *queue;
	struct hcomm_copier *copier;

	copier = kvzalloc(struct_size(copier, queues, count),
			  GFP_KERNEL_ACCOUNT);
	if (!copier)
		return -ENOMEM;
	copier->mask = count - 1;
	for (queue = copier->queues; queue < copier->queues + count; queue++) {
		spin_lock_init(&queue->lock);
		INIT_LIST_HEAD(&queue->ops);
		INIT_LIST_HEAD(&queue->pending);
		INIT_WORK(&queue->work, hcomm_copy_work);
		queue->member = member;
	}
	member->copier = copier;
	return 0;
}

void hcomm_copier_free(struct hcomm_member *member)
{
	kvfree(member->copier);
	member->copier = NULL;
}
