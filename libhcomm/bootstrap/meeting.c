// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Where the ranks of a job meet: from a unique id, from HCOMM_ROOT, from
 * torchrun's variables, or on one host a local socket named after the job.
 *
 * The listeners behind unique ids are kept in a list until rank 0 of their
 * group is made by this process; the list has its own lock.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bootstrap/boot.h"
#include "bootstrap/proof.h"
#include "bootstrap/stream.h"

#define ID_PREFIX	"hcomm1"
#define TORCH_PORTS	16

struct held_listener {
	struct held_listener *next;
	uint8_t job[HCOMM_BOOT_ID];
	int fd;
};

static struct held_listener *held;
static pthread_mutex_t held_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_source(struct hcomm_meeting *m, const char *text)
{
	snprintf(m->source, sizeof(m->source), "%s", text);
}

static void set_job(struct hcomm_meeting *m, const char *text)
{
	uint8_t digest[HCOMM_DIGEST_BYTES];

	hcomm_digest(text, strlen(text), digest);
	memcpy(m->job, digest, sizeof(m->job));
}

static void set_secret(struct hcomm_meeting *m, const struct hcomm_settings *s)
{
	m->authenticated = s->has_secret;
	memcpy(m->secret, s->secret, sizeof(m->secret));
}

static hcommResult_t env_number(const char *name, long low, long high,
				long *value, char *why, size_t bytes)
{
	const char *text = getenv(name);
	char *end;

	if (!text || !*text) {
		snprintf(why, bytes, "%s is not set", name);
		return HCOMM_INVALID_ARGUMENT;
	}
	errno = 0;
	*value = strtol(text, &end, 10);
	if (errno || *end || *value < low || *value > high) {
		snprintf(why, bytes, "%s=\"%s\" is not a number from %ld to %ld",
			 name, text, low, high);
		return HCOMM_INVALID_ARGUMENT;
	}
	return HCOMM_SUCCESS;
}

static hcommResult_t env_ranks(const char *rank_name, const char *n_name,
			       int *rank, int *n, char *why, size_t bytes)
{
	hcommResult_t res;
	long value;

	res = env_number(n_name, 1, 4096, &value, why, bytes);
	if (res)
		return res;
	*n = (int)value;
	res = env_number(rank_name, 0, *n - 1, &value, why, bytes);
	*rank = (int)value;
	return res;
}

/* "host:port", "[v6]:port". */
static int split_root(const char *text, char *host, size_t room,
		      uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	size_t length;
	long value;
	char *end;

	if (!colon || colon == text)
		return -EINVAL;
	length = (size_t)(colon - text);
	if (text[0] == '[' && colon[-1] == ']') {
		text++;
		length -= 2;
	}
	if (!length || length >= room)
		return -EINVAL;
	memcpy(host, text, length);
	host[length] = 0;
	value = strtol(colon + 1, &end, 10);
	if (!colon[1] || *end || value < 1 || value > 65535)
		return -EINVAL;
	*port = (uint16_t)value;
	return 0;
}

static hcommResult_t from_root(struct hcomm_meeting *m,
			       const struct hcomm_settings *s, int *rank,
			       int *n, char *why, size_t bytes)
{
	const char *root = getenv("HCOMM_ROOT");
	char text[512];

	if (split_root(root, m->host, sizeof(m->host), &m->port)) {
		snprintf(why, bytes, "HCOMM_ROOT=\"%s\" is not host:port", root);
		return HCOMM_INVALID_ARGUMENT;
	}
	m->nports = 1;
	snprintf(text, sizeof(text), "root %s %s", root, s->job);
	set_job(m, text);
	set_secret(m, s);
	set_source(m, "HCOMM_ROOT");
	return env_ranks("HCOMM_RANK", "HCOMM_NRANKS", rank, n, why, bytes);
}

static hcommResult_t from_torchrun(struct hcomm_meeting *m,
				   const struct hcomm_settings *s, int *rank,
				   int *n, char *why, size_t bytes)
{
	const char *run = getenv("TORCHELASTIC_RUN_ID");
	const char *host = getenv("MASTER_ADDR");
	hcommResult_t res;
	char text[512];
	long port;

	if (strlen(host) >= sizeof(m->host)) {
		snprintf(why, bytes, "MASTER_ADDR is too long");
		return HCOMM_INVALID_ARGUMENT;
	}
	strcpy(m->host, host);
	res = env_number("MASTER_PORT", 1, 65535 - TORCH_PORTS, &port, why,
			 bytes);
	if (res)
		return res;
	m->port = (uint16_t)(port + 1);
	m->nports = TORCH_PORTS;
	snprintf(text, sizeof(text), "torch %s %ld %s %s", host, port,
		 run ? run : "", s->job);
	set_job(m, text);
	set_secret(m, s);
	set_source(m, "MASTER_ADDR, MASTER_PORT");
	return env_ranks("RANK", "WORLD_SIZE", rank, n, why, bytes);
}

static hcommResult_t from_host(struct hcomm_meeting *m,
			       const struct hcomm_settings *s, int *rank,
			       int *n, char *why, size_t bytes)
{
	char job[128];

	if (*s->job)
		snprintf(job, sizeof(job), "job-%s", s->job);
	else
		snprintf(job, sizeof(job), "parent-%d", (int)getppid());
	m->unix_socket = true;
	m->nports = 1;
	snprintf(m->host, sizeof(m->host), "hcomm-%u-%s",
		 (unsigned int)geteuid(), job);
	set_job(m, m->host);
	set_secret(m, s);
	set_source(m, *s->job ? "HCOMM_JOB" : "HCOMM_RANK, HCOMM_NRANKS");
	return env_ranks("HCOMM_RANK", "HCOMM_NRANKS", rank, n, why, bytes);
}

static bool is_set(const char *name)
{
	const char *text = getenv(name);

	return text && *text;
}

hcommResult_t hcomm_meeting_from_env(struct hcomm_meeting *m,
				     const struct hcomm_settings *settings,
				     int *rank, int *n, char *why,
				     size_t bytes)
{
	hcommUniqueId id = { { 0 } };
	hcommResult_t res;

	memset(m, 0, sizeof(*m));
	m->listener = -1;
	if (is_set("HCOMM_UNIQUE_ID")) {
		snprintf(id.text, sizeof(id.text), "%s",
			 getenv("HCOMM_UNIQUE_ID"));
		res = hcomm_meeting_from_id(m, &id, why, bytes);
		if (res)
			return res;
		return env_ranks("HCOMM_RANK", "HCOMM_NRANKS", rank, n, why,
				 bytes);
	}
	if (is_set("HCOMM_ROOT"))
		return from_root(m, settings, rank, n, why, bytes);
	if (is_set("HCOMM_RANK") || is_set("HCOMM_NRANKS"))
		return from_host(m, settings, rank, n, why, bytes);
	if (is_set("MASTER_ADDR") && is_set("WORLD_SIZE"))
		return from_torchrun(m, settings, rank, n, why, bytes);
	set_source(m, "nothing");
	*rank = 0;
	*n = 1;
	return HCOMM_SUCCESS;
}

static void to_hex(char *to, const uint8_t *from, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		sprintf(to + 2 * i, "%02x", from[i]);
}

static int from_hex(uint8_t *to, const char *from, size_t bytes)
{
	unsigned int value;
	size_t i;

	for (i = 0; i < bytes; i++) {
		if (strspn(from + 2 * i, "0123456789abcdef") < 2 ||
		    sscanf(from + 2 * i, "%2x", &value) != 1)
			return -EINVAL;
		to[i] = (uint8_t)value;
	}
	return 0;
}

/*
 * The address that others reach this host by. False when the interface @ifname
 * has none; "" is any.
 */
static bool own_address(const char *ifname, char *host, size_t room)
{
	struct ifaddrs *list, *ifa;

	snprintf(host, room, "127.0.0.1");
	if (getifaddrs(&list))
		return !*ifname;
	for (ifa = list; ifa; ifa = ifa->ifa_next) {
		const struct sockaddr_in *in = (void *)ifa->ifa_addr;

		if (!in || in->sin_family != AF_INET ||
		    !(ifa->ifa_flags & IFF_UP))
			continue;
		if (*ifname ? strcmp(ifname, ifa->ifa_name) != 0 :
			      (ifa->ifa_flags & IFF_LOOPBACK) != 0)
			continue;
		inet_ntop(AF_INET, &in->sin_addr, host, (socklen_t)room);
		break;
	}
	freeifaddrs(list);
	return ifa || !*ifname;
}

static hcommResult_t hold(const uint8_t *job, int fd)
{
	struct held_listener *entry = malloc(sizeof(*entry));

	if (!entry)
		return HCOMM_OUT_OF_MEMORY;
	memcpy(entry->job, job, sizeof(entry->job));
	entry->fd = fd;
	pthread_mutex_lock(&held_lock);
	entry->next = held;
	held = entry;
	pthread_mutex_unlock(&held_lock);
	return HCOMM_SUCCESS;
}

int hcomm_meeting_take_listener(const uint8_t *job)
{
	struct held_listener **at, *entry;
	int fd = -1;

	pthread_mutex_lock(&held_lock);
	for (at = &held; (entry = *at); at = &entry->next) {
		if (memcmp(entry->job, job, sizeof(entry->job)))
			continue;
		fd = entry->fd;
		*at = entry->next;
		free(entry);
		break;
	}
	pthread_mutex_unlock(&held_lock);
	return fd;
}

hcommResult_t hcomm_meeting_make_id(hcommUniqueId *id,
				    const struct hcomm_settings *settings,
				    char *why, size_t bytes)
{
	uint8_t job[HCOMM_BOOT_ID], secret[HCOMM_BOOT_SECRET];
	char job_hex[2 * HCOMM_BOOT_ID + 1];
	char secret_hex[2 * HCOMM_BOOT_SECRET + 1];
	struct sockaddr_in6 addr;
	socklen_t length = sizeof(addr);
	char host[INET6_ADDRSTRLEN];
	hcommResult_t res;
	int fd;

	if (!own_address(settings->ifname, host, sizeof(host))) {
		snprintf(why, bytes, "HCOMM_SOCKET_IFNAME=\"%s\": there is no "
			 "interface of this name that is up and has an IPv4 "
			 "address (ip -4 address)", settings->ifname);
		return HCOMM_INVALID_ARGUMENT;
	}
	if (hcomm_random(job, sizeof(job)) ||
	    hcomm_random(secret, sizeof(secret))) {
		snprintf(why, bytes, "no random bytes: %s", strerror(errno));
		return HCOMM_SYSTEM_ERROR;
	}
	fd = hcomm_listen_tcp(0);
	if (fd < 0 || getsockname(fd, (struct sockaddr *)&addr, &length)) {
		snprintf(why, bytes, "cannot listen on a TCP port: %s",
			 strerror(fd < 0 ? -fd : errno));
		if (fd >= 0)
			close(fd);
		return HCOMM_SYSTEM_ERROR;
	}
	res = hold(job, fd);
	if (res) {
		snprintf(why, bytes, "out of memory");
		close(fd);
		return res;
	}
	to_hex(job_hex, job, sizeof(job));
	to_hex(secret_hex, secret, sizeof(secret));
	/* The port is at one place in both kinds of address. */
	snprintf(id->text, sizeof(id->text), ID_PREFIX ",%s,%s,%s,%u", job_hex,
		 secret_hex, host, ntohs(addr.sin6_port));
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(secret_hex, sizeof(secret_hex));
	return HCOMM_SUCCESS;
}

hcommResult_t hcomm_meeting_from_id(struct hcomm_meeting *m,
				    const hcommUniqueId *id, char *why,
				    size_t bytes)
{
	char job[2 * HCOMM_BOOT_ID + 1], secret[2 * HCOMM_BOOT_SECRET + 1];
	char text[HCOMM_UNIQUE_ID_BYTES], host[128];
	unsigned int port;

	memset(m, 0, sizeof(*m));
	memcpy(text, id->text, sizeof(text));
	text[sizeof(text) - 1] = 0;
	if (sscanf(text, ID_PREFIX ",%32[0-9a-f],%64[0-9a-f],%127[^,],%u", job,
		   secret, host, &port) != 4 || !port || port > 65535 ||
	    from_hex(m->job, job, sizeof(m->job)) ||
	    from_hex(m->secret, secret, sizeof(m->secret))) {
		snprintf(why, bytes, "this is no unique id made by hcommGetUniqueId()");
		return HCOMM_INVALID_ARGUMENT;
	}
	strcpy(m->host, host);
	m->port = (uint16_t)port;
	m->nports = 1;
	m->listener = -1;
	m->authenticated = true;
	set_source(m, "the unique id");
	return HCOMM_SUCCESS;
}
