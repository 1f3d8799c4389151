// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Collects, and judges what was collected. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "links.h"
#include "nldev.h"

static const char *name_of(const char *const *names, size_t count,
			   uint8_t value)
{
	return value < count && names[value] ? names[value] : "unknown";
}

const char *diag_state_name(uint8_t state)
{
	static const char *const names[] = {
		"none", "down", "init", "armed", "active", "deferred",
	};

	return name_of(names, sizeof(names) / sizeof(*names), state);
}

const char *diag_physical_name(uint8_t physical)
{
	static const char *const names[] = {
		"none", "sleep", "polling", "disabled", "training", "link-up",
		"recovery", "test",
	};

	return name_of(names, sizeof(names) / sizeof(*names), physical);
}

static const char *cause_of(const struct diag_port *port)
{
	if (!port->netdev_index)
		return "no network device, or no link";
	if (!port->netdev_up)
		return "its network device is down";
	if (!port->netdev_carrier)
		return "its network device has no carrier";
	return "the link is not up";
}

/* IP, UDP, transport headers and checksum around the data of a RoCE packet. */
#define ROCE_HEADERS	60

static void judge_port(struct diag_port *port)
{
	if (port->state != NLDEV_PORT_ACTIVE)
		snprintf(port->trouble, sizeof(port->trouble), "port is %s: %s",
			 diag_state_name(port->state), cause_of(port));
	else if (!strcmp(port->protocol, "roce") && port->rdma_mtu &&
		 port->netdev_mtu &&
		 port->rdma_mtu + ROCE_HEADERS > port->netdev_mtu)
		snprintf(port->trouble, sizeof(port->trouble),
			 "RDMA packets of %u do not fit the network device's MTU %u",
			 port->rdma_mtu, port->netdev_mtu);
}

/* A path that is on its way up for the first time is not in trouble. */
static void judge_path(struct diag_path *path)
{
	static const char *const beginning[] = {
		"up", "new", "connecting", "fencing",
	};
	size_t fine = *path->last_error ? 1 : 4;

	for (size_t i = 0; i < fine; i++)
		if (!strcmp(path->state, beginning[i]))
			return;
	snprintf(path->trouble, sizeof(path->trouble), "path is %s",
		 path->state);
}

const char *diag_path_loss(const struct diag_path *path)
{
	if (!strcmp(path->state, "up") && !path->reconnects)
		return "";
	return path->last_error;
}

static bool is_over(const struct diag_path *path, const struct diag_port *port)
{
	char name[80];

	snprintf(name, sizeof(name), "%s/%u", port->device, port->number);
	return !strcmp(path->port, name) ||
	       (!*path->port && *path->local &&
		!strcmp(path->local, port->address));
}

static void hand_down_error(struct diag_links *links,
			    const struct diag_path *path)
{
	const char *loss = diag_path_loss(path);

	for (size_t i = 0; *loss && i < links->nports; i++) {
		struct diag_port *port = &links->ports[i];

		if (is_over(path, port))
			memcpy(port->last_error, path->last_error,
			       sizeof(port->last_error));
	}
}

void diag_links_judge(struct diag_links *links)
{
	for (size_t i = 0; i < links->nports; i++)
		judge_port(&links->ports[i]);
	for (size_t i = 0; i < links->npaths; i++) {
		judge_path(&links->paths[i]);
		hand_down_error(links, &links->paths[i]);
	}
}

int diag_links_get(struct diag_links *links, const char **what)
{
	int error;

	*links = (struct diag_links){};
	*what = "RDMA netlink";
	error = diag_ports_get(links);
	if (!error) {
		*what = "route netlink";
		error = diag_netdevs_get(links);
	}
	if (!error) {
		*what = "/sys/class/hcomm";
		error = diag_hcomm_get(links);
	}
	if (error) {
		diag_links_put(links);
		return error;
	}
	diag_mtus_get(links);
	diag_links_judge(links);
	return 0;
}

void diag_links_put(struct diag_links *links)
{
	free(links->ports);
	free(links->paths);
	*links = (struct diag_links){};
}

size_t diag_links_failed(const struct diag_links *links)
{
	size_t failed = 0;

	for (size_t i = 0; i < links->nports; i++)
		failed += *links->ports[i].trouble != '\0';
	for (size_t i = 0; i < links->npaths; i++)
		failed += *links->paths[i].trouble != '\0';
	return failed;
}
