// SPDX-License-Identifier: GPL-2.0
/*
 * Module load and unload: what must exist before what, undone in reverse.
 */
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "charge.h"
#include "debugfs.h"
#include "instance.h"
#include "limits.h"
#include "member.h"
#include "op.h"
#include "session.h"
#include "version.h"
#include "work.h"

static unsigned int instances = 1;
module_param(instances, uint, 0444);
MODULE_PARM_DESC(instances, "devices /dev/hcommN to make, 1 to 64 (1)");

unsigned int hcomm_base_port = 18600;
module_param_named(base_port, hcomm_base_port, uint, 0444);
MODULE_PARM_DESC(base_port, "port of the connection manager of hcomm0, the others follow (18600)");

static int __init hcomm_init(void)
{
	int ret;

	if (!instances || instances > HCOMM_MAX_INSTANCES ||
	    !hcomm_base_port || hcomm_base_port + instances - 1 > U16_MAX)
		return -EINVAL;

	ret = hcomm_work_init();
	if (ret)
		return ret;
	ret = hcomm_ops_init();
	if (ret)
		goto err_work;
	ret = hcomm_cgroup_register();
	if (ret)
		goto err_ops;
	ret = hcomm_transport_init();
	if (ret)
		goto err_cgroup;
	hcomm_debugfs_init();
	ret = hcomm_instances_create(instances);
	if (ret)
		goto err_debugfs;
	return 0;

err_debugfs:
	hcomm_debugfs_exit();
	hcomm_transport_exit();
err_cgroup:
	hcomm_cgroup_unregister();
err_ops:
	hcomm_ops_exit();
err_work:
	hcomm_work_exit();
	return ret;
}

static void __exit hcomm_exit(void)
{
	hcomm_instances_destroy();
	hcomm_debugfs_exit();
	hcomm_transport_exit();
	hcomm_work_exit();
	rcu_barrier();
	hcomm_cgroup_unregister();
	hcomm_ops_exit();
}

module_init(hcomm_init);
module_exit(hcomm_exit);

MODULE_DESCRIPTION("Communication of groups of processes over shared memory and RDMA");
MODULE_LICENSE("GPL");
MODULE_VERSION(HCOMM_VERSION);
