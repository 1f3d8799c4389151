// SPDX-License-Identifier: GPL-2.0
/* the owner of a timer is found with timer_container_of(). */
#include <linux/timer.h>

struct owner {
	struct timer_list timer;
};

struct owner *probe(struct timer_list *t)
{
	struct owner *owner = timer_container_of(owner, t, timer);

	return owner;
}
