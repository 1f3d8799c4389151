/* SPDX-License-Identifier: GPL-2.0 */
/* What an observer may read below debugfs/hcomm/hcommN; never needed. */
#ifndef HCOMM_DEBUGFS_H
#define HCOMM_DEBUGFS_H

struct hcomm_instance;

void hcomm_debugfs_init(void);
void hcomm_debugfs_exit(void);
/* Sets instance->debugfs. */
void hcomm_debugfs_create(struct hcomm_instance *instance);
void hcomm_debugfs_destroy(struct hcomm_instance *instance);

#endif
