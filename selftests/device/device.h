/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the tests of /dev/hcommN share: a rank with its file, rings and
 * semaphores mapped, and processes that are ranks and say how far they are.
 * Every failure is told by a negative errno or by ending the process; nothing
 * here sleeps for a time, only until something is so or a limit has passed.
 */
#ifndef HCOMM_TEST_DEVICE_H
#define HCOMM_TEST_DEVICE_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hcomm.h"

/* An emulated machine that others share is slow; a hang is one all the same. */
#undef TEST_TIMEOUT_DEFAULT
#define TEST_TIMEOUT_DEFAULT 120

#define MSEC		1000000ULL
#define SEC		1000000000ULL
#define FAR		(60 * SEC)	/* a limit that only a failure meets */

struct rank {
	int fd;
	struct hcomm_join join;
	struct hcomm_ring_setup setup;
	char *ring;
	struct hcomm_sqe *sqes;
	char *sems;
	const struct hcomm_wake_page *wake;
	uint32_t sq_tail;
	uint32_t cq_head;
	uint32_t event_head;
};

static inline bool on_debug_kernel(void)
{
	const char *place = getenv("HCOMM_TEST_PLACE");

	return place && !strcmp(place, "debug");
}

/* How often to do what a debug kernel does slowly. */
static inline uint32_t scaled(uint32_t n)
{
	return on_debug_kernel() ? n / 10 : n;
}

static inline uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

/* The result of an ioctl as 0 or a negative errno. */
static inline int call(int fd, unsigned long cmd, void *arg)
{
	return ioctl(fd, cmd, arg) < 0 ? -errno : 0;
}

static inline int device_open(unsigned int nr)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/dev/hcomm%u", nr);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static inline void random_bytes(void *p, size_t n)
{
	if (getrandom(p, n, 0) != (ssize_t)n)
		abort();
}

/* A group nobody else has: fills id, secret, size. */
static inline void group_new(struct hcomm_join *join, uint32_t size)
{
	memset(join, 0, sizeof(*join));
	random_bytes(join->group_id, sizeof(join->group_id));
	random_bytes(join->secret, sizeof(join->secret));
	join->size = size;
}

/* Joins @nr of the group of @group on a file of its own. */
static inline int rank_join(struct rank *r, unsigned int device,
			    const struct hcomm_join *group, uint32_t nr)
{
	int ret;

	memset(r, 0, sizeof(*r));
	r->fd = device_open(device);
	if (r->fd < 0)
		return r->fd;
	r->join = *group;
	r->join.rank = nr;
	ret = call(r->fd, HCOMM_IOC_JOIN, &r->join);
	if (ret)
		close(r->fd);
	return ret;
}

static inline void *map(int fd, size_t bytes, int prot, uint64_t off)
{
	void *p = mmap(NULL, bytes, prot, MAP_SHARED, fd, off);

	return p == MAP_FAILED ? NULL : p;
}

static inline int rank_map_sems(struct rank *r)
{
	r->sems = map(r->fd, r->join.sem_bytes, PROT_READ, r->join.sem_off);
	r->wake = map(r->fd, getpagesize(), PROT_READ, r->join.wake_off);
	return r->sems && r->wake ? 0 : -errno;
}

static inline int rank_rings(struct rank *r, uint32_t sq, uint32_t cq,
			     uint32_t events)
{
	int ret;

	memset(&r->setup, 0, sizeof(r->setup));
	r->setup.sq_entries = sq;
	r->setup.cq_entries = cq;
	r->setup.event_entries = events;
	ret = call(r->fd, HCOMM_IOC_RING_SETUP, &r->setup);
	if (ret)
		return ret;
	r->ring = map(r->fd, r->setup.ring_bytes, PROT_READ | PROT_WRITE,
		      r->setup.ring_off);
	r->sqes = map(r->fd, r->setup.sqe_bytes, PROT_READ | PROT_WRITE,
		      r->setup.sqe_off);
	return r->ring && r->sqes ? 0 : -errno;
}

/* All of it, with rings of the standard size. */
static inline int rank_start(struct rank *r, unsigned int device,
			     const struct hcomm_join *group, uint32_t nr)
{
	int ret = rank_join(r, device, group, nr);

	if (!ret)
		ret = rank_map_sems(r);
	if (!ret)
		ret = rank_rings(r, 0, 0, 0);
	return ret;
}

static inline uint32_t *ring_word(struct rank *r, uint32_t at)
{
	return (uint32_t *)(r->ring + at);
}

static inline uint32_t load32(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void store32(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

static inline uint64_t sem_value(const struct rank *r, uint32_t sem)
{
	const uint64_t *p = (const uint64_t *)(r->sems + HCOMM_SEM_LINE *
					       (HCOMM_SEM_FIRST_LINE + sem));

	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline const struct hcomm_state_line *state_line(const struct rank *r)
{
	return (const struct hcomm_state_line *)r->sems;
}

static inline uint32_t state_of(const struct rank *r)
{
	return load32(&state_line(r)->state);
}

/* A zeroed entry of the submission ring, announced by push(). */
static inline struct hcomm_sqe *next_sqe(struct rank *r)
{
	struct hcomm_sqe *sqe;

	sqe = &r->sqes[r->sq_tail & (r->setup.sq_entries - 1)];
	memset(sqe, 0, sizeof(*sqe));
	return sqe;
}

static inline void push(struct rank *r)
{
	store32(ring_word(r, r->setup.sq_tail_at), ++r->sq_tail);
}

static inline void push_nop(struct rank *r, uint64_t user_data)
{
	struct hcomm_sqe *sqe = next_sqe(r);

	sqe->opcode = HCOMM_OP_NOP;
	sqe->user_data = user_data;
	push(r);
}

static inline void push_signal(struct rank *r, uint32_t to, uint16_t sem,
			       uint32_t delta)
{
	struct hcomm_sqe *sqe = next_sqe(r);

	sqe->opcode = HCOMM_OP_SIGNAL;
	sqe->rank = to;
	sqe->sem = sem;
	sqe->delta = delta;
	push(r);
}

/* The number of entries taken, or a negative errno. */
static inline int submit(struct rank *r, uint32_t count)
{
	struct hcomm_enter enter = { .to_submit = count };
	int ret = call(r->fd, HCOMM_IOC_ENTER, &enter);

	return ret ? ret : (int)enter.submitted;
}

static inline uint32_t completions(struct rank *r)
{
	return load32(ring_word(r, r->setup.cq_tail_at)) - r->cq_head;
}

static inline bool pop_cqe(struct rank *r, struct hcomm_cqe *cqe)
{
	struct hcomm_cqe *cqes = (void *)(r->ring + r->setup.cqes_at);

	if (!completions(r))
		return false;
	*cqe = cqes[r->cq_head & (r->setup.cq_entries - 1)];
	store32(ring_word(r, r->setup.cq_head_at), ++r->cq_head);
	return true;
}

static inline bool pop_event(struct rank *r, struct hcomm_event *event)
{
	struct hcomm_event *events = (void *)(r->ring + r->setup.events_at);

	if (load32(ring_word(r, r->setup.event_tail_at)) == r->event_head)
		return false;
	*event = events[r->event_head & (r->setup.event_entries - 1)];
	store32(ring_word(r, r->setup.event_head_at), ++r->event_head);
	return true;
}

/* Sleeps until something of the process changes or @timeout_ns have passed. */
static inline int wait_change(struct rank *r, uint32_t wake, uint32_t activity,
			      uint64_t timeout_ns)
{
	struct hcomm_enter enter = {
		.flags = HCOMM_ENTER_WAIT,
		.timeout_ns = timeout_ns,
		.wake = wake,
		.activity = activity,
	};

	return call(r->fd, HCOMM_IOC_ENTER, &enter);
}

/* Sleeps until @condition is so; false when FAR has passed. */
#define WAIT_UNTIL(r, condition)					\
({									\
	uint64_t end_ = now_ns() + FAR;					\
	bool so_;							\
									\
	for (;;) {							\
		uint32_t wake_ = load32(&(r)->wake->wake);		\
		uint32_t activity_ = load32(&(r)->wake->activity);	\
									\
		so_ = (condition);					\
		if (so_ || now_ns() > end_)				\
			break;						\
		if (wait_change(r, wake_, activity_, 10 * MSEC) ==	\
		    -ESHUTDOWN || state_of(r) != HCOMM_STATE_ACTIVE)	\
			sched_yield();					\
	}								\
	so_;								\
})

/* Waits until the event comes; what comes before is dropped. */
static inline bool wait_event(struct rank *r, uint32_t kind,
			      struct hcomm_event *event)
{
	return WAIT_UNTIL(r, pop_event(r, event) && event->kind == kind);
}

/* -------------------------------------------------- other processes */

/* A child process and the two pipes by which parent and child take turns. */
struct child {
	pid_t pid;
	int to;		/* parent's end */
	int from;
};

static inline void tell(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(100);
}

static inline void hear(int fd)
{
	char c;

	if (read(fd, &c, 1) != 1)
		_exit(101);
}

/*
 * Forks; the child runs @fn(arg, in, out), where hear(in) waits for the
 * parent's tell(child.to), and exits with its result. It has none of the
 * parent's pipes to other children that matter: a child that is killed is
 * noticed by waitpid().
 */
static inline struct child child_start(int (*fn)(void *arg, int in, int out),
				       void *arg)
{
	struct child child;
	int down[2], up[2];

	if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
		abort();
	fflush(NULL);
	child.pid = fork();
	if (child.pid < 0)
		abort();
	if (!child.pid) {
		close(down[1]);
		close(up[0]);
		_exit(fn(arg, down[0], up[1]));
	}
	close(down[0]);
	close(up[1]);
	child.to = down[1];
	child.from = up[0];
	return child;
}

/* True when the child said something; false when it ended instead. */
static inline bool child_heard(struct child *child)
{
	char c;

	return read(child->from, &c, 1) == 1;
}

/* The exit status, or 1000 + the signal that killed it. */
static inline int child_end(struct child *child)
{
	int status;

	close(child->to);
	close(child->from);
	if (waitpid(child->pid, &status, 0) != child->pid)
		return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) :
				   1000 + WTERMSIG(status);
}

static inline int child_kill(struct child *child)
{
	kill(child->pid, SIGKILL);
	return child_end(child);
}

/* ------------------------------------------------------- what is left */

/* Lines of a debugfs file of the instance that are not its heading. */
static inline int debugfs_lines(unsigned int device, const char *name)
{
	char path[128], line[4096];
	FILE *f;
	int n = 0;

	snprintf(path, sizeof(path), "/sys/kernel/debug/hcomm/hcomm%u/%s",
		 device, name);
	f = fopen(path, "r");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f))
		n++;
	fclose(f);
	return n;
}

#endif /* HCOMM_TEST_DEVICE_H */
