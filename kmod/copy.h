/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ops whose target is on the same instance: memory copies and signals, in
 * submission order per (source, destination). Small ones at the head of an
 * idle queue run in the caller, the others in a work item.
 */
#ifndef HCOMM_COPY_H
#define HCOMM_COPY_H

struct hcomm_member;
struct hcomm_op;

int hcomm_copier_init(struct hcomm_member *member);
void hcomm_copier_free(struct hcomm_member *member);

/* Takes over @op, whose rank is @target (referenced for the call). */
void hcomm_copy_submit(struct hcomm_op *op, struct hcomm_member *target);
/* Takes back what has not started; each is completed with @result. */
void hcomm_copy_cancel(struct hcomm_member *member, int result);

#endif
