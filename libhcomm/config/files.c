// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config/files.h"

int hcomm_file_own(int fd)
{
	int moved;

	if (fd < 0)
		return -errno;
	if (fd > STDERR_FILENO)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		moved = -errno;
	close(fd);
	return moved;
}

/* -1 when it cannot be told: then no file at all can be opened, or no /proc. */
static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = -4;	/* ".", "..", the folder itself, and from 0 */

	if (!dir)
		return -1;
	do
		nr++;
	while (readdir(dir));
	closedir(dir);
	return nr;
}

hcommResult_t hcomm_files_reserve(unsigned int more, const char *what,
				  char *why, size_t why_bytes)
{
	int open = open_files();
	struct rlimit limit;
	rlim_t needed, soft;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return HCOMM_SUCCESS;
	needed = (rlim_t)more + (open < 0 ? 0 : (rlim_t)open);
	if (needed <= limit.rlim_cur)
		return HCOMM_SUCCESS;
	soft = limit.rlim_cur;
	if (needed <= limit.rlim_max) {
		limit.rlim_cur = needed;
		if (!setrlimit(RLIMIT_NOFILE, &limit))
			return HCOMM_SUCCESS;
	}
	snprintf(why, why_bytes, "%s needs %u open files beside the %d that "
		 "this process has, but RLIMIT_NOFILE is %llu (hard limit "
		 "%llu): raise it to %llu (ulimit -n, limits.d, LimitNOFILE=)",
		 what, more, open < 0 ? 0 : open, (unsigned long long)soft,
		 (unsigned long long)limit.rlim_max,
		 (unsigned long long)needed);
	return HCOMM_SYSTEM_ERROR;
}

const char *hcomm_files_advice(int err)
{
	switch (err) {
	case -EMFILE:
		return " (raise RLIMIT_NOFILE: ulimit -n, limits.d, LimitNOFILE=)";
	case -ENFILE:
		return " (raise fs.file-max: sysctl)";
	default:
		return "";
	}
}
