/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Arithmetic of reductions: knows no rank, no device, no buffer's owner. */
#ifndef HCOMM_REDUCE_H
#define HCOMM_REDUCE_H

#include <stdbool.h>
#include <stddef.h>

#include "hcomm.h"

#define HCOMM_REDUCE_BLOCK	16384	/* bytes of input taken at a time */
#define HCOMM_REDUCE_SCRATCH	(2 * HCOMM_REDUCE_BLOCK)

/* True if @op is defined on @type. */
bool hcomm_reduce_defined(hcommDataType_t type, hcommRedOp_t op);

/**
 * hcomm_reduce - left fold of @nsrc inputs, stored to @ndst outputs
 *
 * @scratch:	HCOMM_REDUCE_SCRATCH bytes, aligned to 64, of the caller's own
 * @divisor:	divide the result by it, 0 for none
 *
 * An output may be the same memory as an input, or no output at all may
 * overlap any input. Inputs and outputs need no alignment.
 */
void hcomm_reduce(void *scratch, void *const *dst, int ndst,
		  const void *const *src, int nsrc, size_t count,
		  hcommDataType_t type, hcommRedOp_t op, int divisor);

#endif
