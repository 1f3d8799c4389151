/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Standard input, output and error of a tool: its first and its last act. */
#ifndef STANDARD_H
#define STANDARD_H

#include <stdbool.h>

/*
 * Opens /dev/null as those that are closed: no other file then gets one of
 * their numbers, and with it what is printed.
 */
void standard_files_open(void);

/* False, and a message of @program, when some output could not be written. */
bool standard_output_written(const char *program);

#endif
