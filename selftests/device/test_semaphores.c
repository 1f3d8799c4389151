// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Semaphores, ops that wait for them, and the one place to sleep: WAIT_ANY
 * with its deadline, wake and activity generations, signals and errors; WAKE.
 */
#include <kselftest_harness.h>

#include <pthread.h>

#include "device.h"

/* How late a sleeper may be on a busy emulated machine. */
#define LATE	(5 * SEC)

FIXTURE(sems)
{
	struct hcomm_join group;
	struct rank a, b;
};

FIXTURE_SETUP(sems)
{
	int ret;

	group_new(&self->group, 3);
	ret = rank_start(&self->a, 0, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(rank_start(&self->b, 0, &self->group, 1), 0);
}

FIXTURE_TEARDOWN(sems)
{
	close(self->a.fd);
	close(self->b.fd);
}

/* Fills @enter to sleep for @timeout from what the wake page says now. */
static void sleep_of(struct rank *r, struct hcomm_enter *enter,
		     struct hcomm_wait *waits, uint32_t nr, uint64_t timeout)
{
	memset(enter, 0, sizeof(*enter));
	enter->flags = HCOMM_ENTER_WAIT;
	enter->nr_waits = nr;
	enter->waits = (uintptr_t)waits;
	enter->timeout_ns = timeout;
	enter->wake = load32(&r->wake->wake);
	enter->activity = load32(&r->wake->activity);
}

static int signal_rank(struct rank *from, uint32_t to, uint16_t sem,
		       uint32_t delta)
{
	struct hcomm_cqe cqe;
	int ret;

	push_signal(from, to, sem, delta);
	ret = submit(from, 1);
	if (ret != 1)
		return ret;
	return WAIT_UNTIL(from, pop_cqe(from, &cqe)) ? cqe.result : -ETIME;
}

static void push_wait(struct rank *r, uint16_t sem, uint64_t value,
		      uint64_t user_data)
{
	struct hcomm_sqe *sqe = next_sqe(r);

	sqe->opcode = HCOMM_OP_WAIT;
	sqe->wait_sem = sem;
	sqe->wait_value = value;
	sqe->user_data = user_data;
	push(r);
}

TEST_F(sems, a_signal_adds_and_is_published)
{
	EXPECT_EQ(sem_value(&self->a, 3), 0);
	EXPECT_EQ(signal_rank(&self->b, 0, 3, 5), 0);
	EXPECT_EQ(sem_value(&self->a, 3), 5);
	EXPECT_EQ(signal_rank(&self->a, 0, 3, 0xffffffff), 0);
	EXPECT_EQ(sem_value(&self->a, 3), 5ULL + 0xffffffff);
	EXPECT_EQ(sem_value(&self->a, 2), 0);
	EXPECT_EQ(sem_value(&self->a, 4), 0);
	EXPECT_EQ(sem_value(&self->b, 3), 0);
}

TEST_F(sems, the_last_semaphore_is_one_and_the_next_is_not)
{
	uint32_t nr = self->a.join.nr_sems;

	EXPECT_EQ(signal_rank(&self->b, 0, nr - 1, 1), 0);
	EXPECT_EQ(sem_value(&self->a, nr - 1), 1);
	EXPECT_EQ(signal_rank(&self->b, 0, nr, 1), -EINVAL);
	EXPECT_EQ(signal_rank(&self->b, 0, 0xffff, 1), -EINVAL);
}

TEST_F(sems, a_satisfied_wait_returns_at_once)
{
	struct hcomm_wait waits[HCOMM_MAX_WAITS] = {};
	struct hcomm_enter enter;
	int i;

	ASSERT_EQ(signal_rank(&self->b, 0, 7, 2), 0);
	for (i = 0; i < HCOMM_MAX_WAITS; i++) {
		waits[i].member = self->a.join.member;
		waits[i].sem = i;
		waits[i].value = 3;
	}
	waits[1].value = 0;
	waits[7].value = 2;
	sleep_of(&self->a, &enter, waits, HCOMM_MAX_WAITS, FAR);
	ASSERT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), 0);
	EXPECT_EQ(enter.ready, 1 << 1 | 1 << 7);
}

TEST_F(sems, the_deadline_ends_the_sleep)
{
	struct hcomm_wait wait = { .member = self->a.join.member, .value = 1 };
	static const uint64_t times[] = { 0, 1, MSEC, 30 * MSEC, 200 * MSEC };
	struct hcomm_enter enter;
	uint64_t start, slept;
	unsigned int i;

	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		sleep_of(&self->a, &enter, &wait, 1, times[i]);
		start = now_ns();
		EXPECT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), -ETIME);
		slept = now_ns() - start;
		EXPECT_GE(slept, times[i]);
		EXPECT_LT(slept, times[i] + LATE);
		EXPECT_EQ(enter.ready, 0);
	}
}

struct sleeper {
	struct rank *r;
	struct hcomm_enter enter;
	pthread_t thread;
	int tid;
	int ret;
};

static void *sleeper_run(void *arg)
{
	struct sleeper *s = arg;

	__atomic_store_n(&s->tid, syscall(SYS_gettid), __ATOMIC_RELEASE);
	s->ret = call(s->r->fd, HCOMM_IOC_ENTER, &s->enter);
	return NULL;
}

/* Starts a thread that enters with s->enter and waits until it sleeps. */
static void sleeper_start(struct sleeper *s, struct rank *r)
{
	char path[64], line[512], *state;
	FILE *f;

	s->r = r;
	s->tid = 0;
	if (pthread_create(&s->thread, NULL, sleeper_run, s))
		abort();
	while (!__atomic_load_n(&s->tid, __ATOMIC_ACQUIRE))
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", s->tid);
	do {
		sched_yield();
		f = fopen(path, "r");
		if (!f)
			return;
		state = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
		fclose(f);
	} while (!state || state[2] != 'S');
}

static int sleeper_end(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->ret;
}

TEST_F(sems, a_signal_ends_the_sleep_of_who_waits_for_it)
{
	struct hcomm_wait waits[2] = {
		{ .member = self->a.join.member, .sem = 1, .value = 1 },
		{ .member = self->a.join.member, .sem = 2, .value = 3 },
	};
	struct sleeper s;

	sleep_of(&self->a, &s.enter, waits, 2, FAR);
	sleeper_start(&s, &self->a);
	EXPECT_EQ(signal_rank(&self->b, 0, 2, 1), 0);
	EXPECT_EQ(signal_rank(&self->b, 0, 2, 2), 0);
	EXPECT_EQ(sleeper_end(&s), 0);
	EXPECT_EQ(s.enter.ready, 1 << 1);
}

TEST_F(sems, signals_below_the_threshold_do_not_end_the_sleep)
{
	struct hcomm_wait wait = {
		.member = self->a.join.member, .sem = 2, .value = 100,
	};
	struct sleeper s;

	sleep_of(&self->a, &s.enter, &wait, 1, 300 * MSEC);
	sleeper_start(&s, &self->a);
	EXPECT_EQ(signal_rank(&self->b, 0, 2, 99), 0);
	EXPECT_EQ(signal_rank(&self->b, 0, 3, 1000), 0);
	EXPECT_EQ(sleeper_end(&s), -ETIME);
}

TEST_F(sems, one_sleep_covers_several_groups)
{
	struct hcomm_join group;
	struct hcomm_wait waits[2];
	struct rank other;
	struct sleeper s;

	group_new(&group, 1);
	ASSERT_EQ(rank_start(&other, 0, &group, 0), 0);
	ASSERT_NE(other.join.member, self->a.join.member);
	waits[0] = (struct hcomm_wait){ self->a.join.member, 5, 1 };
	waits[1] = (struct hcomm_wait){ other.join.member, 5, 1 };
	sleep_of(&self->a, &s.enter, waits, 2, FAR);
	sleeper_start(&s, &self->a);
	EXPECT_EQ(signal_rank(&other, 0, 5, 1), 0);
	EXPECT_EQ(sleeper_end(&s), 0);
	EXPECT_EQ(s.enter.ready, 1 << 1);

	/* The failure of any of them ends it as well. */
	waits[1].value = 2;
	sleep_of(&self->a, &s.enter, waits, 2, FAR);
	sleeper_start(&s, &self->a);
	EXPECT_EQ(call(other.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(sleeper_end(&s), 0);
	EXPECT_EQ(s.enter.ready, 0);
}

TEST_F(sems, wake_ends_the_sleep_of_the_process_it_names)
{
	struct hcomm_wait wait = { .member = self->a.join.member, .value = 1 };
	struct hcomm_enter enter = {
		.flags = HCOMM_ENTER_WAKE, .wake_rank = 0,
	};
	uint32_t before = load32(&self->a.wake->wake);
	struct sleeper s;

	sleep_of(&self->a, &s.enter, &wait, 1, FAR);
	sleeper_start(&s, &self->a);
	EXPECT_EQ(call(self->b.fd, HCOMM_IOC_ENTER, &enter), 0);
	EXPECT_EQ(sleeper_end(&s), 0);
	EXPECT_EQ(s.enter.ready, 0);
	EXPECT_EQ(load32(&self->a.wake->wake), before + 1);
}

TEST_F(sems, a_wake_that_came_first_is_not_lost)
{
	struct hcomm_wait wait = { .member = self->a.join.member, .value = 1 };
	struct hcomm_enter wake = { .flags = HCOMM_ENTER_WAKE };
	struct hcomm_enter enter;

	sleep_of(&self->a, &enter, &wait, 1, FAR);
	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_ENTER, &wake), 0);
	EXPECT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), 0);
	EXPECT_EQ(enter.ready, 0);
}

TEST_F(sems, without_waits_any_activity_ends_the_sleep)
{
	struct sleeper s;

	sleep_of(&self->a, &s.enter, NULL, 0, FAR);
	sleeper_start(&s, &self->a);
	EXPECT_EQ(signal_rank(&self->b, 0, 9, 1), 0);
	EXPECT_EQ(sleeper_end(&s), 0);

	/* Also when it came before. */
	sleep_of(&self->a, &s.enter, NULL, 0, FAR);
	push_nop(&self->b, 1);
	ASSERT_EQ(submit(&self->b, 1), 1);
	EXPECT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &s.enter), 0);
}

TEST_F(sems, submit_and_sleep_in_one_call)
{
	struct hcomm_wait wait = {
		.member = self->a.join.member, .sem = 4, .value = 3,
	};
	struct hcomm_enter enter;
	int i;

	for (i = 0; i < 3; i++)
		push_signal(&self->a, 0, 4, 1);
	sleep_of(&self->a, &enter, &wait, 1, FAR);
	enter.to_submit = 3;
	EXPECT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), 0);
	EXPECT_EQ(enter.submitted, 3);
	EXPECT_EQ(enter.ready, 1);
}

TEST_F(sems, what_was_submitted_is_told_when_the_sleep_fails)
{
	struct hcomm_wait wait = { .member = self->a.join.member, .value = 1 };
	struct hcomm_enter enter;

	push_nop(&self->a, 1);
	push_nop(&self->a, 2);
	sleep_of(&self->a, &enter, &wait, 1, MSEC);
	enter.to_submit = 5;
	EXPECT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), -ETIME);
	EXPECT_EQ(enter.submitted, 2);
}

static void on_signal(int nr)
{
}

TEST_F(sems, a_posix_signal_interrupts_whatever_its_flags)
{
	static const int flags[] = { 0, SA_RESTART };
	struct hcomm_wait wait = { .member = self->a.join.member, .value = 1 };
	struct sigaction act = { .sa_handler = on_signal };
	struct sleeper s;
	int i;

	for (i = 0; i < 2; i++) {
		act.sa_flags = flags[i];
		ASSERT_EQ(sigaction(SIGUSR1, &act, NULL), 0);
		sleep_of(&self->a, &s.enter, &wait, 1, FAR);
		sleeper_start(&s, &self->a);
		ASSERT_EQ(pthread_kill(s.thread, SIGUSR1), 0);
		EXPECT_EQ(sleeper_end(&s), -EINTR);
	}
}

TEST_F(sems, abort_leave_and_close_end_the_sleep)
{
	struct hcomm_wait wait = { .member = self->a.join.member, .value = 1 };
	struct hcomm_abort arg = {};
	struct sleeper s;

	sleep_of(&self->a, &s.enter, &wait, 1, FAR);
	sleeper_start(&s, &self->a);
	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_ABORT, &arg), 0);
	EXPECT_EQ(sleeper_end(&s), 0);

	group_new(&self->group, 1);
	close(self->a.fd);
	ASSERT_EQ(rank_start(&self->a, 0, &self->group, 0), 0);
	wait.member = self->a.join.member;
	sleep_of(&self->a, &s.enter, &wait, 1, FAR);
	sleeper_start(&s, &self->a);
	ASSERT_EQ(call(self->a.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(sleeper_end(&s), 0);

	group_new(&self->group, 1);
	close(self->a.fd);
	ASSERT_EQ(rank_start(&self->a, 0, &self->group, 0), 0);
	wait.member = self->a.join.member;
	sleep_of(&self->a, &s.enter, &wait, 1, FAR);
	sleeper_start(&s, &self->a);
	close(self->a.fd);
	EXPECT_EQ(sleeper_end(&s), 0);
	EXPECT_EQ(state_of(&self->a), HCOMM_STATE_LEFT);
	self->a.fd = -1;
}

struct process {
	struct hcomm_join group;
	uint32_t rank;
};

static int sleep_for_ever(void *arg, int in, int out)
{
	struct process *p = arg;
	struct hcomm_wait wait = {};
	struct hcomm_enter enter;
	struct rank r;

	if (rank_start(&r, 0, &p->group, p->rank))
		return 1;
	wait.member = r.join.member;
	wait.value = 1;
	sleep_of(&r, &enter, &wait, 1, 10 * FAR);
	tell(out);
	return call(r.fd, HCOMM_IOC_ENTER, &enter) ? 2 : 3;
}

TEST_F(sems, a_sleeper_can_be_killed)
{
	struct process p = { .group = self->group, .rank = 2 };
	struct child child = child_start(sleep_for_ever, &p);
	uint64_t start;

	ASSERT_TRUE(child_heard(&child));
	start = now_ns();
	EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
	EXPECT_LT(now_ns() - start, LATE);
}

static int answer_signals(void *arg, int in, int out)
{
	struct process *p = arg;
	struct rank r;
	uint64_t i;

	if (rank_start(&r, 0, &p->group, p->rank))
		return 1;
	tell(out);
	for (i = 1; i <= scaled(200); i++) {
		struct hcomm_wait wait = { r.join.member, 0, i };
		struct hcomm_enter enter;

		while (sem_value(&r, 0) < i) {
			sleep_of(&r, &enter, &wait, 1, FAR);
			if (call(r.fd, HCOMM_IOC_ENTER, &enter))
				return 2;
		}
		if (signal_rank(&r, 0, 0, 1))
			return 3;
	}
	hear(in);
	return call(r.fd, HCOMM_IOC_LEAVE, NULL) ? 4 : 0;
}

TEST_F(sems, two_processes_take_turns)
{
	struct process p = { .group = self->group, .rank = 2 };
	struct child child = child_start(answer_signals, &p);
	struct hcomm_wait wait = { .member = self->a.join.member };
	struct hcomm_enter enter;
	uint64_t i;

	ASSERT_TRUE(child_heard(&child));
	for (i = 1; i <= scaled(200); i++) {
		ASSERT_EQ(signal_rank(&self->a, 2, 0, 1), 0);
		wait.value = i;
		while (sem_value(&self->a, 0) < i) {
			sleep_of(&self->a, &enter, &wait, 1, FAR);
			ASSERT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), 0);
		}
	}
	tell(child.to);
	EXPECT_EQ(child_end(&child), 0);
	EXPECT_EQ(state_of(&self->a), HCOMM_STATE_ACTIVE);
}

TEST_F(sems, ops_wait_for_their_threshold_in_order)
{
	struct rank *r = &self->a;
	struct hcomm_cqe cqe;

	push_wait(r, 1, 5, 50);
	push_wait(r, 1, 3, 30);
	push_wait(r, 1, 5, 51);
	push_wait(r, 1, 0, 0);
	push_wait(r, 2, 1, 99);
	ASSERT_EQ(submit(r, 5), 5);
	ASSERT_TRUE(pop_cqe(r, &cqe));
	EXPECT_EQ(cqe.user_data, 0);
	EXPECT_FALSE(pop_cqe(r, &cqe));

	ASSERT_EQ(signal_rank(&self->b, 0, 1, 3), 0);
	ASSERT_TRUE(WAIT_UNTIL(r, pop_cqe(r, &cqe)));
	EXPECT_EQ(cqe.user_data, 30);
	EXPECT_EQ(cqe.result, 0);
	ASSERT_EQ(signal_rank(&self->b, 0, 1, 1), 0);
	EXPECT_FALSE(pop_cqe(r, &cqe));
	ASSERT_EQ(signal_rank(&self->b, 0, 1, 1), 0);
	ASSERT_TRUE(WAIT_UNTIL(r, pop_cqe(r, &cqe)));
	EXPECT_EQ(cqe.user_data, 50);
	ASSERT_TRUE(WAIT_UNTIL(r, pop_cqe(r, &cqe)));
	EXPECT_EQ(cqe.user_data, 51);
	EXPECT_FALSE(pop_cqe(r, &cqe));
}

/* Each of a's ops makes one of b's ready and the other way round. */
TEST_F(sems, long_chains_of_triggers_run)
{
	enum { LINKS = 200 };
	struct rank *ranks[] = { &self->a, &self->b };
	struct hcomm_wait wait = { .member = self->a.join.member };
	struct hcomm_enter enter;
	struct hcomm_sqe *sqe;
	uint32_t i, side;

	for (side = 0; side < 2; side++) {
		for (i = 0; i < LINKS; i++) {
			sqe = next_sqe(ranks[side]);
			sqe->opcode = HCOMM_OP_SIGNAL;
			sqe->flags = HCOMM_OPF_WAIT | HCOMM_OPF_SILENT;
			sqe->rank = !side;
			sqe->sem = 6;
			sqe->delta = 1;
			sqe->wait_sem = 6;
			sqe->wait_value = i + 1;
			push(ranks[side]);
		}
		ASSERT_EQ(submit(ranks[side], LINKS), LINKS);
	}
	EXPECT_EQ(sem_value(&self->a, 6), 0);
	ASSERT_EQ(signal_rank(&self->b, 0, 6, 1), 0);
	wait.sem = 6;
	wait.value = LINKS + 1;
	while (sem_value(&self->a, 6) < wait.value) {
		sleep_of(&self->a, &enter, &wait, 1, FAR);
		ASSERT_EQ(call(self->a.fd, HCOMM_IOC_ENTER, &enter), 0);
	}
	EXPECT_EQ(sem_value(&self->b, 6), LINKS);
}

TEST_F(sems, one_signal_makes_many_ops_ready)
{
	enum { OPS = 250 };
	struct rank *r = &self->a;
	struct hcomm_cqe cqe;
	uint32_t i;

	for (i = 0; i < OPS; i++)
		push_wait(r, 8, 1, i);
	ASSERT_EQ(submit(r, OPS), OPS);
	ASSERT_EQ(signal_rank(&self->b, 0, 8, 1), 0);
	for (i = 0; i < OPS; i++) {
		ASSERT_TRUE(WAIT_UNTIL(r, pop_cqe(r, &cqe)));
		ASSERT_EQ(cqe.user_data, i);
		ASSERT_EQ(cqe.result, 0);
	}
}

TEST_F(sems, an_op_that_waits_too_long_times_out_alone)
{
	struct hcomm_join group;
	struct hcomm_cqe cqe;
	struct rank r;

	group_new(&group, 1);
	group.op_timeout_ns = 50 * MSEC;
	ASSERT_EQ(rank_start(&r, 0, &group, 0), 0);
	push_wait(&r, 0, 1, 1);
	ASSERT_EQ(submit(&r, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&r, pop_cqe(&r, &cqe)));
	EXPECT_EQ(cqe.result, -ETIMEDOUT);
	EXPECT_EQ(state_of(&r), HCOMM_STATE_ACTIVE);
	/* It is gone: what it waited for finds nobody. */
	push_wait(&r, 0, 2, 2);
	ASSERT_EQ(submit(&r, 1), 1);
	push_signal(&r, 0, 0, 2);
	ASSERT_EQ(submit(&r, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&r, completions(&r) == 2));
	while (pop_cqe(&r, &cqe))
		EXPECT_EQ(cqe.result, 0);
}

TEST_F(sems, leaving_ends_ops_that_wait)
{
	struct rank *r = &self->a;
	struct hcomm_cqe cqe;
	uint64_t i;

	for (i = 0; i < 5; i++)
		push_wait(r, i, 1, i);
	ASSERT_EQ(submit(r, 5), 5);
	ASSERT_EQ(call(r->fd, HCOMM_IOC_LEAVE, NULL), 0);
	for (i = 0; i < 5; i++) {
		ASSERT_TRUE(pop_cqe(r, &cqe));
		EXPECT_EQ(cqe.user_data, i);
		EXPECT_EQ(cqe.result, -ESHUTDOWN);
	}
}

TEST_F(sems, a_signal_to_who_has_left_is_shut_down)
{
	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(signal_rank(&self->a, 1, 0, 1), -ESHUTDOWN);
	EXPECT_EQ(state_of(&self->a), HCOMM_STATE_ACTIVE);
}

struct pusher {
	struct rank *r;
	uint32_t count;
	int bad;
};

static void *push_many(void *arg)
{
	struct pusher *p = arg;
	struct hcomm_cqe cqe;
	uint32_t i;

	for (i = 0; i < p->count; i++) {
		push_signal(p->r, 2, 0, 1);
		if (submit(p->r, 1) != 1) {
			p->bad = 1;
			return NULL;
		}
		while (pop_cqe(p->r, &cqe))
			p->bad |= !!cqe.result;
	}
	return NULL;
}

TEST_F(sems, signals_of_several_ranks_add_up)
{
	const uint32_t each = scaled(2000);
	struct pusher pushers[2] = {
		{ &self->a, each, 0 }, { &self->b, each, 0 },
	};
	struct hcomm_wait wait = { .value = 2 * each };
	struct hcomm_enter enter;
	pthread_t threads[2];
	struct rank target;
	int i;

	ASSERT_EQ(rank_start(&target, 0, &self->group, 2), 0);
	wait.member = target.join.member;
	for (i = 0; i < 2; i++)
		ASSERT_EQ(pthread_create(&threads[i], NULL, push_many,
					 &pushers[i]), 0);
	while (sem_value(&target, 0) < 2 * each) {
		sleep_of(&target, &enter, &wait, 1, FAR);
		ASSERT_EQ(call(target.fd, HCOMM_IOC_ENTER, &enter), 0);
	}
	for (i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(pushers[i].bad, 0);
	}
	EXPECT_EQ(sem_value(&target, 0), 2 * each);
}

TEST_HARNESS_MAIN
