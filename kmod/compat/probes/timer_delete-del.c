// SPDX-License-Identifier: GPL-2.0
/* a timer is stopped with del_timer_sync(). */
#include <linux/timer.h>

int probe(struct timer_list *timer)
{
	return del_timer_sync(timer);
}
