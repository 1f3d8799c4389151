// SPDX-License-Identifier: GPL-2.0
/*
 * Groups of an instance. The first local member makes one with the id, secret
 * and size it states, later ones have to state the same. The last reference
 * takes it out of the list under groups_lock, so whoever finds it there may
 * take one; who comes by the handle of a header takes one only if there still
 * is one, and the memory outlives a grace period.
 *
 * Local members are in a table by rank from the moment they are complete until
 * they end. Handles are given out in turn, so that a late header meets no new
 * group.
 *
 * Locks: groups_lock, group->lock, member locks; fault_lock is taken alone.
 */
#include <crypto/algapi.h>
#include <linux/bitmap.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "group.h"
#include "instance.h"
#include "member.h"

static struct hcomm_group *hcomm_group_create(struct hcomm_instance *instance,
					      const u8 *id, const u8 *secret,
					      u32 size, bool unauthenticated)
{
	struct hcomm_group *group;
	int ret;

	group = kzalloc(sizeof(*group), GFP_KERNEL_ACCOUNT);
	if (!group)
		return ERR_PTR(-ENOMEM);
	group->used_ranks = bitmap_zalloc(size, GFP_KERNEL_ACCOUNT);
	if (!group->used_ranks) {
		ret = -ENOMEM;
		goto err_free;
	}
	kref_init(&group->ref);
	group->instance = instance;
	memcpy(group->id, id, sizeof(group->id));
	memcpy(group->secret, secret, sizeof(group->secret));
	group->size = size;
	group->unauthenticated = unauthenticated;
	mutex_init(&group->lock);
	xa_init(&group->members);
	spin_lock_init(&group->fault_lock);
	INIT_LIST_HEAD(&group->links);
	spin_lock_init(&group->links_lock);

	ret = xa_alloc_cyclic_irq(&instance->group_handles, &group->handle,
				  group, XA_LIMIT(1, U32_MAX),
				  &instance->next_handle, GFP_KERNEL_ACCOUNT);
	if (ret < 0)
		goto err_secret;
	list_add(&group->node, &instance->groups);
	hcomm_instance_hold(instance);
	return group;

err_secret:
	memzero_explicit(group->secret, sizeof(group->secret));
	bitmap_free(group->used_ranks);
err_free:
	kfree(group);
	return ERR_PTR(ret);
}

static struct hcomm_group *hcomm_group_find(struct hcomm_instance *instance,
					    const u8 *id)
{
	struct hcomm_group *group;

	lockdep_assert_held(&instance->groups_lock);
	list_for_each_entry(group, &instance->groups, node)
		if (!memcmp(group->id, id, sizeof(group->id)))
			return group;
	return NULL;
}

struct hcomm_group *hcomm_group_open(struct hcomm_instance *instance,
				     const u8 *id, const u8 *secret, u32 size,
				     bool unauthenticated)
{
	struct hcomm_group *group;

	if (mutex_lock_killable(&instance->groups_lock))
		return ERR_PTR(-EINTR);
	group = hcomm_group_find(instance, id);
	if (!group)
		group = hcomm_group_create(instance, id, secret, size,
					   unauthenticated);
	else if (crypto_memneq(group->secret, secret, sizeof(group->secret)) ||
		 group->size != size ||
		 group->unauthenticated != unauthenticated)
		group = ERR_PTR(-EACCES);
	else
		hcomm_group_get(group);
	mutex_unlock(&instance->groups_lock);
	return group;
}

void hcomm_group_get(struct hcomm_group *group)
{
	kref_get(&group->ref);
}

/* Called with groups_lock held, which it drops. */
static void hcomm_group_release(struct kref *ref)
{
	struct hcomm_group *group = container_of(ref, struct hcomm_group, ref);
	struct hcomm_instance *instance = group->instance;

	lockdep_assert_held(&instance->groups_lock);
	list_del(&group->node);
	xa_erase_irq(&instance->group_handles, group->handle);
	mutex_unlock(&instance->groups_lock);

	memzero_explicit(group->secret, sizeof(group->secret));
	xa_destroy(&group->members);
	bitmap_free(group->used_ranks);
	bitmap_free(group->remote_ranks);
	bitmap_free(group->gone_ranks);
	kfree_rcu(group, rcu);
	hcomm_instance_drop(instance);
}

void hcomm_group_put(struct hcomm_group *group)
{
	kref_put_mutex(&group->ref, hcomm_group_release,
		       &group->instance->groups_lock);
}

struct hcomm_group *hcomm_group_by_handle(struct hcomm_instance *instance,
					  u32 handle)
{
	struct hcomm_group *group;

	rcu_read_lock();
	group = xa_load(&instance->group_handles, handle);
	if (group && !kref_get_unless_zero(&group->ref))
		group = NULL;
	rcu_read_unlock();
	return group;
}

struct hcomm_group *hcomm_group_by_id(struct hcomm_instance *instance,
				      const u8 *id)
{
	struct hcomm_group *group;

	mutex_lock(&instance->groups_lock);
	group = hcomm_group_find(instance, id);
	if (group)
		hcomm_group_get(group);
	mutex_unlock(&instance->groups_lock);
	return group;
}

int hcomm_group_add_member(struct hcomm_group *group,
			   struct hcomm_member *member)
{
	struct hcomm_fault fault;
	int ret;

	if (mutex_lock_killable(&group->lock))
		return -EINTR;
	ret = -EEXIST;
	if (test_bit(member->rank, group->used_ranks) ||
	    (group->remote_ranks &&
	     test_bit(member->rank, group->remote_ranks)))
		goto out;
	ret = xa_insert(&group->members, member->rank, member,
			GFP_KERNEL_ACCOUNT);
	if (ret)
		goto out;
	smp_mb__before_atomic();	/* pairs with hcomm_group_rank_gone() */
	set_bit(member->rank, group->used_ranks);

	/* Found by hcomm_group_fail(), or sees what it stored before. */
	if (hcomm_group_failed(group, &fault)) {
		hcomm_member_lock(member);
		hcomm_member_fail(member, &fault);
		hcomm_member_unlock(member);
	}
out:
	mutex_unlock(&group->lock);
	return ret;
}

void hcomm_group_remove_member(struct hcomm_group *group,
			       struct hcomm_member *member)
{
	mutex_lock(&group->lock);
	xa_erase(&group->members, member->rank);
	mutex_unlock(&group->lock);
}

struct hcomm_member *hcomm_group_member(struct hcomm_group *group, u32 rank)
{
	struct hcomm_member *member;

	rcu_read_lock();
	member = xa_load(&group->members, rank);
	if (member && !kref_get_unless_zero(&member->ref))
		member = NULL;
	rcu_read_unlock();
	return member;
}

bool hcomm_group_rank_gone(struct hcomm_group *group, u32 rank)
{
	if (rank >= group->size)
		return false;
	rank = array_index_nospec(rank, group->size);
	if (!test_bit(rank, group->used_ranks))
		return false;
	smp_rmb();	/* pairs with hcomm_group_add_member() */
	return !xa_load(&group->members, rank);
}

struct hcomm_member *hcomm_group_next(struct hcomm_group *group,
				      unsigned long *rank)
{
	struct hcomm_member *member;

	rcu_read_lock();
	for (member = xa_find(&group->members, rank, ULONG_MAX, XA_PRESENT);
	     member && !kref_get_unless_zero(&member->ref);
	     member = xa_find_after(&group->members, rank, ULONG_MAX,
				    XA_PRESENT))
		;
	rcu_read_unlock();
	return member;
}

void hcomm_group_fail(struct hcomm_group *group,
		      const struct hcomm_fault *fault)
{
	struct hcomm_member *member;
	unsigned long rank;

	spin_lock_bh(&group->fault_lock);
	if (!group->failed) {
		group->failed = true;
		group->fault = *fault;
	}
	spin_unlock_bh(&group->fault_lock);

	for (rank = 0; (member = hcomm_group_next(group, &rank)); rank++) {
		hcomm_member_lock(member);
		hcomm_member_fail(member, fault);
		hcomm_member_unlock(member);
		hcomm_member_put(member);
	}
}

bool hcomm_group_failed(struct hcomm_group *group, struct hcomm_fault *fault)
{
	bool failed;

	spin_lock_bh(&group->fault_lock);
	failed = group->failed;
	*fault = group->fault;
	spin_unlock_bh(&group->fault_lock);
	return failed;
}

void hcomm_group_event(struct hcomm_group *group, enum hcomm_event_kind kind,
		       u32 rank, u64 value)
{
	struct hcomm_member *member;
	unsigned long index;

	for (index = 0; (member = hcomm_group_next(group, &index)); index++) {
		hcomm_member_lock(member);
		hcomm_event_raise(member, kind, rank, value);
		hcomm_member_unlock(member);
		hcomm_member_put(member);
	}
}

void hcomm_group_mourn(struct hcomm_group *group, u32 rank,
		       enum hcomm_cause cause)
{
	const struct hcomm_fault fault = hcomm_fault_of_death(rank);

	if (cause == HCOMM_CAUSE_NONE) {
		hcomm_group_event(group, HCOMM_EVENT_MEMBER_LEFT, rank, 0);
		return;
	}
	hcomm_group_event(group, HCOMM_EVENT_MEMBER_DEAD, rank, 0);
	hcomm_group_fail(group, &fault);
}
