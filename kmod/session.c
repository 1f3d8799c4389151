// SPDX-License-Identifier: GPL-2.0
/*
 * Sessions to the other instances. As long as no peer is known there is
 * nothing to carry an op and nobody who holds a key: an op to a remote rank
 * ends at once with -ENETUNREACH, a window is quiesced as soon as it is down.
 */
#include "member.h"
#include "op.h"
#include "session.h"

int hcomm_transport_init(void)
{
	return 0;
}

void hcomm_transport_exit(void)
{
}

int hcomm_fabric_create(struct hcomm_instance *instance)
{
	return 0;
}

void hcomm_fabric_destroy(struct hcomm_instance *instance)
{
}

void hcomm_fabric_query(struct hcomm_instance *instance,
			struct hcomm_query *query)
{
	memset(query->addr, 0, sizeof(query->addr));
	query->listen_port = 0;
	query->nr_ports = 0;
}

void hcomm_session_member_up(struct hcomm_member *member)
{
}

void hcomm_session_peers_set(struct hcomm_member *member)
{
}

void hcomm_session_member_down(struct hcomm_member *member,
			       enum hcomm_cause cause)
{
}

void hcomm_session_window_up(struct hcomm_window *window)
{
}

void hcomm_session_window_down(struct hcomm_window *window)
{
	hcomm_window_quiesced(window);
}

void hcomm_session_mem_release(struct hcomm_mem *mem)
{
}

void hcomm_session_group_fault(struct hcomm_group *group, u32 reporter,
			       const struct hcomm_fault *fault)
{
}

void hcomm_session_submit(struct hcomm_op *op)
{
	hcomm_op_complete(op, -ENETUNREACH, 0);
}

bool hcomm_session_cancel(struct hcomm_op *op)
{
	return true;
}
