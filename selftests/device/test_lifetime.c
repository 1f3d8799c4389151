// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * When a membership ends: LEAVE, the owner's close, the end of its process by
 * whatever means; what does not end it; and that nothing is left.
 *
 * The parent is rank 0 and looks on; children are the ranks that live and die.
 */
#include <kselftest_harness.h>

#include <pthread.h>
#include <spawn.h>
#include <sys/socket.h>

#include "device.h"

/* What a peer may take to learn of a death; a debug kernel is slow. */
#define NOTICE	(on_debug_kernel() ? 5 * SEC : SEC)

extern char **environ;

FIXTURE(life)
{
	struct hcomm_join group;
	struct rank r;
};

FIXTURE_SETUP(life)
{
	int ret;

	group_new(&self->group, 3);
	ret = rank_start(&self->r, 0, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
}

FIXTURE_TEARDOWN(life)
{
	close(self->r.fd);
}

/* True when the instance has nothing of anyone any more. */
static bool nothing_left(unsigned int device)
{
	static const char *const files[] = {
		"groups", "members", "windows", "objects",
	};
	uint64_t end = now_ns() + FAR;
	unsigned int i;
	int lines;

	do {
		lines = 0;
		for (i = 0; i < 4; i++) {
			int n = debugfs_lines(device, files[i]);

			lines += n < 0 ? 1 : n;
		}
		if (!lines)
			return true;
		sched_yield();
	} while (now_ns() < end);
	return false;
}

/* The parent's line says that @rank died; since @start that took no longer. */
static bool noticed(struct rank *r, uint32_t rank, uint64_t start)
{
	struct hcomm_get_error error = {};
	struct hcomm_event event;
	bool dead = false;

	if (!WAIT_UNTIL(r, state_of(r) == HCOMM_STATE_ERROR))
		return false;
	if (now_ns() - start > NOTICE) {
		fprintf(stderr, "# noticed after %llu ms\n",
			(unsigned long long)((now_ns() - start) / MSEC));
		return false;
	}
	while (pop_event(r, &event))
		dead |= event.kind == HCOMM_EVENT_MEMBER_DEAD &&
			event.rank == rank;
	return dead && !call(r->fd, HCOMM_IOC_GET_ERROR, &error) &&
	       error.cause == HCOMM_CAUSE_PROCESS && error.rank == rank &&
	       error.error == -EOWNERDEAD && state_line(r)->rank == rank &&
	       state_line(r)->cause == HCOMM_CAUSE_PROCESS &&
	       state_line(r)->error == -EOWNERDEAD;
}

/* Rank 1: joins, says so, does what it is told by how it is ended. */
static int live(void *arg, int in, int out)
{
	struct rank r;

	if (rank_start(&r, 0, arg, 1))
		return 1;
	tell(out);
	hear(in);
	return 0;
}

TEST_F(life, a_killed_process_is_noticed_with_its_rank)
{
	struct child child = child_start(live, &self->group);
	uint64_t start;

	ASSERT_TRUE(child_heard(&child));
	EXPECT_EQ(state_of(&self->r), HCOMM_STATE_ACTIVE);
	start = now_ns();
	kill(child.pid, SIGKILL);
	EXPECT_TRUE(noticed(&self->r, 1, start));
	EXPECT_EQ(child_end(&child), 1000 + SIGKILL);
}

TEST_F(life, a_process_that_returns_is_noticed)
{
	struct child child = child_start(live, &self->group);
	uint64_t start;

	ASSERT_TRUE(child_heard(&child));
	start = now_ns();
	tell(child.to);
	EXPECT_TRUE(noticed(&self->r, 1, start));
	EXPECT_EQ(child_end(&child), 0);
}

static int live_and_crash(void *arg, int in, int out)
{
	struct rank r;

	if (rank_start(&r, 0, arg, 1))
		return 1;
	tell(out);
	hear(in);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 2;
}

TEST_F(life, a_process_that_crashes_is_noticed)
{
	struct child child = child_start(live_and_crash, &self->group);
	uint64_t start;

	ASSERT_TRUE(child_heard(&child));
	start = now_ns();
	tell(child.to);
	EXPECT_TRUE(noticed(&self->r, 1, start));
	EXPECT_EQ(child_end(&child), 1000 + SIGSEGV);
}

TEST_F(life, close_without_leave_is_a_death)
{
	struct rank other;
	uint64_t start;

	ASSERT_EQ(rank_join(&other, 0, &self->group, 1), 0);
	start = now_ns();
	close(other.fd);
	EXPECT_TRUE(noticed(&self->r, 1, start));
}

TEST_F(life, leave_is_not_a_death)
{
	struct hcomm_event event;
	struct rank other;

	ASSERT_EQ(rank_join(&other, 0, &self->group, 1), 0);
	ASSERT_EQ(call(other.fd, HCOMM_IOC_LEAVE, NULL), 0);
	close(other.fd);
	ASSERT_TRUE(pop_event(&self->r, &event));
	EXPECT_EQ(event.kind, HCOMM_EVENT_MEMBER_LEFT);
	EXPECT_FALSE(pop_event(&self->r, &event));
	EXPECT_EQ(state_of(&self->r), HCOMM_STATE_ACTIVE);
}

TEST_F(life, a_dead_rank_does_not_rejoin)
{
	struct child child = child_start(live, &self->group);
	struct rank again;

	ASSERT_TRUE(child_heard(&child));
	EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
	ASSERT_TRUE(noticed(&self->r, 1, now_ns()));
	EXPECT_EQ(rank_join(&again, 0, &self->group, 1), -EEXIST);
	/* Another one may, to learn at once what happened. */
	ASSERT_EQ(rank_start(&again, 0, &self->group, 2), 0);
	EXPECT_EQ(state_of(&again), HCOMM_STATE_ERROR);
	EXPECT_EQ(state_line(&again)->rank, 1);
	EXPECT_EQ(state_line(&again)->cause, HCOMM_CAUSE_PROCESS);
}

static int close_and_return(void *arg, int in, int out)
{
	return close(*(int *)arg) ? 1 : 0;
}

static int just_return(void *arg, int in, int out)
{
	return 0;
}

TEST_F(life, forked_children_may_close_and_exit)
{
	struct hcomm_cqe cqe;
	struct rank other;
	struct child child;
	int i;

	ASSERT_EQ(rank_join(&other, 0, &self->group, 1), 0);
	for (i = 0; i < 3; i++) {
		child = child_start(close_and_return, &self->r.fd);
		EXPECT_EQ(child_end(&child), 0);
		child = child_start(just_return, NULL);
		EXPECT_EQ(child_end(&child), 0);
		child = child_start(live, &(struct hcomm_join){});
		EXPECT_EQ(child_kill(&child) >= 0, true);
	}
	EXPECT_EQ(state_of(&self->r), HCOMM_STATE_ACTIVE);
	push_signal(&self->r, 1, 0, 1);
	ASSERT_EQ(submit(&self->r, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&self->r, pop_cqe(&self->r, &cqe)));
	EXPECT_EQ(cqe.result, 0);
}

TEST_F(life, spawned_programs_do_not_end_the_membership)
{
	char *argv[] = { "true", NULL };
	int status;
	pid_t pid;

	ASSERT_EQ(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	ASSERT_EQ(fcntl(self->r.fd, F_SETFD, 0), 0);
	ASSERT_EQ(posix_spawnp(&pid, "true", NULL, NULL, argv, environ), 0);
	ASSERT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(state_of(&self->r), HCOMM_STATE_ACTIVE);
}

/* A worker that survives its parent, with the parent's file open. */
static int leave_a_worker(void *arg, int in, int out)
{
	struct rank r;

	if (rank_start(&r, 0, arg, 1))
		return 1;
	if (!fork()) {
		tell(out);
		hear(in);
		_exit(0);
	}
	pause();
	return 2;
}

TEST_F(life, a_surviving_worker_does_not_keep_the_rank)
{
	struct child child = child_start(leave_a_worker, &self->group);
	uint64_t start;
	int status;

	ASSERT_TRUE(child_heard(&child));
	start = now_ns();
	kill(child.pid, SIGKILL);
	EXPECT_TRUE(noticed(&self->r, 1, start));
	ASSERT_EQ(waitpid(child.pid, &status, 0), child.pid);

	/* It still has the file, which nobody is the owner of. */
	ASSERT_EQ(call(self->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_TRUE(nothing_left(0));
	tell(child.to);
	close(child.to);
	close(child.from);
}

static int become_another_program(void *arg, int in, int out)
{
	char *argv[] = { "cat", NULL };
	struct rank r;

	if (rank_start(&r, 0, arg, 1) || dup2(in, 0) != 0 ||
	    fcntl(r.fd, F_SETFD, 0) || fcntl(out, F_SETFD, 0))
		return 1;
	tell(out);
	hear(0);
	execvp("cat", argv);
	return 2;
}

TEST_F(life, exec_ends_the_membership_even_where_the_file_stays_open)
{
	struct child child = child_start(become_another_program, &self->group);
	uint64_t start;

	ASSERT_TRUE(child_heard(&child));
	start = now_ns();
	tell(child.to);
	EXPECT_TRUE(noticed(&self->r, 1, start));
	EXPECT_EQ(kill(child.pid, 0), 0);
	ASSERT_EQ(call(self->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_TRUE(nothing_left(0));
	EXPECT_EQ(child_end(&child), 0);
}

static int send_fd(int sock, int fd)
{
	char c = 'x', control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
	return sendmsg(sock, &msg, 0) == 1 ? 0 : -errno;
}

static int recv_fd(int sock)
{
	char c, control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec iov = { &c, 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd = -1;

	if (recvmsg(sock, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

struct passing {
	struct hcomm_join *group;
	int sock;
};

static int pass_the_file_on(void *arg, int in, int out)
{
	struct passing *p = arg;
	struct rank r;

	if (rank_start(&r, 0, p->group, 1) || send_fd(p->sock, r.fd))
		return 1;
	tell(out);
	hear(in);
	return 0;
}

TEST_F(life, a_file_passed_on_is_no_membership)
{
	struct passing p = { .group = &self->group };
	struct hcomm_get_error error = {};
	struct hcomm_enter enter = {};
	struct hcomm_join join;
	struct child child;
	int sockets[2], fd;

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets),
		  0);
	p.sock = sockets[1];
	child = child_start(pass_the_file_on, &p);
	ASSERT_TRUE(child_heard(&child));
	fd = recv_fd(sockets[0]);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(call(fd, HCOMM_IOC_GET_ERROR, &error), -EPERM);
	EXPECT_EQ(call(fd, HCOMM_IOC_ENTER, &enter), -EPERM);
	EXPECT_EQ(call(fd, HCOMM_IOC_LEAVE, NULL), -EPERM);
	group_new(&join, 1);
	EXPECT_EQ(call(fd, HCOMM_IOC_JOIN, &join), -EPERM);
	EXPECT_EQ(state_of(&self->r), HCOMM_STATE_ACTIVE);
	kill(child.pid, SIGKILL);
	EXPECT_TRUE(noticed(&self->r, 1, now_ns()));
	EXPECT_EQ(child_end(&child), 1000 + SIGKILL);
	EXPECT_EQ(call(fd, HCOMM_IOC_GET_ERROR, &error), -EPERM);
	close(fd);
}

TEST_F(life, closing_any_descriptor_in_the_owner_ends_it)
{
	struct rank other;
	int fd;

	ASSERT_EQ(rank_join(&other, 0, &self->group, 1), 0);
	fd = dup(other.fd);
	ASSERT_GE(fd, 0);
	close(fd);
	EXPECT_TRUE(noticed(&self->r, 1, now_ns()));
	EXPECT_EQ(call(other.fd, HCOMM_IOC_LEAVE, NULL), -ESHUTDOWN);
	close(other.fd);
}

static void *close_in_own_table(void *arg)
{
	if (unshare(CLONE_FILES))
		return (void *)1;
	return (void *)(intptr_t)close(*(int *)arg);
}

TEST_F(life, a_thread_with_its_own_descriptors_is_not_the_owner)
{
	pthread_t thread;
	void *ret;

	ASSERT_EQ(pthread_create(&thread, NULL, close_in_own_table,
				 &self->r.fd), 0);
	pthread_join(thread, &ret);
	EXPECT_EQ(ret, NULL);
	EXPECT_EQ(state_of(&self->r), HCOMM_STATE_ACTIVE);
}

static void *enter_for_ever(void *arg)
{
	struct rank *r = arg;

	while (wait_change(r, load32(&r->wake->wake),
			   load32(&r->wake->activity), FAR) != -ESHUTDOWN &&
	       state_of(r) == HCOMM_STATE_ACTIVE)
		;
	return NULL;
}

static void *nop_for_ever(void *arg)
{
	struct rank *r = arg;
	struct hcomm_cqe cqe;

	while (state_of(r) == HCOMM_STATE_ACTIVE) {
		push_nop(r, 1);
		if (submit(r, 1) < 0)
			break;
		while (pop_cqe(r, &cqe))
			;
	}
	return NULL;
}

TEST_F(life, close_while_other_threads_use_the_file)
{
	struct hcomm_join group;
	pthread_t threads[3];
	struct rank r;
	uint32_t i;
	int j;

	for (i = 0; i < scaled(20); i++) {
		group_new(&group, 1);
		ASSERT_EQ(rank_start(&r, 0, &group, 0), 0);
		pthread_create(&threads[0], NULL, enter_for_ever, &r);
		pthread_create(&threads[1], NULL, enter_for_ever, &r);
		pthread_create(&threads[2], NULL, nop_for_ever, &r);
		while (!load32(&r.wake->activity))
			sched_yield();
		if (i % 2)
			close(r.fd);
		else
			call(r.fd, HCOMM_IOC_LEAVE, NULL);
		for (j = 0; j < 3; j++)
			pthread_join(threads[j], NULL);
		if (!(i % 2))
			close(r.fd);
		munmap(r.ring, r.setup.ring_bytes);
		munmap(r.sqes, r.setup.sqe_bytes);
		munmap(r.sems, r.join.sem_bytes);
		munmap((void *)r.wake, getpagesize());
	}
}

static void *join_it(void *arg)
{
	struct rank *r = arg;

	return (void *)(intptr_t)call(r->fd, HCOMM_IOC_JOIN, &r->join);
}

TEST_F(life, join_races_with_close_and_join)
{
	pthread_t threads[2];
	struct rank r[2];
	void *ret[2];
	uint32_t i;
	int j, won;

	for (i = 0; i < scaled(50); i++) {
		memset(r, 0, sizeof(r));
		group_new(&r[0].join, 2);
		r[0].fd = device_open(0);
		ASSERT_GE(r[0].fd, 0);
		r[1] = r[0];
		r[1].join.rank = 1;
		for (j = 0; j < 2; j++)
			pthread_create(&threads[j], NULL, join_it, &r[j]);
		if (i % 2)
			close(r[0].fd);
		for (j = 0; j < 2; j++)
			pthread_join(threads[j], &ret[j]);
		won = !ret[0] + !ret[1];
		EXPECT_LE(won, 1);
		if (i % 2)
			continue;
		EXPECT_EQ(won, 1);
		EXPECT_EQ((intptr_t)ret[0] + (intptr_t)ret[1], -EISCONN);
		close(r[0].fd);
	}
	/* A join that came after the close has ended with its call. */
	ASSERT_EQ(call(self->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_TRUE(nothing_left(0));
}

static int live_busily(void *arg, int in, int out)
{
	struct hcomm_mem_create create = { .length = 64 * 4096 };
	struct hcomm_win_attach attach = {};
	struct hcomm_heap_offer offer = { .size = 4096 };
	struct rank r;

	create.base = (uintptr_t)mmap(NULL, create.length,
				      PROT_READ | PROT_WRITE,
				      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	offer.fd = memfd_create("heap", 0);
	if (rank_start(&r, 0, arg, 1) ||
	    call(r.fd, HCOMM_IOC_MEM_CREATE, &create))
		return 1;
	attach.object = create.object;
	if (call(r.fd, HCOMM_IOC_WIN_ATTACH, &attach) ||
	    ftruncate(offer.fd, 4096) ||
	    call(r.fd, HCOMM_IOC_HEAP_OFFER, &offer))
		return 2;
	tell(out);
	for (;;) {
		struct hcomm_sqe *sqe = next_sqe(&r);
		struct hcomm_cqe cqe;

		sqe->opcode = HCOMM_OP_PUT;
		sqe->flags = HCOMM_OPF_SIGNAL;
		sqe->rank = 1;
		sqe->object = create.object;
		sqe->length = 32 * 4096;
		sqe->remote_off = 32 * 4096;
		sqe->delta = 1;
		push(&r);
		push_signal(&r, 0, 0, 1);
		while (submit(&r, 2) == -EBUSY)
			while (pop_cqe(&r, &cqe))
				;
		while (pop_cqe(&r, &cqe))
			;
	}
}

TEST_F(life, nothing_is_left_of_processes_killed_at_any_moment)
{
	struct hcomm_join group;
	struct child child;
	uint32_t us, i;
	struct rank r;

	ASSERT_EQ(call(self->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	for (i = 0; i < scaled(20); i++) {
		group_new(&group, 2);
		ASSERT_EQ(rank_start(&r, 0, &group, 0), 0);
		child = child_start(live_busily, &group);
		ASSERT_TRUE(child_heard(&child));
		random_bytes(&us, sizeof(us));
		usleep(us % 20000);
		kill(child.pid, SIGKILL);
		EXPECT_TRUE(noticed(&r, 1, now_ns()));
		EXPECT_EQ(child_end(&child), 1000 + SIGKILL);
		close(r.fd);
		munmap(r.ring, r.setup.ring_bytes);
		munmap(r.sqes, r.setup.sqe_bytes);
		munmap(r.sems, r.join.sem_bytes);
		munmap((void *)r.wake, getpagesize());
	}
	EXPECT_TRUE(nothing_left(0));
}

TEST_F(life, nothing_is_left_after_leave)
{
	ASSERT_GT(debugfs_lines(0, "members"), 0);
	ASSERT_EQ(call(self->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_TRUE(nothing_left(0));
}

TEST_HARNESS_MAIN
