// SPDX-License-Identifier: GPL-2.0
/*
 * How ranks go, and the link with them.
 *
 * A member that ends has its streams killed at once. MEMBER_GONE follows when
 * nothing of them is on a queue pair any more, so that it also says: this rank
 * writes nothing from now on. A group that fails has all its streams killed.
 */
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "link.h"
#include "member.h"
#include "op.h"
#include "session.h"
#include "window.h"

#define HCOMM_LINGER_TIME	(5 * HZ)	/* hcomm_local_lingers() */
#define HCOMM_MAX_LINGERING	1024	/* per session */

/*
 * One that ended and has proven itself to a peer that has not, or of which none
 * is left that had: it may be believed there to be alive, and how the peer calls
 * the group now is known with its proof.
 */
static bool hcomm_local_lingers(const struct hcomm_link *link,
				const struct hcomm_local *local)
{
	return local->leaving && local->proofs && !local->overdue &&
	       (!link->peer_handle || link->peer_left);
}

/* The same, and what it needs no more for that is given back. */
static bool hcomm_local_rests(struct hcomm_link *link,
			      struct hcomm_local *local)
{
	if (!hcomm_local_lingers(link, local))
		return false;
	if (!local->member)
		return true;
	if (link->session->lingering == HCOMM_MAX_LINGERING)
		return false;
	link->session->lingering++;
	hcomm_member_put(local->member);
	local->member = NULL;
	return true;
}

static void hcomm_local_free(struct hcomm_link *link, u32 rank,
			     struct hcomm_local *local)
{
	lockdep_assert_held(&link->session->links_lock);
	xa_erase_bh(&link->locals, rank);
	if (local->member)
		hcomm_member_put(local->member);
	else
		link->session->lingering--;
	kfree(local);
}

/* Forgets those that lingered for too long; true if another is left. */
static bool hcomm_link_used(struct hcomm_link *link, bool connected)
{
	struct hcomm_local *local;
	unsigned long rank;
	bool overdue = false;
	bool used = false;

	xa_for_each(&link->locals, rank, local) {
		if (!hcomm_local_lingers(link, local))
			used = true;
		else if (!connected)
			local->until = jiffies + HCOMM_LINGER_TIME;
		else
			local->overdue = time_after(jiffies, local->until);
		overdue |= local->overdue;
	}
	if (overdue)
		hcomm_link_settle(link);
	return used;
}

bool hcomm_links_sweep(struct hcomm_session *session, bool connected)
{
	struct hcomm_link *link, *next;
	bool used = false;

	mutex_lock(&session->links_lock);
	list_for_each_entry_safe(link, next, &session->links, session_node) {
		/* Proven there or not: the peer may have taken our proof. */
		if (!xa_empty(&link->locals)) {
			used |= hcomm_link_used(link, connected);
		} else if (list_empty(&link->adverts) &&
			   list_empty(&link->dying)) {
			hcomm_link_unclaim(link);
			hcomm_link_remove(link);
		}
	}
	mutex_unlock(&session->links_lock);
	return used;
}

/* Our streams with @remote have nothing posted: its GETs are answered no more. */
static void hcomm_remote_answer(struct hcomm_session *session,
				struct hcomm_remote *remote)
{
	struct hcomm_note *note, *next;

	list_for_each_entry_safe(note, next, &remote->answers, msg.node) {
		list_del_init(&note->msg.node);
		hcomm_session_note(session, note);
	}
}

/*
 * Tells the peer of members that ended and have nothing posted any more. The
 * group's failure goes first: a rank that is gone is not believed any more.
 */
void hcomm_link_settle(struct hcomm_link *link)
{
	struct hcomm_session *session = link->session;
	struct hcomm_stream *stream, *next;
	struct hcomm_remote *remote;
	struct hcomm_local *local;
	struct hcomm_note *note;
	unsigned long rank;

	lockdep_assert_held(&session->links_lock);
	list_for_each_entry_safe(stream, next, &link->dying, dying_node) {
		if (atomic_read(&stream->posted)) {
			local = xa_load(&link->locals, stream->flow.src);
			if (local)
				local->busy = true;
			stream->remote->busy = true;
			continue;
		}
		list_del(&stream->dying_node);
		hcomm_stream_put(stream);
	}
	xa_for_each(&link->remotes, rank, remote) {
		if (!remote->busy)
			hcomm_remote_answer(session, remote);
		remote->busy = false;
	}
	hcomm_link_tell_fault(link);
	xa_for_each(&link->locals, rank, local) {
		if (!local->leaving || local->busy ||
		    hcomm_local_rests(link, local)) {
			local->busy = false;
			continue;
		}
		if (link->peer_handle) {
			note = hcomm_note_alloc(HCOMM_WIRE_MEMBER_GONE, 0,
						GFP_KERNEL | __GFP_NOFAIL);
			note->msg.hdr.group = link->peer_handle;
			note->msg.hdr.src = rank;
			note->msg.hdr.aux = local->cause;
			hcomm_session_note(session, note);
		}
		hcomm_local_free(link, rank, local);
	}
}

void hcomm_link_settle_work(struct work_struct *work)
{
	struct hcomm_link *link = container_of(work, struct hcomm_link,
					       settle_work);

	mutex_lock(&link->session->links_lock);
	hcomm_link_settle(link);
	mutex_unlock(&link->session->links_lock);
	hcomm_link_put(link);
}

/* Something of a dead stream left its queue pair. Any context. */
void hcomm_link_kick(struct hcomm_link *link)
{
	hcomm_link_get(link);
	if (!queue_work(hcomm_progress_wq, &link->settle_work))
		hcomm_link_put(link);
}

void hcomm_link_kill(struct hcomm_link *link, bool local, u32 rank, int status,
		     bool linger)
{
	struct hcomm_stream *stream;
	unsigned long index;

	lockdep_assert_held(&link->session->links_lock);
	xa_for_each(&link->streams, index, stream)
		if ((local ? stream->flow.src : stream->flow.dst) == rank)
			hcomm_stream_kill(stream, status, linger);
}

void hcomm_session_member_down(struct hcomm_member *member,
			       enum hcomm_cause cause)
{
	struct hcomm_link **links;
	struct hcomm_local *local;
	unsigned int count, i;

	hcomm_endpoint_end(member, -ESHUTDOWN);
	links = hcomm_links_of(member->group, &count);
	for (i = 0; i < count; i++) {
		mutex_lock(&links[i]->session->links_lock);
		local = xa_load(&links[i]->locals, member->rank);
		if (local && local->member == member) {
			local->leaving = true;
			local->cause = cause;
			local->until = jiffies + HCOMM_LINGER_TIME;
			hcomm_link_kill(links[i], true, member->rank,
					-ESHUTDOWN, true);
			hcomm_link_settle(links[i]);
		}
		mutex_unlock(&links[i]->session->links_lock);
		hcomm_link_put(links[i]);
	}
	kfree(links);
}

/* All that we knew there: who was told of us then is told of our end. */
static void hcomm_link_peer_left(struct hcomm_link *link)
{
	struct hcomm_local *local;
	unsigned long rank;

	link->peer_left = true;
	xa_for_each(&link->locals, rank, local)
		if (local->told)
			local->proofs = 0;
}

/* @remote has ended; its kernel writes nothing for it any more. */
static void hcomm_link_lose(struct hcomm_link *link,
			    struct hcomm_remote *remote, int status)
{
	lockdep_assert_held(&link->session->links_lock);
	remote->gone = true;
	link->nr_remotes--;
	hcomm_link_kill(link, false, remote->rank, status, false);
	hcomm_adverts_remote_gone(link);
	set_bit(remote->rank, link->group->gone_ranks);
	if (!link->nr_remotes)
		hcomm_link_peer_left(link);
}

/*
 * A group that its last member left gets a new handle when one comes: those we
 * knew there have ended before they knew how we call it. A bitmap of them, or
 * NULL without memory.
 */
unsigned long *hcomm_link_lose_all(struct hcomm_link *link)
{
	unsigned long *lost = bitmap_zalloc(link->group->size, GFP_KERNEL);
	struct hcomm_remote *remote;
	unsigned long rank;

	if (!lost)
		return NULL;
	xa_for_each(&link->remotes, rank, remote) {
		if (remote->gone)
			continue;
		set_bit(rank, lost);
		hcomm_link_lose(link, remote, -EOWNERDEAD);
	}
	return lost;
}

void hcomm_link_remote_gone(struct hcomm_session *session,
			    const struct hcomm_wire_msg *m)
{
	enum hcomm_cause cause = m->h.aux;
	struct hcomm_remote *remote = NULL;
	struct hcomm_link *link;

	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	if (link)
		remote = hcomm_remote_find(link, m->h.src);
	if (!remote) {
		mutex_unlock(&session->links_lock);
		return;
	}
	hcomm_link_get(link);
	hcomm_link_lose(link, remote,
			cause == HCOMM_CAUSE_NONE ? -ESHUTDOWN : -EOWNERDEAD);
	mutex_unlock(&session->links_lock);

	hcomm_endpoints_fail(link->group, m->h.src, -ESHUTDOWN);
	hcomm_group_mourn(link->group, m->h.src, cause);
	hcomm_link_put(link);
}

/* Ends all streams of the link; settling tells the peer why. */
void hcomm_link_fault_work(struct work_struct *work)
{
	struct hcomm_link *link = container_of(work, struct hcomm_link,
					       fault_work);
	struct hcomm_session *session = link->session;
	struct hcomm_stream *stream;
	unsigned long index;

	mutex_lock(&session->links_lock);
	xa_for_each(&link->streams, index, stream)
		hcomm_stream_kill(stream, link->fault.error, true);
	hcomm_link_settle(link);
	mutex_unlock(&session->links_lock);
	hcomm_link_put(link);
}

/* The lowest proven rank of the link, or one that a member expects there. */
static u32 hcomm_link_culprit(struct hcomm_link *link)
{
	struct hcomm_remote *remote;
	struct hcomm_local *local;
	struct hcomm_peer peer;
	unsigned long rank;
	u32 r;

	xa_for_each(&link->remotes, rank, remote)
		if (!remote->gone)
			return rank;
	xa_for_each(&link->locals, rank, local)
		for (r = 0; local->member && r < link->group->size; r++)
			if (!hcomm_member_peer(local->member, r, &peer) &&
			    !hcomm_group_remote_gone(link->group, r) &&
			    !memcmp(peer.instance_id, link->session->peer, 16))
				return r;
	return HCOMM_NO_RANK;
}

/* Takes a link of a dead session apart; its fault in *@fault, if it has one. */
static bool hcomm_link_end(struct hcomm_link *link, int error,
			   struct hcomm_fault *fault)
{
	struct hcomm_local *local;
	struct hcomm_stream *stream, *next;
	unsigned long index;
	bool broken;

	lockdep_assert_held(&link->session->links_lock);
	/* Proven and lost, or named by a member and never reached. */
	broken = link->nr_remotes || error == -ENETUNREACH;
	fault->cause = link->nr_remotes ? HCOMM_CAUSE_NODE : HCOMM_CAUSE_LINK;
	if (error == -EPROTO)
		fault->cause = HCOMM_CAUSE_PROTOCOL;
	fault->error = link->nr_remotes ? -ECONNRESET : -ENETDOWN;
	fault->rank = hcomm_link_culprit(link);
	fault->op = 0;
	if (xa_empty(&link->locals) || fault->rank == HCOMM_NO_RANK)
		broken = false;

	xa_for_each(&link->streams, index, stream)
		hcomm_stream_kill(stream, -ECONNRESET, false);
	list_for_each_entry_safe(stream, next, &link->dying, dying_node) {
		list_del(&stream->dying_node);
		hcomm_stream_put(stream);
	}
	hcomm_adverts_end(link);
	xa_for_each(&link->locals, index, local)
		hcomm_local_free(link, index, local);
	return broken;
}

/* Members that only hoped for a rank there may look for it again. */
static void hcomm_group_want_again(struct hcomm_group *group)
{
	struct hcomm_member *member;
	unsigned long rank;

	for (rank = 0; (member = hcomm_group_next(group, &rank)); rank++) {
		if (READ_ONCE(member->state) == HCOMM_STATE_ACTIVE)
			hcomm_session_peers_set(member);
		hcomm_member_put(member);
	}
}

unsigned int hcomm_links_end(struct hcomm_session *session, int error)
{
	struct hcomm_fault fault, before;
	struct hcomm_link *link;
	unsigned int failed = 0;
	bool again, broken, waited;

	for (;;) {
		mutex_lock(&session->links_lock);
		session->down = true;
		link = list_first_entry_or_null(&session->links,
						struct hcomm_link,
						session_node);
		if (!link) {
			mutex_unlock(&session->links_lock);
			return failed;
		}
		/* Nobody is failed for the time that others have waited. */
		waited = hcomm_link_waited_ms(link, ktime_get()) >
			 HCOMM_CONNECT_MS;
		again = error != -ESHUTDOWN && !link->nr_remotes &&
			!(error == -ENETUNREACH && waited) &&
			!xa_empty(&link->locals);
		hcomm_link_get(link);
		broken = hcomm_link_end(link, again ? 0 : error, &fault);
		if (!broken)
			hcomm_link_unclaim(link);
		hcomm_link_remove(link);
		mutex_unlock(&session->links_lock);

		if (broken) {
			failed += !hcomm_group_failed(link->group, &before);
			hcomm_group_fail(link->group, &fault);
			hcomm_session_group_fault(link->group, fault.rank,
						  &fault);
		} else if (again) {
			hcomm_group_want_again(link->group);
		}
		hcomm_link_put(link);
	}
}
