// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The executor of collectives. Small ones inside one instance need one phase:
 * every rank puts its data into its op slot and reads the others'. Large ones
 * go chunk by chunk, as schedule/split.c divides them:
 *
 *   prepare	copy the chunk into staging if the buffer is not in the heap;
 *		flag "arrive"
 *   parts	reduce what the local ranks have for segments that become final
 *		elsewhere, send it there
 *   values	final segments: combine with the parts of other instances,
 *		store to the local receivers, send to the other instances
 *   spread	segments that became final elsewhere: store to local receivers
 *   leave	flag "done"; wait for everybody's, copy out of staging
 *
 * Chunk c + 1 is prepared and its parts are sent between the values and the
 * spread of chunk c, so that one is on the wire while the other is worked on;
 * a pair of ranks then takes messages in the order they are sent.
 *
 * A staging slot is written again two chunks later, when all local ranks have
 * flagged "done" for the one before. A rank that needs no staging flags all
 * chunks as arrived at once and waits for the last "done" only. Nobody stores
 * to a receiver whose "arrive" is missing.
 *
 * Small messages are not split: with several instances they take the same way
 * as large ones, in one chunk.
 */
#include <string.h>

#include "exec/coll.h"
#include "exec/comm.h"
#include "exec/mail.h"
#include "exec/mismatch.h"

static bool all_to_all(enum hcomm_coll_kind kind)
{
	return kind != HCOMM_COLL_BROADCAST && kind != HCOMM_COLL_REDUCE;
}

static bool contributes(const struct hcommComm *comm,
			const struct hcomm_coll *coll)
{
	return coll->kind != HCOMM_COLL_BROADCAST || coll->root == comm->rank;
}

static bool receives(const struct hcommComm *comm,
		     const struct hcomm_coll *coll)
{
	return coll->kind != HCOMM_COLL_REDUCE || coll->root == comm->rank;
}

static size_t src_bytes(const struct hcommComm *comm,
			const struct hcomm_coll *coll)
{
	size_t blocks = coll->kind == HCOMM_COLL_REDUCESCATTER ? comm->n : 1;

	return blocks * coll->count * hcommTypeSize(coll->type);
}

static size_t dst_bytes(const struct hcommComm *comm,
			const struct hcomm_coll *coll)
{
	size_t blocks = coll->kind == HCOMM_COLL_ALLGATHER ? comm->n : 1;

	return blocks * coll->count * hcommTypeSize(coll->type);
}

/* Its offset in the heap, or REF_STAGED. */
static uint64_t ref_of(const struct hcommComm *comm, const void *ptr,
		       size_t bytes)
{
	const char *at = ptr;

	if (at < comm->heap || at >= comm->heap + comm->layout.bytes ||
	    bytes > comm->layout.bytes - (size_t)(at - comm->heap))
		return HCOMM_REF_STAGED;
	return (uint64_t)(at - comm->heap);
}

static bool ref_valid(const struct hcommComm *comm, uint64_t ref, size_t bytes)
{
	return ref == HCOMM_REF_STAGED ||
	       (ref <= comm->layout.bytes && bytes <= comm->layout.bytes - ref);
}

static struct hcomm_slot *slot_of(struct hcommComm *comm, int rank)
{
	return &hcomm_rank(comm, rank)->ctrl->slot[comm->op % HCOMM_SLOTS];
}

/* Blocked until @word reaches @value on every local rank. */
static enum hcomm_run wait_flags(struct hcommComm *comm, size_t offset,
				 uint64_t value, struct hcomm_cond *cond)
{
	int i;

	for (i = 0; i < comm->nlocal; i++) {
		struct hcomm_rank_state *peer = hcomm_rank(comm,
							   comm->locals[i]);

		*cond = (struct hcomm_cond) {
			.kind = HCOMM_COND_FLAG, .rank = peer->rank,
			.word = (void *)((char *)peer->ctrl + offset),
			.value = value,
		};
		if (!hcomm_cond_met(comm, cond))
			return HCOMM_RUN_BLOCKED;
	}
	return HCOMM_RUN_DONE;
}

static enum hcomm_run wait_arrive(struct hcommComm *comm,
				  const struct hcomm_coll *coll, size_t chunk,
				  struct hcomm_cond *cond)
{
	return wait_flags(comm, offsetof(struct hcomm_ctrl, arrive),
			  coll->base + chunk + 1, cond);
}

/* ---------------------------------------------------------- publishing */

void hcomm_coll_start(struct hcommComm *comm, struct hcomm_coll *coll)
{
	/* Any thread may read it in hcommCommGetInfo(). */
	__atomic_store_n(&comm->op, comm->op + 1, __ATOMIC_RELAXED);
	comm->call = (struct hcomm_call) {
		.name = hcomm_coll_names[coll->kind], .op = comm->op,
		.count = coll->count, .type = coll->type,
		.redop = coll->kind == HCOMM_COLL_BROADCAST ||
			 coll->kind == HCOMM_COLL_ALLGATHER ? -1 :
			 (int)coll->redop,
		.root = coll->root,
	};
	coll->stage = HCOMM_STAGE_PUBLISH;
}

/* The slot is free when every local rank has finished the op 8 back. */
static enum hcomm_run wait_slot(struct hcommComm *comm, struct hcomm_cond *cond)
{
	if (comm->op < HCOMM_SLOTS || comm->op < comm->synced + HCOMM_SLOTS)
		return HCOMM_RUN_DONE;
	return wait_flags(comm, offsetof(struct hcomm_ctrl, consumed),
			  comm->op - HCOMM_SLOTS, cond);
}

static void fill_desc(struct hcommComm *comm, struct hcomm_coll *coll)
{
	struct hcomm_desc *desc = &comm->ctrl->desc[comm->op % HCOMM_SLOTS];

	*desc = (struct hcomm_desc) {
		.op = comm->op, .count = coll->count, .kind = coll->kind,
		.type = coll->type, .redop = coll->redop, .root = coll->root,
		.heap_hash = comm->symheap.hash,
		.heap_calls = comm->symheap.calls,
		.heap_align = comm->symheap.last_align_log2,
		.heap_size = comm->symheap.last_size,
		.history = comm->history,
	};
	comm->history = hcomm_history(comm, desc);
	coll->signature = hcomm_signature(comm->history, desc);
}

static uint8_t *flat_data(struct hcommComm *comm,
			  const struct hcomm_coll *coll, int rank)
{
	if (src_bytes(comm, coll) <= HCOMM_SLOT_DATA)
		return slot_of(comm, rank)->data;
	return hcomm_rank(comm, rank)->ctrl->wide[comm->op % HCOMM_SLOTS];
}

static enum hcomm_run publish(struct hcommComm *comm, struct hcomm_coll *coll,
			      struct hcomm_cond *cond)
{
	struct hcomm_slot *slot = slot_of(comm, comm->rank);
	size_t bytes = src_bytes(comm, coll);

	if (wait_slot(comm, cond))
		return HCOMM_RUN_BLOCKED;
	fill_desc(comm, coll);
	coll->flat = !coll->count ||
		     (comm->shape.ninst == 1 && bytes <= HCOMM_WIDE_BYTES);
	if (coll->flat) {
		if (bytes && contributes(comm, coll))
			memcpy(flat_data(comm, coll, comm->rank), coll->src,
			       bytes);
		coll->stage = HCOMM_STAGE_FLAT;
	} else {
		slot->ref.src = contributes(comm, coll) ?
				ref_of(comm, coll->src, bytes) : 0;
		slot->ref.dst = receives(comm, coll) ?
				ref_of(comm, coll->dst,
				       dst_bytes(comm, coll)) : 0;
		coll->src_staged = slot->ref.src == HCOMM_REF_STAGED;
		coll->dst_staged = slot->ref.dst == HCOMM_REF_STAGED;
		coll->stage = HCOMM_STAGE_MEET;
	}
	hcomm_publish(&slot->word, (uint64_t)coll->signature << 32 |
				   (uint32_t)comm->op);
	hcomm_wake_all(comm);
	return HCOMM_RUN_DONE;
}

/* Blocked until @rank has published this op; failed if it made another call. */
static enum hcomm_run meet_rank(struct hcommComm *comm,
				const struct hcomm_coll *coll, int rank,
				struct hcomm_cond *cond)
{
	*cond = (struct hcomm_cond) {
		.kind = HCOMM_COND_SLOT, .rank = rank,
		.word = &slot_of(comm, rank)->word, .value = comm->op,
	};
	if (!hcomm_cond_met(comm, cond))
		return HCOMM_RUN_BLOCKED;
	if (__atomic_load_n(cond->word, __ATOMIC_ACQUIRE) >> 32 !=
	    coll->signature) {
		hcomm_mismatch_fail(comm, rank);
		return HCOMM_RUN_FAILED;
	}
	return HCOMM_RUN_DONE;
}

static enum hcomm_run meet_locals(struct hcommComm *comm,
				  const struct hcomm_coll *coll,
				  struct hcomm_cond *cond)
{
	enum hcomm_run run;
	int i;

	for (i = 0; i < comm->nlocal; i++) {
		run = meet_rank(comm, coll, comm->locals[i], cond);
		if (run)
			return run;
	}
	return HCOMM_RUN_DONE;
}

/* ---------------------------------------------------------------- small */

static void flat_reduce(struct hcommComm *comm, struct hcomm_coll *coll)
{
	size_t skip = coll->kind == HCOMM_COLL_REDUCESCATTER ?
		      comm->rank * coll->count * hcommTypeSize(coll->type) : 0;
	void *dst = coll->dst;
	int i;

	for (i = 0; i < comm->nlocal; i++)
		comm->srcs[i] = flat_data(comm, coll, comm->locals[i]) + skip;
	hcomm_reduce(comm->scratch, &dst, 1, comm->srcs, comm->nlocal,
		     coll->count, coll->type, coll->redop,
		     coll->redop == HCOMM_AVG ? comm->n : 0);
}

static enum hcomm_run run_flat(struct hcommComm *comm, struct hcomm_coll *coll,
			       struct hcomm_cond *cond)
{
	size_t bytes = src_bytes(comm, coll);
	enum hcomm_run run = HCOMM_RUN_DONE;
	int i;

	if (coll->kind == HCOMM_COLL_BROADCAST &&
	    comm->shape.inst_of[coll->root] == comm->inst)
		run = meet_rank(comm, coll, coll->root, cond);
	else if (all_to_all(coll->kind) || coll->root == comm->rank)
		run = meet_locals(comm, coll, cond);
	if (run)
		return run;

	coll->stage = HCOMM_STAGE_END;
	if (!coll->count || !receives(comm, coll))
		return HCOMM_RUN_DONE;
	switch (coll->kind) {
	case HCOMM_COLL_BROADCAST:
		memcpy(coll->dst, flat_data(comm, coll, coll->root), bytes);
		break;
	case HCOMM_COLL_ALLGATHER:
		for (i = 0; i < comm->nlocal; i++)
			memcpy(coll->dst + (size_t)comm->locals[i] * bytes,
			       flat_data(comm, coll, comm->locals[i]), bytes);
		break;
	default:
		flat_reduce(comm, coll);
	}
	return HCOMM_RUN_DONE;
}

/* --------------------------------------------------------------- chunks */

static enum hcomm_run meet(struct hcommComm *comm, struct hcomm_coll *coll,
			   struct hcomm_cond *cond)
{
	struct hcomm_limits limits = {
		.stage = comm->layout.stage, .message = comm->layout.message,
		.whole = comm->shape.ninst == 1,
	};
	enum hcomm_run run = meet_locals(comm, coll, cond);
	int i;

	if (run)
		return run;
	for (i = 0; i < comm->nlocal; i++) {
		struct hcomm_slot *slot = slot_of(comm, comm->locals[i]);

		if (!ref_valid(comm, slot->ref.src, src_bytes(comm, coll)) ||
		    !ref_valid(comm, slot->ref.dst, dst_bytes(comm, coll))) {
			hcomm_comm_fail(comm, HCOMM_INTERNAL_ERROR,
					comm->locals[i], false,
					"rank %d named a buffer outside its heap",
					comm->locals[i]);
			return HCOMM_RUN_FAILED;
		}
		if (slot->ref.src == HCOMM_REF_STAGED ||
		    slot->ref.dst == HCOMM_REF_STAGED)
			limits.whole = false;
	}
	hcomm_split_init(&coll->split, &comm->shape,
			 coll->kind >= HCOMM_COLL_BARRIER ?
			 HCOMM_COLL_ALLREDUCE : coll->kind, coll->root,
			 coll->count, hcommTypeSize(coll->type), &limits);
	coll->base = comm->chunks;
	coll->chunk = 0;
	coll->ahead = 0;
	coll->stage = HCOMM_STAGE_PREPARE;
	return HCOMM_RUN_DONE;
}

/*
 * Element @start of chunk @chunk in block @block of a buffer of @rank: in the
 * buffer, or where it is staged.
 */
static char *piece_at(struct hcommComm *comm, const struct hcomm_coll *coll,
		      int rank, bool source, size_t chunk, int block,
		      size_t start)
{
	const struct hcomm_split *split = &coll->split;
	struct hcomm_slot *slot = slot_of(comm, rank);
	uint64_t ref = source ? slot->ref.src : slot->ref.dst;
	char *heap = hcomm_rank(comm, rank)->heap;
	size_t stage = source ? comm->layout.stage_in : comm->layout.stage_out;

	if (ref == HCOMM_REF_STAGED)
		return heap + stage +
		       chunk % HCOMM_STAGE_SLOTS * comm->layout.stage +
		       (block * split->piece + start) * split->elem;
	return heap + ref + (block * split->count + chunk * split->piece +
			     start) * split->elem;
}

/* Copies a chunk of my buffer between it and its staging slot. */
static void stage_chunk(struct hcommComm *comm, struct hcomm_coll *coll,
			bool in, size_t chunk)
{
	const struct hcomm_split *split = &coll->split;
	size_t bytes = hcomm_split_chunk(split, chunk) * split->elem;
	int blocks = in ? split->in_blocks : split->out_blocks;
	int block;

	for (block = 0; block < blocks; block++) {
		size_t at = (block * split->count + chunk * split->piece) *
			    split->elem;
		char *slot = piece_at(comm, coll, comm->rank, in, chunk, block,
				      0);

		if (in)
			memcpy(slot, coll->src + at, bytes);
		else
			memcpy(coll->dst + at, slot, bytes);
	}
}

static enum hcomm_run prepare(struct hcommComm *comm, struct hcomm_coll *coll)
{
	const struct hcomm_split *split = &coll->split;
	bool staged = coll->src_staged || coll->dst_staged;

	if (coll->src_staged)
		stage_chunk(comm, coll, true, coll->ahead);
	if (staged || !coll->ahead) {
		hcomm_publish(&comm->ctrl->arrive.value, coll->base +
			      (staged ? coll->ahead + 1 : split->chunks));
		hcomm_wake_all(comm);
	}
	coll->seg = 0;
	coll->stage = HCOMM_STAGE_PARTS;
	return HCOMM_RUN_DONE;
}

/* A segment of a chunk, and what I have to do with it. */
struct piece {
	int seg;
	int block;
	size_t start;
	size_t length;
	int final;		/* instance */
	int source;		/* -1: all ranks */
	int sink;		/* -1: all ranks */
	bool mine;		/* I handle it at my instance */
};

static void get_piece(struct hcommComm *comm, const struct hcomm_coll *coll,
		      size_t chunk, int seg, struct piece *piece)
{
	const struct hcomm_split *split = &coll->split;

	piece->seg = seg;
	piece->length = hcomm_split_segment(split, chunk, seg, &piece->block,
					    &piece->start);
	piece->final = hcomm_split_final(split, &comm->shape, seg);
	piece->source = hcomm_split_source(split, seg);
	piece->sink = hcomm_split_sink(split, seg);
	piece->mine = piece->length &&
		      hcomm_split_handler(split, &comm->shape, seg,
					  comm->inst) == comm->rank;
}

static int in_block(const struct hcomm_coll *coll, const struct piece *piece)
{
	return coll->split.in_blocks > 1 ? piece->block : 0;
}

static int out_block(const struct hcomm_coll *coll, const struct piece *piece)
{
	return coll->split.out_blocks > 1 ? piece->block : 0;
}

/* Adds what the local ranks have for @piece to comm->srcs. */
static int add_local_sources(struct hcommComm *comm,
			     const struct hcomm_coll *coll, size_t chunk,
			     const struct piece *piece, int nr)
{
	int i;

	for (i = 0; i < comm->nlocal; i++)
		if (piece->source < 0 || piece->source == comm->locals[i])
			comm->srcs[nr++] = piece_at(comm, coll, comm->locals[i],
						    true, chunk,
						    in_block(coll, piece),
						    piece->start);
	return nr;
}

static int add_local_sinks(struct hcommComm *comm,
			   const struct hcomm_coll *coll, size_t chunk,
			   const struct piece *piece, int nr)
{
	int i;

	for (i = 0; i < comm->nlocal; i++)
		if (piece->sink < 0 || piece->sink == comm->locals[i])
			comm->dsts[nr++] = piece_at(comm, coll, comm->locals[i],
						    false, chunk,
						    out_block(coll, piece),
						    piece->start);
	return nr;
}

static void copy_to_all(struct hcommComm *comm, const void *src, int ndst,
			size_t bytes)
{
	int i;

	for (i = 0; i < ndst; i++)
		if (comm->dsts[i] != src)
			memcpy(comm->dsts[i], src, bytes);
}

static void fill_head(struct hcommComm *comm, const struct hcomm_coll *coll,
		      struct hcomm_mail_head *head, enum hcomm_mail_kind kind,
		      size_t chunk, const struct piece *piece)
{
	*head = (struct hcomm_mail_head) {
		.kind = kind, .signature = coll->signature, .op = comm->op,
		.chunk = chunk, .seg = (uint32_t)piece->seg,
		.bytes = (uint32_t)(piece->length * coll->split.elem),
	};
}

static int handler_at(struct hcommComm *comm, const struct hcomm_coll *coll,
		      int seg, int inst)
{
	return hcomm_split_handler(&coll->split, &comm->shape, seg, inst);
}

/* The message that @peer sends about @piece next; anything else is a fault. */
static enum hcomm_run expect(struct hcommComm *comm,
			     const struct hcomm_coll *coll, int peer,
			     enum hcomm_mail_kind kind, size_t chunk,
			     const struct piece *piece,
			     const struct hcomm_mail_head **head,
			     struct hcomm_cond *cond)
{
	const struct hcomm_mail_head *got;

	if (hcomm_mail_look(comm, peer, head, cond))
		return HCOMM_RUN_BLOCKED;
	got = *head;
	if (got->kind == kind && got->signature == coll->signature &&
	    got->op == comm->op && got->chunk == chunk &&
	    got->seg == (uint32_t)piece->seg &&
	    got->bytes == piece->length * coll->split.elem)
		return HCOMM_RUN_DONE;
	if (got->kind == HCOMM_MAIL_SEND)
		hcomm_comm_fail(comm, HCOMM_MISMATCH, peer, false,
			"rank %d's hcommSend() number %llu has no matching "
			"hcommRecv() on rank %d before this call", peer,
			(unsigned long long)got->op, comm->rank);
	else
		hcomm_comm_fail(comm, HCOMM_MISMATCH, peer, false,
			"rank %d is in operation %llu and calls it with other "
			"arguments, or another operation: make the same calls "
			"in the same order on every rank", peer,
			(unsigned long long)got->op);
	return HCOMM_RUN_FAILED;
}

/* One part: reduced here, final elsewhere. */
static enum hcomm_run send_part(struct hcommComm *comm, struct hcomm_coll *coll,
				const struct piece *piece,
				struct hcomm_cond *cond)
{
	int peer = handler_at(comm, coll, piece->seg, piece->final);
	struct hcomm_mail_head *head;
	void *payload;
	int nsrc, out;

	if (wait_arrive(comm, coll, coll->ahead, cond) ||
	    hcomm_mail_room(comm, peer, cond) ||
	    hcomm_mail_open(comm, peer, &out, &head, cond))
		return HCOMM_RUN_BLOCKED;
	nsrc = add_local_sources(comm, coll, coll->ahead, piece, 0);
	payload = hcomm_mail_payload(head);
	hcomm_reduce(comm->scratch, &payload, 1, comm->srcs, nsrc,
		     piece->length, coll->type, coll->redop, 0);
	fill_head(comm, coll, head, HCOMM_MAIL_PART, coll->ahead, piece);
	return hcomm_mail_send(comm, peer, out, head) ? HCOMM_RUN_FAILED :
							HCOMM_RUN_DONE;
}

static enum hcomm_run parts(struct hcommComm *comm, struct hcomm_coll *coll,
			    struct hcomm_cond *cond)
{
	struct piece piece;
	enum hcomm_run run;

	for (; coll->split.reduces && coll->seg < coll->split.nseg;
	     coll->seg++) {
		get_piece(comm, coll, coll->ahead, coll->seg, &piece);
		if (!piece.mine || piece.final == comm->inst)
			continue;
		run = send_part(comm, coll, &piece, cond);
		if (run)
			return run;
	}
	coll->seg = 0;
	coll->stage = coll->ahead++ ? HCOMM_STAGE_SPREAD : HCOMM_STAGE_VALUES;
	return HCOMM_RUN_DONE;
}

/* Blocked until all that other instances have for @piece can be read. */
static enum hcomm_run wait_parts(struct hcommComm *comm,
				 struct hcomm_coll *coll,
				 const struct piece *piece,
				 struct hcomm_cond *cond)
{
	const struct hcomm_mail_head *head;
	enum hcomm_run run;
	int k;

	for (k = 0; coll->split.reduces && k < comm->shape.ninst; k++) {
		if (k == comm->inst)
			continue;
		run = expect(comm, coll, handler_at(comm, coll, piece->seg, k),
			     HCOMM_MAIL_PART, coll->chunk, piece, &head, cond);
		if (run)
			return run;
	}
	return HCOMM_RUN_DONE;
}

/* Blocked until the value can be sent to all other instances. */
static enum hcomm_run wait_rooms(struct hcommComm *comm,
				 struct hcomm_coll *coll,
				 const struct piece *piece, int *out,
				 struct hcomm_mail_head **head,
				 struct hcomm_cond *cond)
{
	int peer = -1, k;

	*out = -1;
	if (piece->sink >= 0)
		return HCOMM_RUN_DONE;
	for (k = 0; k < comm->shape.ninst; k++) {
		if (k == comm->inst)
			continue;
		peer = handler_at(comm, coll, piece->seg, k);
		if (hcomm_mail_room(comm, peer, cond))
			return HCOMM_RUN_BLOCKED;
	}
	if (peer < 0)
		return HCOMM_RUN_DONE;
	return hcomm_mail_open(comm, peer, out, head, cond);
}

/* Sources in the order of the instances, mine among them. */
static int gather_sources(struct hcommComm *comm, struct hcomm_coll *coll,
			  const struct piece *piece)
{
	const struct hcomm_mail_head *head;
	struct hcomm_cond cond;
	int nr = 0, k;

	for (k = 0; k < comm->shape.ninst; k++) {
		if (k == comm->inst) {
			nr = add_local_sources(comm, coll, coll->chunk, piece,
					       nr);
		} else if (coll->split.reduces) {
			hcomm_mail_look(comm, handler_at(comm, coll, piece->seg,
							 k), &head, &cond);
			comm->srcs[nr++] = hcomm_mail_payload(head);
		}
	}
	return nr;
}

/* Gives the slots of the parts back and sends the value where it is needed. */
static enum hcomm_run deliver(struct hcommComm *comm, struct hcomm_coll *coll,
			      const struct piece *piece, int out,
			      struct hcomm_mail_head *head)
{
	int k, peer;

	if (out >= 0)
		fill_head(comm, coll, head, HCOMM_MAIL_VALUE, coll->chunk,
			  piece);
	for (k = 0; k < comm->shape.ninst; k++) {
		if (k == comm->inst)
			continue;
		peer = handler_at(comm, coll, piece->seg, k);
		if (coll->split.reduces && hcomm_mail_take(comm, peer))
			return HCOMM_RUN_FAILED;
		if (out >= 0 && hcomm_mail_send(comm, peer, out, head))
			return HCOMM_RUN_FAILED;
	}
	return HCOMM_RUN_DONE;
}

static enum hcomm_run make_value(struct hcommComm *comm,
				 struct hcomm_coll *coll,
				 const struct piece *piece,
				 struct hcomm_cond *cond)
{
	struct hcomm_mail_head *head = NULL;
	enum hcomm_run run;
	int nsrc, ndst, out;

	if (wait_arrive(comm, coll, coll->chunk, cond))
		return HCOMM_RUN_BLOCKED;
	run = wait_parts(comm, coll, piece, cond);
	if (run)
		return run;
	if (wait_rooms(comm, coll, piece, &out, &head, cond))
		return HCOMM_RUN_BLOCKED;

	nsrc = gather_sources(comm, coll, piece);
	ndst = add_local_sinks(comm, coll, coll->chunk, piece, 0);
	if (out >= 0)
		comm->dsts[ndst++] = hcomm_mail_payload(head);
	if (coll->split.reduces)
		hcomm_reduce(comm->scratch, comm->dsts, ndst, comm->srcs, nsrc,
			     piece->length, coll->type, coll->redop,
			     coll->redop == HCOMM_AVG ? comm->n : 0);
	else
		copy_to_all(comm, comm->srcs[0], ndst,
			    piece->length * coll->split.elem);
	return deliver(comm, coll, piece, out, head);
}

static enum hcomm_run values(struct hcommComm *comm, struct hcomm_coll *coll,
			     struct hcomm_cond *cond)
{
	struct piece piece;
	enum hcomm_run run;

	for (; coll->seg < coll->split.nseg; coll->seg++) {
		get_piece(comm, coll, coll->chunk, coll->seg, &piece);
		if (!piece.mine || piece.final != comm->inst)
			continue;
		run = make_value(comm, coll, &piece, cond);
		if (run)
			return run;
	}
	coll->seg = 0;
	coll->stage = coll->ahead < coll->split.chunks ? HCOMM_STAGE_PREPARE :
							 HCOMM_STAGE_SPREAD;
	return HCOMM_RUN_DONE;
}

static enum hcomm_run spread_piece(struct hcommComm *comm,
				   struct hcomm_coll *coll,
				   const struct piece *piece,
				   struct hcomm_cond *cond)
{
	int peer = handler_at(comm, coll, piece->seg, piece->final);
	const struct hcomm_mail_head *head;
	enum hcomm_run run;
	int ndst;

	if (wait_arrive(comm, coll, coll->chunk, cond))
		return HCOMM_RUN_BLOCKED;
	run = expect(comm, coll, peer, HCOMM_MAIL_VALUE, coll->chunk, piece,
		     &head, cond);
	if (run)
		return run;
	ndst = add_local_sinks(comm, coll, coll->chunk, piece, 0);
	copy_to_all(comm, hcomm_mail_payload(head), ndst,
		    piece->length * coll->split.elem);
	return hcomm_mail_take(comm, peer) ? HCOMM_RUN_FAILED : HCOMM_RUN_DONE;
}

static enum hcomm_run spread(struct hcommComm *comm, struct hcomm_coll *coll,
			     struct hcomm_cond *cond)
{
	struct piece piece;
	enum hcomm_run run;

	for (; coll->seg < coll->split.nseg; coll->seg++) {
		get_piece(comm, coll, coll->chunk, coll->seg, &piece);
		if (!piece.mine || piece.final == comm->inst || piece.sink >= 0)
			continue;
		run = spread_piece(comm, coll, &piece, cond);
		if (run)
			return run;
	}
	hcomm_publish(&comm->ctrl->done.value, coll->base + coll->chunk + 1);
	hcomm_wake_all(comm);
	coll->stage = HCOMM_STAGE_LEAVE;
	return HCOMM_RUN_DONE;
}

static enum hcomm_run leave(struct hcommComm *comm, struct hcomm_coll *coll,
			    struct hcomm_cond *cond)
{
	bool last = coll->chunk + 1 == coll->split.chunks;

	if ((last || coll->src_staged || coll->dst_staged) &&
	    wait_flags(comm, offsetof(struct hcomm_ctrl, done),
		       coll->base + coll->chunk + 1, cond))
		return HCOMM_RUN_BLOCKED;
	if (coll->dst_staged)
		stage_chunk(comm, coll, false, coll->chunk);
	coll->chunk++;
	coll->seg = 0;
	coll->stage = last ? HCOMM_STAGE_END : HCOMM_STAGE_VALUES;
	return HCOMM_RUN_DONE;
}

static void finish(struct hcommComm *comm, struct hcomm_coll *coll)
{
	if (!coll->flat)
		comm->chunks += coll->split.chunks;
	if (!coll->flat || all_to_all(coll->kind))
		comm->synced = comm->op;
	/* Without data the other instances were not met. */
	if (all_to_all(coll->kind) && (coll->count || comm->shape.ninst == 1))
		hcomm_symheap_settle(&comm->symheap);
	hcomm_publish(&comm->ctrl->consumed.value, comm->op);
	hcomm_wake_all(comm);
}

enum hcomm_run hcomm_coll_run(struct hcommComm *comm, struct hcomm_coll *coll,
			      struct hcomm_cond *cond)
{
	enum hcomm_run run = HCOMM_RUN_DONE;

	while (!run && coll->stage != HCOMM_STAGE_END) {
		switch (coll->stage) {
		case HCOMM_STAGE_PUBLISH:
			run = publish(comm, coll, cond);
			break;
		case HCOMM_STAGE_FLAT:
			run = run_flat(comm, coll, cond);
			break;
		case HCOMM_STAGE_MEET:
			run = meet(comm, coll, cond);
			break;
		case HCOMM_STAGE_PREPARE:
			run = prepare(comm, coll);
			break;
		case HCOMM_STAGE_PARTS:
			run = parts(comm, coll, cond);
			break;
		case HCOMM_STAGE_VALUES:
			run = values(comm, coll, cond);
			break;
		case HCOMM_STAGE_SPREAD:
			run = spread(comm, coll, cond);
			break;
		case HCOMM_STAGE_LEAVE:
			run = leave(comm, coll, cond);
			break;
		case HCOMM_STAGE_END:
			break;
		}
	}
	if (!run)
		finish(comm, coll);
	return run;
}
