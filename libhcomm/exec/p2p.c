// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A send is a series of messages to one peer; the first is sent even when
 * there is no data, so that the two calls always meet. What is sent to
 * oneself is copied when both ends are there.
 */
#include <string.h>

#include "exec/comm.h"
#include "exec/mail.h"
#include "exec/p2p.h"

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static enum hcomm_run run_send(struct hcommComm *comm, struct hcomm_p2p *p2p,
			       struct hcomm_cond *cond)
{
	struct hcomm_mail_head *head;
	size_t now;
	int out;

	do {
		if (hcomm_mail_room(comm, p2p->peer, cond) ||
		    hcomm_mail_open(comm, p2p->peer, &out, &head, cond))
			return HCOMM_RUN_BLOCKED;
		now = min_size(p2p->bytes - p2p->at, comm->layout.message);
		*head = (struct hcomm_mail_head) {
			.kind = HCOMM_MAIL_SEND, .signature = p2p->type,
			.op = p2p->number, .chunk = p2p->at,
			.total = p2p->bytes, .bytes = (uint32_t)now,
		};
		if (now)
			memcpy(hcomm_mail_payload(head), p2p->src + p2p->at,
			       now);
		if (hcomm_mail_send(comm, p2p->peer, out, head))
			return HCOMM_RUN_FAILED;
		p2p->at += now;
	} while (p2p->at < p2p->bytes);
	return HCOMM_RUN_DONE;
}

static enum hcomm_run refuse(struct hcommComm *comm,
			     const struct hcomm_p2p *p2p,
			     const struct hcomm_mail_head *head)
{
	if (head->kind != HCOMM_MAIL_SEND)
		hcomm_comm_fail(comm, HCOMM_MISMATCH, p2p->peer, false,
			"rank %d is in collective operation %llu, rank %d in "
			"hcommRecv(): make the calls in the same order",
			p2p->peer, (unsigned long long)head->op, comm->rank);
	else
		hcomm_comm_fail(comm, HCOMM_MISMATCH, p2p->peer, false,
			"rank %d's hcommSend() number %llu has %llu bytes, this "
			"hcommRecv() number %llu has %zu", p2p->peer,
			(unsigned long long)head->op,
			(unsigned long long)head->total,
			(unsigned long long)p2p->number, p2p->bytes);
	return HCOMM_RUN_FAILED;
}

static enum hcomm_run run_recv(struct hcommComm *comm, struct hcomm_p2p *p2p,
			       struct hcomm_cond *cond)
{
	const struct hcomm_mail_head *head;
	size_t now;

	do {
		if (hcomm_mail_look(comm, p2p->peer, &head, cond))
			return HCOMM_RUN_BLOCKED;
		now = min_size(p2p->bytes - p2p->at, comm->layout.message);
		if (head->kind != HCOMM_MAIL_SEND || head->op != p2p->number ||
		    head->total != p2p->bytes || head->chunk != p2p->at ||
		    head->bytes != now)
			return refuse(comm, p2p, head);
		if (now)
			memcpy(p2p->dst + p2p->at, hcomm_mail_payload(head),
			       now);
		if (hcomm_mail_take(comm, p2p->peer))
			return HCOMM_RUN_FAILED;
		p2p->at += now;
	} while (p2p->at < p2p->bytes);
	return HCOMM_RUN_DONE;
}

/* Finds the receive that a send to oneself belongs to. */
static enum hcomm_run run_self(struct hcommComm *comm, struct hcomm_p2p *all,
			       int nr, struct hcomm_p2p *p2p)
{
	struct hcomm_p2p *other = NULL;
	int i;

	for (i = 0; i < nr; i++) {
		other = &all[i];
		if (other->peer == comm->rank && !other->done &&
		    other->send != p2p->send)
			break;
	}
	if (!other || i == nr || other->bytes != p2p->bytes) {
		hcomm_comm_fail(comm, HCOMM_MISMATCH, comm->rank, false,
			"a send of rank %d to itself has no receive of the "
			"same size in its group of calls", comm->rank);
		return HCOMM_RUN_FAILED;
	}
	if (p2p->bytes)
		memmove(p2p->send ? other->dst : p2p->dst,
			p2p->send ? p2p->src : other->src, p2p->bytes);
	other->done = true;
	return HCOMM_RUN_DONE;
}

static void start(struct hcommComm *comm, struct hcomm_p2p *p2p)
{
	struct hcomm_rank_state *peer = hcomm_rank(comm, p2p->peer);

	p2p->started = true;
	if (p2p->peer != comm->rank)
		p2p->number = p2p->send ? ++peer->sends : ++peer->recvs;
	comm->call = (struct hcomm_call) {
		.name = p2p->send ? "Send" : "Recv", .op = p2p->number,
		.count = p2p->bytes / hcommTypeSize(p2p->type),
		.type = p2p->type, .redop = -1, .root = p2p->peer,
	};
}

/* An earlier one between the same two, in the same direction, is not done. */
static bool is_behind(const struct hcomm_p2p *all, int index)
{
	int i;

	for (i = 0; i < index; i++)
		if (!all[i].done && all[i].peer == all[index].peer &&
		    all[i].send == all[index].send)
			return true;
	return false;
}

static enum hcomm_run run_one(struct hcommComm *comm, struct hcomm_p2p *all,
			      int nr, struct hcomm_p2p *p2p,
			      struct hcomm_cond *cond)
{
	if (!p2p->started)
		start(comm, p2p);
	if (p2p->peer == comm->rank)
		return run_self(comm, all, nr, p2p);
	return p2p->send ? run_send(comm, p2p, cond) :
			   run_recv(comm, p2p, cond);
}

hcommResult_t hcomm_p2p_run_all(struct hcommComm *comm, struct hcomm_p2p *p2p,
				int nr, struct hcomm_cond *conds)
{
	hcommResult_t res;
	int i, blocked, first = 0;

	do {
		blocked = 0;
		for (i = first; i < nr; i++) {
			if (p2p[i].done || is_behind(p2p + first, i - first))
				continue;
			switch (run_one(comm, p2p, nr, &p2p[i],
					&conds[blocked])) {
			case HCOMM_RUN_DONE:
				p2p[i].done = true;
				break;
			case HCOMM_RUN_BLOCKED:
				blocked++;
				break;
			case HCOMM_RUN_FAILED:
				return hcomm_comm_failed(comm);
			}
		}
		while (first < nr && p2p[first].done)
			first++;
		if (blocked) {
			res = hcomm_wait(comm, conds, blocked);
			if (res)
				return res;
		}
	} while (first < nr);
	return HCOMM_SUCCESS;
}
