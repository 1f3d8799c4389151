// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One socket, one request at a time, answers collected into arrays. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include "nldev.h"

struct nldev {
	struct mnl_socket *socket;
	unsigned int portid;
	uint32_t sequence;
	char buffer[32768];
};

/* What an answer's callback adds to. */
struct array {
	void *items;
	size_t size;			/* of one */
	size_t count;
	size_t room;
};

int nldev_open(struct nldev **nldev)
{
	struct nldev *new = calloc(1, sizeof(*new));

	if (!new)
		return -ENOMEM;
	new->socket = mnl_socket_open(NETLINK_RDMA);
	if (!new->socket || mnl_socket_bind(new->socket, 0,
					    MNL_SOCKET_AUTOPID) < 0) {
		int error = -errno;

		nldev_close(new);
		return error;
	}
	new->portid = mnl_socket_get_portid(new->socket);
	*nldev = new;
	return 0;
}

void nldev_close(struct nldev *nldev)
{
	if (!nldev)
		return;
	if (nldev->socket)
		mnl_socket_close(nldev->socket);
	free(nldev);
}

static struct nlmsghdr *request(struct nldev *nldev, unsigned int command,
				unsigned int flags)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(nldev->buffer);

	message->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command);
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	message->nlmsg_seq = ++nldev->sequence;
	return message;
}

static int exchange(struct nldev *nldev, const struct nlmsghdr *message,
		    mnl_cb_t callback, void *argument)
{
	int status = MNL_CB_OK;

	if (mnl_socket_sendto(nldev->socket, message, message->nlmsg_len) < 0)
		return -errno;
	while (status > MNL_CB_STOP) {
		ssize_t bytes = mnl_socket_recvfrom(nldev->socket,
						    nldev->buffer,
						    sizeof(nldev->buffer));

		if (bytes < 0)
			return -errno;
		status = mnl_cb_run(nldev->buffer, bytes, nldev->sequence,
				    nldev->portid, callback, argument);
	}
	return status < 0 ? -errno : 0;
}

static void *append(struct array *array)
{
	if (array->count == array->room) {
		size_t room = array->room ? 2 * array->room : 8;
		void *more = reallocarray(array->items, room, array->size);

		if (!more) {
			errno = ENOMEM;
			return NULL;
		}
		array->items = more;
		array->room = room;
	}
	return memset((char *)array->items + array->size * array->count++, 0,
		      array->size);
}

static int keep(const struct nlattr *attr, void *argument)
{
	const struct nlattr **attrs = argument;
	unsigned int type = mnl_attr_get_type(attr);

	if (type < RDMA_NLDEV_ATTR_MAX)
		attrs[type] = attr;
	return MNL_CB_OK;
}

/* @type as mnl_attr_validate() has it; NULL unless the attribute is of it. */
static const struct nlattr *valid(const struct nlattr *attr,
				  enum mnl_attr_data_type type)
{
	return attr && mnl_attr_validate(attr, type) >= 0 ? attr : NULL;
}

static uint32_t u32_of(const struct nlattr *attr)
{
	return valid(attr, MNL_TYPE_U32) ? mnl_attr_get_u32(attr) : 0;
}

static uint8_t u8_of(const struct nlattr *attr)
{
	return valid(attr, MNL_TYPE_U8) ? mnl_attr_get_u8(attr) : 0;
}

static void copy_text(char *to, size_t room, const struct nlattr *attr)
{
	if (valid(attr, MNL_TYPE_NUL_STRING))
		snprintf(to, room, "%s", mnl_attr_get_str(attr));
}

/* The driver model puts what has no parent device among the virtual ones. */
static bool is_software(const char *name)
{
	char link[128], path[PATH_MAX];

	snprintf(link, sizeof(link), "/sys/class/infiniband/%s", name);
	return realpath(link, path) &&
	       !strncmp(path, "/sys/devices/virtual/", 21);
}

static int add_device(const struct nlmsghdr *message, void *argument)
{
	const struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX] = {};
	struct nldev_device *device = append(argument);

	if (!device)
		return MNL_CB_ERROR;
	mnl_attr_parse(message, 0, keep, attrs);
	device->index = u32_of(attrs[RDMA_NLDEV_ATTR_DEV_INDEX]);
	device->nports = u32_of(attrs[RDMA_NLDEV_ATTR_PORT_INDEX]);
	copy_text(device->name, sizeof(device->name),
		  attrs[RDMA_NLDEV_ATTR_DEV_NAME]);
	copy_text(device->protocol, sizeof(device->protocol),
		  attrs[RDMA_NLDEV_ATTR_DEV_PROTOCOL]);
	copy_text(device->firmware, sizeof(device->firmware),
		  attrs[RDMA_NLDEV_ATTR_FW_VERSION]);
	device->software = is_software(device->name);
	return MNL_CB_OK;
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(((const struct nldev_device *)a)->name,
			  ((const struct nldev_device *)b)->name);
}

int nldev_devices(struct nldev *nldev, struct nldev_device **devices,
		  size_t *count)
{
	struct array array = { .size = sizeof(**devices) };
	int error = exchange(nldev,
			     request(nldev, RDMA_NLDEV_CMD_GET, NLM_F_DUMP),
			     add_device, &array);

	if (error) {
		free(array.items);
		return error;
	}
	if (array.count)
		qsort(array.items, array.count, array.size, by_name);
	*devices = array.items;
	*count = array.count;
	return 0;
}

static int add_port(const struct nlmsghdr *message, void *argument)
{
	const struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX] = {};
	struct nldev_port *port = append(argument);

	if (!port)
		return MNL_CB_ERROR;
	mnl_attr_parse(message, 0, keep, attrs);
	port->number = u32_of(attrs[RDMA_NLDEV_ATTR_PORT_INDEX]);
	port->state = u8_of(attrs[RDMA_NLDEV_ATTR_PORT_STATE]);
	port->physical = u8_of(attrs[RDMA_NLDEV_ATTR_PORT_PHYS_STATE]);
	port->netdev_index = u32_of(attrs[RDMA_NLDEV_ATTR_NDEV_INDEX]);
	copy_text(port->netdev, sizeof(port->netdev),
		  attrs[RDMA_NLDEV_ATTR_NDEV_NAME]);
	return MNL_CB_OK;
}

int nldev_ports(struct nldev *nldev, const struct nldev_device *device,
		struct nldev_port **ports, size_t *count)
{
	struct array array = { .size = sizeof(**ports) };
	struct nlmsghdr *message = request(nldev, RDMA_NLDEV_CMD_PORT_GET,
					   NLM_F_DUMP);
	int error;

	mnl_attr_put_u32(message, RDMA_NLDEV_ATTR_DEV_INDEX, device->index);
	error = exchange(nldev, message, add_port, &array);
	if (error) {
		free(array.items);
		return error;
	}
	*ports = array.items;
	*count = array.count;
	return 0;
}

struct counters {
	void (*counter)(const char *name, uint64_t value, void *argument);
	void *argument;
};

static int give_counter(const struct nlattr *entry, void *argument)
{
	const struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX] = {};
	const struct nlattr *name, *value;
	struct counters *counters = argument;

	if (mnl_attr_get_type(entry) !=
	    RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY)
		return MNL_CB_OK;
	mnl_attr_parse_nested(entry, keep, attrs);
	name = valid(attrs[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_NAME],
		     MNL_TYPE_NUL_STRING);
	value = valid(attrs[RDMA_NLDEV_ATTR_STAT_HWCOUNTER_ENTRY_VALUE],
		      MNL_TYPE_U64);
	if (name && value)
		counters->counter(mnl_attr_get_str(name),
				  mnl_attr_get_u64(value), counters->argument);
	return MNL_CB_OK;
}

static int give_counters(const struct nlmsghdr *message, void *argument)
{
	const struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX] = {};
	const struct nlattr *table;

	mnl_attr_parse(message, 0, keep, attrs);
	table = valid(attrs[RDMA_NLDEV_ATTR_STAT_HWCOUNTERS],
		      MNL_TYPE_NESTED);
	if (table)
		mnl_attr_parse_nested(table, give_counter, argument);
	return MNL_CB_OK;
}

int nldev_counters(struct nldev *nldev, const struct nldev_device *device,
		   uint32_t port,
		   void (*counter)(const char *name, uint64_t value,
				   void *argument),
		   void *argument)
{
	struct counters counters = { counter, argument };
	struct nlmsghdr *message = request(nldev, RDMA_NLDEV_CMD_STAT_GET, 0);

	mnl_attr_put_u32(message, RDMA_NLDEV_ATTR_DEV_INDEX, device->index);
	mnl_attr_put_u32(message, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	return exchange(nldev, message, give_counters, &counters);
}
