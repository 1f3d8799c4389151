/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Messages between rank 0 and the others while they meet. Little-endian, no
 * holes. In order:
 *
 *   client -> root  hello    who, of how many, which job, a nonce
 *   root -> client  answer   status; a nonce and the root's proof
 *   client -> root  seat     the client's proof and its record
 *   root -> client  welcome  when all are there: group id, then the records
 *   both            verdict  once per round of hcomm_boot_sync()
 *
 * A proof is HMAC-SHA256(secret, direction | rank | ranks | both nonces). The
 * secret itself is never sent. Without a secret it is 32 zero bytes, and the
 * welcome carries a random one for the group, in clear.
 */
#ifndef HCOMM_BOOT_WIRE_H
#define HCOMM_BOOT_WIRE_H

#include "bootstrap/boot.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the bootstrap messages are little-endian"
#endif

#define HCOMM_BOOT_MAGIC	0x31746f6f426d6368ULL	/* "hcmBoot1" */
#define HCOMM_BOOT_VERSION	1
#define HCOMM_BOOT_NONCE	16

struct hcomm_boot_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t library;
	uint32_t rank;
	uint32_t n;
	uint8_t job[HCOMM_BOOT_ID];
	uint8_t nonce[HCOMM_BOOT_NONCE];
	uint32_t authenticated;
	uint32_t reserved;
};

enum hcomm_boot_status {
	HCOMM_BOOT_OK = 0,
	HCOMM_BOOT_OTHER_JOB = 1,
	HCOMM_BOOT_REFUSED = 2,		/* the text says why */
};

struct hcomm_boot_answer {
	uint64_t magic;
	uint32_t version;
	uint32_t status;
	uint8_t nonce[HCOMM_BOOT_NONCE];
	uint8_t proof[32];
	char text[256];
};

struct hcomm_boot_seat {
	uint8_t proof[32];
	struct hcomm_record record;
};

struct hcomm_boot_welcome {
	uint64_t magic;
	uint32_t result;		/* hcommResult_t; no records unless 0 */
	uint32_t n;
	uint8_t group_id[HCOMM_BOOT_ID];
	uint8_t secret[HCOMM_BOOT_SECRET];
	char text[HCOMM_BOOT_TEXT];
};

struct hcomm_boot_verdict {
	uint32_t result;
	uint32_t rank;
	char text[HCOMM_BOOT_TEXT];
};

_Static_assert(sizeof(struct hcomm_boot_hello) == 64, "no holes");
_Static_assert(sizeof(struct hcomm_boot_answer) == 320, "no holes");
_Static_assert(sizeof(struct hcomm_record) == 224, "no holes");
_Static_assert(sizeof(struct hcomm_boot_seat) == 256, "no holes");
_Static_assert(sizeof(struct hcomm_boot_welcome) == 64 + HCOMM_BOOT_TEXT,
	       "no holes");

enum hcomm_proof_side { HCOMM_PROOF_ROOT = 1, HCOMM_PROOF_CLIENT = 2 };

/* In proof order: @root_nonce is the one of the answer. */
void hcomm_boot_proof(const struct hcomm_meeting *meeting,
		      enum hcomm_proof_side side, uint32_t rank, uint32_t n,
		      const uint8_t *client_nonce, const uint8_t *root_nonce,
		      uint8_t *proof);

/* True once, when the ranks have waited for each other for a while. */
bool hcomm_boot_notice_due(struct hcomm_boot *boot);

/* Ends a text that came from elsewhere, and leaves nothing that is not print. */
void hcomm_boot_clean(char *text, size_t room);

/* The two halves of hcomm_boot_open(); boot has rank, n, fds, table. */
hcommResult_t hcomm_boot_serve(struct hcomm_boot *boot,
			       const struct hcomm_meeting *meeting);
hcommResult_t hcomm_boot_attend(struct hcomm_boot *boot,
				const struct hcomm_meeting *meeting);

#endif
