/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What a tool says of arguments that it cannot use. */
#ifndef USAGE_H
#define USAGE_H

#include <stdarg.h>

/* To standard error: what is wrong, and where help is. */
__attribute__((format(printf, 2, 0)))
void usage_wrong(const char *program, const char *format, va_list ap);

#endif
