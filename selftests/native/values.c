// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdint.h>
#include <string.h>

#include "values.h"

static bool is_float(hcommDataType_t type)
{
	return type >= HCOMM_FLOAT16;
}

static bool is_signed(hcommDataType_t type)
{
	return type == HCOMM_INT8 || type == HCOMM_INT16 ||
	       type == HCOMM_INT32 || type == HCOMM_INT64;
}

bool values_defined(hcommDataType_t type, hcommRedOp_t op)
{
	if (is_float(type))
		return op < HCOMM_BAND;
	return type != HCOMM_BOOL || op != HCOMM_AVG;
}

/* Small whole numbers; products stay small too. */
static int input(hcommDataType_t type, hcommRedOp_t op, int rank, size_t i)
{
	unsigned int h = (unsigned int)(rank * 7 + i * 3 + i / 97);

	if (type == HCOMM_BOOL)
		return (h % 5 < 3) * (1 + (int)(h % 7));
	if (op == HCOMM_PROD) {
		if (((unsigned int)rank + i) % 8 == 0)
			return 2;
		return h % 2 && (is_signed(type) || is_float(type)) ? -1 : 1;
	}
	if (is_signed(type) || is_float(type))
		return (int)(h % 9) - 4;
	return (int)(h % 9);
}

static uint16_t bf16(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, 4);
	if (bits & 0x8000 && (bits & 0x7fff || bits & 0x10000))
		bits += 0x10000;
	return (uint16_t)(bits >> 16);
}

static void store_float(void *at, hcommDataType_t type, double value)
{
	_Float16 half = (_Float16)(float)value;
	float single = (float)value;
	uint16_t brain = bf16(single);

	switch (type) {
	case HCOMM_FLOAT16:
		memcpy(at, &half, 2);
		break;
	case HCOMM_BFLOAT16:
		memcpy(at, &brain, 2);
		break;
	case HCOMM_FLOAT32:
		memcpy(at, &single, 4);
		break;
	default:
		memcpy(at, &value, 8);
	}
}

static void store_int(void *at, hcommDataType_t type, int64_t value)
{
	/* Little-endian: the low bytes come first. */
	memcpy(at, &value, hcommTypeSize(type));
}

void values_store(void *at, hcommDataType_t type, hcommRedOp_t op, int rank,
		  size_t i)
{
	if (is_float(type))
		store_float(at, type, input(type, op, rank, i));
	else
		store_int(at, type, input(type, op, rank, i));
}

static int64_t wrapped(hcommDataType_t type, int64_t value)
{
	unsigned int unused = 64 - 8 * (unsigned int)hcommTypeSize(type);

	if (is_signed(type))
		return (int64_t)((uint64_t)value << unused) >> unused;
	return (int64_t)((uint64_t)value << unused >> unused);
}

static int64_t fold(hcommRedOp_t op, int64_t a, int64_t b)
{
	switch (op) {
	case HCOMM_PROD:
		return a * b;
	case HCOMM_MIN:
		return a < b ? a : b;
	case HCOMM_MAX:
		return a > b ? a : b;
	case HCOMM_BAND:
		return a & b;
	case HCOMM_BOR:
		return a | b;
	case HCOMM_BXOR:
		return a ^ b;
	default:
		return a + b;
	}
}

static int64_t fold_bool(hcommRedOp_t op, int64_t a, int64_t b)
{
	switch (op) {
	case HCOMM_PROD:
	case HCOMM_MIN:
	case HCOMM_BAND:
		return a && b;
	case HCOMM_BXOR:
		return !a != !b;
	default:
		return a || b;
	}
}

void values_reduced(void *at, hcommDataType_t type, hcommRedOp_t op, int n,
		    size_t i)
{
	int64_t value = input(type, op, 0, i);
	int r;

	if (type == HCOMM_BOOL)
		value = !!value;
	for (r = 1; r < n; r++)
		value = type == HCOMM_BOOL ?
			fold_bool(op, value, input(type, op, r, i)) :
			fold(op, value, input(type, op, r, i));
	if (is_float(type) && op == HCOMM_AVG && type != HCOMM_FLOAT64)
		store_float(at, type, (float)value / (float)n);
	else if (is_float(type))
		store_float(at, type, op == HCOMM_AVG ? (double)value / n :
							(double)value);
	else if (op == HCOMM_AVG)
		store_int(at, type, wrapped(type, value) / n);
	else
		store_int(at, type, value);
}
