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

#define HEADER_BYTES	64
#define BY_THE_CONSUMER	28	/* a reason of the connection manager */

enum { FIRST = 1, BULK = 3, POKE = 4 };
enum { WIN_REVOKE = 36 };

struct caller {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	bool talks;		/* has a queue pair of its own */
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
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->id)
		rdma_destroy_id(c->id);
	if (c->channel)
		rdma_destroy_event_channel(c->channel);
	c->id = NULL;
	c->channel = NULL;
}

static int make_queue_pair(struct caller *c)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
			.max_inline_data = HEADER_BYTES,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	return rdma_create_qp(c->id, NULL, &attr);
}

/* Sends one message and waits until it has been received. */
static bool say(struct caller *c, const uint8_t *header)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)header, .length = HEADER_BYTES,
	};
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE,
	};
	uint64_t end = now_ns() + 10 * SEC;
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };

	if (ibv_post_send(c->id->qp, &wr, &bad))
		return false;
	while (!ibv_poll_cq(c->id->send_cq, 1, &wc) && now_ns() < end)
		sched_yield();
	return wc.status == IBV_WC_SUCCESS;
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
	};
	static uint32_t nobody = 0x42;
	struct rdma_cm_event *event;
	int result = -1;
	uint32_t reason;

	/* A queue pair that asks again would be known to the manager. */
	param.qp_num = nobody++;
	c->channel = rdma_create_event_channel();
	if (!c->channel || rdma_create_id(c->channel, &c->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(c->id, (struct sockaddr *)&src,
			      (struct sockaddr *)&dst, 2000) ||
	    !expect(c, RDMA_CM_EVENT_ADDR_RESOLVED) ||
	    rdma_resolve_route(c->id, 2000) ||
	    !expect(c, RDMA_CM_EVENT_ROUTE_RESOLVED) ||
	    (c->talks && make_queue_pair(c)) || rdma_connect(c->id, &param))
		goto out;
	event = next_event(c);
	if (!event)
		goto out;
	if (event->event == (c->talks ? RDMA_CM_EVENT_ESTABLISHED :
				       RDMA_CM_EVENT_CONNECT_RESPONSE)) {
		result = 0;
	} else if (event->event == RDMA_CM_EVENT_REJECTED &&
		   event->status == BY_THE_CONSUMER &&
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
	struct caller c = {};

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
	struct caller stranger = {}, real = {};

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

/* Else the real peer's first messages would be taken for repetitions. */
TEST_F_TIMEOUT(strangers, what_is_said_before_both_stand_is_forgotten, 120)
{
	unsigned int small = memcmp(self->at[0].instance_id,
				    self->at[1].instance_id,
				    HCOMM_ID_BYTES) > 0;
	const struct hcomm_peer *from = &self->at[small];
	const struct hcomm_peer *to = &self->at[1 - small];
	struct caller stranger = { .talks = true };
	uint8_t header[HEADER_BYTES] = { WIN_REVOKE };
	struct hcomm_event event;
	unsigned int i;

	hello_fill(self->hello, FIRST, from->instance_id, 1);
	ASSERT_EQ(ask_again(&stranger, from, to, self->hello), 0);
	put32(header + 4, 99);		/* a group that there is not */
	for (i = 0; i < 3; i++) {
		put32(header + 16, i);
		ASSERT_TRUE(say(&stranger, header));
	}
	hang_up(&stranger);
	for (i = 0; i < PAIR; i++)
		ASSERT_EQ(side_join(&self->p, i), 0);
	for (i = 0; i < PAIR; i++)
		EXPECT_TRUE(wait_event(&self->p.side[i].r,
				       HCOMM_EVENT_MEMBER_UP, &event));
}

TEST_HARNESS_MAIN
