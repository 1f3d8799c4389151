/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Collectives, as something that runs until it has to wait. */
#ifndef HCOMM_COLL_H
#define HCOMM_COLL_H

#include <stdbool.h>

#include "exec/wait.h"
#include "schedule/shape.h"

struct hcommComm;

enum hcomm_coll_stage {
	HCOMM_STAGE_PUBLISH,	/* tell the local ranks what this is */
	HCOMM_STAGE_FLAT,	/* small: everything is in the op slots */
	HCOMM_STAGE_MEET,	/* large: learn where the buffers are */
	HCOMM_STAGE_PREPARE,	/* chunk by chunk from here on */
	HCOMM_STAGE_PARTS,
	HCOMM_STAGE_VALUES,
	HCOMM_STAGE_SPREAD,
	HCOMM_STAGE_LEAVE,
	HCOMM_STAGE_END,
};

struct hcomm_coll {
	/* The caller's. */
	enum hcomm_coll_kind kind;
	size_t count;
	hcommDataType_t type;
	hcommRedOp_t redop;
	int root;
	const char *src;
	char *dst;

	/* The executor's. */
	enum hcomm_coll_stage stage;
	uint32_t signature;
	bool flat;
	bool src_staged;
	bool dst_staged;
	struct hcomm_split split;
	uint64_t base;		/* flag value before chunk 0 */
	size_t chunk;		/* whose values come next */
	size_t ahead;		/* chunk to be prepared next */
	int seg;
};

/* Takes the next operation number; run is called until it is done. */
void hcomm_coll_start(struct hcommComm *comm, struct hcomm_coll *coll);
enum hcomm_run hcomm_coll_run(struct hcommComm *comm, struct hcomm_coll *coll,
			      struct hcomm_cond *cond);

#endif
