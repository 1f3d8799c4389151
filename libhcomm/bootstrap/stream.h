/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Stream sockets with a deadline; every call returns 0 or a negative errno. */
#ifndef HCOMM_STREAM_SOCKET_H
#define HCOMM_STREAM_SOCKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

uint64_t hcomm_now(void);	/* CLOCK_MONOTONIC, ns */

int hcomm_stream_send(int fd, const void *data, size_t bytes,
		      uint64_t deadline);
int hcomm_stream_recv(int fd, void *data, size_t bytes, uint64_t deadline);

/* Fills an abstract unix address; returns its length. */
socklen_t hcomm_abstract_addr(void *sockaddr_un, const char *name);
/* A listening or connected socket, close-on-exec, non-blocking. */
int hcomm_listen_unix(const char *name);
int hcomm_connect_unix(const char *name);
int hcomm_listen_tcp(uint16_t port);
/* -ENOENT when the name @host cannot be resolved. */
int hcomm_connect_tcp(const char *host, uint16_t port, uint64_t deadline);
/*
 * The next connection. -EAGAIN when there is none after all; any other error
 * stays until files are closed or a limit is raised.
 */
int hcomm_accept(int listener);
/* -EPERM when the process at the other end has another user. */
int hcomm_check_peer_user(int fd);

/* One byte and one file. *@fd is close-on-exec. */
int hcomm_send_file(int fd, int file, uint64_t deadline);
int hcomm_recv_file(int fd, int *file, uint64_t deadline);

#endif
