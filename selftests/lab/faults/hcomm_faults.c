// SPDX-License-Identifier: GPL-2.0
/*
 * hcomm_faults - commits, on request, what a kernel's checkers should report
 *
 * test_lab loads it in a virtual machine to prove that each checker is alive
 * there and that the lab hears it. Never load it anywhere else.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "warn, uaf, vmalloc, abba, atomic or leak");

static void use_after_free(void)
{
	char *victim = kmalloc(64, GFP_KERNEL);

	if (!victim)
		return;
	kfree(victim);
	WRITE_ONCE(victim[8], 1);
}

static void write_past_vmalloc(void)
{
	char *victim = vmalloc(PAGE_SIZE - 8);

	if (!victim)
		return;
	WRITE_ONCE(victim[PAGE_SIZE - 4], 1);
	vfree(victim);
}

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);

static void lock_both_ways(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);

	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

static void sleep_in_atomic(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
}

static void leak(void)
{
	int i;

	for (i = 0; i < 20; i++)
		(void)!kmalloc(128, GFP_KERNEL);
}

static int __init hcomm_faults_init(void)
{
	if (!strcmp(fault, "warn"))
		WARN(1, "a warning on request\n");
	else if (!strcmp(fault, "uaf"))
		use_after_free();
	else if (!strcmp(fault, "vmalloc"))
		write_past_vmalloc();
	else if (!strcmp(fault, "abba"))
		lock_both_ways();
	else if (!strcmp(fault, "atomic"))
		sleep_in_atomic();
	else if (!strcmp(fault, "leak"))
		leak();
	else
		return -EINVAL;
	return 0;
}

static void __exit hcomm_faults_exit(void)
{
}

module_init(hcomm_faults_init);
module_exit(hcomm_faults_exit);
MODULE_DESCRIPTION("faults on request, to test the tests");
MODULE_LICENSE("GPL");
