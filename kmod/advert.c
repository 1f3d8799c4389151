// SPDX-License-Identifier: GPL-2.0
/*
 * Adverts: which peers hold keys of our windows, and which keys we hold of
 * theirs.
 *
 * Ours. A window is advertised once to every link of its group on which the
 * peer has proven a rank. The advert holds a reference to the window, so the
 * window is quiesced when the last advert is gone. WANTED until advert_work has
 * made the registrations and queued the keys; SENT; REVOKING after the window
 * went down and WIN_REVOKE left, until WIN_REVOKED comes. It also ends when
 * every rank of the peer has said that it is gone (each says so only after it
 * has nothing posted any more) or with the session. If the answer is missing
 * for dead_after_ms over a connected path the session is reset. When the path
 * comes back over another device the keys are made anew, and leave before the
 * report after which the peer may post again.
 *
 * The memory of GETs that were given up while the peer may still answer is
 * kept in the same way, for each pair of ranks, under a window id of its own
 * (HCOMM_GETS_WINDOW).
 *
 * Theirs (rwin). Keys come in chunks and are used when complete, if they are for
 * the present era: those that were sent while no member was here, or before, may
 * be of windows whose end nobody told us. WIN_REVOKE
 * stops posting at once; `posted` counts chains on queue pairs, plus one until
 * revoked, and whoever brings it to zero sends the answer. A revoked id stays
 * in the table as a value: it never comes back.
 *
 * Locks: links_lock, but for rwin->posted and the RCU readers of
 * remote->windows.
 */
#include <linux/slab.h>

#include "fabric.h"
#include "limits.h"
#include "member.h"
#include "memory.h"
#include "session.h"
#include "window.h"

/* ------------------------------------------------------------- ours */

static unsigned long hcomm_advert_index(u32 rank, u32 id)
{
	BUILD_BUG_ON((u64)HCOMM_MAX_RANKS * HCOMM_WINDOW_IDS > BIT_ULL(32));
	return (unsigned long)rank * HCOMM_WINDOW_IDS + id;
}

static struct hcomm_advert *hcomm_advert_find(struct hcomm_link *link, u32 rank,
					      u32 id)
{
	lockdep_assert_held(&link->session->links_lock);
	if (rank >= HCOMM_MAX_RANKS || id >= HCOMM_WINDOW_IDS)
		return NULL;
	return xa_load(&link->windows, hcomm_advert_index(rank, id));
}

/* That of the GETs of @rank which @peer was to answer. */
static struct hcomm_advert *hcomm_advert_find_gets(struct hcomm_link *link,
						   u32 rank, u32 peer)
{
	struct hcomm_advert *advert;

	lockdep_assert_held(&link->session->links_lock);
	/* They are added at the end. */
	list_for_each_entry_reverse(advert, &link->adverts, node)
		if (!advert->window && advert->rank == rank &&
		    advert->peer == peer)
			return advert;
	return NULL;
}

void hcomm_xfers_release(struct list_head *xfers)
{
	struct hcomm_xfer *xfer, *next;

	list_for_each_entry_safe(xfer, next, xfers, flow_op.node) {
		list_del_init(&xfer->flow_op.node);
		hcomm_xfer_put(xfer);
	}
}

static void hcomm_advert_drop(struct hcomm_link *link,
			      struct hcomm_advert *advert)
{
	lockdep_assert_held(&link->session->links_lock);
	list_del(&advert->node);
	hcomm_xfers_release(&advert->lingering);
	if (advert->window) {
		xa_erase_bh(&link->windows,
			    hcomm_advert_index(advert->rank, advert->id));
		hcomm_window_put(advert->window);
	}
	kfree(advert);
}

/* Those that wait for keys are before all others. */
static void hcomm_advert_want(struct hcomm_link *link,
			      struct hcomm_advert *advert)
{
	advert->state = HCOMM_ADVERT_WANTED;
	list_move(&advert->node, &link->adverts);
}

static void hcomm_advert_move(struct hcomm_link *link,
			      struct hcomm_advert *advert,
			      enum hcomm_advert_state state)
{
	advert->state = state;
	list_move_tail(&advert->node, &link->adverts);
}

/* Takes over the reference to @window. */
static void hcomm_advert_add(struct hcomm_link *link,
			     struct hcomm_window *window)
{
	u32 rank = window->member->rank;
	struct hcomm_advert *advert;

	lockdep_assert_held(&link->session->links_lock);
	/* One that goes down finds its adverts after its state has changed. */
	if (READ_ONCE(window->state) != HCOMM_WINDOW_LIVE ||
	    hcomm_advert_find(link, rank, window->id)) {
		hcomm_window_put(window);
		return;
	}
	advert = kzalloc(sizeof(*advert), GFP_KERNEL_ACCOUNT);
	if (!advert ||
	    xa_err(xa_store_bh(&link->windows,
			       hcomm_advert_index(rank, window->id), advert,
			       GFP_KERNEL_ACCOUNT))) {
		kfree(advert);
		hcomm_window_put(window);
		hcomm_session_reset(link->session, -ENOMEM);
		return;
	}
	advert->window = window;
	advert->rank = rank;
	advert->id = window->id;
	advert->peer = HCOMM_NO_RANK;
	advert->generation = window->generation;
	INIT_LIST_HEAD(&advert->lingering);
	INIT_LIST_HEAD(&advert->node);
	hcomm_advert_want(link, advert);
	hcomm_session_advertise(link->session);
}

void hcomm_adverts_local(struct hcomm_link *link, struct hcomm_local *local)
{
	struct hcomm_window *window;
	u32 id;

	lockdep_assert_held(&link->session->links_lock);
	if (local->leaving)
		return;
	for (id = 0; (window = hcomm_window_next(local->member, &id)); id++) {
		hcomm_advert_add(link, window);
		cond_resched();
	}
}

void hcomm_adverts_link(struct hcomm_link *link)
{
	struct hcomm_local *local;
	unsigned long rank;

	xa_for_each(&link->locals, rank, local)
		hcomm_adverts_local(link, local);
}

void hcomm_session_window_up(struct hcomm_window *window)
{
	struct hcomm_member *member = window->member;
	struct hcomm_link **links;
	struct hcomm_local *local;
	unsigned int count, i;

	links = hcomm_links_of(member->group, &count);
	for (i = 0; i < count; i++) {
		mutex_lock(&links[i]->session->links_lock);
		local = xa_load(&links[i]->locals, member->rank);
		if (local && !local->leaving && links[i]->nr_remotes) {
			hcomm_window_get(window);
			hcomm_advert_add(links[i], window);
		}
		mutex_unlock(&links[i]->session->links_lock);
		hcomm_link_put(links[i]);
	}
	kfree(links);
}

static void hcomm_advert_revoke(struct hcomm_link *link,
				struct hcomm_advert *advert)
{
	struct hcomm_note *note;

	hcomm_advert_move(link, advert, HCOMM_ADVERT_REVOKING);
	advert->until = jiffies + msecs_to_jiffies(hcomm_dead_after_ms);
	note = hcomm_note_alloc(HCOMM_WIRE_WIN_REVOKE, 0,
				GFP_KERNEL | __GFP_NOFAIL);
	note->msg.hdr.group = link->peer_handle;
	note->msg.hdr.src = advert->rank;
	note->msg.hdr.dst = advert->peer;
	note->msg.hdr.window = advert->id;
	note->msg.hdr.generation = advert->generation;
	hcomm_session_note(link->session, note);
}

void hcomm_session_window_down(struct hcomm_window *window)
{
	struct hcomm_member *member = window->member;
	struct hcomm_advert *advert;
	struct hcomm_link **links;
	unsigned int count, i;

	links = hcomm_links_of(member->group, &count);
	for (i = 0; i < count; i++) {
		mutex_lock(&links[i]->session->links_lock);
		advert = hcomm_advert_find(links[i], member->rank, window->id);
		if (advert && advert->state != HCOMM_ADVERT_REVOKING) {
			if (advert->sent)
				hcomm_advert_revoke(links[i], advert);
			else
				hcomm_advert_drop(links[i], advert);
		}
		mutex_unlock(&links[i]->session->links_lock);
		hcomm_link_put(links[i]);
	}
	kfree(links);
	/* Adverts that are left hold the window. */
	hcomm_window_quiesced(window);
}

void hcomm_advert_linger(struct hcomm_link *link, u32 rank, u32 peer,
			 struct list_head *lingering)
{
	struct hcomm_advert *advert;

	lockdep_assert_held(&link->session->links_lock);
	if (list_empty(lingering))
		return;
	advert = hcomm_advert_find_gets(link, rank, peer);
	if (!advert) {
		advert = kzalloc(sizeof(*advert), GFP_KERNEL | __GFP_NOFAIL);
		advert->rank = rank;
		advert->id = HCOMM_GETS_WINDOW;
		advert->peer = peer;
		INIT_LIST_HEAD(&advert->lingering);
		INIT_LIST_HEAD(&advert->node);
		hcomm_advert_revoke(link, advert);
	}
	list_splice_tail_init(lingering, &advert->lingering);
}

/* Queues the keys of a window in as many messages as they take. */
static int hcomm_advert_send(struct hcomm_link *link,
			     struct hcomm_advert *advert,
			     const struct hcomm_table *table)
{
	struct hcomm_wire_keys keys = {
		.length = table->geom.length,
		.iova = hcomm_table_iova(table, 0),
		.base_off = table->geom.base_off,
		.mr_shift = table->geom.mr_shift,
	};
	struct hcomm_note *note;
	u32 *rkeys;
	u32 i;

	rkeys = kmalloc_array(HCOMM_WIRE_KEYS_MAX, sizeof(*rkeys), GFP_KERNEL);
	if (!rkeys)
		return -ENOMEM;
	advert->sent = true;
	for (; keys.first < table->count; keys.first += keys.count) {
		keys.count = min_t(u32, table->count - keys.first,
				   HCOMM_WIRE_KEYS_MAX);
		for (i = 0; i < keys.count; i++)
			rkeys[i] = table->mrs[keys.first + i].mr->rkey;
		note = hcomm_note_alloc(HCOMM_WIRE_WIN_ADVERT,
					HCOMM_WIRE_PAYLOAD, GFP_KERNEL);
		if (!note) {
			kfree(rkeys);
			return -ENOMEM;
		}
		note->msg.hdr.group = link->peer_handle;
		note->msg.hdr.src = advert->rank;
		note->msg.hdr.window = advert->id;
		note->msg.hdr.generation = advert->generation;
		note->msg.hdr.delta = link->peer_era;
		if (keys.first + keys.count == table->count)
			note->msg.hdr.flags = HCOMM_WIRE_F_LAST;
		note->msg.payload_len = hcomm_wire_keys_encode(&keys, rkeys,
							       note->payload);
		hcomm_session_note(link->session, note);
	}
	kfree(rkeys);
	hcomm_advert_move(link, advert, HCOMM_ADVERT_SENT);
	return 0;
}

/*
 * An advert that waits for its keys, with a reference to link and window. Links
 * take turns.
 */
static struct hcomm_advert *hcomm_advert_next(struct hcomm_session *session,
					      struct hcomm_link **plink)
{
	struct hcomm_advert *advert;
	struct hcomm_link *link;

	lockdep_assert_held(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node) {
		advert = list_first_entry_or_null(&link->adverts,
						  struct hcomm_advert, node);
		if (!advert || advert->state != HCOMM_ADVERT_WANTED)
			continue;
		list_move_tail(&link->session_node, &session->links);
		hcomm_link_get(link);
		hcomm_window_get(advert->window);
		*plink = link;
		return advert;
	}
	return NULL;
}

/* 1: made one, 0: none is left, or an error to try again later. */
static int hcomm_advert_make(struct hcomm_session *session,
			     struct hcomm_conn *conn)
{
	struct hcomm_advert *advert;
	struct hcomm_window *window;
	struct hcomm_table *table;
	struct hcomm_link *link;
	int ret = 1;

	mutex_lock(&session->links_lock);
	advert = hcomm_advert_next(session, &link);
	if (advert)
		window = advert->window;
	mutex_unlock(&session->links_lock);
	if (!advert)
		return 0;

	table = hcomm_table_build(window->mem, conn);
	mutex_lock(&session->links_lock);
	/* It may have been dropped meanwhile. */
	advert = hcomm_advert_find(link, window->member->rank, window->id);
	if (IS_ERR(table))
		ret = PTR_ERR(table);
	else if (advert && advert->state == HCOMM_ADVERT_WANTED &&
		 hcomm_advert_send(link, advert, table))
		ret = -ENOMEM;
	mutex_unlock(&session->links_lock);
	hcomm_window_put(window);
	hcomm_link_put(link);
	return ret;
}

static void hcomm_link_rekey(struct hcomm_link *link)
{
	struct hcomm_advert *advert, *next;

	lockdep_assert_held(&link->session->links_lock);
	list_for_each_entry_safe(advert, next, &link->adverts, node)
		if (advert->state == HCOMM_ADVERT_SENT)
			hcomm_advert_want(link, advert);
}

void hcomm_adverts_again(struct hcomm_link *link)
{
	hcomm_link_rekey(link);
	hcomm_session_advertise(link->session);
}

/* The keys that were sent belong to a device we do not use any more. */
static void hcomm_adverts_rekey(struct hcomm_session *session)
{
	struct hcomm_link *link;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node)
		hcomm_link_rekey(link);
	mutex_unlock(&session->links_lock);
}

void hcomm_adverts_work(struct work_struct *work)
{
	struct hcomm_session *session = container_of(work, struct hcomm_session,
						     advert_work);
	struct hcomm_conn *conn;
	bool rekey;
	int ret;

	spin_lock_bh(&session->lock);
	rekey = session->rekey;
	spin_unlock_bh(&session->lock);
	conn = hcomm_conn_get(&session->path, HCOMM_QP_SMALL);
	if (!conn)
		return;
	if (rekey) {
		hcomm_adverts_rekey(session);
		/* A pending GET's keys went with its request. */
		if (hcomm_streams_getting(session))
			hcomm_session_reset(session, -ECONNRESET);
	}
	do {
		ret = hcomm_advert_make(session, conn);
		cond_resched();
	} while (ret > 0 && READ_ONCE(conn->state) == HCOMM_CONN_OPEN);
	if (!ret && rekey) {
		spin_lock_bh(&session->lock);
		/* Not if it was lost and came back by yet another one. */
		if (conn->epoch == session->path.epoch) {
			session->rekey = false;
			session->rekeyed = true;
		}
		spin_unlock_bh(&session->lock);
		hcomm_session_push(session);
	}
	hcomm_conn_put(conn);
}

bool hcomm_adverts_overdue(struct hcomm_session *session, bool connected)
{
	struct hcomm_advert *advert;
	struct hcomm_link *link;
	bool overdue = false;
	bool wanted = false;

	mutex_lock(&session->links_lock);
	list_for_each_entry(link, &session->links, session_node) {
		list_for_each_entry(advert, &link->adverts, node) {
			wanted |= advert->state == HCOMM_ADVERT_WANTED;
			if (advert->state != HCOMM_ADVERT_REVOKING)
				continue;
			if (!connected)
				advert->until = jiffies +
					msecs_to_jiffies(hcomm_dead_after_ms);
			else if (time_after(jiffies, advert->until))
				overdue = true;
		}
	}
	mutex_unlock(&session->links_lock);
	if (wanted && connected)
		hcomm_session_advertise(session);
	return overdue;
}

void hcomm_adverts_end(struct hcomm_link *link)
{
	struct hcomm_advert *advert, *next;

	lockdep_assert_held(&link->session->links_lock);
	list_for_each_entry_safe(advert, next, &link->adverts, node)
		hcomm_advert_drop(link, advert);
}

void hcomm_adverts_remote_gone(struct hcomm_link *link)
{
	/* Each rank has said that it writes nothing any more. */
	if (!link->nr_remotes)
		hcomm_adverts_end(link);
}

void hcomm_revoked_received(struct hcomm_session *session,
			    const struct hcomm_wire_msg *m)
{
	struct hcomm_advert *advert = NULL;
	struct hcomm_link *link;

	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	if (link)
		advert = m->h.window == HCOMM_GETS_WINDOW ?
			 hcomm_advert_find_gets(link, m->h.dst, m->h.src) :
			 hcomm_advert_find(link, m->h.dst, m->h.window);
	if (advert && advert->state == HCOMM_ADVERT_REVOKING &&
	    advert->generation == m->h.generation)
		hcomm_advert_drop(link, advert);
	mutex_unlock(&session->links_lock);
}

/* ----------------------------------------------------------- theirs */

static void hcomm_rwin_free(struct rcu_head *rcu)
{
	struct hcomm_rwin *rwin = container_of(rcu, struct hcomm_rwin, rcu);

	kvfree(rwin->keys);
	kfree(rwin);
}

static void hcomm_rwin_release(struct kref *ref)
{
	struct hcomm_rwin *rwin = container_of(ref, struct hcomm_rwin, ref);

	kfree(rwin->answer);
	hcomm_link_put(rwin->link);
	call_rcu(&rwin->rcu, hcomm_rwin_free);
}

void hcomm_rwin_get(struct hcomm_rwin *rwin)
{
	kref_get(&rwin->ref);
}

void hcomm_rwin_put(struct hcomm_rwin *rwin)
{
	kref_put(&rwin->ref, hcomm_rwin_release);
}

struct hcomm_rwin *hcomm_rwin_find(struct hcomm_remote *remote, u32 id)
{
	struct hcomm_rwin *rwin;

	rcu_read_lock();
	rwin = xa_load(&remote->windows, id);
	if (xa_is_value(rwin))
		rwin = ERR_PTR(-ESTALE);
	else if (rwin && !kref_get_unless_zero(&rwin->ref))
		rwin = NULL;
	rcu_read_unlock();
	return rwin;
}

bool hcomm_rwin_post(struct hcomm_rwin *rwin)
{
	return !READ_ONCE(rwin->revoked) && atomic_inc_not_zero(&rwin->posted);
}

void hcomm_rwin_posted(struct hcomm_rwin *rwin)
{
	struct hcomm_note *answer;

	if (!atomic_dec_and_test(&rwin->posted))
		return;
	answer = rwin->answer;
	rwin->answer = NULL;
	if (answer)
		hcomm_session_note(rwin->link->session, answer);
}

/* The table's reference and its share of `posted` go. */
static void hcomm_rwin_retire(struct hcomm_rwin *rwin,
			      struct hcomm_note *answer)
{
	rwin->answer = answer;
	WRITE_ONCE(rwin->revoked, true);
	hcomm_rwin_posted(rwin);
	hcomm_rwin_put(rwin);
}

/* @rwin is not in the table any more. */
static void hcomm_rwin_remove(struct hcomm_remote *remote,
			      struct hcomm_rwin *rwin,
			      struct hcomm_note *answer)
{
	remote->nr_windows--;
	remote->nr_keys -= rwin->nr_keys;
	hcomm_rwin_retire(rwin, answer);
}

void hcomm_rwins_drop(struct hcomm_remote *remote)
{
	struct hcomm_rwin *rwin;
	unsigned long id;

	xa_for_each(&remote->windows, id, rwin) {
		xa_erase_bh(&remote->windows, id);
		if (!xa_is_value(rwin))
			hcomm_rwin_remove(remote, rwin, NULL);
	}
	if (remote->arriving)
		hcomm_rwin_retire(remote->arriving, NULL);
	remote->arriving = NULL;
}

/* What a rank's windows may cost us; more than one of @id is never kept. */
static bool hcomm_remote_has_room(struct hcomm_remote *remote, u32 id,
				  u64 nr_keys)
{
	struct hcomm_rwin *old = xa_load(&remote->windows, id);

	if (old)
		return nr_keys <= HCOMM_MAX_KEYS - remote->nr_keys +
				  old->nr_keys;
	return remote->nr_windows < HCOMM_MAX_WINDOWS &&
	       nr_keys <= HCOMM_MAX_KEYS - remote->nr_keys;
}

static struct hcomm_rwin *hcomm_rwin_create(struct hcomm_link *link,
					    struct hcomm_remote *remote,
					    const struct hcomm_wire_msg *m,
					    const struct hcomm_wire_keys *keys)
{
	struct hcomm_geom geom = {
		.length = keys->length,
		.base_off = keys->base_off,
		.mr_shift = keys->mr_shift,
	};
	u64 count = hcomm_geom_mr(&geom, keys->length - 1) + 1;
	struct hcomm_rwin *rwin;

	if (!hcomm_remote_has_room(remote, m->h.window, count))
		return ERR_PTR(-EDQUOT);
	rwin = kzalloc(sizeof(*rwin), GFP_KERNEL_ACCOUNT);
	if (!rwin)
		return ERR_PTR(-ENOMEM);
	rwin->keys = kvcalloc(count, sizeof(*rwin->keys), GFP_KERNEL_ACCOUNT);
	if (!rwin->keys) {
		kfree(rwin);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&rwin->ref);
	atomic_set(&rwin->posted, 1);
	hcomm_link_get(link);
	rwin->link = link;
	rwin->geom = geom;
	rwin->id = m->h.window;
	rwin->generation = m->h.generation;
	rwin->iova = keys->iova;
	rwin->nr_keys = count;
	return rwin;
}

/* All keys are there: streams may use the window. */
static int hcomm_rwin_publish(struct hcomm_link *link,
			      struct hcomm_remote *remote)
{
	struct hcomm_rwin *rwin = remote->arriving;
	struct hcomm_rwin *old = xa_load(&remote->windows, rwin->id);

	/* Ops that were checked against the old ones go on with the new. */
	if (old && old->generation == rwin->generation &&
	    old->geom.length != rwin->geom.length)
		return -EPROTO;
	old = xa_store_bh(&remote->windows, rwin->id, rwin, GFP_KERNEL_ACCOUNT);
	if (xa_is_err(old))
		return xa_err(old);
	remote->arriving = NULL;
	remote->nr_windows++;
	remote->nr_keys += rwin->nr_keys;
	/* New keys of the same window: nothing is posted with the old ones. */
	if (old)
		hcomm_rwin_remove(remote, old, NULL);
	hcomm_link_kick_remote(link, remote->rank);
	return 0;
}

/*
 * A correct peer keeps to what is kept for it, but for adverts that overtake the
 * news of older ones' end: its group fails, and nobody else.
 */
static void hcomm_remote_refused(struct hcomm_link *link, u32 rank)
{
	const struct hcomm_fault fault = {
		.cause = HCOMM_CAUSE_PROTOCOL,
		.error = -EDQUOT,
		.rank = rank,
	};

	pr_warn_ratelimited("hcomm%u: session with %*phN: more windows or keys of rank %u than are kept: its group fails\n",
			    link->session->fabric->nr, HCOMM_ID_BYTES,
			    link->session->peer, rank);
	hcomm_group_fail(link->group, &fault);
	hcomm_session_group_fault(link->group, rank, &fault);
}

int hcomm_advert_received(struct hcomm_session *session,
			  const struct hcomm_wire_msg *m)
{
	struct hcomm_link *refused = NULL;
	struct hcomm_remote *remote = NULL;
	struct hcomm_wire_keys keys;
	struct hcomm_link *link;
	struct hcomm_rwin *rwin;
	u32 i;
	int ret;

	ret = hcomm_wire_keys_decode(m, &keys);
	if (ret || m->h.window >= HCOMM_WINDOW_IDS)
		return -EPROTO;
	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	if (link)
		remote = hcomm_remote_find(link, m->h.src);
	/* A rest (first > 0) may be of an advert that began before @remote did. */
	if (!remote || remote->refused || m->h.delta != link->era ||
	    (keys.first && !remote->arriving) ||
	    xa_is_value(xa_load(&remote->windows, m->h.window)))
		goto out;
	if (!keys.first) {
		if (remote->arriving)
			hcomm_rwin_retire(remote->arriving, NULL);
		remote->arriving = NULL;
		rwin = hcomm_rwin_create(link, remote, m, &keys);
		if (rwin == ERR_PTR(-EDQUOT)) {
			remote->refused = true;
			refused = link;
			hcomm_link_get(link);
			goto out;
		}
		ret = PTR_ERR_OR_ZERO(rwin);
		if (ret)
			goto out;
		remote->arriving = rwin;
	}
	rwin = remote->arriving;
	ret = -EPROTO;
	if (!rwin || rwin->id != m->h.window ||
	    rwin->generation != m->h.generation ||
	    rwin->keys_got != keys.first ||
	    keys.count > rwin->nr_keys - keys.first ||
	    keys.mr_shift < HCOMM_MR_SHIFT_LEAST)
		goto out;
	for (i = 0; i < keys.count; i++)
		rwin->keys[keys.first + i] = hcomm_wire_key(m, i);
	rwin->keys_got += keys.count;
	ret = 0;
	if (rwin->keys_got == rwin->nr_keys)
		ret = hcomm_rwin_publish(link, remote);
out:
	mutex_unlock(&session->links_lock);
	if (refused) {
		hcomm_remote_refused(refused, m->h.src);
		hcomm_link_put(refused);
	}
	return ret;
}

static struct hcomm_note *hcomm_revoked_note(struct hcomm_link *link,
					     const struct hcomm_wire_msg *m)
{
	struct hcomm_note *note;

	note = hcomm_note_alloc(HCOMM_WIRE_WIN_REVOKED, 0,
				GFP_KERNEL | __GFP_NOFAIL);
	note->msg.hdr.group = link->peer_handle;
	note->msg.hdr.src = m->h.dst;
	note->msg.hdr.dst = m->h.src;
	note->msg.hdr.window = m->h.window;
	note->msg.hdr.generation = m->h.generation;
	note->msg.answer = true;
	return note;
}

/* Our rank of the pair answers no GET of @remote any more. */
static void hcomm_gets_revoked(struct hcomm_link *link,
			       struct hcomm_remote *remote,
			       const struct hcomm_wire_msg *m)
{
	struct hcomm_stream *stream;
	struct hcomm_note *note;

	stream = xa_load(&link->streams,
			 hcomm_stream_index(m->h.dst, remote->rank));
	if (stream)
		hcomm_stream_kill(stream, -ESHUTDOWN, true);
	list_for_each_entry(note, &remote->answers, msg.node)
		if (note->msg.hdr.src == m->h.dst)
			return;
	note = hcomm_revoked_note(link, m);
	list_add_tail(&note->msg.node, &remote->answers);
	hcomm_link_settle(link);
}

int hcomm_revoke_received(struct hcomm_session *session,
			  const struct hcomm_wire_msg *m)
{
	struct hcomm_remote *remote;
	struct hcomm_link *link;
	struct hcomm_rwin *old;
	bool gets = m->h.window == HCOMM_GETS_WINDOW;
	int ret = 0;

	if (gets ? m->h.dst >= HCOMM_MAX_RANKS :
		   m->h.window >= HCOMM_WINDOW_IDS)
		return -EPROTO;
	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	/* No such link or rank: all our members there have said goodbye. */
	if (!link || !link->peer_handle)
		goto out;
	/* What is posted to a rank that has gone is waited for, too. */
	remote = xa_load(&link->remotes, m->h.src);
	if (!remote || (gets && remote->gone)) {
		hcomm_session_note(session, hcomm_revoked_note(link, m));
		goto out;
	}
	if (gets) {
		hcomm_gets_revoked(link, remote, m);
		goto out;
	}
	old = xa_store_bh(&remote->windows, m->h.window, xa_mk_value(1),
			  GFP_KERNEL_ACCOUNT);
	if (xa_is_err(old)) {
		ret = xa_err(old);
	} else if (!old || xa_is_value(old)) {
		hcomm_session_note(session, hcomm_revoked_note(link, m));
	} else {
		hcomm_rwin_remove(remote, old, hcomm_revoked_note(link, m));
		hcomm_link_kick_remote(link, remote->rank);
	}
out:
	mutex_unlock(&session->links_lock);
	return ret;
}
