/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Where figures come from: without it they cannot be compared. */
#ifndef BENCH_ENVIRONMENT_H
#define BENCH_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "nldev.h"

struct bench_environment {
	char kernel[128];
	char module[32];		/* "" when not loaded */
	char library[16];
	char hypervisor[16];		/* what CPUID tells, "" for none */
	bool emulated;			/* the CPU is software */
	bool software_rdma;
	struct nldev_device *devices;	/* of this node */
	size_t ndevices;
};

void bench_environment_get(struct bench_environment *environment);
void bench_environment_put(struct bench_environment *environment);

#endif
