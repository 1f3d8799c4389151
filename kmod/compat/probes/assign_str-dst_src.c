// SPDX-License-Identifier: GPL-2.0
/* __assign_str() of a tracepoint takes the field and the source. */
#include <linux/stringify.h>
#include <linux/trace_events.h>
#include <trace/stages/stage6_event_callback.h>

const char *probe = __stringify(__assign_str(name, source));
