// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions: one per pair of instances, shared by all groups, keyed by the id
 * that the peer's kernel states.
 *
 * Life. A member that names a peer, a peer that asks or pokes makes a session
 * (NEW). It is OPEN from its first connection on; the path may then be lost
 * and come back, and the fence and the control stream see to it that nothing
 * is lost or done twice. It is DEAD once hcomm_session_reset() was called, by
 * whoever finds a reason; end_work then takes it apart: off the list, path
 * down and drained, links ended with a fault for every group that had a proven
 * rank there. A session is never revived; a new one gets a new token and new
 * nonces, so nothing of the old one counts there.
 *
 * Liveness. Only received messages prove a peer kernel alive. Every second
 * each side sends a heartbeat over a connected path; after 5 silent seconds
 * the path is taken for dead, whatever the queue pair says. A session whose
 * peer is silent for dead_after_ms (5 s) is reset, CAUSE_NODE, provided that the
 * port over which it was last heard is active all that time (any, if that one
 * is gone): with the local link down nothing can be heard and nothing follows
 * from it, so the clock stands still until the port is back, and the ops' own
 * deadlines decide. Meanwhile other ports are tried. A peer that lost only its
 * link is therefore survived as long as both ends notice (a cable, a veth) or
 * it is back in time; behind a switch its silence cannot be told from death.
 * A restarted peer has another id or does not know our token and says so: then
 * the session is reset at once. One that does not connect is given up when a group
 * has waited 60 s for it; groups that came later look again.
 * One without any member of ours for 5 s ends, with a goodbye if it can be said:
 * so no side ends it that has a proof under way.
 *
 * Received control and fence messages are handled in order by inbox_work, in
 * process context and once both queue pairs stand; only after a message was
 * handled is it acknowledged. The path's work flushes it before it tells the
 * fence that a connection is drained. No work item waits for a message.
 *
 * References: the fabric's list, each link, each CM handler or builder that
 * runs. The path, its connections and the works live inside and are stopped by
 * end_work before it drops the list's reference.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "fabric.h"
#include "limits.h"
#include "member.h"
#include "op.h"
#include "proc.h"
#include "session.h"

#define HCOMM_TICK		HZ
#define HCOMM_SILENCE_MS	5000
#define HCOMM_USELESS_MS	5000
#define HCOMM_SILENT_UNPROVEN_MS	2000	/* then it gives way */
#define HCOMM_NOTES_IN_FLIGHT	64
#define HCOMM_INBOX_MAX		1024
#define HCOMM_INBOX_NEW		128	/* of whoever it is */
#define HCOMM_SESSIONS_NEW	256
#define HCOMM_SESSIONS_NEW_UID	64
#define HCOMM_SESSIONS_BIG	64

unsigned int hcomm_send_depth = 1024;
module_param_named(send_queue_depth, hcomm_send_depth, uint, 0444);
MODULE_PARM_DESC(send_queue_depth, "entries of a bulk send queue of the first 64 sessions, an eighth beyond (1024)");

unsigned int hcomm_recv_depth = 2048;
module_param_named(recv_queue_depth, hcomm_recv_depth, uint, 0444);
MODULE_PARM_DESC(recv_queue_depth, "entries of a bulk receive queue of the first 64 sessions, an eighth beyond (2048)");

unsigned int hcomm_dead_after_ms = 5000;
module_param_named(dead_after_ms, hcomm_dead_after_ms, uint, 0644);
MODULE_PARM_DESC(dead_after_ms, "a peer silent for so long is dead, while our port to it is up (5000)");

static struct hcomm_fabric *hcomm_fabrics[HCOMM_MAX_INSTANCES];

/* ------------------------------------------------- reference, state */

void hcomm_session_get(struct hcomm_session *session)
{
	kref_get(&session->ref);
}

static void hcomm_session_release(struct kref *ref)
{
	struct hcomm_session *session = container_of(ref, struct hcomm_session,
						     ref);
	struct hcomm_fabric *fabric = session->fabric;

	xa_destroy(&session->handles);
	memzero_explicit(&session->token, sizeof(session->token));
	spin_lock_bh(&fabric->lock);
	fabric->nr_big -= session->big;
	if (!--fabric->nr_sessions)
		wake_up(&fabric->idle);
	spin_unlock_bh(&fabric->lock);
	kfree_rcu(session, rcu);
}

void hcomm_session_put(struct hcomm_session *session)
{
	kref_put(&session->ref, hcomm_session_release);
}

static void hcomm_session_die(struct hcomm_session *session, int error)
{
	lockdep_assert_held(&session->lock);
	session->state = HCOMM_SESSION_DEAD;
	session->error = error;
	hcomm_path_lost(&session->path, HCOMM_PATH_CLOSING, error);
	queue_work(hcomm_teardown_wq, &session->end_work);
}

bool hcomm_session_reset(struct hcomm_session *session, int error)
{
	bool first;

	spin_lock_bh(&session->lock);
	first = session->state != HCOMM_SESSION_DEAD;
	if (first)
		hcomm_session_die(session, error);
	spin_unlock_bh(&session->lock);
	return first;
}

/* Nobody answered in time; one that opens meanwhile stays. */
static void hcomm_session_unreached(struct hcomm_session *session)
{
	spin_lock_bh(&session->lock);
	if (session->state == HCOMM_SESSION_NEW)
		hcomm_session_die(session, -ENETUNREACH);
	spin_unlock_bh(&session->lock);
}

void hcomm_session_violated(struct hcomm_session *session,
			    const struct hcomm_wire_hdr *h, const char *why)
{
	hcomm_session_reset_for(session, -EPROTO,
				"%s: %s of rank %u to %u, seq %llu ack %u part %u/%u aux %u, on epoch %u",
				why, hcomm_wire_type_name(h->type), h->src,
				h->dst, h->seq, h->ack, h->part, h->parts,
				h->aux, READ_ONCE(session->path.epoch));
}

void hcomm_session_superseded(struct hcomm_session *session)
{
	ktime_t now = ktime_get();
	s64 silent, age;
	bool yields;

	/* One that opens meanwhile has been heard of. */
	spin_lock_bh(&session->lock);
	silent = ktime_ms_delta(now, READ_ONCE(session->heard));
	age = ktime_ms_delta(now, session->opened);
	if (READ_ONCE(session->proven))
		yields = silent > READ_ONCE(hcomm_dead_after_ms);
	else
		yields = silent > HCOMM_SILENT_UNPROVEN_MS ||
			 age > HCOMM_USELESS_MS;
	if (yields && session->state == HCOMM_SESSION_OPEN)
		hcomm_session_die(session, -ECONNRESET);
	spin_unlock_bh(&session->lock);
}

/* ------------------------------------------------- control stream */

struct hcomm_note *hcomm_note_alloc(u8 type, u32 payload_len, gfp_t gfp)
{
	struct hcomm_note *note;

	note = kzalloc(struct_size(note, payload, payload_len), gfp);
	if (!note)
		return NULL;
	INIT_LIST_HEAD(&note->msg.node);
	note->msg.hdr.type = type;
	note->msg.payload_len = payload_len;
	return note;
}

static void hcomm_notes_finish(struct list_head *notes, bool delivered)
{
	struct hcomm_note *note, *next;

	list_for_each_entry_safe(note, next, notes, msg.node) {
		list_del_init(&note->msg.node);
		if (note->done)
			note->done(note, delivered);
		kfree(note);
	}
}

u64 hcomm_session_note(struct hcomm_session *session, struct hcomm_note *note)
{
	LIST_HEAD(refused);
	bool swamped;
	u64 seq = 0;

	spin_lock_bh(&session->lock);
	if (session->state == HCOMM_SESSION_DEAD)
		list_add(&note->msg.node, &refused);
	else
		seq = hcomm_ctl_queue(&session->ctl, &note->msg);
	swamped = hcomm_ctl_swamped(&session->ctl);
	spin_unlock_bh(&session->lock);
	hcomm_notes_finish(&refused, false);
	if (swamped)
		hcomm_session_reset_for(session, -EPROTO,
					"asks on and takes note of none of %u answers",
					HCOMM_CTL_ANSWERS_MAX);
	hcomm_session_push(session);
	return seq;
}

static void hcomm_session_apply(struct hcomm_session *session,
				const struct hcomm_fence_result *result)
{
	struct hcomm_path *path = &session->path;

	lockdep_assert_held(&session->lock);
	if (result->lost & BIT(path->index))
		hcomm_path_lost(path, HCOMM_PATH_DRAINING, -ENOTCONN);
	if (result->cleared & BIT(path->index) &&
	    hcomm_path_move(&path->state, HCOMM_PATH_UP)) {
		hcomm_path_trace(path, HCOMM_PATH_FENCING);
		WRITE_ONCE(path->clear, true);
		path->announced = true;
		session->kick = true;
		queue_work(hcomm_progress_wq, &session->inbox_work);
	}
}

static void hcomm_session_fence(struct hcomm_session *session)
{
	struct hcomm_fence_result result = {};

	lockdep_assert_held(&session->lock);
	hcomm_fence_connected(&session->fence, session->path.index, &result);
	hcomm_session_apply(session, &result);
}

static void hcomm_push_notes(struct hcomm_session *session,
			     struct hcomm_conn *conn)
{
	unsigned int via = session->path.index;
	struct hcomm_ctl_msg *msg;
	struct hcomm_wire_hdr hdr;
	struct hcomm_send *send;
	u8 *buf;

	while ((msg = hcomm_ctl_peek(&session->ctl, via))) {
		if (msg->hdr.seq - session->ctl.tx_una >= HCOMM_NOTES_IN_FLIGHT)
			break;
		send = hcomm_conn_reserve(conn, HCOMM_CREDIT_CONTROL, 1);
		if (!send)
			break;
		hdr = msg->hdr;
		hdr.credits = send->credits;
		buf = hcomm_send_buf(send);
		hcomm_wire_encode(&hdr, buf);
		memcpy(buf + HCOMM_WIRE_HEADER,
		       container_of(msg, struct hcomm_note, msg)->payload,
		       msg->payload_len);
		hcomm_conn_post(send, HCOMM_WIRE_HEADER + msg->payload_len,
				NULL, 0);
		hcomm_ctl_sent(&session->ctl, via);
	}
}

static void hcomm_push_fence(struct hcomm_session *session,
			     struct hcomm_conn *conn)
{
	unsigned int via = session->path.index;
	struct hcomm_send *send;
	u32 len;

	while (hcomm_fence_wants(&session->fence, via)) {
		send = hcomm_conn_reserve(conn, HCOMM_CREDIT_CONTROL, 1);
		if (!send)
			break;
		len = hcomm_fence_next(&session->fence, via, send->credits,
				       hcomm_send_buf(send));
		if (!len) {
			hcomm_conn_unreserve(send);
			break;
		}
		hcomm_conn_post(send, len, NULL, 0);
	}
}

void hcomm_session_push(struct hcomm_session *session)
{
	struct hcomm_path *path = &session->path;
	struct hcomm_wire_hdr ack = { .type = HCOMM_WIRE_CTL_ACK };
	struct hcomm_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(path->conn[HCOMM_QP_SMALL]);
	if (!conn)
		goto out;
	spin_lock_bh(&session->lock);
	if (hcomm_path_connected(path->state)) {
		hcomm_push_notes(session, conn);
		/* New keys go before the report after which they are used. */
		if (session->rekeyed && !hcomm_ctl_peek(&session->ctl,
							path->index)) {
			session->rekeyed = false;
			hcomm_session_fence(session);
		}
		hcomm_push_fence(session, conn);
		if (session->ack_owed) {
			ack.seq = hcomm_ctl_ack_value(&session->ctl);
			session->ack_owed =
				!hcomm_conn_send_header(conn,
							HCOMM_CREDIT_CONTROL,
							&ack);
		}
	}
	spin_unlock_bh(&session->lock);
out:
	rcu_read_unlock();
}

/* Both queue pairs of connection @epoch stand. */
void hcomm_session_connected(struct hcomm_session *session, u32 epoch)
{
	struct hcomm_path *path = &session->path;
	struct hcomm_conn *conn;
	u64 serial;

	spin_lock_bh(&session->lock);
	conn = rcu_dereference_protected(path->conn[HCOMM_QP_SMALL],
					 lockdep_is_held(&session->lock));
	if (session->state == HCOMM_SESSION_DEAD || !conn ||
	    path->epoch != epoch ||
	    !hcomm_path_move(&path->state, HCOMM_PATH_FENCING)) {
		spin_unlock_bh(&session->lock);
		return;
	}
	hcomm_path_trace(path, HCOMM_PATH_CONNECTING);
	path->attempt = 0;
	session->heard = ktime_get();
	if (session->state == HCOMM_SESSION_NEW) {
		session->state = HCOMM_SESSION_OPEN;
		WRITE_ONCE(session->opened, session->heard);
		session->first = true;
		queue_work(hcomm_progress_wq, &session->inbox_work);
		/* The other addresses were hearsay. */
		memcpy(session->candidates[0].addr, path->dst, 16);
		session->candidates[0].port = path->dst_port;
		session->nr_candidates = 1;
		WRITE_ONCE(session->useless, 0);
	} else {
		path->reconnects++;
	}
	/* Keys of another device are worth nothing: advert_work makes new ones. */
	serial = conn->port->rdev->serial;
	if (session->rekeyed || (path->home.rdev && path->home.rdev != serial))
		session->rekey = true;
	path->home.rdev = serial;
	path->home.port = conn->port->nr;
	session->rekeyed = false;
	if (!session->rekey)
		hcomm_session_fence(session);
	spin_unlock_bh(&session->lock);

	/* A poke that brought this about is over. */
	hcomm_path_kick(path);
	hcomm_session_advertise(session);
	hcomm_session_push(session);
}

/* The peer has taken note of everything before @next. */
static int hcomm_session_acked(struct hcomm_session *session, u64 next)
{
	LIST_HEAD(done);
	bool lift;
	int ret;

	spin_lock_bh(&session->lock);
	ret = hcomm_ctl_ack(&session->ctl, next, &done);
	lift = session->nacks && !list_empty(&done);
	spin_unlock_bh(&session->lock);
	hcomm_notes_finish(&done, true);
	if (ret)
		return ret;
	if (lift)
		hcomm_streams_lift(session, next);
	/* There may be room for more notes in flight. */
	hcomm_session_push(session);
	return 0;
}

/* --------------------------------------------------------- inbox */

static int hcomm_session_fenced(struct hcomm_session *session,
				const struct hcomm_wire_msg *m)
{
	struct hcomm_fence_result result = {};
	LIST_HEAD(done);
	int ret;

	spin_lock_bh(&session->lock);
	ret = hcomm_fence_receive(&session->fence, session->path.index, m,
				  &done, &result);
	hcomm_session_apply(session, &result);
	spin_unlock_bh(&session->lock);
	hcomm_xfers_done(&done);
	if (!ret && result.send)
		hcomm_session_push(session);
	return ret;
}

static int hcomm_control_handle(struct hcomm_session *session,
				const struct hcomm_wire_msg *m)
{
	switch (m->h.type) {
	case HCOMM_WIRE_PROVE:
		return hcomm_link_prove_received(session, m);
	case HCOMM_WIRE_PROVE_FAIL:
		hcomm_link_prove_failed(session, m);
		return 0;
	case HCOMM_WIRE_MEMBER_GONE:
		hcomm_link_remote_gone(session, m);
		return 0;
	case HCOMM_WIRE_WIN_ADVERT:
		return hcomm_advert_received(session, m);
	case HCOMM_WIRE_WIN_REVOKE:
		return hcomm_revoke_received(session, m);
	case HCOMM_WIRE_WIN_REVOKED:
		hcomm_revoked_received(session, m);
		return 0;
	case HCOMM_WIRE_NACK:
		return hcomm_nack_received(session, m);
	case HCOMM_WIRE_GROUP_ABORT:
		hcomm_link_abort_received(session, m);
		return 0;
	default:
		/* PATHS: there is one path. */
		return 0;
	}
}

/* Handled first, then acknowledged: what follows may rely on it. */
static int hcomm_session_control(struct hcomm_session *session,
				 const struct hcomm_wire_msg *m)
{
	u64 next;
	int ret;

	spin_lock_bh(&session->lock);
	next = session->ctl.rx_next;
	spin_unlock_bh(&session->lock);
	if (m->h.seq > next)
		return -EPROTO;
	ret = m->h.seq == next ? hcomm_control_handle(session, m) : 0;
	spin_lock_bh(&session->lock);
	hcomm_ctl_receive(&session->ctl, m->h.seq);
	session->ack_owed = true;
	spin_unlock_bh(&session->lock);
	return ret;
}

static void hcomm_session_heartbeat(struct hcomm_session *session,
				    const struct hcomm_wire_msg *m)
{
	struct hcomm_wire_hdr reply = {
		.type = HCOMM_WIRE_HEARTBEAT,
		.flags = HCOMM_WIRE_F_REPLY,
		.offset = m ? m->h.offset : ktime_get_ns(),
	};
	struct hcomm_conn *conn;

	if (!m)
		reply.flags = 0;
	rcu_read_lock();
	conn = rcu_dereference(session->path.conn[HCOMM_QP_SMALL]);
	spin_lock_bh(&session->lock);
	if (conn && hcomm_path_connected(session->path.state)) {
		reply.seq = hcomm_ctl_ack_value(&session->ctl);
		hcomm_conn_send_header(conn, HCOMM_CREDIT_CONTROL, &reply);
	}
	spin_unlock_bh(&session->lock);
	rcu_read_unlock();
}

static void hcomm_letter_handle(struct hcomm_session *session,
				struct hcomm_letter *letter)
{
	struct hcomm_wire_msg m;
	int ret;

	ret = hcomm_wire_decode(letter->data, letter->len, HCOMM_QP_SMALL, &m);
	if (ret)
		goto out;
	switch (m.h.type) {
	case HCOMM_WIRE_FENCED:
	case HCOMM_WIRE_FENCE_ACK:
		ret = hcomm_session_fenced(session, &m);
		break;
	case HCOMM_WIRE_HEARTBEAT:
		ret = hcomm_session_acked(session, m.h.seq);
		if (!(m.h.flags & HCOMM_WIRE_F_REPLY))
			hcomm_session_heartbeat(session, &m);
		break;
	case HCOMM_WIRE_CTL_ACK:
		ret = hcomm_session_acked(session, m.h.seq);
		break;
	case HCOMM_WIRE_GOODBYE:
		hcomm_session_reset(session, -ECONNRESET);
		break;
	default:
		ret = hcomm_session_control(session, &m);
		break;
	}
out:
	if (ret == -EPROTO)
		hcomm_session_violated(session, &m.h,
				       "a message about the session is wrong");
	else if (ret)
		hcomm_session_reset(session, ret);
}

static struct hcomm_letter *hcomm_letter_next(struct hcomm_session *session)
{
	struct hcomm_letter *letter;

	spin_lock_bh(&session->lock);
	letter = list_first_entry_or_null(&session->inbox, struct hcomm_letter,
					  node);
	/* What came before the connection stands waits for that. */
	if (session->state == HCOMM_SESSION_NEW)
		letter = NULL;
	if (letter) {
		list_del(&letter->node);
		session->inbox_count--;
	}
	spin_unlock_bh(&session->lock);
	return letter;
}

static void hcomm_inbox_work(struct work_struct *work)
{
	struct hcomm_session *session = container_of(work, struct hcomm_session,
						     inbox_work);
	struct hcomm_letter *letter;
	bool first, kick;

	spin_lock_bh(&session->lock);
	first = session->first;
	session->first = false;
	spin_unlock_bh(&session->lock);
	if (first)
		hcomm_link_prove_all(session);
	while ((letter = hcomm_letter_next(session))) {
		hcomm_letter_handle(session, letter);
		kfree(letter);
		cond_resched();
	}
	hcomm_session_push(session);

	spin_lock_bh(&session->lock);
	kick = session->kick;
	session->kick = false;
	spin_unlock_bh(&session->lock);
	if (kick) {
		hcomm_links_path_event(session, HCOMM_EVENT_PATH_UP);
		hcomm_streams_kick(session);
	}
}

void hcomm_session_unheard(struct hcomm_session *session)
{
	struct hcomm_letter *letter, *next;
	LIST_HEAD(letters);

	spin_lock_bh(&session->lock);
	if (session->state == HCOMM_SESSION_NEW) {
		list_splice_init(&session->inbox, &letters);
		session->inbox_count = 0;
	}
	spin_unlock_bh(&session->lock);
	list_for_each_entry_safe(letter, next, &letters, node)
		kfree(letter);
}

/* False: the inbox is full. */
static bool hcomm_inbox_add(struct hcomm_session *session,
			    struct hcomm_letter *letter)
{
	bool room;

	spin_lock_bh(&session->lock);
	room = session->inbox_count < (session->state == HCOMM_SESSION_NEW ?
				       HCOMM_INBOX_NEW : HCOMM_INBOX_MAX);
	if (room) {
		session->inbox_count++;
		list_add_tail(&letter->node, &session->inbox);
		queue_work(hcomm_progress_wq, &session->inbox_work);
	}
	spin_unlock_bh(&session->lock);
	return room;
}

void hcomm_session_received(struct hcomm_conn *conn,
			    const struct hcomm_wire_msg *m, const void *raw,
			    u32 len)
{
	struct hcomm_session *session = conn->session;
	struct hcomm_letter *letter;

	WRITE_ONCE(session->heard, ktime_get());
	if (hcomm_wire_is_flow(m->h.type)) {
		hcomm_stream_message(session, conn, m);
		return;
	}
	if (m->h.type == HCOMM_WIRE_CREDIT || conn->deaf)
		return;
	letter = kmalloc(struct_size(letter, data, len), GFP_ATOMIC);
	if (letter) {
		letter->len = len;
		memcpy(letter->data, raw, len);
	}
	if (letter && hcomm_inbox_add(session, letter))
		return;
	/*
	 * Not acknowledged, so the peer sends it again on the next connection,
	 * and all that follow it here, too.
	 */
	conn->deaf = true;
	hcomm_conn_error(conn, letter ? -ENOBUFS : -ENOMEM);
	kfree(letter);
}

/* ------------------------------------------------------ liveness */

static void hcomm_session_goodbye(struct hcomm_session *session)
{
	struct hcomm_wire_hdr bye = { .type = HCOMM_WIRE_GOODBYE };
	struct hcomm_conn *conn;

	rcu_read_lock();
	conn = rcu_dereference(session->path.conn[HCOMM_QP_SMALL]);
	if (conn)
		hcomm_conn_send_header(conn, HCOMM_CREDIT_CONTROL, &bye);
	rcu_read_unlock();
}

/* True when the session has no reason to exist any more. */
static bool hcomm_session_useless(struct hcomm_session *session, ktime_t now)
{
	bool connected = hcomm_path_connected(READ_ONCE(session->path.state));

	if (hcomm_links_sweep(session, connected)) {
		WRITE_ONCE(session->useless, 0);
		return false;
	}
	if (!READ_ONCE(session->useless))
		WRITE_ONCE(session->useless, now);
	return hcomm_links_close(session, ktime_sub_ms(now, HCOMM_USELESS_MS));
}

/* Since when the silence of the peer means something. */
static ktime_t hcomm_session_since(struct hcomm_session *session, ktime_t now)
{
	struct hcomm_home home;

	spin_lock_bh(&session->lock);
	home = session->path.home;
	spin_unlock_bh(&session->lock);
	if (!hcomm_ports_hear(session->fabric, &home))
		session->port_since = now;
	return max(READ_ONCE(session->heard), session->port_since);
}

static void hcomm_session_check(struct hcomm_session *session)
{
	ktime_t now = ktime_get();
	enum hcomm_session_state state;
	bool connected;
	s64 silent;

	if (hcomm_session_useless(session, now)) {
		if (hcomm_path_connected(READ_ONCE(session->path.state)))
			hcomm_session_goodbye(session);
		hcomm_session_reset(session, 0);
		return;
	}
	/* It may sleep: the state is looked at afterwards. */
	silent = ktime_ms_delta(now, hcomm_session_since(session, now));
	spin_lock_bh(&session->lock);
	state = session->state;
	connected = hcomm_path_connected(session->path.state);
	spin_unlock_bh(&session->lock);
	if (state == HCOMM_SESSION_NEW) {
		if (hcomm_links_waited_ms(session, now) > HCOMM_CONNECT_MS)
			hcomm_session_unreached(session);
	} else if (hcomm_adverts_overdue(session, connected)) {
		hcomm_session_reset(session, -ETIMEDOUT);
	} else if (silent > READ_ONCE(hcomm_dead_after_ms)) {
		hcomm_session_reset(session, -ECONNRESET);
	} else if (connected && ktime_ms_delta(now, session->heard) >
				HCOMM_SILENCE_MS) {
		hcomm_path_error(&session->path, -ETIMEDOUT);
	}
}

static void hcomm_session_tick(struct work_struct *work)
{
	struct hcomm_session *session = container_of(to_delayed_work(work),
						     struct hcomm_session,
						     tick);

	hcomm_sysfs_session_add(session);
	hcomm_session_heartbeat(session, NULL);
	hcomm_session_check(session);
	if (READ_ONCE(session->state) != HCOMM_SESSION_DEAD)
		queue_delayed_work(hcomm_progress_wq, &session->tick,
				   HCOMM_TICK);
}

/* ---------------------------------------------------- begin, end */

static void hcomm_session_end_work(struct work_struct *work)
{
	struct hcomm_session *session = container_of(work, struct hcomm_session,
						     end_work);
	struct hcomm_fabric *fabric = session->fabric;
	struct hcomm_letter *letter;
	unsigned int failed;
	LIST_HEAD(notes);

	spin_lock_bh(&fabric->lock);
	list_del_init(&session->node);
	spin_unlock_bh(&fabric->lock);
	/* A request that found it before is refused: its state says so. */
	cancel_delayed_work_sync(&session->tick);
	hcomm_sysfs_session_del(session);
	hcomm_path_end(&session->path, session->error);
	cancel_work_sync(&session->inbox_work);
	cancel_work_sync(&session->advert_work);
	while ((letter = hcomm_letter_next(session)))
		kfree(letter);
	failed = hcomm_links_end(session, session->error);
	if (failed)
		pr_warn_ratelimited("hcomm%u: session with %*phN ended and %u group(s) with it: error %d, path error %d\n",
				    fabric->nr, HCOMM_ID_BYTES, session->peer,
				    failed, session->error,
				    session->path.error);

	spin_lock_bh(&session->lock);
	hcomm_ctl_flush(&session->ctl, &notes);
	spin_unlock_bh(&session->lock);
	hcomm_notes_finish(&notes, false);
	hcomm_session_put(session);
}

static struct hcomm_session *hcomm_session_alloc(struct hcomm_fabric *fabric,
						 const u8 *peer, kuid_t uid)
{
	struct hcomm_session *session;

	session = kzalloc(sizeof(*session), GFP_KERNEL);
	if (!session)
		return NULL;
	kref_init(&session->ref);
	session->fabric = fabric;
	memcpy(session->peer, peer, sizeof(session->peer));
	session->active = memcmp(fabric->instance->id, peer, 16) < 0;
	session->uid = uid;
	spin_lock_init(&session->lock);
	session->state = HCOMM_SESSION_NEW;
	get_random_bytes(session->nonce, sizeof(session->nonce));
	hcomm_fence_init(&session->fence, &hcomm_fence_hooks,
			 HCOMM_WIRE_PAYLOAD);
	hcomm_ctl_init(&session->ctl);
	INIT_LIST_HEAD(&session->inbox);
	session->heard = ktime_get();
	session->port_since = session->heard;
	mutex_init(&session->links_lock);
	INIT_LIST_HEAD(&session->links);
	xa_init(&session->handles);
	INIT_WORK(&session->inbox_work, hcomm_inbox_work);
	INIT_WORK(&session->advert_work, hcomm_adverts_work);
	INIT_WORK(&session->end_work, hcomm_session_end_work);
	INIT_DELAYED_WORK(&session->tick, hcomm_session_tick);
	hcomm_path_init(&session->path, session);
	return session;
}

static struct hcomm_session *hcomm_session_lookup(struct hcomm_fabric *fabric,
						  const u8 *peer)
{
	struct hcomm_session *session;

	lockdep_assert_held(&fabric->lock);
	list_for_each_entry(session, &fabric->sessions, node) {
		if (READ_ONCE(session->state) == HCOMM_SESSION_DEAD ||
		    memcmp(session->peer, peer, sizeof(session->peer)))
			continue;
		hcomm_session_get(session);
		return session;
	}
	return NULL;
}

/* Those never connected cost their maker: nobody may pile them up. */
static bool hcomm_session_allowed(struct hcomm_fabric *fabric, kuid_t uid)
{
	unsigned int all = 0, mine = 0;
	struct hcomm_session *session;

	lockdep_assert_held(&fabric->lock);
	list_for_each_entry(session, &fabric->sessions, node) {
		if (READ_ONCE(session->state) != HCOMM_SESSION_NEW)
			continue;
		all++;
		mine += uid_eq(session->uid, uid);
	}
	return !fabric->closing && all < HCOMM_SESSIONS_NEW &&
	       mine < HCOMM_SESSIONS_NEW_UID;
}

struct hcomm_session *hcomm_session_find(struct hcomm_fabric *fabric,
					 const u8 *peer)
{
	struct hcomm_session *session;

	spin_lock_bh(&fabric->lock);
	session = hcomm_session_lookup(fabric, peer);
	spin_unlock_bh(&fabric->lock);
	return session;
}

/* Finds or makes it; referenced. */
static struct hcomm_session *hcomm_session_open(struct hcomm_fabric *fabric,
						const u8 *peer, kuid_t uid)
{
	struct hcomm_session *session, *fresh;
	bool allowed;

	spin_lock_bh(&fabric->lock);
	session = hcomm_session_lookup(fabric, peer);
	allowed = session || hcomm_session_allowed(fabric, uid);
	spin_unlock_bh(&fabric->lock);
	if (session || !allowed)
		return session ?: ERR_PTR(-EAGAIN);
	fresh = hcomm_session_alloc(fabric, peer, uid);
	if (!fresh)
		return ERR_PTR(-ENOMEM);
	spin_lock_bh(&fabric->lock);
	session = hcomm_session_lookup(fabric, peer);
	if (!session && hcomm_session_allowed(fabric, uid)) {
		session = fresh;
		fresh = NULL;
		list_add_tail(&session->node, &fabric->sessions);
		fabric->nr_sessions++;
		session->big = fabric->nr_big < HCOMM_SESSIONS_BIG;
		fabric->nr_big += session->big;
		hcomm_session_get(session);
		queue_delayed_work(hcomm_progress_wq, &session->tick, 0);
	}
	spin_unlock_bh(&fabric->lock);
	if (fresh) {
		xa_destroy(&fresh->handles);
		kfree(fresh);
	}
	return session ?: ERR_PTR(-EAGAIN);
}

/* How many candidates @uid has named; of nobody: more than anybody. */
static unsigned int hcomm_candidates_of(const struct hcomm_session *session,
					kuid_t uid)
{
	const struct hcomm_candidate *c = session->candidates;
	unsigned int i, n = 0;

	if (!uid_valid(uid))
		return UINT_MAX;
	for (i = 0; i < session->nr_candidates; i++)
		n += uid_eq(c[i].uid[0], uid) || uid_eq(c[i].uid[1], uid);
	return n;
}

/* The oldest of those whose most modest user has named the most. */
static unsigned int hcomm_candidate_victim(const struct hcomm_session *session)
{
	const struct hcomm_candidate *c = session->candidates;
	unsigned int i, n, most = 0, victim = 0;

	for (i = 0; i < session->nr_candidates; i++) {
		n = min(hcomm_candidates_of(session, c[i].uid[0]),
			hcomm_candidates_of(session, c[i].uid[1]));
		if (n > most) {
			most = n;
			victim = i;
		}
	}
	return victim;
}

/* @uid names it, too: takes the place of nobody, or of who names more. */
static void hcomm_candidate_claim(const struct hcomm_session *session,
				  struct hcomm_candidate *c, kuid_t uid)
{
	unsigned int mine = hcomm_candidates_of(session, uid) + 1;
	bool second;

	if (!uid_valid(uid) || uid_eq(c->uid[0], uid) || uid_eq(c->uid[1], uid))
		return;
	second = hcomm_candidates_of(session, c->uid[1]) >
		 hcomm_candidates_of(session, c->uid[0]);
	if (mine < hcomm_candidates_of(session, c->uid[second]))
		c->uid[second] = uid;
}

/* A member's hint displaces one, a hint from the network does not. */
static void hcomm_candidate_add(struct hcomm_session *session,
				const struct hcomm_peer *peer, kuid_t uid)
{
	struct hcomm_candidate *c = session->candidates;
	unsigned int victim;

	if (session->nr_candidates == HCOMM_CANDIDATES) {
		if (!uid_valid(uid))
			return;
		victim = hcomm_candidate_victim(session);
		session->nr_candidates--;
		memmove(c + victim, c + victim + 1,
			(session->nr_candidates - victim) * sizeof(*c));
	}
	c += session->nr_candidates++;
	memcpy(c->addr, peer->addr, sizeof(c->addr));
	c->port = peer->port;
	c->uid[0] = uid;
	c->uid[1] = INVALID_UID;
}

static void hcomm_session_hint(struct hcomm_session *session,
			       const struct hcomm_peer *peer, kuid_t uid)
{
	struct hcomm_candidate *c;
	unsigned int i;

	if (!peer->port ||
	    !memchr_inv(peer->addr, 0, sizeof(peer->addr)))
		return;
	spin_lock_bh(&session->lock);
	if (session->state != HCOMM_SESSION_NEW)
		goto out;
	for (i = 0; i < session->nr_candidates; i++) {
		c = &session->candidates[i];
		if (c->port == peer->port && !memcmp(c->addr, peer->addr, 16))
			break;
	}
	if (i < session->nr_candidates)
		hcomm_candidate_claim(session, c, uid);
	else
		hcomm_candidate_add(session, peer, uid);
	/* Nothing is queued once end_work may have looked. */
	queue_delayed_work(hcomm_teardown_wq, &session->path.work, 0);
out:
	spin_unlock_bh(&session->lock);
}

void hcomm_session_advertise(struct hcomm_session *session)
{
	spin_lock_bh(&session->lock);
	if (session->state == HCOMM_SESSION_OPEN)
		queue_work(hcomm_register_wq, &session->advert_work);
	spin_unlock_bh(&session->lock);
}

struct hcomm_session *hcomm_session_want(struct hcomm_fabric *fabric,
					 const struct hcomm_peer *peer,
					 const struct hcomm_proc *proc)
{
	struct hcomm_session *session;

	session = hcomm_session_open(fabric, peer->instance_id,
				     proc ? proc->uid : GLOBAL_ROOT_UID);
	if (!IS_ERR(session))
		hcomm_session_hint(session, peer, proc ? proc->uid : INVALID_UID);
	return session;
}

struct hcomm_session *hcomm_session_accept(struct hcomm_fabric *fabric,
					   const u8 *peer)
{
	return hcomm_session_open(fabric, peer, GLOBAL_ROOT_UID);
}

/* ------------------------------------------------------- fabric */

struct hcomm_fabric *hcomm_fabric_of(unsigned int nr)
{
	if (nr >= HCOMM_MAX_INSTANCES)
		return NULL;
	/* Pairs with the release in hcomm_fabric_create(). */
	return smp_load_acquire(&hcomm_fabrics[nr]);
}

int hcomm_fabric_create(struct hcomm_instance *instance)
{
	struct hcomm_fabric *fabric;
	int ret;

	fabric = kzalloc(sizeof(*fabric), GFP_KERNEL);
	if (!fabric)
		return -ENOMEM;
	fabric->instance = instance;
	fabric->nr = instance->nr;
	spin_lock_init(&fabric->lock);
	INIT_LIST_HEAD(&fabric->sessions);
	init_waitqueue_head(&fabric->idle);
	instance->fabric = fabric;
	/* Pairs with the acquire in hcomm_fabric_of(). */
	smp_store_release(&hcomm_fabrics[instance->nr], fabric);
	ret = hcomm_cm_listen(fabric);
	if (ret)
		pr_warn("hcomm%u: cannot listen on port %u (%d): only instances with a larger id are reached\n",
			fabric->nr, hcomm_base_port + fabric->nr, ret);
	return 0;
}

/* No file is open. Sessions end locally, which is bounded. */
void hcomm_fabric_destroy(struct hcomm_instance *instance)
{
	struct hcomm_fabric *fabric = instance->fabric;
	struct hcomm_session *session;

	spin_lock_bh(&fabric->lock);
	fabric->closing = true;
	spin_unlock_bh(&fabric->lock);
	hcomm_cm_unlisten(fabric);
	spin_lock_bh(&fabric->lock);
	list_for_each_entry(session, &fabric->sessions, node) {
		hcomm_session_goodbye(session);
		hcomm_session_reset(session, -ESHUTDOWN);
	}
	spin_unlock_bh(&fabric->lock);
	wait_event(fabric->idle, !READ_ONCE(fabric->nr_sessions));
	/* The last one may still be in its release, under the lock. */
	spin_lock_bh(&fabric->lock);
	spin_unlock_bh(&fabric->lock);
	fabric->instance = NULL;
}

static bool hcomm_query_port(struct hcomm_port *port, struct hcomm_query *query)
{
	query->nr_ports++;
	query->features |= HCOMM_FEAT_RDMA;
	if (!memchr_inv(query->addr, 0, sizeof(query->addr)) &&
	    hcomm_port_active(port))
		hcomm_port_addr(port, query->addr);
	return false;
}

void hcomm_fabric_query(struct hcomm_instance *instance,
			struct hcomm_query *query)
{
	struct hcomm_fabric *fabric = instance->fabric;
	struct hcomm_rdev *rdev;
	unsigned int i;

	memset(query->addr, 0, sizeof(query->addr));
	query->listen_port = fabric->listen_port;
	query->nr_ports = 0;
	mutex_lock(&hcomm_ports_lock);
	list_for_each_entry(rdev, &hcomm_rdevs, node)
		for (i = 0; i < rdev->nr_ports; i++)
			if (rdev->ports[i].owner == fabric->nr)
				hcomm_query_port(&rdev->ports[i], query);
	mutex_unlock(&hcomm_ports_lock);
}

int hcomm_transport_init(void)
{
	int ret;

	if (hcomm_send_depth < 128 || hcomm_recv_depth < 512 ||
	    hcomm_send_depth > 16384 || hcomm_recv_depth > 16384)
		return -EINVAL;
	ret = hcomm_crypto_init();
	if (ret)
		return ret;
	ret = hcomm_streams_init();
	if (ret)
		goto err_crypto;
	ret = hcomm_ports_init();
	if (ret)
		goto err_streams;
	return 0;

err_streams:
	hcomm_streams_exit();
err_crypto:
	hcomm_crypto_exit();
	return ret;
}

void hcomm_transport_exit(void)
{
	unsigned int nr;

	hcomm_ports_exit();
	for (nr = 0; nr < HCOMM_MAX_INSTANCES; nr++) {
		kfree(hcomm_fabrics[nr]);
		hcomm_fabrics[nr] = NULL;
	}
	hcomm_streams_exit();
	hcomm_crypto_exit();
}
