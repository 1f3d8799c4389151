// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Windows and one-sided operations: checks, then exec/onesided.c. */
#include <errno.h>
#include <string.h>

#include "api/face.h"
#include "exec/onesided.h"
#include "exec/run.h"
#include "exec/window.h"

#define LARGEST_DELTA	(1U << 31)

hcommResult_t hcommWinCreate(hcommWin_t *win, void *base_addr, size_t size,
			     hcommMemKind_t kind)
{
	hcommResult_t res = hcomm_face_process();
	struct hcomm_settings settings;
	char why[HCOMM_ERROR_TEXT];

	if (res)
		return res;
	if (!win || !base_addr || !size)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, !win ?
			"win is NULL" : !base_addr ? "base_addr is NULL" :
			"a window of 0 bytes");
	*win = NULL;
	if (kind == HCOMM_MEM_GPU)
		return hcomm_face_error(HCOMM_NOT_SUPPORTED,
			"memory of accelerators cannot be a window in this "
			"version: it has no dma-buf import; use host memory");
	if (kind != HCOMM_MEM_HOST)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
			"%d is no kind of memory", (int)kind);
	res = hcomm_settings_load(&settings, NULL, why, sizeof(why));
	if (!res)
		res = hcomm_window_create(win, base_addr, size, settings.device,
					  why, sizeof(why));
	return res ? hcomm_face_error(res, "%s", why) : HCOMM_SUCCESS;
}

/* What the ranks tell each other about an attach. */
struct attach_note {
	uint64_t size;
	uint64_t id;
	int64_t error;
};

/*
 * The ranks compare sizes and results; one that failed fails all, and the id
 * is used up on every rank.
 */
static hcommResult_t agree(hcommComm_t comm, struct hcomm_attached *attached,
			   const struct attach_note *mine,
			   struct attach_note *notes)
{
	struct hcomm_coll coll = {
		.kind = HCOMM_COLL_ALLGATHER, .count = sizeof(*mine),
		.type = HCOMM_UINT8, .root = -1, .src = (const char *)mine,
		.dst = (char *)notes,
	};
	hcommResult_t res = hcomm_run_coll(comm, &coll);
	int r;

	if (res)
		return res;
	for (r = 0; r < comm->n; r++) {
		if (notes[r].id != mine->id)
			return hcomm_comm_error(comm, HCOMM_MISMATCH,
				"rank %d attaches window %llu, rank %d window "
				"%llu: attach in the same order on every rank",
				r, (unsigned long long)notes[r].id, comm->rank,
				(unsigned long long)mine->id);
		if (notes[r].error)
			return hcomm_comm_error(comm,
				hcomm_window_result((int)notes[r].error),
				"rank %d cannot attach the window: %s", r,
				strerror((int)-notes[r].error));
		if (attached)
			attached->sizes[r] = notes[r].size;
	}
	return HCOMM_SUCCESS;
}

static hcommResult_t attach(hcommComm_t comm, hcommWin_t win)
{
	struct hcomm_attached *attached = NULL;
	struct attach_note mine = { .id = comm->next_window++ };
	struct attach_note notes[comm->n];
	char why[HCOMM_ERROR_TEXT] = "";
	hcommResult_t res;

	mine.size = hcomm_window_size(win);
	mine.error = hcomm_window_export(comm, win, (uint32_t)mine.id,
					 &attached, why, sizeof(why));
	res = agree(comm, attached, &mine, notes);
	if (res && attached)
		hcomm_window_withdraw(attached);
	if (mine.error && *why)
		hcomm_comm_error(comm, res, "%s", why);
	return res;
}

hcommResult_t hcommWinAttach(hcommComm_t comm, hcommWin_t win,
			     unsigned int flags)
{
	hcommResult_t res = hcomm_face_enter(comm, NULL);

	if (res)
		return res;
	if (!win || flags)
		res = hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT, !win ?
				       "win is NULL" : "unknown flags");
	else if (!comm->transport->attach)
		res = hcomm_comm_error(comm, HCOMM_NOT_SUPPORTED,
			"windows need the hcomm module; this group has only "
			"shared memory (transport \"%s\")",
			comm->transport->name);
	else if (hcomm_window_find(comm, win))
		res = hcomm_comm_error(comm, HCOMM_INVALID_USAGE,
			"the window is attached to this group already");
	else
		res = attach(comm, win);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommWinDestroy(hcommWin_t win)
{
	hcommResult_t res = hcomm_face_process();

	if (res)
		return res;
	if (!win)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, "win is NULL");
	res = hcomm_window_destroy(win);
	return res ? hcomm_face_error(res, "an operation still uses the "
				      "window: call hcommWinDestroy() again") :
		     HCOMM_SUCCESS;
}

static hcommResult_t check_peer(hcommComm_t comm, int peer)
{
	if (peer < 0 || peer >= comm->n)
		return hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
			"peer %d is not in 0 to %d", peer, comm->n - 1);
	return HCOMM_SUCCESS;
}

static hcommResult_t check_signal(hcommComm_t comm, uint32_t sem,
				  uint32_t delta)
{
	if (sem >= HCOMM_USER_SEMAPHORES)
		return hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
			"semaphore %u is not in 0 to %d", sem,
			HCOMM_USER_SEMAPHORES - 1);
	if (!delta || delta > LARGEST_DELTA)
		return hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
			"%u cannot be added: 1 to 2^31", delta);
	return HCOMM_SUCCESS;
}

/* Resolves the window and checks that the range lies inside the peer's. */
static hcommResult_t resolve(hcommComm_t comm, struct hcomm_access *access,
			     const void *buffer, hcommWin_t win)
{
	uint64_t low = comm->layout.user, size = comm->layout.bytes;
	struct hcomm_attached *attached;
	hcommResult_t res = check_peer(comm, access->peer);

	if (res)
		return res;
	if (access->bytes && !buffer)
		return hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
					"the buffer is NULL");
	if (win) {
		attached = hcomm_window_find(comm, win);
		if (!attached)
			return hcomm_comm_error(comm, HCOMM_INVALID_USAGE,
				"the window is not attached to this group: "
				"call hcommWinAttach() on every rank first");
		access->window = attached->id;
		low = 0;
		size = attached->sizes[access->peer];
	}
	if (access->bytes && (access->offset < low || access->offset > size ||
			      access->bytes > size - access->offset))
		return hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
			"bytes %llu to %llu are outside the %s of rank %d "
			"(%llu to %llu)", (unsigned long long)access->offset,
			(unsigned long long)(access->offset + access->bytes),
			win ? "window" : "heap", access->peer,
			(unsigned long long)low, (unsigned long long)size);
	return HCOMM_SUCCESS;
}

hcommResult_t hcommPut(const void *src, size_t bytes, int peer,
		       hcommWin_t win, uint64_t offset, hcommComm_t comm,
		       hcommStream_t stream)
{
	struct hcomm_access access = {
		.peer = peer, .offset = offset, .bytes = bytes,
	};
	hcommResult_t res = hcomm_face_enter(comm, stream);

	if (res)
		return res;
	res = resolve(comm, &access, src, win);
	if (!res)
		res = hcomm_onesided_put(comm, src, &access);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommPutSignal(const void *src, size_t bytes, int peer,
			     hcommWin_t win, uint64_t offset, uint32_t sem,
			     uint32_t delta, hcommComm_t comm,
			     hcommStream_t stream)
{
	struct hcomm_access access = {
		.peer = peer, .offset = offset, .bytes = bytes,
		.signal = true, .sem = sem, .delta = delta,
	};
	hcommResult_t res = hcomm_face_enter(comm, stream);

	if (res)
		return res;
	res = check_signal(comm, sem, delta);
	if (!res)
		res = resolve(comm, &access, src, win);
	if (!res)
		res = hcomm_onesided_put(comm, src, &access);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommGet(void *dst, size_t bytes, int peer, hcommWin_t win,
		       uint64_t offset, hcommComm_t comm,
		       hcommStream_t stream)
{
	struct hcomm_access access = {
		.peer = peer, .offset = offset, .bytes = bytes,
	};
	hcommResult_t res = hcomm_face_enter(comm, stream);

	if (res)
		return res;
	res = resolve(comm, &access, dst, win);
	if (!res)
		res = hcomm_onesided_get(comm, dst, &access);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommSignal(int peer, uint32_t sem, uint32_t delta,
			  hcommComm_t comm, hcommStream_t stream)
{
	return hcommPutSignal(NULL, 0, peer, NULL, 0, sem, delta, comm, stream);
}

hcommResult_t hcommWait(uint32_t sem, uint64_t value, hcommComm_t comm,
			hcommStream_t stream)
{
	hcommResult_t res = hcomm_face_enter(comm, stream);

	if (res)
		return res;
	res = check_signal(comm, sem, 1);
	if (!res) {
		comm->call = (struct hcomm_call) {
			.name = "Wait", .op = comm->op, .redop = -1, .root = -1,
		};
		res = hcomm_onesided_wait(comm, sem, value);
	}
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommFence(int peer, hcommComm_t comm, hcommStream_t stream)
{
	hcommResult_t res = hcomm_face_enter(comm, stream);

	if (res)
		return res;
	res = check_peer(comm, peer);
	if (!res)
		res = hcomm_onesided_finish(comm, peer);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommQuiet(hcommComm_t comm, hcommStream_t stream)
{
	hcommResult_t res = hcomm_face_enter(comm, stream), one;
	int r;

	if (res)
		return res;
	for (r = 0; r < comm->n; r++) {
		one = hcomm_onesided_finish(comm, r);
		if (one && !res)
			res = one;
	}
	return hcomm_face_leave(comm, res);
}
