/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What carries a group: "kmod" is the device, "local" is shared memory alone.
 * The executor sees neither; inside an instance both are loads and stores,
 * and this says how to sleep, wake, notice a death, and reach other
 * instances.
 */
#ifndef HCOMM_TRANSPORT_H
#define HCOMM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hcomm.h"

struct hcommComm;
struct hcomm_boot;
struct hcomm_cond;
struct hcomm_device;
struct hcomm_record;

/* A remote operation. Offsets count from the start of heap or window. */
struct hcomm_remote {
	enum { HCOMM_REMOTE_PUT, HCOMM_REMOTE_GET, HCOMM_REMOTE_SIGNAL,
	       HCOMM_REMOTE_FENCE } kind;
	int rank;
	uint32_t object;	/* local memory, HCOMM_OBJECT_HEAP for my heap */
	uint32_t window;	/* of @rank; 0 is its heap */
	uint64_t local;
	uint64_t remote;
	size_t bytes;
	bool signal;
	uint32_t sem;		/* a semaphore of @rank, with @signal */
	uint32_t delta;
	uint64_t cookie;	/* HCOMM_COOKIE_*; says what the end means */
};

#define HCOMM_OBJECT_HEAP	UINT32_MAX

#define HCOMM_COOKIE_NONE	0	/* no completion wanted */
#define HCOMM_COOKIE_OUT(slot)	(1 + (uint64_t)(slot))	/* frees an out slot */
#define HCOMM_COOKIE_OUT_MASK	0xffffULL
#define HCOMM_COOKIE_ONESIDED	(1ULL << 32)	/* also counts for its rank */

struct hcomm_transport {
	const char *name;
	/*
	 * Makes the heap, maps those of the local ranks, fills ranks[].heap.
	 * Collective; uses boot rounds. The text of an error is in boot->why.
	 */
	hcommResult_t (*open)(struct hcommComm *comm, struct hcomm_boot *boot);
	/* Local ranks keep their mappings. Peers are told if the group lives. */
	void (*close)(struct hcommComm *comm);

	/* Reads what changes when something happens; before the last look. */
	void (*park_begin)(struct hcommComm *comm);
	/* Sleeps at most @ns, not at all if something happened since begin. */
	void (*park)(struct hcommComm *comm, const struct hcomm_cond *conds,
		     int nr, uint64_t ns);
	void (*wake)(struct hcommComm *comm, int rank);

	/* Cheap, called while spinning. True: the group has failed. */
	bool (*failed)(struct hcommComm *comm);
	/* Each ms of waiting and more rarely later: deaths and departures. */
	void (*check)(struct hcommComm *comm);
	/* Tells the other ranks why the group ended. Any thread. */
	void (*abort)(struct hcommComm *comm, hcommResult_t result,
		      int culprit, uint64_t op);

	/* Other instances; NULL when there are none. */
	hcommResult_t (*post)(struct hcommComm *comm,
			      const struct hcomm_remote *remote);
	void (*poll)(struct hcommComm *comm);	/* counts completions */
	/* Copies from my heap to the same place in @rank's, or does nothing. */
	void (*hint)(struct hcommComm *comm, int rank, uint64_t offset,
		     size_t bytes);
	const uint64_t *(*semaphore)(struct hcommComm *comm, uint32_t sem);
	/* Semaphores of the library, of any rank: data of and credit from r. */
	uint32_t (*data_sem)(struct hcommComm *comm, int source);
	uint32_t (*credit_sem)(struct hcommComm *comm, int destination);

	/* Windows; NULL when there are none. Negative errno. */
	struct hcomm_device *(*device)(struct hcommComm *comm);
	int (*attach)(struct hcommComm *comm, uint32_t window, uint32_t object);
	int (*detach)(struct hcommComm *comm, uint32_t window);
};

extern const struct hcomm_transport hcomm_transport_local;
extern const struct hcomm_transport hcomm_transport_kmod;

/*
 * Asks the device about itself. Fills the record's instance part and sets
 * HCOMM_RECORD_DEVICE; otherwise says in @why what is missing.
 */
void hcomm_kmod_probe(const char *device, struct hcomm_record *record,
		      char *why, size_t why_bytes);

#endif
