/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A group on one instance: its id, its secret, and the ranks that are members
 * here. It exists while it has local members or while the wire still refers
 * to it. What remote ranks are and who proved them is kept by session.c.
 */
#ifndef HCOMM_GROUP_H
#define HCOMM_GROUP_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/xarray.h>

#include "../uapi/hcomm.h"

struct hcomm_instance;
struct hcomm_member;

/* Why a group ends: what each local member's state line will say. */
struct hcomm_fault {
	enum hcomm_cause cause;
	int error;			/* negative errno */
	u32 rank;			/* culprit, HCOMM_NO_RANK if none */
	u64 op;
};

struct hcomm_group {
	struct kref ref;
	struct rcu_head rcu;
	struct hcomm_instance *instance;
	struct list_head node;		/* instance->groups, groups_lock */
	u8 id[HCOMM_ID_BYTES];
	u8 secret[HCOMM_SECRET_BYTES];	/* wiped when the group goes */
	u32 size;
	u32 handle;			/* what peers put into headers to us */
	bool unauthenticated;

	struct mutex lock;		/* joining and leaving; before member locks */
	struct xarray members;		/* rank -> member, RCU for readers */
	unsigned long *used_ranks;	/* a rank that left or died never rejoins */
	unsigned long *remote_ranks;	/* lock; proven by a peer, once for all */
	unsigned long *gone_ranks;	/* made with it; of those, who ended */
	spinlock_t fault_lock;		/* failed, fault; taken alone, BH-safe */
	bool failed;
	struct hcomm_fault fault;	/* for who joins later */
	struct list_head links;		/* session.c: sessions that know this group */
	spinlock_t links_lock;
};

/*
 * Finds the group of @id or makes it. -EACCES when the secret or the size
 * differ from what the first local member stated.
 */
struct hcomm_group *hcomm_group_open(struct hcomm_instance *instance,
				     const u8 *id, const u8 *secret, u32 size,
				     bool unauthenticated);
void hcomm_group_get(struct hcomm_group *group);
void hcomm_group_put(struct hcomm_group *group);	/* process context */

/* By the handle in a received header; NULL if there is none. Any context. */
struct hcomm_group *hcomm_group_by_handle(struct hcomm_instance *instance,
					  u32 handle);
/* By id, for a peer that proves a rank. Process context. */
struct hcomm_group *hcomm_group_by_id(struct hcomm_instance *instance,
				      const u8 *id);

/*
 * Makes a complete member findable by its rank, -EEXIST if the rank ever
 * joined; and takes it out again.
 */
int hcomm_group_add_member(struct hcomm_group *group,
			   struct hcomm_member *member);
void hcomm_group_remove_member(struct hcomm_group *group,
			       struct hcomm_member *member);

/* A referenced local member, or NULL. Any context. */
struct hcomm_member *hcomm_group_member(struct hcomm_group *group, u32 rank);
/*
 * The first local member with a rank of at least *@rank, referenced, its rank
 * in *@rank; NULL behind the last. Any context.
 */
struct hcomm_member *hcomm_group_next(struct hcomm_group *group,
				      unsigned long *rank);
/* @rank was a member here and has ended. Any context. */
bool hcomm_group_rank_gone(struct hcomm_group *group, u32 rank);

/*
 * Puts every local member in error (the first fault wins), ends their ops,
 * revokes their windows. Any context; the slow half runs in a work item.
 * Does not tell remote instances: the caller that learned of the fault
 * locally calls hcomm_session_group_fault() as well.
 */
void hcomm_group_fail(struct hcomm_group *group, const struct hcomm_fault *fault);

/* Whether it has, and by what. Any context. */
bool hcomm_group_failed(struct hcomm_group *group, struct hcomm_fault *fault);

/* An event for every local member. Any context. */
void hcomm_group_event(struct hcomm_group *group, enum hcomm_event_kind kind,
		       u32 rank, u64 value);

/* The fault of a group that lost the process of @rank. */
static inline struct hcomm_fault hcomm_fault_of_death(u32 rank)
{
	return (struct hcomm_fault) {
		.cause = HCOMM_CAUSE_PROCESS,
		.error = -EOWNERDEAD,
		.rank = rank,
	};
}

/* What the end of @rank, here or elsewhere, means for those here who stay. */
void hcomm_group_mourn(struct hcomm_group *group, u32 rank,
		       enum hcomm_cause cause);

#endif
