// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Collectives and point to point: checks the arguments, then runs the
 * operation or notes it for hcommGroupEnd().
 */
#include <stdint.h>

#include "api/face.h"
#include "exec/coll.h"
#include "exec/p2p.h"
#include "exec/run.h"

/* A refused call; inside a group of calls it spoils the group. */
#define REFUSE(...)							\
	do {								\
		hcomm_group_spoil(HCOMM_INVALID_ARGUMENT);		\
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,		\
					__VA_ARGS__);			\
	} while (0)

static hcommResult_t check_type(size_t count, size_t blocks,
				hcommDataType_t type)
{
	size_t size = hcommTypeSize(type);

	if (!size)
		REFUSE("%d is no data type", (int)type);
	if (count > SIZE_MAX / 2 / size / blocks)
		REFUSE("%zu elements of %s are more than can be addressed "
		       "(was it negative?)", count, hcommTypeName(type));
	return HCOMM_SUCCESS;
}

static hcommResult_t check_redop(hcommDataType_t type, hcommRedOp_t op)
{
	if (!hcomm_reduce_defined(type, op))
		REFUSE("reduction %s (%d) is not defined on %s",
		       hcommRedOpName(op), (int)op, hcommTypeName(type));
	return HCOMM_SUCCESS;
}

static hcommResult_t check_rank(hcommComm_t comm, int rank, const char *what)
{
	if (rank < 0 || rank >= comm->n)
		REFUSE("%s %d is not in 0 to %d", what, rank, comm->n - 1);
	return HCOMM_SUCCESS;
}

/*
 * The part of the larger buffer that may be the smaller one is @allowed
 * bytes from its start; any other overlap is refused.
 */
static hcommResult_t check_buffers(const void *send, size_t send_bytes,
				   const void *recv, size_t recv_bytes,
				   size_t allowed)
{
	uintptr_t s = (uintptr_t)send, r = (uintptr_t)recv;
	uintptr_t in_place = send_bytes > recv_bytes ? r - s : s - r;

	if ((send_bytes && !send) || (recv_bytes && !recv))
		REFUSE("a buffer is NULL");
	if (!send_bytes || !recv_bytes)
		return HCOMM_SUCCESS;
	if (s >= r + recv_bytes || r >= s + send_bytes)
		return HCOMM_SUCCESS;
	if (in_place != allowed)
		REFUSE("the buffers overlap, and not in the way that counts "
		       "as in place");
	return HCOMM_SUCCESS;
}

/* The checked call: noted, or run in this thread. */
static hcommResult_t launch(hcommComm_t comm, struct hcomm_coll *coll)
{
	hcommResult_t res;

	if (hcomm_group_open())
		return hcomm_group_note_coll(comm, coll);
	if (coll->kind == HCOMM_COLL_BARRIER)
		res = hcomm_run_barrier(comm, coll->kind);
	else
		res = hcomm_run_coll(comm, coll);
	return res;
}

static hcommResult_t enter(hcommComm_t comm, hcommStream_t stream)
{
	hcommResult_t res = hcomm_face_enter(comm, stream);

	if (res)
		hcomm_group_spoil(res);
	return res;
}

hcommResult_t hcommAllReduce(const void *sendbuff, void *recvbuff,
			     size_t count, hcommDataType_t type,
			     hcommRedOp_t op, hcommComm_t comm,
			     hcommStream_t stream)
{
	struct hcomm_coll coll = {
		.kind = HCOMM_COLL_ALLREDUCE, .count = count, .type = type,
		.redop = op, .root = -1, .src = sendbuff, .dst = recvbuff,
	};
	hcommResult_t res = enter(comm, stream);
	size_t bytes = count * hcommTypeSize(type);

	if (res)
		return res;
	res = check_type(count, 1, type);
	if (!res)
		res = check_redop(type, op);
	if (!res)
		res = check_buffers(sendbuff, bytes, recvbuff, bytes, 0);
	if (res)
		return hcomm_face_refused(comm, res);
	return hcomm_face_leave(comm, launch(comm, &coll));
}

hcommResult_t hcommBroadcast(const void *sendbuff, void *recvbuff,
			     size_t count, hcommDataType_t type, int root,
			     hcommComm_t comm, hcommStream_t stream)
{
	struct hcomm_coll coll = {
		.kind = HCOMM_COLL_BROADCAST, .count = count, .type = type,
		.root = root, .src = sendbuff, .dst = recvbuff,
	};
	hcommResult_t res = enter(comm, stream);
	size_t bytes = count * hcommTypeSize(type);

	if (res)
		return res;
	res = check_type(count, 1, type);
	if (!res)
		res = check_rank(comm, root, "root");
	if (!res)
		res = check_buffers(sendbuff, root == comm->rank ? bytes : 0,
				    recvbuff, bytes, 0);
	if (res)
		return hcomm_face_refused(comm, res);
	return hcomm_face_leave(comm, launch(comm, &coll));
}

hcommResult_t hcommReduce(const void *sendbuff, void *recvbuff, size_t count,
			  hcommDataType_t type, hcommRedOp_t op, int root,
			  hcommComm_t comm, hcommStream_t stream)
{
	struct hcomm_coll coll = {
		.kind = HCOMM_COLL_REDUCE, .count = count, .type = type,
		.redop = op, .root = root, .src = sendbuff, .dst = recvbuff,
	};
	hcommResult_t res = enter(comm, stream);
	size_t bytes = count * hcommTypeSize(type);

	if (res)
		return res;
	res = check_type(count, 1, type);
	if (!res)
		res = check_redop(type, op);
	if (!res)
		res = check_rank(comm, root, "root");
	if (!res)
		res = check_buffers(sendbuff, bytes, recvbuff,
				    root == comm->rank ? bytes : 0, 0);
	if (res)
		return hcomm_face_refused(comm, res);
	return hcomm_face_leave(comm, launch(comm, &coll));
}

hcommResult_t hcommAllGather(const void *sendbuff, void *recvbuff,
			     size_t sendcount, hcommDataType_t type,
			     hcommComm_t comm, hcommStream_t stream)
{
	struct hcomm_coll coll = {
		.kind = HCOMM_COLL_ALLGATHER, .count = sendcount, .type = type,
		.root = -1, .src = sendbuff, .dst = recvbuff,
	};
	hcommResult_t res = enter(comm, stream);
	size_t bytes = sendcount * hcommTypeSize(type);

	if (res)
		return res;
	res = check_type(sendcount, (size_t)comm->n, type);
	if (!res)
		res = check_buffers(sendbuff, bytes, recvbuff,
				    (size_t)comm->n * bytes,
				    (size_t)comm->rank * bytes);
	if (res)
		return hcomm_face_refused(comm, res);
	return hcomm_face_leave(comm, launch(comm, &coll));
}

hcommResult_t hcommReduceScatter(const void *sendbuff, void *recvbuff,
				 size_t recvcount, hcommDataType_t type,
				 hcommRedOp_t op, hcommComm_t comm,
				 hcommStream_t stream)
{
	struct hcomm_coll coll = {
		.kind = HCOMM_COLL_REDUCESCATTER, .count = recvcount,
		.type = type, .redop = op, .root = -1, .src = sendbuff,
		.dst = recvbuff,
	};
	hcommResult_t res = enter(comm, stream);
	size_t bytes = recvcount * hcommTypeSize(type);

	if (res)
		return res;
	res = check_type(recvcount, (size_t)comm->n, type);
	if (!res)
		res = check_redop(type, op);
	if (!res)
		res = check_buffers(sendbuff, (size_t)comm->n * bytes, recvbuff,
				    bytes, (size_t)comm->rank * bytes);
	if (res)
		return hcomm_face_refused(comm, res);
	return hcomm_face_leave(comm, launch(comm, &coll));
}

hcommResult_t hcommBarrier(hcommComm_t comm, hcommStream_t stream)
{
	struct hcomm_coll coll = { .kind = HCOMM_COLL_BARRIER };
	hcommResult_t res = enter(comm, stream);

	if (res)
		return res;
	return hcomm_face_leave(comm, launch(comm, &coll));
}

static hcommResult_t point_to_point(struct hcomm_p2p *p2p, const void *buffer,
				    size_t count, hcommComm_t comm,
				    hcommStream_t stream)
{
	struct hcomm_cond cond;
	hcommResult_t res = enter(comm, stream);

	if (res)
		return res;
	res = check_type(count, 1, p2p->type);
	if (!res)
		res = check_rank(comm, p2p->peer, "peer");
	p2p->bytes = count * hcommTypeSize(p2p->type);
	if (!res && p2p->bytes && !buffer) {
		hcomm_group_spoil(HCOMM_INVALID_ARGUMENT);
		res = hcomm_face_error(HCOMM_INVALID_ARGUMENT,
				       "the buffer is NULL");
	}
	if (res)
		return hcomm_face_refused(comm, res);
	if (hcomm_group_open())
		return hcomm_face_leave(comm, hcomm_group_note_p2p(comm, p2p));
	if (p2p->peer == comm->rank)
		return hcomm_face_refused(comm, hcomm_face_error(HCOMM_INVALID_USAGE,
			"rank %d sends to itself or receives from itself: that "
			"needs hcommGroupStart() and hcommGroupEnd() around "
			"both", comm->rank));
	return hcomm_face_leave(comm, hcomm_p2p_run_all(comm, p2p, 1, &cond));
}

hcommResult_t hcommSend(const void *sendbuff, size_t count,
			hcommDataType_t type, int peer, hcommComm_t comm,
			hcommStream_t stream)
{
	struct hcomm_p2p p2p = {
		.send = true, .peer = peer, .type = type, .src = sendbuff,
	};

	return point_to_point(&p2p, sendbuff, count, comm, stream);
}

hcommResult_t hcommRecv(void *recvbuff, size_t count, hcommDataType_t type,
			int peer, hcommComm_t comm, hcommStream_t stream)
{
	struct hcomm_p2p p2p = {
		.peer = peer, .type = type, .dst = recvbuff,
	};

	return point_to_point(&p2p, recvbuff, count, comm, stream);
}
