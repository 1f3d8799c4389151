// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Ports: which there are, their state and counters, speed and GID types. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "links.h"
#include "nldev.h"

/*
 * What drivers call a packet, segment or message that had to be sent again:
 * rxe, mlx4/mlx5 (three reasons), bnxt_re, irdma, efa.
 */
static const char *const retransmission_counters[] = {
	"completer_retry_err",
	"local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err",
	"to_retransmits",
	"tcpRetransSegs", "RetransSegs",
	"retrans_pkts",
};

static void take_counter(const char *name, uint64_t value, void *argument)
{
	size_t n = sizeof(retransmission_counters) /
		   sizeof(*retransmission_counters);
	struct diag_port *port = argument;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(name, retransmission_counters[i]))
			continue;
		port->has_retransmissions = true;
		port->retransmissions += value;
	}
}

static void read_speed(struct diag_port *port)
{
	char text[64];

	if (read_file(text, sizeof(text), "/sys/class/infiniband/%s/ports/%u/rate",
		      port->device, port->number))
		port->speed_gbps = strtod(text, NULL);
}

static void add_type(struct diag_port *port, const char *type)
{
	size_t at = strlen(port->gid_types);

	if (!strstr(port->gid_types, type))
		snprintf(port->gid_types + at, sizeof(port->gid_types) - at,
			 "%s%s", at ? ", " : "", type);
}

/* One file per entry of the GID table; empty entries cannot be read. */
static void read_gid_types(struct diag_port *port)
{
	char path[192], type[32];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/%u/gid_attrs/types",
		 port->device, port->number);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    read_file(type, sizeof(type), "%s/%s", path, entry->d_name))
			add_type(port, type);
	closedir(dir);
}

static struct diag_port *add_port(struct diag_links *links,
				  const struct nldev_device *device,
				  const struct nldev_port *from)
{
	struct diag_port *more, *port;

	more = reallocarray(links->ports, links->nports + 1, sizeof(*more));
	if (!more)
		return NULL;
	links->ports = more;
	port = &more[links->nports++];
	*port = (struct diag_port){
		.number = from->number,
		.software = device->software,
		.state = from->state,
		.physical = from->physical,
		.netdev_index = from->netdev_index,
	};
	memcpy(port->device, device->name, sizeof(port->device));
	memcpy(port->protocol, device->protocol, sizeof(port->protocol));
	memcpy(port->netdev, from->netdev, sizeof(port->netdev));
	return port;
}

static int get_device(struct diag_links *links, struct nldev *nldev,
		      const struct nldev_device *device)
{
	struct nldev_port *ports;
	size_t count;
	int error = nldev_ports(nldev, device, &ports, &count);

	/* It was removed meanwhile. */
	if (error == -EINVAL || error == -ENODEV)
		return 0;
	if (error)
		return error;
	for (size_t i = 0; i < count && !error; i++) {
		struct diag_port *port = add_port(links, device, &ports[i]);

		if (!port) {
			error = -ENOMEM;
			break;
		}
		/* Not every driver counts: then there is nothing to show. */
		nldev_counters(nldev, device, port->number, take_counter, port);
		read_speed(port);
		read_gid_types(port);
	}
	free(ports);
	return error;
}

int diag_ports_get(struct diag_links *links)
{
	struct nldev_device *devices;
	struct nldev *nldev;
	size_t count;
	int error;

	error = nldev_open(&nldev);
	if (error)
		return error;
	error = nldev_devices(nldev, &devices, &count);
	if (error) {
		nldev_close(nldev);
		return error;
	}
	for (size_t i = 0; i < count && !error; i++)
		error = get_device(links, nldev, &devices[i]);
	free(devices);
	nldev_close(nldev);
	return error;
}
