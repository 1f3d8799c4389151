// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The list of opened devices has its own lock; a device is freed with its
 * last reference, and the kernel then drops the objects that are left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bootstrap/boot.h"
#include "config/files.h"
#include "exec/device.h"
#include "exec/transport.h"
#include "uapi/hcomm.h"

struct hcomm_device {
	struct hcomm_device *next;
	unsigned int refs;
	int fd;
	char name[16];
};

static struct hcomm_device *devices;
static pthread_mutex_t devices_lock = PTHREAD_MUTEX_INITIALIZER;

int hcomm_device_open(const char *name)
{
	char path[32];

	snprintf(path, sizeof(path), "/dev/%s", name);
	return hcomm_file_own(open(path, O_RDWR | O_CLOEXEC));
}

static struct hcomm_device *find(const char *name)
{
	struct hcomm_device *dev;

	for (dev = devices; dev; dev = dev->next)
		if (!strcmp(dev->name, name))
			break;
	return dev;
}

int hcomm_device_get(const char *name, struct hcomm_device **out)
{
	struct hcomm_device *dev;
	int err = 0;

	pthread_mutex_lock(&devices_lock);
	dev = find(name);
	if (dev) {
		dev->refs++;
		goto unlock;
	}
	dev = calloc(1, sizeof(*dev));
	if (!dev) {
		err = -ENOMEM;
		goto unlock;
	}
	dev->fd = hcomm_device_open(name);
	if (dev->fd < 0) {
		err = dev->fd;
		free(dev);
		dev = NULL;
		goto unlock;
	}
	dev->refs = 1;
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	dev->next = devices;
	devices = dev;
unlock:
	pthread_mutex_unlock(&devices_lock);
	*out = dev;
	return err;
}

void hcomm_device_put(struct hcomm_device *dev)
{
	struct hcomm_device **at;

	pthread_mutex_lock(&devices_lock);
	if (!--dev->refs) {
		for (at = &devices; *at != dev; at = &(*at)->next)
			;
		*at = dev->next;
		close(dev->fd);
		free(dev);
	}
	pthread_mutex_unlock(&devices_lock);
}

const char *hcomm_device_name(const struct hcomm_device *dev)
{
	return dev->name;
}

int hcomm_device_pin(struct hcomm_device *dev, void *base, size_t bytes,
		     uint32_t *object, char *why, size_t why_bytes)
{
	struct hcomm_mem_create arg = {
		.base = (uint64_t)(uintptr_t)base, .length = bytes,
		.kind = HCOMM_MEM_KIND_HOST,
	};
	int err;

	if (!ioctl(dev->fd, HCOMM_IOC_MEM_CREATE, &arg)) {
		*object = arg.object;
		return 0;
	}
	err = -errno;
	if (err == -ENOMEM && ~arg.memlock_limit && arg.memlock_limit)
		snprintf(why, why_bytes, "cannot pin %zu KiB: RLIMIT_MEMLOCK is "
			 "%llu KiB, of which %llu KiB are used: raise it "
			 "(ulimit -l, limits.d, LimitMEMLOCK=)", bytes >> 10,
			 (unsigned long long)arg.memlock_limit >> 10,
			 (unsigned long long)arg.memlock_used >> 10);
	else if (err == -EFAULT)
		snprintf(why, why_bytes, "cannot pin %zu bytes at %p: not all "
			 "of it is mapped and writable", bytes, base);
	else
		snprintf(why, why_bytes, "cannot pin %zu bytes on /dev/%s: %s",
			 bytes, dev->name, strerror(-err));
	return err;
}

int hcomm_device_unpin(struct hcomm_device *dev, uint32_t object)
{
	struct hcomm_mem_destroy arg = { .object = object };

	return ioctl(dev->fd, HCOMM_IOC_MEM_DESTROY, &arg) ? -errno : 0;
}

void hcomm_kmod_probe(const char *device, struct hcomm_record *record,
		      char *why, size_t why_bytes)
{
	struct hcomm_query query;
	int fd = hcomm_device_open(device);

	if (fd < 0) {
		snprintf(why, why_bytes, "/dev/%s: %s%s", device, strerror(-fd),
			 fd == -EACCES ?
			 " (is this user in group rdma?)" :
			 fd == -ENOENT ? " (is the hcomm module loaded?)" : "");
		return;
	}
	if (ioctl(fd, HCOMM_IOC_QUERY, &query)) {
		snprintf(why, why_bytes, "/dev/%s: query: %s", device,
			 strerror(errno));
	} else if (query.abi != HCOMM_ABI_VERSION) {
		snprintf(why, why_bytes, "/dev/%s speaks ABI %u, this library "
			 "%u: install one version of both", device, query.abi,
			 HCOMM_ABI_VERSION);
	} else {
		record->flags |= HCOMM_RECORD_DEVICE;
		record->abi = query.abi;
		memcpy(record->instance_id, query.instance_id, 16);
		memcpy(record->addr, query.addr, 16);
		record->port = query.listen_port;
		snprintf(record->device, sizeof(record->device), "%s", device);
		memcpy(record->abi_version, query.version,
		       sizeof(record->abi_version));
		record->abi_version[sizeof(record->abi_version) - 1] = 0;
	}
	close(fd);
}
