// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A path that is lost and comes back under load: nothing is lost, nothing is
 * done twice, nothing is written after it was announced. The receiver checks
 * every slot and overwrites it as soon as its signal is seen, so a WRITE that
 * is repeated too late destroys what is looked at again at the end.
 */
#include <kselftest_harness.h>
#include <pthread.h>

#include "net/net.h"

#define KIB	1024UL
#define SLOTS	8
#define SLOT	(264 * KIB)

static bool thorough(void)
{
	const char *suite = getenv("HCOMM_SUITE");

	return !suite || strcmp(suite, "essential");
}

static void nap(unsigned int ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static int put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static long get_number(unsigned int nr, const char *name)
{
	char path[256], text[64] = "";
	FILE *f;

	if (!session_file(nr, name, path, sizeof(path)))
		return -1;
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return atol(text);
}

static int disconnect(unsigned int nr)
{
	char path[256];

	if (!session_file(nr, "disconnect", path, sizeof(path)))
		return -ENOENT;
	return put_text(path, "1");
}

static int shell(const char *command)
{
	int status = system(command);

	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* What cuts, in a thread of its own, while the traffic runs. */
struct cutter {
	void (*cut)(unsigned int round);
	unsigned int cuts;
	unsigned int gap_ms;
	unsigned int done;
	bool stop;
};

static void *cutter_run(void *arg)
{
	struct cutter *c = arg;

	while (!__atomic_load_n(&c->stop, __ATOMIC_RELAXED) &&
	       c->done < c->cuts) {
		nap(c->gap_ms + c->done * 37 % 50);
		c->cut(c->done);
		__atomic_add_fetch(&c->done, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

FIXTURE(paths)
{
	struct pair p;
	uint32_t sent;
	uint32_t seen;
};

FIXTURE_SETUP(paths)
{
	static const size_t offset[PAIR] = { 100, 4000 };
	int ret = pair_up(&self->p);

	if (ret == -ENOENT || ret == -ENODEV)
		SKIP(return, "needs two instances with a link");
	ASSERT_EQ(ret, 0);
	ASSERT_EQ(pair_windows(&self->p, SLOTS * SLOT, offset), 0);
}

FIXTURE_TEARDOWN(paths)
{
	pair_end(&self->p);
}

static size_t length_of(uint32_t n)
{
	static const size_t lengths[] = { 9, 300, 1024, 1025, 20 * KIB,
					  256 * KIB, 257 * KIB };

	return lengths[n % (sizeof(lengths) / sizeof(lengths[0]))];
}

static bool send_slot(struct pair *p, uint32_t n)
{
	struct side *a = &p->side[0];
	size_t at = n % SLOTS * SLOT;
	struct hcomm_sqe *sqe;

	fill(a->base + at, length_of(n), n);
	sqe = data_sqe(a, HCOMM_OP_PUT, 1, at, at, length_of(n));
	sqe->flags = HCOMM_OPF_SIGNAL;
	sqe->sem = 1;
	sqe->delta = 1;
	push(&a->r);
	return submit(&a->r, 1) == 1;
}

/* The receiver's own mark over what it has read. */
static void reuse_slot(struct pair *p, uint32_t n)
{
	memset(p->side[1].base + n % SLOTS * SLOT, 0x80 | n % 100,
	       length_of(n));
}

static bool slot_untouched(struct pair *p, uint32_t n)
{
	const char *at = p->side[1].base + n % SLOTS * SLOT;
	size_t i;

	for (i = 0; i < length_of(n); i++)
		if (at[i] != (char)(0x80 | n % 100))
			return false;
	return true;
}

static void traffic(struct __test_metadata *_metadata, struct pair *p,
		    struct cutter *c, uint32_t least)
{
	uint32_t sent = 0, seen = 0, done = 0;
	struct side *a = &p->side[0], *b = &p->side[1];
	pthread_t thread;
	struct hcomm_cqe cqe;

	ASSERT_EQ(pthread_create(&thread, NULL, cutter_run, c), 0);
	while (seen < least ||
	       __atomic_load_n(&c->done, __ATOMIC_RELAXED) < c->cuts) {
		while (pop_cqe(&a->r, &cqe)) {
			ASSERT_EQ(cqe.result, 0);
			done++;
		}
		/* A slot is sent to again when its last op has completed. */
		while (sent < seen + SLOTS && sent < done + SLOTS)
			ASSERT_TRUE(send_slot(p, sent++));
		ASSERT_TRUE(WAIT_UNTIL(&b->r, sem_value(&b->r, 1) > seen ||
					      completions(&a->r)))
			TH_LOG("seen %u sent %u done %u after %u cuts", seen,
			       sent, done, c->done);
		while (sem_value(&b->r, 1) > seen) {
			ASSERT_EQ(differs(b->base + seen % SLOTS * SLOT,
					  length_of(seen), seen),
				  length_of(seen))
				TH_LOG("op %u after %u cuts", seen, c->done);
			reuse_slot(p, seen++);
		}
	}
	pthread_join(thread, NULL);
	while (seen < sent) {
		ASSERT_TRUE(WAIT_UNTIL(&b->r, sem_value(&b->r, 1) > seen));
		ASSERT_EQ(differs(b->base + seen % SLOTS * SLOT,
				  length_of(seen), seen), length_of(seen));
		reuse_slot(p, seen++);
	}
	for (; done < sent; done++)
		ASSERT_EQ(finish(a, NULL), 0);
	for (done = sent > SLOTS ? sent - SLOTS : 0; done < sent; done++)
		EXPECT_TRUE(slot_untouched(p, done)) TH_LOG("op %u", done);
	EXPECT_EQ(sem_value(&b->r, 1), sent);
	TH_LOG("%u ops, %u cuts, %ld replayed, %ld reconnects", sent, c->done,
	       get_number(0, "replayed"), get_number(0, "reconnects"));
}

static bool path_is_up(unsigned int nr)
{
	char path[256], text[32] = "";
	FILE *f;

	if (!session_file(nr, "state", path, sizeof(path)))
		return false;
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	return !strcmp(text, "up\n");
}

/* From one side or the other, or from both, when there is something to cut. */
static void cut_by_disconnect(unsigned int round)
{
	unsigned int i;

	for (i = 0; i < 1000 && !(path_is_up(0) && path_is_up(1)); i++)
		nap(10);
	if (round % 3 != 1)
		disconnect(0);
	if (round % 3 != 0)
		disconnect(1);
}

TEST_F_TIMEOUT(paths, survive_disconnects, 300)
{
	struct cutter c = {
		.cut = cut_by_disconnect,
		.cuts = thorough() ? 30 : 6,
		.gap_ms = 100,
	};
	long before = get_number(0, "reconnects");

	traffic(_metadata, &self->p, &c, 100);
	EXPECT_GT(get_number(0, "reconnects"), before);
}

static void link_down(const char *dev)
{
	char command[64];

	snprintf(command, sizeof(command), "ip link set %s down", dev);
	shell(command);
}

static void link_up(const char *dev)
{
	char command[64];

	snprintf(command, sizeof(command), "ip link set %s up", dev);
	shell(command);
	/* The address' neighbours are permanent only while the link is up. */
	shell("ip neigh replace 10.18.0.2 lladdr 52:54:00:00:01:00 dev h0l0 nud permanent");
	shell("ip neigh replace 10.18.0.1 lladdr 52:54:00:00:00:00 dev h1l0 nud permanent");
}

static void cut_by_link_down(unsigned int round)
{
	const char *dev = round % 2 ? "h1l0" : "h0l0";

	link_down(dev);
	nap(300);
	link_up(dev);
}

TEST_F_TIMEOUT(paths, survive_link_down_and_up, 300)
{
	struct cutter c = {
		.cut = cut_by_link_down,
		.cuts = thorough() ? 6 : 2,
		.gap_ms = 1500,
	};

	traffic(_metadata, &self->p, &c, 100);
}

/*
 * Net devices that go down as one group: the first one's far end hears of it
 * only when the last is down, so paths end on a port that says that it is
 * active and cannot send.
 */
static void slow_group(bool make)
{
	shell(make ? "for i in $(seq 64); do"
		     " echo link add slow$i up group 7 type veth peer name slowly$i;"
		     " done | ip -batch -" :
		     "for i in $(seq 64); do echo link del slow$i; done | ip -batch -");
	shell(make ? "ip link set h1l0 group 7" : "ip link set h1l0 group 0");
}

static void cut_by_group_down(unsigned int round)
{
	shell("ip link set group 7 down");
	nap(100);
	shell("ip link set group 7 up");
	link_up("h1l0");
}

TEST_F_TIMEOUT(paths, survive_ends_that_find_no_carrier, 300)
{
	struct cutter c = {
		.cut = cut_by_group_down,
		.cuts = thorough() ? 10 : 4,
		.gap_ms = 1500,
	};

	slow_group(true);
	traffic(_metadata, &self->p, &c, 100);
	slow_group(false);
}

/* The cable is out for a while, and nobody but silence tells. */
static void cut_by_loss(unsigned int round)
{
	shell("tc qdisc replace dev h0l0 root netem loss 100%");
	shell("tc qdisc replace dev h1l0 root netem loss 100%");
	nap(1000 + round * 200);
	shell("tc qdisc del dev h0l0 root");
	shell("tc qdisc del dev h1l0 root");
}

TEST_F_TIMEOUT(paths, survive_a_cable_pulled_and_put_back, 300)
{
	struct cutter c = {
		.cut = cut_by_loss,
		.cuts = thorough() ? 6 : 2,
		.gap_ms = 2500,
	};

	traffic(_metadata, &self->p, &c, 100);
}

static void cut_by_removal(unsigned int round)
{
	unsigned int i = round % 2;
	char command[96];

	snprintf(command, sizeof(command), "rdma link del rxe%u_0", i);
	shell(command);
	nap(100);
	snprintf(command, sizeof(command),
		 "rdma link add rxe%u_0 type rxe netdev h%ul0", i, i);
	shell(command);
	snprintf(command, sizeof(command),
		 "echo rxe%u_0/1 >/sys/class/hcomm/hcomm%u/add_port", i, i);
	shell(command);
}

TEST_F_TIMEOUT(paths, survive_removal_of_the_device, 300)
{
	struct cutter c = {
		.cut = cut_by_removal,
		.cuts = thorough() ? 6 : 2,
		.gap_ms = 1500,
	};

	traffic(_metadata, &self->p, &c, 100);
}

/* Requests and answers are replayed, too. */
TEST_F_TIMEOUT(paths, gets_survive_disconnects, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct cutter c = {
		.cut = cut_by_disconnect,
		.cuts = thorough() ? 20 : 4,
		.gap_ms = 100,
	};
	pthread_t thread;
	uint32_t n = 0;
	size_t len;

	fill(b->base, SLOT, 5);
	ASSERT_EQ(pthread_create(&thread, NULL, cutter_run, &c), 0);
	for (; n < 50 || __atomic_load_n(&c.done, __ATOMIC_RELAXED) < c.cuts;
	     n++) {
		len = length_of(n);
		memset(a->base, 0, len);
		ASSERT_EQ(run_data(a, HCOMM_OP_GET, 0, 0, len), 0)
			TH_LOG("get %u after %u cuts", n, c.done);
		ASSERT_EQ(differs(a->base, len, 5), len);
	}
	pthread_join(thread, NULL);
}

TEST_HARNESS_MAIN
