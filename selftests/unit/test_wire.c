// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What is written is read back; what no correct peer writes is refused. */
#include <stdlib.h>

#include <kselftest_harness.h>

#include "core/fence.h"
#include "core/wire.h"

static u8 buf[HCOMM_WIRE_MESSAGE + 8];

static int decode(const struct hcomm_wire_hdr *h, u32 payload,
		  enum hcomm_wire_qp qp, struct hcomm_wire_msg *m)
{
	hcomm_wire_encode(h, buf);
	return hcomm_wire_decode(buf, HCOMM_WIRE_HEADER + payload, qp, m);
}

/* A valid message of each type without payload. */
static struct hcomm_wire_hdr bare(u8 type)
{
	struct hcomm_wire_hdr h = { .type = type };

	switch (type) {
	case HCOMM_WIRE_PART:
	case HCOMM_WIRE_GET_PART:
		h.parts = 3;
		h.part = 2;
		h.length = 4096;
		break;
	case HCOMM_WIRE_GET_REQ:
		h.length = 8;
		break;
	case HCOMM_WIRE_GET_ERR:
	case HCOMM_WIRE_NACK:
		h.aux = ERANGE;
		break;
	case HCOMM_WIRE_FENCED:
		h.generation = 1;
		h.aux = 1;
		break;
	case HCOMM_WIRE_FENCE_ACK:
		h.generation = 1;
		break;
	}
	return h;
}

static bool needs_payload(u8 type)
{
	return type == HCOMM_WIRE_PROVE || type == HCOMM_WIRE_PROVE_FAIL ||
	       type == HCOMM_WIRE_WIN_ADVERT || type == HCOMM_WIRE_PATHS;
}

static bool known(u8 type)
{
	return strcmp(hcomm_wire_type_name(type), "UNKNOWN");
}

TEST(header_is_little_endian_at_fixed_offsets)
{
	struct hcomm_wire_hdr h = {
		.type = 1, .flags = 2, .credits = 0x0403,
		.group = 0x08070605, .src = 0x0c0b0a09, .dst = 0x100f0e0d,
		.seq = 0x1817161514131211, .ack = 0x1c1b1a19, .part = 0x1e1d,
		.parts = 0x201f, .window = 0x24232221,
		.generation = 0x28272625, .sem = 0x2c2b2a29,
		.delta = 0x302f2e2d, .offset = 0x3837363534333231,
		.length = 0x3c3b3a39, .aux = 0x403f3e3d,
	};
	int i;

	hcomm_wire_encode(&h, buf);
	for (i = 0; i < HCOMM_WIRE_HEADER; i++)
		ASSERT_EQ(buf[i], i + 1);
}

TEST(header_is_read_back)
{
	struct hcomm_wire_hdr h;
	struct hcomm_wire_msg m;
	int i, k;

	for (i = 0; i < 1000; i++) {
		for (k = 0; k < sizeof(h); k++)
			((u8 *)&h)[k] = rand();
		h.type = HCOMM_WIRE_SIGNAL;
		h.flags = HCOMM_WIRE_F_UNORDERED;
		h.part = 0;
		h.parts = 1;
		ASSERT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), 0);
		ASSERT_EQ(m.payload_len, 0);
		ASSERT_EQ(m.h.credits, h.credits);
		ASSERT_EQ(m.h.group, h.group);
		ASSERT_EQ(m.h.src, h.src);
		ASSERT_EQ(m.h.dst, h.dst);
		ASSERT_EQ(m.h.seq, h.seq);
		ASSERT_EQ(m.h.ack, h.ack);
		ASSERT_EQ(m.h.window, h.window);
		ASSERT_EQ(m.h.generation, h.generation);
		ASSERT_EQ(m.h.sem, h.sem);
		ASSERT_EQ(m.h.delta, h.delta);
		ASSERT_EQ(m.h.offset, h.offset);
		ASSERT_EQ(m.h.length, h.length);
		ASSERT_EQ(m.h.aux, h.aux);
	}
}

TEST(every_type_passes_on_its_queue_pair_only)
{
	struct hcomm_wire_hdr h;
	struct hcomm_wire_msg m;
	bool bulk, small;
	int type, types = 0;

	for (type = 0; type < 256; type++) {
		h = bare(type);
		small = !decode(&h, 0, HCOMM_QP_SMALL, &m);
		bulk = !decode(&h, 0, HCOMM_QP_BULK, &m);
		types += known(type);
		ASSERT_EQ(bulk, type == HCOMM_WIRE_PART ||
				type == HCOMM_WIRE_GET_PART ||
				type == HCOMM_WIRE_CREDIT);
		ASSERT_EQ(small, known(type) && !needs_payload(type) &&
				 type != HCOMM_WIRE_PART &&
				 type != HCOMM_WIRE_GET_PART);
	}
	EXPECT_EQ(types, 23);
}

TEST(truncated_headers_are_refused)
{
	struct hcomm_wire_hdr h = bare(HCOMM_WIRE_ACK);
	struct hcomm_wire_msg m;
	u32 len;

	hcomm_wire_encode(&h, buf);
	for (len = 0; len < HCOMM_WIRE_HEADER; len++)
		ASSERT_EQ(hcomm_wire_decode(buf, len, HCOMM_QP_SMALL, &m),
			  -EPROTO);
}

TEST(unknown_flags_are_refused)
{
	struct hcomm_wire_msg m;
	struct hcomm_wire_hdr h;
	int type, bit;

	for (type = 0; type < 64; type++)
		for (bit = 3; bit < 8; bit++) {
			h = bare(type);
			h.flags = 1 << bit;
			ASSERT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
			ASSERT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), -EPROTO);
		}
	h = bare(HCOMM_WIRE_ACK);
	h.flags = HCOMM_WIRE_F_LAST;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(part_numbers_stay_below_parts_and_parts_within_64)
{
	struct hcomm_wire_hdr h = bare(HCOMM_WIRE_PART);
	struct hcomm_wire_msg m;

	h.parts = 64;
	h.part = 63;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), 0);
	h.part = 64;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), -EPROTO);
	h.parts = 65;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), -EPROTO);
	h.parts = 0;
	h.part = 0;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), -EPROTO);
	h = bare(HCOMM_WIRE_SIGNAL);
	h.parts = 2;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
	h.parts = 1;
	h.part = 1;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
	h = bare(HCOMM_WIRE_FENCED);
	h.part = HCOMM_PATHS;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(ranges_that_overflow_are_refused)
{
	struct hcomm_wire_hdr h = bare(HCOMM_WIRE_PART);
	struct hcomm_wire_msg m;

	h.offset = U64_MAX - 4096;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), 0);
	h.offset++;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_BULK, &m), -EPROTO);
	h = bare(HCOMM_WIRE_EAGER);
	h.length = 8;
	h.offset = U64_MAX - 7;
	EXPECT_EQ(decode(&h, 8, HCOMM_QP_SMALL, &m), -EPROTO);
	h = bare(HCOMM_WIRE_GET_REQ);
	h.offset = U64_MAX;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(eager_length_is_the_payload)
{
	struct hcomm_wire_hdr h = bare(HCOMM_WIRE_EAGER);
	struct hcomm_wire_msg m;

	h.length = HCOMM_WIRE_PAYLOAD;
	ASSERT_EQ(decode(&h, HCOMM_WIRE_PAYLOAD, HCOMM_QP_SMALL, &m), 0);
	EXPECT_EQ(m.payload_len, HCOMM_WIRE_PAYLOAD);
	EXPECT_EQ(m.payload, buf + HCOMM_WIRE_HEADER);
	EXPECT_EQ(decode(&h, HCOMM_WIRE_PAYLOAD - 1, HCOMM_QP_SMALL, &m),
		  -EPROTO);
	h.length++;
	EXPECT_EQ(decode(&h, HCOMM_WIRE_PAYLOAD + 1, HCOMM_QP_SMALL, &m),
		  -EPROTO);
	h = bare(HCOMM_WIRE_ACK);
	EXPECT_EQ(decode(&h, 1, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(proof_is_read_back_and_checked)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_PROVE };
	struct hcomm_wire_prove p = { .rank = 3, .size = 4, .handle = 77 };
	struct hcomm_wire_prove q;
	struct hcomm_wire_msg m;
	u32 n;

	memset(p.group_id, 0x11, sizeof(p.group_id));
	memset(p.mac, 0x22, sizeof(p.mac));
	n = hcomm_wire_prove_encode(&p, buf + HCOMM_WIRE_HEADER);
	ASSERT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), 0);
	ASSERT_EQ(hcomm_wire_prove_decode(&m, &q), 0);
	EXPECT_EQ(q.rank, 3);
	EXPECT_EQ(q.size, 4);
	EXPECT_EQ(q.handle, 77);
	EXPECT_EQ(memcmp(q.group_id, p.group_id, sizeof(p.group_id)), 0);
	EXPECT_EQ(memcmp(q.mac, p.mac, sizeof(p.mac)), 0);
	EXPECT_EQ(decode(&h, n - 1, HCOMM_QP_SMALL, &m), -EPROTO);
	p.rank = 4;
	n = hcomm_wire_prove_encode(&p, buf + HCOMM_WIRE_HEADER);
	EXPECT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), -EPROTO);
}

static u32 keys_put(const struct hcomm_wire_keys *k)
{
	u32 keys[HCOMM_WIRE_KEYS_MAX];
	u32 i;

	for (i = 0; i < HCOMM_WIRE_KEYS_MAX; i++)
		keys[i] = 0x1000 + i;
	return hcomm_wire_keys_encode(k, keys, buf + HCOMM_WIRE_HEADER);
}

TEST(keys_of_a_window_are_read_back)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_WIN_ADVERT };
	struct hcomm_wire_keys k = {
		.length = 10 << 20, .iova = 0x1234567000, .base_off = 100,
		.mr_shift = 20, .first = 5, .count = 6,
	};
	struct hcomm_wire_keys q;
	struct hcomm_wire_msg m;
	u32 n;

	/* 10 MiB at offset 100 of 1 MiB regions are 11 */
	h.flags = HCOMM_WIRE_F_LAST;
	n = keys_put(&k);
	ASSERT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), 0);
	ASSERT_EQ(hcomm_wire_keys_decode(&m, &q), 0);
	EXPECT_EQ(q.length, k.length);
	EXPECT_EQ(q.iova, k.iova);
	EXPECT_EQ(q.base_off, k.base_off);
	EXPECT_EQ(q.mr_shift, k.mr_shift);
	EXPECT_EQ(q.first, k.first);
	EXPECT_EQ(q.count, k.count);
	EXPECT_EQ(hcomm_wire_key(&m, 5), 0x1005);
	h.flags = 0;
	EXPECT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), -EPROTO);
	k.first = 6;
	h.flags = HCOMM_WIRE_F_LAST;
	EXPECT_EQ(decode(&h, keys_put(&k), HCOMM_QP_SMALL, &m), -EPROTO);
	k.first = U32_MAX;
	EXPECT_EQ(decode(&h, keys_put(&k), HCOMM_QP_SMALL, &m), -EPROTO);
	k.first = 5;
	EXPECT_EQ(decode(&h, keys_put(&k) - 4, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(impossible_geometries_of_keys_are_refused)
{
	const struct hcomm_wire_keys good = {
		.length = 4096, .mr_shift = 12, .count = 1,
	};
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_WIN_ADVERT, .flags = HCOMM_WIRE_F_LAST,
	};
	struct hcomm_wire_keys bad[] = {
		{ .length = 0, .mr_shift = 12, .count = 1 },
		{ .length = 4096, .mr_shift = 11, .count = 1 },
		{ .length = 4096, .mr_shift = 32, .count = 1 },
		{ .length = 4096, .mr_shift = 255, .count = 1 },
		{ .length = 4096, .mr_shift = 12, .count = 0 },
		{ .length = 4096, .mr_shift = 12, .count = 2 },
		{ .length = 100, .mr_shift = 12, .base_off = 4096, .count = 1 },
		{ .length = U64_MAX, .mr_shift = 31, .base_off = 1,
		  .count = 1 },
		{ .length = 4096, .iova = U64_MAX - 100, .mr_shift = 12,
		  .count = 1 },
	};
	struct hcomm_wire_msg m;
	int i;

	ASSERT_EQ(decode(&h, keys_put(&good), HCOMM_QP_SMALL, &m), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_EQ(decode(&h, keys_put(&bad[i]), HCOMM_QP_SMALL, &m),
			  -EPROTO);
}

TEST(get_request_has_keys_for_all_of_a_large_destination)
{
	struct hcomm_wire_hdr h = {
		.type = HCOMM_WIRE_GET_REQ, .length = 10000,
	};
	struct hcomm_wire_keys k = {
		.length = 10000, .mr_shift = 12, .base_off = 5, .count = 3,
	};
	struct hcomm_wire_msg m;

	EXPECT_EQ(decode(&h, keys_put(&k), HCOMM_QP_SMALL, &m), 0);
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
	k.count = 2;
	EXPECT_EQ(decode(&h, keys_put(&k), HCOMM_QP_SMALL, &m), -EPROTO);
	k.first = 1;
	EXPECT_EQ(decode(&h, keys_put(&k), HCOMM_QP_SMALL, &m), -EPROTO);
	k.first = 0;
	k.count = 3;
	k.length = 9999;
	EXPECT_EQ(decode(&h, keys_put(&k), HCOMM_QP_SMALL, &m), -EPROTO);
	h.length = 1024;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), 0);
	h.length = 0;
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(report_records_must_fit_exactly)
{
	struct hcomm_wire_hdr h = bare(HCOMM_WIRE_FENCED);
	u8 *p = buf + HCOMM_WIRE_HEADER;
	struct hcomm_fence_record r;
	struct hcomm_wire_msg m;
	const u8 *pairs;
	u32 pos = 0;

	memset(p, 0, 200);
	hcomm_put_le32(p, 9);
	hcomm_put_le32(p + 4, 1);
	hcomm_put_le16(p + 12, 2);
	hcomm_put_le16(p + 14, 1);
	hcomm_put_le64(p + 16, 55);
	h.length = 32 + 48 + 32;
	ASSERT_EQ(decode(&h, h.length, HCOMM_QP_SMALL, &m), 0);
	ASSERT_TRUE(hcomm_fence_record_next(&m, &pos, &r, &pairs));
	EXPECT_EQ(r.group, 9);
	EXPECT_EQ(r.src, 1);
	EXPECT_EQ(r.nops, 2);
	EXPECT_EQ(r.ngets, 1);
	EXPECT_EQ(r.ack, 55);
	EXPECT_EQ(pairs, p + 32);
	EXPECT_EQ(pos, 80);
	ASSERT_TRUE(hcomm_fence_record_next(&m, &pos, &r, &pairs));
	EXPECT_FALSE(hcomm_fence_record_next(&m, &pos, &r, &pairs));
	h.length = 32 + 47;
	EXPECT_EQ(decode(&h, h.length, HCOMM_QP_SMALL, &m), -EPROTO);
	h.length = 32 + 48 + 31;
	EXPECT_EQ(decode(&h, h.length, HCOMM_QP_SMALL, &m), -EPROTO);
	hcomm_put_le16(p + 12, 0xffff);
	h.length = 32 + 48;
	EXPECT_EQ(decode(&h, h.length, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(addresses_are_read_back_and_checked)
{
	struct hcomm_wire_hdr h = { .type = HCOMM_WIRE_PATHS };
	struct hcomm_wire_addr a[2] = {
		{ .path = 1, .family = 4, .prefix = 24, .port = 18600,
		  .addr = { 10, 0, 0, 1 } },
		{ .path = 2, .family = 6, .prefix = 64, .port = 1 },
	};
	struct hcomm_wire_addr b;
	struct hcomm_wire_msg m;
	u32 n = hcomm_wire_addr_encode(a, 2, buf + HCOMM_WIRE_HEADER);

	ASSERT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), 0);
	ASSERT_EQ(hcomm_wire_addr_count(&m), 2);
	ASSERT_EQ(hcomm_wire_addr_decode(&m, 0, &b), 0);
	EXPECT_EQ(b.path, 1);
	EXPECT_EQ(b.family, 4);
	EXPECT_EQ(b.prefix, 24);
	EXPECT_EQ(b.port, 18600);
	EXPECT_EQ(b.addr[0], 10);
	EXPECT_EQ(hcomm_wire_addr_decode(&m, 2, &b), -EPROTO);
	EXPECT_EQ(decode(&h, n - 1, HCOMM_QP_SMALL, &m), -EPROTO);
	EXPECT_EQ(decode(&h, 0, HCOMM_QP_SMALL, &m), -EPROTO);
	a[0].prefix = 33;
	n = hcomm_wire_addr_encode(a, 2, buf + HCOMM_WIRE_HEADER);
	EXPECT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), -EPROTO);
	a[0].prefix = 32;
	a[1].path = HCOMM_PATHS;
	n = hcomm_wire_addr_encode(a, 2, buf + HCOMM_WIRE_HEADER);
	EXPECT_EQ(decode(&h, n, HCOMM_QP_SMALL, &m), -EPROTO);
}

TEST(hello_fits_a_connection_request_and_is_read_back)
{
	struct hcomm_wire_hello h = {
		.version_min = 1, .version_max = 1, .kind = HCOMM_HELLO_BULK,
		.path = 3, .token = 0x1122334455667788, .port = 18601,
		.credits = 2048, .epoch = 9,
	};
	struct hcomm_wire_hello q;

	memset(h.instance, 0xaa, sizeof(h.instance));
	memset(h.nonce, 0xbb, sizeof(h.nonce));
	hcomm_wire_hello_encode(&h, buf);
	ASSERT_EQ(hcomm_wire_hello_decode(buf, 56, &q), 0);
	EXPECT_EQ(memcmp(&h, &q, sizeof(h)), 0);
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 55, &q), -EPROTO);
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 196, &q), 0);
	h.epoch = 0;
	hcomm_wire_hello_encode(&h, buf);
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 56, &q), -EPROTO);
	h.kind = HCOMM_HELLO_POKE;
	hcomm_wire_hello_encode(&h, buf);
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 56, &q), 0);
	h.path = HCOMM_PATHS;
	hcomm_wire_hello_encode(&h, buf);
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 56, &q), -EPROTO);
	buf[0] ^= 1;
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 56, &q), -EPROTO);
}

TEST(hello_of_a_foreign_version_tells_its_range)
{
	struct hcomm_wire_hello h = {
		.version_min = 7, .version_max = 9, .kind = 200, .path = 200,
	};
	struct hcomm_wire_hello q;

	hcomm_wire_hello_encode(&h, buf);
	EXPECT_EQ(hcomm_wire_hello_decode(buf, 56, &q), -EPROTONOSUPPORT);
	EXPECT_EQ(q.version_min, 7);
	EXPECT_EQ(q.version_max, 9);
}

TEST(highest_common_version_is_spoken)
{
	EXPECT_EQ(hcomm_wire_negotiate(1, 1, 1, 1), 1);
	EXPECT_EQ(hcomm_wire_negotiate(1, 3, 2, 5), 3);
	EXPECT_EQ(hcomm_wire_negotiate(2, 5, 1, 3), 3);
	EXPECT_EQ(hcomm_wire_negotiate(1, 2, 3, 4), -EPROTONOSUPPORT);
	EXPECT_EQ(hcomm_wire_negotiate(3, 4, 1, 2), -EPROTONOSUPPORT);
	EXPECT_EQ(hcomm_wire_negotiate(1, 2, 2, 1), -EPROTO);
}

TEST(rejection_is_read_back)
{
	struct hcomm_wire_reject r = {
		.version_min = 1, .version_max = 2, .reason = EACCES,
	};
	struct hcomm_wire_reject q;

	hcomm_wire_reject_encode(&r, buf);
	ASSERT_EQ(hcomm_wire_reject_decode(buf, HCOMM_WIRE_REJECT, &q), 0);
	EXPECT_EQ(q.version_max, 2);
	EXPECT_EQ(q.reason, EACCES);
	EXPECT_EQ(hcomm_wire_reject_decode(buf, 15, &q), -EPROTO);
	r.reason = 0;
	hcomm_wire_reject_encode(&r, buf);
	EXPECT_EQ(hcomm_wire_reject_decode(buf, HCOMM_WIRE_REJECT, &q),
		  -EPROTO);
}

TEST_HARNESS_MAIN
