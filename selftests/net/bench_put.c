// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * bench_put SIZE COUNT DEPTH: puts COUNT times SIZE bytes from hcomm0 to
 * hcomm1, DEPTH at a time, and prints the rate in 10^6 bytes per second. The
 * source is rewritten before and the target checked after the measurement.
 */
#include "net/net.h"

static void need(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "bench_put: %s: %s\n", what, strerror(-ret));
	exit(1);
}

static void put_all(struct pair *p, size_t size, unsigned int count,
		    unsigned int depth)
{
	struct side *a = &p->side[0];
	unsigned int sent = 0, done = 0, n;
	struct hcomm_cqe cqe;

	while (done < count) {
		for (n = 0; sent < count && sent < done + depth; n++, sent++) {
			data_sqe(a, HCOMM_OP_PUT, 1, 0, 0, size);
			push(&a->r);
		}
		if (n && submit(&a->r, n) != (int)n)
			need(-EIO, "submit");
		need(finish(a, NULL), "put");
		done++;
		while (pop_cqe(&a->r, &cqe)) {
			need(cqe.result, "put");
			done++;
		}
	}
}

int main(int argc, char **argv)
{
	static const size_t none[PAIR];
	unsigned int count, depth;
	struct pair p;
	uint64_t ns;
	size_t size;

	if (argc != 4) {
		fprintf(stderr, "usage: bench_put SIZE COUNT DEPTH\n");
		return 2;
	}
	size = strtoul(argv[1], NULL, 0);
	count = strtoul(argv[2], NULL, 0);
	depth = strtoul(argv[3], NULL, 0);
	if (!size || !count || !depth || depth > 256) {
		fprintf(stderr, "bench_put: nothing to do\n");
		return 2;
	}
	need(pair_up(&p), "join");
	need(pair_windows(&p, size, none), "windows");
	fill(p.side[0].base, size, 1);
	put_all(&p, size, depth, depth);
	ns = now_ns();
	put_all(&p, size, count, depth);
	ns = now_ns() - ns;
	if (differs(p.side[1].base, size, 1) != size)
		need(-EBADMSG, "data");
	printf("%.2f\n", (double)size * count * 1000 / ns);
	pair_end(&p);
	return 0;
}
