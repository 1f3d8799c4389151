// SPDX-License-Identifier: GPL-2.0
/*
 * Ops: checking an SQE, the way from the ring to the owner, the end.
 *
 * An op is on member->ops from hcomm_op_create() to hcomm_op_complete(), in
 * the order of creation and therefore, as all ops of a member have the same
 * timeout, in the order of deadlines. op->owner tells who may take it off:
 *
 *	WAITING	parked on a semaphore or on member->ready (under member->lock),
 *		or in the hands of the ring or the drainer, about to dispatch
 *	TRANSIT	dispatch is handing it over
 *	COPIER	hcomm_copy_retract()
 *	SESSION	hcomm_session_cancel()
 *
 * Faults and deadlines come from other contexts. They end what waits and what
 * has an owner; what is in somebody's hands they leave, and dispatch, which
 * looks at the member's state before and after handing over, ends it: who
 * comes second does the work. done, set under member->lock, makes every op end
 * once.
 *
 * Locks: member->lock, never held while an owner is called.
 */
#include <linux/bits.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "copy.h"
#include "limits.h"
#include "member.h"
#include "memory.h"
#include "op.h"
#include "proc.h"
#include "session.h"
#include "trace.h"
#include "work.h"

/* An op that is due but in somebody's hands is looked at again so soon. */
#define HCOMM_EXPIRE_RETRY_MS	10

#define HCOMM_USES_RANK		BIT(0)
#define HCOMM_USES_DATA		BIT(1)
#define HCOMM_USES_SEM		BIT(2)
#define HCOMM_USES_WAIT		BIT(3)

struct hcomm_op_form {
	u8 flags;		/* HCOMM_OPF_* that the opcode allows */
	u8 uses;		/* HCOMM_USES_* whatever the flags */
};

static const struct hcomm_op_form hcomm_op_forms[] = {
	[HCOMM_OP_NOP] = {
		.flags = HCOMM_OPF_WAIT | HCOMM_OPF_SILENT,
	},
	[HCOMM_OP_PUT] = {
		.flags = HCOMM_OPF_SIGNAL | HCOMM_OPF_WAIT |
			 HCOMM_OPF_UNORDERED | HCOMM_OPF_SILENT,
		.uses = HCOMM_USES_RANK | HCOMM_USES_DATA,
	},
	[HCOMM_OP_GET] = {
		.flags = HCOMM_OPF_WAIT | HCOMM_OPF_SILENT,
		.uses = HCOMM_USES_RANK | HCOMM_USES_DATA,
	},
	[HCOMM_OP_SIGNAL] = {
		.flags = HCOMM_OPF_WAIT | HCOMM_OPF_UNORDERED |
			 HCOMM_OPF_SILENT,
		.uses = HCOMM_USES_RANK | HCOMM_USES_SEM,
	},
	[HCOMM_OP_WAIT] = {
		.flags = HCOMM_OPF_SILENT,
		.uses = HCOMM_USES_WAIT,
	},
	[HCOMM_OP_FENCE] = {
		.flags = HCOMM_OPF_WAIT | HCOMM_OPF_SILENT,
		.uses = HCOMM_USES_RANK,
	},
	[HCOMM_OP_COPY] = {
		.flags = HCOMM_OPF_SIGNAL | HCOMM_OPF_WAIT | HCOMM_OPF_SILENT,
		.uses = HCOMM_USES_DATA,
	},
};

static struct kmem_cache *hcomm_op_cache;

int hcomm_ops_init(void)
{
	hcomm_copy_init();
	hcomm_op_cache = KMEM_CACHE(hcomm_op, SLAB_ACCOUNT);
	return hcomm_op_cache ? 0 : -ENOMEM;
}

void hcomm_ops_exit(void)
{
	kmem_cache_destroy(hcomm_op_cache);
}

void hcomm_op_get(struct hcomm_op *op)
{
	kref_get(&op->ref);
}

void hcomm_op_drop_object(struct hcomm_op *op)
{
	if (op->mem)
		hcomm_mem_unuse(op->mem);
	op->mem = NULL;
}

static void hcomm_op_release(struct kref *ref)
{
	struct hcomm_op *op = container_of(ref, struct hcomm_op, ref);

	hcomm_op_drop_object(op);
	hcomm_member_put(op->member);
	kmem_cache_free(hcomm_op_cache, op);
}

void hcomm_op_put(struct hcomm_op *op)
{
	kref_put(&op->ref, hcomm_op_release);
}

static bool hcomm_op_waits(const struct hcomm_op *op)
{
	return op->sqe.opcode == HCOMM_OP_WAIT ||
	       op->sqe.flags & HCOMM_OPF_WAIT;
}

static int hcomm_op_check_data(const struct hcomm_sqe *sqe, bool used)
{
	u64 end;

	if (!used)
		return sqe->object || sqe->window || sqe->local_off ||
		       sqe->remote_off || sqe->length ? -EINVAL : 0;
	if (sqe->length > HCOMM_MAX_OP_BYTES)
		return -EINVAL;
	if (check_add_overflow(sqe->remote_off, sqe->length, &end))
		return -ERANGE;
	return 0;
}

/*
 * The semaphore of another rank is checked where it is: its member may have
 * asked for more than this one.
 */
static int hcomm_op_check_sem(const struct hcomm_member *member,
			      struct hcomm_sqe *sqe, bool used)
{
	if (!used)
		return sqe->sem || sqe->delta ? -EINVAL : 0;
	if (sqe->opcode != HCOMM_OP_COPY)
		return 0;
	if (sqe->sem >= member->sems.count)
		return -EINVAL;
	sqe->sem = array_index_nospec(sqe->sem, member->sems.count);
	return 0;
}

static int hcomm_op_check_wait(const struct hcomm_member *member,
			       struct hcomm_sqe *sqe, bool used)
{
	if (!used)
		return sqe->wait_sem || sqe->wait_value ? -EINVAL : 0;
	if (sqe->wait_sem >= member->sems.count)
		return -EINVAL;
	sqe->wait_sem = array_index_nospec(sqe->wait_sem, member->sems.count);
	return 0;
}

/* Returns what the op uses, or a negative errno. */
static int hcomm_op_check(const struct hcomm_member *member,
			  struct hcomm_sqe *sqe)
{
	u32 opcode = sqe->opcode;
	u32 uses;
	int ret;

	if (opcode >= ARRAY_SIZE(hcomm_op_forms))
		return -EINVAL;
	opcode = array_index_nospec(opcode, ARRAY_SIZE(hcomm_op_forms));
	if (sqe->flags & ~hcomm_op_forms[opcode].flags || sqe->reserved)
		return -EINVAL;

	uses = hcomm_op_forms[opcode].uses;
	if (sqe->flags & HCOMM_OPF_SIGNAL)
		uses |= HCOMM_USES_SEM;
	if (sqe->flags & HCOMM_OPF_WAIT)
		uses |= HCOMM_USES_WAIT;

	if (uses & HCOMM_USES_RANK ? sqe->rank >= member->group->size :
				     sqe->rank != 0)
		return -EINVAL;
	ret = hcomm_op_check_data(sqe, uses & HCOMM_USES_DATA);
	if (!ret)
		ret = hcomm_op_check_sem(member, sqe, uses & HCOMM_USES_SEM);
	if (!ret)
		ret = hcomm_op_check_wait(member, sqe, uses & HCOMM_USES_WAIT);
	return ret ?: uses;
}

static int hcomm_op_take_object(struct hcomm_op *op)
{
	struct hcomm_mem *mem;

	mem = hcomm_mem_use(op->member->proc, op->sqe.object);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	if (!hcomm_mem_inside(mem, op->sqe.local_off, op->sqe.length)) {
		hcomm_mem_unuse(mem);
		return -ERANGE;
	}
	op->mem = mem;
	return 0;
}

/* Puts the op on its member's list and sees that its deadline is watched. */
static int hcomm_op_enlist(struct hcomm_op *op)
{
	struct hcomm_member *member = op->member;
	int ret;

	spin_lock_bh(&member->lock);
	ret = hcomm_member_error(member);
	if (!ret) {
		op->deadline = ktime_add_ns(ktime_get_coarse(),
					    member->op_timeout_ns);
		list_add_tail(&op->member_node, &member->ops);
		member->ops_submitted++;
		if (!delayed_work_pending(&member->expire_work))
			queue_delayed_work(hcomm_progress_wq,
					   &member->expire_work,
					   nsecs_to_jiffies(member->op_timeout_ns) + 1);
	}
	spin_unlock_bh(&member->lock);
	return ret;
}

struct hcomm_op *hcomm_op_create(struct hcomm_member *member,
				 const struct hcomm_sqe *sqe)
{
	struct hcomm_op *op;
	int ret;

	op = kmem_cache_zalloc(hcomm_op_cache, GFP_KERNEL);
	if (!op)
		return ERR_PTR(-ENOMEM);
	kref_init(&op->ref);
	hcomm_member_get(member);
	op->member = member;
	op->sqe = *sqe;
	INIT_LIST_HEAD(&op->member_node);
	INIT_LIST_HEAD(&op->node);

	ret = hcomm_op_check(member, &op->sqe);
	if (ret < 0)
		goto err_put;
	if (ret & HCOMM_USES_DATA) {
		ret = hcomm_op_take_object(op);
		if (ret)
			goto err_put;
	}
	/* The reference that travels to dispatch; the first is completion's. */
	hcomm_op_get(op);
	ret = hcomm_op_enlist(op);
	if (ret) {
		hcomm_op_put(op);
		goto err_put;
	}
	return op;

err_put:
	hcomm_op_put(op);
	return ERR_PTR(ret);
}

void hcomm_op_complete(struct hcomm_op *op, int result, u64 flow_seq)
{
	struct hcomm_member *member = op->member;
	struct hcomm_cqe cqe = {
		.user_data = op->sqe.user_data,
		.result = result,
		.rank = op->sqe.rank,
		.flow_seq = flow_seq,
	};
	bool silent = !result && op->sqe.flags & HCOMM_OPF_SILENT;
	bool starved;

	spin_lock_bh(&member->lock);
	if (op->done) {
		spin_unlock_bh(&member->lock);
		return;
	}
	op->done = true;
	list_del_init(&op->member_node);
	member->ops_completed++;
	if (result)
		member->ops_failed++;
	else if (op->sqe.opcode == HCOMM_OP_PUT)
		member->bytes_put += op->sqe.length;
	starved = hcomm_ring_complete(member, &cqe, silent);
	spin_unlock_bh(&member->lock);

	trace_hcomm_op_complete(member->group->id, member->rank, &op->sqe,
				result, flow_seq);
	if (!silent || starved)
		hcomm_proc_notify(member->proc, false);
	hcomm_op_put(op);
}

/* Ends an op whose data has not begun to move. */
static void hcomm_op_finish(struct hcomm_op *op, int result)
{
	hcomm_op_drop_object(op);
	hcomm_op_complete(op, result, 0);
}

/* Ends an op that has @owner with the fault of its member. */
static void hcomm_op_withdraw(struct hcomm_op *op, enum hcomm_op_owner owner,
			      int result)
{
	if (owner == HCOMM_OP_COPIER) {
		/* A copy that runs sees the fault and ends by itself. */
		if (hcomm_copy_retract(op))
			hcomm_op_finish(op, result);
		return;
	}
	/* Posted or not: the group is over, the owner keeps the pages. */
	hcomm_session_cancel(op, result);
	hcomm_op_complete(op, result, 0);
}

/* Gives the op to whom its target says. No owner: completed already. */
static enum hcomm_op_owner hcomm_op_hand_over(struct hcomm_op *op)
{
	struct hcomm_member *member = op->member;
	struct hcomm_member *target;

	if (op->sqe.opcode == HCOMM_OP_COPY) {
		hcomm_copy_submit(op, member);
		return HCOMM_OP_COPIER;
	}

	do {
		target = hcomm_group_member(member->group, op->sqe.rank);
		if (target) {
			/*
			 * What waited for it goes first. Pairs with the
			 * store-release in hcomm_endpoint_waited().
			 */
			if (smp_load_acquire(&member->endpoint.nr_waiting))
				hcomm_session_unwait(member, target);
			hcomm_copy_submit(op, target);
			hcomm_member_put(target);
			return HCOMM_OP_COPIER;
		}
		if (hcomm_group_rank_gone(member->group, op->sqe.rank)) {
			hcomm_op_finish(op, -ESHUTDOWN);
			return HCOMM_OP_TRANSIT;
		}
	} while (!hcomm_session_submit(op));
	return HCOMM_OP_SESSION;
}

void hcomm_op_dispatch(struct hcomm_op *op)
{
	struct hcomm_member *member = op->member;
	enum hcomm_op_owner owner;
	int result;
	bool over;

	spin_lock_bh(&member->lock);
	over = op->done;
	result = hcomm_member_error(member);
	if (!over && !result && hcomm_op_waits(op) &&
	    hcomm_sems_park(member, op)) {
		/* The travelling reference waits with it. */
		spin_unlock_bh(&member->lock);
		return;
	}
	op->owner = HCOMM_OP_TRANSIT;
	spin_unlock_bh(&member->lock);

	if (over)
		goto out;
	if (result || op->sqe.opcode == HCOMM_OP_NOP ||
	    op->sqe.opcode == HCOMM_OP_WAIT) {
		hcomm_op_finish(op, result);
		goto out;
	}

	owner = hcomm_op_hand_over(op);

	spin_lock_bh(&member->lock);
	over = op->done;
	/* It may have been released to the copier since. */
	if (!over && op->owner == HCOMM_OP_TRANSIT)
		op->owner = owner;
	owner = op->owner;
	result = hcomm_member_error(member);
	spin_unlock_bh(&member->lock);

	/* A fault that came meanwhile has left the op to us. */
	if (!over && result)
		hcomm_op_withdraw(op, owner, result);
out:
	hcomm_op_put(op);
}

/*
 * Takes a waiting op from where it waits: its travelling reference becomes
 * the caller's.
 */
static bool hcomm_op_unwait(struct hcomm_op *op)
{
	lockdep_assert_held(&op->member->lock);

	if (op->owner != HCOMM_OP_WAITING)
		return false;
	if (op->trigger.queued) {
		hcomm_sems_unpark(op->member, op);
		return true;
	}
	if (!list_empty(&op->node)) {
		list_del_init(&op->node);
		return true;
	}
	return false;
}

void hcomm_ops_cancel(struct hcomm_member *member, int result)
{
	enum hcomm_op_owner owner;
	struct hcomm_op *op;
	LIST_HEAD(rest);
	bool waited;

	spin_lock_bh(&member->lock);
	list_splice_init(&member->ops, &rest);
	while (!list_empty(&rest)) {
		op = list_first_entry(&rest, struct hcomm_op, member_node);
		list_move_tail(&op->member_node, &member->ops);
		hcomm_op_get(op);
		waited = hcomm_op_unwait(op);
		owner = op->owner;
		spin_unlock_bh(&member->lock);

		if (waited) {
			hcomm_op_finish(op, result);
			hcomm_op_put(op);
		} else if (owner == HCOMM_OP_COPIER ||
			   owner == HCOMM_OP_SESSION) {
			hcomm_op_withdraw(op, owner, result);
		}
		hcomm_op_put(op);
		cond_resched();
		spin_lock_bh(&member->lock);
	}
	spin_unlock_bh(&member->lock);
}

/* Something of it may be on its way for ever: the group cannot go on. */
static void hcomm_op_fail_group(struct hcomm_op *op)
{
	struct hcomm_member *member = op->member;
	const struct hcomm_fault fault = {
		.cause = HCOMM_CAUSE_TIMEOUT,
		.error = -ETIMEDOUT,
		.rank = op->sqe.rank,
		.op = op->sqe.user_data,
	};

	hcomm_group_fail(member->group, &fault);
	hcomm_session_group_fault(member->group, member->rank, &fault);
}

static bool hcomm_op_is_with(struct hcomm_op *op, enum hcomm_op_owner owner)
{
	bool with;

	spin_lock_bh(&op->member->lock);
	with = !op->done && op->owner == owner;
	spin_unlock_bh(&op->member->lock);
	return with;
}

/* The deadline of @op has passed. False: it has to be looked at again. */
static bool hcomm_op_expire(struct hcomm_op *op, enum hcomm_op_owner owner)
{
	switch (owner) {
	case HCOMM_OP_COPIER:
		if (!hcomm_copy_retract(op))
			return false;
		hcomm_op_finish(op, -ETIMEDOUT);
		return true;
	case HCOMM_OP_SESSION:
		if (hcomm_session_cancel(op, -ETIMEDOUT)) {
			hcomm_op_complete(op, -ETIMEDOUT, 0);
			return true;
		}
		/* Unless it came to its end, or to another, while we asked. */
		if (hcomm_op_is_with(op, owner))
			hcomm_op_fail_group(op);
		return false;
	default:
		return false;
	}
}

/* Watches the oldest op, if it is not due yet. */
static struct hcomm_op *hcomm_ops_first_due(struct hcomm_member *member)
{
	struct hcomm_op *op;
	s64 left;

	lockdep_assert_held(&member->lock);

	op = list_first_entry_or_null(&member->ops, struct hcomm_op,
				      member_node);
	if (!op || hcomm_member_error(member))
		return NULL;
	left = ktime_to_ns(ktime_sub(op->deadline, ktime_get()));
	if (left <= 0)
		return op;
	/* An op that came meanwhile may have armed it for its own deadline. */
	mod_delayed_work(hcomm_progress_wq, &member->expire_work,
			 nsecs_to_jiffies(left) + 1);
	return NULL;
}

void hcomm_ops_expire(struct work_struct *work)
{
	struct hcomm_member *member = container_of(to_delayed_work(work),
						   struct hcomm_member,
						   expire_work);
	enum hcomm_op_owner owner;
	struct hcomm_op *op;
	bool waited, ended;

	spin_lock_bh(&member->lock);
	while ((op = hcomm_ops_first_due(member))) {
		hcomm_op_get(op);
		waited = hcomm_op_unwait(op);
		owner = op->owner;
		spin_unlock_bh(&member->lock);

		if (waited) {
			hcomm_op_finish(op, -ETIMEDOUT);
			hcomm_op_put(op);
			ended = true;
		} else {
			ended = hcomm_op_expire(op, owner);
		}
		hcomm_op_put(op);
		cond_resched();

		spin_lock_bh(&member->lock);
		if (!ended) {
			if (!hcomm_member_error(member))
				mod_delayed_work(hcomm_progress_wq,
						 &member->expire_work,
						 msecs_to_jiffies(HCOMM_EXPIRE_RETRY_MS));
			break;
		}
	}
	spin_unlock_bh(&member->lock);
}
