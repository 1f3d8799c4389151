// SPDX-License-Identifier: GPL-2.0
/* The bodies of the tracepoints; the build adds this folder to its headers. */
#define CREATE_TRACE_POINTS
#include "trace.h"
