/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulated fabric: two instances, one session, one core
 *
 *      app.c     ops, destination memory, the adversary, the oracle
 *      node.c    the driver around the core, as thin as the kernel's
 *      kmod/core flows, fencing, control stream, credits, scheduling
 *      fabric.c  connections of two queue pairs each: packets land in order
 *                within a queue pair, in any order between them; cuts
 *
 * One schedule is a seed: everything random comes from it.  Time is the step
 * count.  A violation ends the schedule by longjmp and is reported with the
 * seed.
 */
#ifndef HCOMM_SIM_H
#define HCOMM_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/shim.h"
#include "core/credit.h"
#include "core/ctl.h"
#include "core/fence.h"
#include "core/flow.h"
#include "core/pathstate.h"
#include "core/sched.h"
#include "core/stripe.h"
#include "core/wire.h"

#define SIM_PATHS	4
#define SIM_FLOWS	3
#define SIM_OPS		48	/* of one flow in one direction */
#define SIM_SLOTS	5	/* destinations of puts, and as many of gets */
#define SIM_SEGS	2	/* WRITEs of a part */
#define SIM_CONNS	64	/* connection attempts of one schedule */
#define SIM_CTL		48	/* control messages of one side */
#define SIM_WINDOW	16	/* largest flow window used here */

/* ---- fabric ---- */

enum pkt_kind {
	PKT_WRITE,
	PKT_SEND,
};

struct pkt {
	struct list_head node;
	u8 kind;
	u8 flow;
	u8 slot;		/* WRITE: where */
	u8 part;
	u8 seg;
	u16 len;		/* SEND: bytes of msg */
	bool again;		/* SEND: the same message came before */
	u32 id;			/* WRITE: sim op */
	u32 bytes;		/* SEND: what the part cost the scheduler */
	u8 msg[HCOMM_WIRE_MESSAGE];
};

enum conn_phase {
	CONN_REQ,		/* request on its way to side 1 */
	CONN_REP,		/* answer on its way to side 0 */
	CONN_REJ,
	CONN_RTU,		/* side 0 established, side 1 about to be */
	CONN_OPEN,
};

struct conn {
	u8 path;
	u8 phase;
	u32 epoch;
	bool broken;		/* the link failed: sides may notice */
	bool silent;		/* ...and nothing lands any more */
	bool twice;		/* a SEND was received twice */
	struct {
		bool exists;	/* queue pairs exist */
		bool err;	/* ...and are in error */
		bool deaf;	/* a message was dropped here */
		s32 posted[2];	/* receives */
		struct list_head sq[2];	/* packets sent by this side */
		struct list_head cq[2];	/* messages arrived at this side */
	} side[2];
};

/* ---- node: one side of the session ---- */

struct npath {
	enum hcomm_path_state state;
	struct conn *conn;	/* NULL in new and down */
	struct hcomm_credit credit[2];
	struct hcomm_sched sched;
};

struct nflow {
	struct hcomm_flow f;
	struct hcomm_flow_slot slots[SIM_WINDOW];
	struct hcomm_flow_get gets[HCOMM_FLOW_GETS];
	struct hcomm_sched_queue queue[SIM_PATHS];
	bool alive;
	u64 last_seq;		/* highest ordered delivery */
	u64 last_base;		/* first sequence */
	u64 announced;		/* ops below were announced or skipped */
	u64 sum;		/* semaphore */
};

struct node {
	struct hcomm_fence fence;
	struct hcomm_ctl ctl;
	struct npath path[SIM_PATHS];
	struct nflow flow[SIM_FLOWS];
	struct hcomm_ctl_msg ctl_msg[SIM_CTL];
	u32 ctl_used;
};

/* ---- app ---- */

enum sop_type {
	SOP_PUT,
	SOP_EAGER,
	SOP_SIGNAL,
	SOP_GET,
};

struct sop {
	struct hcomm_flow_op op;
	struct hcomm_flow_op reply;	/* of a GET, at the owner */
	u32 id;
	u8 type;
	u8 nparts;		/* GET: of the reply */
	u8 segs;
	u8 slot;
	u8 flags;
	u8 reply_qp;
	bool has_sem;
	bool get_error;		/* the owner answers with an error */
	bool want_nack;
	bool nacked;
	bool announced;
	bool requested;		/* GET delivered to the owner */
	bool reply_queued;
	bool reply_done;
	bool finished;		/* handed back by the core */
	u32 delta;
	u32 delivered;
	u64 landed;		/* parts placed at their destination */
};

enum slot_state {
	SLOT_FREE,		/* a new op may be sent there */
	SLOT_NET,		/* the op `owner` may be written there */
	SLOT_APP,		/* announced: the user's own */
};

struct mem_slot {
	u8 state;
	u32 owner;
	u32 cell[HCOMM_WIRE_PARTS][SIM_SEGS];
};

/* Both directions of flow number f: [side] is the sender's side. */
struct app_flow {
	struct sop op[2][SIM_OPS];
	u32 issued[2];
	u32 wanted[2];
	struct mem_slot put[2][SIM_SLOTS];	/* destination of side's puts */
	struct mem_slot get[2][SIM_SLOTS];	/* destination of side's gets */
};

struct sim {
	u64 rng;
	u64 seed;
	u64 step;
	u32 npaths;
	u32 nflows;
	u32 window;
	u32 cuts_left;
	u32 kills_left;
	u32 twice_left;		/* SENDs that will be received twice */
	bool twice;		/* one was */
	u32 part_max;
	bool calm;
	struct conn conn[SIM_CONNS];
	u32 nconns;
	struct node node[2];
	struct app_flow app[SIM_FLOWS];
	jmp_buf fail;
	char why[160];
};

/* Over all schedules: shows that they went through what they claim to. */
struct sim_stats {
	u64 ops;
	u64 connections;
	u64 losses;
	u64 parts;
	u64 replays;
	u64 reports;
	u64 deaths;
	u64 twice;
};

extern struct sim sim;
extern struct sim_stats sim_stats;
extern bool sim_trace;

#define trace(...) do {							\
	if (__builtin_expect(sim_trace, 0)) {				\
		printf("# %5llu ", (unsigned long long)sim.step);	\
		printf(__VA_ARGS__);					\
		printf("\n");						\
	}								\
} while (0)

void __noreturn __printf(1, 2) sim_fail(const char *fmt, ...);

#define require(cond, ...) do {						\
	if (__builtin_expect(!(cond), 0))				\
		sim_fail(__VA_ARGS__);					\
} while (0)

static inline u64 rng_next(void)
{
	u64 z = (sim.rng += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

/* 0..n - 1 */
static inline u32 rnd(u32 n)
{
	return ((rng_next() >> 32) * n) >> 32;
}

static inline bool one_in(u32 n)
{
	return !rnd(n);
}

/* fabric.c: true when something happened */
struct pkt *pkt_new(enum pkt_kind kind);
void pkt_free(struct pkt *p);
void fabric_reset(void);
struct conn *conn_new(unsigned int path, u32 epoch);
void conn_error(struct conn *c, unsigned int side);
bool conn_land(struct conn *c, unsigned int from, unsigned int qp);
bool conn_handshake(struct conn *c);
bool conn_cut(struct conn *c);

/* node.c */
void node_init(unsigned int side);
bool node_connect(unsigned int path);
void node_request(struct conn *c);
void node_established(struct conn *c, unsigned int side);
void node_lost(unsigned int side, unsigned int path);
bool node_notice(unsigned int side, unsigned int path);
bool node_drain(unsigned int side, unsigned int path);
bool node_poll(unsigned int side, unsigned int path, unsigned int qp);
bool node_send(unsigned int side, unsigned int path, unsigned int what);
bool node_kill(unsigned int side, unsigned int flow);
void node_activate(unsigned int side, unsigned int flow);
void node_check_idle(void);

#define NODE_SENDS	6	/* values of `what` */

/* app.c */
void app_init(void);
bool app_issue(unsigned int side, unsigned int flow);
bool app_answer(unsigned int side, unsigned int flow);
bool app_free(unsigned int side, unsigned int flow);
bool app_void(unsigned int side, unsigned int flow);
void app_write(const struct pkt *p, unsigned int from);
void app_eager(unsigned int side, unsigned int flow, struct sop *op);
void app_deliver(struct hcomm_flow *f, u64 seq,
		 const struct hcomm_flow_slot *slot);
void app_done(unsigned int side, unsigned int flow, struct hcomm_flow_op *op);
void app_flow_gone(unsigned int side, unsigned int flow);
struct sop *app_op(unsigned int sender, unsigned int flow, u64 seq);
void app_finished(void);

/* Where a flow of the core sits. */
static inline unsigned int flow_index(const struct hcomm_flow *f)
{
	return f->src % 10;
}

static inline unsigned int flow_side(const struct hcomm_flow *f)
{
	return f->src / 10;
}

#endif /* HCOMM_SIM_H */
