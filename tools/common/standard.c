// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "standard.h"

void standard_files_open(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

bool standard_output_written(const char *program)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return true;
	fprintf(stderr, "%s: standard output cannot be written: %s\n", program,
		strerror(errno ? errno : EIO));
	return false;
}
