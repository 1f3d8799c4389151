/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages from one rank to another, in order, at most HCOMM_MAIL_SLOTS of
 * them not yet taken. Each rank has landing slots for every source; the
 * sender stores into them inside an instance and puts into them otherwise.
 */
#ifndef HCOMM_MAIL_H
#define HCOMM_MAIL_H

#include "exec/wait.h"
#include "memory/layout.h"

struct hcommComm;

/* Blocked until @peer has a free landing slot. */
enum hcomm_run hcomm_mail_room(struct hcommComm *comm, int peer,
			       struct hcomm_cond *cond);
/*
 * Where to write a message for @peer's instance: its landing slot, or a slot
 * of mine that the device reads (*@out, else -1). Blocked until there is one.
 * Room was checked.
 */
enum hcomm_run hcomm_mail_open(struct hcommComm *comm, int peer, int *out,
			       struct hcomm_mail_head **head,
			       struct hcomm_cond *cond);
/* Sends what was written. One out slot may be sent to several peers. */
hcommResult_t hcomm_mail_send(struct hcommComm *comm, int peer, int out,
			      const struct hcomm_mail_head *head);

/* The oldest message of @peer; it stays until it is taken. */
enum hcomm_run hcomm_mail_look(struct hcommComm *comm, int peer,
			       const struct hcomm_mail_head **head,
			       struct hcomm_cond *cond);
hcommResult_t hcomm_mail_take(struct hcommComm *comm, int peer);

static inline void *hcomm_mail_payload(const struct hcomm_mail_head *head)
{
	return (void *)(head + 1);
}

#endif
