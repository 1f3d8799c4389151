// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Runs random schedules of the simulated fabric
 *
 *   test_sim [--schedules N] [--first SEED] [--seed N]
 *
 * Without arguments: as many schedules as the suite asks for (HCOMM_SUITE
 * fast: 20,000; otherwise 1,000,000; sanitized builds fewer).  --seed N runs that
 * schedule alone, with a trace of every step.  A schedule is a chaos phase, in
 * which paths are cut and members die between any two steps, and a calm one, in
 * which everything must come to its end.
 */
#include "sim.h"

#ifndef SIM_SHARE
#define SIM_SHARE	1	/* sanitized builds run 1/SIM_SHARE */
#endif

struct sim sim;
struct sim_stats sim_stats;
bool sim_trace;

void sim_fail(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(sim.why, sizeof(sim.why), fmt, args);
	va_end(args);
	longjmp(sim.fail, 1);
}

static void chaos_path(unsigned int side, unsigned int path)
{
	struct conn *c;

	switch (rnd(7)) {
	case 0:
		node_notice(side, path);
		break;
	case 1:
		node_drain(side, path);
		break;
	case 2:
		if (sim.nconns < SIM_CONNS / 2)
			node_connect(path);
		break;
	case 3:
		if (!sim.nconns)
			break;
		c = &sim.conn[rnd(sim.nconns)];
		if (c->phase == CONN_REJ || one_in(2))
			conn_handshake(c);
		else if (!c->silent && one_in(8) && sim.cuts_left &&
			 conn_cut(c))
			sim.cuts_left--;
		break;
	case 4:
		c = sim.node[side].path[path].conn;
		if (sim.cuts_left && c && one_in(12) && conn_cut(c)) {
			sim.cuts_left--;
			if (one_in(2))
				node_notice(side, path);
		}
		break;
	case 5:
		/* one side gives up a healthy path */
		if (sim.cuts_left && sim.node[side].path[path].conn &&
		    one_in(16)) {
			sim.cuts_left--;
			node_lost(side, path);
		}
		break;
	case 6:
		c = sim.node[side].path[path].conn;
		if (c)
			conn_handshake(c);
		break;
	}
}

static void chaos_app(unsigned int side, unsigned int flow)
{
	switch (rnd(8)) {
	case 0:
		app_free(side, flow);
		break;
	case 1:
		app_answer(side, flow);
		break;
	case 2:
		if (one_in(8))
			app_void(side, flow);
		break;
	case 3:
		if (sim.kills_left && one_in(16) && node_kill(side, flow))
			sim.kills_left--;
		break;
	default:
		app_issue(side, flow);
	}
}

static void chaos_step(void)
{
	unsigned int side = rnd(2);
	unsigned int path = rnd(sim.npaths);
	struct conn *c;

	switch (rnd(8)) {
	case 0:
		chaos_app(side, rnd(sim.nflows));
		break;
	case 1:
		chaos_path(side, path);
		break;
	case 2:
	case 3:
		node_send(side, path, 5);
		break;
	case 4:
		node_send(side, path, rnd(NODE_SENDS));
		break;
	case 5:
		node_poll(side, path, rnd(2));
		break;
	default:
		/* old connections have packets in flight, too */
		if (!sim.nconns)
			break;
		c = one_in(4) ? NULL : sim.node[side].path[path].conn;
		if (!c)
			c = &sim.conn[rnd(sim.nconns)];
		conn_land(c, side, rnd(2));
	}
}

/* Everything that can happen without trouble happens; true: something did. */
static bool calm_pass(void)
{
	unsigned int side, path, flow, qp, what, i;
	bool moved = false;

	for (path = 0; path < sim.npaths; path++)
		moved |= node_connect(path);
	for (i = 0; i < sim.nconns; i++) {
		moved |= conn_handshake(&sim.conn[i]);
		for (side = 0; side < 2; side++)
			for (qp = 0; qp < 2; qp++)
				while (conn_land(&sim.conn[i], side, qp))
					moved = true;
	}
	for (side = 0; side < 2; side++) {
		for (flow = 0; flow < sim.nflows; flow++) {
			moved |= app_issue(side, flow);
			moved |= app_answer(side, flow);
			moved |= app_free(side, flow);
		}
		for (path = 0; path < sim.npaths; path++) {
			moved |= node_notice(side, path);
			for (qp = 0; qp < 2; qp++)
				moved |= node_poll(side, path, qp);
			moved |= node_drain(side, path);
			for (what = 0; what < NODE_SENDS; what++)
				moved |= node_send(side, path, what);
		}
	}
	sim.step++;
	return moved;
}

static void schedule_init(u64 seed)
{
	fabric_reset();
	sim.seed = seed;
	sim.rng = seed * 0x2545f4914f6cdd1dull + 1;
	sim.step = 0;
	sim.calm = false;
	sim.npaths = 1 + rnd(3);
	if (one_in(16))
		sim.npaths = SIM_PATHS;
	sim.nflows = one_in(2) ? 1 : 1 + rnd(SIM_FLOWS);
	sim.window = 2u << rnd(4);
	sim.cuts_left = one_in(8) ? 0 : 1 + rnd(6);
	sim.kills_left = one_in(4) ? 1 + rnd(2) : 0;
	sim.twice = false;
	sim.twice_left = one_in(4) ? 1 + rnd(4) : 0;
	sim.part_max = one_in(8) ? HCOMM_WIRE_PARTS : 8;
	node_init(0);
	node_init(1);
	app_init();
}

static bool schedule_run(u64 seed)
{
	u32 steps, i;

	if (setjmp(sim.fail)) {
		printf("# seed %llu step %llu: %s\n", (unsigned long long)seed,
		       (unsigned long long)sim.step, sim.why);
		return false;
	}
	schedule_init(seed);
	steps = 200 + rnd(1400);
	for (i = 0; i < steps; i++) {
		sim.step++;
		chaos_step();
	}
	trace("calm");
	sim.calm = true;
	for (i = 0; calm_pass(); i++)
		require(i < 20000, "no end in sight");
	app_finished();
	node_check_idle();
	return true;
}

static u64 default_schedules(void)
{
	const char *suite = getenv("HCOMM_SUITE");

	if (suite && strcmp(suite, "fast"))
		return 1000000 / SIM_SHARE;
	return 20000 / SIM_SHARE;
}

static void stats_print(void)
{
	printf("# %llu ops, %llu connections, %llu lost, %llu report messages\n",
	       (unsigned long long)sim_stats.ops,
	       (unsigned long long)sim_stats.connections,
	       (unsigned long long)sim_stats.losses,
	       (unsigned long long)sim_stats.reports);
	printf("# %llu parts posted, %llu of ops hit by a loss, %llu deaths, %llu messages received twice\n",
	       (unsigned long long)sim_stats.parts,
	       (unsigned long long)sim_stats.replays,
	       (unsigned long long)sim_stats.deaths,
	       (unsigned long long)sim_stats.twice);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: test_sim [--schedules N] [--first SEED] [--seed N]\n");
	return 2;
}

int main(int argc, char **argv)
{
	u64 n = default_schedules();
	u64 first = 1;
	u64 seed, bad = 0;
	int i;

	for (i = 1; i < argc; i++) {
		if (i + 1 == argc)
			return usage();
		if (!strcmp(argv[i], "--schedules")) {
			n = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--first")) {
			first = strtoull(argv[++i], NULL, 0);
		} else if (!strcmp(argv[i], "--seed")) {
			first = strtoull(argv[++i], NULL, 0);
			n = 1;
			sim_trace = true;
		} else {
			return usage();
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n1..1\n");
	for (seed = first; seed < first + n && bad < 5; seed++)
		bad += !schedule_run(seed);
	stats_print();
	if (bad)
		printf("# run again with: --seed SEED\n");
	printf("%sok 1 - %llu schedules keep the order and write nothing twice\n",
	       bad ? "not " : "", (unsigned long long)n);
	return bad ? 1 : 0;
}
