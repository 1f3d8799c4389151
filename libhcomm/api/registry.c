// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* One lock for all of it, held for a few loads and stores. */
#define _GNU_SOURCE
#include <pthread.h>

#include "api/face.h"
#include "api/registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hcommComm_t groups;
static hcommComm_t default_group;
static bool default_making;

void hcomm_registry_add(hcommComm_t comm)
{
	pthread_mutex_lock(&lock);
	comm->next = groups;
	groups = comm;
	pthread_mutex_unlock(&lock);
}

/* The lock is held. Where the handle is linked, or the list's end. */
static hcommComm_t *find(hcommComm_t comm)
{
	hcommComm_t *at = &groups;

	while (*at && *at != comm)
		at = &(*at)->next;
	return at;
}

void hcomm_registry_remove(hcommComm_t comm)
{
	pthread_mutex_lock(&lock);
	*find(comm) = comm->next;
	if (default_group == comm)
		default_group = NULL;
	pthread_mutex_unlock(&lock);
}

bool hcomm_registry_has(hcommComm_t comm)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = *find(comm) != NULL;
	pthread_mutex_unlock(&lock);
	return has;
}

bool hcomm_registry_claim(hcommComm_t comm, bool *busy)
{
	int expected = 0;
	bool has, claimed;

	pthread_mutex_lock(&lock);
	has = *find(comm) != NULL;
	claimed = has && __atomic_compare_exchange_n(&comm->user, &expected, 1,
						     false, __ATOMIC_ACQUIRE,
						     __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	*busy = has && !claimed;
	return claimed;
}

hcommResult_t hcomm_registry_default_begin(void)
{
	bool exists, making;

	pthread_mutex_lock(&lock);
	exists = default_group != NULL;
	making = default_making;
	default_making = !exists;
	pthread_mutex_unlock(&lock);
	if (exists)
		return hcomm_face_error(HCOMM_INVALID_USAGE,
			"the default group exists already");
	if (making)
		return hcomm_face_error(HCOMM_INVALID_USAGE,
			"another thread is inside hcommInit(): one call makes "
			"the default group of the process");
	return HCOMM_SUCCESS;
}

void hcomm_registry_default_end(hcommComm_t comm)
{
	pthread_mutex_lock(&lock);
	default_group = comm;
	default_making = false;
	pthread_mutex_unlock(&lock);
}

hcommComm_t hcomm_registry_default(bool *making)
{
	hcommComm_t comm;

	pthread_mutex_lock(&lock);
	comm = default_group;
	*making = default_making;
	pthread_mutex_unlock(&lock);
	return comm;
}
