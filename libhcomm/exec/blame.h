/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Whom a long wait is due to. A rank that is late only because it waits for
 * another one is not the culprit, so ranks say whom they wait for: to those of
 * their instance in their control block, to the others by a hint.
 */
#ifndef HCOMM_BLAME_H
#define HCOMM_BLAME_H

struct hcommComm;

/* I begin to sleep until @rank comes (-1: nobody in particular), or am done. */
void hcomm_blame_sleep(struct hcommComm *comm, int rank);
void hcomm_blame_awake(struct hcommComm *comm);

/* The same for ranks of other instances, who hear of it a moment later. */
void hcomm_blame_tell(struct hcommComm *comm, int rank);

/* Whom @rank waits for in the end, as far as is known here; -1 stays -1. */
int hcomm_blame_find(struct hcommComm *comm, int rank);

#endif
