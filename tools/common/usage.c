// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdio.h>

#include "usage.h"

void usage_wrong(const char *program, const char *format, va_list ap)
{
	fprintf(stderr, "%s: ", program);
	vfprintf(stderr, format, ap);
	fprintf(stderr, "; see %s --help\n", program);
}
