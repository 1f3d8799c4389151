/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The groups of this process, and which of them is the default one. A handle
 * that was destroyed is told from a living one without looking into it, as
 * long as no later group has got its memory.
 */
#ifndef HCOMM_REGISTRY_H
#define HCOMM_REGISTRY_H

#include <stdbool.h>

#include "hcomm.h"

void hcomm_registry_add(hcommComm_t comm);
void hcomm_registry_remove(hcommComm_t comm);
bool hcomm_registry_has(hcommComm_t comm);

/*
 * Becomes the user of @comm to destroy it, and keeps it in the registry: false
 * when it is not there, with *@busy false, or when it is in use.
 */
bool hcomm_registry_claim(hcommComm_t comm, bool *busy);

/*
 * The default group is made between begin and end, without a lock held
 * meanwhile. begin() is HCOMM_INVALID_USAGE when there is one, or another
 * thread makes it; end() gets NULL when that failed.
 */
hcommResult_t hcomm_registry_default_begin(void);
void hcomm_registry_default_end(hcommComm_t comm);
/* *@making: there is none yet, but a thread is making it. */
hcommComm_t hcomm_registry_default(bool *making);

#endif
