// SPDX-License-Identifier: GPL-2.0
/*
 * Failures of a group: the peers are told (GROUP_ABORT), once per link, and
 * tell us.
 */
#include <linux/bitmap.h>

#include "link.h"
#include "member.h"
#include "op.h"
#include "session.h"

void hcomm_link_inherit_fault(struct hcomm_link *link)
{
	struct hcomm_group *group = link->group;
	struct hcomm_fault fault;

	if (!hcomm_group_failed(group, &fault))
		return;
	spin_lock_bh(&group->links_lock);
	if (!link->faulted) {
		link->faulted = true;
		link->fault = fault;
		link->fault_reporter = HCOMM_NO_RANK;
	}
	spin_unlock_bh(&group->links_lock);
}

/* Whom the peer believes that the group failed: a member that it knows. */
static u32 hcomm_link_speaker(struct hcomm_link *link)
{
	struct hcomm_local *local;
	unsigned long rank;

	if (xa_load(&link->locals, link->fault_reporter))
		return link->fault_reporter;
	xa_for_each(&link->locals, rank, local)
		if (!local->leaving)
			return rank;
	return HCOMM_NO_RANK;
}

void hcomm_link_fault_untell(struct hcomm_link *link)
{
	spin_lock_bh(&link->group->links_lock);
	link->fault_known = false;
	spin_unlock_bh(&link->group->links_lock);
}

void hcomm_link_tell_fault(struct hcomm_link *link)
{
	const struct hcomm_fault *fault = &link->fault;
	struct hcomm_note *note;
	u32 speaker;
	bool tell;

	lockdep_assert_held(&link->session->links_lock);
	spin_lock_bh(&link->group->links_lock);
	speaker = hcomm_link_speaker(link);
	tell = link->faulted && !link->fault_known && link->peer_handle &&
	       speaker != HCOMM_NO_RANK;
	if (tell)
		link->fault_known = true;
	spin_unlock_bh(&link->group->links_lock);
	if (!tell)
		return;
	note = hcomm_note_alloc(HCOMM_WIRE_GROUP_ABORT, 0,
				GFP_KERNEL | __GFP_NOFAIL);
	note->msg.hdr.group = link->peer_handle;
	note->msg.hdr.src = speaker;
	note->msg.hdr.dst = fault->rank;
	note->msg.hdr.offset = fault->op;
	note->msg.hdr.delta = -fault->error;
	note->msg.hdr.aux = fault->cause;
	hcomm_session_note(link->session, note);
}

/* @known: the link whose peer told us, if any. Any context. */
static void hcomm_links_fault(struct hcomm_group *group, u32 reporter,
			      const struct hcomm_fault *fault,
			      struct hcomm_link *known)
{
	struct hcomm_link *link;

	spin_lock_bh(&group->links_lock);
	list_for_each_entry(link, &group->links, group_node) {
		if (link->faulted)
			continue;
		link->faulted = true;
		link->fault = *fault;
		link->fault_reporter = reporter;
		link->fault_known = link == known;
		hcomm_link_get(link);
		queue_work(hcomm_progress_wq, &link->fault_work);
	}
	spin_unlock_bh(&group->links_lock);
}

void hcomm_session_group_fault(struct hcomm_group *group, u32 reporter,
			       const struct hcomm_fault *fault)
{
	hcomm_links_fault(group, reporter, fault, NULL);
}

void hcomm_link_abort_received(struct hcomm_session *session,
			       const struct hcomm_wire_msg *m)
{
	struct hcomm_fault fault = {
		.cause = m->h.aux,
		.error = -(int)m->h.delta,
		.rank = m->h.dst,
		.op = m->h.offset,
	};
	struct hcomm_link *link;

	if (!m->h.aux || m->h.aux > HCOMM_CAUSE_REVOKED || !m->h.delta ||
	    m->h.delta > MAX_ERRNO)
		return;
	mutex_lock(&session->links_lock);
	link = hcomm_link_find(session, m->h.group);
	/* Counts only from the session that proved the one who says it. */
	if (link && hcomm_remote_find(link, m->h.src) &&
	    (fault.rank < link->group->size || fault.rank == HCOMM_NO_RANK))
		hcomm_link_get(link);
	else
		link = NULL;
	mutex_unlock(&session->links_lock);
	if (!link)
		return;
	hcomm_group_fail(link->group, &fault);
	hcomm_links_fault(link->group, m->h.src, &fault, link);
	hcomm_link_put(link);
}

void hcomm_group_mourn_all(struct hcomm_group *group,
			   unsigned long *lost)
{
	struct hcomm_fault fault;
	unsigned int rank;

	for_each_set_bit(rank, lost, group->size) {
		hcomm_endpoints_fail(group, rank, -ESHUTDOWN);
		hcomm_group_mourn(group, rank, HCOMM_CAUSE_PROCESS);
	}
	fault = hcomm_fault_of_death(find_first_bit(lost, group->size));
	hcomm_session_group_fault(group, fault.rank, &fault);
	bitmap_free(lost);
}
