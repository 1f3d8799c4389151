/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The few words of the kernel that the core is written in
 *
 * The core (flows, fencing, striping, scheduling, triggers, path states, rings,
 * wire format) is plain C: it never sleeps, allocates nothing, takes no lock
 * and knows neither verbs nor threads.  In the kernel this header is a list of
 * includes; in user space, where the core is simulated, fuzzed and unit-tested,
 * shim_user.h beside the unit tests supplies the same words.
 */
#ifndef HCOMM_CORE_SHIM_H
#define HCOMM_CORE_SHIM_H

#ifdef __KERNEL__

#include <linux/bits.h>
#include <linux/bitops.h>
#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#else

#include "shim_user.h"

#endif /* __KERNEL__ */

/* Paths between two instances; path ids are 0..HCOMM_PATHS - 1. */
#define HCOMM_PATHS	16

/* @n low bits set; n is 1..64 */
static inline u64 hcomm_mask(unsigned int n)
{
	return n >= 64 ? U64_MAX : BIT_ULL(n) - 1;
}

/* True when [@offset, @offset + @length) lies inside [0, @limit). */
static inline bool hcomm_in_range(u64 offset, u64 length, u64 limit)
{
	return offset <= limit && length <= limit - offset;
}

#endif /* HCOMM_CORE_SHIM_H */
