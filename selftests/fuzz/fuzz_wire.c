// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Bytes from a hostile peer at the door: decoding reads nothing outside the
 * message, and what it lets in can be decoded further and keeps its promises.
 */
#include <stdlib.h>

#include "core/fence.h"
#include "core/stripe.h"
#include "core/wire.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#define must(cond) do { if (!(cond)) abort(); } while (0)

static void payload_read(const struct hcomm_wire_msg *m)
{
	struct hcomm_fence_record r;
	struct hcomm_wire_prove p;
	struct hcomm_wire_keys k;
	struct hcomm_wire_addr a;
	const u8 *pairs;
	u32 sum = 0;
	u32 pos = 0;
	u32 i;

	switch (m->h.type) {
	case HCOMM_WIRE_PROVE:
		must(!hcomm_wire_prove_decode(m, &p) && p.rank < p.size);
		break;
	case HCOMM_WIRE_GET_REQ:
		if (!m->payload_len)
			break;
		/* fall through */
	case HCOMM_WIRE_WIN_ADVERT:
		must(!hcomm_wire_keys_decode(m, &k));
		must(k.count && k.count <= HCOMM_WIRE_KEYS_MAX);
		must(k.base_off < 1ull << k.mr_shift);
		for (i = 0; i < k.count; i++)
			sum += hcomm_wire_key(m, i);
		break;
	case HCOMM_WIRE_FENCED:
		while (hcomm_fence_record_next(m, &pos, &r, &pairs))
			for (i = 0; i < 16u * (r.nops + r.ngets); i++)
				sum += pairs[i];
		must(pos == m->payload_len);
		break;
	case HCOMM_WIRE_PATHS:
		for (i = 0; i < hcomm_wire_addr_count(m); i++)
			must(!hcomm_wire_addr_decode(m, i, &a) &&
			     a.path < HCOMM_PATHS);
		break;
	case HCOMM_WIRE_PART:
	case HCOMM_WIRE_GET_PART:
		must(m->h.part < m->h.parts &&
		     m->h.parts <= HCOMM_WIRE_PARTS);
		break;
	}
	__asm__ volatile("" : : "r" (sum));
}

/* A decoded header encodes to the bytes it came from. */
static void encode_back(const struct hcomm_wire_msg *m, const u8 *data)
{
	u8 back[HCOMM_WIRE_HEADER];

	hcomm_wire_encode(&m->h, back);
	must(!memcmp(back, data, sizeof(back)));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct hcomm_wire_hello hello;
	struct hcomm_wire_reject reject;
	struct hcomm_wire_msg m;
	unsigned int qp;

	for (qp = 0; qp < 2; qp++) {
		if (hcomm_wire_decode(data, size, qp, &m))
			continue;
		must(m.payload_len <= HCOMM_WIRE_PAYLOAD);
		encode_back(&m, data);
		payload_read(&m);
	}
	if (!hcomm_wire_hello_decode(data, size, &hello))
		must(hello.path < HCOMM_PATHS);
	if (!hcomm_wire_reject_decode(data, size, &reject))
		must(reject.reason);
	return 0;
}
