/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ops whose target is on the same instance: memory copies and signals, in
 * submission order per (source, destination). Small ones at the head of an
 * idle queue run in the caller, the others in a work item.
 */
#ifndef HCOMM_COPY_H
#define HCOMM_COPY_H

#include <linux/types.h>

struct hcomm_member;
struct hcomm_op;

void hcomm_copy_init(void);

int hcomm_copier_init(struct hcomm_member *member);
/* With the member's last reference: nothing is queued any more. */
void hcomm_copier_free(struct hcomm_member *member);

/*
 * Queues @op, whose rank is @target (referenced for the call), and runs it if
 * it is small and its turn. No lock held, any context.
 */
void hcomm_copy_submit(struct hcomm_op *op, struct hcomm_member *target);
/* The same, but it runs in a work item. Beneath the endpoint's lock. */
void hcomm_copy_defer(struct hcomm_op *op, struct hcomm_member *target);
/* Takes the op back if it has not started: true, the caller completes it. */
bool hcomm_copy_retract(struct hcomm_op *op);

#endif
