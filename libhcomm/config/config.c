// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reads the environment. Every value that cannot be read is an error that
 * names the variable, its value and what would be accepted: a typing error
 * must not silently become a default.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/proof.h"
#include "config/config.h"
#include "config/files.h"

#define NSEC		1000000000ULL
#define DEFAULT_HEAP	HCOMM_MB(64)
#define SMALLEST_HEAP	HCOMM_MB(1)
#define DEFAULT_TIMEOUT	590
#define LONGEST_TIMEOUT	(24ULL * 3600)
#define LONGEST_SECRET	4096
#define SHOWN_CHARS	96	/* of a value that is refused */

static FILE *log_file;
static enum hcomm_level log_level = HCOMM_LOG_WARN;
static pthread_once_t log_once = PTHREAD_ONCE_INIT;

static FILE *open_log_file(const char *name)
{
	int fd = hcomm_file_own(open(name, O_WRONLY | O_CREAT | O_APPEND |
				     O_CLOEXEC, 0666));

	if (fd >= 0)
		return fdopen(fd, "a");
	errno = -fd;
	return NULL;
}

/* "INFO", "info:FILE". */
static int parse_level(const char *text, enum hcomm_level *level)
{
	static const char *const words[] = { "WARN", "INFO", "TRACE" };
	size_t length = strcspn(text, ":"), i;

	for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i]) != length ||
		    strncasecmp(text, words[i], length))
			continue;
		*level = HCOMM_LOG_WARN + i;
		return 0;
	}
	return -EINVAL;
}

/* A wrong level stays WARN here: who makes a group is told. */
static void log_open(void)
{
	const char *text = getenv("HCOMM_DEBUG");
	const char *file;

	log_file = stderr;
	if (!text)
		return;
	parse_level(text, &log_level);
	file = strchr(text, ':');
	if (file && file[1]) {
		log_file = open_log_file(file + 1);
		if (log_file)
			return;
		log_file = stderr;
		fprintf(stderr, "hcomm[%d]: HCOMM_DEBUG=\"%s\": the file cannot "
			"be opened (%s): lines go to standard error\n",
			(int)getpid(), text, strerror(errno));
	}
}

void hcomm_log(enum hcomm_level level, const char *fmt, ...)
{
	char line[1024];
	va_list args;
	int at;

	pthread_once(&log_once, log_open);
	if (level > log_level)
		return;
	at = snprintf(line, sizeof(line), "hcomm[%d]: ", (int)getpid());
	va_start(args, fmt);
	vsnprintf(line + at, sizeof(line) - at, fmt, args);
	va_end(args);
	fprintf(log_file, "%s\n", line);
	fflush(log_file);
}

static hcommResult_t bad(char *why, size_t bytes, const char *name,
			 const char *value, const char *wanted)
{
	const char *more = strlen(value) > SHOWN_CHARS ? "..." : "";

	snprintf(why, bytes, "%s=\"%.*s%s\": expected %s", name, SHOWN_CHARS,
		 value, more, wanted);
	return HCOMM_INVALID_ARGUMENT;
}

/* "64M", "1GiB", "4096". */
static int parse_bytes(const char *text, size_t *bytes)
{
	static const char units[] = "KMGT";
	unsigned long long value;
	const char *unit;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || end == text || !isdigit((unsigned char)text[0]))
		return -EINVAL;
	if (*end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit)
			return -EINVAL;
		end++;
		if (strcasecmp(end, "") && strcasecmp(end, "B") &&
		    strcasecmp(end, "iB"))
			return -EINVAL;
		if (value > SIZE_MAX >> (10 * (unit - units + 1)))
			return -ERANGE;
		value <<= 10 * (unit - units + 1);
	}
	*bytes = value;
	return 0;
}

/* "590", "2.5", "3s", "500ms". */
static int parse_time(const char *text, uint64_t *ns)
{
	double value;
	char *end;

	errno = 0;
	value = strtod(text, &end);
	if (errno || end == text)
		return -EINVAL;
	if (!strcmp(end, "ms"))
		value /= 1000;
	else if (*end && strcmp(end, "s"))
		return -EINVAL;
	if (!(value > 0 && value <= LONGEST_TIMEOUT))
		return -ERANGE;
	*ns = (uint64_t)(value * 1e9);
	return 0;
}

static hcommResult_t load_time(const char *name, uint64_t given_ms,
			       unsigned int seconds, uint64_t *ns,
			       char *why, size_t bytes)
{
	const char *text = getenv(name);

	*ns = seconds * NSEC;
	if (given_ms > LONGEST_TIMEOUT * 1000) {
		snprintf(why, bytes, "a timeout of %llu ms is above 24 hours",
			 (unsigned long long)given_ms);
		return HCOMM_INVALID_ARGUMENT;
	}
	if (given_ms)
		*ns = given_ms * 1000000;
	else if (text && *text && parse_time(text, ns))
		return bad(why, bytes, name, text,
			   "seconds (\"590\", \"2.5\", \"500ms\"), at most 24 h");
	return HCOMM_SUCCESS;
}

static hcommResult_t load_heap(struct hcomm_settings *s, size_t given,
			       char *why, size_t bytes)
{
	const char *text = getenv("HCOMM_HEAP_SIZE");
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	s->heap_size = DEFAULT_HEAP;
	if (given)
		s->heap_size = given;
	else if (text && *text && parse_bytes(text, &s->heap_size))
		return bad(why, bytes, "HCOMM_HEAP_SIZE", text,
			   "bytes (\"64M\", \"1GiB\")");
	if (s->heap_size < SMALLEST_HEAP || s->heap_size > (size_t)1 << 46) {
		snprintf(why, bytes,
			 "a heap of %zu bytes is not between 1 MiB and 64 TiB",
			 s->heap_size);
		return HCOMM_INVALID_ARGUMENT;
	}
	s->heap_size = (s->heap_size + page - 1) / page * page;
	return HCOMM_SUCCESS;
}

static hcommResult_t load_choice(const char *name, const char *given,
				 const char *const *words, int nr, int *choice,
				 const char *wanted, char *why, size_t bytes)
{
	const char *text = given ? given : getenv(name);
	int i;

	*choice = 0;
	if (!text || !*text)
		return HCOMM_SUCCESS;
	for (i = 0; i < nr; i++) {
		if (!strcmp(text, words[i])) {
			*choice = i;
			return HCOMM_SUCCESS;
		}
	}
	return bad(why, bytes, name, text, wanted);
}

static hcommResult_t load_name(const char *name, const char *given,
			       const char *fallback, char *to, size_t room,
			       char *why, size_t bytes)
{
	const char *text = given ? given : getenv(name);
	char wanted[64];

	if (!text || !*text)
		text = fallback;
	if (strlen(text) >= room || strchr(text, '/')) {
		snprintf(wanted, sizeof(wanted),
			 "at most %zu characters, none of them \"/\"", room - 1);
		return bad(why, bytes, name, text, wanted);
	}
	strcpy(to, text);
	return HCOMM_SUCCESS;
}

static hcommResult_t check_level(char *why, size_t bytes)
{
	const char *text = getenv("HCOMM_DEBUG");
	enum hcomm_level level;

	if (text && *text && parse_level(text, &level))
		return bad(why, bytes, "HCOMM_DEBUG", text,
			   "WARN, INFO or TRACE, alone or with \":FILE\"");
	return HCOMM_SUCCESS;
}

/* At most @room bytes of a regular file: nothing else ends, or at once. */
static ssize_t read_file(const char *name, char *to, size_t room,
			 const char **what)
{
	int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	ssize_t got = -1;

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
		got = read(fd, to, room);
	else if (fd >= 0)
		errno = EINVAL;
	*what = errno == EINVAL ? "not a regular file" : strerror(errno);
	if (fd >= 0)
		close(fd);
	return got;
}

static hcommResult_t load_secret(struct hcomm_settings *s, char *why,
				 size_t bytes)
{
	const char *text = getenv("HCOMM_SECRET");
	const char *file = getenv("HCOMM_SECRET_FILE");
	char content[LONGEST_SECRET + 1];
	const char *what;
	ssize_t got;

	if (text && *text) {
		hcomm_digest(text, strlen(text), s->secret);
		s->has_secret = 1;
		return HCOMM_SUCCESS;
	}
	if (!file || !*file)
		return HCOMM_SUCCESS;
	got = read_file(file, content, sizeof(content), &what);
	if (got < 0) {
		snprintf(why, bytes, "HCOMM_SECRET_FILE=\"%s\": %s", file, what);
		return HCOMM_INVALID_ARGUMENT;
	}
	if (got > LONGEST_SECRET) {
		snprintf(why, bytes, "HCOMM_SECRET_FILE=\"%s\" has more than %d "
			 "bytes", file, LONGEST_SECRET);
		return HCOMM_INVALID_ARGUMENT;
	}
	while (got && (content[got - 1] == '\n' || content[got - 1] == '\r'))
		got--;
	if (!got) {
		snprintf(why, bytes, "HCOMM_SECRET_FILE=\"%s\" is empty", file);
		return HCOMM_INVALID_ARGUMENT;
	}
	hcomm_digest(content, (size_t)got, s->secret);
	explicit_bzero(content, sizeof(content));
	s->has_secret = 1;
	return HCOMM_SUCCESS;
}

static hcommResult_t check_config(const hcommConfig_t *config, char *why,
				  size_t bytes)
{
	if (!config)
		return HCOMM_SUCCESS;
	if (config->magic != HCOMM_CONFIG_MAGIC ||
	    config->size < offsetof(hcommConfig_t, heap_size)) {
		snprintf(why, bytes, "the configuration was not made with "
			 "HCOMM_CONFIG_INITIALIZER");
		return HCOMM_INVALID_ARGUMENT;
	}
	if (config->size > sizeof(*config)) {
		snprintf(why, bytes, "the configuration is of a newer version "
			 "(%u) than this library (%u)", config->version,
			 HCOMM_VERSION_CODE);
		return HCOMM_INVALID_ARGUMENT;
	}
	return HCOMM_SUCCESS;
}

hcommResult_t hcomm_settings_load(struct hcomm_settings *s,
				  const hcommConfig_t *config,
				  char *why, size_t bytes)
{
	static const char *const transports[] = { "auto", "kmod", "local" };
	static const char *const waits[] = { "auto", "spin", "yield", "park" };
	hcommConfig_t given = HCOMM_CONFIG_INITIALIZER;
	hcommResult_t res;
	int choice;

	memset(s, 0, sizeof(*s));
	res = check_config(config, why, bytes);
	if (res)
		return res;
	if (config)	/* a shorter one is completed with zeroes */
		memcpy(&given, config, config->size);

	res = check_level(why, bytes);
	if (res)
		return res;
	res = load_heap(s, given.heap_size, why, bytes);
	if (res)
		return res;
	res = load_time("HCOMM_TIMEOUT", given.timeout_ms, DEFAULT_TIMEOUT,
			&s->timeout_ns, why, bytes);
	if (res)
		return res;
	res = load_time("HCOMM_CONNECT_TIMEOUT", given.connect_timeout_ms, 60,
			&s->connect_timeout_ns, why, bytes);
	if (res)
		return res;
	res = load_choice("HCOMM_TRANSPORT", given.transport, transports, 3,
			  &choice, "auto, kmod or local", why, bytes);
	if (res)
		return res;
	s->transport = (enum hcomm_transport_choice)choice;
	res = load_choice("HCOMM_WAIT", NULL, waits, 4, &choice,
			  "auto, spin, yield or park", why, bytes);
	if (res)
		return res;
	s->wait = (enum hcomm_wait_policy)choice;
	res = load_name("HCOMM_DEVICE", given.device, "hcomm0", s->device,
			sizeof(s->device), why, bytes);
	if (res)
		return res;
	res = load_name("HCOMM_SOCKET_IFNAME", NULL, "", s->ifname,
			sizeof(s->ifname), why, bytes);
	if (res)
		return res;
	res = load_name("HCOMM_JOB", NULL, "", s->job, sizeof(s->job), why,
			bytes);
	if (res)
		return res;
	return load_secret(s, why, bytes);
}
