// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Making, describing and ending groups; the default group of the process. */
#define _GNU_SOURCE
#include <string.h>

#include "api/face.h"
#include "api/registry.h"
#include "exec/run.h"
#include "exec/window.h"

#define MAX_RANKS	4096
#define LEAVE_NS	5000000000ULL	/* how long destroy waits for the others */

static hcommResult_t load_settings(struct hcomm_settings *settings,
				   const hcommConfig_t *config)
{
	char why[HCOMM_ERROR_TEXT];
	hcommResult_t res;

	res = hcomm_settings_load(settings, config, why, sizeof(why));
	return res ? hcomm_face_error(res, "%s", why) : HCOMM_SUCCESS;
}

hcommResult_t hcommGetUniqueId(hcommUniqueId *id)
{
	struct hcomm_settings settings;
	char why[HCOMM_ERROR_TEXT];
	hcommResult_t res = hcomm_face_process();

	if (res)
		return res;
	if (!id)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, "id is NULL");
	res = load_settings(&settings, NULL);
	if (res)
		return res;
	memset(id, 0, sizeof(*id));
	res = hcomm_meeting_make_id(id, &settings, why, sizeof(why));
	return res ? hcomm_face_error(res, "%s", why) : HCOMM_SUCCESS;
}

static hcommResult_t create(hcommComm_t *comm,
			    const struct hcomm_meeting *meeting, int rank,
			    int n, const struct hcomm_settings *settings)
{
	char why[HCOMM_ERROR_TEXT] = "";
	hcommResult_t res;

	res = hcomm_comm_create(comm, meeting, rank, n, settings, why,
				sizeof(why));
	if (res)
		return hcomm_face_error(res, "rank %d: %s", rank, why);
	hcomm_registry_add(*comm);
	return HCOMM_SUCCESS;
}

hcommResult_t hcommCommInitRankConfig(hcommComm_t *comm, int nranks,
				      hcommUniqueId id, int rank,
				      const hcommConfig_t *config)
{
	struct hcomm_settings settings;
	struct hcomm_meeting meeting;
	char why[HCOMM_ERROR_TEXT];
	hcommResult_t res = hcomm_face_process();

	if (res)
		return res;
	if (!comm)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, "comm is NULL");
	*comm = NULL;
	if (nranks < 1 || nranks > MAX_RANKS)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
			"%d ranks: a group has 1 to %d", nranks, MAX_RANKS);
	if (rank < 0 || rank >= nranks)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
			"rank %d is not in 0 to %d", rank, nranks - 1);
	res = load_settings(&settings, config);
	if (res)
		return res;
	res = hcomm_meeting_from_id(&meeting, &id, why, sizeof(why));
	if (res)
		return hcomm_face_error(res, "%s", why);
	return create(comm, &meeting, rank, nranks, &settings);
}

hcommResult_t hcommCommInitRank(hcommComm_t *comm, int nranks,
				hcommUniqueId id, int rank)
{
	return hcommCommInitRankConfig(comm, nranks, id, rank, NULL);
}

hcommResult_t hcommInit(void)
{
	struct hcomm_settings settings;
	struct hcomm_meeting meeting;
	char why[HCOMM_ERROR_TEXT];
	hcommResult_t res = hcomm_face_process();
	hcommComm_t comm;
	int rank, n;

	if (res)
		return res;
	res = load_settings(&settings, NULL);
	if (res)
		return res;
	res = hcomm_meeting_from_env(&meeting, &settings, &rank, &n, why,
				     sizeof(why));
	if (res)
		return hcomm_face_error(res, "%s", why);
	res = hcomm_registry_default_begin();
	if (res)
		return res;
	res = create(&comm, &meeting, rank, n, &settings);
	hcomm_registry_default_end(comm);
	return res;
}

hcommResult_t hcommCommDefault(hcommComm_t *comm)
{
	hcommResult_t res = hcomm_face_process();
	bool making;

	if (res)
		return res;
	if (!comm)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, "comm is NULL");
	*comm = hcomm_registry_default(&making);
	if (*comm)
		return HCOMM_SUCCESS;
	return hcomm_face_error(HCOMM_INVALID_USAGE, making ?
		"the default group is being made: hcommInit() in another "
		"thread has not returned" :
		"there is no default group: call hcommInit()");
}

hcommResult_t hcommFinalize(void)
{
	hcommComm_t comm;
	hcommResult_t res = hcommCommDefault(&comm);

	return res ? res : hcommCommDestroy(comm);
}

/* Lets the others come to the same point, and the device finish. */
static void part(hcommComm_t comm)
{
	hcommResult_t res;

	if (comm->settings.timeout_ns > LEAVE_NS)
		comm->settings.timeout_ns = LEAVE_NS;
	comm->leaving = true;
	res = hcomm_run_barrier(comm, HCOMM_COLL_DESTROY);
	if (!res)
		hcomm_run_drain(comm);
	else if (res == HCOMM_MISMATCH)	/* too late for any call to tell */
		hcomm_log(HCOMM_LOG_WARN, "%s", comm->text);
}

/* Becomes the last user. The rank of a busy group is not looked at. */
static hcommResult_t claim(hcommComm_t comm)
{
	bool busy;

	if (hcomm_registry_claim(comm, &busy))
		return HCOMM_SUCCESS;
	if (busy)
		return hcomm_face_error(HCOMM_BUSY,
			"another thread is inside a call with this group");
	return hcomm_face_gone();
}

hcommResult_t hcommCommDestroy(hcommComm_t comm)
{
	hcommResult_t res = hcomm_face_check(comm);
	int noted;

	if (!res)
		res = claim(comm);
	if (res)
		return res;
	noted = __atomic_load_n(&comm->noted, __ATOMIC_ACQUIRE);
	if (noted)
		return hcomm_face_refused(comm,
			hcomm_face_error(HCOMM_INVALID_USAGE,
				"hcommGroupStart() noted %d call(s) with this "
				"group: call hcommGroupEnd() first", noted));
	if (!comm->transport->failed(comm))
		part(comm);
	hcomm_registry_remove(comm);
	hcomm_window_forget(comm);
	hcomm_comm_free(comm);
	return HCOMM_SUCCESS;
}

hcommResult_t hcommCommAbort(hcommComm_t comm)
{
	hcommResult_t res = hcomm_face_check(comm);

	if (res)
		return res;
	hcomm_comm_abort(comm);
	return HCOMM_SUCCESS;
}

hcommResult_t hcommCommGetAsyncError(hcommComm_t comm, hcommResult_t *async)
{
	hcommResult_t res = hcomm_face_check(comm);

	if (res)
		return res;
	if (!async)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
					"async is NULL");
	comm->transport->failed(comm);
	*async = hcomm_comm_failed(comm);
	return HCOMM_SUCCESS;
}

hcommResult_t hcommCommGetInfo(hcommComm_t comm, hcommCommInfo_t *info)
{
	hcommResult_t res = hcomm_face_check(comm);
	hcommCommInfo_t full;
	size_t room;

	if (res)
		return res;
	if (!info || info->size < offsetof(hcommCommInfo_t, ninstances))
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
			"info is NULL or its size is not set");
	memset(&full, 0, sizeof(full));
	room = info->size < sizeof(full) ? info->size : sizeof(full);
	full.size = room;
	full.rank = comm->rank;
	full.nranks = comm->n;
	full.ninstances = comm->shape.ninst;
	full.instance = comm->inst;
	full.local_rank = comm->shape.index_of[comm->rank];
	full.local_nranks = comm->nlocal;
	full.same_va = comm->same_va;
	full.authenticated = comm->authenticated;
	strncpy(full.transport, comm->transport->name,
		sizeof(full.transport) - 1);
	if (comm->transport == &hcomm_transport_kmod) {
		memcpy(full.device, comm->table[comm->rank].device,
		       sizeof(full.device));
		memcpy(full.abi, comm->table[comm->rank].abi_version,
		       sizeof(full.abi) - 1);
	}
	full.heap_base = comm->heap;
	full.heap_size = comm->layout.bytes - comm->layout.user;
	full.heap_free = hcomm_symheap_largest(&comm->symheap);
	full.ops = __atomic_load_n(&comm->op, __ATOMIC_RELAXED);
	full.user_semaphores = HCOMM_USER_SEMAPHORES;
	memcpy(info, &full, room);
	return HCOMM_SUCCESS;
}

hcommResult_t hcommCommRank(hcommComm_t comm, int *rank)
{
	hcommResult_t res = hcomm_face_check(comm);

	if (res)
		return res;
	if (!rank)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, "rank is NULL");
	*rank = comm->rank;
	return HCOMM_SUCCESS;
}

hcommResult_t hcommCommCount(hcommComm_t comm, int *nranks)
{
	hcommResult_t res = hcomm_face_check(comm);

	if (res)
		return res;
	if (!nranks)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
					"nranks is NULL");
	*nranks = comm->n;
	return HCOMM_SUCCESS;
}
