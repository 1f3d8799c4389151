/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What two instances say to each other
 *
 * Every message is one SEND: a 64-byte little-endian header and, on the small
 * QP only, up to 1024 bytes of payload.  wire.c is the only place that knows
 * the byte layout: encoders turn host-order structs into bytes, decoders check
 * every length, range and flag before anything else looks at a message.  All
 * functions are pure and need no lock.
 *
 * Header fields mean the same in every message that uses them:
 *   credits     receives of *this QP* given back to the peer (credit.h)
 *   group       the session handle that the *reader* gave this group at proof
 *   src, dst    ranks of the writing and of the addressed member
 *   seq         flow sequence of the op; in control messages (see
 *               hcomm_wire_is_control()) the sequence of the control stream
 *   ack         low 32 bits of the cumulative acknowledgment of dst -> src
 *   aux         type-specific, see the enum
 *
 * Which QP: PART and GET_PART travel on the bulk QP behind their WRITEs, CREDIT
 * on the QP whose receives it returns, everything else on the small QP.
 */
#ifndef HCOMM_CORE_WIRE_H
#define HCOMM_CORE_WIRE_H

#include "shim.h"

#define HCOMM_WIRE_VERSION_MIN	1
#define HCOMM_WIRE_VERSION_MAX	1
#define HCOMM_WIRE_MAGIC	0x4d4f4348	/* "HCOM" in memory */
#define HCOMM_WIRE_HEADER	64
#define HCOMM_WIRE_PAYLOAD	1024
#define HCOMM_WIRE_MESSAGE	(HCOMM_WIRE_HEADER + HCOMM_WIRE_PAYLOAD)
#define HCOMM_WIRE_PARTS	64		/* parts of one op */
#define HCOMM_WIRE_NO_SEM	U32_MAX		/* op carries no signal */

enum hcomm_wire_type {
	/* Flow messages: group, src, dst, seq, ack are valid. */
	HCOMM_WIRE_PART = 1,	/* part of a PUT whose WRITEs went before it */
	HCOMM_WIRE_EAGER,	/* PUT of `length` <= 1024 bytes of payload */
	HCOMM_WIRE_SIGNAL,	/* no data; sem may be NO_SEM (void op) */
	HCOMM_WIRE_GET_REQ,	/* read window/generation/offset/length;
				 * sem: low 32 bits of the get number,
				 * aux: low 32 bits of the get floor,
				 * payload: keys of the destination, none when
				 * length <= 1024 (answered by GET_EAGER)
				 */
	HCOMM_WIRE_GET_PART,	/* part of a reply; seq: of the request,
				 * sem: get number
				 */
	HCOMM_WIRE_GET_EAGER,	/* whole reply in the payload */
	HCOMM_WIRE_GET_ERR,	/* reply is an error; aux: positive errno */
	HCOMM_WIRE_ACK,		/* bare ack; aux: low 32 bits of get floor */

	/* Path and fence messages: outside every flow. */
	HCOMM_WIRE_CREDIT = 16,	/* bare credits */
	HCOMM_WIRE_HEARTBEAT,	/* seq: next control message expected,
				 * offset: clock of who asks, in ns; an answer
				 * (HCOMM_WIRE_F_REPLY) repeats it
				 */
	HCOMM_WIRE_CTL_ACK,	/* seq: next control message expected */
	HCOMM_WIRE_FENCED,	/* part: path, generation: epoch, aux: attempt,
				 * offset: chunk number, payload: fence.h
				 */
	HCOMM_WIRE_FENCE_ACK,	/* part: path, generation: epoch: whole report
				 * was received
				 */
	HCOMM_WIRE_GOODBYE,	/* the session ends, nothing follows */

	/* Control stream: in order, exactly once over path losses (ctl.h). */
	HCOMM_WIRE_PROVE = 32,	/* generation: own era, payload: struct
				 * hcomm_wire_prove
				 */
	HCOMM_WIRE_PROVE_FAIL,	/* payload: group id; src: rank that failed,
				 * aux: positive errno
				 */
	HCOMM_WIRE_MEMBER_GONE,	/* group, src: the rank, aux: cause */
	HCOMM_WIRE_WIN_ADVERT,	/* group, src: owner, window, generation,
				 * delta: the reader's era, payload: keys of
				 * the window
				 */
	HCOMM_WIRE_WIN_REVOKE,	/* group, src: owner, window, generation */
	HCOMM_WIRE_WIN_REVOKED,	/* group, src: who stopped, dst: owner,
				 * window, generation
				 */
	HCOMM_WIRE_NACK,	/* group, src, dst, offset: seq of the op of
				 * dst -> src that failed, aux: positive errno
				 */
	HCOMM_WIRE_GROUP_ABORT,	/* group, src: who aborts, dst: rank blamed,
				 * offset: op number, aux: positive cause
				 */
	HCOMM_WIRE_PATHS,	/* payload: struct hcomm_wire_addr[] */
};

/* Header flags. */
#define HCOMM_WIRE_F_LAST	0x01	/* last chunk of FENCED or WIN_ADVERT */
#define HCOMM_WIRE_F_UNORDERED	0x02	/* signal does not wait for others */
#define HCOMM_WIRE_F_REPLY	0x04	/* PROVE: answer wanted; HEARTBEAT:
					 * this is an answer
					 */
#define HCOMM_WIRE_F_ALL	0x07

/* Which QP a message came from: decides what it may be. */
enum hcomm_wire_qp {
	HCOMM_QP_SMALL,
	HCOMM_QP_BULK,
};

/* The header in host order. */
struct hcomm_wire_hdr {
	u8 type;
	u8 flags;
	u16 credits;
	u32 group;
	u32 src;
	u32 dst;
	u64 seq;
	u32 ack;
	u16 part;
	u16 parts;
	u32 window;
	u32 generation;
	u32 sem;
	u32 delta;
	u64 offset;
	u32 length;
	u32 aux;
};

/* The header as it travels; sizes and offsets are asserted in wire.c. */
struct hcomm_wire_le {
	u8 type;
	u8 flags;
	__le16 credits;
	__le32 group;
	__le32 src;
	__le32 dst;
	__le64 seq;
	__le32 ack;
	__le16 part;
	__le16 parts;
	__le32 window;
	__le32 generation;
	__le32 sem;
	__le32 delta;
	__le64 offset;
	__le32 length;
	__le32 aux;
};

/* A decoded message; @payload points into the receive buffer. */
struct hcomm_wire_msg {
	struct hcomm_wire_hdr h;
	const u8 *payload;
	u32 payload_len;
};

/* PROVE: a claim of one rank of one group. */
struct hcomm_wire_prove {
	u8 group_id[16];
	u32 rank;
	u32 size;
	u32 handle;		/* by which the reader shall name the group */
	u8 mac[32];
};

/*
 * Keys of a window (WIN_ADVERT) or of the destination of a GET (GET_REQ, where
 * offset 0 is the first byte wanted).  MR number of byte x:
 * (x + base_off) >> mr_shift; its iova: iova + x.
 */
struct hcomm_wire_keys {
	u64 length;		/* bytes of the window or of the GET */
	u64 iova;		/* iova of offset 0 */
	u32 base_off;		/* < 1 << mr_shift */
	u8 mr_shift;		/* 12..31 */
	u32 first;		/* MR number of the first key below */
	u32 count;
};

#define HCOMM_WIRE_KEYS_MAX	((HCOMM_WIRE_PAYLOAD - 32) / 4)
#define HCOMM_WIRE_MR_SHIFT_MIN	12
#define HCOMM_WIRE_MR_SHIFT_MAX	31

/* PATHS: where the writer listens. */
struct hcomm_wire_addr {
	u8 path;
	u8 family;		/* 4 or 6 */
	u8 prefix;		/* bits of the subnet */
	u16 port;
	u8 addr[16];		/* IPv4 in the first four bytes */
};

#define HCOMM_WIRE_ADDRS_MAX	HCOMM_PATHS

/* What a connection is for. */
enum hcomm_wire_kind {
	HCOMM_HELLO_FIRST = 1,	/* small QP of a new session's path 0 */
	HCOMM_HELLO_SMALL,	/* small QP of a path of a known session */
	HCOMM_HELLO_BULK,	/* bulk QP of a path of a known session */
	HCOMM_HELLO_POKE,	/* "connect to me": carries no QP traffic */
};

/*
 * Private data of the connection request and of its answer: 56 bytes, all that
 * a request may carry.  The connecting side numbers the connections of a path:
 * each attempt gets an epoch higher than the one before.
 */
struct hcomm_wire_hello {
	u8 version_min;		/* answer: both are the version chosen */
	u8 version_max;
	u8 kind;
	u8 path;
	u8 instance[16];
	u8 nonce[16];
	u64 token;		/* of the session; 0 in FIRST and POKE */
	u16 port;		/* where the writer listens */
	u16 credits;		/* receives posted on this QP */
	u32 epoch;		/* >= 1 except POKE */
};

#define HCOMM_WIRE_HELLO	56

/* Private data of a rejection: 16 bytes. */
struct hcomm_wire_reject {
	u8 version_min;
	u8 version_max;
	u32 reason;		/* positive errno */
};

#define HCOMM_WIRE_REJECT	16

/* Messages of the control stream, carried by ctl.h. */
static inline bool hcomm_wire_is_control(u8 type)
{
	return type >= HCOMM_WIRE_PROVE;
}

/* Messages of a flow: group, src, dst and ack are meaningful. */
static inline bool hcomm_wire_is_flow(u8 type)
{
	return type >= HCOMM_WIRE_PART && type <= HCOMM_WIRE_ACK;
}

const char *hcomm_wire_type_name(u8 type);

/* Writes HCOMM_WIRE_HEADER bytes. */
void hcomm_wire_encode(const struct hcomm_wire_hdr *h, void *buf);

/*
 * Checks @len bytes that arrived on a QP of kind @qp and fills @m.  0, or
 * -EPROTO for anything that a correct peer would not send: wrong length for the
 * type, unknown type or flags, part >= parts, parts of 0 or above 64, ranges
 * that overflow, payload that does not parse.  After success the payload
 * decoders of that type cannot fail.  Messages of one part have part 0 and
 * parts 0 or 1.
 */
int hcomm_wire_decode(const void *buf, u32 len, enum hcomm_wire_qp qp,
		      struct hcomm_wire_msg *m);

/* Payloads.  Encoders return bytes written after the header. */
u32 hcomm_wire_prove_encode(const struct hcomm_wire_prove *p, u8 *payload);
int hcomm_wire_prove_decode(const struct hcomm_wire_msg *m,
			    struct hcomm_wire_prove *p);

/* @k->count keys from @keys; the caller keeps count <= HCOMM_WIRE_KEYS_MAX. */
u32 hcomm_wire_keys_encode(const struct hcomm_wire_keys *k, const u32 *keys,
			   u8 *payload);
int hcomm_wire_keys_decode(const struct hcomm_wire_msg *m,
			   struct hcomm_wire_keys *k);
/* Key number @i (0..count - 1) of a message that keys_decode accepted. */
u32 hcomm_wire_key(const struct hcomm_wire_msg *m, u32 i);

u32 hcomm_wire_addr_encode(const struct hcomm_wire_addr *a, u32 n, u8 *payload);
u32 hcomm_wire_addr_count(const struct hcomm_wire_msg *m);
int hcomm_wire_addr_decode(const struct hcomm_wire_msg *m, u32 i,
			   struct hcomm_wire_addr *a);

/* Connection private data. */
void hcomm_wire_hello_encode(const struct hcomm_wire_hello *h, void *buf);
/*
 * @len may be more than was sent (InfiniBand pads).  -EPROTONOSUPPORT: no
 * common version; only the versions of *@h are filled then.
 */
int hcomm_wire_hello_decode(const void *buf, u32 len,
			    struct hcomm_wire_hello *h);
void hcomm_wire_reject_encode(const struct hcomm_wire_reject *r, void *buf);
int hcomm_wire_reject_decode(const void *buf, u32 len,
			     struct hcomm_wire_reject *r);

/*
 * The highest version both ranges hold, or -EPROTONOSUPPORT; the caller then
 * reports both ranges.
 */
int hcomm_wire_negotiate(u8 our_min, u8 our_max, u8 peer_min, u8 peer_max);

/* Bytes are read and written one by one: buffers need no alignment. */
static inline u16 hcomm_get_le16(const u8 *p)
{
	return p[0] | p[1] << 8;
}

static inline u32 hcomm_get_le32(const u8 *p)
{
	return hcomm_get_le16(p) | (u32)hcomm_get_le16(p + 2) << 16;
}

static inline u64 hcomm_get_le64(const u8 *p)
{
	return hcomm_get_le32(p) | (u64)hcomm_get_le32(p + 4) << 32;
}

static inline void hcomm_put_le16(u8 *p, u16 v)
{
	p[0] = v & 0xff;
	p[1] = v >> 8;
}

static inline void hcomm_put_le32(u8 *p, u32 v)
{
	hcomm_put_le16(p, v & 0xffff);
	hcomm_put_le16(p + 2, v >> 16);
}

static inline void hcomm_put_le64(u8 *p, u64 v)
{
	hcomm_put_le32(p, v & U32_MAX);
	hcomm_put_le32(p + 4, v >> 32);
}

#endif /* HCOMM_CORE_WIRE_H */
