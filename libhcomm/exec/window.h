/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A window as the application sees it: a range of its memory, pinned once on
 * each device it is used on, and exported into groups. A lock of its own
 * guards the lists, since groups of several threads may share a window.
 */
#ifndef HCOMM_WINDOW_H
#define HCOMM_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "hcomm.h"

struct hcommComm;
struct hcomm_device;

/* A window in a group; on the group's list and the window's. */
struct hcomm_attached {
	struct hcomm_attached *next_of_comm;
	struct hcomm_attached *next_of_win;
	struct hcommComm *comm;
	struct hcommWin *win;
	uint32_t id;			/* the same on every rank */
	uint32_t object;		/* on the group's device */
	uint64_t *sizes;		/* by rank */
};

/* What a negative errno of the calls below, and 0, means to the user. */
hcommResult_t hcomm_window_result(int err);

hcommResult_t hcomm_window_create(struct hcommWin **win, void *base,
				  size_t size, const char *device, char *why,
				  size_t why_bytes);
/* Makes @attached (for its window and group) and exports it. Not collective. */
int hcomm_window_export(struct hcommComm *comm, struct hcommWin *win,
			uint32_t id, struct hcomm_attached **attached,
			char *why, size_t why_bytes);
void hcomm_window_withdraw(struct hcomm_attached *attached);
size_t hcomm_window_size(const struct hcommWin *win);
/* NULL when @win is not attached to @comm. */
struct hcomm_attached *hcomm_window_find(struct hcommComm *comm,
					 const struct hcommWin *win);
/* The attached window of @comm that holds the range, and the offset in it. */
struct hcomm_attached *hcomm_window_around(struct hcommComm *comm,
					   const void *ptr, size_t bytes,
					   uint64_t *offset);
/* HCOMM_BUSY leaves it as an unattached window; call again. */
hcommResult_t hcomm_window_destroy(struct hcommWin *win);
/* The group ends: its windows forget it. */
void hcomm_window_forget(struct hcommComm *comm);

#endif
