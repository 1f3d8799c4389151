/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What lies where in a rank's heap. The first part belongs to the library:
 * flags, op slots, staging, landing places of messages; the rest is the
 * user's. All ranks of a group agree on the heap's size and the number of
 * ranks, hence on every offset.
 *
 * Every line has one writer (its comment says who), so plain stores and one
 * exchange per publication are enough; user semaphores alone are added to
 * atomically. Peers of the same job can write anywhere here: what is read is
 * checked before it is used as an offset or a length.
 */
#ifndef HCOMM_LAYOUT_H
#define HCOMM_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCOMM_LINE		64
#define HCOMM_SLOTS		8	/* op slots, a power of two */
#define HCOMM_SLOT_DATA		56
#define HCOMM_WIDE_BYTES	4096
#define HCOMM_MAIL_SLOTS	8	/* messages on their way to a rank from one */
#define HCOMM_OUT_SLOTS		8	/* messages on their way from a rank */
#define HCOMM_STAGE_SLOTS	2	/* in each direction */

struct hcomm_flag {
	uint64_t value;
	char pad[HCOMM_LINE - sizeof(uint64_t)];
} __attribute__((aligned(HCOMM_LINE)));

/* A buffer of the publisher: an offset in its heap. */
#define HCOMM_REF_STAGED	UINT64_MAX

/*
 * Op number s of a group uses slot s % 8. @word is the number's low half in
 * the low half, and the signature; it is written last.
 */
struct hcomm_slot {
	uint64_t word;
	union {
		uint8_t data[HCOMM_SLOT_DATA];
		struct {
			uint64_t src;
			uint64_t dst;
		} ref;
	};
} __attribute__((aligned(HCOMM_LINE)));

/* What the op in the slot is, read only to explain a mismatch. */
struct hcomm_desc {
	uint64_t op;
	uint64_t count;
	uint32_t kind;
	uint32_t type;
	uint32_t redop;
	int32_t root;
	uint64_t heap_hash;
	uint32_t heap_calls;
	uint32_t heap_align;
	uint64_t heap_size;
	uint64_t history;	/* of the calls before */
} __attribute__((aligned(HCOMM_LINE)));

struct hcomm_abort_line {
	uint32_t set;		/* 1 once the rest is valid */
	int32_t result;		/* hcommResult_t */
	uint32_t reporter;
	uint32_t culprit;
	uint64_t op;
	char pad[40];
} __attribute__((aligned(HCOMM_LINE)));

struct hcomm_ctrl {
	/* Owner. */
	uint32_t magic;
	uint32_t rank;
	uint32_t left;		/* 1: the rank has destroyed its group */
	uint32_t waits_for;	/* 1 + the rank that it waits for now, or 0 */
	uint32_t pad0[12];
	/* Owner sets 1 before it sleeps; who wakes it sets 0. */
	uint32_t sleeping __attribute__((aligned(HCOMM_LINE)));
	/* The first local rank to fail claims it, then fills the line. */
	uint32_t abort_claim __attribute__((aligned(HCOMM_LINE)));
	struct hcomm_abort_line abort;
	struct hcomm_flag arrive;	/* owner: chunks that may be read */
	struct hcomm_flag done;		/* owner: chunks it is through with */
	struct hcomm_flag consumed;	/* owner: last op it has finished */
	struct hcomm_slot slot[HCOMM_SLOTS];
	struct hcomm_desc desc[HCOMM_SLOTS];
	uint8_t wide[HCOMM_SLOTS][HCOMM_WIDE_BYTES];
} __attribute__((aligned(HCOMM_LINE)));

#define HCOMM_CTRL_MAGIC	0x68634331U

/* In front of a message's payload, in its landing slot. */
struct hcomm_mail_head {
	uint32_t kind;		/* HCOMM_MAIL_* */
	uint32_t signature;	/* of the collective; type for point to point */
	uint64_t op;		/* number of the collective or of the send */
	uint64_t chunk;		/* or bytes sent so far */
	uint64_t total;		/* point to point: bytes of the whole send */
	uint32_t seg;
	uint32_t bytes;		/* of this payload */
	uint8_t pad[24];
} __attribute__((aligned(HCOMM_LINE)));

enum hcomm_mail_kind {
	HCOMM_MAIL_PART = 1,	/* reduced at one instance */
	HCOMM_MAIL_VALUE = 2,	/* final value of a segment */
	HCOMM_MAIL_SEND = 3,	/* hcommSend() */
};

/* Byte offsets in a heap of @bytes for a group of @n ranks. */
struct hcomm_layout {
	int n;
	uint32_t user_sems;
	size_t bytes;
	size_t tail;		/* n flags; source s: messages it has delivered */
	size_t head;		/* n flags; destination d: messages it has taken */
	size_t waits;		/* n flags; rank r: whom it waits for, blame.c */
	size_t sems;		/* user_sems flags, added to by local ranks */
	size_t stage_in;
	size_t stage_out;
	size_t stage;		/* bytes of one staging slot */
	size_t mail;		/* n * HCOMM_MAIL_SLOTS landing slots */
	size_t out;		/* HCOMM_OUT_SLOTS slots of the same size */
	size_t mail_slot;	/* bytes of a slot with its head */
	size_t message;		/* payload of a slot */
	size_t user;		/* first byte of the user's part, page aligned */
};

/* -ENOSPC when @bytes cannot hold the library's part. */
int hcomm_layout_init(struct hcomm_layout *layout, size_t bytes, int n,
		      uint32_t user_sems);

static inline size_t hcomm_layout_mail(const struct hcomm_layout *layout,
				       int source, uint64_t index)
{
	return layout->mail + ((size_t)source * HCOMM_MAIL_SLOTS +
			       index % HCOMM_MAIL_SLOTS) * layout->mail_slot;
}

static inline size_t hcomm_layout_flag(size_t array, uint32_t index)
{
	return array + (size_t)index * HCOMM_LINE;
}

#endif
