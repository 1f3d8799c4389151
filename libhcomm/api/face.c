// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The thin layer under every public function: who may call, and where the
 * text of an error is found.
 *
 * One page is given back as zeroes to a forked child (MADV_WIPEONFORK): a
 * child of a process that has used the library is told apart by one load.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/face.h"
#include "api/registry.h"

static __thread char thread_text[HCOMM_ERROR_TEXT];
static __thread char returned_text[HCOMM_ERROR_TEXT];

static volatile int *alive;
static pid_t maker;
static pthread_once_t alive_once = PTHREAD_ONCE_INIT;

hcommResult_t hcomm_face_error(hcommResult_t result, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(thread_text, sizeof(thread_text), fmt, args);
	va_end(args);
	hcomm_log(HCOMM_LOG_INFO, "%s", thread_text);
	return result;
}

static void mark_alive(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *at = mmap(NULL, page, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	maker = getpid();
	if (at == MAP_FAILED)
		return;
	if (madvise(at, page, MADV_WIPEONFORK)) {
		munmap(at, page);
		return;
	}
	alive = at;
	*alive = 1;
}

hcommResult_t hcomm_face_process(void)
{
	pthread_once(&alive_once, mark_alive);
	if (alive ? *alive : maker == getpid())
		return HCOMM_SUCCESS;
	return hcomm_face_error(HCOMM_INVALID_USAGE,
		"this process was forked from one that uses hcomm (pid %d): "
		"groups belong to that process; execute a new program, or fork "
		"before the first call", (int)maker);
}

static hcommResult_t check_caller(hcommComm_t comm)
{
	if (!comm)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
					"the group is NULL");
	return hcomm_face_process();
}

hcommResult_t hcomm_face_gone(void)
{
	return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
		"there is no such group: it was destroyed, or the handle is "
		"wrong");
}

hcommResult_t hcomm_face_check(hcommComm_t comm)
{
	hcommResult_t res = check_caller(comm);

	if (!res && !hcomm_registry_has(comm))
		res = hcomm_face_gone();
	return res;
}

/* The group's text is the thread's too: no matter with which it asks. */
static hcommResult_t copy_text(hcommComm_t comm, hcommResult_t result)
{
	pthread_mutex_lock(&comm->text_lock);
	memcpy(thread_text, comm->text, sizeof(thread_text));
	pthread_mutex_unlock(&comm->text_lock);
	return result;
}

/* And the other way round, with the rank in front. */
static hcommResult_t tell_group(hcommComm_t comm, hcommResult_t result)
{
	char text[HCOMM_ERROR_TEXT + 24];

	snprintf(text, sizeof(text), "rank %d: %s", comm->rank, thread_text);
	hcomm_comm_set_text(comm, text);
	return result;
}

hcommResult_t hcomm_face_enter(hcommComm_t comm, hcommStream_t stream)
{
	hcommResult_t res = check_caller(comm);
	int expected = 0;

	if (res)
		return res;
	if (stream)
		return tell_group(comm, hcomm_face_error(HCOMM_NOT_SUPPORTED,
			"streams are not part of this version: pass NULL"));
	if (!__atomic_compare_exchange_n(&comm->user, &expected, 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return tell_group(comm, hcomm_face_error(HCOMM_INVALID_USAGE,
			"another thread is inside a call with this group: a "
			"group is used by one thread at a time"));
	if (hcomm_comm_failed(comm) || comm->transport->failed(comm)) {
		__atomic_store_n(&comm->user, 0, __ATOMIC_RELEASE);
		return copy_text(comm, hcomm_comm_failed(comm));
	}
	return HCOMM_SUCCESS;
}

hcommResult_t hcomm_face_leave(hcommComm_t comm, hcommResult_t result)
{
	comm->call.name = NULL;
	__atomic_store_n(&comm->user, 0, __ATOMIC_RELEASE);
	return result ? copy_text(comm, result) : HCOMM_SUCCESS;
}

hcommResult_t hcomm_face_refused(hcommComm_t comm, hcommResult_t result)
{
	return hcomm_face_leave(comm, tell_group(comm, result));
}

const char *hcommCommGetLastError(hcommComm_t comm)
{
	if (!comm) {
		memcpy(returned_text, thread_text, sizeof(returned_text));
		return returned_text;
	}
	pthread_mutex_lock(&comm->text_lock);
	memcpy(returned_text, comm->text, sizeof(returned_text));
	pthread_mutex_unlock(&comm->text_lock);
	return returned_text;
}
