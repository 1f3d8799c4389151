// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The blocking driver of executors: run, wait for what it names, run again. */
#include "exec/comm.h"
#include "exec/run.h"

hcommResult_t hcomm_run_coll(struct hcommComm *comm, struct hcomm_coll *coll)
{
	struct hcomm_cond cond;
	hcommResult_t res;

	hcomm_coll_start(comm, coll);
	for (;;) {
		switch (hcomm_coll_run(comm, coll, &cond)) {
		case HCOMM_RUN_DONE:
			return HCOMM_SUCCESS;
		case HCOMM_RUN_FAILED:
			return hcomm_comm_failed(comm);
		case HCOMM_RUN_BLOCKED:
			res = hcomm_wait(comm, &cond, 1);
			if (res)
				return res;
		}
	}
}

/* Between instances it is an all-reduce of one byte, inside one of none. */
hcommResult_t hcomm_run_barrier(struct hcommComm *comm,
				enum hcomm_coll_kind kind)
{
	char byte = 0;
	struct hcomm_coll coll = {
		.kind = kind, .count = comm->shape.ninst > 1,
		.type = HCOMM_UINT8, .redop = HCOMM_MAX, .root = -1,
		.src = &byte, .dst = &byte,
	};

	return hcomm_run_coll(comm, &coll);
}

static bool idle(const struct hcommComm *comm)
{
	int i;

	for (i = 0; i < HCOMM_OUT_SLOTS; i++)
		if (comm->out[i].pending)
			return false;
	for (i = 0; i < comm->n; i++)
		if (comm->ranks[i].ops_posted != comm->ranks[i].ops_ended)
			return false;
	return true;
}

hcommResult_t hcomm_run_drain(struct hcommComm *comm)
{
	struct hcomm_cond cond = { .kind = HCOMM_COND_DEVICE, .rank = -1 };
	hcommResult_t res;

	if (!comm->transport->poll)
		return HCOMM_SUCCESS;
	comm->transport->poll(comm);
	while (!idle(comm)) {
		cond.value = comm->completions + 1;
		res = hcomm_wait(comm, &cond, 1);
		if (res)
			return res;
	}
	return HCOMM_SUCCESS;
}
