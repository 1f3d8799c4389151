/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the tests of memory objects, windows and local ops share, on top of the
 * ranks of device.h: objects and windows by one call, ops by one call, what
 * the kernel counts.
 */
#ifndef HCOMM_TEST_MEMORY_H
#define HCOMM_TEST_MEMORY_H

#include "device/device.h"

#define KIB		1024UL
#define MIB		(1024UL * 1024)

/* For many bytes on a slow machine. */
#define TEST_SLOW(fixture, name)	TEST_F_TIMEOUT(fixture, name, 300)

static inline void *memory_map(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

/* The same, seen by children. */
static inline void *memory_shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		abort();
	return p;
}

static inline int mem_create(int fd, const void *base, uint64_t length,
			     uint32_t *object)
{
	struct hcomm_mem_create arg = {
		.base = (uintptr_t)base,
		.length = length,
	};
	int ret = call(fd, HCOMM_IOC_MEM_CREATE, &arg);

	*object = arg.object;
	return ret;
}

static inline int mem_destroy(int fd, uint32_t object)
{
	struct hcomm_mem_destroy arg = { .object = object };

	return call(fd, HCOMM_IOC_MEM_DESTROY, &arg);
}

static inline int win_attach(struct rank *r, uint32_t object, uint32_t window)
{
	struct hcomm_win_attach arg = { .object = object, .window = window };

	return call(r->fd, HCOMM_IOC_WIN_ATTACH, &arg);
}

static inline int win_detach(struct rank *r, uint32_t window)
{
	struct hcomm_win_detach arg = { .window = window };

	return call(r->fd, HCOMM_IOC_WIN_DETACH, &arg);
}

/* Object and window @window over all of @base. */
static inline int window_make(struct rank *r, void *base, uint64_t length,
			      uint32_t window, uint32_t *object)
{
	int ret = mem_create(r->fd, base, length, object);

	return ret ? ret : win_attach(r, *object, window);
}

static inline void push_sqe(struct rank *r, const struct hcomm_sqe *sqe)
{
	*next_sqe(r) = *sqe;
	push(r);
}

/* Waits for the next completion; its result, or -ETIME. */
static inline int next_result(struct rank *r, uint64_t user_data)
{
	struct hcomm_cqe cqe;

	if (!WAIT_UNTIL(r, pop_cqe(r, &cqe)))
		return -ETIME;
	return cqe.user_data == user_data ? cqe.result : -EILSEQ;
}

/* Submits one op and waits for its end. */
static inline int run_op(struct rank *r, const struct hcomm_sqe *sqe)
{
	int ret;

	push_sqe(r, sqe);
	ret = submit(r, 1);
	if (ret != 1)
		return ret < 0 ? ret : -EIO;
	return next_result(r, sqe->user_data);
}

/* True as soon as @condition is; false when FAR has passed. */
#define EVENTUALLY(condition)						\
({									\
	uint64_t limit_ = now_ns() + FAR;				\
	bool so_;							\
									\
	while (!(so_ = (condition)) && now_ns() < limit_)		\
		usleep(1000);						\
	so_;								\
})

/* The number after @name in @path, or -1. */
static inline long number_in(const char *path, const char *name)
{
	char line[256];
	long value = -1;
	FILE *f = fopen(path, "r");

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, name, strlen(name)))
			value = strtol(line + strlen(name), NULL, 10);
	}
	if (f)
		fclose(f);
	return value;
}

static inline long vm_pin_kib(void)
{
	return number_in("/proc/self/status", "VmPin:");
}

/* Pages pinned by anybody now, or -1 where the kernel does not count. */
static inline long foll_pins(void)
{
	long got = number_in("/proc/vmstat", "nr_foll_pin_acquired ");
	long gone = number_in("/proc/vmstat", "nr_foll_pin_released ");

	return got < 0 ? -1 : got - gone;
}

/* Lines about anything on the instance; 0: nothing is left. */
static inline int left_over(unsigned int device)
{
	return debugfs_lines(device, "groups") +
	       debugfs_lines(device, "members") +
	       debugfs_lines(device, "windows") +
	       debugfs_lines(device, "objects");
}

/* Bytes that say where they belong. */
static inline void fill(unsigned char *p, size_t n, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!(i % 8))
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		p[i] = x >> (8 * (i % 8));
	}
}

/* The first byte that is not as filled, or -1. */
static inline long differs(const unsigned char *p, size_t n, uint64_t seed)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15ULL + 1;
	size_t i;

	for (i = 0; i < n; i++) {
		if (!(i % 8))
			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		if (p[i] != (unsigned char)(x >> (8 * (i % 8))))
			return i;
	}
	return -1;
}

/* The first byte that is not @c, or -1. */
static inline long not_all(const unsigned char *p, size_t n, unsigned char c)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (p[i] != c)
			return i;
	return -1;
}

#endif /* HCOMM_TEST_MEMORY_H */
