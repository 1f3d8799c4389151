// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Linked around the library's operations: HCOMM_TEST_FAULT makes rank 1, or
 * all ranks, misbehave, as
 *
 *	flip	the last byte of every result of rank 1 is wrong
 *	outside	a byte behind every result of rank 1 is written
 *	absent	a barrier does not wait
 *	die	rank 1 kills itself in its third operation
 *	stuck	the same, and the others never return from theirs
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hcomm.h>

static bool fault_is(const char *name)
{
	const char *fault = getenv("HCOMM_TEST_FAULT");

	return fault && !strcmp(fault, name);
}

static bool is_victim(hcommComm_t comm)
{
	int rank = -1;

	hcommCommRank(comm, &rank);
	return rank == 1;
}

static void before(hcommComm_t comm)
{
	static int calls;

	if (!(fault_is("die") || fault_is("stuck")) || ++calls < 3)
		return;
	if (is_victim(comm))
		raise(SIGKILL);
	while (fault_is("stuck"))
		pause();
}

static void after(void *result, size_t count, hcommDataType_t type,
		  hcommComm_t comm)
{
	char *end = (char *)result + count * hcommTypeSize(type);

	if (!count || !is_victim(comm))
		return;
	if (fault_is("flip"))
		end[-1] ^= 0x40;
	if (fault_is("outside"))
		*end ^= 0x40;
}

#define WRAP(name, parameters, arguments, result, count)		\
	hcommResult_t __real_hcomm##name parameters;			\
	hcommResult_t __wrap_hcomm##name parameters;			\
	hcommResult_t __wrap_hcomm##name parameters			\
	{								\
		hcommResult_t code;					\
									\
		before(comm);						\
		code = __real_hcomm##name arguments;			\
		if (code == HCOMM_SUCCESS)				\
			after(result, count, type, comm);		\
		return code;						\
	}

static size_t ranks(hcommComm_t comm)
{
	int count = 0;

	hcommCommCount(comm, &count);
	return count;
}

WRAP(AllReduce,
     (const void *send, void *recv, size_t count, hcommDataType_t type,
      hcommRedOp_t op, hcommComm_t comm, hcommStream_t stream),
     (send, recv, count, type, op, comm, stream), recv, count)

WRAP(ReduceScatter,
     (const void *send, void *recv, size_t count, hcommDataType_t type,
      hcommRedOp_t op, hcommComm_t comm, hcommStream_t stream),
     (send, recv, count, type, op, comm, stream), recv, count)

WRAP(Broadcast,
     (const void *send, void *recv, size_t count, hcommDataType_t type,
      int root, hcommComm_t comm, hcommStream_t stream),
     (send, recv, count, type, root, comm, stream), recv, count)

WRAP(Reduce,
     (const void *send, void *recv, size_t count, hcommDataType_t type,
      hcommRedOp_t op, int root, hcommComm_t comm, hcommStream_t stream),
     (send, recv, count, type, op, root, comm, stream), recv, count)

hcommResult_t __real_hcommAllGather(const void *send, void *recv, size_t count,
				    hcommDataType_t type, hcommComm_t comm,
				    hcommStream_t stream);
hcommResult_t __wrap_hcommAllGather(const void *send, void *recv, size_t count,
				    hcommDataType_t type, hcommComm_t comm,
				    hcommStream_t stream);

/* What ranks tell each other in uint64 and uint8 stays right. */
hcommResult_t __wrap_hcommAllGather(const void *send, void *recv, size_t count,
				    hcommDataType_t type, hcommComm_t comm,
				    hcommStream_t stream)
{
	hcommResult_t code;

	before(comm);
	code = __real_hcommAllGather(send, recv, count, type, comm, stream);
	if (code == HCOMM_SUCCESS && type == HCOMM_FLOAT32)
		after(recv, count * ranks(comm), type, comm);
	return code;
}

/* What a group of calls received is there when the group ends. */
static struct {
	void *result;
	size_t count;
	hcommDataType_t type;
	hcommComm_t comm;
} pending;

hcommResult_t __real_hcommRecv(void *recv, size_t count, hcommDataType_t type,
			       int peer, hcommComm_t comm,
			       hcommStream_t stream);
hcommResult_t __wrap_hcommRecv(void *recv, size_t count, hcommDataType_t type,
			       int peer, hcommComm_t comm,
			       hcommStream_t stream);
hcommResult_t __wrap_hcommRecv(void *recv, size_t count, hcommDataType_t type,
			       int peer, hcommComm_t comm,
			       hcommStream_t stream)
{
	before(comm);
	pending.result = recv;
	pending.count = count;
	pending.type = type;
	pending.comm = comm;
	return __real_hcommRecv(recv, count, type, peer, comm, stream);
}

hcommResult_t __real_hcommGroupEnd(void);
hcommResult_t __wrap_hcommGroupEnd(void);
hcommResult_t __wrap_hcommGroupEnd(void)
{
	hcommResult_t code = __real_hcommGroupEnd();

	if (code == HCOMM_SUCCESS)
		after(pending.result, pending.count, pending.type,
		      pending.comm);
	return code;
}

hcommResult_t __real_hcommBarrier(hcommComm_t comm, hcommStream_t stream);
hcommResult_t __wrap_hcommBarrier(hcommComm_t comm, hcommStream_t stream);
hcommResult_t __wrap_hcommBarrier(hcommComm_t comm, hcommStream_t stream)
{
	before(comm);
	if (fault_is("absent"))
		return HCOMM_SUCCESS;
	return __real_hcommBarrier(comm, stream);
}
