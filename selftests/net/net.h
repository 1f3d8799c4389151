/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two ranks on two instances of one kernel, in one process: rank 0 on
 * /dev/hcomm0, rank 1 on /dev/hcomm1, joined by RDMA links of the lab.
 */
#ifndef HCOMM_TEST_NET_H
#define HCOMM_TEST_NET_H

#include <dirent.h>

#include "device/device.h"

#define PAIR	2

struct side {
	struct rank r;
	uint32_t object;
	uint32_t window;
	char *base;		/* of the object */
	size_t length;
	char *map;		/* what base is in */
	size_t map_length;
};

struct pair {
	struct hcomm_join group;
	struct hcomm_peer peers[PAIR];
	struct side side[PAIR];
};

/* Fills where instance @nr is reached; -ENODEV without a port. */
static inline int peer_of(unsigned int nr, struct hcomm_peer *peer)
{
	struct hcomm_query query = {};
	int fd = device_open(nr);
	int ret;

	if (fd < 0)
		return fd;
	ret = call(fd, HCOMM_IOC_QUERY, &query);
	close(fd);
	if (ret)
		return ret;
	if (!query.nr_ports)
		return -ENODEV;
	memset(peer, 0, sizeof(*peer));
	memcpy(peer->instance_id, query.instance_id, HCOMM_ID_BYTES);
	memcpy(peer->addr, query.addr, sizeof(peer->addr));
	peer->port = query.listen_port;
	return 0;
}

/* Writable anonymous memory with @offset bytes of the first page before it. */
static inline int side_memory(struct side *s, size_t length, size_t offset)
{
	struct hcomm_mem_create create = {};
	int ret;

	s->map_length = length + offset;
	s->map = mmap(NULL, s->map_length, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (s->map == MAP_FAILED)
		return -errno;
	s->base = s->map + offset;
	s->length = length;
	create.base = (uintptr_t)s->base;
	create.length = length;
	ret = call(s->r.fd, HCOMM_IOC_MEM_CREATE, &create);
	s->object = create.object;
	return ret;
}

static inline int side_attach(struct side *s, uint32_t window)
{
	struct hcomm_win_attach attach = {
		.object = s->object,
		.window = window,
	};

	s->window = window;
	return call(s->r.fd, HCOMM_IOC_WIN_ATTACH, &attach);
}

/* Joins one rank; the peers' table is whole. */
static inline int side_join(struct pair *p, uint32_t rank)
{
	struct hcomm_join join = p->group;

	join.peers = (uintptr_t)p->peers;
	join.nr_peers = PAIR;
	return rank_start(&p->side[rank].r, rank, &join, rank);
}

/*
 * A kernel with every checker on, on a machine with other work, may be silent
 * for seconds: that is no death here.
 */
static inline void be_patient(void)
{
	int fd = open("/sys/module/hcomm/parameters/dead_after_ms", O_WRONLY);

	if (fd < 0)
		return;
	if (write(fd, "60000", 5) != 5)
		perror("dead_after_ms");
	close(fd);
}

static inline int pair_begin(struct pair *p)
{
	unsigned int i;
	int ret = 0;

	be_patient();
	memset(p, 0, sizeof(*p));
	group_new(&p->group, PAIR);
	for (i = 0; i < PAIR && !ret; i++)
		ret = peer_of(i, &p->peers[i]);
	return ret;
}

/* Both ranks joined and proven to each other. */
static inline int pair_up(struct pair *p)
{
	struct hcomm_event event;
	unsigned int i;
	int ret;

	ret = pair_begin(p);
	for (i = 0; i < PAIR && !ret; i++)
		ret = side_join(p, i);
	for (i = 0; i < PAIR && !ret; i++)
		if (!wait_event(&p->side[i].r, HCOMM_EVENT_MEMBER_UP, &event) ||
		    event.rank != 1 - i)
			ret = -ETIME;
	return ret;
}

/* And window 1 of @length bytes on both, at @offset in its first page. */
static inline int pair_windows(struct pair *p, size_t length,
			       const size_t offset[PAIR])
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < PAIR && !ret; i++) {
		ret = side_memory(&p->side[i], length, offset[i]);
		if (!ret)
			ret = side_attach(&p->side[i], 1);
	}
	return ret;
}

static inline void side_end(struct side *s)
{
	if (s->r.fd > 0)
		close(s->r.fd);
	if (s->map)
		munmap(s->map, s->map_length);
}

static inline void pair_end(struct pair *p)
{
	side_end(&p->side[0]);
	side_end(&p->side[1]);
}

/* A submission entry with what put and get need. */
static inline struct hcomm_sqe *data_sqe(struct side *s, uint8_t opcode,
					 uint32_t to, uint64_t local_off,
					 uint64_t remote_off, uint64_t length)
{
	struct hcomm_sqe *sqe = next_sqe(&s->r);

	sqe->opcode = opcode;
	sqe->rank = to;
	sqe->object = s->object;
	sqe->window = s->window;
	sqe->local_off = local_off;
	sqe->remote_off = remote_off;
	sqe->length = length;
	return sqe;
}

/* Waits for the next completion; its result, or -ETIME. */
static inline int finish(struct side *s, struct hcomm_cqe *cqe)
{
	struct hcomm_cqe local;

	if (!cqe)
		cqe = &local;
	if (!WAIT_UNTIL(&s->r, pop_cqe(&s->r, cqe)))
		return -ETIME;
	return cqe->result;
}

/* Submits what was filled and waits for its result. */
static inline int run(struct side *s)
{
	int ret;

	push(&s->r);
	ret = submit(&s->r, 1);
	return ret == 1 ? finish(s, NULL) : ret ? ret : -EAGAIN;
}

static inline int run_data(struct side *s, uint8_t opcode, uint64_t local_off,
			   uint64_t remote_off, uint64_t length)
{
	data_sqe(s, opcode, 1 - s->r.join.rank, local_off, remote_off, length);
	return run(s);
}

/* Bytes that differ with place and @seed. */
static inline void fill(char *p, size_t n, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 12345;
	size_t i;

	for (i = 0; i < n; i++) {
		x = x * 1103515245 + 12345;
		p[i] = x >> 16;
	}
}

/* The first byte that is not as fill() made it, or @n. */
static inline size_t differs(const char *p, size_t n, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 12345;
	size_t i;

	for (i = 0; i < n; i++) {
		x = x * 1103515245 + 12345;
		if (p[i] != (char)(x >> 16))
			break;
	}
	return i;
}

/* A file of path 0 of the one session of instance @nr; false when there is none. */
static inline bool session_file(unsigned int nr, const char *name, char *path,
				size_t size)
{
	char dir[96];
	struct dirent *e;
	bool found = false;
	DIR *d;

	snprintf(dir, sizeof(dir), "/sys/class/hcomm/hcomm%u/sessions", nr);
	d = opendir(dir);
	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, size, "%s/%.32s/paths/0/%s", dir, e->d_name,
			 name);
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}

#endif
