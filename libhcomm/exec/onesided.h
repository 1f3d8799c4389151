/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Puts, gets and signals: stores inside an instance, the device otherwise. */
#ifndef HCOMM_ONESIDED_H
#define HCOMM_ONESIDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hcomm.h"

struct hcommComm;

struct hcomm_access {
	int peer;
	uint32_t window;	/* 0: the heap */
	uint64_t offset;
	size_t bytes;		/* inside the peer's window: checked before */
	bool signal;
	uint32_t sem;
	uint32_t delta;
};

hcommResult_t hcomm_onesided_put(struct hcommComm *comm, const void *src,
				 const struct hcomm_access *access);
hcommResult_t hcomm_onesided_get(struct hcommComm *comm, void *dst,
				 const struct hcomm_access *access);
hcommResult_t hcomm_onesided_wait(struct hcommComm *comm, uint32_t sem,
				  uint64_t value);
/* Waits for the ends of all that was posted to @peer; tells what failed. */
hcommResult_t hcomm_onesided_finish(struct hcommComm *comm, int peer);

/* From the transport: an operation to @rank has ended. */
void hcomm_onesided_end(struct hcommComm *comm, int rank, int result);

#endif
