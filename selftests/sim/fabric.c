// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Connections and the packets on them
 *
 * A connection is two queue pairs in each direction.  A packet lands when the
 * schedule says so, in order within its queue pair; it lands as long as the
 * receiving queue pair is not in error, whatever became of the sender: that is
 * what makes a lost path dangerous.  A queue pair that goes into error drops
 * what it had not sent, an arbitrary tail.
 */
#include "sim.h"

static struct pkt *pkt_pool;

struct pkt *pkt_new(enum pkt_kind kind)
{
	struct pkt *p = pkt_pool;

	if (p) {
		pkt_pool = (struct pkt *)p->node.next;
	} else {
		p = malloc(sizeof(*p));
		if (!p)
			abort();
	}
	INIT_LIST_HEAD(&p->node);
	p->kind = kind;
	p->bytes = 0;
	p->again = false;
	return p;
}

void pkt_free(struct pkt *p)
{
	list_del_init(&p->node);
	p->node.next = (struct list_head *)pkt_pool;
	pkt_pool = p;
}

static void queue_drop(struct list_head *queue)
{
	while (!list_empty(queue))
		pkt_free(list_first_entry(queue, struct pkt, node));
}

void fabric_reset(void)
{
	unsigned int i, side, qp;

	for (i = 0; i < sim.nconns; i++)
		for (side = 0; side < 2; side++)
			for (qp = 0; qp < 2; qp++) {
				queue_drop(&sim.conn[i].side[side].sq[qp]);
				queue_drop(&sim.conn[i].side[side].cq[qp]);
			}
	sim.nconns = 0;
}

struct conn *conn_new(unsigned int path, u32 epoch)
{
	struct conn *c;
	unsigned int side, qp;

	if (sim.nconns == SIM_CONNS)
		return NULL;
	c = &sim.conn[sim.nconns++];
	memset(c, 0, sizeof(*c));
	c->path = path;
	c->epoch = epoch;
	for (side = 0; side < 2; side++)
		for (qp = 0; qp < 2; qp++) {
			INIT_LIST_HEAD(&c->side[side].sq[qp]);
			INIT_LIST_HEAD(&c->side[side].cq[qp]);
		}
	return c;
}

/* The queue pairs of @side go into error. */
void conn_error(struct conn *c, unsigned int side)
{
	struct list_head *sq;
	struct pkt *p, *next;
	unsigned int qp;
	bool unsent;

	c->side[side].err = true;
	c->broken = true;
	for (qp = 0; qp < 2; qp++) {
		sq = &c->side[side].sq[qp];
		unsent = false;
		list_for_each_entry_safe(p, next, sq, node) {
			unsent |= one_in(4);
			if (unsent)
				pkt_free(p);
		}
		queue_drop(&c->side[!side].sq[qp]);
	}
}

static void send_completed(struct conn *c, unsigned int from, u32 bytes)
{
	struct npath *np = &sim.node[from].path[c->path];

	if (np->conn == c && !c->side[from].err)
		hcomm_sched_complete(&np->sched, bytes, sim.step * 1000);
}

/*
 * A software device that retransmits can take its own repetition for new: it
 * comes again, perhaps behind what was sent after it.
 */
static void land_again(struct conn *c, unsigned int from, unsigned int qp,
		       const struct pkt *p)
{
	struct list_head *at = &c->side[from].sq[qp];
	unsigned int behind = rnd(4);
	struct pkt *again;

	if (!sim.twice_left || !one_in(16))
		return;
	again = pkt_new(PKT_SEND);
	again->again = true;
	again->len = p->len;
	memcpy(again->msg, p->msg, p->len);
	while (behind-- && !list_is_last(at, &c->side[from].sq[qp]))
		at = at->next;
	list_add(&again->node, at);
	c->twice = true;
	sim.twice = true;
	sim.twice_left--;
	sim_stats.twice++;
}

bool conn_land(struct conn *c, unsigned int from, unsigned int qp)
{
	unsigned int to = !from;
	struct pkt *p;

	if (list_empty(&c->side[from].sq[qp]))
		return false;
	if (c->silent || !c->side[to].exists || c->side[to].err)
		return false;
	p = list_first_entry(&c->side[from].sq[qp], struct pkt, node);
	if (p->kind == PKT_WRITE) {
		app_write(p, from);
		pkt_free(p);
		return true;
	}
	if (!c->side[to].posted[qp]) {
		require(c->twice, "receiver not ready: path %u qp %u", c->path,
			qp);
		return false;
	}
	c->side[to].posted[qp]--;
	list_move_tail(&p->node, &c->side[to].cq[qp]);
	if (p->again)
		return true;
	send_completed(c, from, p->bytes);
	land_again(c, from, qp, p);
	return true;
}

/* The next step of connection set-up. */
bool conn_handshake(struct conn *c)
{
	switch (c->phase) {
	case CONN_REQ:
		if (c->silent)
			return false;
		node_request(c);
		return true;
	case CONN_REP:
		if (c->silent || c->side[0].err)
			return false;
		c->phase = CONN_RTU;
		node_established(c, 0);
		return true;
	case CONN_REJ:
		if (c->side[0].err)
			return false;
		node_lost(0, c->path);
		return true;
	case CONN_RTU:
		if (c->silent || c->side[1].err)
			return false;
		c->phase = CONN_OPEN;
		node_established(c, 1);
		return true;
	case CONN_OPEN:
		break;
	}
	return false;
}

/* The link under the connection fails. */
bool conn_cut(struct conn *c)
{
	if (c->broken)
		return false;
	c->broken = true;
	c->silent = one_in(3);
	trace("cut path %u epoch %u%s", c->path, c->epoch,
	      c->silent ? " silently" : "");
	return true;
}
