// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory objects: what may be pinned, what is counted against whom, handles.
 */
#include <kselftest_harness.h>

#include <sys/mount.h>
#include <sys/resource.h>

#include "memory.h"

#define NOBODY		65534

#ifndef MFD_HUGETLB
#define MFD_HUGETLB	0x0004U
#endif

FIXTURE(objects)
{
	int fd;
	size_t page;
	long pinned;
};

FIXTURE_SETUP(objects)
{
	self->fd = device_open(0);
	if (self->fd == -ENOENT)
		SKIP(return, "no /dev/hcomm0");
	ASSERT_GE(self->fd, 0);
	self->page = getpagesize();
	self->pinned = vm_pin_kib();
	ASSERT_EQ(self->pinned, 0);
}

FIXTURE_TEARDOWN(objects)
{
	close(self->fd);
}

static long covering_kib(size_t page, size_t off, size_t length)
{
	size_t first = off / page, last = (off + length - 1) / page;

	return (last - first + 1) * page / KIB;
}

TEST_F(objects, any_base_and_length_pins_the_covering_pages)
{
	const struct {
		size_t off, length;
	} cases[] = {
		{ 0, 1 }, { 100, 1 }, { self->page - 1, 1 },
		{ self->page - 1, 2 }, { 1, self->page },
		{ 0, self->page }, { 0, self->page + 1 },
		{ 100, 2 * MIB }, { 100, 9 * MIB }, { 0, 9 * MIB + 1 },
	};
	char *base = memory_map(10 * MIB);
	uint32_t object;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		ASSERT_EQ(mem_create(self->fd, base + cases[i].off,
				     cases[i].length, &object), 0);
		EXPECT_NE(object, 0);
		EXPECT_EQ(vm_pin_kib(), covering_kib(self->page, cases[i].off,
						     cases[i].length));
		ASSERT_EQ(mem_destroy(self->fd, object), 0);
		EXPECT_TRUE(EVENTUALLY(!vm_pin_kib()));
	}
}

TEST_F(objects, what_is_not_defined_is_refused)
{
	char *base = memory_map(self->page);
	struct hcomm_mem_create good = {
		.base = (uintptr_t)base,
		.length = self->page,
	};
	struct hcomm_mem_create arg;
	struct hcomm_mem_destroy gone = { .object = 1, .flags = 1 };

	arg = good;
	arg.length = 0;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), -EINVAL);
	arg = good;
	arg.kind = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), -EINVAL);
	arg = good;
	arg.flags = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), -EINVAL);
	arg = good;
	arg.reserved = 1;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), -EINVAL);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_DESTROY, &gone), -EINVAL);
	EXPECT_EQ(mem_destroy(self->fd, 0), -ENOENT);
	EXPECT_EQ(mem_destroy(self->fd, 1), -ENOENT);
	EXPECT_EQ(mem_destroy(self->fd, ~0U), -ENOENT);
	EXPECT_EQ(vm_pin_kib(), 0);
}

TEST_F(objects, a_range_that_wraps_or_leaves_the_address_space_is_refused)
{
	char *base = memory_map(self->page);
	uint32_t object;

	EXPECT_EQ(mem_create(self->fd, base, ~0ULL, &object), -EFAULT);
	EXPECT_EQ(mem_create(self->fd, base, -(uintptr_t)base, &object),
		  -EFAULT);
	EXPECT_EQ(mem_create(self->fd, base, -(uintptr_t)base + 1, &object),
		  -EFAULT);
	EXPECT_EQ(mem_create(self->fd, (void *)-100L, 200, &object), -EFAULT);
	EXPECT_EQ(mem_create(self->fd, (void *)-100L, 100, &object), -EFAULT);
	EXPECT_EQ(mem_create(self->fd, (void *)(1UL << 63), 1, &object),
		  -EFAULT);
	EXPECT_EQ(mem_create(self->fd, base, 1ULL << 62, &object), -EFAULT);
	EXPECT_EQ(vm_pin_kib(), 0);
}

TEST_F(objects, a_hole_is_refused_and_nothing_stays_pinned)
{
	char *base = memory_map(4 * MIB);
	uint32_t object;

	ASSERT_EQ(munmap(base + 3 * MIB, self->page), 0);
	EXPECT_EQ(mem_create(self->fd, base, 4 * MIB, &object), -EFAULT);
	EXPECT_EQ(mem_create(self->fd, base + 3 * MIB, 1, &object), -EFAULT);
	EXPECT_EQ(vm_pin_kib(), 0);
	EXPECT_EQ(mem_create(self->fd, base, 3 * MIB, &object), 0);
}

TEST_F(objects, memory_that_cannot_be_written_is_refused)
{
	char *base = memory_map(3 * MIB);
	uint32_t object;

	memset(base, 1, 3 * MIB);
	ASSERT_EQ(mprotect(base, 3 * MIB, PROT_READ), 0);
	EXPECT_EQ(mem_create(self->fd, base, 3 * MIB, &object), -EFAULT);
	ASSERT_EQ(mprotect(base, 2 * MIB + self->page,
			   PROT_READ | PROT_WRITE), 0);
	EXPECT_EQ(mem_create(self->fd, base, 3 * MIB, &object), -EFAULT);
	ASSERT_EQ(mprotect(base, 3 * MIB, PROT_NONE), 0);
	EXPECT_EQ(mem_create(self->fd, base, 1, &object), -EFAULT);
	EXPECT_EQ(vm_pin_kib(), 0);
}

/* A file system of our own, in a mount namespace of our own. */
static int open_foreign_file(size_t bytes)
{
	char dir[] = "/tmp/hcomm.XXXXXX";
	char path[64];
	int fd;

	if (!mkdtemp(dir) || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", dir, "ramfs", 0, NULL))
		return -errno;
	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0 && ftruncate(fd, bytes))
		return -errno;
	return fd < 0 ? -errno : fd;
}

TEST_F(objects, a_shared_file_mapping_is_refused_a_private_one_is_not)
{
	size_t bytes = 16 * self->page;
	int fd = open_foreign_file(bytes);
	char *shared, *private;
	uint32_t object;

	if (fd == -EPERM)
		SKIP(return, "needs a mount namespace");
	ASSERT_GE(fd, 0);
	shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(shared, MAP_FAILED);
	private = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ASSERT_NE(private, MAP_FAILED);
	memset(shared, 7, bytes);

	EXPECT_EQ(mem_create(self->fd, shared, bytes, &object), -EOPNOTSUPP);
	EXPECT_EQ(mem_create(self->fd, shared + bytes - 1, 1, &object),
		  -EOPNOTSUPP);
	EXPECT_EQ(vm_pin_kib(), 0);
	EXPECT_EQ(mem_create(self->fd, private, bytes, &object), 0);
	EXPECT_EQ(vm_pin_kib(), (long)(bytes / KIB));
}

TEST_F(objects, shared_anonymous_memory_and_memfds_may_be_pinned)
{
	char *anonymous = memory_shared(3 * MIB);
	int fd = memfd_create("object", MFD_CLOEXEC);
	uint32_t object;
	char *heap;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(ftruncate(fd, 3 * MIB), 0);
	heap = mmap(NULL, 3 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ASSERT_NE(heap, MAP_FAILED);
	EXPECT_EQ(mem_create(self->fd, anonymous + 100, 2 * MIB, &object), 0);
	EXPECT_EQ(mem_create(self->fd, heap, 3 * MIB, &object), 0);
	/* Once pinned, the file may shrink: the pages are the object's. */
	EXPECT_EQ(ftruncate(fd, 0), 0);
	EXPECT_EQ(mem_destroy(self->fd, object), 0);
}

TEST_F(objects, what_the_device_maps_is_no_memory_of_the_process)
{
	struct hcomm_join group;
	uint32_t object;
	struct rank r;

	group_new(&group, 1);
	ASSERT_EQ(rank_start(&r, 0, &group, 0), 0);
	EXPECT_EQ(mem_create(self->fd, r.ring, self->page, &object),
		  -EOPNOTSUPP);
	EXPECT_EQ(mem_create(self->fd, r.sqes, self->page, &object),
		  -EOPNOTSUPP);
	EXPECT_EQ(mem_create(self->fd, r.sems, self->page, &object),
		  -EOPNOTSUPP);
	EXPECT_EQ(vm_pin_kib(), 0);
	close(r.fd);
}

TEST_F(objects, huge_pages_may_be_pinned)
{
	size_t bytes = 4 * MIB;
	uint32_t object;
	char *p;
	FILE *f;

	f = fopen("/proc/sys/vm/nr_hugepages", "w");
	if (!f)
		SKIP(return, "no huge pages here");
	fprintf(f, "4\n");
	fclose(f);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED)
		SKIP(return, "no huge pages free");
	EXPECT_EQ(mem_create(self->fd, p + 100, 2 * MIB, &object), 0);
	EXPECT_EQ(vm_pin_kib(), covering_kib(self->page, 100, 2 * MIB));
	EXPECT_EQ(mem_destroy(self->fd, object), 0);
	EXPECT_TRUE(EVENTUALLY(!vm_pin_kib()));

	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	ASSERT_NE(p, MAP_FAILED);
	EXPECT_EQ(mem_create(self->fd, p, bytes, &object), 0);
}

TEST_SLOW(objects, handles_are_many_and_bounded)
{
	char *base = memory_map(self->page);
	struct hcomm_query query = {};
	uint32_t object, i;
	int ret = 0;

	ASSERT_EQ(call(self->fd, HCOMM_IOC_QUERY, &query), 0);
	for (i = 0; i < query.max_objects && !ret; i++)
		ret = mem_create(self->fd, base, 1, &object);
	ASSERT_EQ(ret, 0);
	EXPECT_EQ(mem_create(self->fd, base, 1, &object), -ENOSPC);
	EXPECT_TRUE(EVENTUALLY(vm_pin_kib() ==
			       (long)(query.max_objects * self->page / KIB)));
	EXPECT_EQ(mem_destroy(self->fd, 5), 0);
	EXPECT_EQ(mem_create(self->fd, base, 1, &object), 0);
}

TEST_F(objects, a_handle_works_on_every_file_of_the_process)
{
	char *base = memory_map(self->page);
	int other = device_open(0);
	uint32_t object;

	ASSERT_GE(other, 0);
	ASSERT_EQ(mem_create(self->fd, base, 1, &object), 0);
	EXPECT_EQ(mem_destroy(other, object), 0);
	EXPECT_EQ(mem_destroy(self->fd, object), -ENOENT);
	close(other);
}

TEST_F(objects, closing_the_last_file_unpins)
{
	char *base = memory_map(2 * self->page);
	int other = device_open(0);
	uint32_t object;

	ASSERT_GE(other, 0);
	ASSERT_EQ(mem_create(other, base, 1, &object), 0);
	ASSERT_EQ(mem_create(other, base, 2 * self->page, &object), 0);
	EXPECT_NE(vm_pin_kib(), 0);
	close(other);
	EXPECT_TRUE(EVENTUALLY(!vm_pin_kib()));
}

/* Makes an object and uses the parent's handle and the parent's file. */
static int foreign_child(void *arg, int in, int out)
{
	int inherited = *(int *)arg, own = device_open(0);
	char *base = memory_map(1);
	uint32_t object;

	if (own < 0)
		return 1;
	if (mem_destroy(own, 1) != -ENOENT)
		return 2;
	if (mem_create(inherited, base, 1, &object) != -EPERM)
		return 3;
	if (mem_destroy(inherited, 1) != -EPERM)
		return 4;
	if (mem_create(own, base, 1, &object) || mem_destroy(own, object))
		return 5;
	return 0;
}

TEST_F(objects, another_process_cannot_name_them)
{
	char *base = memory_map(self->page);
	struct child child;
	uint32_t object;

	ASSERT_EQ(mem_create(self->fd, base, 1, &object), 0);
	ASSERT_EQ(object, 1);
	child = child_start(foreign_child, &self->fd);
	EXPECT_EQ(child_end(&child), 0);
	EXPECT_EQ(mem_destroy(self->fd, object), 0);
}

/* --------------------------------------------------------- the charge */

static int become_nobody(size_t memlock)
{
	struct rlimit limit = { .rlim_cur = memlock, .rlim_max = memlock };

	return setrlimit(RLIMIT_MEMLOCK, &limit) || setresgid(NOBODY, NOBODY,
							     NOBODY) ||
	       setresuid(NOBODY, NOBODY, NOBODY);
}

TEST_F(objects, memlock_is_enforced_and_the_numbers_are_told)
{
	char *base = memory_map(2 * MIB);
	struct hcomm_mem_create arg = {
		.base = (uintptr_t)base + 100,
		.length = MIB,
	};
	uint32_t object;

	ASSERT_EQ(become_nobody(MIB), 0);
	ASSERT_EQ(mem_create(self->fd, base, MIB / 2, &object), 0);

	/* The covering pages count, not the bytes. */
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), -ENOMEM);
	EXPECT_EQ(arg.memlock_limit, MIB);
	EXPECT_EQ(arg.memlock_used, MIB / 2);
	arg.length = MIB / 2;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), -ENOMEM);
	arg.length = MIB / 2 - 100;
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), 0);
	EXPECT_EQ(arg.memlock_limit, MIB);
	EXPECT_EQ(arg.memlock_used, MIB / 2);
	EXPECT_EQ(vm_pin_kib(), (long)(MIB / KIB));

	EXPECT_EQ(mem_destroy(self->fd, object), 0);
	EXPECT_EQ(mem_destroy(self->fd, arg.object), 0);
	EXPECT_TRUE(EVENTUALLY(!vm_pin_kib()));
	EXPECT_EQ(mem_create(self->fd, base, MIB, &object), 0);
}

TEST_F(objects, who_may_lock_memory_has_no_limit)
{
	struct rlimit limit = { .rlim_cur = self->page,
				.rlim_max = RLIM_INFINITY };
	char *base = memory_map(2 * MIB);
	struct hcomm_mem_create arg = {
		.base = (uintptr_t)base,
		.length = 2 * MIB,
	};

	if (geteuid())
		SKIP(return, "needs CAP_IPC_LOCK");
	ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), 0);
	EXPECT_EQ(arg.memlock_limit, self->page);
	limit.rlim_cur = RLIM_INFINITY;
	ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	EXPECT_EQ(call(self->fd, HCOMM_IOC_MEM_CREATE, &arg), 0);
	EXPECT_EQ(arg.memlock_limit, ~0ULL);
	EXPECT_EQ(arg.memlock_used, 2 * MIB);
}

struct pinner {
	int fd;
	size_t length;
};

static int pinner_child(void *arg, int in, int out)
{
	struct pinner *pinner = arg;
	char *base = memory_map(MIB);
	uint32_t object;
	int ret;

	if (become_nobody(MIB))
		return 1;
	/* What the one before left may still be on its way out. */
	EVENTUALLY((ret = mem_create(pinner->fd, base, pinner->length,
				     &object)) != -ENOMEM);
	if (ret)
		return 2;
	tell(out);
	hear(in);
	return 0;
}

static struct child pinner_start(size_t length)
{
	struct pinner pinner = { .fd = device_open(0), .length = length };
	struct child child = child_start(pinner_child, &pinner);

	close(pinner.fd);
	return child;
}

/* One of the user's processes lives on, so the user is not forgotten. */
TEST_SLOW(objects, a_killed_process_leaves_no_charge_with_its_user)
{
	struct child other = pinner_start(1), child;
	int i;

	ASSERT_TRUE(child_heard(&other));
	for (i = 0; i < 5; i++) {
		child = pinner_start(MIB);
		EXPECT_TRUE(child_heard(&child));
		EXPECT_EQ(child_kill(&child), 1000 + SIGKILL);
	}
	EXPECT_TRUE(EVENTUALLY(debugfs_lines(0, "objects") == 1));
	tell(other.to);
	EXPECT_EQ(child_end(&other), 0);
	EXPECT_TRUE(EVENTUALLY(!debugfs_lines(0, "objects")));
}

TEST_HARNESS_MAIN
