// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Windows of application memory. Only the kernel can reach them from another
 * process, so they exist with the device alone.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/comm.h"
#include "exec/device.h"
#include "exec/window.h"

/* The range pinned on one device. */
struct pin {
	struct pin *next;
	struct hcomm_device *dev;
	uint32_t object;
};

struct hcommWin {
	char *base;
	size_t size;
	struct pin *pins;
	struct hcomm_attached *attached;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Takes over the reference to @dev when it succeeds. */
static int pin_on(struct hcommWin *win, struct hcomm_device *dev, char *why,
		  size_t bytes)
{
	struct pin *pin = malloc(sizeof(*pin));
	int err;

	if (!pin)
		return -ENOMEM;
	err = hcomm_device_pin(dev, win->base, win->size, &pin->object, why,
			       bytes);
	if (err) {
		free(pin);
		return err;
	}
	pin->dev = dev;
	pin->next = win->pins;
	win->pins = pin;
	return 0;
}

hcommResult_t hcomm_window_result(int err)
{
	switch (err) {
	case 0:
		return HCOMM_SUCCESS;
	case -ENOMEM:
		return HCOMM_OUT_OF_MEMORY;
	case -EACCES:
	case -EPERM:
		return HCOMM_PERMISSION_DENIED;
	case -EFAULT:
	case -EINVAL:
		return HCOMM_INVALID_ARGUMENT;
	case -ENOENT:
	case -ENXIO:
	case -ENODEV:
		return HCOMM_NOT_SUPPORTED;
	default:
		return HCOMM_SYSTEM_ERROR;
	}
}

hcommResult_t hcomm_window_create(struct hcommWin **out, void *base,
				  size_t size, const char *device, char *why,
				  size_t bytes)
{
	struct hcommWin *win = calloc(1, sizeof(*win));
	struct hcomm_device *dev;
	int err;

	snprintf(why, bytes, "out of memory");
	if (!win)
		return HCOMM_OUT_OF_MEMORY;
	win->base = base;
	win->size = size;
	err = hcomm_device_get(device, &dev);
	if (err) {
		snprintf(why, bytes, "windows need the module: /dev/%s: %s",
			 device, strerror(-err));
		free(win);
		return hcomm_window_result(err);
	}
	err = pin_on(win, dev, why, bytes);
	if (err) {
		hcomm_device_put(dev);
		free(win);
		return hcomm_window_result(err);
	}
	*out = win;
	return HCOMM_SUCCESS;
}

/* The object of @win on the device of @comm, pinned now if need be. */
static int object_on(struct hcommComm *comm, struct hcommWin *win,
		     uint32_t *object, char *why, size_t bytes)
{
	const char *name = hcomm_device_name(comm->transport->device(comm));
	struct hcomm_device *dev;
	struct pin *pin;
	int err;

	for (pin = win->pins; pin; pin = pin->next)
		if (!strcmp(hcomm_device_name(pin->dev), name))
			break;
	if (!pin) {
		err = hcomm_device_get(name, &dev);
		if (err)
			return err;
		err = pin_on(win, dev, why, bytes);
		if (err) {
			hcomm_device_put(dev);
			return err;
		}
		pin = win->pins;
	}
	*object = pin->object;
	return 0;
}

int hcomm_window_export(struct hcommComm *comm, struct hcommWin *win,
			uint32_t id, struct hcomm_attached **out, char *why,
			size_t bytes)
{
	struct hcomm_attached *attached = calloc(1, sizeof(*attached));
	int err = -ENOMEM;

	*out = NULL;
	if (!attached)
		return err;
	attached->sizes = calloc((size_t)comm->n, sizeof(*attached->sizes));
	if (!attached->sizes)
		goto free_attached;
	attached->comm = comm;
	attached->win = win;
	attached->id = id;
	pthread_mutex_lock(&lock);
	err = object_on(comm, win, &attached->object, why, bytes);
	if (!err)
		err = comm->transport->attach(comm, id, attached->object);
	if (!err) {
		attached->next_of_comm = comm->attached;
		comm->attached = attached;
		attached->next_of_win = win->attached;
		win->attached = attached;
	}
	pthread_mutex_unlock(&lock);
	if (err)
		goto free_attached;
	*out = attached;
	return 0;

free_attached:
	free(attached->sizes);
	free(attached);
	return err;
}

/* Takes it off both lists and frees it. The lock is held. */
static void drop(struct hcomm_attached *attached)
{
	struct hcomm_attached **at;

	for (at = &attached->comm->attached; *at != attached;
	     at = &(*at)->next_of_comm)
		;
	*at = attached->next_of_comm;
	for (at = &attached->win->attached; *at != attached;
	     at = &(*at)->next_of_win)
		;
	*at = attached->next_of_win;
	free(attached->sizes);
	free(attached);
}

void hcomm_window_withdraw(struct hcomm_attached *attached)
{
	pthread_mutex_lock(&lock);
	attached->comm->transport->detach(attached->comm, attached->id);
	drop(attached);
	pthread_mutex_unlock(&lock);
}

size_t hcomm_window_size(const struct hcommWin *win)
{
	return win->size;
}

struct hcomm_attached *hcomm_window_find(struct hcommComm *comm,
					 const struct hcommWin *win)
{
	struct hcomm_attached *attached;

	pthread_mutex_lock(&lock);
	for (attached = comm->attached; attached;
	     attached = attached->next_of_comm)
		if (attached->win == win)
			break;
	pthread_mutex_unlock(&lock);
	return attached;
}

struct hcomm_attached *hcomm_window_around(struct hcommComm *comm,
					   const void *ptr, size_t bytes,
					   uint64_t *offset)
{
	struct hcomm_attached *attached;
	uint64_t at = 0;

	pthread_mutex_lock(&lock);
	for (attached = comm->attached; attached;
	     attached = attached->next_of_comm) {
		const struct hcommWin *win = attached->win;

		at = (uintptr_t)ptr - (uintptr_t)win->base;
		if (at < win->size && bytes <= win->size - at)
			break;
	}
	pthread_mutex_unlock(&lock);
	*offset = at;
	return attached;
}

/* Peers are told that it ends; that takes a moment. The lock is held. */
static int unpin_all(struct hcommWin *win)
{
	struct timespec ts = { .tv_nsec = 1000000 };
	struct pin *pin;
	int tries, err;

	while ((pin = win->pins)) {
		for (tries = 0; tries < 1000; tries++) {
			err = hcomm_device_unpin(pin->dev, pin->object);
			if (err != -EBUSY)
				break;
			nanosleep(&ts, NULL);
		}
		if (err == -EBUSY)
			return err;
		win->pins = pin->next;
		hcomm_device_put(pin->dev);
		free(pin);
	}
	return 0;
}

hcommResult_t hcomm_window_destroy(struct hcommWin *win)
{
	struct hcomm_attached *attached;
	int err;

	pthread_mutex_lock(&lock);
	while ((attached = win->attached)) {
		attached->comm->transport->detach(attached->comm, attached->id);
		drop(attached);
	}
	err = unpin_all(win);
	pthread_mutex_unlock(&lock);
	if (err)
		return HCOMM_BUSY;
	free(win);
	return HCOMM_SUCCESS;
}

void hcomm_window_forget(struct hcommComm *comm)
{
	pthread_mutex_lock(&lock);
	while (comm->attached)
		drop(comm->attached);
	pthread_mutex_unlock(&lock);
}
