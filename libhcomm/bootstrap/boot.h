/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How ranks find each other: one place to meet, a proof both ways that they
 * belong together, a table of what each rank is, and a few rounds of "did
 * that work for everybody" while the group is made. Used by one thread, until
 * the group is ready; nothing of it stays.
 */
#ifndef HCOMM_BOOT_H
#define HCOMM_BOOT_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "hcomm.h"

#define HCOMM_BOOT_ID		16
#define HCOMM_BOOT_SECRET	32
#define HCOMM_BOOT_TEXT		512

/* Where to meet. */
struct hcomm_meeting {
	bool unix_socket;
	char host[256];			/* or the abstract name */
	uint16_t port;
	int nports;			/* rank 0 takes the first free one */
	int listener;			/* made with the unique id, or -1 */
	bool authenticated;
	uint8_t job[HCOMM_BOOT_ID];	/* refuses members of another job */
	uint8_t secret[HCOMM_BOOT_SECRET];
	char source[64];		/* what named it, for messages */
};

/* What the ranks tell each other about themselves; the same on the wire. */
struct hcomm_record {
	uint32_t rank;
	uint32_t pid;
	uint32_t flags;			/* HCOMM_RECORD_* */
	uint32_t abi;
	uint8_t boot_id[16];
	uint8_t instance_id[16];
	uint8_t addr[16];
	uint16_t port;
	uint16_t reserved;
	uint32_t va_mask;
	uint64_t heap_size;
	uint64_t cpus[4];		/* usable ones, the first 256 */
	char device[16];
	char abi_version[32];
	uint64_t reserved2[8];
};

#define HCOMM_RECORD_DEVICE	(1U << 0)	/* the device answers */
#define HCOMM_RECORD_WANT_KMOD	(1U << 1)
#define HCOMM_RECORD_WANT_LOCAL	(1U << 2)

struct hcomm_boot {
	int rank;
	int n;
	uint64_t start;			/* CLOCK_MONOTONIC, ns */
	uint64_t deadline;
	bool noticed;			/* who is missing was told in the log */
	int *fds;			/* rank 0: by rank; others: [0] */
	struct hcomm_record *table;
	uint8_t group_id[HCOMM_BOOT_ID];
	uint8_t secret[HCOMM_BOOT_SECRET];	/* of the group */
	bool authenticated;
	char why[HCOMM_BOOT_TEXT];
};

/* The place that the environment names; n = 1 when it names none. */
hcommResult_t hcomm_meeting_from_env(struct hcomm_meeting *meeting,
				     const struct hcomm_settings *settings,
				     int *rank, int *n, char *why,
				     size_t why_bytes);
hcommResult_t hcomm_meeting_from_id(struct hcomm_meeting *meeting,
				    const hcommUniqueId *id, char *why,
				    size_t why_bytes);
/* Makes an id whose listener this process holds until it is used. */
hcommResult_t hcomm_meeting_make_id(hcommUniqueId *id,
				    const struct hcomm_settings *settings,
				    char *why, size_t why_bytes);
/* The listener that was made for @job, once; -1 if there is none. */
int hcomm_meeting_take_listener(const uint8_t *job);

/* Meets the others and fills the table. Always followed by close. */
hcommResult_t hcomm_boot_open(struct hcomm_boot *boot,
			      const struct hcomm_meeting *meeting,
			      const struct hcomm_record *mine, int n,
			      uint64_t timeout_ns);
/*
 * A round: returns success on every rank when every rank passed success,
 * otherwise the lowest failed rank's result, and its text in boot->why.
 */
hcommResult_t hcomm_boot_sync(struct hcomm_boot *boot, hcommResult_t result,
			      const char *text);
void hcomm_boot_close(struct hcomm_boot *boot);

#endif
