// SPDX-License-Identifier: GPL-2.0
/*
 * Work queues of the module: made before anything that queues, destroyed after
 * the last instance. Both are unbound: whoever calls may sit on a CPU that
 * spins for the very result.
 */
#include <linux/errno.h>

#include "work.h"

struct workqueue_struct *hcomm_progress_wq;
struct workqueue_struct *hcomm_teardown_wq;

int hcomm_work_init(void)
{
	hcomm_progress_wq = alloc_workqueue("hcomm_progress",
					    WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!hcomm_progress_wq)
		return -ENOMEM;
	hcomm_teardown_wq = alloc_workqueue("hcomm_teardown", WQ_UNBOUND, 0);
	if (!hcomm_teardown_wq) {
		destroy_workqueue(hcomm_progress_wq);
		return -ENOMEM;
	}
	return 0;
}

void hcomm_work_exit(void)
{
	/* Progress may queue teardown, never the other way round. */
	destroy_workqueue(hcomm_progress_wq);
	destroy_workqueue(hcomm_teardown_wq);
}
