// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Data and signals between two instances: every size around a threshold, at
 * awkward offsets, in both directions; order of signals; bounds; ends.
 *
 * HCOMM_SUITE=essential (the debug kernel) leaves out what takes long there.
 */
#include <kselftest_harness.h>

#include "net/net.h"

#define KIB		1024UL
#define MIB		(1024UL * 1024)
#define PAGE		4096UL		/* thresholds, not this machine's page */
#define STRIPE		(256 * KIB)
#define MR		(2 * MIB)

static bool thorough(void)
{
	const char *suite = getenv("HCOMM_SUITE");

	return !suite || !strcmp(suite, "full") || !strcmp(suite, "fast");
}

FIXTURE(pair)
{
	struct pair p;
};

FIXTURE_VARIANT(pair)
{
	size_t offset[PAIR];
};

FIXTURE_VARIANT_ADD(pair, aligned) { .offset = { 0, 0 } };
FIXTURE_VARIANT_ADD(pair, source_at_100) { .offset = { 100, 0 } };
FIXTURE_VARIANT_ADD(pair, target_at_100) { .offset = { 0, 100 } };
FIXTURE_VARIANT_ADD(pair, both_odd) { .offset = { 4095, 33 } };

FIXTURE_SETUP(pair)
{
	int ret = pair_up(&self->p);

	if (ret == -ENOENT || ret == -ENODEV)
		SKIP(return, "needs two instances with a link");
	ASSERT_EQ(ret, 0);
}

FIXTURE_TEARDOWN(pair)
{
	pair_end(&self->p);
}

static const size_t sizes[] = {
	0, 1, 7, KIB - 1, KIB, KIB + 1, PAGE - 1, PAGE, PAGE + 1,
	STRIPE - 1, STRIPE, STRIPE + 1, MR - 1, MR, MR + 1, 9 * MIB,
};

/* Bytes around a transfer must stay what they were. */
#define GUARD		64
#define MARK		0x5a

static bool guarded(const char *p, size_t n)
{
	size_t i;

	for (i = 0; i < GUARD; i++)
		if (p[i] != MARK || p[GUARD + n + i] != MARK)
			return false;
	return true;
}

TEST_F_TIMEOUT(pair, put_places_every_size, 300)
{
	size_t most = thorough() ? 9 * MIB : STRIPE + 1;
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	unsigned int i;

	ASSERT_EQ(pair_windows(&self->p, 9 * MIB + 2 * GUARD, variant->offset), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i];

		if (n > most)
			continue;
		fill(a->base, n, i);
		memset(b->base, MARK, n + 2 * GUARD);
		ASSERT_EQ(run_data(a, HCOMM_OP_PUT, 0, GUARD, n), 0)
			TH_LOG("put of %zu", n);
		ASSERT_EQ(differs(b->base + GUARD, n, i), n);
		ASSERT_TRUE(guarded(b->base, n)) TH_LOG("put of %zu", n);
	}
}

TEST_F_TIMEOUT(pair, get_fetches_every_size, 300)
{
	size_t most = thorough() ? 9 * MIB : STRIPE + 1;
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	unsigned int i;

	ASSERT_EQ(pair_windows(&self->p, 9 * MIB + 2 * GUARD, variant->offset), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i];

		if (n > most)
			continue;
		fill(a->base, n, i);
		memset(b->base, MARK, n + 2 * GUARD);
		ASSERT_EQ(run_data(b, HCOMM_OP_GET, GUARD, 0, n), 0)
			TH_LOG("get of %zu", n);
		ASSERT_EQ(differs(b->base + GUARD, n, i), n);
		ASSERT_TRUE(guarded(b->base, n)) TH_LOG("get of %zu", n);
	}
}

TEST_F_TIMEOUT(pair, ends_of_registrations_on_both_sides, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	size_t from, to;

	ASSERT_EQ(pair_windows(&self->p, 3 * MR, variant->offset), 0);
	/* Ranges that end, begin and cross at the boundary of an MR. */
	for (from = MR - 2 * PAGE; from <= MR + PAGE; from += PAGE + 1) {
		for (to = MR - 2 * PAGE; to <= MR + PAGE; to += PAGE - 1) {
			fill(a->base + from, 3 * PAGE, from ^ to);
			memset(b->base + to - GUARD, MARK,
			       3 * PAGE + 2 * GUARD);
			ASSERT_EQ(run_data(a, HCOMM_OP_PUT, from, to,
					   3 * PAGE), 0);
			ASSERT_EQ(differs(b->base + to, 3 * PAGE, from ^ to),
				  3 * PAGE);
			ASSERT_TRUE(guarded(b->base + to - GUARD, 3 * PAGE));
		}
		if (!thorough())
			break;
	}
}

FIXTURE(plain)
{
	struct pair p;
};

FIXTURE_SETUP(plain)
{
	int ret = pair_up(&self->p);

	if (ret == -ENOENT || ret == -ENODEV)
		SKIP(return, "needs two instances with a link");
	ASSERT_EQ(ret, 0);
}

FIXTURE_TEARDOWN(plain)
{
	pair_end(&self->p);
}

static const size_t none[PAIR];

TEST_F_TIMEOUT(plain, longer_than_one_flow_op, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	size_t n = (thorough() ? 33 : 17) * MIB + 5;

	ASSERT_EQ(pair_windows(&self->p, n, none), 0);
	fill(a->base, n, 1);
	struct hcomm_sqe *sqe = data_sqe(a, HCOMM_OP_PUT, 1, 0, 0, n);

	sqe->flags = HCOMM_OPF_SIGNAL;
	sqe->sem = 2;
	sqe->delta = 1;
	ASSERT_EQ(run(a), 0);
	ASSERT_EQ(sem_value(&b->r, 2), 1);
	ASSERT_EQ(differs(b->base, n, 1), n);
	memset(a->base, 0, n);
	ASSERT_EQ(run_data(a, HCOMM_OP_GET, 0, 0, n), 0);
	ASSERT_EQ(differs(a->base, n, 1), n);
}

TEST_F_TIMEOUT(plain, signals_arrive_and_add_up, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	unsigned int i;

	for (i = 0; i < 200; i++) {
		push_signal(&a->r, 1, 5, 3);
		ASSERT_EQ(submit(&a->r, 1), 1);
	}
	ASSERT_TRUE(WAIT_UNTIL(&b->r, sem_value(&b->r, 5) == 600));
	for (i = 0; i < 200; i++)
		ASSERT_EQ(finish(a, NULL), 0);
}

/*
 * The receiver reuses each slot on the instruction after its signal: what it
 * wrote must stay, and what it read must be whole. Large and small puts take
 * different queue pairs, so an order that is not kept shows at once.
 */
TEST_F_TIMEOUT(plain, signal_follows_data_and_nothing_follows_it, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	const unsigned int slots = 8, rounds = thorough() ? 400 : 60;
	const size_t slot = STRIPE + PAGE;
	size_t n[3] = { 300, 40 * KIB, STRIPE + 1 };
	unsigned int sent = 0, seen = 0, i;
	struct hcomm_cqe cqe;

	ASSERT_EQ(pair_windows(&self->p, slots * slot, none), 0);
	while (seen < rounds) {
		while (sent < rounds && sent < seen + slots) {
			size_t at = (sent % slots) * slot;
			struct hcomm_sqe *sqe;

			fill(a->base + at, n[sent % 3], sent);
			sqe = data_sqe(a, HCOMM_OP_PUT, 1, at, at, n[sent % 3]);
			sqe->flags = HCOMM_OPF_SIGNAL;
			sqe->sem = 1;
			sqe->delta = 1;
			push(&a->r);
			ASSERT_EQ(submit(&a->r, 1), 1);
			sent++;
		}
		ASSERT_TRUE(WAIT_UNTIL(&b->r, sem_value(&b->r, 1) > seen));
		for (i = sem_value(&b->r, 1); seen < i; seen++) {
			char *p = b->base + (seen % slots) * slot;

			ASSERT_EQ(differs(p, n[seen % 3], seen), n[seen % 3])
				TH_LOG("op %u of %u seen", seen, i);
			memset(p, 0xa0 + seen % 8, n[seen % 3]);
		}
	}
	for (i = 0; i < rounds; i++)
		ASSERT_EQ(finish(a, &cqe), 0);
	/* Nothing was written after the last look. */
	for (i = rounds - slots; i < rounds; i++) {
		char *p = b->base + (i % slots) * slot;
		size_t k;

		for (k = 0; k < n[i % 3]; k++)
			ASSERT_EQ((unsigned char)p[k], 0xa0 + i % 8);
	}
}

TEST_F_TIMEOUT(plain, fence_completes_after_what_was_before_it, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_cqe cqe;
	struct hcomm_sqe *sqe;
	unsigned int i;

	ASSERT_EQ(pair_windows(&self->p, MIB, none), 0);
	fill(b->base + 512 * KIB, 256 * KIB, 9);
	fill(a->base, 256 * KIB, 4);
	data_sqe(a, HCOMM_OP_PUT, 1, 0, 0, 256 * KIB)->user_data = 1;
	push(&a->r);
	data_sqe(a, HCOMM_OP_GET, 1, 512 * KIB, 512 * KIB,
		 256 * KIB)->user_data = 2;
	push(&a->r);
	sqe = next_sqe(&a->r);
	sqe->opcode = HCOMM_OP_FENCE;
	sqe->rank = 1;
	sqe->user_data = 3;
	push(&a->r);
	ASSERT_EQ(submit(&a->r, 3), 3);
	for (i = 1; i <= 3; i++) {
		ASSERT_EQ(finish(a, &cqe), 0);
		ASSERT_TRUE(i == 3 ? cqe.user_data == 3 : cqe.user_data < 3);
	}
	ASSERT_EQ(differs(b->base, 256 * KIB, 4), 256 * KIB);
	ASSERT_EQ(differs(a->base + 512 * KIB, 256 * KIB, 9), 256 * KIB);
}

TEST_F_TIMEOUT(plain, many_gets_in_flight, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	const unsigned int count = 200;
	const size_t n = 2 * KIB;
	unsigned int i;

	ASSERT_EQ(pair_windows(&self->p, count * n, none), 0);
	fill(b->base, count * n, 3);
	for (i = 0; i < count; i++) {
		/* Every other one is small enough for the answer's message. */
		data_sqe(a, HCOMM_OP_GET, 1, i * n, i * n, i % 2 ? n : KIB);
		push(&a->r);
		if (i % 2 == 0) {
			data_sqe(a, HCOMM_OP_GET, 1, i * n + KIB, i * n + KIB,
				 KIB);
			push(&a->r);
		}
		ASSERT_EQ(submit(&a->r, 2 - i % 2), 2 - i % 2);
	}
	for (i = 0; i < count + count / 2; i++)
		ASSERT_EQ(finish(a, NULL), 0);
	ASSERT_EQ(differs(a->base, count * n, 3), count * n);
}

TEST_F_TIMEOUT(plain, more_ops_than_the_flow_takes, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_join join = self->p.group;
	unsigned int sent = 0, done = 0;
	struct hcomm_cqe cqe;

	(void)join;
	while (done < 3000) {
		unsigned int n = 0;

		while (sent < 3000 && sent - done < 500 && n < 100) {
			push_signal(&a->r, 1, 0, 1);
			n++;
			sent++;
		}
		if (n)
			ASSERT_EQ(submit(&a->r, n), n);
		ASSERT_EQ(finish(a, &cqe), 0);
		done++;
		while (pop_cqe(&a->r, &cqe))
			done++;
	}
	ASSERT_TRUE(WAIT_UNTIL(&b->r, sem_value(&b->r, 0) == 3000));
}

TEST_F_TIMEOUT(plain, wrong_ranges_end_that_op_alone, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];

	ASSERT_EQ(pair_windows(&self->p, 64 * KIB, none), 0);
	fill(a->base, 64 * KIB, 2);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 64 * KIB, 1), -ERANGE);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 64 * KIB - 10, 11), -ERANGE);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 60 * KIB, 8 * KIB), -ERANGE);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, UINT64_MAX - 4, 8), -ERANGE);
	EXPECT_EQ(run_data(a, HCOMM_OP_GET, 0, 64 * KIB - 10, 11), -ERANGE);
	EXPECT_EQ(run_data(a, HCOMM_OP_GET, 0, 1 * KIB, 64 * KIB), -ERANGE);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 64 * KIB), 0);
	EXPECT_EQ(differs(b->base, 64 * KIB, 2), 64 * KIB);
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
}

TEST_F_TIMEOUT(plain, unknown_semaphore_is_refused_by_its_owner, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	uint64_t before = sem_value(&b->r, 0);

	push_signal(&a->r, 1, 60000, 1);
	ASSERT_EQ(submit(&a->r, 1), 1);
	EXPECT_EQ(finish(a, NULL), -EINVAL);
	push_signal(&a->r, 1, 0, 1);
	ASSERT_EQ(submit(&a->r, 1), 1);
	EXPECT_EQ(finish(a, NULL), 0);
	EXPECT_EQ(sem_value(&b->r, 0), before + 1);
	EXPECT_EQ(state_of(&b->r), HCOMM_STATE_ACTIVE);
}

TEST_F_TIMEOUT(plain, detached_window_is_stale_and_quiesces, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_win_detach detach = { .window = 1 };
	struct hcomm_event event;

	ASSERT_EQ(pair_windows(&self->p, 64 * KIB, none), 0);
	ASSERT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 64 * KIB), 0);
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_WIN_DETACH, &detach), 0);
	ASSERT_TRUE(wait_event(&b->r, HCOMM_EVENT_QUIESCED, &event));
	EXPECT_EQ(event.value, 1);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 8 * KIB), -ESTALE);
	EXPECT_EQ(run_data(a, HCOMM_OP_PUT, 0, 0, 8), -ESTALE);
	EXPECT_EQ(run_data(a, HCOMM_OP_GET, 0, 0, 8 * KIB), -ESTALE);
	/* The other direction knows nothing of it. */
	EXPECT_EQ(run_data(b, HCOMM_OP_PUT, 0, 0, 64 * KIB), 0);
}

/* Puts race with the detach: each ends well or stale, and none lands later. */
TEST_F_TIMEOUT(plain, detach_under_traffic, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_win_detach detach = { .window = 1 };
	unsigned int i, sent = 0, stale = 0;
	struct hcomm_event event;
	const size_t n = 128 * KIB;
	int ret;

	ASSERT_EQ(pair_windows(&self->p, n, none), 0);
	for (i = 0; i < 40; i++, sent++) {
		data_sqe(a, HCOMM_OP_PUT, 1, 0, 0, i % 3 ? n : 500);
		push(&a->r);
	}
	ASSERT_EQ(submit(&a->r, sent), sent);
	ASSERT_EQ(finish(a, NULL), 0);
	ASSERT_EQ(call(b->r.fd, HCOMM_IOC_WIN_DETACH, &detach), 0);
	ASSERT_TRUE(wait_event(&b->r, HCOMM_EVENT_QUIESCED, &event));
	fill(b->base, n, 77);
	for (i = 1; i < sent; i++) {
		ret = finish(a, NULL);
		ASSERT_TRUE(!ret || ret == -ESTALE) TH_LOG("result %d", ret);
		stale += ret == -ESTALE;
	}
	EXPECT_EQ(differs(b->base, n, 77), n);
	EXPECT_EQ(state_of(&a->r), HCOMM_STATE_ACTIVE);
	TH_LOG("%u of %u were stale", stale, sent);
}

TEST_F_TIMEOUT(plain, put_waits_for_the_advert, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_cqe cqe;

	ASSERT_EQ(side_memory(a, 64 * KIB, 0), 0);
	ASSERT_EQ(side_memory(b, 64 * KIB, 0), 0);
	a->window = 9;
	fill(a->base, 64 * KIB, 6);
	data_sqe(a, HCOMM_OP_PUT, 1, 0, 0, 64 * KIB);
	push(&a->r);
	ASSERT_EQ(submit(&a->r, 1), 1);
	EXPECT_FALSE(pop_cqe(&a->r, &cqe));
	ASSERT_EQ(side_attach(b, 9), 0);
	ASSERT_EQ(finish(a, NULL), 0);
	EXPECT_EQ(differs(b->base, 64 * KIB, 6), 64 * KIB);
}

TEST_F_TIMEOUT(plain, triggered_put_starts_from_a_remote_signal, 300)
{
	struct side *a = &self->p.side[0], *b = &self->p.side[1];
	struct hcomm_sqe *sqe;

	ASSERT_EQ(pair_windows(&self->p, 64 * KIB, none), 0);
	fill(b->base, 64 * KIB, 8);
	/* Rank 1 answers rank 0's signal without its process's help. */
	sqe = data_sqe(b, HCOMM_OP_PUT, 0, 0, 0, 64 * KIB);
	sqe->flags = HCOMM_OPF_WAIT | HCOMM_OPF_SIGNAL;
	sqe->wait_sem = 3;
	sqe->wait_value = 1;
	sqe->sem = 4;
	sqe->delta = 1;
	push(&b->r);
	ASSERT_EQ(submit(&b->r, 1), 1);
	push_signal(&a->r, 1, 3, 1);
	ASSERT_EQ(submit(&a->r, 1), 1);
	ASSERT_TRUE(WAIT_UNTIL(&a->r, sem_value(&a->r, 4) == 1));
	EXPECT_EQ(differs(a->base, 64 * KIB, 8), 64 * KIB);
	EXPECT_EQ(finish(b, NULL), 0);
}

TEST_HARNESS_MAIN
