// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Sockets of the bootstrap. All of them are non-blocking; a call waits in
 * poll until its deadline and never longer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bootstrap/stream.h"
#include "config/files.h"

#define NSEC	1000000000ULL

uint64_t hcomm_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec;
}

static int wait_for(int fd, short events, uint64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = events };
	uint64_t now = hcomm_now();
	uint64_t left_ms;
	int got;

	if (now >= deadline)
		return -ETIMEDOUT;
	left_ms = (deadline - now) / 1000000 + 1;
	got = poll(&pfd, 1, left_ms > 60000 ? 60000 : (int)left_ms);
	if (got < 0 && errno != EINTR)
		return -errno;
	return 0;
}

int hcomm_stream_send(int fd, const void *data, size_t bytes,
		      uint64_t deadline)
{
	const char *at = data;
	int err;

	while (bytes) {
		ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);

		if (sent >= 0) {
			at += sent;
			bytes -= (size_t)sent;
			continue;
		}
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		err = wait_for(fd, POLLOUT, deadline);
		if (err)
			return err;
	}
	return 0;
}

int hcomm_stream_recv(int fd, void *data, size_t bytes, uint64_t deadline)
{
	char *at = data;
	int err;

	while (bytes) {
		ssize_t got = recv(fd, at, bytes, 0);

		if (got > 0) {
			at += got;
			bytes -= (size_t)got;
			continue;
		}
		if (!got)
			return -ECONNRESET;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		err = wait_for(fd, POLLIN, deadline);
		if (err)
			return err;
	}
	return 0;
}

socklen_t hcomm_abstract_addr(void *sockaddr_un, const char *name)
{
	struct sockaddr_un *addr = sockaddr_un;
	size_t length = strlen(name);

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (length > sizeof(addr->sun_path) - 1)
		length = sizeof(addr->sun_path) - 1;
	memcpy(addr->sun_path + 1, name, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int close_with(int fd, int err)
{
	close(fd);
	return err;
}

static int make_socket(int family)
{
	return hcomm_file_own(socket(family, SOCK_STREAM | SOCK_CLOEXEC |
				     SOCK_NONBLOCK, 0));
}

int hcomm_listen_unix(const char *name)
{
	struct sockaddr_un addr;
	socklen_t length = hcomm_abstract_addr(&addr, name);
	int fd = make_socket(AF_UNIX);

	if (fd < 0)
		return fd;
	if (bind(fd, (struct sockaddr *)&addr, length) ||
	    listen(fd, SOMAXCONN))
		return close_with(fd, -errno);
	return fd;
}

int hcomm_connect_unix(const char *name)
{
	struct sockaddr_un addr;
	socklen_t length = hcomm_abstract_addr(&addr, name);
	int fd = make_socket(AF_UNIX);

	if (fd < 0)
		return fd;
	if (connect(fd, (struct sockaddr *)&addr, length))
		return close_with(fd, -errno);
	return fd;
}

/* On every address, IPv4 and IPv6 where the host has it. */
int hcomm_listen_tcp(uint16_t port)
{
	struct sockaddr_in6 any6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(port),
		.sin6_addr = IN6ADDR_ANY_INIT,
	};
	struct sockaddr_in any4 = {
		.sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_ANY),
	};
	int one = 1, zero = 0, err;
	int fd = make_socket(AF_INET6);

	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
		err = bind(fd, (struct sockaddr *)&any6, sizeof(any6));
	} else {
		fd = make_socket(AF_INET);
		if (fd < 0)
			return fd;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		err = bind(fd, (struct sockaddr *)&any4, sizeof(any4));
	}
	if (err || listen(fd, SOMAXCONN))
		return close_with(fd, -errno);
	return fd;
}

static int connect_one(const struct addrinfo *ai, uint64_t deadline)
{
	int fd = make_socket(ai->ai_family);
	socklen_t length = sizeof(int);
	int err = 0, one = 1;

	if (fd < 0)
		return fd;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (!connect(fd, ai->ai_addr, ai->ai_addrlen))
		return fd;
	if (errno != EINPROGRESS)
		return close_with(fd, -errno);
	for (;;) {
		struct pollfd pfd = { .fd = fd, .events = POLLOUT };

		err = wait_for(fd, POLLOUT, deadline);
		if (err)
			return close_with(fd, err);
		if (poll(&pfd, 1, 0) == 1)
			break;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length))
		err = errno;
	return err ? close_with(fd, -err) : fd;
}

int hcomm_connect_tcp(const char *host, uint16_t port, uint64_t deadline)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list, *ai;
	char service[8];
	int fd = -EHOSTUNREACH;

	snprintf(service, sizeof(service), "%u", port);
	switch (getaddrinfo(host, service, &hints, &list)) {
	case 0:
		break;
	case EAI_MEMORY:
		return -ENOMEM;
	default:
		return -ENOENT;
	}
	for (ai = list; ai; ai = ai->ai_next) {
		fd = connect_one(ai, deadline);
		if (fd >= 0)
			break;
	}
	freeaddrinfo(list);
	return fd;
}

int hcomm_accept(int listener)
{
	int fd = hcomm_file_own(accept4(listener, NULL, NULL,
					SOCK_CLOEXEC | SOCK_NONBLOCK));

	switch (fd) {
	case -EMFILE:
	case -ENFILE:
	case -ENOBUFS:
	case -ENOMEM:
		return fd;
	default:	/* whoever knocked is gone */
		return fd < 0 ? -EAGAIN : fd;
	}
}

int hcomm_check_peer_user(int fd)
{
	struct ucred cred;
	socklen_t length = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &length))
		return -errno;
	return cred.uid == geteuid() ? 0 : -EPERM;
}

int hcomm_send_file(int fd, int file, uint64_t deadline)
{
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int err;

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &file, sizeof(int));
	while (sendmsg(fd, &msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		err = wait_for(fd, POLLOUT, deadline);
		if (err)
			return err;
	}
	return 0;
}

int hcomm_recv_file(int fd, int *file, uint64_t deadline)
{
	char byte;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;
	ssize_t got;
	int err, got_file;

	for (;;) {
		got = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
		if (got > 0)
			break;
		if (!got)
			return -ECONNRESET;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN)
			return -errno;
		err = wait_for(fd, POLLIN, deadline);
		if (err)
			return err;
	}
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg && (msg.msg_flags & MSG_CTRUNC))
		return -EMFILE;		/* no number was free for it */
	if (!cmsg || cmsg->cmsg_level != SOL_SOCKET ||
	    cmsg->cmsg_type != SCM_RIGHTS ||
	    cmsg->cmsg_len != CMSG_LEN(sizeof(int)))
		return -EPROTO;
	memcpy(&got_file, CMSG_DATA(cmsg), sizeof(int));
	*file = hcomm_file_own(got_file);
	return *file < 0 ? *file : 0;
}
