/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* SHA-256, HMAC-SHA256 and random bytes: the only users of libnettle. */
#ifndef HCOMM_PROOF_H
#define HCOMM_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCOMM_DIGEST_BYTES	32

void hcomm_digest(const void *data, size_t bytes,
		  uint8_t digest[HCOMM_DIGEST_BYTES]);
void hcomm_hmac(const uint8_t key[HCOMM_DIGEST_BYTES], const void *data,
		size_t bytes, uint8_t mac[HCOMM_DIGEST_BYTES]);
/* In a time that does not depend on where they differ. */
bool hcomm_digest_equal(const uint8_t *a, const uint8_t *b);
/* 0 or a negative errno. */
int hcomm_random(void *to, size_t bytes);

#endif
