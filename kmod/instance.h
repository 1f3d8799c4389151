/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An instance is one endpoint of the fabric: /dev/hcommN, the groups that
 * have members on it, the processes that use it, the sessions to its peers.
 * Instances are made at module load and outlive every file, member, session.
 */
#ifndef HCOMM_INSTANCE_H
#define HCOMM_INSTANCE_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/xarray.h>

#include "../uapi/hcomm.h"

struct hcomm_fabric;

struct hcomm_instance {
	unsigned int nr;
	u8 id[HCOMM_ID_BYTES];
	struct device dev;
	struct cdev cdev;
	struct dentry *debugfs;

	struct mutex groups_lock;	/* groups; taken before any group's lock */
	struct list_head groups;
	struct xarray group_handles;	/* u32 on the wire -> group, IRQ-safe */
	u32 next_handle;		/* groups_lock */

	struct mutex procs_lock;	/* procs */
	struct list_head procs;

	struct hcomm_fabric *fabric;	/* ports, listener, sessions: session.c */

	atomic_t live;			/* groups and procs that point here */
};

extern unsigned int hcomm_base_port;	/* of instance 0, see main.c */

int hcomm_instances_create(unsigned int count);
void hcomm_instances_destroy(void);

/* NULL beyond the last one. */
struct hcomm_instance *hcomm_instance_get(unsigned int nr);
unsigned int hcomm_instance_count(void);

/* A group or a proc begins and ends to point to the instance. Any context. */
void hcomm_instance_hold(struct hcomm_instance *instance);
void hcomm_instance_drop(struct hcomm_instance *instance);

static inline struct hcomm_instance *hcomm_instance_of(struct device *dev)
{
	return container_of(dev, struct hcomm_instance, dev);
}

#endif
