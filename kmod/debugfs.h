/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What exists, for observers and for tests that prove nothing is left:
 * /sys/kernel/debug/hcomm/hcommN/{groups,members,windows,objects}.
 */
#ifndef HCOMM_DEBUGFS_H
#define HCOMM_DEBUGFS_H

#include <linux/fs.h>

struct hcomm_instance;

void hcomm_debugfs_init(void);
void hcomm_debugfs_exit(void);

/* Makes instance->debugfs; before the instance can have groups. */
void hcomm_debugfs_create(struct hcomm_instance *instance);
/* Waits for readers. Before anything they may look at is freed. */
void hcomm_debugfs_destroy(struct hcomm_instance *instance);

/*
 * One more file there (the transport's flows, sessions): a seq_file made with
 * DEFINE_SHOW_ATTRIBUTE(), whose private data is @instance. debugfs_remove()
 * it before what it shows goes away.
 */
struct dentry *hcomm_debugfs_add(struct hcomm_instance *instance,
				 const char *name,
				 const struct file_operations *fops);

#endif
