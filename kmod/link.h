/* SPDX-License-Identifier: GPL-2.0 */
/* Private to link.c and link_*.c: what the rest of the transport never calls. */
#ifndef HCOMM_LINK_H
#define HCOMM_LINK_H

#include "fabric.h"

#define HCOMM_MAC_BYTES		32	/* HMAC-SHA256 */

/* --- link.c; with session->links_lock held */

/* The link of @group on @session, made if there is none; NULL: down, memory. */
struct hcomm_link *hcomm_link_of(struct hcomm_session *session,
				 struct hcomm_group *group);
/* Off every list. */
void hcomm_link_remove(struct hcomm_link *link);
/* The rank may be claimed again, by whichever session. Any lock but the group's. */
void hcomm_group_unclaim(struct hcomm_group *group, u32 rank);
/*
 * The link goes without a failure of its group: its ranks may prove themselves
 * again, here or on another session. Those that are gone never come back.
 */
void hcomm_link_unclaim(struct hcomm_link *link);
/* How long a member has waited for somebody there. */
s64 hcomm_link_waited_ms(const struct hcomm_link *link, ktime_t now);

/* --- link_proof.c */

/* What @rank's proof must be, of our side or of the peer's. */
int hcomm_claim_mac(struct hcomm_session *session,
		    const struct hcomm_group *group, bool ours, u32 rank,
		    u32 handle, u8 *mac);
/* Proves one member, or all, to the peer. links_lock. */
void hcomm_local_prove(struct hcomm_link *link, struct hcomm_local *local,
		       bool ask);
void hcomm_link_prove(struct hcomm_link *link, bool ask);
/*
 * A proof failed. @rank is the peer's, or HCOMM_NO_RANK when ours was refused;
 * @only: our rank it is about, or HCOMM_NO_RANK for all.
 */
void hcomm_proof_fault(struct hcomm_session *session, struct hcomm_group *group,
		       u32 rank, u32 only);
int hcomm_prove_refuse(struct hcomm_session *session,
		       struct hcomm_group *group, u32 rank, int error);

/* --- link_fault.c */

/* A link that is made after its group failed has the fault to tell, too. */
void hcomm_link_inherit_fault(struct hcomm_link *link);
/* Tells the peer, once, that the group failed, if it did. links_lock. */
void hcomm_link_tell_fault(struct hcomm_link *link);
/* Whatever we told the peer of a fault, it took no note of. */
void hcomm_link_fault_untell(struct hcomm_link *link);
/* Tells members here and elsewhere of @lost, which it frees. No lock. */
void hcomm_group_mourn_all(struct hcomm_group *group, unsigned long *lost);

/* --- link_down.c */

/* All the peer's ranks are gone: a bitmap of them, or NULL. links_lock. */
unsigned long *hcomm_link_lose_all(struct hcomm_link *link);
void hcomm_link_fault_work(struct work_struct *work);
void hcomm_link_settle_work(struct work_struct *work);

#endif
