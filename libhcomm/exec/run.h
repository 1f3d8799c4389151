/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Runs an operation in the calling thread until it is done. */
#ifndef HCOMM_RUN_H
#define HCOMM_RUN_H

#include "exec/coll.h"
#include "hcomm.h"

hcommResult_t hcomm_run_coll(struct hcommComm *comm, struct hcomm_coll *coll);
/* A barrier; @kind is BARRIER or DESTROY. */
hcommResult_t hcomm_run_barrier(struct hcommComm *comm,
				enum hcomm_coll_kind kind);
/* Waits until the device has let go of everything, at most the timeout. */
hcommResult_t hcomm_run_drain(struct hcommComm *comm);

#endif
