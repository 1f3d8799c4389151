/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * libhcomm: collectives and one-sided operations over /dev/hcommN.
 *
 * One process is one rank of a group (hcommComm_t). Calls with a group are
 * collective where their description says so: every rank makes the same calls
 * in the same order.
 *
 * Return values. Every function returns an hcommResult_t; nothing else is
 * changed by a call that returns HCOMM_INVALID_ARGUMENT, HCOMM_INVALID_USAGE
 * or HCOMM_NOT_SUPPORTED. hcommCommGetLastError() has the sentence: rank, op
 * number, cause, and what to do. HCOMM_REMOTE_ERROR, HCOMM_TIMEOUT,
 * HCOMM_ABORTED, HCOMM_MISMATCH, HCOMM_PERMISSION_DENIED, HCOMM_SYSTEM_ERROR
 * and HCOMM_INTERNAL_ERROR from a call that moves data end the group: later
 * calls return the same code, and only hcommCommAbort() or hcommCommDestroy()
 * are of use.
 *
 * Threads. A group is used by one thread at a time; a second one gets
 * HCOMM_INVALID_USAGE. Different groups may be used by different threads.
 * hcommCommAbort(), hcommCommGetAsyncError(), hcommCommGetLastError() and
 * hcommCommGetInfo() may be called by any thread at any time before
 * hcommCommDestroy().
 *
 * Fork. In a child of a process that has used the library every call returns
 * HCOMM_INVALID_USAGE, until the child executes a new program.
 *
 * Streams. @stream must be NULL in this version: the call runs in the caller
 * and returns when it is done. Anything else is HCOMM_NOT_SUPPORTED.
 *
 * Buffers. Any readable (send) or writable (receive) host memory, at any
 * alignment of its type; memory of the symmetric heap is used in place, other
 * memory is staged. Send and receive buffers may be the same as each function
 * says ("in place"); any other overlap is HCOMM_INVALID_ARGUMENT. A count of
 * 0 is valid, buffers may then be NULL.
 */
#ifndef HCOMM_H
#define HCOMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HCOMM_MAJOR	0
#define HCOMM_MINOR	1
#define HCOMM_PATCH	0
#define HCOMM_VERSION_CODE \
	(HCOMM_MAJOR * 10000 + HCOMM_MINOR * 100 + HCOMM_PATCH)

#define HCOMM_KB(n)	((size_t)(n) << 10)
#define HCOMM_MB(n)	((size_t)(n) << 20)
#define HCOMM_GB(n)	((size_t)(n) << 30)

/* ------------------------------------------------------------ results */

typedef enum hcommResult {
	HCOMM_SUCCESS = 0,
	HCOMM_INVALID_ARGUMENT = 1,	/* a parameter is out of its range */
	HCOMM_INVALID_USAGE = 2,	/* right parameters, wrong moment */
	HCOMM_SYSTEM_ERROR = 3,		/* the operating system refused something */
	HCOMM_INTERNAL_ERROR = 4,	/* the library or the module is broken */
	HCOMM_REMOTE_ERROR = 5,		/* a peer process, node or link failed */
	HCOMM_TIMEOUT = 6,		/* a peer did not come within the deadline */
	HCOMM_ABORTED = 7,		/* a rank called hcommCommAbort() */
	HCOMM_MISMATCH = 8,		/* ranks made different calls */
	HCOMM_NOT_SUPPORTED = 9,	/* valid, but not here; the text says why */
	HCOMM_OUT_OF_MEMORY = 10,	/* of the process, the heap or RLIMIT_MEMLOCK */
	HCOMM_PERMISSION_DENIED = 11,	/* device access, or a wrong secret */
	HCOMM_BUSY = 12,		/* still in use by an operation */
	HCOMM_IN_PROGRESS = 13,		/* not finished yet */
	HCOMM_NR_RESULTS = 14
} hcommResult_t;

/* A static English sentence for @result; never NULL. */
const char *hcommGetErrorString(hcommResult_t result);

/* The constant's name, "HCOMM_TIMEOUT"; never NULL. */
const char *hcommGetErrorName(hcommResult_t result);

/* HCOMM_VERSION_CODE of the library that is loaded. */
hcommResult_t hcommGetVersion(int *version);

/* ------------------------------------------------------------- groups */

typedef struct hcommComm *hcommComm_t;
typedef struct hcommStream *hcommStream_t;
typedef struct hcommWin *hcommWin_t;

#define HCOMM_UNIQUE_ID_BYTES	256

/*
 * Names one job: NUL-terminated printable text with the address of rank 0 and
 * a random secret. Give all of it to every rank, and to nobody else.
 */
typedef struct hcommUniqueId {
	char text[HCOMM_UNIQUE_ID_BYTES];
} hcommUniqueId;

/*
 * Makes a unique id and opens the socket that the other ranks will connect
 * to. The caller must be the process that becomes rank 0 with this id.
 * HCOMM_SOCKET_IFNAME names the interface to listen on; by default the first
 * one that is up and not loopback, else loopback.
 */
hcommResult_t hcommGetUniqueId(hcommUniqueId *id);

/*
 * Options of a group. Start from HCOMM_CONFIG_INITIALIZER. 0 and NULL mean
 * the environment's value, and then the default.
 */
typedef struct hcommConfig {
	size_t size;			/* sizeof(hcommConfig_t) of the caller */
	uint32_t magic;
	uint32_t version;		/* HCOMM_VERSION_CODE of the caller */
	size_t heap_size;		/* bytes, HCOMM_HEAP_SIZE, 64 MiB */
	uint64_t timeout_ms;		/* HCOMM_TIMEOUT (s), 590,000; at most 24 h */
	uint64_t connect_timeout_ms;	/* HCOMM_CONNECT_TIMEOUT (s), 60,000 */
	const char *transport;		/* HCOMM_TRANSPORT: "auto" "kmod" "local" */
	const char *device;		/* HCOMM_DEVICE: "hcomm0" */
} hcommConfig_t;

#define HCOMM_CONFIG_MAGIC	0x68636f6dU
#define HCOMM_CONFIG_INITIALIZER \
	{ sizeof(hcommConfig_t), HCOMM_CONFIG_MAGIC, HCOMM_VERSION_CODE, \
	  0, 0, 0, NULL, NULL }

/*
 * Becomes rank @rank (0 to @nranks - 1) of a group of @nranks (1 to 4096).
 * Collective; returns when all ranks are there or after 60 s. *@comm belongs
 * to the caller until hcommCommDestroy() or hcommCommAbort(); NULL on error,
 * hcommCommGetLastError(NULL) then has the text.
 */
hcommResult_t hcommCommInitRank(hcommComm_t *comm, int nranks,
				hcommUniqueId id, int rank);

/* The same with options; @config may be NULL and is not kept. */
hcommResult_t hcommCommInitRankConfig(hcommComm_t *comm, int nranks,
				      hcommUniqueId id, int rank,
				      const hcommConfig_t *config);

/*
 * Makes the default group from the environment, the first of these that is
 * set:
 *   HCOMM_UNIQUE_ID, HCOMM_RANK, HCOMM_NRANKS	the text of a unique id whose
 *		socket nobody holds: rank 0 listens on its address
 *   HCOMM_ROOT=host:port, HCOMM_RANK, HCOMM_NRANKS; HCOMM_SECRET or
 *		HCOMM_SECRET_FILE			rank 0 listens on port
 *   HCOMM_RANK, HCOMM_NRANKS, HCOMM_JOB		one host: a local socket named
 *		after HCOMM_JOB, or after the parent process without it
 *   MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE	torchrun; rank 0 listens on
 *		the first free one of MASTER_PORT + 1 to + 16
 * With none of them the group has one rank. A second call while the default
 * group exists, or another thread makes it, is HCOMM_INVALID_USAGE.
 */
hcommResult_t hcommInit(void);

/* Destroys the default group. */
hcommResult_t hcommFinalize(void);

/* The default group; HCOMM_INVALID_USAGE before hcommInit() has returned. */
hcommResult_t hcommCommDefault(hcommComm_t *comm);

/*
 * Leaves the group and frees everything it had; heap pointers become invalid.
 * Collective: waits, at most 5 s, until the other ranks are here too, unless
 * the group failed. HCOMM_BUSY while another thread uses the group,
 * HCOMM_INVALID_USAGE while calls of it are noted for hcommGroupEnd().
 */
hcommResult_t hcommCommDestroy(hcommComm_t comm);

/*
 * Ends the group on every rank: calls in progress, here and on the peers,
 * return HCOMM_ABORTED soon. Frees nothing; hcommCommDestroy() does that and
 * then does not wait. Calling it again is success.
 */
hcommResult_t hcommCommAbort(hcommComm_t comm);

/* *@async is why the group ended, HCOMM_SUCCESS while it has not. */
hcommResult_t hcommCommGetAsyncError(hcommComm_t comm, hcommResult_t *async);

/*
 * The text of the last error of @comm, or with NULL of the last failed call
 * of this thread. Never NULL; empty when there was none. Valid until the next
 * call of the library by the same thread.
 */
const char *hcommCommGetLastError(hcommComm_t comm);

typedef struct hcommCommInfo {
	size_t size;			/* in: sizeof(hcommCommInfo_t) of the caller */
	int rank;
	int nranks;
	int ninstances;			/* endpoints the group's ranks live on */
	int instance;			/* index of mine in them, by lowest rank */
	int local_rank;			/* index among the ranks of my instance */
	int local_nranks;
	int same_va;			/* 1: heaps have one address everywhere */
	int authenticated;		/* 1: ranks proved a secret to each other */
	char transport[16];		/* "kmod" or "local" */
	char device[16];		/* "hcomm0", "" for local */
	void *heap_base;		/* my heap */
	size_t heap_size;		/* what hcommSymAlloc() can use, in bytes */
	size_t heap_free;		/* largest block that is free now */
	uint64_t ops;			/* collective operations so far */
	uint32_t user_semaphores;	/* 0 to this - 1 may be named in calls */
	char abi[16];			/* version of the module, "" for local */
} hcommCommInfo_t;

hcommResult_t hcommCommGetInfo(hcommComm_t comm, hcommCommInfo_t *info);
hcommResult_t hcommCommRank(hcommComm_t comm, int *rank);
hcommResult_t hcommCommCount(hcommComm_t comm, int *nranks);

/* -------------------------------------------------------- collectives */

typedef enum hcommDataType {
	HCOMM_INT8 = 0,
	HCOMM_UINT8 = 1,
	HCOMM_INT16 = 2,
	HCOMM_UINT16 = 3,
	HCOMM_INT32 = 4,
	HCOMM_UINT32 = 5,
	HCOMM_INT64 = 6,
	HCOMM_UINT64 = 7,
	HCOMM_BOOL = 8,			/* one byte; not 0 is true, results are 0 or 1 */
	HCOMM_FLOAT16 = 9,
	HCOMM_BFLOAT16 = 10,
	HCOMM_FLOAT32 = 11,
	HCOMM_FLOAT64 = 12,
	HCOMM_NR_TYPES = 13
} hcommDataType_t;

/*
 * Reductions take the ranks in a fixed order: the same call gives the same
 * bits on every rank and in every run. Integers wrap. HCOMM_AVG is the sum,
 * then one division by the number of ranks (integers truncate towards 0).
 * HCOMM_MIN and HCOMM_MAX give NaN when an input is NaN. 16-bit floats are
 * added in 32 bits. For HCOMM_BOOL, SUM and MAX are "or", PROD and MIN are
 * "and", AVG is HCOMM_INVALID_ARGUMENT; so are BAND, BOR, BXOR for floats.
 */
typedef enum hcommRedOp {
	HCOMM_SUM = 0,
	HCOMM_PROD = 1,
	HCOMM_MIN = 2,
	HCOMM_MAX = 3,
	HCOMM_AVG = 4,
	HCOMM_BAND = 5,
	HCOMM_BOR = 6,
	HCOMM_BXOR = 7,
	HCOMM_NR_REDOPS = 8
} hcommRedOp_t;

/* Bytes of one element; 0 for a value that is no type. */
size_t hcommTypeSize(hcommDataType_t type);

/* "float32", "sum"; "?" for a value that is none. */
const char *hcommTypeName(hcommDataType_t type);
const char *hcommRedOpName(hcommRedOp_t op);

/* Counts are elements. Collective, all of them. */

/*
 * recvbuff[i] on every rank = reduction over ranks of sendbuff[i], i < count.
 * In place: sendbuff == recvbuff.
 */
hcommResult_t hcommAllReduce(const void *sendbuff, void *recvbuff,
			     size_t count, hcommDataType_t type,
			     hcommRedOp_t op, hcommComm_t comm,
			     hcommStream_t stream);

/*
 * recvbuff on every rank = sendbuff of @root. sendbuff is read on the root
 * only, elsewhere it may be NULL. In place: sendbuff == recvbuff.
 */
hcommResult_t hcommBroadcast(const void *sendbuff, void *recvbuff,
			     size_t count, hcommDataType_t type, int root,
			     hcommComm_t comm, hcommStream_t stream);

/*
 * As hcommAllReduce(), the result is on @root only; recvbuff may be NULL
 * elsewhere. In place: sendbuff == recvbuff.
 */
hcommResult_t hcommReduce(const void *sendbuff, void *recvbuff, size_t count,
			  hcommDataType_t type, hcommRedOp_t op, int root,
			  hcommComm_t comm, hcommStream_t stream);

/*
 * recvbuff (nranks * sendcount elements) on every rank = the sendbuffs in
 * rank order. In place: sendbuff == recvbuff + rank * sendcount elements.
 */
hcommResult_t hcommAllGather(const void *sendbuff, void *recvbuff,
			     size_t sendcount, hcommDataType_t type,
			     hcommComm_t comm, hcommStream_t stream);

/*
 * recvbuff (recvcount elements) on rank r = reduction of the elements from
 * r * recvcount on of every sendbuff (nranks * recvcount elements). In place:
 * recvbuff == sendbuff + rank * recvcount elements.
 */
hcommResult_t hcommReduceScatter(const void *sendbuff, void *recvbuff,
				 size_t recvcount, hcommDataType_t type,
				 hcommRedOp_t op, hcommComm_t comm,
				 hcommStream_t stream);

/* Returns when every rank has called it. */
hcommResult_t hcommBarrier(hcommComm_t comm, hcommStream_t stream);

/*
 * Point to point. A send to @peer meets the receive of @peer with the same
 * place in the order of calls between the two; bytes must be equal. A send
 * returns when the buffer may be reused, which can be before the peer
 * receives. Sending to oneself works inside a group of calls only.
 */
hcommResult_t hcommSend(const void *sendbuff, size_t count,
			hcommDataType_t type, int peer, hcommComm_t comm,
			hcommStream_t stream);
hcommResult_t hcommRecv(void *recvbuff, size_t count, hcommDataType_t type,
			int peer, hcommComm_t comm, hcommStream_t stream);

/*
 * Between Start and End of one thread collectives, sends and receives are
 * only noted; the outermost End runs them: all sends and receives together
 * (so that a ring of exchanges needs no order), then the collectives in the
 * order of the calls. Arguments are checked at once, and a call that was
 * refused makes End return its error without starting anything; so does a
 * group that has failed or is in use by another thread. Up to 4096 calls.
 * Nests.
 */
hcommResult_t hcommGroupStart(void);
hcommResult_t hcommGroupEnd(void);

/* ----------------------------------------------------- symmetric heap */

/*
 * *@ptr = @size bytes (not 0) of the group's heap, at the same offset on every
 * rank. Collective with equal arguments, makes no barrier: a rank may write
 * to its own memory at once, to a peer's after the next barrier. Aligned to
 * 64 bytes; not cleared. Different arguments on some rank are found by the
 * next collective (HCOMM_MISMATCH). HCOMM_OUT_OF_MEMORY leaves all as it was,
 * on every rank.
 */
hcommResult_t hcommSymAlloc(hcommComm_t comm, void **ptr, size_t size);

/* The same, offset and address being multiples of @align, a power of two up
 * to 1 GiB. The space skipped stays usable.
 */
hcommResult_t hcommAllocAligned(hcommComm_t comm, void **ptr, size_t size,
				size_t align);

/*
 * Gives @ptr (from one of the two above) back. Collective. The space is used
 * again after the next all-reduce, all-gather, reduce-scatter or barrier.
 */
hcommResult_t hcommSymFree(hcommComm_t comm, void *ptr);

/*
 * *@peer_ptr = where @ptr of my heap is in the heap of @rank, for loads and
 * stores from this process; NULL (and success) when @rank is on another
 * instance.
 */
hcommResult_t hcommSymPtr(hcommComm_t comm, const void *ptr, int rank,
			  void **peer_ptr);

/* *@offset = of @ptr (anywhere in my heap), valid on every rank. */
hcommResult_t hcommSymOffset(hcommComm_t comm, const void *ptr,
			     uint64_t *offset);

/* ---------------------------------------------------------- one-sided */

typedef enum hcommMemKind {
	HCOMM_MEM_HOST = 0,
	HCOMM_MEM_GPU = 1		/* HCOMM_NOT_SUPPORTED in this version */
} hcommMemKind_t;

/*
 * Makes a memory object of [base_addr, base_addr + size) and pins it; local,
 * without a group, on the device that HCOMM_DEVICE names. Any alignment. The
 * memory must stay mapped until hcommWinDestroy(). Needs the module.
 */
hcommResult_t hcommWinCreate(hcommWin_t *win, void *base_addr, size_t size,
			     hcommMemKind_t kind);

/*
 * Exports @win into @comm. Collective: the n-th attach of each rank are one
 * window, of a size of its own on each rank. @flags is 0. A window may be
 * attached to several groups, once to each.
 */
hcommResult_t hcommWinAttach(hcommComm_t comm, hcommWin_t win,
			     unsigned int flags);

/*
 * Ends the window in all groups and frees it. Peers that use it afterwards
 * get an error, for that operation only. HCOMM_BUSY while an operation of
 * this process uses it; call it again.
 */
hcommResult_t hcommWinDestroy(hcommWin_t win);

/*
 * @win NULL means the symmetric heap, offsets as hcommSymOffset() gives them.
 * Otherwise @win is attached to @comm, and offsets count from the start of
 * the peer's window. A range that does not lie inside is
 * HCOMM_INVALID_ARGUMENT, told by the peer's kernel if only it can know; the
 * group lives on. Local buffers are any host memory.
 *
 * Semaphores: 0 to user_semaphores - 1 of hcommCommGetInfo(), 64-bit counters
 * of each rank, 0 at first. What one rank adds to one semaphore of a peer is
 * seen in the order of the calls, after the data of all earlier puts of that
 * rank to that peer: waiting for n means that the first n are there.
 */

/* Writes; @src may be reused on return, the data arrives later. */
hcommResult_t hcommPut(const void *src, size_t bytes, int peer,
		       hcommWin_t win, uint64_t offset, hcommComm_t comm,
		       hcommStream_t stream);

/* Writes, then adds @delta (1 to 2^31) to semaphore @sem of @peer. */
hcommResult_t hcommPutSignal(const void *src, size_t bytes, int peer,
			     hcommWin_t win, uint64_t offset, uint32_t sem,
			     uint32_t delta, hcommComm_t comm,
			     hcommStream_t stream);

/* Reads; the data is in @dst on return. */
hcommResult_t hcommGet(void *dst, size_t bytes, int peer, hcommWin_t win,
		       uint64_t offset, hcommComm_t comm,
		       hcommStream_t stream);

/* Adds @delta (1 to 2^31) to semaphore @sem of @peer. */
hcommResult_t hcommSignal(int peer, uint32_t sem, uint32_t delta,
			  hcommComm_t comm, hcommStream_t stream);

/* Returns when my semaphore @sem is at least @value. */
hcommResult_t hcommWait(uint32_t sem, uint64_t value, hcommComm_t comm,
			hcommStream_t stream);

/* Earlier puts and signals to @peer come before later ones. */
hcommResult_t hcommFence(int peer, hcommComm_t comm, hcommStream_t stream);

/* Returns when all my puts and signals have arrived. */
hcommResult_t hcommQuiet(hcommComm_t comm, hcommStream_t stream);

#ifdef __cplusplus
}
#endif

#endif /* HCOMM_H */
