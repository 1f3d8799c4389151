/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sessions carry ops to other instances. One session per pair of instances,
 * shared by all groups, keyed by the id that the peer's kernel stated. What
 * the rest of the module may call is here; flows, proofs, adverts and paths
 * are private to the transport (session.c, flow_tx.c, ..., path.c, cm.c).
 */
#ifndef HCOMM_SESSION_H
#define HCOMM_SESSION_H

#include "group.h"
#include "window.h"

struct hcomm_instance;
struct hcomm_member;
struct hcomm_mem;
struct hcomm_op;

/* Module load and unload; per-instance parts (listener, ports, sessions). */
int hcomm_transport_init(void);
void hcomm_transport_exit(void);
int hcomm_fabric_create(struct hcomm_instance *instance);
void hcomm_fabric_destroy(struct hcomm_instance *instance);
/* Fills addr, listen_port, nr_ports and FEAT_RDMA. */
void hcomm_fabric_query(struct hcomm_instance *instance,
			struct hcomm_query *query);

/* With the member's structure, before anybody can find it, and after all. */
void hcomm_endpoint_init(struct hcomm_member *member);
void hcomm_endpoint_free(struct hcomm_member *member);

/* Process context; none of them waits for a peer. */
void hcomm_session_member_up(struct hcomm_member *member);
void hcomm_session_peers_set(struct hcomm_member *member);
/*
 * The rank left (CAUSE_NONE) or its process ended. Tells the peers, ends ops
 * with nothing posted. After it returns nothing new of this member is posted;
 * what is posted holds references until its path has let go of it.
 */
void hcomm_session_member_down(struct hcomm_member *member,
			       enum hcomm_cause cause);
void hcomm_session_window_up(struct hcomm_window *window);
/* Ends in hcomm_window_quiesced(), at once if no peer ever had a key. */
void hcomm_session_window_down(struct hcomm_window *window);
/* Drops all registrations of an object that nobody can reach any more. */
void hcomm_session_mem_release(struct hcomm_mem *mem);

/* Any context. Tells all instances that have ranks of this group. */
void hcomm_session_group_fault(struct hcomm_group *group, u32 reporter,
			       const struct hcomm_fault *fault);
/*
 * Takes over an op whose rank is not on this instance. False: it is by now, or
 * has been. No lock held.
 */
bool hcomm_session_submit(struct hcomm_op *op);
/*
 * Ops of @member that waited to hear where the rank of @target is: here. They
 * go to the copier. No lock held, any context.
 */
void hcomm_session_unwait(struct hcomm_member *member,
			  struct hcomm_member *target);
/*
 * Takes the op back if nothing of it is with the flow: true, the caller
 * completes it. False: it can only end with its group; if some of it was not
 * given to the flow, it ends with @status although the rest arrived.
 */
bool hcomm_session_cancel(struct hcomm_op *op, int status);

#endif
