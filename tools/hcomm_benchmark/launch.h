/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Starts this node's ranks and sees them through to their end. */
#ifndef BENCH_LAUNCH_H
#define BENCH_LAUNCH_H

#include "rank.h"

/* Runs all ranks of this node; an enum bench_exit. */
int bench_launch(struct bench_args *args);

#endif
