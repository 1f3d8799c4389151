// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory as an application would have it: of the heap, or of malloc(). */
#include <stdlib.h>
#include <string.h>

#include "buffers.h"

#define GUARD_BYTE	0x5a

size_t bench_buffers_heap(size_t bytes)
{
	return 2 * (bytes + 2 * BENCH_GUARD) + HCOMM_MB(1);
}

static hcommResult_t get_memory(void **memory, enum bench_memory kind,
				size_t bytes, hcommComm_t comm)
{
	if (kind == BENCH_HEAP)
		return hcommAllocAligned(comm, memory, bytes, 64);
	*memory = malloc(bytes);
	return *memory ? HCOMM_SUCCESS : HCOMM_OUT_OF_MEMORY;
}

hcommResult_t bench_buffers_get(struct bench_buffers *buffers,
				enum bench_memory kind, size_t bytes,
				hcommComm_t comm)
{
	size_t room = bytes + 2 * BENCH_GUARD;
	hcommResult_t result;

	*buffers = (struct bench_buffers){ .bytes = bytes };
	for (int i = 0; i < 2; i++) {
		result = get_memory(&buffers->memory[i], kind, room, comm);
		if (result != HCOMM_SUCCESS)
			return result;
		memset(buffers->memory[i], 0, room);
	}
	buffers->send = (char *)buffers->memory[0] + BENCH_GUARD;
	buffers->recv = (char *)buffers->memory[1] + BENCH_GUARD;
	return HCOMM_SUCCESS;
}

void bench_buffers_put(struct bench_buffers *buffers, enum bench_memory kind,
		       hcommComm_t comm)
{
	for (int i = 0; i < 2; i++) {
		if (kind == BENCH_HEAP && buffers->memory[i])
			hcommSymFree(comm, buffers->memory[i]);
		else
			free(buffers->memory[i]);
	}
}

void bench_guard_set(const struct bench_buffers *buffers, size_t bytes)
{
	memset(buffers->recv - BENCH_GUARD, GUARD_BYTE, BENCH_GUARD);
	memset(buffers->recv + bytes, GUARD_BYTE, BENCH_GUARD);
}

size_t bench_guard_check(const struct bench_buffers *buffers, size_t bytes)
{
	const char *before = buffers->recv - BENCH_GUARD;
	const char *after = buffers->recv + bytes;
	size_t written = 0;

	for (size_t i = 0; i < BENCH_GUARD; i++)
		written += (before[i] != GUARD_BYTE) + (after[i] != GUARD_BYTE);
	return written;
}
