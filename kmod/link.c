// SPDX-License-Identifier: GPL-2.0
/*
 * A link is a group on a session: which of our members the peer was told of,
 * which ranks the peer proved, and the streams between them.
 *
 * Proofs. A member proves its rank to every session that its table leads to,
 * and to every session on which some rank of the group was proven: PROVE with
 * HMAC-SHA256 under the group's secret over the direction, group, rank, size,
 * both instance ids and both nonces of the session. The first proof on a link
 * asks for the peer's proofs (it may have sent them before we knew the group).
 * The first proven claim of a rank wins, on whatever session or locally; a rank
 * that is gone never comes back. A proof that fails is answered, and puts our
 * members in error whose table says that the rank is there; so does the answer
 * for the member that it names. Nothing else is believed of a peer that does
 * not know the secret.
 *
 * Streams exist for pairs of a local member and a proven rank. They are made
 * before our proof leaves and before the peer's is acknowledged; a stream is
 * opened for sending when the peer has acknowledged our last proof (one that
 * came before the peer knew the group was in vain, and it asks for another). So
 * each side has the stream before the other one's first message comes.
 *
 * Death. A member that ends has its streams killed at once. MEMBER_GONE follows
 * when nothing of them is on a queue pair any more, so that it also says: this
 * rank writes nothing from now on. A group that fails has all its streams
 * killed and the peers told (GROUP_ABORT), once per link.
 *
 * Locks: session->links_lock (mutex) for all of it, outside group->lock and all
 * spinlocks; group->links_lock for the group's list of links; the tables
 * `handles` and `streams` are read under RCU by the receive path.
 */
#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <linux/bitmap.h>
#include <linux/slab.h>

#include "fabric.h"
#include "member.h"
#include "op.h"
#include "proc.h"
#include "session.h"
#include "window.h"

#define HCOMM_LINGER_TIME	(5 * HZ)	/* hcomm_local_lingers() */
#define HCOMM_MAX_LINGERING	1024	/* per session */

/* ------------------------------------------------------------ proofs */

#define HCOMM_MAC_BYTES		32
#define HCOMM_PROVE_BYTES	64	/* what hcomm_wire_prove_encode() writes */

static struct crypto_shash *hcomm_hmac;
static DEFINE_MUTEX(hcomm_hmac_lock);	/* key and digest belong together */

int hcomm_crypto_init(void)
{
	hcomm_hmac = crypto_alloc_shash("hmac(sha256)", 0, 0);
	return PTR_ERR_OR_ZERO(hcomm_hmac);
}

void hcomm_crypto_exit(void)
{
	crypto_free_shash(hcomm_hmac);
}

/* What a proof is made over; packed by being bytes and u32 only. */
struct hcomm_claim {
	u8 label[16];
	u8 group[16];
	u8 prover[16];
	u8 verifier[16];
	u8 prover_nonce[16];
	u8 verifier_nonce[16];
	__le32 direction;		/* 1: the connecting side proves */
	__le32 rank;
	__le32 size;
	__le32 handle;
};

static int hcomm_claim_mac(struct hcomm_session *session,
			   const struct hcomm_group *group, bool ours, u32 rank,
			   u32 handle, u8 *mac)
{
	const u8 *self = session->fabric->instance->id;
	struct hcomm_claim claim = {
		.label = "hcomm prove v1",
		.direction = cpu_to_le32(ours == session->active ? 1 : 2),
		.rank = cpu_to_le32(rank),
		.size = cpu_to_le32(group->size),
		.handle = cpu_to_le32(handle),
	};
	int ret;

	memcpy(claim.group, group->id, 16);
	memcpy(claim.prover, ours ? self : session->peer, 16);
	memcpy(claim.verifier, ours ? session->peer : self, 16);
	spin_lock_bh(&session->lock);
	memcpy(claim.prover_nonce, ours ? session->nonce : session->peer_nonce,
	       16);
	memcpy(claim.verifier_nonce,
	       ours ? session->peer_nonce : session->nonce, 16);
	spin_unlock_bh(&session->lock);

	mutex_lock(&hcomm_hmac_lock);
	ret = crypto_shash_setkey(hcomm_hmac, group->secret,
				  sizeof(group->secret));
	if (!ret)
		ret = crypto_shash_tfm_digest(hcomm_hmac, (u8 *)&claim,
					      sizeof(claim), mac);
	mutex_unlock(&hcomm_hmac_lock);
	return ret;
}

/* ------------------------------------------------------- life of a link */

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

static void hcomm_link_fault_work(struct work_struct *work);
static void hcomm_link_settle_work(struct work_struct *work);

/* A link that is made after its group failed has the fault to tell, too. */
static void hcomm_link_inherit_fault(struct hcomm_link *link)
{
	struct hcomm_group *group = link->group;
	struct hcomm_fault fault;

	if (!hcomm_group_failed(group, &fault))
		return;
	spin_lock_bh(&group->links_lock);
	if (!link->faulted) {
		link->faulted = true;
		link->fault = fault;
		link->fault_reporter = HCOMM_NO_RANK;
	}
	spin_unlock_bh(&group->links_lock);
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

static struct hcomm_link *hcomm_link_of(struct hcomm_session *session,
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

/* Off every list. links_lock held. */
static void hcomm_link_remove(struct hcomm_link *link)
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

/* The rank may be claimed again, by whichever session. */
static void hcomm_group_unclaim(struct hcomm_group *group, u32 rank)
{
	mutex_lock(&group->lock);
	clear_bit(rank, group->remote_ranks);
	mutex_unlock(&group->lock);
}

/*
 * The link goes without a failure of its group: its ranks may prove themselves
 * again, here or on another session. Those that are gone never come back.
 */
static void hcomm_link_unclaim(struct hcomm_link *link)
{
	struct hcomm_remote *remote;
	unsigned long rank;

	lockdep_assert_held(&link->session->links_lock);
	xa_for_each(&link->remotes, rank, remote)
		if (!remote->gone)
			hcomm_group_unclaim(link->group, rank);
}

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

/* How long a member has waited for somebody there. */
static s64 hcomm_link_waited_ms(const struct hcomm_link *link, ktime_t now)
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

/* --------------------------------------------------- our own members */

static void hcomm_local_told(struct hcomm_link *link, u32 rank, u32 proof)
{
	struct hcomm_session *session = link->session;
	struct hcomm_stream *stream;
	struct hcomm_local *local;
	unsigned long index;

	mutex_lock(&session->links_lock);
	local = xa_load(&link->locals, rank);
	if (local && !local->leaving && local->proofs == proof) {
		local->told = true;
		xa_for_each(&link->streams, index, stream)
			if (stream->flow.src == rank)
				hcomm_stream_open(stream);
	}
	mutex_unlock(&session->links_lock);
}

/* Delivered: from inbox_work. Otherwise the caller may hold links_lock. */
static void hcomm_prove_done(struct hcomm_note *note, bool delivered)
{
	struct hcomm_link *link = note->arg;

	if (delivered)
		hcomm_local_told(link, note->msg.hdr.src, note->tag);
	hcomm_link_put(link);
}

/* Proves @local to the peer. */
static void hcomm_local_prove(struct hcomm_link *link, struct hcomm_local *local,
			      bool ask)
{
	struct hcomm_session *session = link->session;
	struct hcomm_group *group = link->group;
	struct hcomm_wire_prove prove = {
		.size = group->size,
		.handle = group->handle,
	};
	struct hcomm_note *note;

	lockdep_assert_held(&session->links_lock);
	if (READ_ONCE(session->state) != HCOMM_SESSION_OPEN || local->leaving)
		return;
	prove.rank = local->member->rank;
	note = hcomm_note_alloc(HCOMM_WIRE_PROVE, HCOMM_PROVE_BYTES,
				GFP_KERNEL);
	if (!note ||
	    hcomm_claim_mac(session, group, true, prove.rank, prove.handle,
			    prove.mac)) {
		kfree(note);
		hcomm_session_reset(session, -ENOMEM);
		return;
	}
	memcpy(prove.group_id, group->id, 16);
	hcomm_wire_prove_encode(&prove, note->payload);
	note->msg.hdr.src = prove.rank;
	note->msg.hdr.generation = link->era;
	note->msg.hdr.flags = ask ? HCOMM_WIRE_F_REPLY : 0;
	note->msg.answer = !ask;
	hcomm_link_get(link);
	note->arg = link;
	note->tag = ++local->proofs;
	note->done = hcomm_prove_done;
	hcomm_session_note(session, note);
}

static void hcomm_link_prove(struct hcomm_link *link, bool ask)
{
	struct hcomm_local *local;
	unsigned long rank;

	xa_for_each(&link->locals, rank, local) {
		hcomm_local_prove(link, local, ask);
		ask = false;
	}
}

/* The session has just opened. */
void hcomm_link_prove_all(struct hcomm_session *session)
{
	struct hcomm_link *link;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node) {
		link->asked = !xa_empty(&link->locals);
		hcomm_link_prove(link, true);
	}
	mutex_unlock(&session->links_lock);
}

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

/* Whom the peer believes that the group failed: a member that it knows. */
static u32 hcomm_link_speaker(struct hcomm_link *link)
{
	struct hcomm_local *local;
	unsigned long rank;

	if (xa_load(&link->locals, link->fault_reporter))
		return link->fault_reporter;
	xa_for_each(&link->locals, rank, local)
		if (!local->leaving)
			return rank;
	return HCOMM_NO_RANK;
}

/* Whatever we told the peer of a fault, it took no note of. */
static void hcomm_link_fault_untell(struct hcomm_link *link)
{
	spin_lock_bh(&link->group->links_lock);
	link->fault_known = false;
	spin_unlock_bh(&link->group->links_lock);
}

/* Tells the peer, once, that the group failed, if it did. */
static void hcomm_link_tell_fault(struct hcomm_link *link)
{
	const struct hcomm_fault *fault = &link->fault;
	struct hcomm_note *note;
	u32 speaker;
	bool tell;

	lockdep_assert_held(&link->session->links_lock);
	spin_lock_bh(&link->group->links_lock);
	speaker = hcomm_link_speaker(link);
	tell = link->faulted && !link->fault_known && link->peer_handle &&
	       speaker != HCOMM_NO_RANK;
	if (tell)
		link->fault_known = true;
	spin_unlock_bh(&link->group->links_lock);
	if (!tell)
		return;
	note = hcomm_note_alloc(HCOMM_WIRE_GROUP_ABORT, 0,
				GFP_KERNEL | __GFP_NOFAIL);
	note->msg.hdr.group = link->peer_handle;
	note->msg.hdr.src = speaker;
	note->msg.hdr.dst = fault->rank;
	note->msg.hdr.offset = fault->op;
	note->msg.hdr.delta = -fault->error;
	note->msg.hdr.aux = fault->cause;
	hcomm_session_note(link->session, note);
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

static void hcomm_link_settle_work(struct work_struct *work)
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

/* -------------------------------------------------- the peer's ranks */

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

/*
 * A proof failed. @rank is the peer's, or HCOMM_NO_RANK when ours was refused;
 * @only: our rank it is about, or HCOMM_NO_RANK for all.
 */
static void hcomm_proof_fault(struct hcomm_session *session,
			      struct hcomm_group *group, u32 rank, u32 only)
{
	struct hcomm_fault fault = {
		.cause = HCOMM_CAUSE_PROOF,
		.error = -EACCES,
	};
	struct hcomm_member *member;
	struct hcomm_peer peer;
	u32 mine, r;

	for (mine = 0; mine < group->size; mine++) {
		if (only != HCOMM_NO_RANK && mine != only)
			continue;
		member = hcomm_group_member(group, mine);
		if (!member)
			continue;
		for (r = 0; r < group->size; r++) {
			if (rank != HCOMM_NO_RANK && r != rank)
				continue;
			if (hcomm_member_peer(member, r, &peer) ||
			    memcmp(peer.instance_id, session->peer, 16))
				continue;
			fault.rank = r;
			hcomm_member_lock(member);
			hcomm_member_fail(member, &fault);
			hcomm_member_unlock(member);
			break;
		}
		hcomm_member_put(member);
		cond_resched();
	}
}

static int hcomm_prove_refuse(struct hcomm_session *session,
			      struct hcomm_group *group, u32 rank, int error)
{
	struct hcomm_note *note;

	note = hcomm_note_alloc(HCOMM_WIRE_PROVE_FAIL, 16, GFP_KERNEL);
	if (!note)
		return -ENOMEM;
	memcpy(note->payload, group->id, 16);
	note->msg.hdr.src = rank;
	note->msg.hdr.aux = error;
	note->msg.answer = true;
	hcomm_session_note(session, note);
	return 0;
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
static unsigned long *hcomm_link_lose_all(struct hcomm_link *link)
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

/* Tells members here and elsewhere of ranks whose end nobody told. */
static void hcomm_group_mourn_all(struct hcomm_group *group,
				  unsigned long *lost)
{
	struct hcomm_fault fault;
	unsigned int rank;

	for_each_set_bit(rank, lost, group->size) {
		hcomm_endpoints_fail(group, rank, -ESHUTDOWN);
		hcomm_group_mourn(group, rank, HCOMM_CAUSE_PROCESS);
	}
	fault = hcomm_fault_of_death(find_first_bit(lost, group->size));
	hcomm_session_group_fault(group, fault.rank, &fault);
	bitmap_free(lost);
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

void hcomm_link_prove_failed(struct hcomm_session *session,
			     const struct hcomm_wire_msg *m)
{
	struct hcomm_group *group;

	group = hcomm_group_by_id(session->fabric->instance, m->payload);
	if (!group)
		return;
	if (m->h.src < group->size)
		hcomm_proof_fault(session, group, HCOMM_NO_RANK, m->h.src);
	hcomm_group_put(group);
}

/* --------------------------------------------------- death and faults */

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
static void hcomm_link_fault_work(struct work_struct *work)
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

/* @known: the link whose peer told us, if any. Any context. */
static void hcomm_links_fault(struct hcomm_group *group, u32 reporter,
			      const struct hcomm_fault *fault,
			      struct hcomm_link *known)
{
	struct hcomm_link *link;

	spin_lock_bh(&group->links_lock);
	list_for_each_entry(link, &group->links, group_node) {
		if (link->faulted)
			continue;
		link->faulted = true;
		link->fault = *fault;
		link->fault_reporter = reporter;
		link->fault_known = link == known;
		hcomm_link_get(link);
		queue_work(hcomm_progress_wq, &link->fault_work);
	}
	spin_unlock_bh(&group->links_lock);
}

void hcomm_session_group_fault(struct hcomm_group *group, u32 reporter,
			       const struct hcomm_fault *fault)
{
	hcomm_links_fault(group, reporter, fault, NULL);
}

void hcomm_link_abort_received(struct hcomm_session *session,
			       const struct hcomm_wire_msg *m)
{
	struct hcomm_fault fault = {
		.cause = m->h.aux,
		.error = -(int)m->h.delta,
		.rank = m->h.dst,
		.op = m->h.offset,
	};
	struct hcomm_link *link;

	if (!m->h.aux || m->h.aux > HCOMM_CAUSE_REVOKED || !m->h.delta ||
	    m->h.delta > MAX_ERRNO)
		return;
	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	/* Counts only from the session that proved the one who says it. */
	if (link && hcomm_remote_find(link, m->h.src) &&
	    (fault.rank < link->group->size || fault.rank == HCOMM_NO_RANK))
		hcomm_link_get(link);
	else
		link = NULL;
	mutex_unlock(&session->links_lock);
	if (!link)
		return;
	hcomm_group_fail(link->group, &fault);
	hcomm_links_fault(link->group, m->h.src, &fault, link);
	hcomm_link_put(link);
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
