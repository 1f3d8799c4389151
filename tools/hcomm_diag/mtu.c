// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The MTU that RDMA uses on a port: verbs tell it where hcomm does not. */
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "links.h"

static void query(struct diag_links *links, struct ibv_device *device)
{
	const char *name = ibv_get_device_name(device);
	struct ibv_context *context = ibv_open_device(device);

	if (!context)
		return;
	for (size_t i = 0; i < links->nports; i++) {
		struct diag_port *port = &links->ports[i];
		struct ibv_port_attr attr;

		if (!port->rdma_mtu && !strcmp(port->device, name) &&
		    !ibv_query_port(context, port->number, &attr))
			port->rdma_mtu = 128U << attr.active_mtu;
	}
	ibv_close_device(context);
}

void diag_mtus_get(struct diag_links *links)
{
	struct ibv_device **devices;
	int count;

	/* A warning of a provider about missing rights is no answer of ours. */
	setenv("IBV_SHOW_WARNINGS", "0", 0);
	devices = ibv_get_device_list(&count);
	if (!devices)
		return;
	for (int i = 0; i < count; i++)
		query(links, devices[i]);
	ibv_free_device_list(devices);
}
