// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Files and addresses of heaps. Address space is reserved first, without
 * memory behind it, so that a mapping made later cannot land on anything of
 * the application. The seals are set when the file is made: they cannot be
 * added after F_SEAL_SEAL, and a mapper checks that all three are there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/files.h"
#include "memory/heapmap.h"

#define FIRST_BASE	0x200000000000ULL
#define NEXT_BASE	(1ULL << 40)
#define STRIDE_UNIT	((size_t)1 << 30)
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

#if defined(__SANITIZE_THREAD__)
#define ANY_ADDRESS	1	/* its shadow knows fixed regions only */
#else
#define ANY_ADDRESS	0
#endif

/* Beyond the limit the kernel sends SIGXFSZ, which ends the process. */
static bool size_allowed(size_t bytes, char *why, size_t why_bytes)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_FSIZE, &limit) || bytes <= limit.rlim_cur)
		return true;
	snprintf(why, why_bytes, "the heap is a file of %zu KiB in memory, but "
		 "RLIMIT_FSIZE is %llu KiB: raise it (ulimit -f, limits.d, "
		 "LimitFSIZE=) or lower HCOMM_HEAP_SIZE", bytes >> 10,
		 (unsigned long long)limit.rlim_cur >> 10);
	return false;
}

int hcomm_heap_create(size_t bytes, char *why, size_t why_bytes)
{
	int fd = hcomm_file_own(memfd_create("hcomm-heap", MFD_CLOEXEC |
					     MFD_ALLOW_SEALING));
	int err;

	if (fd < 0)
		return fd;
	if (!size_allowed(bytes, why, why_bytes)) {
		close(fd);
		return -EFBIG;
	}
	if (ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, SEALS)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

int hcomm_heap_check(int fd, size_t bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || fstat(fd, &st))
		return -errno;
	if ((seals & SEALS) != SEALS || st.st_size != (off_t)bytes)
		return -EPERM;
	return 0;
}

static size_t stride_of(size_t bytes)
{
	return (bytes + STRIDE_UNIT - 1) / STRIDE_UNIT * STRIDE_UNIT;
}

static char *reserve_at(uint64_t base, size_t bytes)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	char *at;

	if (base)
		flags |= MAP_FIXED_NOREPLACE;
	at = mmap((void *)(uintptr_t)base, bytes, PROT_NONE, flags, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	if (base && (uintptr_t)at != base) {	/* kernel before 4.17 */
		munmap(at, bytes);
		errno = EEXIST;
		return NULL;
	}
	return at;
}

uint32_t hcomm_reserve_probe(size_t bytes, int n)
{
	size_t all = stride_of(bytes) * (n + 1);
	uint32_t mask = 0;
	char *at;
	int i;

	if (ANY_ADDRESS)
		return 0;
	for (i = 0; i < HCOMM_HEAP_BASES; i++) {
		at = reserve_at(FIRST_BASE + i * NEXT_BASE, all);
		if (!at)
			continue;
		mask |= 1U << i;
		munmap(at, all);
	}
	return mask;
}

int hcomm_reserve_init(struct hcomm_reserve *reserve, size_t bytes, int n,
		       int index)
{
	char *at;

	reserve->stride = stride_of(bytes);
	reserve->bytes = reserve->stride * (n + 1);
	if (index >= 0) {
		reserve->base = reserve_at(FIRST_BASE + index * NEXT_BASE,
					   reserve->bytes);
		return reserve->base ? 0 : -errno;
	}
	/* Anywhere, but at a multiple of the unit, for large alignments. */
	at = reserve_at(0, reserve->bytes + STRIDE_UNIT);
	if (!at)
		return -errno;
	reserve->base = (char *)(((uintptr_t)at + STRIDE_UNIT - 1) &
				 ~(uintptr_t)(STRIDE_UNIT - 1));
	if (reserve->base > at)
		munmap(at, reserve->base - at);
	munmap(reserve->base + reserve->bytes,
	       at + STRIDE_UNIT - reserve->base);
	return 0;
}

void hcomm_reserve_free(struct hcomm_reserve *reserve)
{
	if (reserve->base)
		munmap(reserve->base, reserve->bytes);
	reserve->base = NULL;
}

void *hcomm_reserve_map(struct hcomm_reserve *reserve, int index, int fd,
			size_t bytes)
{
	void *at = mmap(reserve->base + index * reserve->stride, bytes,
			PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);

	return at == MAP_FAILED ? NULL : at;
}
