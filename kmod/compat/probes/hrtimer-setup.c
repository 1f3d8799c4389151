// SPDX-License-Identifier: GPL-2.0
/* an hrtimer gets its function from hrtimer_setup(). */
#include <linux/hrtimer.h>

void probe(struct hrtimer *timer,
	   enum hrtimer_restart (*function)(struct hrtimer *timer))
{
	hrtimer_setup(timer, function, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
}
