// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Asks the kernel, the processor and the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <hcomm.h>

#include "environment.h"

static void read_line(const char *path, char *to, size_t room)
{
	FILE *file = fopen(path, "re");

	*to = '\0';
	if (!file)
		return;
	if (!fgets(to, room, file))
		*to = '\0';
	to[strcspn(to, "\n")] = '\0';
	fclose(file);
}

static void ask_kernel(struct bench_environment *env)
{
	struct utsname name;

	if (!uname(&name))
		snprintf(env->kernel, sizeof(env->kernel), "%s", name.release);
	read_line("/sys/module/hcomm/version", env->module,
		  sizeof(env->module));
}

static void ask_library(struct bench_environment *env)
{
	int version = 0;

	hcommGetVersion(&version);
	snprintf(env->library, sizeof(env->library), "%d.%d.%d",
		 version / 10000, version / 100 % 100, version % 100);
}

#if defined(__x86_64__)
#define TCG	"TCG"

static const char *hypervisor_of(const char *signature)
{
	static const char *const names[][2] = {
		{ "TCGTCGTCGTCG", TCG },
		{ "KVMKVMKVM", "KVM" },
		{ "Microsoft Hv", "Hyper-V" },
		{ "VMwareVMware", "VMware" },
		{ "XenVMMXenVMM", "Xen" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(signature, names[i][0]))
			return names[i][1];
	return signature;
}

static void ask_processor(struct bench_environment *env)
{
	unsigned int a, b, c, d;
	char signature[13] = "";

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & 1U << 31))
		return;
	__cpuid(0x40000000, a, b, c, d);
	memcpy(signature, &b, 4);
	memcpy(signature + 4, &c, 4);
	memcpy(signature + 8, &d, 4);
	strcpy(env->hypervisor, hypervisor_of(signature));
	env->emulated = !strcmp(env->hypervisor, TCG);
}
#else
/* QEMU as the vendor may be KVM as well: be careful rather than proud. */
static void ask_processor(struct bench_environment *env)
{
	char vendor[64];

	read_line("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	env->emulated = !strcmp(vendor, "QEMU");
	if (env->emulated)
		strcpy(env->hypervisor, "QEMU");
}
#endif

/* A kernel without RDMA has no such devices: that is an answer, too. */
static void ask_devices(struct bench_environment *env)
{
	struct nldev *nldev;

	if (nldev_open(&nldev))
		return;
	if (nldev_devices(nldev, &env->devices, &env->ndevices))
		env->ndevices = 0;
	nldev_close(nldev);
	for (size_t i = 0; i < env->ndevices; i++)
		env->software_rdma |= env->devices[i].software;
}

void bench_environment_get(struct bench_environment *env)
{
	*env = (struct bench_environment){};
	ask_kernel(env);
	ask_library(env);
	ask_processor(env);
	ask_devices(env);
}

void bench_environment_put(struct bench_environment *env)
{
	free(env->devices);
}
