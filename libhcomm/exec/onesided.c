// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * One-sided operations. A user semaphore is the sum of two counters: one in
 * the owner's heap, to which the ranks of its instance add, and one of the
 * device, for signals that came from elsewhere. Each source uses one of the
 * two only, so what it adds is seen in its order.
 *
 * A source in the heap or in an attached window is read by the device where
 * it lies, and the call waits until that is over. Any other is copied to out
 * slots, and the call returns when the last copy is posted.
 */
#include <errno.h>
#include <string.h>

#include "exec/comm.h"
#include "exec/onesided.h"
#include "exec/wait.h"
#include "exec/window.h"

void hcomm_onesided_end(struct hcommComm *comm, int rank, int result)
{
	struct hcomm_rank_state *peer;

	if (rank < 0 || rank >= comm->n)
		return;
	peer = hcomm_rank(comm, rank);
	peer->ops_ended++;
	if (result && !peer->op_error)
		peer->op_error = result;
}

static hcommResult_t report(struct hcommComm *comm,
			    struct hcomm_rank_state *peer)
{
	int error = peer->op_error;

	if (!error)
		return HCOMM_SUCCESS;
	peer->op_error = 0;
	switch (error) {
	case -ESTALE:
	case -ENOENT:
		return hcomm_comm_error(comm, HCOMM_INVALID_USAGE,
			"an operation to rank %d found no such window there: "
			"it was destroyed, or the rank has left", peer->rank);
	case -EINVAL:
	case -ERANGE:
	case -EFAULT:
		return hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
			"an operation to rank %d does not lie inside its "
			"window", peer->rank);
	default:
		return hcomm_comm_error(comm, HCOMM_REMOTE_ERROR,
			"an operation to rank %d ended with: %s", peer->rank,
			strerror(-error));
	}
}

hcommResult_t hcomm_onesided_finish(struct hcommComm *comm, int rank)
{
	struct hcomm_rank_state *peer = hcomm_rank(comm, rank);
	struct hcomm_cond cond = { .kind = HCOMM_COND_DEVICE, .rank = rank };
	hcommResult_t res;

	if (!comm->transport->poll)
		return HCOMM_SUCCESS;
	comm->transport->poll(comm);
	while (peer->ops_ended != peer->ops_posted) {
		cond.value = comm->completions + 1;
		res = hcomm_wait(comm, &cond, 1);
		if (res)
			return res;
	}
	return report(comm, peer);
}

static hcommResult_t post(struct hcommComm *comm, struct hcomm_remote *remote)
{
	hcommResult_t res;

	remote->cookie |= HCOMM_COOKIE_ONESIDED;
	hcomm_rank(comm, remote->rank)->ops_posted++;
	res = comm->transport->post(comm, remote);
	if (res)
		hcomm_rank(comm, remote->rank)->ops_posted--;
	return res;
}

/* Where the device can read or write a local buffer as it is. */
static bool in_place(struct hcommComm *comm, const void *ptr, size_t bytes,
		     uint32_t *object, uint64_t *offset)
{
	uintptr_t at = (uintptr_t)ptr - (uintptr_t)comm->heap;
	struct hcomm_attached *attached;

	if (at < comm->layout.bytes && bytes <= comm->layout.bytes - at) {
		*object = HCOMM_OBJECT_HEAP;
		*offset = at;
		return true;
	}
	attached = hcomm_window_around(comm, ptr, bytes, offset);
	if (!attached)
		return false;
	*object = attached->object;
	return true;
}

/* An out slot that nobody uses; its whole size can be used for data. */
static hcommResult_t free_slot(struct hcommComm *comm, int *slot)
{
	struct hcomm_cond cond = { .kind = HCOMM_COND_DEVICE, .rank = -1 };
	hcommResult_t res;
	int i;

	for (;;) {
		comm->transport->poll(comm);
		for (i = 0; i < HCOMM_OUT_SLOTS; i++) {
			if (comm->out[i].pending)
				continue;
			*slot = i;
			return HCOMM_SUCCESS;
		}
		cond.value = comm->completions + 1;
		res = hcomm_wait(comm, &cond, 1);
		if (res)
			return res;
	}
}

static uint64_t slot_offset(const struct hcommComm *comm, int slot)
{
	return comm->layout.out + (uint64_t)slot * comm->layout.mail_slot;
}

static hcommResult_t put_staged(struct hcommComm *comm, const char *src,
				const struct hcomm_access *access)
{
	size_t at, now;
	hcommResult_t res;
	int slot;

	for (at = 0; at < access->bytes; at += now) {
		struct hcomm_remote remote = {
			.kind = HCOMM_REMOTE_PUT, .rank = access->peer,
			.object = HCOMM_OBJECT_HEAP, .window = access->window,
			.remote = access->offset + at,
		};

		now = access->bytes - at;
		if (now > comm->layout.message)
			now = comm->layout.message;
		res = free_slot(comm, &slot);
		if (res)
			return res;
		remote.local = slot_offset(comm, slot);
		remote.bytes = now;
		memcpy(comm->heap + remote.local, src + at, now);
		if (access->signal && at + now == access->bytes) {
			remote.signal = true;
			remote.sem = access->sem;
			remote.delta = access->delta;
		}
		remote.cookie = HCOMM_COOKIE_OUT(slot);
		comm->out[slot].pending++;
		res = post(comm, &remote);
		if (res) {
			comm->out[slot].pending--;
			return res;
		}
	}
	return HCOMM_SUCCESS;
}

static hcommResult_t put_remote(struct hcommComm *comm, const void *src,
				const struct hcomm_access *access)
{
	struct hcomm_remote remote = {
		.kind = HCOMM_REMOTE_PUT, .rank = access->peer,
		.window = access->window, .remote = access->offset,
		.bytes = access->bytes, .signal = access->signal,
		.sem = access->sem, .delta = access->delta,
	};
	hcommResult_t res;

	if (!access->bytes) {
		if (!access->signal)
			return HCOMM_SUCCESS;
		remote = (struct hcomm_remote) {
			.kind = HCOMM_REMOTE_SIGNAL, .rank = access->peer,
			.signal = true, .sem = access->sem,
			.delta = access->delta,
		};
		return post(comm, &remote);
	}
	if (!in_place(comm, src, access->bytes, &remote.object, &remote.local))
		return put_staged(comm, src, access);
	res = post(comm, &remote);
	if (res)
		return res;
	return hcomm_onesided_finish(comm, access->peer);
}

static uint64_t *local_sem(struct hcommComm *comm, int rank, uint32_t sem)
{
	return (uint64_t *)(hcomm_rank(comm, rank)->heap +
			    hcomm_layout_flag(comm->layout.sems, sem));
}

hcommResult_t hcomm_onesided_put(struct hcommComm *comm, const void *src,
				 const struct hcomm_access *access)
{
	struct hcomm_rank_state *peer = hcomm_rank(comm, access->peer);
	struct hcomm_access data = *access;
	hcommResult_t res;

	if (!peer->local)
		return put_remote(comm, src, access);
	data.signal = false;
	if (!access->window) {
		if (access->bytes)
			memmove(peer->heap + access->offset, src,
				access->bytes);
	} else {
		res = put_remote(comm, src, &data);
		if (!res)
			res = hcomm_onesided_finish(comm, access->peer);
		if (res)
			return res;
	}
	if (access->signal) {
		__atomic_fetch_add(local_sem(comm, access->peer, access->sem),
				   access->delta, __ATOMIC_SEQ_CST);
		hcomm_wake(comm, access->peer);
	}
	return HCOMM_SUCCESS;
}

static hcommResult_t get_some(struct hcommComm *comm, uint32_t object,
			      uint64_t local, size_t bytes, uint64_t remote_at,
			      const struct hcomm_access *access)
{
	struct hcomm_remote remote = {
		.kind = HCOMM_REMOTE_GET, .rank = access->peer,
		.object = object, .window = access->window, .local = local,
		.remote = remote_at, .bytes = bytes,
	};
	hcommResult_t res = post(comm, &remote);

	return res ? res : hcomm_onesided_finish(comm, access->peer);
}

hcommResult_t hcomm_onesided_get(struct hcommComm *comm, void *dst,
				 const struct hcomm_access *access)
{
	struct hcomm_rank_state *peer = hcomm_rank(comm, access->peer);
	uint64_t local;
	uint32_t object;
	hcommResult_t res;
	size_t at, now;
	int slot;

	if (!access->bytes)
		return HCOMM_SUCCESS;
	if (peer->local && !access->window) {
		memmove(dst, peer->heap + access->offset, access->bytes);
		return HCOMM_SUCCESS;
	}
	if (in_place(comm, dst, access->bytes, &object, &local))
		return get_some(comm, object, local, access->bytes,
				access->offset, access);
	for (at = 0; at < access->bytes; at += now) {
		now = access->bytes - at;
		if (now > comm->layout.message)
			now = comm->layout.message;
		res = free_slot(comm, &slot);
		if (res)
			return res;
		local = slot_offset(comm, slot);
		res = get_some(comm, HCOMM_OBJECT_HEAP, local, now,
			       access->offset + at, access);
		if (res)
			return res;
		memcpy((char *)dst + at, comm->heap + local, now);
	}
	return HCOMM_SUCCESS;
}

hcommResult_t hcomm_onesided_wait(struct hcommComm *comm, uint32_t sem,
				  uint64_t value)
{
	struct hcomm_cond cond = {
		.kind = HCOMM_COND_USER, .rank = -1, .value = value,
		.sem = sem, .word = local_sem(comm, comm->rank, sem),
	};

	if (comm->transport->semaphore) {
		cond.word2 = cond.word;
		cond.word = comm->transport->semaphore(comm, sem);
	}
	return hcomm_wait(comm, &cond, 1);
}
