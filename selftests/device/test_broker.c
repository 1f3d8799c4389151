// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The broker: which files it takes, and to whom it gives them.
 */
#include <kselftest_harness.h>

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "device.h"

#define HEAP	(16UL * 4096)

FIXTURE(broker)
{
	struct hcomm_join group;
	struct rank a, b;
	int heap;
};

static int heap_make(size_t size)
{
	int fd = memfd_create("heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, size))
		return -errno;
	return fd;
}

FIXTURE_SETUP(broker)
{
	int ret;

	group_new(&self->group, 3);
	ret = rank_join(&self->a, 0, &self->group, 0);
	if (ret == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(rank_join(&self->b, 0, &self->group, 1), 0);
	self->heap = heap_make(HEAP);
	ASSERT_GE(self->heap, 0);
}

FIXTURE_TEARDOWN(broker)
{
	close(self->a.fd);
	close(self->b.fd);
	close(self->heap);
}

static int offer(struct rank *r, int fd, uint32_t segment, uint64_t size)
{
	struct hcomm_heap_offer arg = {
		.fd = fd, .segment = segment, .size = size,
	};

	return call(r->fd, HCOMM_IOC_HEAP_OFFER, &arg);
}

/* The descriptor, or a negative errno. */
static int take(struct rank *r, uint32_t rank, uint32_t segment, uint64_t *size)
{
	struct hcomm_heap_take arg = {
		.rank = rank, .segment = segment, .fd = -1,
	};
	int ret = call(r->fd, HCOMM_IOC_HEAP_TAKE, &arg);

	if (size)
		*size = arg.size;
	return ret ? ret : arg.fd;
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

TEST_F(broker, an_offered_heap_is_given_to_a_local_member)
{
	uint64_t size = 0;
	char *mine, *theirs;
	int fd;

	EXPECT_EQ(take(&self->b, 0, 0, NULL), -EAGAIN);
	ASSERT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
	fd = take(&self->b, 0, 0, &size);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(size, HEAP);
	EXPECT_TRUE(same_file(fd, self->heap));
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	mine = map(self->heap, HEAP, PROT_READ | PROT_WRITE, 0);
	theirs = map(fd, HEAP, PROT_READ | PROT_WRITE, 0);
	ASSERT_NE(mine, NULL);
	ASSERT_NE(theirs, NULL);
	mine[HEAP - 1] = 42;
	EXPECT_EQ(theirs[HEAP - 1], 42);
}

TEST_F(broker, segments_are_separate_and_offered_once)
{
	int other = heap_make(4096);

	ASSERT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
	EXPECT_EQ(offer(&self->a, self->heap, 0, HEAP), -EEXIST);
	EXPECT_EQ(offer(&self->a, other, 0, 4096), -EEXIST);
	EXPECT_EQ(offer(&self->a, other, 63, 4096), 0);
	EXPECT_EQ(offer(&self->a, other, 64, 4096), -EINVAL);
	EXPECT_EQ(offer(&self->a, other, 0xffffffff, 4096), -EINVAL);
	EXPECT_EQ(take(&self->b, 0, 1, NULL), -EAGAIN);
	EXPECT_TRUE(same_file(take(&self->b, 0, 63, NULL), other));
	EXPECT_TRUE(same_file(take(&self->b, 0, 0, NULL), self->heap));
	EXPECT_EQ(take(&self->b, 0, 64, NULL), -EINVAL);
}

TEST_F(broker, every_taker_gets_a_descriptor)
{
	int first, second;

	ASSERT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
	first = take(&self->b, 0, 0, NULL);
	second = take(&self->b, 0, 0, NULL);
	ASSERT_GE(first, 0);
	ASSERT_GE(second, 0);
	EXPECT_NE(first, second);
}

TEST_F(broker, a_rank_that_is_not_here_has_no_heap)
{
	EXPECT_EQ(take(&self->b, 2, 0, NULL), -ENOENT);
	EXPECT_EQ(take(&self->b, 3, 0, NULL), -EINVAL);
	ASSERT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
	ASSERT_EQ(call(self->a.fd, HCOMM_IOC_LEAVE, NULL), 0);
	EXPECT_EQ(take(&self->b, 0, 0, NULL), -ENOENT);
}

TEST_F(broker, another_group_gets_nothing)
{
	struct hcomm_join group;
	struct rank stranger;

	ASSERT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
	group_new(&group, 2);
	ASSERT_EQ(rank_join(&stranger, 0, &group, 1), 0);
	EXPECT_EQ(take(&stranger, 0, 0, NULL), -ENOENT);
}

TEST_F(broker, the_size_must_be_the_files)
{
	int empty = heap_make(0);

	EXPECT_EQ(offer(&self->a, self->heap, 0, HEAP - 1), -EINVAL);
	EXPECT_EQ(offer(&self->a, self->heap, 0, HEAP + 1), -EINVAL);
	EXPECT_EQ(offer(&self->a, self->heap, 0, 0), -EINVAL);
	EXPECT_EQ(offer(&self->a, empty, 0, 0), -EINVAL);
	EXPECT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
}

TEST_F(broker, a_file_that_cannot_be_written_is_refused)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->heap);
	fd = open(path, O_RDONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EACCES);
	fd = open(path, O_WRONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EACCES);
	fd = open(path, O_RDWR | O_PATH);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EBADF);
}

TEST_F(broker, only_regular_files_in_memory_are_taken)
{
	int pipes[2], sockets[2], fd;

	EXPECT_EQ(offer(&self->a, -1, 0, HEAP), -EBADF);
	EXPECT_EQ(offer(&self->a, 9999, 0, HEAP), -EBADF);

	/* Ourselves and another member: a cycle of references. */
	EXPECT_EQ(offer(&self->a, self->a.fd, 0, HEAP), -EBADF);
	EXPECT_EQ(offer(&self->a, self->b.fd, 0, HEAP), -EBADF);

	ASSERT_EQ(pipe(pipes), 0);
	EXPECT_EQ(offer(&self->a, pipes[0], 0, HEAP), -EBADF);
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	EXPECT_EQ(offer(&self->a, sockets[0], 0, HEAP), -EBADF);
	fd = eventfd(0, 0);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EBADF);
	fd = open("/dev/zero", O_RDWR);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EBADF);
	fd = open("/dev/shm", O_RDONLY | O_DIRECTORY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EBADF);
	/* A regular file elsewhere, whatever it is. */
	fd = open("/proc/self/comm", O_RDWR);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), -EBADF);
	fd = open("/proc/self/exe", O_RDONLY);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(offer(&self->a, fd, 0, lseek(fd, 0, SEEK_END)), -EBADF);
}

TEST_F(broker, a_file_of_tmpfs_is_taken)
{
	char name[] = "/dev/shm/hcomm-test-XXXXXX";
	int fd = mkstemp(name);

	ASSERT_GE(fd, 0);
	unlink(name);
	ASSERT_EQ(ftruncate(fd, HEAP), 0);
	EXPECT_EQ(offer(&self->a, fd, 0, HEAP), 0);
}

TEST_F(broker, a_file_of_huge_pages_is_taken)
{
	const size_t size = 2UL << 20;
	int fd = memfd_create("heap", MFD_CLOEXEC | MFD_HUGETLB);

	if (fd < 0 || ftruncate(fd, size))
		SKIP(return, "no huge pages here");
	EXPECT_EQ(offer(&self->a, fd, 0, size), 0);
	EXPECT_TRUE(same_file(take(&self->b, 0, 0, NULL), fd));
}

/* A descriptor that could not be told must not stay behind. */
TEST_F(broker, a_failed_take_leaves_no_descriptor)
{
	struct hcomm_heap_take *arg = mmap(NULL, getpagesize(),
					   PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int before, after;

	ASSERT_NE(arg, MAP_FAILED);
	ASSERT_EQ(offer(&self->a, self->heap, 0, HEAP), 0);
	before = dup(0);
	close(before);
	memset(arg, 0, sizeof(*arg));
	ASSERT_EQ(mprotect(arg, getpagesize(), PROT_READ), 0);
	EXPECT_EQ(call(self->b.fd, HCOMM_IOC_HEAP_TAKE, arg), -EFAULT);
	after = dup(0);
	EXPECT_EQ(after, before);
}

TEST_F(broker, no_offers_to_a_failed_group)
{
	struct hcomm_abort arg = { .error = -EIO };

	ASSERT_EQ(call(self->b.fd, HCOMM_IOC_ABORT, &arg), 0);
	EXPECT_EQ(offer(&self->a, self->heap, 0, HEAP), -EIO);
}

/* Offers a heap and keeps it from ever being closed by itself. */
static int offer_and_die(void *arg, int in, int out)
{
	struct hcomm_join *group = arg;
	struct rank r;

	if (rank_join(&r, 0, group, 2) ||
	    offer(&r, heap_make(HEAP), 5, HEAP))
		return 1;
	tell(out);
	hear(in);
	return 0;
}

TEST_F(broker, a_heap_outlives_its_owner_in_who_took_it)
{
	struct child child = child_start(offer_and_die, &self->group);
	char *heap;
	int fd;

	ASSERT_TRUE(child_heard(&child));
	fd = take(&self->b, 2, 5, NULL);
	ASSERT_GE(fd, 0);
	EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
	heap = map(fd, HEAP, PROT_READ | PROT_WRITE, 0);
	ASSERT_NE(heap, NULL);
	heap[0] = 1;
	ASSERT_EQ(rank_map_sems(&self->b), 0);
	EXPECT_TRUE(WAIT_UNTIL(&self->b,
			       state_of(&self->b) == HCOMM_STATE_ERROR));
	EXPECT_EQ(take(&self->b, 2, 5, NULL), -ENOENT);
}

TEST_HARNESS_MAIN
