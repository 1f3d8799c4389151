// SPDX-License-Identifier: GPL-2.0
/*
 * /dev/hcommN: calls, mappings, poll, and the moment at which a file stops to
 * speak for its owner.
 *
 * A file is bound to the address space of the first caller that joins or makes
 * a memory object, and to that caller's descriptor table, whose closing of any
 * descriptor of the file (.flush) ends the membership: copies that were
 * inherited or passed on keep the file open, not the rank alive. The file holds
 * its proc until .release; the membership it finds in the proc by index, or no
 * more once it has ended.
 *
 * Locks: file->lock for binding, joining and closing; a call that only uses
 * the membership takes none and holds a reference to the member while it runs.
 */
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/nospec.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "area.h"
#include "broker.h"
#include "chardev.h"
#include "compat/compat.h"
#include "instance.h"
#include "limits.h"
#include "member.h"
#include "memory.h"
#include "proc.h"
#include "session.h"
#include "version.h"
#include "window.h"

#ifndef CONFIG_64BIT
#error "hcomm needs a 64-bit kernel: 64-bit words are shared with the process"
#endif

#define HCOMM_ARG_MAX	128	/* largest structure of a call */

struct hcomm_file {
	struct hcomm_instance *instance;
	struct mutex lock;		/* what follows */
	struct hcomm_proc *proc;	/* stored once, with release */
	fl_owner_t owner;		/* descriptor table that bound the file */
	u32 index;			/* of the member in its proc */
	bool joined;			/* stored with release after index */
	bool closed;			/* by its owner */
};

/* One call on its way through its handler. */
struct hcomm_call {
	struct hcomm_file *file;
	struct hcomm_member *member;	/* with HCOMM_CALL_MEMBER */
	void *arg;			/* the kernel's copy */
	void __user *uarg;
	size_t usize;			/* of the caller's structure */
};

#define HCOMM_CALL_BIND		BIT(0)	/* binds the file to the caller */
#define HCOMM_CALL_MEMBER	BIT(1)	/* wants a live membership */
#define HCOMM_CALL_OUT		BIT(2)	/* returns its structure */

struct hcomm_command {
	int (*run)(struct hcomm_call *call);
	u16 size;
	u16 flags;
};

/* The file speaks for its caller from now on, or does already. */
static int hcomm_file_bind(struct hcomm_file *file)
{
	struct hcomm_proc *proc = file->proc;

	lockdep_assert_held(&file->lock);
	if (file->closed)
		return -ESHUTDOWN;
	if (proc)
		return proc->mm == current->mm ? 0 : -EPERM;
	proc = hcomm_proc_bind(file->instance);
	if (IS_ERR(proc))
		return PTR_ERR(proc);
	file->owner = current->files;
	/* Pairs with the load-acquire in hcomm_file_proc(). */
	smp_store_release(&file->proc, proc);
	return 0;
}

/* The proc of a bound file whose owner calls. */
static struct hcomm_proc *hcomm_file_proc(struct hcomm_file *file)
{
	/* Pairs with the store-release in hcomm_file_bind(). */
	struct hcomm_proc *proc = smp_load_acquire(&file->proc);

	if (!proc)
		return ERR_PTR(-ENOTCONN);
	if (proc->mm != current->mm)
		return ERR_PTR(-EPERM);
	return proc;
}

/* The membership of the file, whose proc is @proc, referenced. */
static struct hcomm_member *hcomm_file_joined(struct hcomm_file *file,
					      struct hcomm_proc *proc)
{
	struct hcomm_member *member;

	/* Pairs with the store-release in hcomm_call_join(). */
	if (!smp_load_acquire(&file->joined))
		return ERR_PTR(-ENOTCONN);
	member = hcomm_proc_member(proc, file->index);
	return member ? member : ERR_PTR(-ESHUTDOWN);
}

/* The same, if its owner calls. */
static struct hcomm_member *hcomm_file_member(struct hcomm_file *file)
{
	struct hcomm_proc *proc = hcomm_file_proc(file);

	return IS_ERR(proc) ? ERR_CAST(proc) : hcomm_file_joined(file, proc);
}

/* Ends what the file stands for; once. */
static void hcomm_file_close(struct hcomm_file *file)
{
	struct hcomm_member *member;

	lockdep_assert_held(&file->lock);
	if (file->closed || !file->proc)
		return;
	file->closed = true;
	member = file->joined ? hcomm_proc_member(file->proc, file->index) :
		 NULL;
	if (member) {
		hcomm_member_end(member, HCOMM_CAUSE_PROCESS);
		hcomm_member_put(member);
	}
	hcomm_proc_unbind(file->proc);
}

static int hcomm_call_query(struct hcomm_call *call)
{
	struct hcomm_instance *instance = call->file->instance;
	struct hcomm_query *query = call->arg;

	memset(query, 0, sizeof(*query));
	query->abi = HCOMM_ABI_VERSION;
	query->instance = instance->nr;
	query->features = HCOMM_FEAT_TRIGGER | HCOMM_FEAT_BROKER;
	memcpy(query->instance_id, instance->id, sizeof(query->instance_id));
	query->page_size = PAGE_SIZE;
	query->max_ranks = HCOMM_MAX_RANKS;
	query->max_members = HCOMM_MAX_MEMBERS;
	query->max_objects = HCOMM_MAX_OBJECTS;
	query->max_windows = HCOMM_MAX_WINDOWS;
	query->max_sq_entries = HCOMM_MAX_SQ_ENTRIES;
	query->max_cq_entries = HCOMM_MAX_CQ_ENTRIES;
	query->max_op_bytes = HCOMM_MAX_OP_BYTES;
	strscpy(query->version, HCOMM_VERSION, sizeof(query->version));
	hcomm_fabric_query(instance, query);
	return 0;
}

static int hcomm_call_join(struct hcomm_call *call)
{
	struct hcomm_file *file = call->file;
	struct hcomm_join *join = call->arg;
	int ret;

	if (mutex_lock_killable(&file->lock))
		return -EINTR;
	ret = hcomm_file_bind(file);
	if (!ret && file->joined)
		ret = -EISCONN;
	if (!ret)
		ret = hcomm_member_join(file->proc, join);
	if (!ret) {
		file->index = join->member;
		/* Pairs with the load-acquire in hcomm_file_member(). */
		smp_store_release(&file->joined, true);
	}
	mutex_unlock(&file->lock);
	return ret;
}

static int hcomm_call_leave(struct hcomm_call *call)
{
	hcomm_member_end(call->member, HCOMM_CAUSE_NONE);
	return 0;
}

static int hcomm_call_set_peers(struct hcomm_call *call)
{
	return hcomm_member_set_peers(call->member, call->arg);
}

static int hcomm_call_ring_setup(struct hcomm_call *call)
{
	return hcomm_ring_setup(call->member, call->arg);
}

static int hcomm_call_enter(struct hcomm_call *call)
{
	struct hcomm_member *member = call->member;
	struct hcomm_enter *enter = call->arg;
	int ret;

	enter->submitted = 0;
	enter->ready = 0;
	if (enter->flags & ~(HCOMM_ENTER_WAIT | HCOMM_ENTER_WAKE) ||
	    enter->nr_waits > HCOMM_MAX_WAITS ||
	    enter->timeout_ns > HCOMM_MAX_TIMEOUT_NS)
		return -EINVAL;

	hcomm_member_lock(member);
	hcomm_events_flush(member);
	hcomm_member_unlock(member);
	if (enter->to_submit) {
		ret = hcomm_ring_submit(member, enter->to_submit);
		if (ret < 0)
			return ret;
		enter->submitted = ret;
	}
	if (enter->flags & HCOMM_ENTER_WAKE) {
		ret = hcomm_wake_rank(member, enter->wake_rank);
		if (ret)
			return ret;
	}
	if (enter->flags & HCOMM_ENTER_WAIT)
		return hcomm_wait_any(member->proc, member, enter);
	return 0;
}

static int hcomm_call_mem_create(struct hcomm_call *call)
{
	return hcomm_mem_create(call->file->proc, call->arg);
}

static int hcomm_call_mem_destroy(struct hcomm_call *call)
{
	const struct hcomm_mem_destroy *arg = call->arg;

	if (arg->flags)
		return -EINVAL;
	return hcomm_mem_destroy(call->file->proc, arg->object);
}

static int hcomm_call_win_attach(struct hcomm_call *call)
{
	return hcomm_window_attach(call->member, call->arg);
}

static int hcomm_call_win_detach(struct hcomm_call *call)
{
	const struct hcomm_win_detach *arg = call->arg;

	if (arg->flags)
		return -EINVAL;
	return hcomm_window_detach(call->member, arg->window);
}

static int hcomm_call_heap_offer(struct hcomm_call *call)
{
	return hcomm_broker_offer(call->member, call->arg);
}

/* A descriptor from another process: the security modules have their say. */
static int hcomm_call_heap_take(struct hcomm_call *call)
{
	struct hcomm_heap_take __user *told = call->uarg;
	struct hcomm_heap_take *take = call->arg;
	struct file *file;
	int ret;

	if (call->usize < offsetofend(struct hcomm_heap_take, fd))
		return -EINVAL;
	file = hcomm_broker_take(call->member, take);
	if (IS_ERR(file))
		return PTR_ERR(file);
	if (copy_to_user(told, take, min(call->usize, sizeof(*take))))
		ret = -EFAULT;
	else
		ret = hcomm_receive_fd(file, &told->fd, O_CLOEXEC);
	fput(file);
	return min(ret, 0);
}

static int hcomm_call_abort(struct hcomm_call *call)
{
	struct hcomm_member *member = call->member;
	const struct hcomm_abort *arg = call->arg;
	const struct hcomm_fault fault = {
		.cause = HCOMM_CAUSE_ABORT,
		.error = arg->error ? : -ECANCELED,
		.rank = member->rank,
		.op = arg->op,
	};

	if (arg->flags || arg->error > 0 || arg->error < -MAX_ERRNO)
		return -EINVAL;
	hcomm_group_fail(member->group, &fault);
	hcomm_session_group_fault(member->group, member->rank, &fault);
	return 0;
}

/* Answers after the end, too: what is left then is the state. */
static int hcomm_call_get_error(struct hcomm_call *call)
{
	struct hcomm_member *member = hcomm_file_member(call->file);
	struct hcomm_get_error *arg = call->arg;

	memset(arg, 0, sizeof(*arg));
	arg->rank = HCOMM_NO_RANK;
	if (IS_ERR(member)) {
		if (PTR_ERR(member) != -ESHUTDOWN)
			return PTR_ERR(member);
		arg->state = HCOMM_STATE_LEFT;
		return 0;
	}
	hcomm_member_lock(member);
	arg->state = member->state;
	arg->error = member->fault.error;
	arg->cause = member->fault.cause;
	arg->rank = member->fault.rank;
	arg->op = member->fault.op;
	arg->age_ns = ktime_to_ns(ktime_sub(ktime_get(), member->fault_at));
	hcomm_member_unlock(member);
	hcomm_member_put(member);
	return 0;
}

#define HCOMM_COMMAND(nr, fn, type, how)				\
	[_IOC_NR(nr)] = {						\
		.run = (fn),						\
		.size = sizeof(type) +					\
			BUILD_BUG_ON_ZERO(sizeof(type) > HCOMM_ARG_MAX), \
		.flags = (how),						\
	}

static const struct hcomm_command hcomm_commands[] = {
	HCOMM_COMMAND(HCOMM_IOC_QUERY, hcomm_call_query,
		      struct hcomm_query, HCOMM_CALL_OUT),
	HCOMM_COMMAND(HCOMM_IOC_JOIN, hcomm_call_join,
		      struct hcomm_join, HCOMM_CALL_OUT),
	[_IOC_NR(HCOMM_IOC_LEAVE)] = {
		.run = hcomm_call_leave,
		.flags = HCOMM_CALL_MEMBER,
	},
	HCOMM_COMMAND(HCOMM_IOC_SET_PEERS, hcomm_call_set_peers,
		      struct hcomm_set_peers, HCOMM_CALL_MEMBER),
	HCOMM_COMMAND(HCOMM_IOC_RING_SETUP, hcomm_call_ring_setup,
		      struct hcomm_ring_setup,
		      HCOMM_CALL_MEMBER | HCOMM_CALL_OUT),
	HCOMM_COMMAND(HCOMM_IOC_ENTER, hcomm_call_enter,
		      struct hcomm_enter, HCOMM_CALL_MEMBER | HCOMM_CALL_OUT),
	HCOMM_COMMAND(HCOMM_IOC_MEM_CREATE, hcomm_call_mem_create,
		      struct hcomm_mem_create,
		      HCOMM_CALL_BIND | HCOMM_CALL_OUT),
	HCOMM_COMMAND(HCOMM_IOC_MEM_DESTROY, hcomm_call_mem_destroy,
		      struct hcomm_mem_destroy, HCOMM_CALL_BIND),
	HCOMM_COMMAND(HCOMM_IOC_WIN_ATTACH, hcomm_call_win_attach,
		      struct hcomm_win_attach,
		      HCOMM_CALL_MEMBER | HCOMM_CALL_OUT),
	HCOMM_COMMAND(HCOMM_IOC_WIN_DETACH, hcomm_call_win_detach,
		      struct hcomm_win_detach, HCOMM_CALL_MEMBER),
	HCOMM_COMMAND(HCOMM_IOC_HEAP_OFFER, hcomm_call_heap_offer,
		      struct hcomm_heap_offer, HCOMM_CALL_MEMBER),
	HCOMM_COMMAND(HCOMM_IOC_HEAP_TAKE, hcomm_call_heap_take,
		      struct hcomm_heap_take, HCOMM_CALL_MEMBER),
	HCOMM_COMMAND(HCOMM_IOC_ABORT, hcomm_call_abort,
		      struct hcomm_abort, HCOMM_CALL_MEMBER),
	HCOMM_COMMAND(HCOMM_IOC_GET_ERROR, hcomm_call_get_error,
		      struct hcomm_get_error, HCOMM_CALL_OUT),
};

/* What the table asks for before the handler runs. */
static int hcomm_call_prepare(struct hcomm_call *call, unsigned int flags)
{
	struct hcomm_file *file = call->file;
	int ret = 0;

	if (flags & HCOMM_CALL_BIND) {
		if (mutex_lock_killable(&file->lock))
			return -EINTR;
		ret = hcomm_file_bind(file);
		mutex_unlock(&file->lock);
	}
	if (flags & HCOMM_CALL_MEMBER) {
		call->member = hcomm_file_member(file);
		if (IS_ERR(call->member))
			return PTR_ERR(call->member);
	}
	return ret;
}

static int hcomm_call_run(struct hcomm_call *call,
			  const struct hcomm_command *command)
{
	int ret;

	ret = copy_struct_from_user(call->arg, command->size, call->uarg,
				    call->usize);
	if (ret)
		return ret;
	ret = hcomm_call_prepare(call, command->flags);
	if (ret)
		return ret;
	ret = command->run(call);
	if (command->flags & HCOMM_CALL_MEMBER)
		hcomm_member_put(call->member);
	/* A failed call may have something to say, too: what was submitted. */
	if (command->flags & HCOMM_CALL_OUT &&
	    copy_to_user(call->uarg, call->arg,
			 min_t(size_t, call->usize, command->size)))
		return -EFAULT;
	return ret;
}

static long hcomm_ioctl(struct file *filp, unsigned int cmd, unsigned long uarg)
{
	u64 arg[HCOMM_ARG_MAX / sizeof(u64)];
	struct hcomm_call call = {
		.file = filp->private_data,
		.arg = arg,
		.uarg = (void __user *)uarg,
		.usize = _IOC_SIZE(cmd),
	};
	const struct hcomm_command *command;
	unsigned int nr = _IOC_NR(cmd);
	int ret;

	if (_IOC_TYPE(cmd) != HCOMM_IOC_MAGIC ||
	    nr >= ARRAY_SIZE(hcomm_commands))
		return -ENOTTY;
	nr = array_index_nospec(nr, ARRAY_SIZE(hcomm_commands));
	command = &hcomm_commands[nr];
	if (!command->run)
		return -ENOTTY;
	if (command->run != hcomm_call_query &&
	    (filp->f_mode & (FMODE_READ | FMODE_WRITE)) !=
	    (FMODE_READ | FMODE_WRITE))
		return -EBADF;

	ret = hcomm_call_run(&call, command);
	if (command->run == hcomm_call_join)
		memzero_explicit(arg, sizeof(arg));
	return ret;
}

static int hcomm_map_member(struct hcomm_member *member,
			    struct vm_area_struct *vma)
{
	const struct hcomm_ring *ring = &member->ring;

	switch ((u64)vma->vm_pgoff << PAGE_SHIFT) {
	case HCOMM_MAP_RINGS:
		if (!hcomm_ring_is_ready(member))
			return -ENXIO;
		return hcomm_area_map(vma, ring->shared,
				      ring->layout.ring_bytes, true);
	case HCOMM_MAP_SQES:
		if (!hcomm_ring_is_ready(member))
			return -ENXIO;
		return hcomm_area_map(vma, ring->sqes, ring->layout.sqe_bytes,
				      true);
	case HCOMM_MAP_SEMS:
		return hcomm_area_map(vma, member->sems.pages,
				      member->sems.bytes, false);
	case HCOMM_MAP_WAKE:
		return hcomm_area_map(vma, member->proc->wake_page, PAGE_SIZE,
				      false);
	default:
		return -EINVAL;
	}
}

/* With mmap_lock held: takes none of the locks above. */
static int hcomm_mmap(struct file *filp, struct vm_area_struct *vma)
{
	struct hcomm_member *member;
	int ret;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	member = hcomm_file_member(filp->private_data);
	if (IS_ERR(member))
		return PTR_ERR(member);
	ret = hcomm_map_member(member, vma);
	hcomm_member_put(member);
	return ret;
}

/* For whoever asks: a kernel thread does for aio, and readiness is no secret. */
static __poll_t hcomm_poll(struct file *filp, struct poll_table_struct *wait)
{
	struct hcomm_file *file = filp->private_data;
	/* Pairs with the store-release in hcomm_file_bind(). */
	struct hcomm_proc *proc = smp_load_acquire(&file->proc);
	struct hcomm_member *member;
	__poll_t mask = 0;

	if (!proc)
		return EPOLLERR;
	poll_wait(filp, &proc->wait, wait);
	member = hcomm_file_joined(file, proc);
	if (IS_ERR(member))
		return EPOLLERR | EPOLLHUP;
	hcomm_member_lock(member);
	hcomm_events_flush(member);
	if (hcomm_ring_readable(member))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (member->state != HCOMM_STATE_ACTIVE)
		mask |= EPOLLERR;
	hcomm_member_unlock(member);
	hcomm_member_put(member);
	return mask;
}

static int hcomm_open(struct inode *inode, struct file *filp)
{
	struct hcomm_file *file;

	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	file->instance = container_of(inode->i_cdev, struct hcomm_instance,
				      cdev);
	mutex_init(&file->lock);
	filp->private_data = file;
	return nonseekable_open(inode, filp);
}

static int hcomm_flush(struct file *filp, fl_owner_t id)
{
	struct hcomm_file *file = filp->private_data;

	/*
	 * Pairs with the store-release in hcomm_file_bind(). Others do not wait
	 * for the lock, which the owner may keep while a page is read.
	 */
	if (!smp_load_acquire(&file->proc) || file->owner != id)
		return 0;
	mutex_lock(&file->lock);
	hcomm_file_close(file);
	mutex_unlock(&file->lock);
	return 0;
}

/*
 * Reached by the last descriptor anywhere. Usually all is over; a JOIN that
 * another thread's close overtook ends here, with the reference of its call.
 */
static int hcomm_release(struct inode *inode, struct file *filp)
{
	struct hcomm_file *file = filp->private_data;

	mutex_lock(&file->lock);
	hcomm_file_close(file);
	mutex_unlock(&file->lock);
	if (file->proc)
		hcomm_proc_put(file->proc);
	mutex_destroy(&file->lock);
	kfree(file);
	return 0;
}

const struct file_operations hcomm_fops = {
	.owner = THIS_MODULE,
	.open = hcomm_open,
	.flush = hcomm_flush,
	.release = hcomm_release,
	.mmap = hcomm_mmap,
	.poll = hcomm_poll,
	.unlocked_ioctl = hcomm_ioctl,
};
