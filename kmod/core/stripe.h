/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Cutting an op into parts and a part into WRITEs
 *
 * An op of L bytes is cut at multiples of the stripe (at most 256 KiB) into at
 * most 64 parts, which may take different paths.  A part is cut into segments
 * that cross no MR boundary on either side; each is one WRITE.  Memory on both
 * sides is described by a geometry: MRs of 1 << mr_shift bytes, the first one
 * beginning base_off bytes before offset 0.  Pure functions, no lock.
 */
#ifndef HCOMM_CORE_STRIPE_H
#define HCOMM_CORE_STRIPE_H

#include "shim.h"
#include "wire.h"

#define HCOMM_STRIPE_MAX	(256u << 10)
#define HCOMM_STRIPE_MIN	(4u << 10)

struct hcomm_geom {
	u64 length;		/* bytes */
	u32 base_off;		/* < 1 << mr_shift */
	u8 mr_shift;		/* HCOMM_WIRE_MR_SHIFT_MIN.._MAX */
};

/* The MR that holds byte @offset. */
static inline u64 hcomm_geom_mr(const struct hcomm_geom *g, u64 offset)
{
	return (offset + g->base_off) >> g->mr_shift;
}

/* False for a geometry that breaks the limits above or overflows. */
bool hcomm_geom_valid(const struct hcomm_geom *g);

/*
 * The MRs that hold [@offset, @offset + @length): first and count.  -ERANGE
 * outside the geometry or for no bytes.
 */
int hcomm_geom_span(const struct hcomm_geom *g, u64 offset, u64 length,
		    u64 *first, u64 *count);

struct hcomm_stripe {
	struct hcomm_geom local;
	struct hcomm_geom remote;
	u64 local_off;
	u64 remote_off;
	u64 length;
	u32 stripe;
	u32 parts;
};

/* The largest op that one call of hcomm_stripe_init() takes. */
static inline u64 hcomm_stripe_length_max(u32 stripe)
{
	return (u64)stripe * HCOMM_WIRE_PARTS;
}

/*
 * A stripe for @length bytes over @paths paths: as many parts as there are
 * paths, page-multiple, never below 64 KiB nor above HCOMM_STRIPE_MAX.
 */
u32 hcomm_stripe_choose(u64 length, unsigned int paths);

/*
 * Checks and prepares.  @stripe: HCOMM_STRIPE_MIN..MAX, multiple of MIN.
 * -ERANGE: outside either geometry.  -EINVAL: bad geometry or stripe, no bytes.
 * -E2BIG: more than 64 parts; split the op at hcomm_stripe_length_max().
 */
int hcomm_stripe_init(struct hcomm_stripe *s, const struct hcomm_geom *local,
		      u64 local_off, const struct hcomm_geom *remote,
		      u64 remote_off, u64 length, u32 stripe);

/* One WRITE. */
struct hcomm_stripe_seg {
	u64 local_off;		/* in the local object */
	u64 remote_off;		/* in the remote window */
	u64 local_mr;
	u64 remote_mr;
	u32 length;		/* 0: no more */
};

/* Offset in the op and length of part @part. */
u64 hcomm_stripe_part(const struct hcomm_stripe *s, u32 part, u32 *length);

/*
 * Segments of @part one by one: start with *@pos 0, each call fills @seg and
 * moves *@pos; false when the part is finished.
 */
bool hcomm_stripe_next(const struct hcomm_stripe *s, u32 part, u32 *pos,
		       struct hcomm_stripe_seg *seg);

/* How many segments @part has. */
u32 hcomm_stripe_segs(const struct hcomm_stripe *s, u32 part);

/*
 * No part of this stripe has more segments, whatever the offsets: sizes the
 * send queue (plus one for the header).
 */
u32 hcomm_stripe_segs_max(u32 stripe, u8 local_shift, u8 remote_shift);

#endif /* HCOMM_CORE_STRIPE_H */
