// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The symmetric heap's public face. */
#include <errno.h>

#include "api/face.h"

#define LARGEST_ALIGN	((size_t)1 << 30)

hcommResult_t hcommAllocAligned(hcommComm_t comm, void **ptr, size_t size,
				size_t align)
{
	hcommResult_t res = hcomm_face_enter(comm, NULL);
	size_t offset;
	int err;

	if (res)
		return res;
	if (!ptr || !size || !align || (align & (align - 1)) ||
	    align > LARGEST_ALIGN)
		return hcomm_face_leave(comm, hcomm_comm_error(comm,
			HCOMM_INVALID_ARGUMENT, !ptr ? "ptr is NULL" :
			!size ? "a size of 0 cannot be allocated" :
			"the alignment is not a power of two up to 1 GiB"));
	*ptr = NULL;
	err = hcomm_symheap_alloc(&comm->symheap, size, align, &offset);
	if (!err)
		*ptr = comm->heap + offset;
	else
		res = hcomm_comm_error(comm, HCOMM_OUT_OF_MEMORY,
			"%zu bytes (alignment %zu) do not fit the heap: its "
			"largest free block has %zu; raise HCOMM_HEAP_SIZE "
			"(now %zu MiB) or free some", size, align,
			hcomm_symheap_largest(&comm->symheap),
			comm->layout.bytes >> 20);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommSymAlloc(hcommComm_t comm, void **ptr, size_t size)
{
	return hcommAllocAligned(comm, ptr, size, HCOMM_LINE);
}

static bool in_heap(const struct hcommComm *comm, const void *ptr)
{
	const char *at = ptr;

	return at >= comm->heap && at < comm->heap + comm->layout.bytes;
}

hcommResult_t hcommSymFree(hcommComm_t comm, void *ptr)
{
	hcommResult_t res = hcomm_face_enter(comm, NULL);

	if (res)
		return res;
	if (!in_heap(comm, ptr) ||
	    hcomm_symheap_release(&comm->symheap,
				  (size_t)((char *)ptr - comm->heap)))
		res = hcomm_comm_error(comm, HCOMM_INVALID_ARGUMENT,
			"%p was not allocated from this heap, or is free "
			"already", ptr);
	return hcomm_face_leave(comm, res);
}

hcommResult_t hcommSymPtr(hcommComm_t comm, const void *ptr, int rank,
			  void **peer_ptr)
{
	hcommResult_t res = hcomm_face_check(comm);
	char *heap;

	if (res)
		return res;
	if (!peer_ptr || rank < 0 || rank >= comm->n || !in_heap(comm, ptr))
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
			!peer_ptr ? "peer_ptr is NULL" :
			rank < 0 || rank >= comm->n ? "there is no such rank" :
			"the pointer is not in this group's heap");
	heap = comm->ranks[rank].heap;
	*peer_ptr = heap ? heap + ((const char *)ptr - comm->heap) : NULL;
	return HCOMM_SUCCESS;
}

hcommResult_t hcommSymOffset(hcommComm_t comm, const void *ptr,
			     uint64_t *offset)
{
	hcommResult_t res = hcomm_face_check(comm);

	if (res)
		return res;
	if (!offset || !in_heap(comm, ptr))
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT, !offset ?
			"offset is NULL" :
			"the pointer is not in this group's heap");
	*offset = (uint64_t)((const char *)ptr - comm->heap);
	return HCOMM_SUCCESS;
}
