/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inputs whose reductions are exact in every type, and what must come out:
 * calculated here in another way than the library does it.
 */
#ifndef VALUES_H
#define VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "hcomm.h"

bool values_defined(hcommDataType_t type, hcommRedOp_t op);
/* Element @i of rank @rank's input. */
void values_store(void *at, hcommDataType_t type, hcommRedOp_t op, int rank,
		  size_t i);
/* The reduction of element @i over @n ranks. */
void values_reduced(void *at, hcommDataType_t type, hcommRedOp_t op, int n,
		    size_t i);

#endif
