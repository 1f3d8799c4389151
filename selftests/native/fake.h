/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Several instances without a device: the ranks of a local group are told
 * that they live on @instances instances, and messages between those are
 * copied. What the executor does between instances can so be tested, also
 * under sanitizers, where no module is.
 */
#ifndef FAKE_H
#define FAKE_H

#include "hcomm.h"

/* Collective, right after hcommInit(). 0, or 1 after a complaint. */
int fake_instances(hcommComm_t comm, int instances);

#endif
