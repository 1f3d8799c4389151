// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks of one host without the module: heaps are exchanged over an abstract
 * unix socket while the group is made, who sleeps does so on a futex in the
 * own heap, deaths are seen by pidfd. Rank 0 collects everybody's heap file,
 * makes a pidfd from the credentials of each connection, and gives all of
 * them to all; the socket is gone when the group is ready.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "config/files.h"
#include "exec/comm.h"
#include "exec/wait.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open	434
#endif

struct local_wire {
	struct pollfd *lives;	/* by rank: a pidfd, or -1 once it ended */
};

/* What a rank has shared while the group is made. */
struct share {
	int conn;		/* rank 0 only */
	int heap;
	int life;
};

static int pidfd_open(pid_t pid)
{
	return hcomm_file_own((int)syscall(SYS_pidfd_open, pid, 0));
}

static void socket_name(const struct hcommComm *comm, char *name, size_t room)
{
	size_t at = (size_t)snprintf(name, room, "hcomm-heaps-"), i;

	for (i = 0; i < sizeof(comm->group_id); i++)
		at += (size_t)snprintf(name + at, room - at, "%02x",
				       comm->group_id[i]);
}

/* Takes one rank's heap and its process. */
static int welcome(struct hcommComm *comm, int conn, struct share *shares,
		   uint64_t deadline)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);
	uint32_t rank;
	int err, heap;

	err = hcomm_check_peer_user(conn);
	if (!err)
		err = hcomm_stream_recv(conn, &rank, sizeof(rank), deadline);
	if (!err && (!rank || rank >= (uint32_t)comm->n ||
		     shares[rank].conn >= 0))
		err = -EPROTO;
	if (!err)
		err = hcomm_recv_file(conn, &heap, deadline);
	if (err)
		return err;
	shares[rank].conn = conn;
	shares[rank].heap = heap;
	if (getsockopt(conn, SOL_SOCKET, SO_PEERCRED, &cred, &length))
		return -errno;
	shares[rank].life = pidfd_open(cred.pid);
	return shares[rank].life < 0 ? shares[rank].life : 0;
}

static int collect(struct hcommComm *comm, int listener, struct share *shares,
		   uint64_t deadline)
{
	struct pollfd pfd = { .fd = listener, .events = POLLIN };
	int conn, err, missing = comm->n - 1;

	while (missing) {
		if (hcomm_now() >= deadline)
			return -ETIMEDOUT;
		if (poll(&pfd, 1, 100) <= 0)
			continue;
		conn = hcomm_accept(listener);
		if (conn == -EAGAIN)
			continue;
		if (conn < 0)
			return conn;
		err = welcome(comm, conn, shares, deadline);
		if (err == -EPERM) {	/* another user's */
			close(conn);
			continue;
		}
		if (err) {
			close(conn);
			return err;
		}
		missing--;
	}
	return 0;
}

static int hand_out(struct hcommComm *comm, struct share *shares,
		    uint64_t deadline)
{
	int to, r, err;

	for (to = 1; to < comm->n; to++) {
		for (r = 0; r < comm->n; r++) {
			err = hcomm_send_file(shares[to].conn, shares[r].heap,
					      deadline);
			if (!err)
				err = hcomm_send_file(shares[to].conn,
						      shares[r].life, deadline);
			if (err)
				return err;
		}
	}
	return 0;
}

static int fetch(struct hcommComm *comm, struct share *shares,
		 uint64_t deadline)
{
	uint32_t rank = (uint32_t)comm->rank;
	char name[64];
	int conn, r, err;

	socket_name(comm, name, sizeof(name));
	conn = hcomm_connect_unix(name);
	if (conn < 0)
		return conn;
	err = hcomm_check_peer_user(conn);
	if (!err)
		err = hcomm_stream_send(conn, &rank, sizeof(rank), deadline);
	if (!err)
		err = hcomm_send_file(conn, comm->heap_fd, deadline);
	for (r = 0; !err && r < comm->n; r++) {
		err = hcomm_recv_file(conn, &shares[r].heap, deadline);
		if (!err)
			err = hcomm_recv_file(conn, &shares[r].life, deadline);
	}
	close(conn);
	return err;
}

static int map_all(struct hcommComm *comm, struct share *shares)
{
	struct local_wire *wire = comm->wire;
	int r, err;

	for (r = 0; r < comm->n; r++) {
		wire->lives[r].fd = shares[r].life;
		wire->lives[r].events = POLLIN;
		shares[r].life = -1;
		if (r == comm->rank) {
			comm->ranks[r].heap = comm->heap;
			continue;
		}
		err = hcomm_heap_check(shares[r].heap, comm->layout.bytes);
		if (err)
			return err;
		comm->ranks[r].heap = hcomm_reserve_map(&comm->reserve, 1 + r,
							shares[r].heap,
							comm->layout.bytes);
		if (!comm->ranks[r].heap)
			return -errno;
	}
	return 0;
}

static void drop_shares(struct share *shares, int n, int keep)
{
	int r;

	for (r = 0; r < n; r++) {
		if (shares[r].conn >= 0)
			close(shares[r].conn);
		if (shares[r].heap >= 0 && r != keep)
			close(shares[r].heap);
		if (shares[r].life >= 0)
			close(shares[r].life);
	}
	free(shares);
}

static int exchange(struct hcommComm *comm, int listener, uint64_t deadline)
{
	struct share *shares = malloc((size_t)comm->n * sizeof(*shares));
	bool root = !comm->rank;
	int r, err;

	if (!shares)
		return -ENOMEM;
	for (r = 0; r < comm->n; r++)
		shares[r] = (struct share) { -1, -1, -1 };
	if (root) {
		shares[0].heap = comm->heap_fd;
		shares[0].life = pidfd_open(getpid());
		err = shares[0].life < 0 ? shares[0].life :
		      collect(comm, listener, shares, deadline);
		if (!err)
			err = hand_out(comm, shares, deadline);
	} else {
		err = fetch(comm, shares, deadline);
	}
	if (!err)
		err = map_all(comm, shares);
	drop_shares(shares, comm->n, root ? 0 : -1);
	return err;
}

static int make_heap(struct hcommComm *comm, char *why, size_t bytes)
{
	int fd = hcomm_heap_create(comm->layout.bytes, why, bytes);

	if (fd < 0)
		return fd;
	comm->heap_fd = fd;
	comm->heap = hcomm_reserve_map(&comm->reserve, 0, fd,
				       comm->layout.bytes);
	return comm->heap ? 0 : -errno;
}

static hcommResult_t say(int err, char *why, size_t bytes, const char *what)
{
	if (!err)
		return HCOMM_SUCCESS;
	if (!*why)
		snprintf(why, bytes, "%s: %s%s", what, strerror(-err),
			 hcomm_files_advice(err));
	return err == -ENOMEM ? HCOMM_OUT_OF_MEMORY : HCOMM_SYSTEM_ERROR;
}

/* Rank 0 has all connections, heaps and processes at once. */
static hcommResult_t reserve_files(struct hcommComm *comm, char *why,
				   size_t bytes)
{
	unsigned int n = (unsigned int)comm->n;
	char what[64];

	snprintf(what, sizeof(what), "a group of %u ranks on one host", n);
	return hcomm_files_reserve(comm->rank ? 2 * n + 2 : 3 * n + 2, what,
				   why, bytes);
}

static hcommResult_t local_open(struct hcommComm *comm, struct hcomm_boot *boot)
{
	struct local_wire *wire = calloc(1, sizeof(*wire));
	char why[HCOMM_BOOT_TEXT] = "", name[64];
	hcommResult_t res = reserve_files(comm, why, sizeof(why));
	int listener = -1, err = -ENOMEM, r;

	if (wire) {
		comm->wire = wire;
		wire->lives = calloc((size_t)comm->n, sizeof(*wire->lives));
	}
	if (res) {
		err = -EMFILE;
	} else if (wire && wire->lives) {
		for (r = 0; r < comm->n; r++)
			wire->lives[r].fd = -1;
		err = make_heap(comm, why, sizeof(why));
	}
	if (!err && !comm->rank && comm->n > 1) {
		socket_name(comm, name, sizeof(name));
		listener = hcomm_listen_unix(name);
		if (listener < 0)
			err = listener;
	}
	res = hcomm_boot_sync(boot, say(err, why, sizeof(why), "making a heap"),
			      why);
	if (!res) {
		err = exchange(comm, listener, boot->deadline);
		res = hcomm_boot_sync(boot, say(err, why, sizeof(why),
						"exchanging heaps"), why);
	}
	if (listener >= 0)
		close(listener);
	return res;
}

static void local_close(struct hcommComm *comm)
{
	struct local_wire *wire = comm->wire;
	int r;

	if (!wire)
		return;
	if (comm->ctrl) {
		__atomic_store_n(&comm->ctrl->left, 1, __ATOMIC_SEQ_CST);
		hcomm_wake_all(comm);
	}
	for (r = 0; wire->lives && r < comm->n; r++)
		if (wire->lives[r].fd >= 0)
			close(wire->lives[r].fd);
	free(wire->lives);
	free(wire);
	comm->wire = NULL;
}

static void local_park_begin(struct hcommComm *comm)
{
	(void)comm;		/* the futex word itself is the state */
}

static void local_park(struct hcommComm *comm, const struct hcomm_cond *conds,
		       int nr, uint64_t ns)
{
	struct timespec ts = {
		.tv_sec = (time_t)(ns / 1000000000),
		.tv_nsec = (long)(ns % 1000000000),
	};

	(void)conds;
	(void)nr;
	syscall(SYS_futex, &comm->ctrl->sleeping, FUTEX_WAIT, 1, &ts, NULL, 0);
}

static void local_wake(struct hcommComm *comm, int rank)
{
	syscall(SYS_futex, &hcomm_rank(comm, rank)->ctrl->sleeping, FUTEX_WAKE,
		INT_MAX, NULL, NULL, 0);
}

static bool local_failed(struct hcommComm *comm)
{
	struct hcomm_abort_line *line = &comm->ctrl->abort;
	hcommResult_t result;

	if (hcomm_comm_failed(comm))
		return true;
	if (!__atomic_load_n(&line->set, __ATOMIC_ACQUIRE))
		return false;
	result = line->result > 0 && line->result < HCOMM_NR_RESULTS ?
		 (hcommResult_t)line->result : HCOMM_REMOTE_ERROR;
	if (result == HCOMM_ABORTED)
		hcomm_comm_fail(comm, result, (int)line->reporter, true,
				"rank %u called hcommCommAbort()",
				line->reporter);
	else
		hcomm_comm_fail(comm, result, (int)line->culprit, true,
				"rank %u ended the group at its operation %llu "
				"because of rank %d: %s", line->reporter,
				(unsigned long long)line->op,
				(int)line->culprit,
				hcommGetErrorString(result));
	return true;
}

static void local_check(struct hcommComm *comm)
{
	struct local_wire *wire = comm->wire;
	int r;

	if (poll(wire->lives, (nfds_t)comm->n, 0) < 0)
		return;
	for (r = 0; r < comm->n; r++) {
		struct hcomm_rank_state *peer = hcomm_rank(comm, r);

		if (__atomic_load_n(&peer->ctrl->left, __ATOMIC_ACQUIRE))
			peer->left = true;
		if (wire->lives[r].fd < 0 || !wire->lives[r].revents)
			continue;
		close(wire->lives[r].fd);
		wire->lives[r].fd = -1;
		/* Read after its end: a store before it is seen. */
		if (__atomic_load_n(&peer->ctrl->left, __ATOMIC_ACQUIRE))
			peer->left = true;
		else
			hcomm_comm_fail(comm, HCOMM_REMOTE_ERROR, r, false,
				"the process of rank %d (pid %d) ended without "
				"hcommCommDestroy(): see its output, destroy "
				"this group, make another", r, (int)peer->pid);
	}
}

static void local_abort(struct hcommComm *comm, hcommResult_t result,
			int culprit, uint64_t op)
{
	int i;

	for (i = 0; i < comm->nlocal; i++) {
		struct hcomm_rank_state *peer = hcomm_rank(comm,
							   comm->locals[i]);
		uint32_t expected = 0;

		if (!__atomic_compare_exchange_n(&peer->ctrl->abort_claim,
						 &expected, 1, false,
						 __ATOMIC_SEQ_CST,
						 __ATOMIC_RELAXED))
			continue;
		peer->ctrl->abort.result = result;
		peer->ctrl->abort.reporter = (uint32_t)comm->rank;
		peer->ctrl->abort.culprit = (uint32_t)culprit;
		peer->ctrl->abort.op = op;
		__atomic_store_n(&peer->ctrl->abort.set, 1, __ATOMIC_SEQ_CST);
		hcomm_wake(comm, peer->rank);
	}
}

const struct hcomm_transport hcomm_transport_local = {
	.name = "local",
	.open = local_open,
	.close = local_close,
	.park_begin = local_park_begin,
	.park = local_park,
	.wake = local_wake,
	.failed = local_failed,
	.check = local_check,
	.abort = local_abort,
};
