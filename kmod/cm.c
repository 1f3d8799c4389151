// SPDX-License-Identifier: GPL-2.0
/*
 * The connection manager's side: one wildcard listener per instance, the hello
 * in the private data of requests and answers, connecting and accepting.
 *
 * The instance with the smaller id connects, first the small queue pair, then
 * the bulk one; the first request of a session carries no token and gets it in
 * the answer, all later ones prove it. The larger one can only ask to be
 * connected to: a poke is a request that is always rejected.
 *
 * Handlers run with the id's handler mutex held. They never destroy an id (they
 * return non-zero for one that is not taken) and never wait; they act on the
 * connection, whose state says whether it is still wanted, and leave everything
 * that takes time to the path's work. hcomm_conn_destroy() passes through the
 * handler mutex, so no handler makes a queue pair behind its back.
 *
 * A request names the instance that makes it. Until it proves a token it ends no
 * session in which the peer was proven and is heard of.
 */
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>

#include "fabric.h"

#define HCOMM_RESOLVE_MS	2000
/*
 * 4.096 us << 14 is 67 ms.  On a software device a repetition that was not
 * needed, because both ends only lacked a processor, is worse than a late one:
 * rxe may receive messages twice then, and there it is 0.54 s.
 */
#define HCOMM_ACK_TIMEOUT	14
#define HCOMM_ACK_TIMEOUT_SOFT	17
#define HCOMM_RNR_TIMER		12	/* 0.64 ms */
#define HCOMM_RETRIES		7
#define HCOMM_BACKLOG		128

static int hcomm_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event);

static void hcomm_sockaddr(struct sockaddr_storage *ss, const u8 *addr, u16 port)
{
	const struct in6_addr *in6 = (const struct in6_addr *)addr;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (ipv6_addr_v4mapped(in6)) {
		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = in6->s6_addr32[3];
		sin->sin_port = htons(port);
	} else {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr = *in6;
		sin6->sin6_port = htons(port);
	}
}

static void hcomm_addr_of(const struct sockaddr_storage *ss, u8 *addr)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;

	if (ss->ss_family == AF_INET)
		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr,
				       (struct in6_addr *)addr);
	else
		memcpy(addr, &sin6->sin6_addr, 16);
}

static void hcomm_cm_param(struct rdma_conn_param *param, void *hello)
{
	memset(param, 0, sizeof(*param));
	param->private_data = hello;
	param->private_data_len = HCOMM_WIRE_HELLO;
	param->responder_resources = 1;
	param->initiator_depth = 1;
	param->retry_count = HCOMM_RETRIES;
	param->rnr_retry_count = HCOMM_RETRIES;
}

/* ------------------------------------------------ the connecting side */

static void hcomm_hello_fill(struct hcomm_wire_hello *hello,
			     struct hcomm_conn *conn)
{
	struct hcomm_session *session = conn->session;

	memset(hello, 0, sizeof(*hello));
	hello->version_min = HCOMM_WIRE_VERSION_MIN;
	hello->version_max = HCOMM_WIRE_VERSION_MAX;
	hello->path = conn->path->index;
	memcpy(hello->instance, session->fabric->instance->id, 16);
	hello->port = session->fabric->listen_port;
	if (conn->poke) {
		hello->kind = HCOMM_HELLO_POKE;
		return;
	}
	hello->credits = conn->rx.count;
	hello->epoch = conn->epoch;
	spin_lock_bh(&session->lock);
	memcpy(hello->nonce, session->nonce, 16);
	if (conn->kind == HCOMM_QP_BULK)
		hello->kind = HCOMM_HELLO_BULK;
	else if (session->state == HCOMM_SESSION_NEW)
		hello->kind = HCOMM_HELLO_FIRST;
	else
		hello->kind = HCOMM_HELLO_SMALL;
	if (hello->kind != HCOMM_HELLO_FIRST)
		hello->token = session->token;
	spin_unlock_bh(&session->lock);
}

/* The route is known: make the queue pair and ask. */
static int hcomm_cm_ask(struct hcomm_conn *conn)
{
	struct hcomm_wire_hello hello;
	struct rdma_conn_param param;
	u8 data[HCOMM_WIRE_HELLO];
	int ret;

	if (!conn->poke) {
		ret = hcomm_conn_setup(conn);
		if (ret)
			return ret;
	}
	hcomm_hello_fill(&hello, conn);
	hcomm_wire_hello_encode(&hello, data);
	hcomm_cm_param(&param, data);
	if (!hcomm_port_sends(conn->port, conn->id))
		return -ENETDOWN;
	conn->asked = true;
	return rdma_connect_locked(conn->id, &param);
}

/* The answer to our request. */
static int hcomm_cm_answered(struct hcomm_conn *conn,
			     const struct rdma_cm_event *event)
{
	struct hcomm_session *session = conn->session;
	struct hcomm_wire_hello hello;
	int ret;

	ret = hcomm_wire_hello_decode(event->param.conn.private_data,
				      event->param.conn.private_data_len,
				      &hello);
	if (ret)
		return ret;
	if (memcmp(hello.instance, session->peer, 16)) {
		/* Another instance is there now: the one we knew is gone. */
		if (session->state == HCOMM_SESSION_OPEN)
			hcomm_session_reset(session, -ECONNRESET);
		return -EHOSTUNREACH;
	}
	if (hello.epoch != conn->epoch || hello.path != conn->path->index)
		return -EPROTO;
	ret = hcomm_wire_negotiate(HCOMM_WIRE_VERSION_MIN,
				   HCOMM_WIRE_VERSION_MAX, hello.version_min,
				   hello.version_max);
	if (ret < 0)
		return ret;
	conn->peer_credits = hello.credits;
	spin_lock_bh(&session->lock);
	if (session->state == HCOMM_SESSION_NEW &&
	    conn->kind == HCOMM_QP_SMALL) {
		session->token = hello.token;
		memcpy(session->peer_nonce, hello.nonce, 16);
	} else if (session->token != hello.token) {
		ret = -EPROTO;
	}
	spin_unlock_bh(&session->lock);
	return ret < 0 ? ret : 0;
}

static int hcomm_cm_rejected(struct hcomm_conn *conn, struct rdma_cm_id *id,
			     struct rdma_cm_event *event)
{
	struct hcomm_session *session = conn->session;
	struct hcomm_wire_reject reject;
	const void *data;
	u8 len = 0;

	data = rdma_consumer_reject_data(id, event, &len);
	if (!data || hcomm_wire_reject_decode(data, len, &reject))
		return -ECONNREFUSED;
	switch (reject.reason) {
	case ESTALE:
		/* Not the session it knows: ours is history there. */
		if (session->state == HCOMM_SESSION_OPEN)
			hcomm_session_reset(session, -ECONNRESET);
		break;
	case EPROTONOSUPPORT:
		pr_warn_ratelimited("hcomm%u: a peer speaks versions %u to %u, we %u to %u\n",
				    session->fabric->nr, reject.version_min,
				    reject.version_max, HCOMM_WIRE_VERSION_MIN,
				    HCOMM_WIRE_VERSION_MAX);
		break;
	}
	return reject.reason && reject.reason <= MAX_ERRNO ?
	       -(int)reject.reason : -ECONNREFUSED;
}

/* Events of an id that we made, or that was accepted. */
static int hcomm_conn_event(struct hcomm_conn *conn, struct rdma_cm_id *id,
			    struct rdma_cm_event *event)
{
	int ret = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = rdma_resolve_route(id, HCOMM_RESOLVE_MS);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = hcomm_cm_ask(conn);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (conn->ours)
			ret = hcomm_cm_answered(conn, event);
		if (!ret)
			hcomm_path_established(conn);
		break;
	case RDMA_CM_EVENT_REJECTED:
		ret = hcomm_cm_rejected(conn, id, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		ret = event->status < 0 ? event->status : -EHOSTUNREACH;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		ret = -ENOTCONN;
		break;
	default:
		/* DEVICE_REMOVAL: our ib_client does that. TIMEWAIT_EXIT: late. */
		break;
	}
	if (ret && conn->poke) {
		WRITE_ONCE(conn->path->poke_over, true);
		hcomm_path_kick(conn->path);
	} else if (ret) {
		hcomm_conn_error(conn, ret);
	}
	return 0;
}

static int hcomm_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct hcomm_conn *conn = id->context;

	/* Buried, or on the way there. */
	if (!conn || READ_ONCE(conn->state) == HCOMM_CONN_CLOSED)
		return 0;
	return hcomm_conn_event(conn, id, event);
}

/* Only for RoCE and InfiniBand; others keep their own. */
static void hcomm_cm_timers(struct rdma_cm_id *id,
			    const struct hcomm_port *port)
{
	bool soft = port->rdev->ib->ops.driver_id == RDMA_DRIVER_RXE;

	rdma_set_ack_timeout(id, soft ? HCOMM_ACK_TIMEOUT_SOFT :
					HCOMM_ACK_TIMEOUT);
	rdma_set_min_rnr_timer(id, HCOMM_RNR_TIMER);
}

/* Makes the id of @conn. */
static int hcomm_cm_id(struct hcomm_conn *conn)
{
	struct rdma_cm_id *id;

	id = rdma_create_id(&init_net, hcomm_cm_event, conn, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->id = id;
	conn->ours = true;
	hcomm_cm_timers(id, conn->port);
	return 0;
}

static int hcomm_cm_resolve(struct hcomm_conn *conn, const u8 *src,
			    const u8 *dst, u16 dst_port)
{
	struct sockaddr_storage from, to;

	hcomm_sockaddr(&from, src, 0);
	hcomm_sockaddr(&to, dst, dst_port);
	return rdma_resolve_addr(conn->id, (struct sockaddr *)&from,
				 (struct sockaddr *)&to, HCOMM_RESOLVE_MS);
}

int hcomm_cm_connect(struct hcomm_path *path, enum hcomm_wire_qp kind,
		     struct hcomm_port *port, u32 epoch)
{
	struct hcomm_session *session = path->session;
	struct hcomm_conn *conn;
	int ret;

	conn = hcomm_conn_create(path, kind, epoch, port);
	if (!conn) {
		hcomm_port_put(port);
		return -ENOMEM;
	}
	ret = hcomm_cm_id(conn);
	if (ret)
		goto err;
	spin_lock_bh(&session->lock);
	if (path->state != HCOMM_PATH_CONNECTING || path->epoch != epoch)
		ret = -ECANCELED;
	else
		rcu_assign_pointer(path->conn[kind], conn);
	spin_unlock_bh(&session->lock);
	if (ret)
		goto err;
	/* On its path: from here the path's work destroys it. */
	return hcomm_cm_resolve(conn, path->src, path->dst, path->dst_port);

err:
	hcomm_conn_destroy(conn);
	return ret;
}

struct hcomm_conn *hcomm_cm_poke(struct hcomm_path *path,
				 struct hcomm_port *port, const u8 *src,
				 const u8 *dst, u16 dst_port)
{
	struct hcomm_conn *conn;

	conn = hcomm_conn_create(path, HCOMM_QP_SMALL, 0, port);
	if (!conn) {
		hcomm_port_put(port);
		return NULL;
	}
	conn->poke = true;
	if (hcomm_cm_id(conn) || hcomm_cm_resolve(conn, src, dst, dst_port)) {
		hcomm_conn_destroy(conn);
		return NULL;
	}
	return conn;
}

/* ------------------------------------------------- the accepting side */

static int hcomm_cm_reject(struct rdma_cm_id *id, int reason)
{
	struct hcomm_wire_reject reject = {
		.version_min = HCOMM_WIRE_VERSION_MIN,
		.version_max = HCOMM_WIRE_VERSION_MAX,
		.reason = reason,
	};
	u8 data[HCOMM_WIRE_REJECT];

	hcomm_wire_reject_encode(&reject, data);
	rdma_reject(id, data, sizeof(data), IB_CM_REJ_CONSUMER_DEFINED);
	/* Not ours: the caller destroys it. */
	return -reason;
}

/* Checks @hello against the session and moves the path for it. */
static int hcomm_cm_admit(struct hcomm_session *session,
			  const struct hcomm_wire_hello *hello)
{
	struct hcomm_path *path = &session->path;
	struct hcomm_fence_result result = {};
	int ret;

	lockdep_assert_held(&session->lock);
	if (session->state == HCOMM_SESSION_DEAD ||
	    (hello->kind == HCOMM_HELLO_FIRST &&
	     session->state != HCOMM_SESSION_NEW))
		return -EAGAIN;
	if (hello->kind != HCOMM_HELLO_FIRST &&
	    (session->token != hello->token || !hello->token))
		return -ESTALE;
	if (hello->kind == HCOMM_HELLO_BULK) {
		if (path->state != HCOMM_PATH_CONNECTING ||
		    path->epoch != hello->epoch ||
		    !rcu_access_pointer(path->conn[HCOMM_QP_SMALL]) ||
		    rcu_access_pointer(path->conn[HCOMM_QP_BULK]))
			return -EAGAIN;
		return 0;
	}
	if (hello->kind == HCOMM_HELLO_FIRST)
		ret = hcomm_fence_accept_first(&session->fence, path->index,
					       hello->epoch, &result);
	else
		ret = hcomm_fence_accept(&session->fence, path->index,
					 hello->epoch, &result);
	if (result.lost)
		hcomm_path_lost(path, HCOMM_PATH_DRAINING, -ENOTCONN);
	if (ret)
		return -EAGAIN;
	if (hello->kind == HCOMM_HELLO_FIRST) {
		memcpy(session->peer_nonce, hello->nonce, 16);
		session->token = get_random_u64();
	}
	hcomm_path_move(&path->state, HCOMM_PATH_CONNECTING);
	path->epoch = hello->epoch;
	path->deadline = jiffies + 10 * HZ;
	return 0;
}

/* Takes the id over: from here it belongs to the path's work. */
static int hcomm_cm_publish(struct hcomm_conn *conn)
{
	struct hcomm_path *path = conn->path;
	struct hcomm_session *session = conn->session;
	int ret = 0;

	spin_lock_bh(&session->lock);
	if (path->state != HCOMM_PATH_CONNECTING || path->epoch != conn->epoch ||
	    rcu_access_pointer(path->conn[conn->kind]))
		ret = -EAGAIN;
	else
		rcu_assign_pointer(path->conn[conn->kind], conn);
	spin_unlock_bh(&session->lock);
	return ret;
}

/* 0: the id is taken. */
static int hcomm_cm_accept(struct hcomm_session *session,
			   struct hcomm_port *port, struct rdma_cm_id *id,
			   const struct hcomm_wire_hello *hello)
{
	struct hcomm_path *path = &session->path;
	struct hcomm_wire_hello answer;
	struct rdma_conn_param param;
	struct hcomm_conn *conn;
	u8 data[HCOMM_WIRE_HELLO];
	int ret;

	conn = hcomm_conn_create(path, hello->kind == HCOMM_HELLO_BULK ?
				 HCOMM_QP_BULK : HCOMM_QP_SMALL, hello->epoch,
				 port);
	if (!conn)
		return -ENOMEM;
	hcomm_rdev_get(port->rdev);
	conn->id = id;
	conn->peer_credits = hello->credits;
	conn->asked = true;
	hcomm_cm_timers(id, port);
	ret = hcomm_conn_setup(conn);
	if (ret)
		goto err;
	hcomm_hello_fill(&answer, conn);
	answer.version_min = HCOMM_WIRE_VERSION_MAX;
	answer.version_max = HCOMM_WIRE_VERSION_MAX;
	answer.kind = hello->kind;
	answer.token = session->token;
	id->context = conn;
	id->event_handler = hcomm_cm_event;
	ret = hcomm_cm_publish(conn);
	if (ret)
		goto err;
	spin_lock_bh(&session->lock);
	hcomm_addr_of(&id->route.addr.src_addr, path->src);
	hcomm_addr_of(&id->route.addr.dst_addr, path->dst);
	path->dst_port = hello->port;
	spin_unlock_bh(&session->lock);
	hcomm_wire_hello_encode(&answer, data);
	hcomm_cm_param(&param, data);
	ret = rdma_accept(id, &param);
	if (ret)
		hcomm_conn_error(conn, ret);
	else
		hcomm_path_kick(path);
	return 0;

err:
	hcomm_conn_abandon(conn);
	return ret;
}

/* A peer with a larger id has something for us. */
static int hcomm_cm_poked(struct hcomm_fabric *fabric, struct rdma_cm_id *id,
			  const struct hcomm_wire_hello *hello)
{
	struct hcomm_session *session;
	struct hcomm_peer peer = { .port = hello->port };

	if (memcmp(hello->instance, fabric->instance->id, 16) <= 0)
		return hcomm_cm_reject(id, EINVAL);
	memcpy(peer.instance_id, hello->instance, 16);
	hcomm_addr_of(&id->route.addr.dst_addr, peer.addr);
	session = hcomm_session_want(fabric, &peer, NULL);
	/* Wanting it has started the path's work. */
	if (!IS_ERR(session)) {
		/* Who asks is not whom we are connected to, if we are. */
		hcomm_session_superseded(session);
		hcomm_session_put(session);
	}
	return hcomm_cm_reject(id, EALREADY);
}

static int hcomm_cm_request(struct hcomm_fabric *fabric, struct rdma_cm_id *id,
			    const struct rdma_cm_event *event)
{
	struct hcomm_session *session;
	struct hcomm_wire_hello hello;
	struct hcomm_port *port;
	int ret;

	if (hcomm_wire_hello_decode(event->param.conn.private_data,
				    event->param.conn.private_data_len, &hello))
		return hcomm_cm_reject(id, EPROTO);
	if (hcomm_wire_negotiate(HCOMM_WIRE_VERSION_MIN, HCOMM_WIRE_VERSION_MAX,
				 hello.version_min, hello.version_max) < 0)
		return hcomm_cm_reject(id, EPROTONOSUPPORT);
	if (hello.kind == HCOMM_HELLO_POKE)
		return hcomm_cm_poked(fabric, id, &hello);
	if (hello.path || memcmp(hello.instance, fabric->instance->id, 16) >= 0)
		return hcomm_cm_reject(id, EINVAL);

	if (hello.kind == HCOMM_HELLO_FIRST)
		session = hcomm_session_accept(fabric, hello.instance);
	else
		session = hcomm_session_find(fabric, hello.instance);
	if (IS_ERR_OR_NULL(session))
		return hcomm_cm_reject(id, session ? EAGAIN : ESTALE);
	port = hcomm_port_of_id(fabric, id);
	if (!port) {
		ret = -ENETUNREACH;
		goto out;
	}
	spin_lock_bh(&session->lock);
	ret = hcomm_cm_admit(session, &hello);
	spin_unlock_bh(&session->lock);
	if (!ret) {
		ret = hcomm_cm_accept(session, port, id, &hello);
		if (ret)
			hcomm_path_error(&session->path, ret);
	}
	hcomm_port_put(port);
out:
	if (hello.kind == HCOMM_HELLO_FIRST && ret == -EAGAIN)
		hcomm_session_superseded(session);
	hcomm_session_put(session);
	return ret ? hcomm_cm_reject(id, -ret) : 0;
}

static int hcomm_listen_event(struct rdma_cm_id *id,
			      struct rdma_cm_event *event)
{
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	return hcomm_cm_request(id->context, id, event);
}

static struct rdma_cm_id *hcomm_listen_on(struct hcomm_fabric *fabric,
					  const u8 *addr, u16 port)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(&init_net, hcomm_listen_event, fabric, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	hcomm_sockaddr(&ss, addr, port);
	if (ss.ss_family == AF_INET6)
		rdma_set_afonly(id, 0);
	ret = rdma_bind_addr(id, (struct sockaddr *)&ss);
	if (!ret)
		ret = rdma_listen(id, HCOMM_BACKLOG);
	if (ret) {
		rdma_destroy_id(id);
		return ERR_PTR(ret);
	}
	return id;
}

/* IPv6 with IPv4 in it; where there is no IPv6, IPv4 alone. */
int hcomm_cm_listen(struct hcomm_fabric *fabric)
{
	static const u8 any4[16] = { [10] = 0xff, [11] = 0xff };
	static const u8 any6[16];
	u16 port = hcomm_base_port + fabric->nr;
	struct rdma_cm_id *id;

	id = hcomm_listen_on(fabric, any6, port);
	if (IS_ERR(id))
		id = hcomm_listen_on(fabric, any4, port);
	if (IS_ERR(id))
		return PTR_ERR(id);
	fabric->listener = id;
	fabric->listen_port = port;
	return 0;
}

/* After it no request is being handled. */
void hcomm_cm_unlisten(struct hcomm_fabric *fabric)
{
	if (fabric->listener)
		rdma_destroy_id(fabric->listener);
	fabric->listener = NULL;
}
