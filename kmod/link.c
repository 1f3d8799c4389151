// SPDX-License-Identifier: GPL-2.0
/*
 * A link is a group on a session: which of our members the peer was told of,
 * which ranks the peer proved, and the streams between them. Its life is here;
 * link_up.c has how ranks come to it, link_proof.c what proves them,
 * link_down.c how ranks, and the link, go, link_fault.c failures of the group.
 *
 * Streams exist for pairs of a local member and a proven rank.
 *
 * Locks: session->links_lock (mutex) for all of it, outside group->lock and all
 * spinlocks; group->links_lock for the group's list of links; the tables
 * `handles` and `streams` are read under RCU by the receive path.
 */
#include <linux/slab.h>

#include "link.h"
#include "session.h"

void hcomm_link_get(struct hcomm_link *link)
{
	kref_get(&link->ref);
}

static void hcomm_link_free_work(struct work_struct *work)
{
	struct hcomm_link *link = container_of(work, struct hcomm_link,
					       free_work);

	xa_destroy(&link->locals);
	xa_destroy(&link->remotes);
	xa_destroy(&link->windows);
	xa_destroy(&link->streams);
	hcomm_group_put(link->group);
	hcomm_session_put(link->session);
	kfree_rcu(link, rcu);
}

static void hcomm_link_release(struct kref *ref)
{
	struct hcomm_link *link = container_of(ref, struct hcomm_link, ref);

	queue_work(hcomm_teardown_wq, &link->free_work);
}

void hcomm_link_put(struct hcomm_link *link)
{
	kref_put(&link->ref, hcomm_link_release);
}

struct hcomm_link **hcomm_links_of(struct hcomm_group *group,
				   unsigned int *count)
{
	struct hcomm_link **links = NULL, *link;
	unsigned int room = 4, n;

	for (;;) {
		links = kcalloc(room, sizeof(*links), GFP_KERNEL | __GFP_NOFAIL);
		n = 0;
		spin_lock_bh(&group->links_lock);
		list_for_each_entry(link, &group->links, group_node) {
			if (n < room) {
				hcomm_link_get(link);
				links[n] = link;
			}
			n++;
		}
		spin_unlock_bh(&group->links_lock);
		if (n <= room) {
			*count = n;
			return links;
		}
		while (room)
			hcomm_link_put(links[--room]);
		kfree(links);
		room = n + 4;
	}
}

static struct hcomm_link *hcomm_link_create(struct hcomm_session *session,
					    struct hcomm_group *group)
{
	struct hcomm_link *link;

	lockdep_assert_held(&session->links_lock);
	link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);
	if (!link)
		return NULL;
	kref_init(&link->ref);
	INIT_WORK(&link->free_work, hcomm_link_free_work);
	INIT_WORK(&link->fault_work, hcomm_link_fault_work);
	INIT_WORK(&link->settle_work, hcomm_link_settle_work);
	xa_init(&link->locals);
	xa_init(&link->remotes);
	xa_init(&link->streams);
	INIT_LIST_HEAD(&link->adverts);
	xa_init(&link->windows);
	INIT_LIST_HEAD(&link->dying);
	if (xa_insert_bh(&session->handles, group->handle, link,
			 GFP_KERNEL_ACCOUNT)) {
		kfree(link);
		return NULL;
	}
	hcomm_session_get(session);
	link->session = session;
	hcomm_group_get(group);
	link->group = group;
	list_add_tail(&link->session_node, &session->links);
	spin_lock_bh(&group->links_lock);
	list_add_tail(&link->group_node, &group->links);
	spin_unlock_bh(&group->links_lock);
	hcomm_link_inherit_fault(link);
	return link;
}

struct hcomm_link *hcomm_link_of(struct hcomm_session *session,
				 struct hcomm_group *group)
{
	struct hcomm_link *link;

	lockdep_assert_held(&session->links_lock);
	if (session->down)
		return NULL;
	link = xa_load(&session->handles, group->handle);
	return link ?: hcomm_link_create(session, group);
}

struct hcomm_link *hcomm_link_find(struct hcomm_session *session, u32 handle)
{
	lockdep_assert_held(&session->links_lock);
	return xa_load(&session->handles, handle);
}

void hcomm_remote_put(struct hcomm_remote *remote)
{
	struct hcomm_note *note, *next;

	if (refcount_dec_and_test(&remote->refs)) {
		list_for_each_entry_safe(note, next, &remote->answers, msg.node)
			kfree(note);
		xa_destroy(&remote->windows);
		kfree_rcu(remote, rcu);
	}
}

struct hcomm_remote *hcomm_remote_find(struct hcomm_link *link, u32 rank)
{
	struct hcomm_remote *remote = xa_load(&link->remotes, rank);

	return remote && !remote->gone ? remote : NULL;
}

void hcomm_link_remove(struct hcomm_link *link)
{
	struct hcomm_session *session = link->session;
	struct hcomm_remote *remote;
	unsigned long rank;

	lockdep_assert_held(&session->links_lock);
	xa_for_each(&link->remotes, rank, remote) {
		xa_erase_bh(&link->remotes, rank);
		hcomm_rwins_drop(remote);
		hcomm_remote_put(remote);
	}
	xa_erase_bh(&session->handles, link->group->handle);
	list_del(&link->session_node);
	spin_lock_bh(&link->group->links_lock);
	list_del(&link->group_node);
	spin_unlock_bh(&link->group->links_lock);
	hcomm_link_put(link);
}

void hcomm_group_unclaim(struct hcomm_group *group, u32 rank)
{
	mutex_lock(&group->lock);
	clear_bit(rank, group->remote_ranks);
	mutex_unlock(&group->lock);
}

void hcomm_link_unclaim(struct hcomm_link *link)
{
	struct hcomm_remote *remote;
	unsigned long rank;

	lockdep_assert_held(&link->session->links_lock);
	xa_for_each(&link->remotes, rank, remote)
		if (!remote->gone)
			hcomm_group_unclaim(link->group, rank);
}

s64 hcomm_link_waited_ms(const struct hcomm_link *link, ktime_t now)
{
	return xa_empty(&link->locals) || link->nr_remotes ? 0 :
	       ktime_ms_delta(now, link->born);
}

s64 hcomm_links_waited_ms(struct hcomm_session *session, ktime_t now)
{
	struct hcomm_link *link;
	s64 longest = 0;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node)
		longest = max(longest, hcomm_link_waited_ms(link, now));
	mutex_unlock(&session->links_lock);
	return longest;
}

bool hcomm_links_close(struct hcomm_session *session, ktime_t since)
{
	mutex_lock(&session->links_lock);
	/* Who joined meanwhile has reset the time. */
	if (session->useless && ktime_before(session->useless, since) &&
	    (READ_ONCE(session->state) == HCOMM_SESSION_OPEN ||
	     list_empty(&session->links)))
		session->down = true;
	mutex_unlock(&session->links_lock);
	return session->down;
}

/* The path came or went: members see it for every rank behind it. */
void hcomm_links_path_event(struct hcomm_session *session,
			    enum hcomm_event_kind kind)
{
	struct hcomm_remote *remote;
	struct hcomm_link *link;
	unsigned long rank;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node)
		xa_for_each(&link->remotes, rank, remote)
			if (!remote->gone)
				hcomm_group_event(link->group, kind, rank,
						  session->path.index);
	mutex_unlock(&session->links_lock);
}
