// SPDX-License-Identifier: GPL-2.0
/* a timer is stopped with timer_delete_sync(). */
#include <linux/timer.h>

int probe(struct timer_list *timer)
{
	return timer_delete_sync(timer);
}
