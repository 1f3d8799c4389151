// SPDX-License-Identifier: GPL-2.0
/*
 * What a user may consume. See charge.h for what counts where.
 *
 * A uid has an entry as long as pages are charged that its processes pinned:
 * made at the charge, so that moving pages of a dead process to it needs no
 * memory. Entries are few and looked up when memory is pinned, freed or
 * orphaned, so they are on one list under one lock.
 */
#include <linux/capability.h>
#include <linux/cgroup_rdma.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "charge.h"
#include "proc.h"

struct hcomm_uid_pages {
	struct list_head node;
	kuid_t uid;
	unsigned long charged;		/* keeps the entry, orphaned or not */
	unsigned long orphaned;
};

static DEFINE_SPINLOCK(hcomm_uids_lock);
static LIST_HEAD(hcomm_uids);

static struct hcomm_uid_pages *hcomm_uid_find(kuid_t uid)
{
	struct hcomm_uid_pages *entry;

	lockdep_assert_held(&hcomm_uids_lock);

	list_for_each_entry(entry, &hcomm_uids, node)
		if (uid_eq(entry->uid, uid))
			return entry;
	return NULL;
}

/* Counts @nr_pages for @uid; *@orphaned: what dead processes left behind. */
static int hcomm_uid_charge(kuid_t uid, unsigned long nr_pages,
			    unsigned long *orphaned)
{
	struct hcomm_uid_pages *entry, *fresh;

	fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	if (!fresh)
		return -ENOMEM;
	spin_lock(&hcomm_uids_lock);
	entry = hcomm_uid_find(uid);
	if (!entry) {
		entry = fresh;
		entry->uid = uid;
		list_add(&entry->node, &hcomm_uids);
		fresh = NULL;
	}
	entry->charged += nr_pages;
	*orphaned = entry->orphaned;
	spin_unlock(&hcomm_uids_lock);
	kfree(fresh);
	return 0;
}

static void hcomm_uid_uncharge(kuid_t uid, unsigned long nr_pages,
			       unsigned long orphaned)
{
	struct hcomm_uid_pages *entry;

	spin_lock(&hcomm_uids_lock);
	entry = hcomm_uid_find(uid);
	entry->orphaned -= orphaned;
	entry->charged -= nr_pages;
	if (entry->charged)
		entry = NULL;
	else
		list_del(&entry->node);
	spin_unlock(&hcomm_uids_lock);
	kfree(entry);
}

int hcomm_charge_pages(struct hcomm_proc *proc, unsigned long nr_pages,
		       u64 *limit, u64 *used)
{
	unsigned long rlim = rlimit(RLIMIT_MEMLOCK);
	unsigned long orphaned;
	u64 total;
	int ret;

	ret = hcomm_uid_charge(proc->uid, nr_pages, &orphaned);
	if (ret)
		return ret;
	total = atomic64_add_return(nr_pages, &proc->mm->pinned_vm) + orphaned;

	*limit = rlim == RLIM_INFINITY ? U64_MAX : rlim;
	*used = (total - nr_pages) << PAGE_SHIFT;
	if (rlim == RLIM_INFINITY || total <= rlim >> PAGE_SHIFT ||
	    capable(CAP_IPC_LOCK))
		return 0;
	hcomm_uncharge_pages(proc, nr_pages);
	return -ENOMEM;
}

void hcomm_uncharge_pages(struct hcomm_proc *proc, unsigned long nr_pages)
{
	atomic64_sub(nr_pages, &proc->mm->pinned_vm);
	hcomm_uid_uncharge(proc->uid, nr_pages, 0);
}

void hcomm_charge_orphaned(struct hcomm_proc *proc, unsigned long nr_pages)
{
	spin_lock(&hcomm_uids_lock);
	hcomm_uid_find(proc->uid)->orphaned += nr_pages;
	spin_unlock(&hcomm_uids_lock);
	atomic64_sub(nr_pages, &proc->mm->pinned_vm);
}

void hcomm_uncharge_orphaned(struct hcomm_proc *proc, unsigned long nr_pages)
{
	hcomm_uid_uncharge(proc->uid, nr_pages, nr_pages);
}

#ifdef CONFIG_CGROUP_RDMA

static struct rdmacg_device hcomm_rdmacg = {
	.name = "hcomm",
};

static enum rdmacg_resource_type hcomm_rdmacg_resource(enum hcomm_charge_kind kind)
{
	return kind == HCOMM_CHARGE_MEMBER ? RDMACG_RESOURCE_HCA_HANDLE :
					     RDMACG_RESOURCE_HCA_OBJECT;
}

int hcomm_cgroup_register(void)
{
	rdmacg_register_device(&hcomm_rdmacg);
	return 0;
}

void hcomm_cgroup_unregister(void)
{
	rdmacg_unregister_device(&hcomm_rdmacg);
}

int hcomm_cgroup_charge(enum hcomm_charge_kind kind, struct rdma_cgroup **cg)
{
	return rdmacg_try_charge(cg, &hcomm_rdmacg,
				 hcomm_rdmacg_resource(kind));
}

void hcomm_cgroup_uncharge(enum hcomm_charge_kind kind, struct rdma_cgroup *cg)
{
	rdmacg_uncharge(cg, &hcomm_rdmacg, hcomm_rdmacg_resource(kind));
}

#else

int hcomm_cgroup_register(void)
{
	return 0;
}

void hcomm_cgroup_unregister(void)
{
}

int hcomm_cgroup_charge(enum hcomm_charge_kind kind, struct rdma_cgroup **cg)
{
	*cg = NULL;
	return 0;
}

void hcomm_cgroup_uncharge(enum hcomm_charge_kind kind, struct rdma_cgroup *cg)
{
}

#endif
