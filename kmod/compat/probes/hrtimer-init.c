// SPDX-License-Identifier: GPL-2.0
/* an hrtimer gets its function by assignment after hrtimer_init(). */
#include <linux/hrtimer.h>

void probe(struct hrtimer *timer,
	   enum hrtimer_restart (*function)(struct hrtimer *timer))
{
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = function;
}
