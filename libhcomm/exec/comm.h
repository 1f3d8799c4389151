/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A group in this process. One thread uses it at a time (@user); what other
 * threads may touch is marked. Everything is made by hcomm_comm_create() and
 * freed by hcomm_comm_free(); nothing outlives it.
 */
#ifndef HCOMM_COMM_H
#define HCOMM_COMM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bootstrap/boot.h"
#include "config/config.h"
#include "exec/transport.h"
#include "hcomm.h"
#include "memory/heapmap.h"
#include "memory/layout.h"
#include "memory/symheap.h"
#include "reduce/reduce.h"
#include "schedule/shape.h"

#define HCOMM_USER_SEMAPHORES	32
#define HCOMM_ERROR_TEXT	512

/* How long a wait spins and yields before it sleeps. */
struct hcomm_budget {
	uint64_t spin_ns;
	uint64_t yield_ns;
};

struct hcomm_rank_state {
	int rank;
	bool local;			/* on my instance: its heap is mapped */
	bool left;			/* it destroyed the group */
	pid_t pid;
	char *heap;			/* NULL unless local */
	struct hcomm_ctrl *ctrl;
	/* Messages to and from it, see mail.c. */
	uint64_t mail_sent;
	uint64_t mail_taken;
	uint64_t mail_credited;
	uint64_t sends;			/* hcommSend() calls to it */
	uint64_t recvs;
	uint64_t ops_posted;		/* to its kernel, one-sided */
	uint64_t ops_ended;
	int op_error;			/* first that failed, told once */
};

/* An out slot: a message that the device is reading. */
struct hcomm_out {
	unsigned int pending;
};

/* The call in progress, for messages. */
struct hcomm_call {
	const char *name;
	uint64_t op;
	size_t count;
	hcommDataType_t type;
	int redop;			/* -1 if none */
	int root;			/* or peer; -1 if none */
};

struct hcomm_attached;

struct hcommComm {
	int rank;
	int n;
	bool authenticated;
	bool same_va;
	uint8_t group_id[HCOMM_BOOT_ID];
	uint8_t secret[HCOMM_BOOT_SECRET];
	struct hcomm_settings settings;
	struct hcomm_record *table;
	struct hcomm_shape shape;
	int inst;			/* mine */
	int nlocal;
	const int *locals;		/* ranks of my instance, ascending */
	struct hcomm_budget budget;

	struct hcomm_layout layout;
	struct hcomm_reserve reserve;
	int heap_fd;
	char *heap;
	struct hcomm_ctrl *ctrl;	/* mine */
	struct hcomm_symheap symheap;
	struct hcomm_rank_state *ranks;
	void *scratch;
	const void **srcs;		/* n + 1 each, for one reduction */
	void **dsts;

	const struct hcomm_transport *transport;
	void *wire;			/* the transport's own state */
	struct hcomm_out out[HCOMM_OUT_SLOTS];
	uint64_t completions;		/* of the device, counted by its poll */

	uint64_t op;			/* last collective started */
	uint32_t history;		/* hash of the collectives so far */
	uint64_t synced;		/* last one that every local rank was seen in */
	uint64_t chunks;		/* flag value before the next collective */
	struct hcomm_call call;
	uint32_t next_window;
	struct hcomm_attached *attached;	/* windows, api/window.c */

	bool leaving;			/* failures are not told any more */
	int user;			/* atomic: a thread is inside */
	int noted;			/* atomic: calls that wait for GroupEnd */
	struct hcommComm *next;		/* api/registry.c */
	int failed;			/* atomic: hcommResult_t, 0 while alive */
	pthread_mutex_t text_lock;
	char text[HCOMM_ERROR_TEXT];	/* text_lock; of the last error */
};

/* On error the text is in @why. */
hcommResult_t hcomm_comm_create(struct hcommComm **comm,
				const struct hcomm_meeting *meeting, int rank,
				int n, const struct hcomm_settings *settings,
				char *why, size_t why_bytes);
void hcomm_comm_free(struct hcommComm *comm);

/*
 * Ends the group: the first failure stays. @rank is the culprit or -1. The
 * text becomes "rank R: OP #N (...): reason". Tells the other ranks unless
 * @told. Any thread. Returns the result that the group ended with.
 */
hcommResult_t hcomm_comm_fail(struct hcommComm *comm, hcommResult_t result,
			      int rank, bool told, const char *fmt, ...)
	__attribute__((format(printf, 5, 6)));

/* The caller's wish to end it: needs nothing of the call in progress. */
void hcomm_comm_abort(struct hcommComm *comm);

/* The text of the last error; that of a group's end stays. Any thread. */
void hcomm_comm_set_text(struct hcommComm *comm, const char *text);

/* Text of an error that does not end the group. Returns @result. */
hcommResult_t hcomm_comm_error(struct hcommComm *comm, hcommResult_t result,
			       const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static inline hcommResult_t hcomm_comm_failed(const struct hcommComm *comm)
{
	return (hcommResult_t)__atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE);
}

static inline struct hcomm_rank_state *hcomm_rank(struct hcommComm *comm,
						  int rank)
{
	return &comm->ranks[rank];
}

#endif
