// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A rank is a child process. The parent never uses the library. It waits for
 * signals only: of children that end, and of those who want all to end. When
 * one rank fails, the library tells the others within a second; who has not
 * ended GRACE seconds later is killed. Children die with their parent.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

#define GRACE	10

struct placement {
	int node;
	int nodes;
	int local_ranks;
	bool launched;			/* the environment has rank and size */
};

struct children {
	const struct placement *placement;
	pid_t pid[BENCH_MAX_LOCAL];	/* 0: ended */
	int count;
	int left;
	int code;			/* the worst one so far */
	bool failing;
	time_t deadline;		/* when failing */
};

static bool wrong(const char *what)
{
	fprintf(stderr, "hcomm_benchmark: %s\n", what);
	return false;
}

static bool number_of(const char *name, int low, int high, int *value)
{
	const char *text = getenv(name);
	char *end;
	long number;

	if (!text)
		return wrong("HCOMM_NODES needs HCOMM_NODE");
	number = strtol(text, &end, 10);
	if (end == text || *end || number < low || number > high) {
		fprintf(stderr, "hcomm_benchmark: %s=%s: must be from %d to %d\n",
			name, text, low, high);
		return false;
	}
	*value = number;
	return true;
}

static bool is_launched(void)
{
	return getenv("HCOMM_RANK") || getenv("HCOMM_UNIQUE_ID") ||
	       (getenv("RANK") && getenv("WORLD_SIZE"));
}

static bool place(const struct bench_args *args, struct placement *placement)
{
	*placement = (struct placement){
		.nodes = 1,
		.local_ranks = args->local_ranks,
	};
	if (args->ninstances > args->local_ranks)
		return wrong("--instances names more devices than -g starts ranks");
	if (!getenv("HCOMM_NODES")) {
		placement->launched = !args->local_ranks_given && is_launched();
		return placement->launched ||
		       bench_root_exists(args, args->local_ranks);
	}
	if (!number_of("HCOMM_NODES", 1, 4096, &placement->nodes) ||
	    !number_of("HCOMM_NODE", 0, placement->nodes - 1,
		       &placement->node))
		return false;
	if (placement->nodes > 1 && !getenv("HCOMM_ROOT"))
		return wrong("HCOMM_NODES needs HCOMM_ROOT=HOST:PORT, an address of node 0");
	return bench_root_exists(args, placement->nodes * args->local_ranks);
}

static void set_number(const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	setenv(name, text, 1);
}

/* One host needs no address: ranks meet where HCOMM_JOB says. */
static void set_meeting(pid_t parent)
{
	static const char *const others[] = {
		"HCOMM_UNIQUE_ID", "HCOMM_ROOT", "MASTER_ADDR", "MASTER_PORT",
	};
	char job[48];

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		unsetenv(others[i]);
	snprintf(job, sizeof(job), "hcomm_benchmark-%d", parent);
	setenv("HCOMM_JOB", job, 1);
}

/* Ranks are spread in blocks, as a launcher spreads them over nodes. */
static const char *device_of(const struct bench_args *args, int local)
{
	return args->instances[local * args->ninstances / args->local_ranks];
}

static void set_environment(const struct bench_args *args,
			    const struct placement *placement, int local,
			    pid_t parent)
{
	if (args->ninstances) {
		/* Who names devices does not want to do without them. */
		setenv("HCOMM_TRANSPORT", "kmod", 0);
		setenv("HCOMM_DEVICE", device_of(args, local), 1);
	}
	if (placement->launched)
		return;
	set_number("HCOMM_RANK",
		   placement->node * placement->local_ranks + local);
	set_number("HCOMM_NRANKS", placement->nodes * placement->local_ranks);
	if (placement->nodes == 1)
		set_meeting(parent);
	else
		unsetenv("HCOMM_UNIQUE_ID");
}

static void handled_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

static void child(const struct bench_args *args,
		  const struct placement *placement,
		  struct bench_shared *shared, int local, pid_t parent)
{
	sigset_t set;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(BENCH_EXIT_CANNOT);
	handled_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	set_environment(args, placement, local, parent);
	exit(bench_rank_main(args, shared, local));
}

static void kill_all(const struct children *children)
{
	for (int i = 0; i < children->count; i++)
		if (children->pid[i])
			kill(children->pid[i], SIGKILL);
}

static void finish_killed(struct children *children)
{
	kill_all(children);
	for (int i = 0; i < children->count; i++)
		if (children->pid[i])
			waitpid(children->pid[i], NULL, 0);
	children->left = 0;
}

static time_t now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void fail(struct children *children)
{
	if (!children->failing)
		children->deadline = now() + GRACE;
	children->failing = true;
}

static void start(struct children *children, const struct bench_args *args,
		  struct bench_shared *shared)
{
	const struct placement *placement = children->placement;
	pid_t parent = getpid();

	fflush(NULL);
	for (int i = 0; i < placement->local_ranks; i++) {
		pid_t pid = fork();

		if (!pid)
			child(args, placement, shared, i, parent);
		if (pid < 0) {
			fprintf(stderr, "hcomm_benchmark: cannot start rank %d: %s\n",
				i, strerror(errno));
			children->code = BENCH_EXIT_CANNOT;
			finish_killed(children);
			return;
		}
		children->pid[i] = pid;
		children->count++;
		children->left++;
	}
}

static void tell_killed(const struct children *children, int local, int signal)
{
	const struct placement *placement = children->placement;
	char who[64];

	if (placement->launched)
		snprintf(who, sizeof(who), "the rank");
	else
		snprintf(who, sizeof(who), "rank %d",
			 placement->node * placement->local_ranks + local);
	fprintf(stderr, "hcomm_benchmark: %s (process %d) was killed by signal %d (%s)\n",
		who, children->pid[local], signal, strsignal(signal));
}

/* Those that this process kills for being late are not worth a line. */
static void ended(struct children *children, int local, int status)
{
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : BENCH_EXIT_CANNOT;
	bool late = children->failing && now() >= children->deadline;

	if (WIFSIGNALED(status) && !late)
		tell_killed(children, local, WTERMSIG(status));
	children->pid[local] = 0;
	children->left--;
	if (code > children->code)
		children->code = code;
	if (code > BENCH_EXIT_BAD)
		fail(children);
}

static void reap(struct children *children)
{
	for (int i = 0; i < children->count; i++) {
		int status = W_EXITCODE(BENCH_EXIT_CANNOT, 0);
		pid_t got;

		if (!children->pid[i])
			continue;
		got = waitpid(children->pid[i], &status, WNOHANG);
		/* ECHILD: how it ended was told to nobody. */
		if (got > 0 || (got < 0 && errno == ECHILD))
			ended(children, i, status);
	}
}

/* Ends as one ends who does not handle @signal at all. */
static void die_of(struct children *children, int signum)
{
	sigset_t set;

	finish_killed(children);
	signal(signum, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signum);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(signum);
}

static void kill_late(struct children *children)
{
	if (!children->failing || now() < children->deadline || !children->left)
		return;
	fprintf(stderr, "hcomm_benchmark: %d more ranks did not end within %d s: killed\n",
		children->left, GRACE);
	finish_killed(children);
}

static void see_through(struct children *children)
{
	const struct timespec second = { .tv_sec = 1 };
	sigset_t set;

	handled_signals(&set);
	while (children->left) {
		int signum = sigtimedwait(&set, NULL, &second);

		if (signum > 0 && signum != SIGCHLD)
			die_of(children, signum);
		reap(children);
		kill_late(children);
	}
}

int bench_launch(struct bench_args *args)
{
	struct placement placement;
	struct children children = { .placement = &placement };
	struct bench_shared *shared;
	sigset_t set;

	if (!place(args, &placement))
		return BENCH_EXIT_USAGE;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		fprintf(stderr, "hcomm_benchmark: no shared memory: %s\n",
			strerror(errno));
		return BENCH_EXIT_CANNOT;
	}
	/* Ignored, as a parent may leave it, it would not tell of any end. */
	signal(SIGCHLD, SIG_DFL);
	handled_signals(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	start(&children, args, shared);
	see_through(&children);
	munmap(shared, sizeof(*shared));
	return children.code;
}
