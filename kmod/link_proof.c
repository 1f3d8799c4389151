// SPDX-License-Identifier: GPL-2.0
/*
 * Proofs: how a rank is believed to be one of its group.
 *
 * A member proves its rank to every session that its table leads to, and to
 * every session on which some rank of the group was proven: PROVE with
 * HMAC-SHA256 under the group's secret over the direction, group, rank, size,
 * both instance ids and both nonces of the session. The first proof on a link
 * asks for the peer's proofs (it may have sent them before we knew the group).
 *
 * A proof that fails is answered, and puts our members in error whose table
 * says that the rank is there; so does the answer for the member that it names.
 * Nothing else is believed of a peer that does not know the secret.
 */
#include <crypto/hash.h>
#include <linux/slab.h>

#include "link.h"
#include "member.h"
#include "session.h"

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

int hcomm_claim_mac(struct hcomm_session *session,
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

void hcomm_local_prove(struct hcomm_link *link, struct hcomm_local *local,
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

void hcomm_link_prove(struct hcomm_link *link, bool ask)
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

void hcomm_proof_fault(struct hcomm_session *session,
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

int hcomm_prove_refuse(struct hcomm_session *session,
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
