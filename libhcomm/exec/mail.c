// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Message m of a pair lies in landing slot m % HCOMM_MAIL_SLOTS of the
 * receiver. The sender counts what it has sent, the receiver what it has
 * taken and says so every second message; both counts only grow. Inside an
 * instance the counts are flags in the heaps, between instances semaphores,
 * and the data goes before the count in the same operation.
 */
#include "exec/comm.h"
#include "exec/mail.h"

#define CREDIT_BATCH	2

static uint64_t *flag(char *heap, size_t array, int index)
{
	return (uint64_t *)(heap + hcomm_layout_flag(array, (uint32_t)index));
}

enum hcomm_run hcomm_mail_room(struct hcommComm *comm, int peer,
			       struct hcomm_cond *cond)
{
	struct hcomm_rank_state *to = hcomm_rank(comm, peer);
	const struct hcomm_transport *transport = comm->transport;

	if (to->mail_sent < HCOMM_MAIL_SLOTS)
		return HCOMM_RUN_DONE;
	*cond = (struct hcomm_cond) {
		.kind = HCOMM_COND_FLAG, .rank = peer,
		.value = to->mail_sent - HCOMM_MAIL_SLOTS + 1,
	};
	if (to->local) {
		cond->word = flag(comm->heap, comm->layout.head, peer);
	} else {
		cond->kind = HCOMM_COND_SEM;
		cond->sem = transport->credit_sem(comm, peer);
		cond->word = transport->semaphore(comm, cond->sem);
	}
	return hcomm_cond_met(comm, cond) ? HCOMM_RUN_DONE : HCOMM_RUN_BLOCKED;
}

static struct hcomm_mail_head *landing(struct hcommComm *comm, char *heap,
				       int source, uint64_t index)
{
	return (void *)(heap + hcomm_layout_mail(&comm->layout, source, index));
}

static size_t out_offset(const struct hcommComm *comm, int out)
{
	return comm->layout.out + (size_t)out * comm->layout.mail_slot;
}

enum hcomm_run hcomm_mail_open(struct hcommComm *comm, int peer, int *out,
			       struct hcomm_mail_head **head,
			       struct hcomm_cond *cond)
{
	struct hcomm_rank_state *to = hcomm_rank(comm, peer);
	int i;

	*out = -1;
	if (to->local) {
		*head = landing(comm, to->heap, comm->rank, to->mail_sent);
		return HCOMM_RUN_DONE;
	}
	*cond = (struct hcomm_cond) {
		.kind = HCOMM_COND_DEVICE, .rank = peer,
	};
	comm->transport->poll(comm);
	for (i = 0; i < HCOMM_OUT_SLOTS; i++) {
		if (comm->out[i].pending)
			continue;
		*out = i;
		*head = (void *)(comm->heap + out_offset(comm, i));
		return HCOMM_RUN_DONE;
	}
	cond->value = comm->completions + 1;
	return HCOMM_RUN_BLOCKED;
}

hcommResult_t hcomm_mail_send(struct hcommComm *comm, int peer, int out,
			      const struct hcomm_mail_head *head)
{
	struct hcomm_rank_state *to = hcomm_rank(comm, peer);
	struct hcomm_remote remote;
	hcommResult_t res;

	if (to->local) {
		to->mail_sent++;
		hcomm_publish(flag(to->heap, comm->layout.tail, comm->rank),
			      to->mail_sent);
		hcomm_wake(comm, peer);
		return HCOMM_SUCCESS;
	}
	remote = (struct hcomm_remote) {
		.kind = HCOMM_REMOTE_PUT, .rank = peer,
		.object = HCOMM_OBJECT_HEAP, .local = out_offset(comm, out),
		.remote = hcomm_layout_mail(&comm->layout, comm->rank,
					    to->mail_sent),
		.bytes = sizeof(*head) + head->bytes, .signal = true,
		.sem = comm->transport->data_sem(comm, comm->rank), .delta = 1,
		.cookie = HCOMM_COOKIE_OUT(out),
	};
	comm->out[out].pending++;
	res = comm->transport->post(comm, &remote);
	if (res) {
		comm->out[out].pending--;
		return res;
	}
	to->mail_sent++;
	return HCOMM_SUCCESS;
}

enum hcomm_run hcomm_mail_look(struct hcommComm *comm, int peer,
			       const struct hcomm_mail_head **head,
			       struct hcomm_cond *cond)
{
	struct hcomm_rank_state *from = hcomm_rank(comm, peer);
	const struct hcomm_transport *transport = comm->transport;

	*cond = (struct hcomm_cond) {
		.kind = HCOMM_COND_FLAG, .rank = peer,
		.value = from->mail_taken + 1,
	};
	if (from->local) {
		cond->word = flag(comm->heap, comm->layout.tail, peer);
	} else {
		cond->kind = HCOMM_COND_SEM;
		cond->sem = transport->data_sem(comm, peer);
		cond->word = transport->semaphore(comm, cond->sem);
	}
	*head = landing(comm, comm->heap, peer, from->mail_taken);
	return hcomm_cond_met(comm, cond) ? HCOMM_RUN_DONE : HCOMM_RUN_BLOCKED;
}

hcommResult_t hcomm_mail_take(struct hcommComm *comm, int peer)
{
	struct hcomm_rank_state *from = hcomm_rank(comm, peer);
	struct hcomm_remote remote;
	uint64_t owed;

	from->mail_taken++;
	owed = from->mail_taken - from->mail_credited;
	if (owed < CREDIT_BATCH)
		return HCOMM_SUCCESS;
	from->mail_credited = from->mail_taken;
	if (from->local) {
		hcomm_publish(flag(from->heap, comm->layout.head, comm->rank),
			      from->mail_taken);
		hcomm_wake(comm, peer);
		return HCOMM_SUCCESS;
	}
	remote = (struct hcomm_remote) {
		.kind = HCOMM_REMOTE_SIGNAL, .rank = peer, .signal = true,
		.sem = comm->transport->credit_sem(comm, comm->rank),
		.delta = (uint32_t)owed, .cookie = HCOMM_COOKIE_NONE,
	};
	return comm->transport->post(comm, &remote);
}
