// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Making and ending a group. All ranks take the same decisions from the same
 * table: which transport, how large the heap is, where it lies. Whatever goes
 * wrong on one rank is told to all before anybody returns.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bootstrap/proof.h"
#include "exec/comm.h"
#include "exec/wait.h"

#define CAP_IPC_LOCK_BIT	14
#define PIN_RESERVE		((size_t)256 << 10)	/* for others' pins */

/* --------------------------------------------------------------- errors */

void hcomm_comm_set_text(struct hcommComm *comm, const char *text)
{
	pthread_mutex_lock(&comm->text_lock);
	if (!comm->failed)
		snprintf(comm->text, sizeof(comm->text), "%s", text);
	pthread_mutex_unlock(&comm->text_lock);
}

/* The first failure and its text stay. Returns what there was before. */
static hcommResult_t fail_once(struct hcommComm *comm, hcommResult_t result,
			       const char *text)
{
	hcommResult_t before;

	pthread_mutex_lock(&comm->text_lock);
	before = (hcommResult_t)comm->failed;
	if (!before) {
		snprintf(comm->text, sizeof(comm->text), "%s", text);
		__atomic_store_n(&comm->failed, (int)result, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&comm->text_lock);
	if (!before)
		hcomm_log(HCOMM_LOG_INFO, "%s", text);
	return before;
}

/* "rank 1: AllReduce #17 (1024 float32, sum): " */
static int describe_call(char *text, size_t room, const struct hcommComm *comm)
{
	const struct hcomm_call *call = &comm->call;
	char what[96] = "";
	int at = 0;

	if (call->name && call->count && call->redop >= 0)
		snprintf(what, sizeof(what), " (%zu %s, %s)", call->count,
			 hcommTypeName(call->type),
			 hcommRedOpName((hcommRedOp_t)call->redop));
	else if (call->name && call->count)
		snprintf(what, sizeof(what), " (%zu %s)", call->count,
			 hcommTypeName(call->type));
	at = snprintf(text, room, "rank %d: ", comm->rank);
	if (call->name)
		at += snprintf(text + at, room - (size_t)at, "%s #%llu%s: ",
			       call->name, (unsigned long long)call->op, what);
	return at;
}

hcommResult_t hcomm_comm_fail(struct hcommComm *comm, hcommResult_t result,
			      int rank, bool told, const char *fmt, ...)
{
	char text[HCOMM_ERROR_TEXT];
	hcommResult_t before;
	va_list args;
	int at;

	at = describe_call(text, sizeof(text), comm);
	va_start(args, fmt);
	vsnprintf(text + at, sizeof(text) - (size_t)at, fmt, args);
	va_end(args);
	before = fail_once(comm, result, text);
	if (before)
		return before;
	if (!told && !comm->leaving)
		comm->transport->abort(comm, result, rank, comm->call.op);
	return result;
}

void hcomm_comm_abort(struct hcommComm *comm)
{
	char text[96];

	snprintf(text, sizeof(text), "rank %d: hcommCommAbort() was called",
		 comm->rank);
	if (!fail_once(comm, HCOMM_ABORTED, text))
		comm->transport->abort(comm, HCOMM_ABORTED, comm->rank, 0);
}

hcommResult_t hcomm_comm_error(struct hcommComm *comm, hcommResult_t result,
			       const char *fmt, ...)
{
	char text[HCOMM_ERROR_TEXT];
	va_list args;
	int at;

	at = snprintf(text, sizeof(text), "rank %d: ", comm->rank);
	va_start(args, fmt);
	vsnprintf(text + at, sizeof(text) - (size_t)at, fmt, args);
	va_end(args);
	hcomm_comm_set_text(comm, text);
	hcomm_log(HCOMM_LOG_INFO, "%s", text);
	return result;
}

/* ---------------------------------------------------- the own record */

static void read_boot_id(uint8_t id[16])
{
	char text[64] = "";
	uint8_t digest[HCOMM_DIGEST_BYTES];
	FILE *stream = fopen("/proc/sys/kernel/random/boot_id", "re");

	if (stream) {
		if (!fgets(text, sizeof(text), stream))
			*text = 0;
		fclose(stream);
	}
	hcomm_digest(text, strlen(text), digest);
	memcpy(id, digest, 16);
}

static bool may_lock_any(void)
{
	unsigned long long caps = 0;
	char line[128];
	FILE *stream = fopen("/proc/self/status", "re");

	if (!stream)
		return false;
	while (fgets(line, sizeof(line), stream))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(stream);
	return caps >> CAP_IPC_LOCK_BIT & 1;
}

/* What can be pinned: less than asked where RLIMIT_MEMLOCK is smaller. */
static uint64_t pinnable_heap(size_t wanted)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct rlimit limit;
	size_t most;

	if (may_lock_any() || getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted)
		return wanted;
	most = limit.rlim_cur;
	most -= most > 4 * PIN_RESERVE ? PIN_RESERVE : 0;
	most = most / page * page;
	hcomm_log(HCOMM_LOG_WARN, "the heap is %zu KiB instead of %zu KiB "
		  "because RLIMIT_MEMLOCK is %llu KiB: raise it (ulimit -l, "
		  "limits.d, LimitMEMLOCK=)", most >> 10, wanted >> 10,
		  (unsigned long long)limit.rlim_cur >> 10);
	return most;
}

static void fill_cpus(struct hcomm_record *record)
{
	cpu_set_t set;
	int cpu;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (cpu = 0; cpu < 256; cpu++)
		if (CPU_ISSET(cpu, &set))
			record->cpus[cpu / 64] |= 1ULL << (cpu % 64);
}

static void fill_record(struct hcomm_record *record, int rank, int n,
			const struct hcomm_settings *settings,
			char *no_device, size_t bytes)
{
	memset(record, 0, sizeof(*record));
	record->rank = (uint32_t)rank;
	record->pid = (uint32_t)getpid();
	read_boot_id(record->boot_id);
	fill_cpus(record);
	record->heap_size = settings->heap_size;
	*no_device = 0;
	if (settings->transport == HCOMM_TRANSPORT_KMOD)
		record->flags |= HCOMM_RECORD_WANT_KMOD;
	if (settings->transport == HCOMM_TRANSPORT_LOCAL)
		record->flags |= HCOMM_RECORD_WANT_LOCAL;
	else
		hcomm_kmod_probe(settings->device, record, no_device, bytes);
	if (record->flags & HCOMM_RECORD_DEVICE)
		record->heap_size = pinnable_heap(settings->heap_size);
	record->va_mask = hcomm_reserve_probe(settings->heap_size, n);
}

/* ------------------------------------------------ decisions of the group */

/* Reads the whole table; every rank comes to the same answer. */
static hcommResult_t choose_transport(struct hcommComm *comm,
				      const char *no_device, char *why,
				      size_t bytes)
{
	const struct hcomm_record *first = &comm->table[0];
	uint32_t any = 0, all = ~0U;
	bool one_host = true;
	int r;

	for (r = 0; r < comm->n; r++) {
		const struct hcomm_record *record = &comm->table[r];

		any |= record->flags;
		all &= record->flags;
		if (memcmp(record->boot_id, first->boot_id,
			   sizeof(first->boot_id)))
			one_host = false;
	}
	if ((any & HCOMM_RECORD_WANT_KMOD) && (any & HCOMM_RECORD_WANT_LOCAL)) {
		snprintf(why, bytes, "the transport (HCOMM_TRANSPORT or the "
			 "configuration) is kmod on some ranks and local on "
			 "others");
		return HCOMM_MISMATCH;
	}
	if (!(any & HCOMM_RECORD_WANT_LOCAL) && (all & HCOMM_RECORD_DEVICE)) {
		comm->transport = &hcomm_transport_kmod;
		return HCOMM_SUCCESS;
	}
	for (r = 0; r < comm->n; r++)
		if (!(comm->table[r].flags & HCOMM_RECORD_DEVICE))
			break;
	if (any & HCOMM_RECORD_WANT_KMOD) {
		snprintf(why, bytes, "the transport kmod is asked for, but "
			 "rank %d has no device%s%.300s", r,
			 *no_device ? "; here: " : "", no_device);
		return HCOMM_NOT_SUPPORTED;
	}
	if (!one_host) {
		snprintf(why, bytes, "the ranks are on several hosts, which "
			 "needs the hcomm module on each; rank %d has no "
			 "device%s%.300s", r, *no_device ? "; here: " : "",
			 no_device);
		return HCOMM_NOT_SUPPORTED;
	}
	if (*no_device && !comm->rank)
		hcomm_log(HCOMM_LOG_WARN, "%s: the ranks of this host use "
			  "shared memory alone (HCOMM_TRANSPORT=local says "
			  "that this is wanted)", no_device);
	comm->transport = &hcomm_transport_local;
	return HCOMM_SUCCESS;
}

static hcommResult_t make_shape(struct hcommComm *comm)
{
	uint8_t (*keys)[32] = calloc((size_t)comm->n, sizeof(*keys));
	int r, err;

	if (!keys)
		return HCOMM_OUT_OF_MEMORY;
	for (r = 0; r < comm->n; r++) {
		memcpy(keys[r], comm->table[r].boot_id, 16);
		if (comm->transport == &hcomm_transport_kmod)
			memcpy(keys[r] + 16, comm->table[r].instance_id, 16);
	}
	err = hcomm_shape_init(&comm->shape, comm->n, keys, sizeof(*keys));
	free(keys);
	if (err)
		return HCOMM_OUT_OF_MEMORY;
	comm->inst = comm->shape.inst_of[comm->rank];
	comm->nlocal = hcomm_shape_local(&comm->shape, comm->inst);
	comm->locals = comm->shape.rank + comm->shape.first[comm->inst];
	return HCOMM_SUCCESS;
}

static int common_base(const struct hcommComm *comm)
{
	uint32_t mask = ~0U;
	int r, s;

	for (r = 0; r < comm->n; r++) {
		mask &= comm->table[r].va_mask;
		/* Two ranks of one process cannot have the same address. */
		for (s = 0; s < r; s++)
			if (comm->table[s].pid == comm->table[r].pid &&
			    !memcmp(comm->table[s].boot_id,
				    comm->table[r].boot_id, 16))
				return -1;
	}
	return mask ? __builtin_ctz(mask) : -1;
}

static hcommResult_t make_heap_plan(struct hcommComm *comm, char *why,
				    size_t bytes)
{
	uint64_t heap = UINT64_MAX;
	int r, err, index;

	for (r = 0; r < comm->n; r++)
		if (comm->table[r].heap_size < heap)
			heap = comm->table[r].heap_size;
	err = hcomm_layout_init(&comm->layout, heap, comm->n,
				HCOMM_USER_SEMAPHORES);
	if (err) {
		snprintf(why, bytes, "a heap of %llu KiB is too small for %d "
			 "ranks: raise RLIMIT_MEMLOCK or HCOMM_HEAP_SIZE",
			 (unsigned long long)heap >> 10, comm->n);
		return HCOMM_OUT_OF_MEMORY;
	}
	index = common_base(comm);
	err = hcomm_reserve_init(&comm->reserve, comm->layout.bytes, comm->n,
				 index);
	comm->same_va = index >= 0;
	if (err && index >= 0) {
		snprintf(why, bytes, "the address range that was free before "
			 "is taken now: %s", strerror(-err));
		return HCOMM_SYSTEM_ERROR;
	}
	if (err) {
		snprintf(why, bytes, "cannot reserve address space for %d "
			 "heaps: %s", comm->n, strerror(-err));
		return HCOMM_OUT_OF_MEMORY;
	}
	err = hcomm_symheap_init(&comm->symheap, comm->layout.user,
				 comm->layout.bytes);
	return err ? HCOMM_OUT_OF_MEMORY : HCOMM_SUCCESS;
}

static void plan_waiting(struct hcommComm *comm)
{
	uint64_t cpus[4] = { 0 };
	int r, i, ranks = 0, nr = 0, limit;

	for (r = 0; r < comm->n; r++) {
		if (memcmp(comm->table[r].boot_id,
			   comm->table[comm->rank].boot_id, 16))
			continue;
		ranks++;
		for (i = 0; i < 4; i++)
			cpus[i] |= comm->table[r].cpus[i];
	}
	for (i = 0; i < 4; i++)
		nr += __builtin_popcountll(cpus[i]);
	limit = hcomm_cgroup_cpus();
	hcomm_budget_set(comm, ranks, limit < nr ? limit : nr);
}

static hcommResult_t make_arrays(struct hcommComm *comm)
{
	int r;

	comm->ranks = calloc((size_t)comm->n, sizeof(*comm->ranks));
	comm->srcs = calloc((size_t)comm->n + 1, sizeof(*comm->srcs));
	comm->dsts = calloc((size_t)comm->n + 1, sizeof(*comm->dsts));
	comm->scratch = aligned_alloc(64, (size_t)HCOMM_REDUCE_SCRATCH);
	if (!comm->ranks || !comm->srcs || !comm->dsts || !comm->scratch)
		return HCOMM_OUT_OF_MEMORY;
	for (r = 0; r < comm->n; r++) {
		comm->ranks[r].rank = r;
		comm->ranks[r].pid = (pid_t)comm->table[r].pid;
		comm->ranks[r].local = comm->shape.inst_of[r] == comm->inst;
	}
	return HCOMM_SUCCESS;
}

static hcommResult_t decide(struct hcommComm *comm, const char *no_device,
			    char *why, size_t bytes)
{
	hcommResult_t res = choose_transport(comm, no_device, why, bytes);

	if (res)
		return res;
	snprintf(why, bytes, "out of memory");
	res = make_shape(comm);
	if (res)
		return res;
	res = make_arrays(comm);
	if (res)
		return res;
	return make_heap_plan(comm, why, bytes);
}

static void take_secrets(struct hcommComm *comm, const struct hcomm_boot *boot,
			 const struct hcomm_meeting *meeting)
{
	memcpy(comm->group_id, boot->group_id, sizeof(comm->group_id));
	comm->authenticated = boot->authenticated;
	if (comm->authenticated)
		hcomm_hmac(meeting->secret, comm->group_id,
			   sizeof(comm->group_id), comm->secret);
	else
		memcpy(comm->secret, boot->secret, sizeof(comm->secret));
}

static void init_ctrl(struct hcommComm *comm)
{
	comm->ctrl = (struct hcomm_ctrl *)comm->heap;
	comm->ctrl->rank = (uint32_t)comm->rank;
	comm->ctrl->magic = HCOMM_CTRL_MAGIC;
}

static hcommResult_t set_up(struct hcommComm *comm, struct hcomm_boot *boot,
			    const char *no_device)
{
	char why[HCOMM_BOOT_TEXT] = "";
	hcommResult_t res;
	int i;

	res = decide(comm, no_device, why, sizeof(why));
	res = hcomm_boot_sync(boot, res, why);
	if (res)
		return res;
	plan_waiting(comm);
	res = comm->transport->open(comm, boot);
	if (res)
		return res;
	init_ctrl(comm);
	for (i = 0; i < comm->nlocal; i++) {
		struct hcomm_rank_state *peer = hcomm_rank(comm,
							   comm->locals[i]);

		peer->ctrl = (struct hcomm_ctrl *)peer->heap;
	}
	/* Nobody returns before everybody can be reached. */
	return hcomm_boot_sync(boot, HCOMM_SUCCESS, NULL);
}

hcommResult_t hcomm_comm_create(struct hcommComm **out,
				const struct hcomm_meeting *meeting, int rank,
				int n, const struct hcomm_settings *settings,
				char *why, size_t why_bytes)
{
	struct hcommComm *comm = calloc(1, sizeof(*comm));
	struct hcomm_record record;
	char no_device[256];
	struct hcomm_boot boot;
	hcommResult_t res;

	*out = NULL;
	if (!comm) {
		snprintf(why, why_bytes, "out of memory");
		return HCOMM_OUT_OF_MEMORY;
	}
	comm->rank = rank;
	comm->n = n;
	comm->settings = *settings;
	comm->heap_fd = -1;
	comm->next_window = 1;
	pthread_mutex_init(&comm->text_lock, NULL);

	fill_record(&record, rank, n, settings, no_device, sizeof(no_device));
	res = hcomm_boot_open(&boot, meeting, &record, n,
			      settings->connect_timeout_ns);
	if (!res) {
		comm->table = boot.table;
		take_secrets(comm, &boot, meeting);
		res = set_up(comm, &boot, no_device);
		boot.table = NULL;	/* the group's now */
	}
	if (res)
		snprintf(why, why_bytes, "%s", boot.why);
	hcomm_boot_close(&boot);
	if (res) {
		hcomm_comm_free(comm);
		return res;
	}
	*out = comm;
	return HCOMM_SUCCESS;
}

void hcomm_comm_free(struct hcommComm *comm)
{
	if (comm->transport)
		comm->transport->close(comm);
	hcomm_reserve_free(&comm->reserve);
	hcomm_symheap_free_all(&comm->symheap);
	if (comm->heap_fd >= 0)
		close(comm->heap_fd);
	hcomm_shape_free(&comm->shape);
	free(comm->ranks);
	free(comm->srcs);
	free(comm->dsts);
	free(comm->scratch);
	free(comm->table);
	pthread_mutex_destroy(&comm->text_lock);
	explicit_bzero(comm->secret, sizeof(comm->secret));
	free(comm);
}
