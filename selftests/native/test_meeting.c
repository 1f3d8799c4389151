// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ranks find each other by every way that is documented; who does not know
 * the secret stays out, strangers do not disturb, and what is missing is
 * named.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "bootstrap/wire.h"
#include "ranks.h"

#define SEC	1000000000ULL

/* A port that is free now, below the range that the kernel hands out. */
static int free_port(int following)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int port = 20000 + getpid() % 10000, fd, i;

	for (i = 0; i < 1000; i++, port += following + 1) {
		fd = socket(AF_INET, SOCK_STREAM, 0);
		addr.sin_port = htons((uint16_t)port);
		if (!bind(fd, (struct sockaddr *)&addr, sizeof(addr))) {
			close(fd);
			return port;
		}
		close(fd);
	}
	return 0;
}

static int connect_to(int port)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0), i;

	for (i = 0; i < 2000; i++) {
		if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
			return fd;
		usleep(1000);
	}
	close(fd);
	return -1;
}

static int sum_up(hcommComm_t comm, int n)
{
	uint64_t data = 1;

	OK(hcommAllReduce(&data, &data, 1, HCOMM_UINT64, HCOMM_SUM, comm,
			  NULL));
	CHECK(data == (uint64_t)n, "%llu of %d", (unsigned long long)data, n);
	return 0;
}

static int join_and_sum(int rank, int n, void *arg)
{
	hcommComm_t comm = ranks_join();

	if (sum_up(comm, n))
		return 1;
	OK(hcommFinalize());
	return 0;
}

static void set_root(int port)
{
	char text[64];

	snprintf(text, sizeof(text), "127.0.0.1:%d", port);
	setenv("HCOMM_ROOT", text, 1);
}

static int authenticated(int rank, int n, void *arg)
{
	hcommCommInfo_t info = { .size = sizeof(info) };
	hcommComm_t comm = ranks_join();

	OK(hcommCommGetInfo(comm, &info));
	CHECK(info.authenticated == *(int *)arg, "authenticated %d",
	      info.authenticated);
	if (sum_up(comm, n))
		return 1;
	OK(hcommFinalize());
	return 0;
}

FIXTURE(meeting) {
	int none;
};

FIXTURE_SETUP(meeting)
{
	setenv("HCOMM_HEAP_SIZE", "8M", 1);
}

FIXTURE_TEARDOWN(meeting) {}

TEST_F_TIMEOUT(meeting, by_root_address_with_and_without_a_secret, 300)
{
	int *with = test_shared(sizeof(*with));

	set_root(free_port(0));
	EXPECT_TRUE(ranks_run(3, 30, authenticated, with));
	*with = 1;
	setenv("HCOMM_SECRET", "correct horse", 1);
	EXPECT_TRUE(ranks_run(3, 30, authenticated, with));
}

/* As torchrun sets them; its own port is taken, as it is there. */
static int like_torchrun(int rank, int n, void *arg)
{
	setenv("RANK", getenv("HCOMM_RANK"), 1);
	setenv("WORLD_SIZE", getenv("HCOMM_NRANKS"), 1);
	unsetenv("HCOMM_RANK");
	unsetenv("HCOMM_NRANKS");
	return join_and_sum(rank, n, arg);
}

TEST_F_TIMEOUT(meeting, by_torchrun_variables, 300)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	int port = free_port(16), fd[2], i;
	char text[16];

	/* The first two that rank 0 tries belong to somebody else. */
	for (i = 0; i < 2; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM, 0);
		addr.sin_port = htons((uint16_t)(port + i));
		ASSERT_EQ(0, bind(fd[i], (struct sockaddr *)&addr,
				  sizeof(addr)));
	}
	snprintf(text, sizeof(text), "%d", port);
	setenv("MASTER_ADDR", "127.0.0.1", 1);
	setenv("MASTER_PORT", text, 1);
	setenv("TORCHELASTIC_RUN_ID", "job 7", 1);
	EXPECT_TRUE(ranks_run(3, 30, like_torchrun, NULL));
	close(fd[0]);
	close(fd[1]);
}

struct id_box {
	hcommUniqueId id;
	int ready;
};

static int by_id(int rank, int n, void *arg)
{
	struct id_box *box = arg;
	hcommComm_t comm[2];
	int i;

	/* Two groups at once, from two ids. */
	for (i = 0; i < 2; i++) {
		if (!rank) {
			OK(hcommGetUniqueId(&box[i].id));
			__atomic_store_n(&box[i].ready, 1, __ATOMIC_RELEASE);
		}
		while (!__atomic_load_n(&box[i].ready, __ATOMIC_ACQUIRE))
			usleep(1000);
		OK(hcommCommInitRank(&comm[i], n, box[i].id, rank));
	}
	for (i = 0; i < 20; i++)
		if (sum_up(comm[i % 2], n))
			return 1;
	OK(hcommCommDestroy(comm[0]));
	if (sum_up(comm[1], n))
		return 1;
	OK(hcommCommDestroy(comm[1]));
	return 0;
}

TEST_F_TIMEOUT(meeting, by_unique_id_two_groups, 300)
{
	EXPECT_TRUE(ranks_run(3, 30, by_id,
			      test_shared(2 * sizeof(struct id_box))));
}

static int again_and_again(int rank, int n, void *arg)
{
	int i;

	for (i = 0; i < 15; i++)
		if (join_and_sum(rank, n, arg))
			return 1;
	return 0;
}

TEST_F_TIMEOUT(meeting, again_at_the_same_place, 450)
{
	EXPECT_TRUE(ranks_run(3, 40, again_and_again, NULL));
	set_root(free_port(0));
	EXPECT_TRUE(ranks_run(3, 40, again_and_again, NULL));
}

static int other_secret(int rank, int n, void *arg)
{
	const char *text;

	setenv("HCOMM_CONNECT_TIMEOUT", "2", 1);
	setenv("HCOMM_SECRET", rank == 2 ? "wrong" : "right", 1);
	if (rank == 2) {
		CALL(HCOMM_PERMISSION_DENIED, hcommInit());
		text = hcommCommGetLastError(NULL);
		CHECK(strstr(text, "secret") && !strstr(text, "wrong"), "%s",
		      text);
		return 0;
	}
	CALL(HCOMM_TIMEOUT, hcommInit());
	text = hcommCommGetLastError(NULL);
	CHECK(strstr(text, "missing: 2") && strstr(text, "know the secret"),
	      "%s", text);
	return 0;
}

TEST_F_TIMEOUT(meeting, wrong_secret_is_refused_and_told, 300)
{
	set_root(free_port(0));
	EXPECT_TRUE(ranks_run(3, 30, other_secret, NULL));
}

static int too_few(int rank, int n, void *arg)
{
	uint64_t start = test_now_ns();
	const char *text;

	setenv("HCOMM_CONNECT_TIMEOUT", "1", 1);
	if (rank == 1)
		return 0;
	CALL(HCOMM_TIMEOUT, hcommInit());
	CHECK(test_now_ns() - start < 9 * SEC, "took too long");
	text = hcommCommGetLastError(NULL);
	CHECK(strstr(text, "missing: 1"), "%s", text);
	CHECK(strstr(text, "HCOMM_CONNECT_TIMEOUT is 1 s"), "%s", text);
	return 0;
}

static int no_root(int rank, int n, void *arg)
{
	setenv("HCOMM_CONNECT_TIMEOUT", "1", 1);
	if (!rank)
		return 0;
	CALL(HCOMM_TIMEOUT, hcommInit());
	CHECK(strstr(hcommCommGetLastError(NULL), "rank 0 not found"), "%s",
	      hcommCommGetLastError(NULL));
	setenv("HCOMM_ROOT", "no.such.host.invalid:1", 1);
	CALL(HCOMM_TIMEOUT, hcommInit());
	CHECK(strstr(hcommCommGetLastError(NULL), "cannot be resolved"), "%s",
	      hcommCommGetLastError(NULL));
	return 0;
}

/* Who comes learns soon whom it waits for, and only once. */
static int waits_long(int rank, int n, void *file)
{
	char level[80];

	snprintf(level, sizeof(level), "WARN:%s-%d", (char *)file, rank);
	setenv("HCOMM_DEBUG", level, 1);
	setenv("HCOMM_CONNECT_TIMEOUT", "6", 1);
	if (rank == 1)
		return 0;
	CALL(HCOMM_TIMEOUT, hcommInit());
	return 0;
}

/* Its only line has @text; removes it. */
static bool one_line_has(const char *base, int rank, const char *text)
{
	char name[64], line[1024] = "", more[8];
	bool has = false;
	FILE *file;

	snprintf(name, sizeof(name), "%s-%d", base, rank);
	file = fopen(name, "r");
	if (file) {
		has = fgets(line, sizeof(line), file) && strstr(line, text) &&
		      !fgets(more, sizeof(more), file);
		fclose(file);
		unlink(name);
	}
	if (!has)
		fprintf(stderr, "# rank %d logged: %s\n", rank, line);
	return has;
}

/* Rank 0 never was there. */
static int waits_for_root(int rank, int n, void *file)
{
	return rank ? waits_long(2, n, file) : 0;
}

static int not_the_same(int rank, int n, void *arg)
{
	setenv("HCOMM_CONNECT_TIMEOUT", "2", 1);
	if (rank == 1)
		setenv("HCOMM_NRANKS", "4", 1);
	if (rank == 2)
		setenv("HCOMM_RANK", "3", 1);
	CALL(rank == 1 ? HCOMM_MISMATCH :
	     rank == 2 ? HCOMM_INVALID_ARGUMENT : HCOMM_TIMEOUT, hcommInit());
	return 0;
}

TEST_F_TIMEOUT(meeting, what_is_missing_is_named, 300)
{
	EXPECT_TRUE(ranks_run(3, 30, too_few, NULL));
	EXPECT_TRUE(ranks_run(2, 30, no_root, NULL));
	EXPECT_TRUE(ranks_run(3, 30, not_the_same, NULL));
}

TEST_F_TIMEOUT(meeting, who_is_awaited_is_logged_after_a_while, 300)
{
	char base[64];

	snprintf(base, sizeof(base), "/tmp/hcomm-test-%d", (int)getpid());
	EXPECT_TRUE(ranks_run(3, 30, waits_long, base));
	EXPECT_TRUE(one_line_has(base, 0, "missing: 1"));
	EXPECT_TRUE(ranks_run(2, 30, waits_for_root, base));
	EXPECT_TRUE(one_line_has(base, 2, "rank 0 not found"));
}

/* What a stranger answers at rank 0's address. */
static void answer(int listener, bool refusal)
{
	struct hcomm_boot_answer answer = {
		.magic = HCOMM_BOOT_MAGIC, .version = HCOMM_BOOT_VERSION,
		.status = HCOMM_BOOT_REFUSED, .text = "go\033[2J\n away",
	};
	struct hcomm_boot_hello hello[5];
	int fd = accept(listener, NULL, NULL), i;

	if (fd < 0)
		return;
	if (recv(fd, hello, sizeof(*hello), MSG_WAITALL) == sizeof(*hello)) {
		for (i = 1; i < 5; i++)
			hello[i] = *hello;
		send(fd, refusal ? (void *)&answer : hello, sizeof(answer),
		     MSG_NOSIGNAL);
	}
	close(fd);
}

static int meets_stranger(int rank, int n, void *refusal)
{
	const char *text;

	setenv("HCOMM_RANK", "1", 1);
	setenv("HCOMM_NRANKS", "2", 1);
	setenv("HCOMM_CONNECT_TIMEOUT", "2", 1);
	CALL(refusal ? HCOMM_MISMATCH : HCOMM_TIMEOUT, hcommInit());
	text = hcommCommGetLastError(NULL);
	CHECK(strstr(text, refusal ? "go?[2J? away" : "something else answers"),
	      "%s", text);
	return 0;
}

static bool ended(pid_t pid)
{
	siginfo_t info = { .si_pid = 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) ||
	       info.si_pid;
}

TEST_F_TIMEOUT(meeting, what_a_stranger_answers_is_not_printed_raw, 300)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int port = free_port(0), fd = socket(AF_INET, SOCK_STREAM, 0), i;
	struct timeval patience = { .tv_usec = 300000 };
	struct ranks ranks;

	addr.sin_port = htons((uint16_t)port);
	ASSERT_EQ(0, bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	ASSERT_EQ(0, listen(fd, 8));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	set_root(port);
	for (i = 0; i < 2; i++) {
		ranks_start(&ranks, 1, meets_stranger, i ? &ranks : NULL);
		while (!ended(ranks.pid[0]))
			answer(fd, i);
		EXPECT_TRUE(ranks_wait(&ranks, 30));
		EXPECT_EQ(0, ranks.status[0]);
	}
	close(fd);
}

/* The others come when the strangers are there. */
static int join_late(int rank, int n, void *crowd)
{
	while (rank && !__atomic_load_n((int *)crowd, __ATOMIC_SEQ_CST))
		usleep(1000);
	return join_and_sum(rank, n, NULL);
}

TEST_F_TIMEOUT(meeting, strangers_do_not_disturb, 300)
{
	static const char noise[] = "GET / HTTP/1.1\r\nHost: hcomm\r\n\r\n"
				    "0123456789012345678901234567890123456789";
	int port = free_port(0), i, fd[80], *crowd = test_shared(sizeof(int));
	struct ranks ranks;
	uint64_t start;

	set_root(port);
	start = test_now_ns();
	ranks_start(&ranks, 3, join_late, crowd);
	/* More than there are places: some talk, some keep silent. */
	for (i = 0; i < 80; i++) {
		fd[i] = connect_to(port);
		if (fd[i] >= 0 && i % 2 && send(fd[i], noise, sizeof(noise),
						MSG_NOSIGNAL) < 0)
			TH_LOG("a stranger was cut off");
	}
	__atomic_store_n(crowd, 1, __ATOMIC_SEQ_CST);
	EXPECT_TRUE(ranks_wait(&ranks, 30));
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, ranks.status[i]);
	EXPECT_LT(test_now_ns() - start, 25 * SEC);
	for (i = 0; i < 80; i++)
		close(fd[i]);
}

/* --------------------------------------- standard files and limits */

/* What a program prints must not reach a heap or a socket. */
static int without_standard_files(int rank, int n, void *arg)
{
	int errors = fcntl(2, F_DUPFD_CLOEXEC, 10), used = 0, fd;
	hcommUniqueId id;
	hcommComm_t comm;

	for (fd = 0; fd < 3; fd++)
		close(fd);
	comm = ranks_join();
	OK(hcommGetUniqueId(&id));
	for (fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			used |= 1 << fd;
	dup2(errors, 2);
	CHECK(!used, "standard files in use: mask %d", used);
	return sum_up(comm, n);
}

TEST_F_TIMEOUT(meeting, closed_standard_files_stay_closed, 300)
{
	EXPECT_TRUE(ranks_run(3, 30, without_standard_files, NULL));
	set_root(free_port(0));
	EXPECT_TRUE(ranks_run(3, 30, without_standard_files, NULL));
}

static void limit(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit limit;

	getrlimit(resource, &limit);
	limit.rlim_cur = soft;
	if (hard)
		limit.rlim_max = hard;
	setrlimit(resource, &limit);
}

static int few_files_at_first(int rank, int n, void *arg)
{
	limit(RLIMIT_NOFILE, 12, 0);
	return join_and_sum(rank, n, arg);
}

static int few_files(int rank, int n, void *arg)
{
	const char *text;

	setenv("HCOMM_CONNECT_TIMEOUT", "1", 1);
	if (rank) {
		CALL(HCOMM_TIMEOUT, hcommInit());
		return 0;
	}
	limit(RLIMIT_NOFILE, 40, 40);
	CALL(HCOMM_SYSTEM_ERROR, hcommInit());
	text = hcommCommGetLastError(NULL);
	CHECK(strstr(text, "RLIMIT_NOFILE is 40"), "%s", text);
	return 0;
}

static int short_files(int rank, int n, void *arg)
{
	const char *text;

	if (rank == 1)
		limit(RLIMIT_FSIZE, 4 << 20, 0);
	CALL(HCOMM_SYSTEM_ERROR, hcommInit());
	text = hcommCommGetLastError(NULL);
	CHECK(strstr(text, "RLIMIT_FSIZE is 4096 KiB"), "%s", text);
	return 0;
}

TEST_F_TIMEOUT(meeting, limits_are_raised_or_named, 300)
{
	EXPECT_TRUE(ranks_run(4, 30, few_files_at_first, NULL));
	EXPECT_TRUE(ranks_run(2, 30, few_files, NULL));
	EXPECT_TRUE(ranks_run(2, 30, short_files, NULL));
}

TEST_HARNESS_MAIN
