/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The broker hands heap files from one local member of a group to another.
 * It never reads or trusts what is in them.
 */
#ifndef HCOMM_BROKER_H
#define HCOMM_BROKER_H

#include "../uapi/hcomm.h"

struct file;
struct hcomm_member;

int hcomm_broker_offer(struct hcomm_member *member,
		       const struct hcomm_heap_offer *arg);
/* On success a referenced file, which the caller installs; sets arg->size. */
struct file *hcomm_broker_take(struct hcomm_member *member,
			       struct hcomm_heap_take *arg);
/* Drops what the member offered. */
void hcomm_broker_forget(struct hcomm_member *member);

#endif
