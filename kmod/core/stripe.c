// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of parts and segments
 *
 * Pure functions over numbers that a peer or a user chose: every sum is checked
 * once, in hcomm_stripe_init(), and cannot overflow afterwards.
 */
#include "stripe.h"

bool hcomm_geom_valid(const struct hcomm_geom *g)
{
	u64 end;

	return g->mr_shift >= HCOMM_WIRE_MR_SHIFT_MIN &&
	       g->mr_shift <= HCOMM_WIRE_MR_SHIFT_MAX &&
	       g->base_off < BIT_ULL(g->mr_shift) &&
	       !check_add_overflow(g->length, (u64)g->base_off, &end);
}

int hcomm_geom_span(const struct hcomm_geom *g, u64 offset, u64 length,
		    u64 *first, u64 *count)
{
	if (!length || !hcomm_in_range(offset, length, g->length))
		return -ERANGE;
	*first = hcomm_geom_mr(g, offset);
	*count = hcomm_geom_mr(g, offset + length - 1) - *first + 1;
	return 0;
}

u32 hcomm_stripe_choose(u64 length, unsigned int paths)
{
	u64 stripe = length / max(paths, 1u);

	stripe = max_t(u64, stripe, 64u << 10);
	stripe = min_t(u64, stripe, HCOMM_STRIPE_MAX);
	return (stripe + HCOMM_STRIPE_MIN - 1) & ~(HCOMM_STRIPE_MIN - 1);
}

int hcomm_stripe_init(struct hcomm_stripe *s, const struct hcomm_geom *local,
		      u64 local_off, const struct hcomm_geom *remote,
		      u64 remote_off, u64 length, u32 stripe)
{
	if (!hcomm_geom_valid(local) || !hcomm_geom_valid(remote) ||
	    stripe < HCOMM_STRIPE_MIN || stripe > HCOMM_STRIPE_MAX ||
	    stripe % HCOMM_STRIPE_MIN || !length)
		return -EINVAL;
	if (!hcomm_in_range(local_off, length, local->length) ||
	    !hcomm_in_range(remote_off, length, remote->length))
		return -ERANGE;
	if (length > hcomm_stripe_length_max(stripe))
		return -E2BIG;
	s->local = *local;
	s->remote = *remote;
	s->local_off = local_off;
	s->remote_off = remote_off;
	s->length = length;
	s->stripe = stripe;
	s->parts = ((u32)length + stripe - 1) / stripe;
	return 0;
}

u64 hcomm_stripe_part(const struct hcomm_stripe *s, u32 part, u32 *length)
{
	u64 off = (u64)part * s->stripe;

	*length = off < s->length ? min_t(u64, s->stripe, s->length - off) : 0;
	return off;
}

/* Bytes from @offset to the end of its MR. */
static u64 to_boundary(const struct hcomm_geom *g, u64 offset)
{
	u64 size = BIT_ULL(g->mr_shift);

	return size - ((offset + g->base_off) & (size - 1));
}

bool hcomm_stripe_next(const struct hcomm_stripe *s, u32 part, u32 *pos,
		       struct hcomm_stripe_seg *seg)
{
	u32 length;
	u64 off = hcomm_stripe_part(s, part, &length);
	u64 n;

	if (*pos >= length)
		return false;
	seg->local_off = s->local_off + off + *pos;
	seg->remote_off = s->remote_off + off + *pos;
	seg->local_mr = hcomm_geom_mr(&s->local, seg->local_off);
	seg->remote_mr = hcomm_geom_mr(&s->remote, seg->remote_off);
	n = min(to_boundary(&s->local, seg->local_off),
		to_boundary(&s->remote, seg->remote_off));
	seg->length = min_t(u64, n, length - *pos);
	*pos += seg->length;
	return true;
}

u32 hcomm_stripe_segs(const struct hcomm_stripe *s, u32 part)
{
	struct hcomm_stripe_seg seg;
	u32 pos = 0;
	u32 n = 0;

	while (hcomm_stripe_next(s, part, &pos, &seg))
		n++;
	return n;
}

u32 hcomm_stripe_segs_max(u32 stripe, u8 local_shift, u8 remote_shift)
{
	/* each side's boundaries inside a part, plus the part's own end */
	return ((stripe - 1) >> local_shift) + 1 +
	       ((stripe - 1) >> remote_shift) + 1 + 1;
}
