/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What one process can make the kernel hold. QUERY reports these; the code
 * that allocates enforces them.
 */
#ifndef HCOMM_LIMITS_H
#define HCOMM_LIMITS_H

#define HCOMM_MAX_INSTANCES	64
#define HCOMM_MAX_MEMBERS	256	/* memberships of a process, per instance */
#define HCOMM_MAX_OBJECTS	1024	/* memory objects, the same */
#define HCOMM_MAX_WINDOWS	1024	/* windows of a membership at a time */
#define HCOMM_MAX_KEYS		(1024 * 1024)	/* of all of them: a peer keeps that many */
#define HCOMM_WINDOW_IDS	(1024 * 1024)	/* in the life of a membership */
#define HCOMM_MAX_USER_SEMS	1024
#define HCOMM_MAX_SQ_ENTRIES	8192
#define HCOMM_MAX_CQ_ENTRIES	16384
#define HCOMM_MAX_EVENT_ENTRIES	16384
#define HCOMM_MAX_OP_BYTES	(1024ULL * 1024 * 1024)
#define HCOMM_MAX_SEGMENTS	64	/* heap files a membership offers */

#define HCOMM_OP_TIMEOUT_NS	(590ULL * 1000000000)	/* unless JOIN says */

#endif
