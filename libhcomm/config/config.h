/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Settings of a group: the caller's structure, then the environment, then
 * the default. And the lines the library prints.
 */
#ifndef HCOMM_CONFIG_H
#define HCOMM_CONFIG_H

#include <stdint.h>
#include <stddef.h>

#include "hcomm.h"

enum hcomm_transport_choice {
	HCOMM_TRANSPORT_AUTO,
	HCOMM_TRANSPORT_KMOD,
	HCOMM_TRANSPORT_LOCAL,
};

enum hcomm_wait_policy {
	HCOMM_WAIT_AUTO,
	HCOMM_WAIT_SPIN,
	HCOMM_WAIT_YIELD,
	HCOMM_WAIT_PARK,
};

struct hcomm_settings {
	size_t heap_size;
	uint64_t timeout_ns;
	uint64_t connect_timeout_ns;
	enum hcomm_transport_choice transport;
	enum hcomm_wait_policy wait;
	char device[16];		/* "hcomm0" */
	char ifname[16];
	char job[64];			/* "" when not set */
	int has_secret;
	uint8_t secret[32];		/* digest of the secret's text */
};

/* On failure the reason is in @why. */
hcommResult_t hcomm_settings_load(struct hcomm_settings *settings,
				  const hcommConfig_t *config,
				  char *why, size_t why_bytes);

enum hcomm_level { HCOMM_LOG_WARN = 1, HCOMM_LOG_INFO, HCOMM_LOG_TRACE };

/* One line to standard error, or the file of HCOMM_DEBUG=LEVEL:FILE. */
void hcomm_log(enum hcomm_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
