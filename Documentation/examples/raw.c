/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two ranks on one instance without libhcomm: rank 0 puts a text into the
 * window of rank 1 and raises its semaphore; rank 1 sleeps until then, and
 * raises rank 0's. A pipe stands for the means by which ranks tell each other
 * that they are there.
 *
 *   cc -I uapi Documentation/examples/raw.c -o raw && ./raw
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hcomm.h"

#define WINDOW	0
#define SEM	0
#define BYTES	4096

static int fd;
static struct hcomm_join group;
static struct hcomm_ring_setup ring;
static char *sems, *rings;
static struct hcomm_sqe *sqes;
static const struct hcomm_wake_page *wake;

static void *map(__u64 offset, size_t bytes, int prot)
{
	void *at = mmap(NULL, bytes, prot, MAP_SHARED, fd, (off_t)offset);

	if (at == MAP_FAILED)
		err(1, "mmap");
	return at;
}

static void call(const char *name, unsigned long request, void *arg)
{
	if (ioctl(fd, request, arg))
		err(1, "%s", name);
}

/* Becomes @rank of 2 and exports @buffer. */
static __u32 join(__u32 rank, void *buffer)
{
	struct hcomm_mem_create mem = {
		.base = (__u64)(unsigned long)buffer, .length = BYTES,
	};
	struct hcomm_win_attach window = { .window = WINDOW };

	fd = open("/dev/hcomm0", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		err(1, "/dev/hcomm0");
	group.rank = rank;
	group.size = 2;
	call("JOIN", HCOMM_IOC_JOIN, &group);
	call("RING_SETUP", HCOMM_IOC_RING_SETUP, &ring);
	rings = map(ring.ring_off, ring.ring_bytes, PROT_READ | PROT_WRITE);
	sqes = map(ring.sqe_off, ring.sqe_bytes, PROT_READ | PROT_WRITE);
	sems = map(group.sem_off, group.sem_bytes, PROT_READ);
	wake = map(group.wake_off, (size_t)sysconf(_SC_PAGESIZE), PROT_READ);
	call("MEM_CREATE", HCOMM_IOC_MEM_CREATE, &mem);
	window.object = mem.object;
	call("WIN_ATTACH", HCOMM_IOC_WIN_ATTACH, &window);
	return mem.object;
}

static __u32 *at(__u32 offset)
{
	return (__u32 *)(rings + offset);
}

/* Submits one SQE and waits for its completion. */
static int submit(const struct hcomm_sqe *sqe)
{
	__u32 tail = __atomic_load_n(at(ring.sq_tail_at), __ATOMIC_RELAXED);
	__u32 head = __atomic_load_n(at(ring.cq_head_at), __ATOMIC_RELAXED);
	struct hcomm_enter enter = { .to_submit = 1 };
	const struct hcomm_cqe *cqe;
	int result;

	sqes[tail & (ring.sq_entries - 1)] = *sqe;
	__atomic_store_n(at(ring.sq_tail_at), tail + 1, __ATOMIC_RELEASE);
	call("ENTER", HCOMM_IOC_ENTER, &enter);

	enter = (struct hcomm_enter) {
		.flags = HCOMM_ENTER_WAIT, .timeout_ns = 10000000000,
	};
	for (;;) {
		/* Before the look: what happens in between ends the sleep. */
		enter.wake = __atomic_load_n(&wake->wake, __ATOMIC_ACQUIRE);
		enter.activity = __atomic_load_n(&wake->activity,
						 __ATOMIC_ACQUIRE);
		if (__atomic_load_n(at(ring.cq_tail_at), __ATOMIC_ACQUIRE) !=
		    head)
			break;
		call("ENTER", HCOMM_IOC_ENTER, &enter);
	}
	cqe = (const struct hcomm_cqe *)(rings + ring.cqes_at) +
	      (head & (ring.cq_entries - 1));
	result = cqe->result;
	__atomic_store_n(at(ring.cq_head_at), head + 1, __ATOMIC_RELEASE);
	return result;
}

/* Sleeps until my semaphore @sem is at least @value. */
static void wait_for(__u32 sem, __u64 value)
{
	const __u64 *line = (const __u64 *)(sems + HCOMM_SEM_LINE *
					    (HCOMM_SEM_FIRST_LINE + sem));
	struct hcomm_wait wait = {
		.member = group.member, .sem = sem, .value = value,
	};
	struct hcomm_enter enter = {
		.flags = HCOMM_ENTER_WAIT, .nr_waits = 1,
		.waits = (__u64)(unsigned long)&wait,
		.timeout_ns = 10000000000,
	};

	for (;;) {
		enter.wake = __atomic_load_n(&wake->wake, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(line, __ATOMIC_ACQUIRE) >= value)
			return;
		if (((const struct hcomm_state_line *)sems)->state !=
		    HCOMM_STATE_ACTIVE)
			errx(1, "the group has failed");
		call("ENTER", HCOMM_IOC_ENTER, &enter);
	}
}

static void sender(char *buffer, int news)
{
	struct hcomm_sqe sqe = {
		.opcode = HCOMM_OP_PUT, .flags = HCOMM_OPF_SIGNAL, .rank = 1,
		.window = WINDOW, .length = BYTES, .sem = SEM, .delta = 1,
	};
	int result;
	char byte;

	sqe.object = join(0, buffer);
	strcpy(buffer, "hello, rank 1");
	if (read(news, &byte, 1) != 1)
		errx(1, "rank 1 did not join");
	result = submit(&sqe);
	if (result)
		errx(1, "PUT: %s", strerror(-result));
	wait_for(SEM, 1);
}

static void receiver(char *buffer, int news)
{
	struct hcomm_sqe done = {
		.opcode = HCOMM_OP_SIGNAL, .sem = SEM, .delta = 1,
	};

	join(1, buffer);
	if (write(news, "", 1) != 1)
		err(1, "write");
	wait_for(SEM, 1);
	printf("rank 1 received: %s\n", buffer);
	if (submit(&done))
		errx(1, "SIGNAL failed");
}

int main(void)
{
	char *buffer = aligned_alloc(BYTES, BYTES);
	int news[2], status;
	pid_t child;

	if (!buffer || pipe(news) || getentropy(group.group_id, HCOMM_ID_BYTES) ||
	    getentropy(group.secret, HCOMM_SECRET_BYTES))
		err(1, "cannot begin");
	child = fork();		/* before the device is opened */
	if (child < 0)
		err(1, "fork");
	if (!child) {
		receiver(buffer, news[1]);
		fflush(stdout);
		call("LEAVE", HCOMM_IOC_LEAVE, NULL);
		_exit(0);
	}
	close(news[1]);
	sender(buffer, news[0]);
	call("LEAVE", HCOMM_IOC_LEAVE, NULL);
	if (waitpid(child, &status, 0) < 0 || status)
		errx(1, "rank 1 failed");
	return 0;
}
