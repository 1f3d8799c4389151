// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * How a group that spans two instances begins and ends: proofs, leaving,
 * death, abort; and that one group's end is no other's business.
 */
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <kselftest_harness.h>

#include "net/net.h"

#define KIB	1024UL
#define MIB	(1024 * KIB)

static int present(struct pair *p)
{
	int ret = pair_begin(p);

	return ret == -ENOENT || ret == -ENODEV ? 4 : ret;
}

FIXTURE(ends)
{
	struct pair p;
};

FIXTURE_SETUP(ends)
{
	int ret = present(&self->p);

	if (ret == 4)
		SKIP(return, "needs two instances with a link");
	ASSERT_EQ(ret, 0);
}

FIXTURE_TEARDOWN(ends)
{
	pair_end(&self->p);
}

static int both_up(struct pair *p)
{
	struct hcomm_event event;
	int ret = side_join(p, 0);

	if (!ret)
		ret = side_join(p, 1);
	if (!ret && (!wait_event(&p->side[0].r, HCOMM_EVENT_MEMBER_UP, &event) ||
		     !wait_event(&p->side[1].r, HCOMM_EVENT_MEMBER_UP, &event)))
		ret = -ETIME;
	return ret;
}

static bool in_error(struct side *s, uint32_t cause, uint32_t rank, int error)
{
	const struct hcomm_state_line *line = state_line(&s->r);

	return WAIT_UNTIL(&s->r, state_of(&s->r) == HCOMM_STATE_ERROR) &&
	       line->cause == cause && line->rank == rank &&
	       line->error == error;
}

TEST_F_TIMEOUT(ends, the_second_may_join_much_later, 300)
{
	struct hcomm_event event;
	uint64_t until = now_ns() + 7 * SEC;

	/* Longer than an idle session lasts: the peer has to be asked again. */
	ASSERT_EQ(side_join(&self->p, 0), 0);
	while (now_ns() < until)
		wait_change(&self->p.side[0].r,
			    load32(&self->p.side[0].r.wake->wake),
			    load32(&self->p.side[0].r.wake->activity),
			    until - now_ns());
	ASSERT_EQ(side_join(&self->p, 1), 0);
	EXPECT_TRUE(wait_event(&self->p.side[0].r, HCOMM_EVENT_MEMBER_UP,
			       &event));
	EXPECT_TRUE(wait_event(&self->p.side[1].r, HCOMM_EVENT_MEMBER_UP,
			       &event));
}

TEST_F_TIMEOUT(ends, the_table_may_come_later, 300)
{
	struct hcomm_set_peers set = {
		.peers = (uintptr_t)self->p.peers,
		.count = PAIR,
	};
	struct hcomm_event event;
	unsigned int i;

	for (i = 0; i < PAIR; i++)
		ASSERT_EQ(rank_start(&self->p.side[i].r, i, &self->p.group, i),
			  0);
	for (i = 0; i < PAIR; i++)
		ASSERT_EQ(call(self->p.side[i].r.fd, HCOMM_IOC_SET_PEERS,
			       &set), 0);
	for (i = 0; i < PAIR; i++)
		EXPECT_TRUE(wait_event(&self->p.side[i].r,
				       HCOMM_EVENT_MEMBER_UP, &event));
}

TEST_F_TIMEOUT(ends, op_before_the_peer_joins_waits_for_it, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_cqe cqe;

	ASSERT_EQ(side_join(&self->p, 0), 0);
	push_signal(&a->r, 1, 2, 9);
	ASSERT_EQ(submit(&a->r, 1), 1);
	EXPECT_FALSE(pop_cqe(&a->r, &cqe));
	ASSERT_EQ(side_join(&self->p, 1), 0);
	EXPECT_EQ(finish(a, NULL), 0);
	EXPECT_EQ(sem_value(&b->r, 2), 9);
}

/* A page that keeps whoever reads it until it is filled; -errno. */
static int slow_page(void **page, size_t bytes)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return -errno;
	*page = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range.start = (uintptr_t)*page;
	reg.range.len = bytes;
	if (*page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg)) {
		close(fd);
		return -errno;
	}
	return fd;
}

struct slow_join {
	struct rank *r;
	struct hcomm_join join;
	int ret;
};

static void *slow_join(void *arg)
{
	struct slow_join *s = arg;

	s->ret = rank_start(s->r, 0, &s->join, 0);
	return NULL;
}

TEST_F_TIMEOUT(ends, proof_that_comes_while_the_first_rank_joins, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct slow_join first = { .r = &a->r, .join = self->p.group };
	size_t bytes = getpagesize();
	struct uffdio_copy copy = { .len = bytes };
	char filled[bytes];
	struct hcomm_event event;
	struct pollfd at;
	pthread_t thread;
	void *page;

	at.events = POLLIN;
	at.fd = slow_page(&page, bytes);
	if (at.fd < 0)
		SKIP(return, "needs userfaultfd");
	first.join.peers = (uintptr_t)page;
	first.join.nr_peers = PAIR;
	ASSERT_EQ(pthread_create(&thread, NULL, slow_join, &first), 0);
	ASSERT_EQ(poll(&at, 1, 60000), 1);
	/* The group exists there, without a member, for longer than a tick. */
	ASSERT_EQ(side_join(&self->p, 1), 0);
	usleep(2500000);
	memset(filled, 0, bytes);
	memcpy(filled, self->p.peers, sizeof(self->p.peers));
	copy.dst = (uintptr_t)page;
	copy.src = (uintptr_t)filled;
	ASSERT_EQ(ioctl(at.fd, UFFDIO_COPY, &copy), 0);
	ASSERT_EQ(pthread_join(thread, NULL), 0);
	ASSERT_EQ(first.ret, 0);
	EXPECT_TRUE(wait_event(&a->r, HCOMM_EVENT_MEMBER_UP, &event));
	EXPECT_TRUE(wait_event(&b->r, HCOMM_EVENT_MEMBER_UP, &event));
	push_signal(&a->r, 1, 2, 9);
	ASSERT_EQ(submit(&a->r, 1), 1);
	push_signal(&b->r, 0, 3, 8);
	ASSERT_EQ(submit(&b->r, 1), 1);
	EXPECT_EQ(finish(a, NULL), 0);
	EXPECT_EQ(finish(b, NULL), 0);
	EXPECT_EQ(sem_value(&b->r, 2), 9);
	EXPECT_EQ(sem_value(&a->r, 3), 8);
	close(at.fd);
}

TEST_F_TIMEOUT(ends, who_joins_a_failed_group_is_told, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_abort abort = { .error = -EDOM, .op = 4711 };

	ASSERT_EQ(side_join(&self->p, 0), 0);
	ASSERT_EQ(call(a->r.fd, HCOMM_IOC_ABORT, &abort), 0);
	ASSERT_EQ(side_join(&self->p, 1), 0);
	EXPECT_TRUE(in_error(b, HCOMM_CAUSE_ABORT, 0, -EDOM));
}

TEST_F_TIMEOUT(ends, wrong_secret_is_told_to_both, 300)
{
	ASSERT_EQ(side_join(&self->p, 0), 0);
	self->p.group.secret[7] ^= 1;
	ASSERT_EQ(side_join(&self->p, 1), 0);
	EXPECT_TRUE(in_error(&self->p.side[0], HCOMM_CAUSE_PROOF, 1, -EACCES));
	EXPECT_TRUE(in_error(&self->p.side[1], HCOMM_CAUSE_PROOF, 0, -EACCES));
}

/* What is on its way may arrive, but the op has not been done for that. */
TEST_F_TIMEOUT(ends, an_op_that_is_under_way_too_long_fails_the_group, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	uint64_t until = now_ns() + 200 * SEC;
	const size_t n = 48 * MIB;
	struct hcomm_sqe *sqe;
	uint64_t took;

	/* A small one is done in time, a large one is not, on any machine. */
	ASSERT_EQ(both_up(&self->p), 0);
	ASSERT_EQ(pair_windows(&self->p, 4 * KIB, (size_t[PAIR]){}), 0);
	ASSERT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 4 * KIB), 0);
	took = now_ns();
	ASSERT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 4 * KIB), 0);
	took = now_ns() - took;
	pair_end(&self->p);

	memset(self->p.side, 0, sizeof(self->p.side));
	group_new(&self->p.group, PAIR);
	self->p.group.op_timeout_ns = 50 * MSEC + 20 * took;
	ASSERT_EQ(both_up(&self->p), 0);
	ASSERT_EQ(pair_windows(&self->p, n, (size_t[PAIR]){}), 0);
	/* Once keys are exchanged it is under way at once. */
	while (run_data(a, HCOMM_OP_PUT, 0, 0, 4 * KIB)) {
		ASSERT_LT(now_ns(), until);
	}
	memset(a->base, 1, n);
	sqe = data_sqe(a, HCOMM_OP_PUT, 1, 0, 0, n);
	sqe->flags = HCOMM_OPF_SIGNAL;
	sqe->sem = 2;
	sqe->delta = 1;
	EXPECT_EQ(run(a), -ETIMEDOUT);
	EXPECT_TRUE(in_error(a, HCOMM_CAUSE_TIMEOUT, 1, -ETIMEDOUT));
	EXPECT_TRUE(in_error(b, HCOMM_CAUSE_TIMEOUT, 1, -ETIMEDOUT));
	EXPECT_EQ(b->base[0], 1);
	EXPECT_EQ(b->base[n - 1], 0);
	EXPECT_EQ(sem_value(&b->r, 2), 0);
}

/* What names it to the peer comes with the peer's proof, which it does not see. */
TEST_F_TIMEOUT(ends, a_rank_that_dies_before_it_hears_the_peer_is_missed, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct side keep[PAIR];
	struct hcomm_event event;
	unsigned int i;

	/* Another group keeps the session open. */
	ASSERT_EQ(both_up(&self->p), 0);
	memcpy(keep, self->p.side, sizeof(keep));
	for (i = 0; i < 10; i++) {
		memset(self->p.side, 0, sizeof(self->p.side));
		group_new(&self->p.group, PAIR);
		ASSERT_EQ(side_join(&self->p, 1), 0);
		ASSERT_EQ(side_join(&self->p, 0), 0);
		close(a->r.fd);
		a->r.fd = 0;
		ASSERT_TRUE(wait_event(&b->r, HCOMM_EVENT_MEMBER_UP, &event));
		EXPECT_TRUE(in_error(b, HCOMM_CAUSE_PROCESS, 0, -EOWNERDEAD));
		side_end(b);
		b->r.fd = 0;
	}
	side_end(&keep[0]);
	side_end(&keep[1]);
}

/*
 * Its instance keeps the connection for a while after its last member, and what
 * it knows of the peer's windows: the next member must not write by that.
 */
TEST_F_TIMEOUT(ends, keys_of_a_window_that_ended_meanwhile_are_not_used, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1], c = {};
	struct hcomm_join join = self->p.group;
	struct hcomm_win_detach detach = { .window = 1 };
	struct hcomm_event event;
	struct hcomm_peer peers[3];
	size_t i;

	memcpy(peers, self->p.peers, sizeof(self->p.peers));
	peers[2] = peers[1];
	join.size = 3;
	join.peers = (uintptr_t)peers;
	join.nr_peers = 3;
	ASSERT_EQ(rank_start(&a->r, 0, &join, 0), 0);
	ASSERT_EQ(rank_start(&b->r, 1, &join, 1), 0);
	ASSERT_EQ(side_memory(a, 65536, 0), 0);
	ASSERT_EQ(side_memory(b, 65536, 0), 0);
	ASSERT_EQ(side_attach(a, 1), 0);
	b->window = 1;
	ASSERT_EQ(run_data(b, HCOMM_OP_PUT, 0, 0, 65536), 0);

	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_TRUE(wait_event(&a->r, HCOMM_EVENT_MEMBER_LEFT, &event));
	ASSERT_EQ(call(a->r.fd, HCOMM_IOC_WIN_DETACH, &detach), 0);
	ASSERT_TRUE(wait_event(&a->r, HCOMM_EVENT_QUIESCED, &event));
	memset(a->base, 0, 65536);

	ASSERT_EQ(rank_start(&c.r, 1, &join, 2), 0);
	ASSERT_EQ(side_memory(&c, 65536, 0), 0);
	memset(c.base, 0xff, 65536);
	c.window = 1;
	data_sqe(&c, HCOMM_OP_PUT, 0, 0, 0, 65536);
	EXPECT_NE(run(&c), 0);
	for (i = 0; i < 65536 && !a->base[i]; i++)
		;
	EXPECT_EQ(i, 65536);
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
	side_end(&c);
}

/*
 * The peer has nobody left when a rank says that it is there; the next one that
 * comes to the peer must be able to tell of its windows all the same.
 */
TEST_F_TIMEOUT(ends, who_comes_when_the_peer_has_nobody_gets_its_keys_later, 300)
{
	struct side a[2] = {}, b[3] = {};
	struct hcomm_join join = self->p.group;
	struct hcomm_event event;
	struct hcomm_peer peers[5];
	unsigned int i;

	for (i = 0; i < 5; i++)
		peers[i] = self->p.peers[i >= 2];
	join.size = 5;
	join.peers = (uintptr_t)peers;
	join.nr_peers = 5;
	ASSERT_EQ(rank_start(&a[0].r, 0, &join, 0), 0);
	ASSERT_EQ(rank_start(&b[0].r, 1, &join, 2), 0);
	ASSERT_TRUE(wait_event(&a[0].r, HCOMM_EVENT_MEMBER_UP, &event));
	ASSERT_TRUE(wait_event(&b[0].r, HCOMM_EVENT_MEMBER_UP, &event));
	ASSERT_EQ(call(a[0].r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_TRUE(wait_event(&b[0].r, HCOMM_EVENT_MEMBER_LEFT, &event));

	ASSERT_EQ(rank_start(&b[1].r, 1, &join, 3), 0);
	ASSERT_EQ(call(b[0].r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_EQ(call(b[1].r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_EQ(rank_start(&a[1].r, 0, &join, 1), 0);
	ASSERT_TRUE(WAIT_UNTIL(&a[1].r, !debugfs_lines(1, "groups")));

	ASSERT_EQ(rank_start(&b[2].r, 1, &join, 4), 0);
	ASSERT_EQ(side_memory(&b[2], 65536, 0), 0);
	ASSERT_EQ(side_attach(&b[2], 1), 0);
	ASSERT_EQ(side_memory(&a[1], 65536, 0), 0);
	memset(a[1].base, 0xff, 65536);
	a[1].window = 1;
	data_sqe(&a[1], HCOMM_OP_PUT, 4, 0, 0, 65536);
	EXPECT_EQ(run(&a[1]), 0);
	EXPECT_EQ(memcmp(a[1].base, b[2].base, 65536), 0);
	for (i = 0; i < 2; i++)
		side_end(&a[i]);
	for (i = 0; i < 3; i++)
		side_end(&b[i]);
}

TEST_F_TIMEOUT(ends, leave_is_an_event_and_ends_ops, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_event event;

	ASSERT_EQ(both_up(&self->p), 0);
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_TRUE(wait_event(&a->r, HCOMM_EVENT_MEMBER_LEFT, &event));
	EXPECT_EQ(event.rank, 1);
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
	push_signal(&a->r, 1, 0, 1);
	ASSERT_EQ(submit(&a->r, 1), 1);
	EXPECT_EQ(finish(a, NULL), -ESHUTDOWN);
}

/* Its instance has forgotten the group with its last member; the peer has not. */
TEST_F_TIMEOUT(ends, a_rank_that_left_is_refused_by_those_who_stay, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_event event;

	ASSERT_EQ(both_up(&self->p), 0);
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	close(b->r.fd);
	ASSERT_TRUE(wait_event(&a->r, HCOMM_EVENT_MEMBER_LEFT, &event));
	ASSERT_TRUE(WAIT_UNTIL(&a->r, !debugfs_lines(1, "groups")));
	ASSERT_EQ(side_join(&self->p, 1), 0);
	EXPECT_TRUE(in_error(b, HCOMM_CAUSE_PROOF, 0, -EACCES));
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
}

/*
 * The peer ends the session on which it has no member any more. It must not
 * come again: for a while its absence is all there is to see.
 */
TEST_F_TIMEOUT(ends, a_rank_that_left_is_not_connected_to_again, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_event event;
	char path[160];
	uint64_t end;

	ASSERT_EQ(both_up(&self->p), 0);
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_TRUE(wait_event(&a->r, HCOMM_EVENT_MEMBER_LEFT, &event));
	ASSERT_TRUE(WAIT_UNTIL(&a->r, !session_file(0, "state", path,
						    sizeof(path))));
	for (end = now_ns() + 3 * SEC; now_ns() < end; usleep(20000))
		ASSERT_FALSE(session_file(0, "state", path, sizeof(path)));
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
}

TEST_F_TIMEOUT(ends, a_rank_that_left_never_comes_back, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_join join = self->p.group;
	struct hcomm_event event;
	struct rank other;

	ASSERT_EQ(both_up(&self->p), 0);
	/* Taken by a peer, so not to be had here, now or later. */
	EXPECT_EQ(rank_join(&other, 0, &join, 1), -EEXIST);
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_LEAVE, NULL), 0);
	ASSERT_TRUE(wait_event(&a->r, HCOMM_EVENT_MEMBER_LEFT, &event));
	EXPECT_EQ(rank_join(&other, 0, &join, 1), -EEXIST);
}

TEST_F_TIMEOUT(ends, abort_reaches_the_other_instance, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_abort abort = { .error = -EDOM, .op = 4711 };
	uint64_t start;

	ASSERT_EQ(both_up(&self->p), 0);
	start = now_ns();
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_ABORT, &abort), 0);
	EXPECT_TRUE(in_error(a, HCOMM_CAUSE_ABORT, 1, -EDOM));
	EXPECT_EQ(state_line(&a->r)->op, 4711);
	EXPECT_LT(now_ns() - start, 2 * SEC);
}

TEST_F_TIMEOUT(ends, two_groups_do_not_know_each_other, 300)
{
	struct pair other;
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_abort abort = {};
	const size_t none[PAIR] = {};

	ASSERT_EQ(both_up(&self->p), 0);
	ASSERT_EQ(pair_up(&other), 0);
	ASSERT_EQ(pair_windows(&self->p, 64 * KIB, none), 0);
	ASSERT_EQ(pair_windows(&other, 64 * KIB, none), 0);
	fill(a->base, 64 * KIB, 1);
	fill(other.side[0].base, 64 * KIB, 2);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 64 * KIB), 0);
	EXPECT_EQ(run_data(&other.side[0], HCOMM_OP_PUT, 0, 0, 64 * KIB), 0);
	EXPECT_EQ(differs(b->base, 64 * KIB, 1), 64 * KIB);
	EXPECT_EQ(differs(other.side[1].base, 64 * KIB, 2), 64 * KIB);
	ASSERT_EQ(call(other.side[0].r.fd, HCOMM_IOC_ABORT, &abort), 0);
	EXPECT_TRUE(in_error(&other.side[1], HCOMM_CAUSE_ABORT, 0, -ECANCELED));
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 64 * KIB), 0);
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
	EXPECT_EQ(state_of(&b->r), HCOMM_STATE_ACTIVE);
	pair_end(&other);
}

/* Rank 1 of the pair in a process of its own, sending until it is killed. */
static int victim(void *arg, int in, int out)
{
	struct pair *p = arg;
	struct side *b = &p->side[1];
	struct hcomm_event event;
	struct hcomm_cqe cqe;
	unsigned int n = 0;

	if (side_join(p, 1) || side_memory(b, 1 << 20, 100) ||
	    side_attach(b, 1) ||
	    !wait_event(&b->r, HCOMM_EVENT_MEMBER_UP, &event))
		return 1;
	tell(out);
	for (;; n++) {
		data_sqe(b, n % 4 == 3 ? HCOMM_OP_GET : HCOMM_OP_PUT, 0, 0, 0,
			 n % 3 ? 300000 : 900);
		push(&b->r);
		if (submit(&b->r, 1) < 0)
			return 2;
		while (n % 16 == 15 && completions(&b->r) == 0 &&
		       state_of(&b->r) == HCOMM_STATE_ACTIVE)
			wait_change(&b->r, load32(&b->r.wake->wake),
				    load32(&b->r.wake->activity), 10 * MSEC);
		while (pop_cqe(&b->r, &cqe))
			if (cqe.result)
				return 3;
	}
}

static long in_file(const char *path, const char *key)
{
	char line[256], *at;
	long value = -1;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f)) {
		at = strstr(line, key);
		if (at && (at == line || at[-1] == '\n'))
			value = atol(at + strlen(key));
	}
	if (f)
		fclose(f);
	return value;
}

static long pinned(void)
{
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY);

	/* Folds what each CPU has counted for itself. */
	if (fd < 0 || write(fd, "1", 1) != 1)
		return -1;
	close(fd);
	return in_file("/proc/vmstat", "nr_foll_pin_acquired ") -
	       in_file("/proc/vmstat", "nr_foll_pin_released ");
}

TEST_F_TIMEOUT(ends, a_killed_rank_is_named_within_a_second, 240)
{
	const char *suite = getenv("HCOMM_SUITE");
	unsigned int rounds = suite && !strcmp(suite, "essential") ? 4 : 20;
	struct timespec pause = {};
	unsigned int i;
	long pins;

	pins = pinned();
	for (i = 0; i < rounds; i++) {
		struct pair p;
		struct side *a = &p.side[0];
		struct child child;
		uint64_t start;

		ASSERT_EQ(pair_begin(&p), 0);
		ASSERT_EQ(side_join(&p, 0), 0);
		ASSERT_EQ(side_memory(a, 1 << 20, 0), 0);
		ASSERT_EQ(side_attach(a, 1), 0);
		child = child_start(victim, &p);
		hear(child.from);
		pause.tv_nsec = (i * 7919 % 97) * 1000000;
		nanosleep(&pause, NULL);
		start = now_ns();
		kill(child.pid, SIGKILL);
		ASSERT_TRUE(in_error(a, HCOMM_CAUSE_PROCESS, 1, -EOWNERDEAD))
			TH_LOG("round %u", i);
		EXPECT_LT(now_ns() - start, 5 * SEC);
		child_end(&child);
		pair_end(&p);
	}
	/* Nothing is left: pins of the dead included. */
	for (i = 0; i < 200 && pinned() != pins; i++) {
		pause.tv_nsec = 50000000;
		nanosleep(&pause, NULL);
	}
	EXPECT_EQ(pinned(), pins);
}

TEST_HARNESS_MAIN
