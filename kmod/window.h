/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window is a memory object exported into one group under an id and a
 * generation; peers address it as (rank, window, offset).
 *
 * Life: LIVE (found by peers) -> REVOKING (not found any more; remote kernels
 * are told and have to answer, or their session is reset) -> QUIESCED (no
 * peer can reach it; event to the owner, the object loses it).
 *
 * A reference is the right to touch the window's memory: QUIESCED comes when
 * session.c has said that no peer can reach the window and the last reference
 * (a local copy, an arriving message, an advert) is gone.
 */
#ifndef HCOMM_WINDOW_H
#define HCOMM_WINDOW_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "../uapi/hcomm.h"

struct hcomm_mem;
struct hcomm_member;
struct rdma_cgroup;

enum hcomm_window_state {
	HCOMM_WINDOW_LIVE,
	HCOMM_WINDOW_REVOKING,
	HCOMM_WINDOW_QUIESCED,
};

struct hcomm_window {
	struct kref ref;
	struct rcu_head rcu;
	struct hcomm_member *member;
	struct hcomm_mem *mem;
	u32 id;
	u32 nr_keys;			/* that a peer may have to keep */
	u32 generation;
	enum hcomm_window_state state;	/* mem->lock */
	struct list_head mem_node;	/* mem->windows */
	struct rdma_cgroup *cg;
	struct work_struct quiesce_work;
};

/* The member's table of windows; freed with its last reference. */
void hcomm_windows_init(struct hcomm_member *member);
void hcomm_windows_free(struct hcomm_member *member);

int hcomm_window_attach(struct hcomm_member *member,
			struct hcomm_win_attach *arg);
int hcomm_window_detach(struct hcomm_member *member, u32 id);
/*
 * All windows of a member that ended or failed. Process context; the state has
 * changed before, so no attach comes after.
 */
void hcomm_windows_revoke(struct hcomm_member *member);

/*
 * The live window @id of @member, referenced. -ENOENT when there never was
 * one, -ESTALE when it is gone or @generation (0: any) is another. Any context.
 */
struct hcomm_window *hcomm_window_find(struct hcomm_member *member, u32 id,
				       u32 generation);
/*
 * The live window with the lowest id from *@id on, referenced, its id in *@id;
 * NULL when there is none. Any context.
 */
struct hcomm_window *hcomm_window_next(struct hcomm_member *member, u32 *id);
void hcomm_window_get(struct hcomm_window *window);
void hcomm_window_put(struct hcomm_window *window);	/* any context */

/*
 * session.c calls this once, when no peer can reach the window: drops the
 * reference that the attach made. Any context.
 */
void hcomm_window_quiesced(struct hcomm_window *window);

#endif
