// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What ranks prove to each other rests on these; no state of its own. */
#include <errno.h>
#include <sys/random.h>

#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/sha2.h>

#include "bootstrap/proof.h"

void hcomm_digest(const void *data, size_t bytes,
		  uint8_t digest[HCOMM_DIGEST_BYTES])
{
	struct sha256_ctx ctx;

	sha256_init(&ctx);
	sha256_update(&ctx, bytes, data);
	sha256_digest(&ctx, HCOMM_DIGEST_BYTES, digest);
}

void hcomm_hmac(const uint8_t key[HCOMM_DIGEST_BYTES], const void *data,
		size_t bytes, uint8_t mac[HCOMM_DIGEST_BYTES])
{
	struct hmac_sha256_ctx ctx;

	hmac_sha256_set_key(&ctx, HCOMM_DIGEST_BYTES, key);
	hmac_sha256_update(&ctx, bytes, data);
	hmac_sha256_digest(&ctx, HCOMM_DIGEST_BYTES, mac);
}

bool hcomm_digest_equal(const uint8_t *a, const uint8_t *b)
{
	return memeql_sec(a, b, HCOMM_DIGEST_BYTES);
}

int hcomm_random(void *to, size_t bytes)
{
	ssize_t got;

	do {
		got = getrandom(to, bytes, 0);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	return (size_t)got == bytes ? 0 : -EIO;
}
