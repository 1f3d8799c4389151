/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Ranks that made different calls: found by signature, told with both sides. */
#ifndef HCOMM_MISMATCH_H
#define HCOMM_MISMATCH_H

#include <stdint.h>

#include "hcomm.h"
#include "memory/layout.h"

struct hcommComm;

extern const char *const hcomm_coll_names[];

/*
 * A hash of a call and of all before it. Ranks that take different calls for
 * the same operation may not meet in it, as where each is the root of a small
 * broadcast: then the next operation in which they meet tells.
 */
uint32_t hcomm_history(const struct hcommComm *comm,
		       const struct hcomm_desc *desc);
/* What all ranks must agree on; @history is hcomm_history() of @desc. */
uint32_t hcomm_signature(uint32_t history, const struct hcomm_desc *desc);

/* Compares my op with those that local ranks published under its number. */
hcommResult_t hcomm_mismatch_search(struct hcommComm *comm);

/* @rank published another signature: fails the group with both calls. */
hcommResult_t hcomm_mismatch_fail(struct hcommComm *comm, int rank);

#endif
