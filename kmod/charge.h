/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a user may consume: pinned pages against RLIMIT_MEMLOCK (mm->pinned_vm
 * as the RDMA core does), pins that outlive their process against a per-uid
 * count that new pins are tested with, and the rdma cgroup (a membership is
 * an HCA handle, a window an HCA object).
 */
#ifndef HCOMM_CHARGE_H
#define HCOMM_CHARGE_H

#include <linux/types.h>

struct hcomm_instance;
struct hcomm_proc;
struct rdma_cgroup;

int hcomm_charge_pages(struct hcomm_proc *proc, unsigned long nr_pages,
		       u64 *limit, u64 *used);
void hcomm_uncharge_pages(struct hcomm_proc *proc, unsigned long nr_pages);
/* The process died with pages still reachable: count them against its uid. */
void hcomm_charge_orphaned(struct hcomm_proc *proc, unsigned long nr_pages);
void hcomm_uncharge_orphaned(struct hcomm_proc *proc, unsigned long nr_pages);

enum hcomm_charge_kind {
	HCOMM_CHARGE_MEMBER,
	HCOMM_CHARGE_WINDOW,
};

int hcomm_cgroup_register(void);
void hcomm_cgroup_unregister(void);
int hcomm_cgroup_charge(enum hcomm_charge_kind kind, struct rdma_cgroup **cg);
void hcomm_cgroup_uncharge(enum hcomm_charge_kind kind, struct rdma_cgroup *cg);

#endif
