/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Ranks for tests: forked processes of one job on this host. Where they live
 * comes from the environment: with HCOMM_TEST_INSTANCES=K rank r of n uses
 * /dev/hcomm(r * K / n), otherwise no device.
 */
#ifndef RANKS_H
#define RANKS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hcomm.h"

typedef int rank_fn(int rank, int n, void *arg);

#define MAX_RANKS	64

struct ranks {
	int n;
	pid_t pid[MAX_RANKS];
	int status[MAX_RANKS];	/* of waitpid, -1 while it runs */
};

/* Forks @n ranks that exit with what @fn returns. */
void ranks_start(struct ranks *ranks, int n, rank_fn *fn, void *arg);
/* Waits for all; kills what is left after @seconds of patience. True if none had to be. */
bool ranks_wait(struct ranks *ranks, int seconds);
/* Both: true when every rank returned 0 in time. */
bool ranks_run(int n, int seconds, rank_fn *fn, void *arg);

/* In a rank: hcommInit() and the default group, or the process ends. */
hcommComm_t ranks_join(void);

/* Says what is wrong and where; returns 1. */
int complain(const char *file, int line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#define CHECK(condition, ...)						\
	do {								\
		if (!(condition))					\
			return complain(__FILE__, __LINE__, __VA_ARGS__); \
	} while (0)

/* The call must return @wanted. */
#define CALL(wanted, call)						\
	do {								\
		hcommResult_t res_ = (call);				\
									\
		CHECK(res_ == (wanted), "%s: %s, not %s: %s", #call,	\
		      hcommGetErrorName(res_), #wanted,			\
		      hcommCommGetLastError(NULL));			\
	} while (0)

#define OK(call)	CALL(HCOMM_SUCCESS, call)

int test_instances(void);
/* False for fewer ranks than instances. */
bool test_possible(int n);
uint64_t test_now_ns(void);
/* CPU time of process @pid so far, in ns. */
uint64_t test_cpu_ns(pid_t pid);
/* The full suite: as often as a figure needs it, wherever. */
bool test_full(void);
/* 1 for a quick run, more for a thorough one (HCOMM_SUITE). */
int test_effort(void);
/* How much longer than on a real machine things may take here. */
int test_patience(void);
/* Memory shared by the ranks that are forked later. */
void *test_shared(size_t bytes);

#endif
