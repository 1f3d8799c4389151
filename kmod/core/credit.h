/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Receives of the peer, one struct per QP
 *
 * Each SEND takes one receive that the peer posted; it gives receives back in
 * the credits field of every header that leaves on the same QP.  The last 16
 * are kept for control: parts and eager messages stop first, control messages
 * next, and the very last one only carries a CREDIT message, so that two
 * sides that ran dry together still free each other.
 *
 * Locks: the path's send lock.
 */
#ifndef HCOMM_CORE_CREDIT_H
#define HCOMM_CORE_CREDIT_H

#include "shim.h"

#define HCOMM_CREDIT_RESERVE	16
#define HCOMM_CREDIT_MIN	(2 * HCOMM_CREDIT_RESERVE)	/* receives */

enum hcomm_credit_use {
	HCOMM_CREDIT_DATA,	/* parts, eager, signals, gets, replies */
	HCOMM_CREDIT_CONTROL,	/* acks, control stream, fence, heartbeat */
	HCOMM_CREDIT_RETURN,	/* CREDIT itself */
};

struct hcomm_credit {
	u32 limit;		/* receives the peer posted */
	u32 avail;		/* of those, unused as far as we know */
	u32 posted;		/* receives we posted */
	u32 owed;		/* reposted and not yet given back */
	u32 threshold;		/* owed that ask for a CREDIT message */
};

/*
 * A fresh connection: @ours receives are posted here, @peers there (stated in
 * the hello).  -EPROTO when the peer posted fewer than HCOMM_CREDIT_MIN.
 */
int hcomm_credit_init(struct hcomm_credit *c, u32 ours, u32 peers);

/* Takes one for a SEND that is posted next; false: wait. */
bool hcomm_credit_take(struct hcomm_credit *c, enum hcomm_credit_use use);
/* How many SENDs of this use could be posted now. */
u32 hcomm_credit_room(const struct hcomm_credit *c, enum hcomm_credit_use use);
/* A taken credit whose SEND was not posted. */
void hcomm_credit_untake(struct hcomm_credit *c);

/*
 * @n credits arrived in a header.  There are never more than the peer posted,
 * whatever it says: a software device can receive one SEND twice, and then its
 * credits, and one for it, are given twice.  Until all are back there may be
 * one too many, which the queue pair's own flow control bears.
 */
void hcomm_credit_grant(struct hcomm_credit *c, u16 n);

/* A receive was consumed and posted again. */
void hcomm_credit_reposted(struct hcomm_credit *c);

/* The value for a header that leaves now; not given back if it is not posted
 * unless hcomm_credit_uncollect() follows.
 */
u16 hcomm_credit_collect(struct hcomm_credit *c);
void hcomm_credit_uncollect(struct hcomm_credit *c, u16 n);

/* Whether a bare CREDIT message should leave. */
static inline bool hcomm_credit_due(const struct hcomm_credit *c)
{
	return c->owed >= c->threshold;
}

#endif /* HCOMM_CORE_CREDIT_H */
