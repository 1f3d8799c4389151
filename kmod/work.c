// SPDX-License-Identifier: GPL-2.0
/*
 * Work queues of the module: made before anything that queues, destroyed after
 * the last instance. All are unbound: whoever calls may sit on a CPU that
 * spins for the very result.
 */
#include <linux/errno.h>

#include "work.h"

struct workqueue_struct *hcomm_progress_wq;
struct workqueue_struct *hcomm_register_wq;
struct workqueue_struct *hcomm_copy_wq;
struct workqueue_struct *hcomm_teardown_wq;

int hcomm_work_init(void)
{
	hcomm_progress_wq = alloc_workqueue("hcomm_progress",
					    WQ_UNBOUND | WQ_HIGHPRI, 0);
	if (!hcomm_progress_wq)
		return -ENOMEM;
	hcomm_register_wq = alloc_workqueue("hcomm_register", WQ_UNBOUND, 0);
	if (!hcomm_register_wq)
		goto err_progress;
	hcomm_copy_wq = alloc_workqueue("hcomm_copy", WQ_UNBOUND, 0);
	if (!hcomm_copy_wq)
		goto err_register;
	hcomm_teardown_wq = alloc_workqueue("hcomm_teardown", WQ_UNBOUND, 0);
	if (!hcomm_teardown_wq)
		goto err_copy;
	return 0;

err_copy:
	destroy_workqueue(hcomm_copy_wq);
err_register:
	destroy_workqueue(hcomm_register_wq);
err_progress:
	destroy_workqueue(hcomm_progress_wq);
	return -ENOMEM;
}

void hcomm_work_exit(void)
{
	/* By now the first three queue nothing but teardown, which queues none. */
	destroy_workqueue(hcomm_register_wq);
	destroy_workqueue(hcomm_copy_wq);
	destroy_workqueue(hcomm_progress_wq);
	destroy_workqueue(hcomm_teardown_wq);
}
