/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Waiting. An executor that cannot go on returns a condition; hcomm_wait()
 * spins, yields and sleeps until one of several is met, and meanwhile looks
 * after deadlines and the life of the peers.
 */
#ifndef HCOMM_WAIT_H
#define HCOMM_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "hcomm.h"

struct hcommComm;
struct hcomm_call;

/*
 * What is only a consequence (a departure, a refused message) is not reported
 * before the failure of the group, if there is one, had this time to arrive.
 */
#define HCOMM_GRACE_NS	500000000ULL

enum hcomm_cond_kind {
	HCOMM_COND_FLAG,	/* *word >= value, stored by a local rank */
	HCOMM_COND_SLOT,	/* low half of *word has reached value */
	HCOMM_COND_SEM,		/* the same as FLAG, a semaphore of the device */
	HCOMM_COND_USER,	/* *word + *word2 >= value, a user semaphore */
	HCOMM_COND_DEVICE,	/* comm->completions has reached value */
};

struct hcomm_cond {
	enum hcomm_cond_kind kind;
	int rank;		/* whom it depends on, -1 if nobody in particular */
	const uint64_t *word;
	const uint64_t *word2;	/* may be NULL */
	uint64_t value;
	uint32_t sem;		/* SEM, USER: the index */
};

/* What an executor says: it is done, blocked on the condition, or failed. */
enum hcomm_run { HCOMM_RUN_DONE, HCOMM_RUN_BLOCKED, HCOMM_RUN_FAILED };

bool hcomm_cond_met(struct hcommComm *comm, const struct hcomm_cond *cond);

/* 0 when one of @nr is met, else why the group ended. */
hcommResult_t hcomm_wait(struct hcommComm *comm, const struct hcomm_cond *conds,
			 int nr);

/* Stores @value where local ranks look for it. A full barrier. */
void hcomm_publish(uint64_t *word, uint64_t value);
/* After a publication: wakes @rank, or all local ranks, if they sleep. */
void hcomm_wake(struct hcommComm *comm, int rank);
void hcomm_wake_all(struct hcommComm *comm);

/* The spin and yield budgets for @ranks processes on @cpus. */
void hcomm_budget_set(struct hcommComm *comm, int ranks, int cpus);
/* CPUs that the cgroup lets this process use at once; INT_MAX if no limit. */
int hcomm_cgroup_cpus(void);

#endif
