// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Reading only: sysfs is told nothing here. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"

static bool read_line(char *to, size_t room, const char *path)
{
	FILE *file = fopen(path, "re");
	bool ok;

	*to = '\0';
	if (!file)
		return false;
	ok = fgets(to, room, file);
	fclose(file);
	if (!ok)
		*to = '\0';
	to[strcspn(to, "\n")] = '\0';
	return ok;
}

bool read_file(char *to, size_t room, const char *format, ...)
{
	char path[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	return read_line(to, room, path);
}

uint64_t read_number(const char *format, ...)
{
	char path[512], text[32];
	va_list ap;

	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	return read_line(text, sizeof(text), path) ? strtoull(text, NULL, 10) :
						     0;
}
