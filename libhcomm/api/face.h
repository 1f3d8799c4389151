/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every public function does first and last. */
#ifndef HCOMM_FACE_H
#define HCOMM_FACE_H

#include <stdbool.h>

#include "exec/comm.h"
#include "hcomm.h"

/* Text of an error without a group, for hcommCommGetLastError(NULL). */
hcommResult_t hcomm_face_error(hcommResult_t result, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* HCOMM_INVALID_USAGE in a child of a process that used the library. */
hcommResult_t hcomm_face_process(void);

/*
 * Becomes the thread that uses @comm. Refuses a stream, a forked child, a
 * second thread, a failed group. After success leave() ends the call.
 */
hcommResult_t hcomm_face_enter(hcommComm_t comm, hcommStream_t stream);
hcommResult_t hcomm_face_leave(hcommComm_t comm, hcommResult_t result);

/*
 * Ends a call whose arguments were refused: the thread's text, prefixed with
 * the rank, becomes the group's too.
 */
hcommResult_t hcomm_face_refused(hcommComm_t comm, hcommResult_t result);

/*
 * A call without data movement on a group that may have failed. Refuses a
 * forked child and a group that is destroyed.
 */
hcommResult_t hcomm_face_check(hcommComm_t comm);
/* The error for a handle that is none, or none any more. */
hcommResult_t hcomm_face_gone(void);

/* Inside hcommGroupStart()? Then the call is noted instead of run. */
struct hcomm_coll;
struct hcomm_p2p;
bool hcomm_group_open(void);
hcommResult_t hcomm_group_note_coll(hcommComm_t comm,
				    const struct hcomm_coll *coll);
hcommResult_t hcomm_group_note_p2p(hcommComm_t comm,
				   const struct hcomm_p2p *p2p);
/* A call was refused: the outermost End returns this. */
void hcomm_group_spoil(hcommResult_t result);

#endif
