/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Files that the library keeps open: which numbers they have, and how many
 * the process may have.
 */
#ifndef HCOMM_FILES_H
#define HCOMM_FILES_H

#include <stddef.h>

#include "hcomm.h"

/*
 * Takes what a system call returned: a file, or -1 and errno. Returns the file
 * under a number above 2, or a negative errno. Where standard input, output or
 * error is closed, the kernel gives its number to the next file, and what the
 * program prints would go there.
 */
int hcomm_file_own(int fd);

/*
 * Sees that @more files can be opened, and raises the soft RLIMIT_NOFILE for
 * it. @what needs them. On failure the reason is in @why.
 */
hcommResult_t hcomm_files_reserve(unsigned int more, const char *what,
				  char *why, size_t why_bytes);

/* " (what to do)" for an errno that a limit on files explains, or "". */
const char *hcomm_files_advice(int err);

#endif
