// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Names and sizes of the public constants. */
#include "api/face.h"

static const struct {
	const char *name;
	const char *text;
} results[HCOMM_NR_RESULTS] = {
	[HCOMM_SUCCESS] = { "HCOMM_SUCCESS", "no error" },
	[HCOMM_INVALID_ARGUMENT] = { "HCOMM_INVALID_ARGUMENT",
		"a parameter is out of its range" },
	[HCOMM_INVALID_USAGE] = { "HCOMM_INVALID_USAGE",
		"the call is not possible at this moment" },
	[HCOMM_SYSTEM_ERROR] = { "HCOMM_SYSTEM_ERROR",
		"the operating system refused something" },
	[HCOMM_INTERNAL_ERROR] = { "HCOMM_INTERNAL_ERROR",
		"the library or the module is broken" },
	[HCOMM_REMOTE_ERROR] = { "HCOMM_REMOTE_ERROR",
		"a peer process, its node or the link to it failed" },
	[HCOMM_TIMEOUT] = { "HCOMM_TIMEOUT",
		"a peer did not come within the deadline" },
	[HCOMM_ABORTED] = { "HCOMM_ABORTED", "the group was aborted" },
	[HCOMM_MISMATCH] = { "HCOMM_MISMATCH", "ranks made different calls" },
	[HCOMM_NOT_SUPPORTED] = { "HCOMM_NOT_SUPPORTED",
		"this is not supported here" },
	[HCOMM_OUT_OF_MEMORY] = { "HCOMM_OUT_OF_MEMORY",
		"no memory: of the process, the heap or RLIMIT_MEMLOCK" },
	[HCOMM_PERMISSION_DENIED] = { "HCOMM_PERMISSION_DENIED",
		"access to the device or the group was denied" },
	[HCOMM_BUSY] = { "HCOMM_BUSY", "still in use by an operation" },
	[HCOMM_IN_PROGRESS] = { "HCOMM_IN_PROGRESS", "not finished yet" },
};

static const struct {
	const char *name;
	size_t size;
} types[HCOMM_NR_TYPES] = {
	[HCOMM_INT8] = { "int8", 1 },
	[HCOMM_UINT8] = { "uint8", 1 },
	[HCOMM_INT16] = { "int16", 2 },
	[HCOMM_UINT16] = { "uint16", 2 },
	[HCOMM_INT32] = { "int32", 4 },
	[HCOMM_UINT32] = { "uint32", 4 },
	[HCOMM_INT64] = { "int64", 8 },
	[HCOMM_UINT64] = { "uint64", 8 },
	[HCOMM_BOOL] = { "bool", 1 },
	[HCOMM_FLOAT16] = { "float16", 2 },
	[HCOMM_BFLOAT16] = { "bfloat16", 2 },
	[HCOMM_FLOAT32] = { "float32", 4 },
	[HCOMM_FLOAT64] = { "float64", 8 },
};

static const char *const redops[HCOMM_NR_REDOPS] = {
	"sum", "prod", "min", "max", "avg", "band", "bor", "bxor",
};

const char *hcommGetErrorString(hcommResult_t result)
{
	return (unsigned int)result < HCOMM_NR_RESULTS ? results[result].text :
							 "unknown result";
}

const char *hcommGetErrorName(hcommResult_t result)
{
	return (unsigned int)result < HCOMM_NR_RESULTS ? results[result].name :
							 "?";
}

size_t hcommTypeSize(hcommDataType_t type)
{
	return (unsigned int)type < HCOMM_NR_TYPES ? types[type].size : 0;
}

const char *hcommTypeName(hcommDataType_t type)
{
	return (unsigned int)type < HCOMM_NR_TYPES ? types[type].name : "?";
}

const char *hcommRedOpName(hcommRedOp_t op)
{
	return (unsigned int)op < HCOMM_NR_REDOPS ? redops[op] : "?";
}

hcommResult_t hcommGetVersion(int *version)
{
	if (!version)
		return hcomm_face_error(HCOMM_INVALID_ARGUMENT,
					"version is NULL");
	*version = HCOMM_VERSION_CODE;
	return HCOMM_SUCCESS;
}
