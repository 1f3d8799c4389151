// SPDX-License-Identifier: GPL-2.0
/*
 * Byte layout of messages, and the checks at the door
 *
 * Owns no state.  What hcomm_wire_decode() lets in is well formed: the rest of
 * the transport checks only meaning (does the window exist, is the rank proven),
 * never shape.
 */
#include "fence.h"
#include "stripe.h"
#include "wire.h"

#define AT(field, offset) \
	static_assert(offsetof(struct hcomm_wire_le, field) == (offset), #field)

static_assert(sizeof(struct hcomm_wire_le) == HCOMM_WIRE_HEADER, "header size");
AT(type, 0);
AT(flags, 1);
AT(credits, 2);
AT(group, 4);
AT(src, 8);
AT(dst, 12);
AT(seq, 16);
AT(ack, 24);
AT(part, 28);
AT(parts, 30);
AT(window, 32);
AT(generation, 36);
AT(sem, 40);
AT(delta, 44);
AT(offset, 48);
AT(length, 56);
AT(aux, 60);

#define ON_SMALL	BIT(HCOMM_QP_SMALL)
#define ON_BULK		BIT(HCOMM_QP_BULK)
#define PROVE_BYTES	64
#define ID_BYTES	16
#define KEYS_BYTES	32
#define ADDR_BYTES	24
#define GET_MAX		((u32)HCOMM_WIRE_PARTS * HCOMM_STRIPE_MAX)

static const struct wire_rule {
	const char *name;
	u8 qps;			/* where it may travel; 0: no such type */
	u8 flags;		/* flags it may have */
	u16 payload_max;
} rules[] = {
	[HCOMM_WIRE_PART]	= { "PART", ON_BULK, HCOMM_WIRE_F_UNORDERED,
				    0 },
	[HCOMM_WIRE_EAGER]	= { "EAGER", ON_SMALL, HCOMM_WIRE_F_UNORDERED,
				    HCOMM_WIRE_PAYLOAD },
	[HCOMM_WIRE_SIGNAL]	= { "SIGNAL", ON_SMALL, HCOMM_WIRE_F_UNORDERED,
				    0 },
	[HCOMM_WIRE_GET_REQ]	= { "GET_REQ", ON_SMALL, HCOMM_WIRE_F_UNORDERED,
				    HCOMM_WIRE_PAYLOAD },
	[HCOMM_WIRE_GET_PART]	= { "GET_PART", ON_BULK, 0, 0 },
	[HCOMM_WIRE_GET_EAGER]	= { "GET_EAGER", ON_SMALL, 0,
				    HCOMM_WIRE_PAYLOAD },
	[HCOMM_WIRE_GET_ERR]	= { "GET_ERR", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_ACK]	= { "ACK", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_CREDIT]	= { "CREDIT", ON_SMALL | ON_BULK, 0, 0 },
	[HCOMM_WIRE_HEARTBEAT]	= { "HEARTBEAT", ON_SMALL, HCOMM_WIRE_F_REPLY,
				    0 },
	[HCOMM_WIRE_CTL_ACK]	= { "CTL_ACK", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_FENCED]	= { "FENCED", ON_SMALL, HCOMM_WIRE_F_LAST,
				    HCOMM_WIRE_PAYLOAD },
	[HCOMM_WIRE_FENCE_ACK]	= { "FENCE_ACK", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_GOODBYE]	= { "GOODBYE", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_PROVE]	= { "PROVE", ON_SMALL, HCOMM_WIRE_F_REPLY,
				    PROVE_BYTES },
	[HCOMM_WIRE_PROVE_FAIL]	= { "PROVE_FAIL", ON_SMALL, 0, ID_BYTES },
	[HCOMM_WIRE_MEMBER_GONE] = { "MEMBER_GONE", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_WIN_ADVERT]	= { "WIN_ADVERT", ON_SMALL, HCOMM_WIRE_F_LAST,
				    HCOMM_WIRE_PAYLOAD },
	[HCOMM_WIRE_WIN_REVOKE]	= { "WIN_REVOKE", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_WIN_REVOKED] = { "WIN_REVOKED", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_NACK]	= { "NACK", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_GROUP_ABORT] = { "GROUP_ABORT", ON_SMALL, 0, 0 },
	[HCOMM_WIRE_PATHS]	= { "PATHS", ON_SMALL, 0,
				    HCOMM_WIRE_ADDRS_MAX * ADDR_BYTES },
};

const char *hcomm_wire_type_name(u8 type)
{
	return type < ARRAY_SIZE(rules) && rules[type].qps ? rules[type].name : "UNKNOWN";
}

void hcomm_wire_encode(const struct hcomm_wire_hdr *h, void *buf)
{
	struct hcomm_wire_le le = {
		.type		= h->type,
		.flags		= h->flags,
		.credits	= cpu_to_le16(h->credits),
		.group		= cpu_to_le32(h->group),
		.src		= cpu_to_le32(h->src),
		.dst		= cpu_to_le32(h->dst),
		.seq		= cpu_to_le64(h->seq),
		.ack		= cpu_to_le32(h->ack),
		.part		= cpu_to_le16(h->part),
		.parts		= cpu_to_le16(h->parts),
		.window		= cpu_to_le32(h->window),
		.generation	= cpu_to_le32(h->generation),
		.sem		= cpu_to_le32(h->sem),
		.delta		= cpu_to_le32(h->delta),
		.offset		= cpu_to_le64(h->offset),
		.length		= cpu_to_le32(h->length),
		.aux		= cpu_to_le32(h->aux),
	};

	memcpy(buf, &le, sizeof(le));
}

static void header_read(const void *buf, struct hcomm_wire_hdr *h)
{
	struct hcomm_wire_le le;

	memcpy(&le, buf, sizeof(le));
	h->type = le.type;
	h->flags = le.flags;
	h->credits = le16_to_cpu(le.credits);
	h->group = le32_to_cpu(le.group);
	h->src = le32_to_cpu(le.src);
	h->dst = le32_to_cpu(le.dst);
	h->seq = le64_to_cpu(le.seq);
	h->ack = le32_to_cpu(le.ack);
	h->part = le16_to_cpu(le.part);
	h->parts = le16_to_cpu(le.parts);
	h->window = le32_to_cpu(le.window);
	h->generation = le32_to_cpu(le.generation);
	h->sem = le32_to_cpu(le.sem);
	h->delta = le32_to_cpu(le.delta);
	h->offset = le64_to_cpu(le.offset);
	h->length = le32_to_cpu(le.length);
	h->aux = le32_to_cpu(le.aux);
}

/* [@offset, @offset + @length) does not wrap. */
static bool range_ok(u64 offset, u32 length)
{
	return offset <= U64_MAX - length;
}

static bool errno_ok(u32 aux)
{
	return aux >= 1 && aux <= MAX_ERRNO;
}

static bool parts_ok(const struct hcomm_wire_hdr *h)
{
	switch (h->type) {
	case HCOMM_WIRE_PART:
	case HCOMM_WIRE_GET_PART:
		return h->parts <= HCOMM_WIRE_PARTS && h->part < h->parts;
	case HCOMM_WIRE_FENCED:
	case HCOMM_WIRE_FENCE_ACK:
		return h->part < HCOMM_PATHS && !h->parts;
	default:
		return !h->part && h->parts <= 1;
	}
}

static int keys_read(const struct hcomm_wire_msg *m, struct hcomm_wire_keys *k)
{
	const u8 *p = m->payload;
	struct hcomm_geom g;
	u64 end;

	if (m->payload_len < KEYS_BYTES)
		return -EPROTO;
	k->length = hcomm_get_le64(p);
	k->iova = hcomm_get_le64(p + 8);
	k->base_off = hcomm_get_le32(p + 16);
	k->mr_shift = p[20];
	k->first = hcomm_get_le32(p + 24);
	k->count = hcomm_get_le32(p + 28);
	g.length = k->length;
	g.base_off = k->base_off;
	g.mr_shift = k->mr_shift;
	if (p[21] || p[22] || p[23] || !k->length || !hcomm_geom_valid(&g) ||
	    check_add_overflow(k->iova, k->length, &end))
		return -EPROTO;
	if (!k->count || k->count > HCOMM_WIRE_KEYS_MAX ||
	    m->payload_len != KEYS_BYTES + 4 * k->count)
		return -EPROTO;
	/* keys of MRs that exist */
	if ((u64)k->first + k->count > hcomm_geom_mr(&g, k->length - 1) + 1)
		return -EPROTO;
	return 0;
}

/* The keys of @k reach the last MR. */
static bool keys_last(const struct hcomm_wire_keys *k)
{
	u64 mrs = ((k->length - 1 + k->base_off) >> k->mr_shift) + 1;

	return (u64)k->first + k->count == mrs;
}

static bool get_req_ok(const struct hcomm_wire_msg *m)
{
	const struct hcomm_wire_hdr *h = &m->h;
	struct hcomm_wire_keys k;

	if (!h->length || h->length > GET_MAX ||
	    !range_ok(h->offset, h->length))
		return false;
	if (!m->payload_len)
		return h->length <= HCOMM_WIRE_PAYLOAD;
	return !keys_read(m, &k) && k.length == h->length && !k.first &&
	       keys_last(&k);
}

static bool win_advert_ok(const struct hcomm_wire_msg *m)
{
	struct hcomm_wire_keys k;

	return !keys_read(m, &k) &&
	       keys_last(&k) == !!(m->h.flags & HCOMM_WIRE_F_LAST);
}

static bool fenced_ok(const struct hcomm_wire_msg *m)
{
	struct hcomm_fence_record r;
	const u8 *pairs;
	u32 pos = 0;

	if (m->h.length != m->payload_len || !m->h.generation || !m->h.aux ||
	    m->h.offset > U32_MAX)
		return false;
	while (hcomm_fence_record_next(m, &pos, &r, &pairs))
		;
	return pos == m->payload_len;
}

static bool prove_ok(const struct hcomm_wire_msg *m)
{
	struct hcomm_wire_prove p;

	return !hcomm_wire_prove_decode(m, &p) && p.rank < p.size;
}

static bool addrs_ok(const struct hcomm_wire_msg *m)
{
	struct hcomm_wire_addr a;
	u32 n = hcomm_wire_addr_count(m);
	u32 i;

	if (!n || m->payload_len % ADDR_BYTES)
		return false;
	for (i = 0; i < n; i++) {
		if (hcomm_wire_addr_decode(m, i, &a) ||
		    a.path >= HCOMM_PATHS || !a.port ||
		    (a.family != 4 && a.family != 6) ||
		    a.prefix > (a.family == 4 ? 32 : 128))
			return false;
	}
	return true;
}

/* What is particular to one type. */
static bool body_ok(const struct hcomm_wire_msg *m)
{
	const struct hcomm_wire_hdr *h = &m->h;

	switch (h->type) {
	case HCOMM_WIRE_PART:
	case HCOMM_WIRE_GET_PART:
		return h->length && h->length <= HCOMM_STRIPE_MAX &&
		       range_ok(h->offset, h->length);
	case HCOMM_WIRE_EAGER:
	case HCOMM_WIRE_GET_EAGER:
		return h->length == m->payload_len &&
		       range_ok(h->offset, h->length);
	case HCOMM_WIRE_GET_REQ:
		return get_req_ok(m);
	case HCOMM_WIRE_GET_ERR:
	case HCOMM_WIRE_NACK:
		return errno_ok(h->aux);
	case HCOMM_WIRE_FENCED:
		return fenced_ok(m);
	case HCOMM_WIRE_FENCE_ACK:
		return h->generation;
	case HCOMM_WIRE_PROVE:
		return prove_ok(m);
	case HCOMM_WIRE_PROVE_FAIL:
		return m->payload_len == ID_BYTES && errno_ok(h->aux);
	case HCOMM_WIRE_WIN_ADVERT:
		return win_advert_ok(m);
	case HCOMM_WIRE_PATHS:
		return addrs_ok(m);
	default:
		return true;
	}
}

int hcomm_wire_decode(const void *buf, u32 len, enum hcomm_wire_qp qp,
		      struct hcomm_wire_msg *m)
{
	const struct wire_rule *rule;

	if (len < HCOMM_WIRE_HEADER)
		return -EPROTO;
	header_read(buf, &m->h);
	m->payload = (const u8 *)buf + HCOMM_WIRE_HEADER;
	m->payload_len = len - HCOMM_WIRE_HEADER;
	if (m->h.type >= ARRAY_SIZE(rules))
		return -EPROTO;
	rule = &rules[m->h.type];
	if (!(rule->qps & BIT(qp)) || (m->h.flags & ~rule->flags) ||
	    m->payload_len > rule->payload_max || !parts_ok(&m->h) ||
	    !body_ok(m))
		return -EPROTO;
	return 0;
}

u32 hcomm_wire_prove_encode(const struct hcomm_wire_prove *p, u8 *payload)
{
	memcpy(payload, p->group_id, sizeof(p->group_id));
	hcomm_put_le32(payload + 16, p->rank);
	hcomm_put_le32(payload + 20, p->size);
	hcomm_put_le32(payload + 24, p->handle);
	hcomm_put_le32(payload + 28, 0);
	memcpy(payload + 32, p->mac, sizeof(p->mac));
	return PROVE_BYTES;
}

int hcomm_wire_prove_decode(const struct hcomm_wire_msg *m,
			    struct hcomm_wire_prove *p)
{
	if (m->payload_len != PROVE_BYTES)
		return -EPROTO;
	memcpy(p->group_id, m->payload, sizeof(p->group_id));
	p->rank = hcomm_get_le32(m->payload + 16);
	p->size = hcomm_get_le32(m->payload + 20);
	p->handle = hcomm_get_le32(m->payload + 24);
	memcpy(p->mac, m->payload + 32, sizeof(p->mac));
	return 0;
}

u32 hcomm_wire_keys_encode(const struct hcomm_wire_keys *k, const u32 *keys,
			   u8 *payload)
{
	u32 i;

	hcomm_put_le64(payload, k->length);
	hcomm_put_le64(payload + 8, k->iova);
	hcomm_put_le32(payload + 16, k->base_off);
	hcomm_put_le32(payload + 20, k->mr_shift);
	hcomm_put_le32(payload + 24, k->first);
	hcomm_put_le32(payload + 28, k->count);
	for (i = 0; i < k->count; i++)
		hcomm_put_le32(payload + KEYS_BYTES + 4 * i, keys[i]);
	return KEYS_BYTES + 4 * k->count;
}

int hcomm_wire_keys_decode(const struct hcomm_wire_msg *m,
			   struct hcomm_wire_keys *k)
{
	return keys_read(m, k);
}

u32 hcomm_wire_key(const struct hcomm_wire_msg *m, u32 i)
{
	return hcomm_get_le32(m->payload + KEYS_BYTES + 4 * i);
}

u32 hcomm_wire_addr_encode(const struct hcomm_wire_addr *a, u32 n, u8 *payload)
{
	u8 *p = payload;
	u32 i;

	for (i = 0; i < n; i++, a++, p += ADDR_BYTES) {
		memset(p, 0, ADDR_BYTES);
		p[0] = a->path;
		p[1] = a->family;
		p[2] = a->prefix;
		hcomm_put_le16(p + 4, a->port);
		memcpy(p + 8, a->addr, sizeof(a->addr));
	}
	return n * ADDR_BYTES;
}

u32 hcomm_wire_addr_count(const struct hcomm_wire_msg *m)
{
	return m->payload_len / ADDR_BYTES;
}

int hcomm_wire_addr_decode(const struct hcomm_wire_msg *m, u32 i,
			   struct hcomm_wire_addr *a)
{
	const u8 *p;

	if (i >= hcomm_wire_addr_count(m))
		return -EPROTO;
	p = m->payload + i * ADDR_BYTES;
	a->path = p[0];
	a->family = p[1];
	a->prefix = p[2];
	a->port = hcomm_get_le16(p + 4);
	memcpy(a->addr, p + 8, sizeof(a->addr));
	return 0;
}

/* ---- connection private data ---- */

void hcomm_wire_hello_encode(const struct hcomm_wire_hello *h, void *buf)
{
	u8 *p = buf;

	hcomm_put_le32(p, HCOMM_WIRE_MAGIC);
	p[4] = h->version_min;
	p[5] = h->version_max;
	p[6] = h->kind;
	p[7] = h->path;
	memcpy(p + 8, h->instance, sizeof(h->instance));
	memcpy(p + 24, h->nonce, sizeof(h->nonce));
	hcomm_put_le64(p + 40, h->token);
	hcomm_put_le16(p + 48, h->port);
	hcomm_put_le16(p + 50, h->credits);
	hcomm_put_le32(p + 52, h->epoch);
}

int hcomm_wire_hello_decode(const void *buf, u32 len,
			    struct hcomm_wire_hello *h)
{
	const u8 *p = buf;
	int version;

	if (len < HCOMM_WIRE_HELLO || hcomm_get_le32(p) != HCOMM_WIRE_MAGIC)
		return -EPROTO;
	h->version_min = p[4];
	h->version_max = p[5];
	version = hcomm_wire_negotiate(HCOMM_WIRE_VERSION_MIN,
				       HCOMM_WIRE_VERSION_MAX,
				       h->version_min, h->version_max);
	if (version < 0)
		return version;
	h->kind = p[6];
	h->path = p[7];
	memcpy(h->instance, p + 8, sizeof(h->instance));
	memcpy(h->nonce, p + 24, sizeof(h->nonce));
	h->token = hcomm_get_le64(p + 40);
	h->port = hcomm_get_le16(p + 48);
	h->credits = hcomm_get_le16(p + 50);
	h->epoch = hcomm_get_le32(p + 52);
	if (h->kind < HCOMM_HELLO_FIRST || h->kind > HCOMM_HELLO_POKE ||
	    h->path >= HCOMM_PATHS ||
	    (!h->epoch && h->kind != HCOMM_HELLO_POKE))
		return -EPROTO;
	return 0;
}

void hcomm_wire_reject_encode(const struct hcomm_wire_reject *r, void *buf)
{
	u8 *p = buf;

	memset(p, 0, HCOMM_WIRE_REJECT);
	hcomm_put_le32(p, HCOMM_WIRE_MAGIC);
	p[4] = r->version_min;
	p[5] = r->version_max;
	hcomm_put_le32(p + 8, r->reason);
}

int hcomm_wire_reject_decode(const void *buf, u32 len,
			     struct hcomm_wire_reject *r)
{
	const u8 *p = buf;

	if (len < HCOMM_WIRE_REJECT || hcomm_get_le32(p) != HCOMM_WIRE_MAGIC)
		return -EPROTO;
	r->version_min = p[4];
	r->version_max = p[5];
	r->reason = hcomm_get_le32(p + 8);
	return errno_ok(r->reason) ? 0 : -EPROTO;
}

int hcomm_wire_negotiate(u8 our_min, u8 our_max, u8 peer_min, u8 peer_max)
{
	u8 low = max(our_min, peer_min);
	u8 high = min(our_max, peer_max);

	if (peer_min > peer_max)
		return -EPROTO;
	return low <= high ? high : -EPROTONOSUPPORT;
}
