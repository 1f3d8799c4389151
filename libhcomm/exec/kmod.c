// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device as transport. One file is this rank's membership; its rings,
 * semaphores and the process's wake page are mapped. The heap is a memory
 * object, window 0 of the group, and offered to the ranks of this instance,
 * which map it.
 *
 * Only the thread that uses the group touches the rings; ABORT may come from
 * any thread. The kernel has the matching barriers: it loads the submission
 * tail with acquire and stores the completion tail, the semaphores and the
 * state line with release.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "config/files.h"
#include "exec/comm.h"
#include "exec/device.h"
#include "exec/onesided.h"
#include "exec/wait.h"
#include "uapi/hcomm.h"

#define HEAP_WINDOW	0
#define SQ_ENTRIES	128
#define MSEC		1000000ULL

struct kmod_wire {
	struct hcomm_device *dev;
	int fd;
	bool joined;
	uint32_t member;
	uint32_t heap_object;
	bool has_heap_object;

	char *sems;
	size_t sem_bytes;
	struct hcomm_wake_page *wake_page;
	size_t wake_bytes;
	uint32_t wake;			/* as read before the last look */
	uint32_t activity;
	bool refused;			/* no completion slot was free ... */
	uint32_t refused_at;		/* ... at this activity */

	char *ring;
	struct hcomm_sqe *sqes;
	struct hcomm_ring_setup layout;
	uint32_t sq_tail;
	uint32_t cq_head;
	uint32_t event_head;

	int message_error;		/* first failed message, and to whom */
	int message_rank;
	uint64_t message_time;
};

/* What a negative errno of an ABORT means, and the other way round. */
static const struct {
	hcommResult_t result;
	int error;
} abort_codes[] = {
	{ HCOMM_ABORTED, -ECANCELED },
	{ HCOMM_TIMEOUT, -ETIMEDOUT },
	{ HCOMM_MISMATCH, -EBADMSG },
	{ HCOMM_REMOTE_ERROR, -EREMOTEIO },
	{ HCOMM_INTERNAL_ERROR, -EIO },
};

/*
 * The op number of an ABORT is the library's own affair: its upper bits say
 * whom the caller blames, as 1 + rank.
 */
#define BLAME_SHIFT	48
#define OP_MASK		((1ULL << BLAME_SHIFT) - 1)

#define NR_ABORT_CODES	(sizeof(abort_codes) / sizeof(abort_codes[0]))

static int error_of(hcommResult_t result)
{
	size_t i;

	for (i = 0; i < NR_ABORT_CODES; i++)
		if (abort_codes[i].result == result)
			return abort_codes[i].error;
	return -EREMOTEIO;
}

static hcommResult_t result_of(int error)
{
	size_t i;

	for (i = 0; i < NR_ABORT_CODES; i++)
		if (abort_codes[i].error == error)
			return abort_codes[i].result;
	return HCOMM_REMOTE_ERROR;
}

static struct hcomm_state_line *state_line(const struct kmod_wire *wire)
{
	return (struct hcomm_state_line *)wire->sems;
}

static uint32_t *index_at(const struct kmod_wire *wire, uint32_t at)
{
	return (uint32_t *)(wire->ring + at);
}

/* -------------------------------------------------------------- opening */

static int map(int fd, uint64_t offset, size_t bytes, int prot, void *to)
{
	void *at = mmap(NULL, bytes, prot, MAP_SHARED, fd, (off_t)offset);

	if (at == MAP_FAILED)
		return -errno;
	*(void **)to = at;
	return 0;
}

static int join(struct hcommComm *comm, struct kmod_wire *wire)
{
	struct hcomm_peer *peers = calloc((size_t)comm->n, sizeof(*peers));
	struct hcomm_join arg = {
		.rank = (uint32_t)comm->rank, .size = (uint32_t)comm->n,
		.peers = (uint64_t)(uintptr_t)peers,
		.nr_peers = (uint32_t)comm->n,
		.user_sems = HCOMM_USER_SEMAPHORES,
		.op_timeout_ns = comm->settings.timeout_ns,
		.flags = comm->authenticated ? 0 : HCOMM_JOIN_UNAUTHENTICATED,
	};
	int r, err;

	if (!peers)
		return -ENOMEM;
	for (r = 0; r < comm->n; r++) {
		memcpy(peers[r].instance_id, comm->table[r].instance_id, 16);
		memcpy(peers[r].addr, comm->table[r].addr, 16);
		peers[r].port = comm->table[r].port;
	}
	memcpy(arg.group_id, comm->group_id, sizeof(arg.group_id));
	memcpy(arg.secret, comm->secret, sizeof(arg.secret));
	err = ioctl(wire->fd, HCOMM_IOC_JOIN, &arg) ? -errno : 0;
	explicit_bzero(arg.secret, sizeof(arg.secret));
	free(peers);
	if (err)
		return err;
	wire->joined = true;
	wire->member = arg.member;
	wire->sem_bytes = arg.sem_bytes;
	wire->wake_bytes = (size_t)sysconf(_SC_PAGESIZE);
	err = map(wire->fd, arg.sem_off, wire->sem_bytes, PROT_READ,
		  &wire->sems);
	if (err)
		return err;
	return map(wire->fd, arg.wake_off, wire->wake_bytes, PROT_READ,
		   &wire->wake_page);
}

static int set_up_rings(struct kmod_wire *wire)
{
	struct hcomm_ring_setup *layout = &wire->layout;
	int err;

	layout->sq_entries = SQ_ENTRIES;
	/* Signals without a buffer hold a slot until they are acknowledged. */
	layout->cq_entries = 8 * SQ_ENTRIES;
	if (ioctl(wire->fd, HCOMM_IOC_RING_SETUP, layout))
		return -errno;
	err = map(wire->fd, layout->ring_off, layout->ring_bytes,
		  PROT_READ | PROT_WRITE, &wire->ring);
	if (err)
		return err;
	return map(wire->fd, layout->sqe_off, layout->sqe_bytes,
		   PROT_READ | PROT_WRITE, &wire->sqes);
}

static int export_heap(struct hcommComm *comm, struct kmod_wire *wire)
{
	struct hcomm_win_attach attach = {
		.object = wire->heap_object, .window = HEAP_WINDOW,
	};
	struct hcomm_heap_offer offer = {
		.fd = comm->heap_fd, .size = comm->layout.bytes,
	};

	if (ioctl(wire->fd, HCOMM_IOC_WIN_ATTACH, &attach) ||
	    ioctl(wire->fd, HCOMM_IOC_HEAP_OFFER, &offer))
		return -errno;
	return 0;
}

static int make_heap(struct hcommComm *comm, struct kmod_wire *wire, char *why,
		     size_t bytes)
{
	int err, fd = hcomm_heap_create(comm->layout.bytes, why, bytes);

	if (fd < 0)
		return fd;
	comm->heap_fd = fd;
	comm->heap = hcomm_reserve_map(&comm->reserve, 0, fd,
				       comm->layout.bytes);
	if (!comm->heap)
		return -errno;
	err = hcomm_device_pin(wire->dev, comm->heap, comm->layout.bytes,
			       &wire->heap_object, why, bytes);
	wire->has_heap_object = !err;
	return err;
}

static int become_member(struct hcommComm *comm, struct kmod_wire *wire,
			 char *why, size_t bytes)
{
	int err;

	err = hcomm_device_get(comm->settings.device, &wire->dev);
	if (err)
		return err;
	err = make_heap(comm, wire, why, bytes);
	if (err)
		return err;
	wire->fd = hcomm_device_open(comm->settings.device);
	if (wire->fd < 0)
		return wire->fd;
	err = join(comm, wire);
	if (err)
		return err;
	err = set_up_rings(wire);
	if (err)
		return err;
	return export_heap(comm, wire);
}

static int take_heap(struct hcommComm *comm, struct kmod_wire *wire, int rank)
{
	struct hcomm_heap_take take = { .rank = (uint32_t)rank };
	struct hcomm_rank_state *peer = hcomm_rank(comm, rank);
	int err, fd;

	if (ioctl(wire->fd, HCOMM_IOC_HEAP_TAKE, &take))
		return -errno;
	fd = hcomm_file_own(take.fd);
	if (fd < 0)
		return fd;
	err = hcomm_heap_check(fd, comm->layout.bytes);
	if (!err) {
		peer->heap = hcomm_reserve_map(&comm->reserve, 1 + rank,
					       fd, comm->layout.bytes);
		if (!peer->heap)
			err = -errno;
	}
	close(fd);
	return err;
}

static int take_heaps(struct hcommComm *comm, struct kmod_wire *wire)
{
	int i, err;

	for (i = 0; i < comm->nlocal; i++) {
		int rank = comm->locals[i];

		if (rank == comm->rank) {
			hcomm_rank(comm, rank)->heap = comm->heap;
			continue;
		}
		err = take_heap(comm, wire, rank);
		if (err)
			return err;
	}
	return 0;
}

static hcommResult_t say(struct hcommComm *comm, int err, char *why,
			 size_t bytes, const char *what)
{
	if (!err)
		return HCOMM_SUCCESS;
	if (!*why)
		snprintf(why, bytes, "%s on /dev/%s: %s%s", what,
			 comm->settings.device, strerror(-err),
			 hcomm_files_advice(err));
	switch (err) {
	case -ENOMEM:
		return HCOMM_OUT_OF_MEMORY;
	case -EACCES:
	case -EPERM:
		return HCOMM_PERMISSION_DENIED;
	default:
		return HCOMM_SYSTEM_ERROR;
	}
}

static hcommResult_t kmod_open(struct hcommComm *comm, struct hcomm_boot *boot)
{
	struct kmod_wire *wire = calloc(1, sizeof(*wire));
	char why[384] = "";
	hcommResult_t res;
	int err = -ENOMEM;

	if (wire) {
		wire->fd = -1;
		comm->wire = wire;
		err = become_member(comm, wire, why, sizeof(why));
	}
	res = hcomm_boot_sync(boot, say(comm, err, why, sizeof(why),
					"joining the group"), why);
	if (res)
		return res;
	err = take_heaps(comm, wire);
	return hcomm_boot_sync(boot, say(comm, err, why, sizeof(why),
					 "taking the heap of a local rank"),
			       why);
}

/* -------------------------------------------------------------- closing */

/*
 * The kernel may still be telling peers about the window: a short while. What
 * is left then goes with the process's last use of the device.
 */
static void drop_heap_object(struct kmod_wire *wire)
{
	struct timespec ts = { .tv_nsec = (long)MSEC };
	uint64_t end = hcomm_now() + 100 * MSEC;

	while (hcomm_device_unpin(wire->dev, wire->heap_object) == -EBUSY &&
	       hcomm_now() < end)
		nanosleep(&ts, NULL);
}

static void kmod_close(struct hcommComm *comm)
{
	struct kmod_wire *wire = comm->wire;

	if (!wire)
		return;
	if (comm->ctrl)
		__atomic_store_n(&comm->ctrl->left, 1, __ATOMIC_SEQ_CST);
	if (wire->joined)
		ioctl(wire->fd, HCOMM_IOC_LEAVE);
	if (wire->sqes)
		munmap(wire->sqes, wire->layout.sqe_bytes);
	if (wire->ring)
		munmap(wire->ring, wire->layout.ring_bytes);
	if (wire->wake_page)
		munmap(wire->wake_page, wire->wake_bytes);
	if (wire->sems)
		munmap(wire->sems, wire->sem_bytes);
	if (wire->fd >= 0)
		close(wire->fd);
	if (wire->has_heap_object)
		drop_heap_object(wire);
	if (wire->dev)
		hcomm_device_put(wire->dev);
	free(wire);
	comm->wire = NULL;
}

/* ------------------------------------------------------ sleeping, waking */

static void kmod_park_begin(struct hcommComm *comm)
{
	struct kmod_wire *wire = comm->wire;

	wire->wake = __atomic_load_n(&wire->wake_page->wake, __ATOMIC_SEQ_CST);
	wire->activity = __atomic_load_n(&wire->wake_page->activity,
					 __ATOMIC_SEQ_CST);
}

/*
 * The semaphores among the conditions, if they are all that can happen:
 * flags of local ranks arrive as a wake. 0 means "any activity".
 */
static uint32_t semaphores_of(const struct kmod_wire *wire,
			      const struct hcomm_cond *conds, int nr,
			      struct hcomm_wait *waits)
{
	uint32_t count = 0;
	int i;

	for (i = 0; i < nr; i++) {
		uint64_t local = 0;

		if (conds[i].kind == HCOMM_COND_DEVICE)
			return 0;
		if (conds[i].kind != HCOMM_COND_SEM &&
		    conds[i].kind != HCOMM_COND_USER)
			continue;
		if (count == HCOMM_MAX_WAITS)
			return 0;
		if (conds[i].word2)
			local = __atomic_load_n(conds[i].word2,
						__ATOMIC_SEQ_CST);
		if (local > conds[i].value)
			local = conds[i].value;
		waits[count++] = (struct hcomm_wait) {
			.member = wire->member, .sem = conds[i].sem,
			.value = conds[i].value - local,
		};
	}
	return count;
}

static void kmod_park(struct hcommComm *comm, const struct hcomm_cond *conds,
		      int nr, uint64_t ns)
{
	struct kmod_wire *wire = comm->wire;
	struct hcomm_wait waits[HCOMM_MAX_WAITS];
	struct hcomm_enter arg = {
		.flags = HCOMM_ENTER_WAIT, .timeout_ns = ns,
		.wake = wire->wake, .activity = wire->activity,
		.waits = (uint64_t)(uintptr_t)waits,
	};

	arg.nr_waits = semaphores_of(wire, conds, nr, waits);
	if (!arg.nr_waits)
		arg.waits = 0;
	/* Whatever ends it, the caller looks again. */
	ioctl(wire->fd, HCOMM_IOC_ENTER, &arg);
}

static void kmod_wake(struct hcommComm *comm, int rank)
{
	struct kmod_wire *wire = comm->wire;
	struct hcomm_enter arg = {
		.flags = HCOMM_ENTER_WAKE, .wake_rank = (uint32_t)rank,
	};

	ioctl(wire->fd, HCOMM_IOC_ENTER, &arg);
}

/* -------------------------------------------------------------- failures */

static void fail_by_cause(struct hcommComm *comm,
			  const struct hcomm_state_line *line)
{
	int rank = line->rank == HCOMM_NO_RANK ? -1 : (int)line->rank;
	int pid = rank >= 0 && rank < comm->n ?
		  (int)comm->table[rank].pid : 0;
	unsigned long long op = line->op & OP_MASK;
	int blamed = (int)(line->op >> BLAME_SHIFT) - 1;
	hcommResult_t result = result_of(line->error);

	switch (line->cause) {
	case HCOMM_CAUSE_ABORT:
		if (result == HCOMM_ABORTED)
			hcomm_comm_fail(comm, result, rank, true,
					"rank %d called hcommCommAbort()",
					rank);
		else
			hcomm_comm_fail(comm, result, blamed, true,
					"rank %d ended the group at its "
					"operation %llu because of rank %d: %s",
					rank, op, blamed,
					hcommGetErrorString(result));
		break;
	case HCOMM_CAUSE_PROCESS:
		hcomm_comm_fail(comm, HCOMM_REMOTE_ERROR, rank, true,
				"the process of rank %d (pid %d) ended without "
				"hcommCommDestroy(): see its output, destroy "
				"this group, make another", rank, pid);
		break;
	case HCOMM_CAUSE_NODE:
		hcomm_comm_fail(comm, HCOMM_REMOTE_ERROR, rank, true,
				"the node of rank %d fell silent or restarted",
				rank);
		break;
	case HCOMM_CAUSE_LINK:
		hcomm_comm_fail(comm, HCOMM_REMOTE_ERROR, rank, true,
				"no path to the node of rank %d: see "
				"hcomm_diag --link-status", rank);
		break;
	case HCOMM_CAUSE_TIMEOUT:
		hcomm_comm_fail(comm, HCOMM_TIMEOUT, rank, true,
				"a transfer to or from rank %d did not finish "
				"within %.3g s: see hcomm_diag --link-status, "
				"or raise HCOMM_TIMEOUT", rank,
				(double)comm->settings.timeout_ns / 1e9);
		break;
	case HCOMM_CAUSE_PROOF:
		hcomm_comm_fail(comm, HCOMM_PERMISSION_DENIED, rank, true,
				"rank %d could not prove that it knows the "
				"group's secret", rank);
		break;
	case HCOMM_CAUSE_REVOKED:
		hcomm_comm_fail(comm, HCOMM_ABORTED, rank, true,
				"an administrator ended the group");
		break;
	default:
		hcomm_comm_fail(comm, HCOMM_INTERNAL_ERROR, rank, true,
				"the module ended the group: cause %u, rank "
				"%d, %s", line->cause, rank,
				strerror(-line->error));
	}
}

static bool kmod_failed(struct hcommComm *comm)
{
	const struct kmod_wire *wire = comm->wire;
	struct hcomm_state_line *line = state_line(wire);

	if (hcomm_comm_failed(comm))
		return true;
	if (__atomic_load_n(&line->state, __ATOMIC_ACQUIRE) ==
	    HCOMM_STATE_ACTIVE)
		return false;
	fail_by_cause(comm, line);
	return true;
}

static void read_events(struct hcommComm *comm, struct kmod_wire *wire)
{
	const struct hcomm_ring_setup *layout = &wire->layout;
	struct hcomm_event *events = (void *)(wire->ring + layout->events_at);
	uint32_t tail = __atomic_load_n(index_at(wire, layout->event_tail_at),
					__ATOMIC_ACQUIRE);
	uint32_t mask = layout->event_entries - 1;

	if (wire->event_head == tail)
		return;
	for (; wire->event_head != tail; wire->event_head++) {
		struct hcomm_event *event = &events[wire->event_head & mask];

		if (event->kind == HCOMM_EVENT_MEMBER_LEFT &&
		    event->rank < (uint32_t)comm->n)
			hcomm_rank(comm, (int)event->rank)->left = true;
		hcomm_log(HCOMM_LOG_TRACE, "event %u: rank %u, value %llu",
			  event->kind, event->rank,
			  (unsigned long long)event->value);
	}
	__atomic_store_n(index_at(wire, layout->event_head_at),
			 wire->event_head, __ATOMIC_RELEASE);
}

static void kmod_check(struct hcommComm *comm)
{
	struct kmod_wire *wire = comm->wire;
	int i;

	read_events(comm, wire);
	for (i = 0; i < comm->nlocal; i++) {
		struct hcomm_rank_state *peer = hcomm_rank(comm,
							   comm->locals[i]);

		if (__atomic_load_n(&peer->ctrl->left, __ATOMIC_ACQUIRE))
			peer->left = true;
	}
	/* If the group failed too, its cause says more than a message's end. */
	if (wire->message_error &&
	    hcomm_now() - wire->message_time >= HCOMM_GRACE_NS &&
	    !kmod_failed(comm))
		hcomm_comm_fail(comm, HCOMM_REMOTE_ERROR, wire->message_rank,
				false, "a message to rank %d was refused: %s%s",
				wire->message_rank,
				strerror(-wire->message_error),
				hcomm_rank(comm, wire->message_rank)->left ?
				" (the rank has left the group)" : "");
}

static void kmod_abort(struct hcommComm *comm, hcommResult_t result,
		       int culprit, uint64_t op)
{
	struct kmod_wire *wire = comm->wire;
	struct hcomm_abort arg = {
		.error = error_of(result),
		.op = (op & OP_MASK) | (uint64_t)(culprit + 1) << BLAME_SHIFT,
	};

	ioctl(wire->fd, HCOMM_IOC_ABORT, &arg);
}

/* ------------------------------------------------------ other instances */

static const uint64_t *kmod_semaphore(struct hcommComm *comm, uint32_t sem)
{
	struct kmod_wire *wire = comm->wire;

	return (const uint64_t *)(wire->sems + (size_t)HCOMM_SEM_LINE *
				  (HCOMM_SEM_FIRST_LINE + sem));
}

static uint32_t kmod_data_sem(struct hcommComm *comm, int source)
{
	(void)comm;
	return HCOMM_USER_SEMAPHORES + HCOMM_CHANNEL_SEMS +
	       2 * (uint32_t)source;
}

static uint32_t kmod_credit_sem(struct hcommComm *comm, int destination)
{
	return kmod_data_sem(comm, destination) + 1;
}

static void complete(struct hcommComm *comm, struct kmod_wire *wire,
		     const struct hcomm_cqe *cqe)
{
	uint64_t cookie = cqe->user_data;
	uint64_t out = cookie & HCOMM_COOKIE_OUT_MASK;

	if (out)
		comm->out[out - HCOMM_COOKIE_OUT(0)].pending--;
	if (cookie & HCOMM_COOKIE_ONESIDED) {
		hcomm_onesided_end(comm, (int)cqe->rank, cqe->result);
		return;
	}
	if (!cqe->result)
		return;
	/* A credit that a departed rank does not need any more is no loss. */
	if (cookie != HCOMM_COOKIE_NONE && !wire->message_error) {
		wire->message_error = cqe->result;
		wire->message_rank = (int)cqe->rank;
		wire->message_time = hcomm_now();
	}
	hcomm_log(HCOMM_LOG_TRACE, "a message to rank %u ended with %s",
		  cqe->rank, strerror(-cqe->result));
}

/* A slot may be free by a silent op, which counts as a completion here. */
static void poll_refused(struct hcommComm *comm, struct kmod_wire *wire)
{
	if (!wire->refused ||
	    __atomic_load_n(&wire->wake_page->activity,
			    __ATOMIC_ACQUIRE) == wire->refused_at)
		return;
	wire->refused = false;
	comm->completions++;
}

static void kmod_poll(struct hcommComm *comm)
{
	struct kmod_wire *wire = comm->wire;
	const struct hcomm_ring_setup *layout = &wire->layout;
	const struct hcomm_cqe *cqes = (void *)(wire->ring + layout->cqes_at);
	uint32_t tail = __atomic_load_n(index_at(wire, layout->cq_tail_at),
					__ATOMIC_ACQUIRE);
	uint32_t mask = layout->cq_entries - 1;

	poll_refused(comm, wire);
	if (wire->cq_head == tail)
		return;
	for (; wire->cq_head != tail; wire->cq_head++) {
		complete(comm, wire, &cqes[wire->cq_head & mask]);
		comm->completions++;
	}
	__atomic_store_n(index_at(wire, layout->cq_head_at), wire->cq_head,
			 __ATOMIC_RELEASE);
}

static void fill_sqe(const struct kmod_wire *wire, struct hcomm_sqe *sqe,
		     const struct hcomm_remote *remote)
{
	bool data = remote->kind == HCOMM_REMOTE_PUT ||
		    remote->kind == HCOMM_REMOTE_GET;

	*sqe = (struct hcomm_sqe) {
		.rank = (uint32_t)remote->rank, .user_data = remote->cookie,
	};
	switch (remote->kind) {
	case HCOMM_REMOTE_PUT:
		sqe->opcode = HCOMM_OP_PUT;
		break;
	case HCOMM_REMOTE_GET:
		sqe->opcode = HCOMM_OP_GET;
		break;
	case HCOMM_REMOTE_SIGNAL:
		sqe->opcode = HCOMM_OP_SIGNAL;
		break;
	case HCOMM_REMOTE_FENCE:
		sqe->opcode = HCOMM_OP_FENCE;
		break;
	}
	if (data) {
		sqe->object = remote->object == HCOMM_OBJECT_HEAP ?
			      wire->heap_object : remote->object;
		sqe->window = remote->window;
		sqe->local_off = remote->local;
		sqe->remote_off = remote->remote;
		sqe->length = remote->bytes;
	}
	if (remote->signal) {
		sqe->sem = (uint16_t)remote->sem;
		sqe->delta = remote->delta;
		if (remote->kind == HCOMM_REMOTE_PUT)
			sqe->flags |= HCOMM_OPF_SIGNAL;
	}
	if (remote->cookie == HCOMM_COOKIE_NONE)
		sqe->flags |= HCOMM_OPF_SILENT;
}

/* One entry, taken at once. -EBUSY: no completion slot is free. */
static int submit(struct kmod_wire *wire, const struct hcomm_remote *remote)
{
	const struct hcomm_ring_setup *layout = &wire->layout;
	uint32_t mask = layout->sq_entries - 1;
	struct hcomm_enter arg = { .to_submit = 1 };

	fill_sqe(wire, &wire->sqes[wire->sq_tail & mask], remote);
	__atomic_store_n(index_at(wire, layout->sq_tail_at), wire->sq_tail + 1,
			 __ATOMIC_RELEASE);
	wire->refused_at = __atomic_load_n(&wire->wake_page->activity,
					   __ATOMIC_ACQUIRE);
	while (ioctl(wire->fd, HCOMM_IOC_ENTER, &arg))
		if (errno != EINTR) {
			wire->refused = errno == EBUSY;
			return -errno;
		}
	wire->refused = !arg.submitted;
	if (wire->refused)
		return -EBUSY;
	wire->sq_tail++;
	return 0;
}

static hcommResult_t kmod_post(struct hcommComm *comm,
			       const struct hcomm_remote *remote)
{
	struct kmod_wire *wire = comm->wire;
	struct hcomm_cond cond = {
		.kind = HCOMM_COND_DEVICE, .rank = remote->rank,
	};
	hcommResult_t res;
	int err;

	for (;;) {
		kmod_poll(comm);
		err = submit(wire, remote);
		if (!err)
			return HCOMM_SUCCESS;
		if (kmod_failed(comm))
			return hcomm_comm_failed(comm);
		if (err != -EBUSY)
			return hcomm_comm_fail(comm, HCOMM_SYSTEM_ERROR,
					       remote->rank, false,
					       "submitting to /dev/%s: %s",
					       comm->settings.device,
					       strerror(-err));
		cond.value = comm->completions + 1;
		res = hcomm_wait(comm, &cond, 1);
		if (res)
			return res;
	}
}

static void kmod_hint(struct hcommComm *comm, int rank, uint64_t offset,
		      size_t bytes)
{
	const struct hcomm_remote remote = {
		.kind = HCOMM_REMOTE_PUT, .rank = rank,
		.object = HCOMM_OBJECT_HEAP, .window = 0,
		.local = offset, .remote = offset, .bytes = bytes,
		.cookie = HCOMM_COOKIE_NONE,
	};

	submit(comm->wire, &remote);
}

/* --------------------------------------------------------------- windows */

static struct hcomm_device *kmod_device(struct hcommComm *comm)
{
	struct kmod_wire *wire = comm->wire;

	return wire->dev;
}

static int kmod_attach(struct hcommComm *comm, uint32_t window, uint32_t object)
{
	struct kmod_wire *wire = comm->wire;
	struct hcomm_win_attach arg = { .object = object, .window = window };

	return ioctl(wire->fd, HCOMM_IOC_WIN_ATTACH, &arg) ? -errno : 0;
}

static int kmod_detach(struct hcommComm *comm, uint32_t window)
{
	struct kmod_wire *wire = comm->wire;
	struct hcomm_win_detach arg = { .window = window };

	return ioctl(wire->fd, HCOMM_IOC_WIN_DETACH, &arg) ? -errno : 0;
}

const struct hcomm_transport hcomm_transport_kmod = {
	.name = "kmod",
	.open = kmod_open,
	.close = kmod_close,
	.park_begin = kmod_park_begin,
	.park = kmod_park,
	.wake = kmod_wake,
	.failed = kmod_failed,
	.check = kmod_check,
	.abort = kmod_abort,
	.post = kmod_post,
	.poll = kmod_poll,
	.hint = kmod_hint,
	.semaphore = kmod_semaphore,
	.data_sem = kmod_data_sem,
	.credit_sem = kmod_credit_sem,
	.device = kmod_device,
	.attach = kmod_attach,
	.detach = kmod_detach,
};
