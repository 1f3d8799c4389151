// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The one way to wait. Ranks that have a CPU each spin for 50 us; where ranks
 * outnumber CPUs a spinner keeps the rank it waits for from running, so it
 * spins for 5 us, yields for 50 us, and sleeps.
 *
 * Sleeping: the sleeper stores sleeping = 1, looks once more, and sleeps. A
 * writer stores its flag with an exchange, then looks at the sleeping word.
 * Both are sequentially consistent, so one of the two sees the other.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/stream.h"
#include "exec/blame.h"
#include "exec/comm.h"
#include "exec/mismatch.h"
#include "exec/wait.h"

#define USEC		1000ULL
#define MSEC		1000000ULL
#define SEC		1000000000ULL
#define NOTICE_TIME	(30 * SEC)
#define MISMATCH_TIME	(10 * MSEC)
#define TELL_TIME	SEC
#define LONGEST_GAP	(128 * MSEC)
#define SPINS		64	/* between two looks at the clock */

static void relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

bool hcomm_cond_met(struct hcommComm *comm, const struct hcomm_cond *cond)
{
	uint64_t value;

	if (cond->kind == HCOMM_COND_DEVICE) {
		comm->transport->poll(comm);
		return (int64_t)(comm->completions - cond->value) >= 0;
	}
	value = __atomic_load_n(cond->word, __ATOMIC_SEQ_CST);
	if (cond->kind == HCOMM_COND_SLOT)
		return (int32_t)((uint32_t)value - (uint32_t)cond->value) >= 0;
	if (cond->word2)
		value += __atomic_load_n(cond->word2, __ATOMIC_SEQ_CST);
	return value >= cond->value;
}

static bool any_met(struct hcommComm *comm, const struct hcomm_cond *conds,
		    int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (hcomm_cond_met(comm, &conds[i]))
			return true;
	return false;
}

void hcomm_publish(uint64_t *word, uint64_t value)
{
	__atomic_exchange_n(word, value, __ATOMIC_SEQ_CST);
}

void hcomm_wake(struct hcommComm *comm, int rank)
{
	uint32_t *sleeping = &hcomm_rank(comm, rank)->ctrl->sleeping;

	if (!__atomic_load_n(sleeping, __ATOMIC_SEQ_CST))
		return;
	if (__atomic_exchange_n(sleeping, 0, __ATOMIC_SEQ_CST))
		comm->transport->wake(comm, rank);
}

void hcomm_wake_all(struct hcommComm *comm)
{
	int i;

	for (i = 0; i < comm->nlocal; i++)
		if (comm->locals[i] != comm->rank)
			hcomm_wake(comm, comm->locals[i]);
}

/* What a wait keeps between its looks at the world. */
struct watch {
	uint64_t start;
	uint64_t next_check;
	uint64_t check_gap;
	uint64_t next_notice;
	uint64_t departed;	/* when a rank was seen to have left, or 0 */
	int told;		/* whom others were told that we wait for, or -1 */
	bool compared;
};

/* The rank that the first unmet condition depends on. */
static int late_rank(struct hcommComm *comm, const struct hcomm_cond *conds,
		     int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		if (!hcomm_cond_met(comm, &conds[i]) && conds[i].rank >= 0)
			return conds[i].rank;
	return -1;
}

static void describe_late(char *text, size_t room, struct hcommComm *comm,
			  int rank)
{
	if (rank >= 0)
		snprintf(text, room, "rank %d (pid %d, %.15s)", rank,
			 (int)hcomm_rank(comm, rank)->pid,
			 *comm->table[rank].device ? comm->table[rank].device :
						     "this host");
	else
		snprintf(text, room, "a peer");
}

/*
 * A rank that has left cannot help any more. Why it left may be on its way as
 * the failure of the group, which says more: that is waited for a moment.
 */
static hcommResult_t check_departed(struct hcommComm *comm, struct watch *watch,
				    const struct hcomm_cond *conds, int nr,
				    uint64_t now)
{
	int i;

	for (i = 0; i < nr; i++) {
		int rank = conds[i].rank;

		if (rank < 0 || rank == comm->rank ||
		    !hcomm_rank(comm, rank)->left)
			continue;
		if (!watch->departed)
			watch->departed = now;
		/* What it did before it left counts. */
		if (now - watch->departed < HCOMM_GRACE_NS ||
		    any_met(comm, conds, nr))
			return HCOMM_SUCCESS;
		return hcomm_comm_fail(comm, HCOMM_REMOTE_ERROR, rank, false,
			"rank %d has left the group and this call still needs "
			"it: make the same calls on every rank before "
			"hcommCommDestroy()", rank);
	}
	return HCOMM_SUCCESS;
}

/* Whoever waits for us should know whom we wait for, before he gives up. */
static void tell_others(struct hcommComm *comm, struct watch *watch,
			const struct hcomm_cond *conds, int nr, uint64_t now)
{
	uint64_t patience = comm->settings.timeout_ns / 3;
	int rank;

	if (now - watch->start < (patience < TELL_TIME ? patience : TELL_TIME))
		return;
	rank = late_rank(comm, conds, nr);
	if (rank < 0 || rank == watch->told)
		return;
	watch->told = rank;
	hcomm_blame_tell(comm, rank);
}

static hcommResult_t check_clock(struct hcommComm *comm, struct watch *watch,
				 const struct hcomm_cond *conds, int nr,
				 uint64_t now)
{
	char late[64];

	if (now - watch->start >= comm->settings.timeout_ns) {
		int rank = hcomm_blame_find(comm, late_rank(comm, conds, nr));

		describe_late(late, sizeof(late), comm, rank);
		return hcomm_comm_fail(comm, HCOMM_TIMEOUT, rank, false,
			"%s did not come within %.3g s: see what it is doing "
			"there, or raise HCOMM_TIMEOUT", late,
			(double)comm->settings.timeout_ns / 1e9);
	}
	if (now >= watch->next_notice) {
		watch->next_notice = now + (now - watch->start);
		describe_late(late, sizeof(late), comm,
			      hcomm_blame_find(comm, late_rank(comm, conds, nr)));
		hcomm_log(HCOMM_LOG_WARN,
			  "rank %d has been waiting for %s for %.0f s in %s #%llu",
			  comm->rank, late, (double)(now - watch->start) / 1e9,
			  comm->call.name, (unsigned long long)comm->call.op);
	}
	return HCOMM_SUCCESS;
}

/* Once per ms of waiting at first, more rarely later. */
static hcommResult_t look_around(struct hcommComm *comm, struct watch *watch,
				 const struct hcomm_cond *conds, int nr)
{
	uint64_t now = hcomm_now();
	hcommResult_t res;

	if (now < watch->next_check)
		return HCOMM_SUCCESS;
	if (now - watch->start > MISMATCH_TIME + MSEC &&
	    watch->check_gap < LONGEST_GAP)
		watch->check_gap *= 2;
	watch->next_check = now + watch->check_gap;

	comm->transport->check(comm);
	if (comm->transport->failed(comm))
		return hcomm_comm_failed(comm);
	if (!watch->compared && now - watch->start >= MISMATCH_TIME) {
		watch->compared = true;
		res = hcomm_mismatch_search(comm);
		if (res)
			return res;
	}
	res = check_departed(comm, watch, conds, nr, now);
	if (res)
		return res;
	tell_others(comm, watch, conds, nr, now);
	return check_clock(comm, watch, conds, nr, now);
}

static hcommResult_t sleep_until(struct hcommComm *comm, struct watch *watch,
				 const struct hcomm_cond *conds, int nr)
{
	uint32_t *sleeping = &comm->ctrl->sleeping;
	hcommResult_t res = HCOMM_SUCCESS;
	uint64_t now;

	hcomm_blame_sleep(comm, late_rank(comm, conds, nr));
	for (;;) {
		comm->transport->park_begin(comm);
		__atomic_store_n(sleeping, 1, __ATOMIC_SEQ_CST);
		if (any_met(comm, conds, nr))
			break;
		if (comm->transport->failed(comm)) {
			res = hcomm_comm_failed(comm);
			break;
		}
		now = hcomm_now();
		if (now < watch->next_check)
			comm->transport->park(comm, conds, nr,
					      watch->next_check - now);
		if (any_met(comm, conds, nr))
			break;
		res = look_around(comm, watch, conds, nr);
		if (res)
			break;
	}
	__atomic_store_n(sleeping, 0, __ATOMIC_SEQ_CST);
	/* Who gives up says to the end whom it waited for. */
	if (res)
		return res;
	hcomm_blame_awake(comm);
	if (watch->told >= 0)
		hcomm_blame_tell(comm, -1);
	return HCOMM_SUCCESS;
}

hcommResult_t hcomm_wait(struct hcommComm *comm, const struct hcomm_cond *conds,
			 int nr)
{
	struct watch watch = { .check_gap = MSEC, .told = -1 };
	uint64_t now;
	int i;

	if (any_met(comm, conds, nr))
		return HCOMM_SUCCESS;
	watch.start = hcomm_now();
	watch.next_check = watch.start + MSEC;
	watch.next_notice = watch.start + NOTICE_TIME;
	for (;;) {
		for (i = 0; i < SPINS; i++) {
			if (any_met(comm, conds, nr))
				return HCOMM_SUCCESS;
			relax();
		}
		if (comm->transport->failed(comm))
			return hcomm_comm_failed(comm);
		now = hcomm_now();
		if (now - watch.start < comm->budget.spin_ns) {
			if (now >= watch.next_check &&
			    look_around(comm, &watch, conds, nr))
				return hcomm_comm_failed(comm);
			continue;
		}
		if (now - watch.start - comm->budget.spin_ns >=
		    comm->budget.yield_ns)
			return sleep_until(comm, &watch, conds, nr);
		if (now >= watch.next_check &&
		    look_around(comm, &watch, conds, nr))
			return hcomm_comm_failed(comm);
		sched_yield();
	}
}

void hcomm_budget_set(struct hcommComm *comm, int ranks, int cpus)
{
	struct hcomm_budget *budget = &comm->budget;
	bool crowded = ranks > cpus;

	switch (comm->settings.wait) {
	case HCOMM_WAIT_SPIN:
		*budget = (struct hcomm_budget) { UINT64_MAX, 0 };
		break;
	case HCOMM_WAIT_YIELD:
		*budget = (struct hcomm_budget) { 5 * USEC, UINT64_MAX };
		break;
	case HCOMM_WAIT_PARK:
		*budget = (struct hcomm_budget) { 0, 0 };
		break;
	default:
		budget->spin_ns = (crowded ? 5 : 50) * USEC;
		budget->yield_ns = crowded ? 50 * USEC : 0;
	}
}

/* The smallest cpu.max from this process's cgroup upwards. */
int hcomm_cgroup_cpus(void)
{
	char path[512], file[600], line[512];
	int least = INT_MAX;
	FILE *stream;
	char *slash;

	stream = fopen("/proc/self/cgroup", "re");
	if (!stream)
		return least;
	*path = 0;
	while (fgets(line, sizeof(line), stream)) {
		line[strcspn(line, "\n")] = 0;
		if (!strncmp(line, "0::", 3))
			snprintf(path, sizeof(path), "%s", line + 3);
	}
	fclose(stream);
	while (*path) {
		unsigned long quota, period;

		snprintf(file, sizeof(file), "/sys/fs/cgroup%s/cpu.max", path);
		stream = fopen(file, "re");
		if (stream) {
			if (fscanf(stream, "%lu %lu", &quota, &period) == 2 &&
			    period) {
				unsigned long cpus = (quota + period - 1) /
						     period;

				if (cpus < (unsigned long)least)
					least = cpus ? (int)cpus : 1;
			}
			fclose(stream);
		}
		slash = strrchr(path, '/');
		if (!slash || (slash == path && !path[1]))
			break;
		*(slash == path ? path + 1 : slash) = 0;
	}
	return least;
}
