/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A window is a memory object exported into one group under an id and a
 * generation; peers address it as (rank, window, offset).
 *
 * Life: LIVE (found by peers) -> REVOKING (not found any more; remote kernels
 * are told and have to answer, or their session is reset) -> QUIESCED (no
 * peer can reach it; event to the owner, the object loses it).
 */
#ifndef HCOMM_WINDOW_H
#define HCOMM_WINDOW_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include "../uapi/hcomm.h"

struct hcomm_mem;
struct hcomm_member;

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
	u32 generation;
	enum hcomm_window_state state;	/* mem->lock */
	struct list_head mem_node;	/* mem->windows */
	struct list_head adverts;	/* session.c: peers that hold keys */
	atomic_t adverts_left;		/* session.c: answers still missing */
};

int hcomm_window_attach(struct hcomm_member *member,
			struct hcomm_win_attach *arg);
int hcomm_window_detach(struct hcomm_member *member, u32 id);
/* All windows of a member that ended or failed. Process context. */
void hcomm_windows_revoke(struct hcomm_member *member);

/*
 * The live window @id of @member, referenced. -ENOENT when there never was
 * one, -ESTALE when it is gone or @generation (0: any) is another. Any context.
 */
struct hcomm_window *hcomm_window_find(struct hcomm_member *member, u32 id,
				       u32 generation);
void hcomm_window_get(struct hcomm_window *window);
void hcomm_window_put(struct hcomm_window *window);	/* any context */

/* session.c calls this once, when no peer can reach the window. Process ctx. */
void hcomm_window_quiesced(struct hcomm_window *window);

#endif
