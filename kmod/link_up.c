// SPDX-License-Identifier: GPL-2.0
/*
 * How ranks come to a link: members of ours that join, ranks that the peer
 * proves.
 *
 * The first proven claim of a rank wins, on whatever session or locally; a rank
 * that is gone never comes back.
 *
 * Streams are made before our proof leaves and before the peer's is
 * acknowledged; a stream is opened for sending when the peer has acknowledged
 * our last proof (one that came before the peer knew the group was in vain, and
 * it asks for another). So each side has the stream before the other one's
 * first message comes.
 */
#include <crypto/algapi.h>
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "link.h"
#include "member.h"
#include "op.h"
#include "proc.h"
#include "session.h"
#include "window.h"

/* A member and a proven rank get to know each other. */
static int hcomm_link_pair(struct hcomm_link *link, struct hcomm_member *member,
			   struct hcomm_remote *remote, bool open)
{
	int ret = hcomm_stream_create(link, member, remote, open);

	if (ret)
		return ret;
	hcomm_member_lock(member);
	hcomm_event_raise(member, HCOMM_EVENT_MEMBER_UP, remote->rank, 0);
	hcomm_member_unlock(member);
	return 0;
}

/*
 * The first member comes. What became of the peer's windows while nobody was
 * here, we have not been told. The proofs name the new era, and the peer names
 * it with the keys that it sends from then on; others are not looked at.
 */
static void hcomm_link_renew(struct hcomm_link *link)
{
	struct hcomm_remote *remote;
	unsigned long rank;

	link->born = ktime_get();
	link->era = ++link->session->eras;
	xa_for_each(&link->remotes, rank, remote)
		hcomm_rwins_drop(remote);
}

/* Makes @member known on the link; its streams are there before its proof. */
static int hcomm_link_add_local(struct hcomm_link *link,
				struct hcomm_member *member)
{
	struct hcomm_remote *remote;
	struct hcomm_local *local;
	bool first = xa_empty(&link->locals);
	unsigned long rank;
	int ret;

	lockdep_assert_held(&link->session->links_lock);
	if (READ_ONCE(member->endpoint.ended) ||
	    xa_load(&link->locals, member->rank))
		return 0;
	local = kzalloc(sizeof(*local), GFP_KERNEL_ACCOUNT);
	if (!local)
		return -ENOMEM;
	ret = xa_insert_bh(&link->locals, member->rank, local, GFP_KERNEL_ACCOUNT);
	if (ret) {
		kfree(local);
		return ret;
	}
	hcomm_member_get(member);
	local->member = member;
	if (first)
		hcomm_link_renew(link);
	WRITE_ONCE(link->session->useless, 0);
	xa_for_each(&link->remotes, rank, remote) {
		if (remote->gone)
			continue;
		ret = hcomm_link_pair(link, member, remote, false);
		if (ret)
			return ret;
	}
	hcomm_local_prove(link, local, !link->asked);
	link->asked |= READ_ONCE(link->session->state) == HCOMM_SESSION_OPEN;
	if (link->nr_remotes)
		hcomm_adverts_local(link, local);
	return 0;
}

/* False: the session ends, there may be another. */
static bool hcomm_session_add_member(struct hcomm_session *session,
				     struct hcomm_member *member)
{
	struct hcomm_link *link;
	int ret = -ENOMEM;
	bool down;

	mutex_lock(&session->links_lock);
	down = session->down;
	if (!down) {
		link = hcomm_link_of(session, member->group);
		if (link)
			ret = hcomm_link_add_local(link, member);
		if (ret)
			hcomm_session_reset(session, ret);
	}
	mutex_unlock(&session->links_lock);
	if (down)
		hcomm_session_reset(session, 0);
	return !down;
}

void hcomm_endpoint_init(struct hcomm_member *member)
{
	spin_lock_init(&member->endpoint.lock);
	INIT_LIST_HEAD(&member->endpoint.waiting);
	xa_init(&member->endpoint.streams);
}

/* The last reference to the member goes. */
void hcomm_endpoint_free(struct hcomm_member *member)
{
	xa_destroy(&member->endpoint.streams);
}

void hcomm_session_member_up(struct hcomm_member *member)
{
	struct hcomm_link **links;
	unsigned int count, i;

	hcomm_endpoints_unwait(member);
	links = hcomm_links_of(member->group, &count);
	for (i = 0; i < count; i++) {
		hcomm_session_add_member(links[i]->session, member);
		hcomm_link_put(links[i]);
	}
	kfree(links);
	hcomm_session_peers_set(member);
}

void hcomm_session_peers_set(struct hcomm_member *member)
{
	struct hcomm_instance *instance = member->group->instance;
	u8 last[HCOMM_ID_BYTES] = {};
	struct hcomm_session *session;
	struct hcomm_peer peer;
	u32 stuck = HCOMM_NO_RANK;
	bool added;
	u32 rank;

	for (rank = 0; rank < member->group->size; rank++) {
		if (hcomm_member_peer(member, rank, &peer) ||
		    hcomm_group_remote_gone(member->group, rank) ||
		    !memcmp(peer.instance_id, instance->id, HCOMM_ID_BYTES) ||
		    !memcmp(peer.instance_id, last, HCOMM_ID_BYTES))
			continue;
		memcpy(last, peer.instance_id, HCOMM_ID_BYTES);
		/* One that has just closed is dead when it says so. */
		do {
			session = hcomm_session_want(instance->fabric, &peer,
						     member->proc);
			if (IS_ERR(session)) {
				stuck = min(stuck, rank);
				break;
			}
			added = hcomm_session_add_member(session, member);
			hcomm_session_put(session);
		} while (!added);
		cond_resched();
	}
	if (stuck != HCOMM_NO_RANK)
		hcomm_member_seek_later(member, stuck);
}

/* The rank is the session's from now on, unless somebody had it. */
static bool hcomm_group_claim(struct hcomm_group *group, u32 rank)
{
	bool ok = false;

	mutex_lock(&group->lock);
	if (!group->remote_ranks)
		group->remote_ranks = bitmap_zalloc(group->size,
						    GFP_KERNEL_ACCOUNT);
	if (!group->gone_ranks)
		WRITE_ONCE(group->gone_ranks,
			   bitmap_zalloc(group->size, GFP_KERNEL_ACCOUNT));
	if (group->remote_ranks && group->gone_ranks &&
	    !test_bit(rank, group->used_ranks))
		ok = !test_and_set_bit(rank, group->remote_ranks);
	mutex_unlock(&group->lock);
	return ok;
}

/* Enters a proven rank and makes its streams. */
static int hcomm_link_add_remote(struct hcomm_link *link, u32 rank)
{
	struct hcomm_remote *remote;
	struct hcomm_local *local;
	unsigned long mine;
	int ret;

	lockdep_assert_held(&link->session->links_lock);
	remote = kzalloc(sizeof(*remote), GFP_KERNEL_ACCOUNT);
	if (!remote)
		return -ENOMEM;
	refcount_set(&remote->refs, 1);
	remote->rank = rank;
	INIT_LIST_HEAD(&remote->answers);
	xa_init(&remote->windows);
	ret = xa_insert_bh(&link->remotes, rank, remote, GFP_KERNEL_ACCOUNT);
	if (ret) {
		kfree(remote);
		return ret;
	}
	link->nr_remotes++;
	WRITE_ONCE(link->session->proven, true);
	xa_for_each(&link->locals, mine, local) {
		if (local->leaving)
			continue;
		ret = hcomm_link_pair(link, local->member, remote,
				      local->told);
		if (ret)
			return ret;
	}
	return 0;
}

/* Members of a group whose link the peer's proof has made. */
static int hcomm_link_add_locals(struct hcomm_link *link)
{
	struct hcomm_member *member;
	int ret = 0;
	u32 rank;

	for (rank = 0; rank < link->group->size && !ret; rank++) {
		member = hcomm_group_member(link->group, rank);
		if (!member)
			continue;
		ret = hcomm_link_add_local(link, member);
		hcomm_member_put(member);
	}
	return ret;
}

/*
 * The peer did not know the group before and took no note of what we said until
 * now: streams open when it has our answer.
 */
static void hcomm_link_untell(struct hcomm_link *link)
{
	struct hcomm_local *local;
	unsigned long rank;

	xa_for_each(&link->locals, rank, local)
		local->told = false;
	hcomm_link_fault_untell(link);
}

/* How the peer calls the group now; an earlier one took no note of a fault. */
static void hcomm_link_peer_is(struct hcomm_link *link, u32 handle)
{
	if (link->peer_handle && link->peer_handle != handle)
		hcomm_link_fault_untell(link);
	link->peer_handle = handle;
	link->peer_left = false;
}

static int hcomm_prove_accept(struct hcomm_session *session,
			      struct hcomm_group *group,
			      const struct hcomm_wire_msg *m,
			      const struct hcomm_wire_prove *prove)
{
	unsigned long *lost = NULL;
	struct hcomm_link *link;
	bool fresh = false;
	int ret = -ENOMEM;

	mutex_lock(&session->links_lock);
	link = hcomm_link_of(session, group);
	if (!link)
		goto out;
	ret = -EPROTO;
	if (!prove->handle)
		goto out;
	if (link->nr_remotes && link->peer_handle != prove->handle) {
		ret = -ENOMEM;
		lost = hcomm_link_lose_all(link);
		if (!lost)
			goto out;
	}
	hcomm_link_peer_is(link, prove->handle);
	hcomm_link_settle(link);
	if (link->peer_era != m->h.generation) {
		link->peer_era = m->h.generation;
		hcomm_adverts_again(link);
	}
	if (m->h.flags & HCOMM_WIRE_F_REPLY)
		hcomm_link_untell(link);
	ret = 0;
	if (!xa_load(&link->remotes, prove->rank) &&
	    hcomm_group_claim(group, prove->rank)) {
		fresh = true;
		ret = hcomm_link_add_remote(link, prove->rank);
		if (!xa_load(&link->remotes, prove->rank))
			hcomm_group_unclaim(group, prove->rank);
		if (ret)
			goto out;
	}
	ret = hcomm_link_add_locals(link);
	if (ret)
		goto out;
	if (m->h.flags & HCOMM_WIRE_F_REPLY)
		hcomm_link_prove(link, false);
	hcomm_link_tell_fault(link);
	/* Later ranks find the peer with all keys. */
	if (fresh && link->nr_remotes == 1)
		hcomm_adverts_link(link);
out:
	if (session->down)
		ret = 0;
	mutex_unlock(&session->links_lock);
	if (lost)
		hcomm_group_mourn_all(group, lost);
	return ret;
}

int hcomm_link_prove_received(struct hcomm_session *session,
			      const struct hcomm_wire_msg *m)
{
	struct hcomm_wire_prove prove;
	u8 mac[HCOMM_MAC_BYTES];
	struct hcomm_group *group;
	int ret;

	ret = hcomm_wire_prove_decode(m, &prove);
	if (ret)
		return ret;
	group = hcomm_group_by_id(session->fabric->instance, prove.group_id);
	/* Not known yet: our first member will ask for it again. */
	if (!group)
		return 0;
	ret = hcomm_claim_mac(session, group, false, prove.rank, prove.handle,
			      mac);
	if (ret)
		goto out;
	if (prove.size != group->size || prove.rank >= group->size ||
	    crypto_memneq(mac, prove.mac, sizeof(mac))) {
		ret = hcomm_prove_refuse(session, group, prove.rank, EACCES);
		if (!ret)
			hcomm_proof_fault(session, group, prove.rank,
					  HCOMM_NO_RANK);
		goto out;
	}
	/* As on one instance: a rank lives once in a group. */
	if (hcomm_group_remote_gone(group, prove.rank))
		ret = hcomm_prove_refuse(session, group, prove.rank, EEXIST);
	else
		ret = hcomm_prove_accept(session, group, m, &prove);
out:
	hcomm_group_put(group);
	return ret;
}
