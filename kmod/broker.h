/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The broker hands heap files from one local member of a group to another.
 * It never reads or trusts what is in them.
 */
#ifndef HCOMM_BROKER_H
#define HCOMM_BROKER_H

#include "../uapi/hcomm.h"

struct hcomm_member;

int hcomm_broker_offer(struct hcomm_member *member,
		       const struct hcomm_heap_offer *arg);
/* On success arg->fd is installed in the caller. */
int hcomm_broker_take(struct hcomm_member *member, struct hcomm_heap_take *arg,
		      struct hcomm_heap_take __user *uarg);
/* Drops what the member offered. */
void hcomm_broker_forget(struct hcomm_member *member);

#endif
