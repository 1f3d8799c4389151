// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The parent never calls the library: a process that has used it must not
 * fork ranks. Each job has a name of its own, so that tests do not meet.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake.h"
#include "ranks.h"

static int env_number(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : 0;
}

int test_instances(void)
{
	return env_number("HCOMM_TEST_INSTANCES");
}

bool test_possible(int n)
{
	return n >= test_instances() && n >= env_number("HCOMM_TEST_FAKE");
}

static bool on_debug_kernel(void)
{
	const char *place = getenv("HCOMM_TEST_PLACE");

	return place && !strcmp(place, "debug");
}

int test_patience(void)
{
	if (on_debug_kernel())
		return 6;
	return test_instances() ? 2 : 1;
}

bool test_full(void)
{
	const char *suite = getenv("HCOMM_SUITE");

	return suite && !strcmp(suite, "full");
}

int test_effort(void)
{
	const char *suite = getenv("HCOMM_SUITE");

	if (on_debug_kernel())
		return 1;
	if (test_full())
		return 3;
	return suite && !strcmp(suite, "fast") ? 1 : 2;
}

uint64_t test_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t test_cpu_ns(pid_t pid)
{
	struct timespec ts = { 0 };
	clockid_t clock;

	if (!clock_getcpuclockid(pid, &clock))
		clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void *test_shared(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

int complain(const char *file, int line, const char *fmt, ...)
{
	const char *rank = getenv("HCOMM_RANK");
	char text[900];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fprintf(stderr, "# %s:%d: rank %s of %s: %s\n", file, line,
		rank ? rank : "?", getenv("HCOMM_NRANKS"), text);
	return 1;
}

static void set_number(const char *name, int value)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", value);
	setenv(name, text, 1);
}

static void become_rank(int rank, int n, const char *job)
{
	int instances = test_instances();
	char device[16];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("HCOMM_JOB", job, 1);
	set_number("HCOMM_RANK", rank);
	set_number("HCOMM_NRANKS", n);
	if (instances) {
		snprintf(device, sizeof(device), "hcomm%d",
			 rank * instances / n);
		setenv("HCOMM_DEVICE", device, 1);
		setenv("HCOMM_TRANSPORT", "kmod", 1);
	} else {
		setenv("HCOMM_TRANSPORT", "local", 1);
	}
	setenv("HCOMM_HEAP_SIZE", "16M", 0);
}

void ranks_start(struct ranks *ranks, int n, rank_fn *fn, void *arg)
{
	static unsigned int jobs;
	char job[48];
	int r;

	snprintf(job, sizeof(job), "test-%d-%u", (int)getpid(), ++jobs);
	ranks->n = n;
	fflush(NULL);
	for (r = 0; r < n; r++) {
		ranks->status[r] = -1;
		ranks->pid[r] = fork();
		if (!ranks->pid[r]) {
			become_rank(r, n, job);
			exit(fn(r, n, arg));
		}
	}
}

bool ranks_wait(struct ranks *ranks, int seconds)
{
	uint64_t end = test_now_ns() +
		       (uint64_t)(seconds * test_patience()) * 1000000000;
	bool in_time = true;
	int r, left = ranks->n;

	for (r = 0; r < ranks->n; r++)
		if (ranks->status[r] != -1)
			left--;
	while (left) {
		struct timespec ts = { .tv_nsec = 1000000 };

		for (r = 0; r < ranks->n; r++)
			if (ranks->status[r] == -1 &&
			    waitpid(ranks->pid[r], &ranks->status[r],
				    WNOHANG) == ranks->pid[r])
				left--;
		if (left && test_now_ns() > end) {
			in_time = false;
			for (r = 0; r < ranks->n; r++) {
				if (ranks->status[r] != -1)
					continue;
				fprintf(stderr, "# rank %d of %d did not end\n",
					r, ranks->n);
				kill(ranks->pid[r], SIGKILL);
			}
			end = UINT64_MAX;
		}
		nanosleep(&ts, NULL);
	}
	return in_time;
}

bool ranks_run(int n, int seconds, rank_fn *fn, void *arg)
{
	struct ranks ranks;
	bool good;
	int r;

	ranks_start(&ranks, n, fn, arg);
	good = ranks_wait(&ranks, seconds);
	for (r = 0; r < n; r++) {
		if (ranks.status[r])
			good = false;
		if (WIFSIGNALED(ranks.status[r]))
			fprintf(stderr, "# rank %d of %d: signal %d\n", r, n,
				WTERMSIG(ranks.status[r]));
	}
	return good;
}

hcommComm_t ranks_join(void)
{
	const char *fake = getenv("HCOMM_TEST_FAKE");
	hcommComm_t comm;

	if (hcommInit() || hcommCommDefault(&comm)) {
		complain(__FILE__, __LINE__, "hcommInit: %s",
			 hcommCommGetLastError(NULL));
		exit(1);
	}
	if (fake && fake_instances(comm, atoi(fake)))
		exit(1);
	return comm;
}
