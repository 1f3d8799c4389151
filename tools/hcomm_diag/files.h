/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Small files of sysfs: one value each. */
#ifndef DIAG_FILES_H
#define DIAG_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first line of a file, without its end; false and "" when there is none. */
bool read_file(char *to, size_t room, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The same as a decimal number; 0 when there is none. */
uint64_t read_number(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif
