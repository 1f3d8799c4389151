// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who knows no secret and speaks to the listener of an instance through the
 * connection manager, with messages of its own making (protocol.rst, HELLO).
 */
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/rdma_cma.h>

#include <kselftest_harness.h>

#include "net/net.h"

#define HELLO_BYTES	56
#define REJECT_BYTES	16

enum { FIRST = 1, BULK = 3, POKE = 4 };

struct caller {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
};

static void put32(uint8_t *p, uint32_t value)
{
	memcpy(p, &value, sizeof(value));	/* little endian, as the wire is */
}

static void hello_fill(uint8_t *p, uint8_t kind, const uint8_t *instance,
		       uint32_t epoch)
{
	const uint16_t credits = 256;

	memset(p, 0, HELLO_BYTES);
	memcpy(p, "HCOM", 4);
	p[4] = 1;
	p[5] = 1;
	p[6] = kind;
	memcpy(p + 8, instance, HCOMM_ID_BYTES);
	if (kind == BULK)
		p[40] = 5;	/* a token that nobody gave */
	memcpy(p + 50, &credits, sizeof(credits));
	put32(p + 52, epoch);
}

/* The event, which the caller acknowledges; NULL after 5 s. */
static struct rdma_cm_event *next_event(struct caller *c)
{
	struct pollfd pfd = { .fd = c->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, 5000) <= 0 || rdma_get_cm_event(c->channel, &event))
		return NULL;
	return event;
}

static bool expect(struct caller *c, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = next_event(c);
	bool ok = event && event->event == type;

	if (event)
		rdma_ack_cm_event(event);
	return ok;
}

static void hang_up(struct caller *c)
{
	if (c->id)
		rdma_destroy_id(c->id);
	if (c->channel)
		rdma_destroy_event_channel(c->channel);
	memset(c, 0, sizeof(*c));
}

static struct sockaddr_in ipv4_of(const struct hcomm_peer *peer, uint16_t port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
	};

	memcpy(&in.sin_addr, peer->addr + 12, 4);
	return in;
}

/*
 * Asks @to from the address of @from: 0 when it accepts, which the caller has
 * to hang up, the errno of its refusal, or -1.
 */
static int ask(struct caller *c, const struct hcomm_peer *from,
	       const struct hcomm_peer *to, const uint8_t *hello)
{
	struct sockaddr_in src = ipv4_of(from, 0), dst = ipv4_of(to, to->port);
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = HELLO_BYTES,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = 0x42,		/* of nobody */
	};
	struct rdma_cm_event *event;
	int result = -1;
	uint32_t reason;

	memset(c, 0, sizeof(*c));
	c->channel = rdma_create_event_channel();
	if (!c->channel || rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(c->id, (struct sockaddr *)&src,
			      (struct sockaddr *)&dst, 2000) ||
	    !expect(c, RDMA_CM_EVENT_ADDR_RESOLVED) ||
	    rdma_resolve_route(c->id, 2000) ||
	    !expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED) ||
	    rdma_connect(c->id, &param))
		goto out;
	event = next_event(c);
	if (!event)
		goto out;
	if (event->event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		result = 0;
	} else if (event->event == RDMA_CM_EVENT_REJECTED &&
		   event->param.conn.private_data_len >= REJECT_BYTES) {
		memcpy(&reason, (const uint8_t *)event->param.conn.private_data + 8,
		       sizeof(reason));
		result = reason;
	}
	rdma_ack_cm_event(event);
out:
	if (result)
		hang_up(c);
	return result;
}

/* Asks until the answer is another than "not now". */
static int ask_again(struct caller *c, const struct hcomm_peer *from,
		     const struct hcomm_peer *to, const uint8_t *hello)
{
	uint64_t end = now_ns() + 15 * SEC;
	int ret;

	while ((ret = ask(c, from, to, hello)) == EAGAIN && now_ns() < end)
		usleep(50000);
	return ret;
}

FIXTURE(strangers)
{
	struct pair p;
	struct hcomm_peer at[PAIR];	/* where the two instances are */
	uint8_t name[HCOMM_ID_BYTES];	/* of an instance that does not exist */
	uint8_t hello[HELLO_BYTES];
};

FIXTURE_SETUP(strangers)
{
	int ret = pair_begin(&self->p);

	if (ret == -ENODEV)
		SKIP(return, "no RDMA port: run with --links 1");
	ASSERT_EQ(ret, 0);
	memcpy(self->at, self->p.peers, sizeof(self->at));
	/* Smaller than all others, so it is the one that connects. */
	self->name[HCOMM_ID_BYTES - 1] = 1;
}

FIXTURE_TEARDOWN(strangers)
{
	pair_end(&self->p);
}

TEST_F_TIMEOUT(strangers, who_asks_wrongly_is_told_so, 120)
{
	static const uint8_t last[HCOMM_ID_BYTES] = {
		255, 255, 255, 255, 255, 255, 255, 255,
		255, 255, 255, 255, 255, 255, 255, 255,
	};
	const struct hcomm_peer *from = &self->at[1], *to = &self->at[0];
	struct caller c;

	memset(self->hello, 0x5a, sizeof(self->hello));
	EXPECT_EQ(ask(&c, from, to, self->hello), EPROTO);
	hello_fill(self->hello, FIRST, self->name, 1);
	self->hello[4] = 200;
	self->hello[5] = 201;
	EXPECT_EQ(ask(&c, from, to, self->hello), EPROTO);
	hello_fill(self->hello, FIRST, last, 1);
	EXPECT_EQ(ask(&c, from, to, self->hello), EINVAL);
	hello_fill(self->hello, BULK, self->name, 1);
	EXPECT_EQ(ask(&c, from, to, self->hello), ESTALE);
	/* Of itself. */
	hello_fill(self->hello, POKE, to->instance_id, 0);
	EXPECT_EQ(ask(&c, from, to, self->hello), EINVAL);
}

TEST_F_TIMEOUT(strangers, the_highest_epoch_binds_nobody, 120)
{
	const struct hcomm_peer *from = &self->at[1], *to = &self->at[0];
	struct hcomm_peer *awaited = &self->p.peers[1];
	struct caller stranger, real;

	/* A member waits for the instance; nobody is where it should be. */
	memcpy(awaited->instance_id, self->name, HCOMM_ID_BYTES);
	awaited->port = 1;
	ASSERT_EQ(side_join(&self->p, 0), 0);

	hello_fill(self->hello, FIRST, self->name, UINT32_MAX);
	ASSERT_EQ(ask_again(&stranger, from, to, self->hello), 0);
	hello_fill(self->hello, FIRST, self->name, 1);
	EXPECT_EQ(ask_again(&real, from, to, self->hello), 0);
	hang_up(&real);
	hang_up(&stranger);
}

TEST_HARNESS_MAIN
