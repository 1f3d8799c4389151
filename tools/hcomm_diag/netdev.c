// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The network devices beneath ports, asked over route netlink. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include "links.h"

static struct diag_port *next_over(struct diag_links *links,
				   struct diag_port *port, uint32_t index)
{
	for (port = port ? port + 1 : links->ports;
	     port < links->ports + links->nports; port++)
		if (port->netdev_index == index)
			return port;
	return NULL;
}

static int keep(const struct nlattr *attr, void *argument)
{
	const struct nlattr **attrs = argument;
	unsigned int type = mnl_attr_get_type(attr);

	if (type <= IFLA_MAX)
		attrs[type] = attr;
	return MNL_CB_OK;
}

static void take_statistics(struct diag_port *port, const struct nlattr *attr)
{
	struct rtnl_link_stats64 stats = {};
	size_t bytes = mnl_attr_get_payload_len(attr);

	if (bytes > sizeof(stats))
		bytes = sizeof(stats);
	memcpy(&stats, mnl_attr_get_payload(attr), bytes);
	port->has_bytes = true;
	port->rx_bytes = stats.rx_bytes;
	port->tx_bytes = stats.tx_bytes;
}

static void take_link(struct diag_port *port, const struct ifinfomsg *link,
		      const struct nlattr **attrs)
{
	port->netdev_up = link->ifi_flags & IFF_UP;
	port->netdev_carrier = link->ifi_flags & IFF_RUNNING;
	if (attrs[IFLA_MTU] &&
	    mnl_attr_validate(attrs[IFLA_MTU], MNL_TYPE_U32) >= 0)
		port->netdev_mtu = mnl_attr_get_u32(attrs[IFLA_MTU]);
	if (attrs[IFLA_STATS64])
		take_statistics(port, attrs[IFLA_STATS64]);
}

static int take_message(const struct nlmsghdr *message, void *argument)
{
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
	const struct nlattr *attrs[IFLA_MAX + 1] = {};
	struct diag_links *links = argument;
	struct diag_port *port = NULL;

	if (message->nlmsg_type != RTM_NEWLINK ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*link))
		return MNL_CB_OK;
	mnl_attr_parse(message, sizeof(*link), keep, attrs);
	while ((port = next_over(links, port, link->ifi_index)))
		take_link(port, link, attrs);
	return MNL_CB_OK;
}

static int receive(struct mnl_socket *socket, char *buffer, size_t room,
		   struct diag_links *links)
{
	int status = MNL_CB_OK;

	while (status > MNL_CB_STOP) {
		ssize_t bytes = mnl_socket_recvfrom(socket, buffer, room);

		if (bytes < 0)
			return -errno;
		status = mnl_cb_run(buffer, bytes, 1,
				    mnl_socket_get_portid(socket),
				    take_message, links);
	}
	return status < 0 ? -errno : 0;
}

static int dump(struct mnl_socket *socket, struct diag_links *links)
{
	char buffer[32768];
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct ifinfomsg *link;

	message->nlmsg_type = RTM_GETLINK;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	message->nlmsg_seq = 1;
	link = mnl_nlmsg_put_extra_header(message, sizeof(*link));
	link->ifi_family = AF_UNSPEC;
	if (mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    mnl_socket_sendto(socket, message, message->nlmsg_len) < 0)
		return -errno;
	return receive(socket, buffer, sizeof(buffer), links);
}

int diag_netdevs_get(struct diag_links *links)
{
	struct mnl_socket *socket = mnl_socket_open(NETLINK_ROUTE);
	int error;

	if (!socket)
		return -errno;
	error = dump(socket, links);
	mnl_socket_close(socket);
	return error;
}
