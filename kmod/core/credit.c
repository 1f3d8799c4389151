// SPDX-License-Identifier: GPL-2.0
/*
 * Counting receives on both ends of one queue pair
 *
 * Owns nothing but the counters; a new connection starts with fresh ones.
 * Called under the path's send lock.
 */
#include "credit.h"

int hcomm_credit_init(struct hcomm_credit *c, u32 ours, u32 peers)
{
	if (ours < HCOMM_CREDIT_MIN || peers < HCOMM_CREDIT_MIN)
		return -EPROTO;
	c->limit = peers;
	c->avail = peers;
	c->posted = ours;
	c->owed = 0;
	c->threshold = (ours - HCOMM_CREDIT_RESERVE) / 2;
	return 0;
}

/* Credits that must remain after a SEND of this use. */
static u32 kept(enum hcomm_credit_use use)
{
	switch (use) {
	case HCOMM_CREDIT_DATA:
		return HCOMM_CREDIT_RESERVE;
	case HCOMM_CREDIT_CONTROL:
		return 1;
	case HCOMM_CREDIT_RETURN:
		break;
	}
	return 0;
}

u32 hcomm_credit_room(const struct hcomm_credit *c, enum hcomm_credit_use use)
{
	return c->avail > kept(use) ? c->avail - kept(use) : 0;
}

bool hcomm_credit_take(struct hcomm_credit *c, enum hcomm_credit_use use)
{
	if (!hcomm_credit_room(c, use))
		return false;
	c->avail--;
	return true;
}

void hcomm_credit_untake(struct hcomm_credit *c)
{
	c->avail = min(c->avail + 1, c->limit);
}

void hcomm_credit_grant(struct hcomm_credit *c, u16 n)
{
	c->avail = min(c->avail + n, c->limit);
}

void hcomm_credit_reposted(struct hcomm_credit *c)
{
	c->owed = min(c->owed + 1, c->posted);
}

u16 hcomm_credit_collect(struct hcomm_credit *c)
{
	u16 n = min_t(u32, c->owed, U16_MAX);

	c->owed -= n;
	return n;
}

void hcomm_credit_uncollect(struct hcomm_credit *c, u16 n)
{
	c->owed += n;
}
