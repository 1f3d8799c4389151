/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The module's work queues. Progress keeps sessions alive and ends ops; copy
 * moves data within an instance for as long as processes ask for it, so it
 * shares nothing with the first; register makes registrations, which complete in
 * their turn on a queue pair; teardown makes and ends connections, seeks peers,
 * frees what is no longer referenced and may sleep for long. None runs an item
 * that waits for a message of a peer: two instances of one kernel share them.
 */
#ifndef HCOMM_WORK_H
#define HCOMM_WORK_H

#include <linux/workqueue.h>

extern struct workqueue_struct *hcomm_progress_wq;
extern struct workqueue_struct *hcomm_register_wq;
extern struct workqueue_struct *hcomm_copy_wq;
extern struct workqueue_struct *hcomm_teardown_wq;

int hcomm_work_init(void);
/* Runs what is queued, and what that queues, to its end. */
void hcomm_work_exit(void);

#endif
