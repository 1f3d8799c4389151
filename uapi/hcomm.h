/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The interface of /dev/hcommN.
 *
 * One open file is either fresh, or the membership of one process in one
 * group (after JOIN). Calls dispatch on the ioctl type and number; the size
 * comes from the command, so a structure may grow at its end: a larger one
 * with non-zero bytes that this kernel does not know is refused with -E2BIG,
 * a shorter one is completed with zeroes. Unknown flags and non-zero
 * reserved fields are refused with -EINVAL. All integers are in host order,
 * 64-bit processes only. Times are relative, in nanoseconds.
 *
 * Every call but QUERY is refused with -EPERM unless the caller's address
 * space is the one that made the membership or the memory object.
 */
#ifndef _UAPI_HCOMM_H
#define _UAPI_HCOMM_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HCOMM_ABI_VERSION	1

#define HCOMM_ID_BYTES		16	/* instance and group ids */
#define HCOMM_SECRET_BYTES	32
#define HCOMM_MAX_RANKS		4096
#define HCOMM_MAX_WAITS		8
#define HCOMM_EAGER_MAX		1024	/* bytes carried inside one message */
#define HCOMM_USER_SEMS		32	/* default number of user semaphores */
#define HCOMM_CHANNEL_SEMS	32	/* library channels, after the user's */
#define HCOMM_SEM_LINE		64	/* bytes from one semaphore to the next */
#define HCOMM_SEM_FIRST_LINE	2	/* lines 0 and 1 hold the group's state */
#define HCOMM_MAX_TIMEOUT_NS	(24ULL * 3600 * 1000000000)

/* ------------------------------------------------------------- QUERY */

/**
 * struct hcomm_query - what this instance and this kernel offer
 *
 * All fields are written by the kernel, whatever the caller's size.
 *
 * @abi:		HCOMM_ABI_VERSION of the module
 * @instance:		N of /dev/hcommN
 * @features:		bits HCOMM_FEAT_*
 * @instance_id:	random, new whenever the instance is made
 * @addr:		IPv6 (or IPv4-mapped) address of the first active port
 *			of the instance in network order; zeroes when none
 * @listen_port:	port of the connection manager that peers connect to
 * @nr_ports:		RDMA ports owned by the instance
 * @page_size:		the unit of pinning
 * @max_ranks:		largest group
 * @max_members:	memberships one process may hold on this instance
 * @max_objects:	memory objects one process may hold on this instance
 * @max_windows:	windows one membership may hold
 * @max_sq_entries:	largest submission ring
 * @max_cq_entries:	largest completion ring
 * @max_op_bytes:	longest single operation
 * @version:		NUL-terminated version of the module
 */
struct hcomm_query {
	__u32 abi;
	__u32 instance;
	__u64 features;
	__u8  instance_id[HCOMM_ID_BYTES];
	__u8  addr[16];
	__u16 listen_port;
	__u16 nr_ports;
	__u32 page_size;
	__u32 max_ranks;
	__u32 max_members;
	__u32 max_objects;
	__u32 max_windows;
	__u32 max_sq_entries;
	__u32 max_cq_entries;
	__u64 max_op_bytes;
	char  version[32];
};

#define HCOMM_FEAT_TRIGGER	(1ULL << 0)	/* ops may wait for a semaphore */
#define HCOMM_FEAT_BROKER	(1ULL << 1)	/* HEAP_OFFER, HEAP_TAKE */
#define HCOMM_FEAT_RDMA		(1ULL << 2)	/* at least one RDMA port */

/* -------------------------------------------------------- membership */

/**
 * struct hcomm_peer - where the rank of a group lives
 *
 * A hint: the peer's kernel states its own id and proves the rank. A rank
 * whose @instance_id is all zeroes is not known yet (SET_PEERS tells later).
 */
struct hcomm_peer {
	__u8  instance_id[HCOMM_ID_BYTES];
	__u8  addr[16];			/* IPv6 or IPv4-mapped, network order */
	__u16 port;			/* of its connection manager, host order */
	__u16 reserved0;
	__u32 reserved1;
};

/**
 * struct hcomm_join - become rank @rank of a group of @size
 *
 * @group_id:		the group's 128-bit id
 * @secret:		the group's secret; ranks prove it to each other
 * @peers:		pointer to @nr_peers struct hcomm_peer, from rank 0 on
 * @nr_peers:		0 to @size
 * @user_sems:		user semaphores, 0 for HCOMM_USER_SEMS, at most 1024
 * @op_timeout_ns:	deadline of each op, 0 for 590 s, at most 24 h
 * @flags:		HCOMM_JOIN_*
 * @member:		out: index of this membership in the process, used in
 *			struct hcomm_wait
 * @nr_sems:		out: @user_sems + HCOMM_CHANNEL_SEMS + 2 * @size
 * @sem_off:		out: mmap offset of the semaphore pages (read-only)
 * @sem_bytes:		out: their length, a multiple of the page size
 * @wake_off:		out: mmap offset of the process's wake page (read-only,
 *			struct hcomm_wake_page, one page)
 */
struct hcomm_join {
	__u8  group_id[HCOMM_ID_BYTES];
	__u8  secret[HCOMM_SECRET_BYTES];
	__u32 rank;
	__u32 size;
	__u64 peers;
	__u32 nr_peers;
	__u32 user_sems;
	__u64 op_timeout_ns;
	__u32 flags;
	__u32 member;
	__u32 nr_sems;
	__u32 reserved;
	__u64 sem_off;
	__u64 sem_bytes;
	__u64 wake_off;
};

#define HCOMM_JOIN_UNAUTHENTICATED	(1U << 0) /* secret travelled in clear */

/**
 * struct hcomm_set_peers - complete or extend the table given at JOIN
 *
 * An entry that is already known may only be repeated with the same id.
 */
struct hcomm_set_peers {
	__u64 peers;
	__u32 first;			/* rank of the first entry */
	__u32 count;
};

/*
 * The group as one member sees it: line 0 of the semaphore pages. @state is
 * written last, with release; the others are valid once it is not ACTIVE.
 */
struct hcomm_state_line {
	__u32 state;			/* HCOMM_STATE_* */
	__s32 error;			/* negative errno that ops end with */
	__u32 cause;			/* HCOMM_CAUSE_* */
	__u32 rank;			/* whom it is about, HCOMM_NO_RANK if none */
	__u64 op;			/* flow or library op number, as the cause says */
	__u64 reserved[5];
};

#define HCOMM_NO_RANK		0xffffffffU

enum hcomm_state {
	HCOMM_STATE_ACTIVE = 0,
	HCOMM_STATE_ERROR = 1,		/* ops end with @error, windows are revoked */
	HCOMM_STATE_LEFT = 2,		/* this membership has ended */
};

enum hcomm_cause {
	HCOMM_CAUSE_NONE = 0,
	HCOMM_CAUSE_ABORT = 1,		/* a member called ABORT */
	HCOMM_CAUSE_PROCESS = 2,	/* a member's process ended without LEAVE */
	HCOMM_CAUSE_NODE = 3,		/* a peer kernel fell silent or restarted */
	HCOMM_CAUSE_LINK = 4,		/* no path to a peer within the deadline */
	HCOMM_CAUSE_TIMEOUT = 5,	/* an op reached its deadline */
	HCOMM_CAUSE_PROTOCOL = 6,	/* a peer broke the protocol */
	HCOMM_CAUSE_PROOF = 7,		/* a peer could not prove the secret */
	HCOMM_CAUSE_REVOKED = 8,	/* an administrator ended the group */
};

/* Page at hcomm_join.wake_off: one per process and instance. */
struct hcomm_wake_page {
	__u32 wake;		/* WAKE, events, state changes */
	__u32 activity;		/* the same, completions and signals */
};

/* ------------------------------------------------------------- rings */

/**
 * struct hcomm_ring_setup - make the submission, completion and event rings
 *
 * Entries are rounded up to powers of two. All offsets named *_at are bytes
 * from the start of the ring mapping. Heads and tails are free-running __u32.
 * Who produces stores the tail with release, who consumes loads it with
 * acquire, and the other way round for the head. The kernel keeps its own
 * copies and never trusts what it reads back.
 */
struct hcomm_ring_setup {
	__u32 sq_entries;	/* in/out, 0 for 256 */
	__u32 cq_entries;	/* in/out, 0 for twice sq_entries */
	__u32 event_entries;	/* in/out, 0 for 1024 */
	__u32 flags;		/* none defined */
	__u64 ring_off;		/* out: mmap offset of indices, CQEs, events */
	__u64 ring_bytes;
	__u64 sqe_off;		/* out: mmap offset of the SQEs */
	__u64 sqe_bytes;
	__u32 sq_head_at;	/* kernel writes */
	__u32 sq_tail_at;	/* process writes */
	__u32 cq_head_at;	/* process writes */
	__u32 cq_tail_at;	/* kernel writes */
	__u32 event_head_at;	/* process writes */
	__u32 event_tail_at;	/* kernel writes */
	__u32 cqes_at;
	__u32 events_at;
};

enum hcomm_opcode {
	HCOMM_OP_NOP = 0,	/* completes at once */
	HCOMM_OP_PUT = 1,	/* object -> remote window, then add delta to sem
				 * when HCOMM_OPF_SIGNAL
				 */
	HCOMM_OP_GET = 2,	/* remote window -> object */
	HCOMM_OP_SIGNAL = 3,	/* add delta to sem of rank */
	HCOMM_OP_WAIT = 4,	/* completes when wait_sem >= wait_value */
	HCOMM_OP_FENCE = 5,	/* completes when all earlier ops to rank have */
	HCOMM_OP_COPY = 6,	/* object -> own window, no peer involved */
};

#define HCOMM_OPF_SIGNAL	(1U << 0)	/* PUT, COPY: signal after the data */
#define HCOMM_OPF_WAIT		(1U << 1)	/* start when wait_sem >= wait_value */
#define HCOMM_OPF_UNORDERED	(1U << 2)	/* signal need not wait for earlier ops */
#define HCOMM_OPF_SILENT	(1U << 3)	/* no CQE when the op succeeds */

/* 64 bytes. Fields that the opcode does not use must be zero. */
struct hcomm_sqe {
	__u8  opcode;
	__u8  flags;		/* HCOMM_OPF_* */
	__u16 sem;		/* semaphore of the target rank */
	__u32 rank;		/* target */
	__u64 user_data;	/* returned in the CQE */
	__u32 object;		/* local memory object */
	__u32 window;		/* window of the target rank */
	__u64 local_off;	/* in bytes from the object's base */
	__u64 remote_off;	/* in bytes from the window's start */
	__u64 length;
	__u32 delta;		/* added to sem */
	__u16 wait_sem;		/* own semaphore, with HCOMM_OPF_WAIT or OP_WAIT */
	__u16 reserved;
	__u64 wait_value;
};

/* 32 bytes. */
struct hcomm_cqe {
	__u64 user_data;
	__s32 result;		/* 0 or a negative errno */
	__u32 rank;		/* the SQE's target */
	__u64 flow_seq;		/* number of the op in its flow; 0 if it had none */
	__u64 reserved;
};

enum hcomm_event_kind {
	HCOMM_EVENT_MEMBER_UP = 1,	/* rank proved itself; value: 0 */
	HCOMM_EVENT_MEMBER_LEFT = 2,	/* rank called LEAVE */
	HCOMM_EVENT_MEMBER_DEAD = 3,	/* rank's process ended without LEAVE */
	HCOMM_EVENT_GROUP_ERROR = 4,	/* value: HCOMM_CAUSE_* */
	HCOMM_EVENT_QUIESCED = 5,	/* value: window that no peer can reach now */
	HCOMM_EVENT_NOT_QUIESCED = 6,	/* value: sibling window of one being revoked */
	HCOMM_EVENT_PATH_DOWN = 7,	/* a path to rank's instance went down */
	HCOMM_EVENT_PATH_UP = 8,
};

#define HCOMM_ANY_WINDOW	(~0ULL)

/*
 * 32 bytes. Equal (kind, rank) that wait for room in the ring are merged and
 * have the last value: @count tells how many. The two kinds about windows come
 * one by one; if too many wait, the rest of a kind is merged and has the value
 * HCOMM_ANY_WINDOW: look at all of them.
 */
struct hcomm_event {
	__u32 kind;
	__u32 rank;
	__u64 value;
	__u64 count;
	__u64 reserved;
};

/* ------------------------------------------------------------- ENTER */

struct hcomm_wait {
	__u32 member;		/* hcomm_join.member of a group of this process */
	__u32 sem;		/* index of its semaphore */
	__u64 value;		/* satisfied when the semaphore is >= value */
};

/**
 * struct hcomm_enter - submit, wake a local peer, sleep: in this order
 *
 * @flags:	HCOMM_ENTER_*
 * @to_submit:	SQEs to take from the ring
 * @wake_rank:	with HCOMM_ENTER_WAKE, a rank of this group on this instance
 * @nr_waits:	0 to HCOMM_MAX_WAITS
 * @waits:	pointer to struct hcomm_wait
 * @timeout_ns:	with HCOMM_ENTER_WAIT, relative, at most 24 h
 * @wake:	the wake generation last read from the wake page
 * @activity:	the activity generation last read; used when @nr_waits is 0
 * @submitted:	out: SQEs taken
 * @ready:	out: bit i is set when waits[i] is satisfied
 *
 * The sleep ends when a wait is satisfied, when the wake generation is no
 * longer @wake, when @nr_waits is 0 and the activity generation is no longer
 * @activity, when a named group (or this one) is no longer active, at the
 * deadline (-ETIME), or by a signal (-EINTR; -ERESTARTSYS is not used, the
 * caller decides). When SQEs were taken, an invalid SQE ends the taking: it
 * gets a CQE with its errno and counts as taken. -EBUSY when none could be
 * taken because the completion ring has no free slot.
 */
struct hcomm_enter {
	__u32 flags;
	__u32 to_submit;
	__u32 wake_rank;
	__u32 nr_waits;
	__u64 waits;
	__u64 timeout_ns;
	__u32 wake;
	__u32 activity;
	__u32 submitted;
	__u32 ready;
};

#define HCOMM_ENTER_WAIT	(1U << 0)
#define HCOMM_ENTER_WAKE	(1U << 1)

/* ------------------------------------------------ memory and windows */

/**
 * struct hcomm_mem_create - pin a range of the caller's memory
 *
 * @base:	any address; the covering pages are pinned, writable
 * @length:	in bytes, not 0
 * @kind:	HCOMM_MEM_KIND_*
 * @flags:	none defined
 * @object:	out: handle, valid on every file of this process and instance
 * @memlock_limit: out, also on -ENOMEM: RLIMIT_MEMLOCK in bytes (~0: none)
 * @memlock_used:  out, also on -ENOMEM: bytes that count against it now
 */
struct hcomm_mem_create {
	__u64 base;
	__u64 length;
	__u32 kind;
	__u32 flags;
	__u32 object;
	__u32 reserved;
	__u64 memlock_limit;
	__u64 memlock_used;
};

#define HCOMM_MEM_KIND_HOST	0

struct hcomm_mem_destroy {
	__u32 object;		/* -EBUSY while a window or an op uses it */
	__u32 flags;
};

/**
 * struct hcomm_win_attach - export a memory object into this group
 *
 * @window:	chosen by the caller, the same on every rank; -EEXIST if it was
 *		ever used in this membership
 * @generation:	out
 */
struct hcomm_win_attach {
	__u32 object;
	__u32 window;
	__u32 flags;
	__u32 generation;
};

/* The window ends; EVENT_QUIESCED tells when no peer can reach it any more. */
struct hcomm_win_detach {
	__u32 window;
	__u32 flags;
};

/* ------------------------------------------------------------ broker */

/**
 * struct hcomm_heap_offer - let proven local members map this file
 *
 * A regular tmpfs or hugetlbfs file, open read-write, of exactly @size bytes.
 */
struct hcomm_heap_offer {
	__s32 fd;
	__u32 segment;		/* 0..63, each once */
	__u64 size;
};

/* -EAGAIN: not offered yet. -ENOENT: no such local member. */
struct hcomm_heap_take {
	__u32 rank;
	__u32 segment;
	__u64 size;		/* out */
	__s32 fd;		/* out, close-on-exec */
	__u32 reserved;
};

/* -------------------------------------------------------------- error */

/* Ends the group for every rank; each sees CAUSE_ABORT and the caller's rank. */
struct hcomm_abort {
	__s32 error;		/* negative errno, 0 for -ECANCELED */
	__u32 flags;
	__u64 op;		/* library op number, told to the others */
};

struct hcomm_get_error {
	__u32 state;
	__s32 error;
	__u32 cause;
	__u32 rank;
	__u64 op;
	__u64 age_ns;		/* since the state changed */
};

#define HCOMM_IOC_MAGIC		0xD5

#define HCOMM_IOC_QUERY		_IOWR(HCOMM_IOC_MAGIC, 0x00, struct hcomm_query)
#define HCOMM_IOC_JOIN		_IOWR(HCOMM_IOC_MAGIC, 0x01, struct hcomm_join)
#define HCOMM_IOC_LEAVE		_IO(HCOMM_IOC_MAGIC, 0x02)
#define HCOMM_IOC_SET_PEERS	_IOW(HCOMM_IOC_MAGIC, 0x03, struct hcomm_set_peers)
#define HCOMM_IOC_RING_SETUP	_IOWR(HCOMM_IOC_MAGIC, 0x04, struct hcomm_ring_setup)
#define HCOMM_IOC_ENTER		_IOWR(HCOMM_IOC_MAGIC, 0x05, struct hcomm_enter)
#define HCOMM_IOC_MEM_CREATE	_IOWR(HCOMM_IOC_MAGIC, 0x06, struct hcomm_mem_create)
#define HCOMM_IOC_MEM_DESTROY	_IOW(HCOMM_IOC_MAGIC, 0x07, struct hcomm_mem_destroy)
#define HCOMM_IOC_WIN_ATTACH	_IOWR(HCOMM_IOC_MAGIC, 0x08, struct hcomm_win_attach)
#define HCOMM_IOC_WIN_DETACH	_IOW(HCOMM_IOC_MAGIC, 0x09, struct hcomm_win_detach)
#define HCOMM_IOC_HEAP_OFFER	_IOW(HCOMM_IOC_MAGIC, 0x0a, struct hcomm_heap_offer)
#define HCOMM_IOC_HEAP_TAKE	_IOWR(HCOMM_IOC_MAGIC, 0x0b, struct hcomm_heap_take)
#define HCOMM_IOC_ABORT		_IOW(HCOMM_IOC_MAGIC, 0x0c, struct hcomm_abort)
#define HCOMM_IOC_GET_ERROR	_IOWR(HCOMM_IOC_MAGIC, 0x0d, struct hcomm_get_error)

#endif /* _UAPI_HCOMM_H */
