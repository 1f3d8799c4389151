/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RDMA devices, ports and counters, asked from the kernel over RDMA netlink.
 * Functions return 0 or a negative errno.
 */
#ifndef TOOLS_NLDEV_H
#define TOOLS_NLDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NLDEV_NAME_BYTES	64

struct nldev_device {
	uint32_t index;
	uint32_t nports;
	bool software;			/* no hardware beneath: rxe, siw */
	char name[NLDEV_NAME_BYTES];
	char protocol[16];		/* "roce", "iw", "ib", ... */
	char firmware[32];
};

struct nldev_port {
	uint32_t number;
	uint8_t state;			/* enum ib_port_state */
	uint8_t physical;		/* physical state */
	uint32_t netdev_index;		/* 0 when it has none here */
	char netdev[NLDEV_NAME_BYTES];
};

#define NLDEV_PORT_ACTIVE	4

struct nldev;

/* -EPROTONOSUPPORT when this kernel has no RDMA. */
int nldev_open(struct nldev **nldev);
void nldev_close(struct nldev *nldev);

/* *@devices is sorted by name and the caller's to free(). */
int nldev_devices(struct nldev *nldev, struct nldev_device **devices,
		  size_t *count);

/* *@ports is sorted by number and the caller's to free(). */
int nldev_ports(struct nldev *nldev, const struct nldev_device *device,
		struct nldev_port **ports, size_t *count);

/* Calls @counter for every counter of a port. */
int nldev_counters(struct nldev *nldev, const struct nldev_device *device,
		   uint32_t port,
		   void (*counter)(const char *name, uint64_t value,
				   void *argument),
		   void *argument);

#endif
