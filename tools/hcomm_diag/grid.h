/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A table of text whose columns are as wide as they have to be. */
#ifndef DIAG_GRID_H
#define DIAG_GRID_H

#include <stdbool.h>
#include <stddef.h>

#define GRID_COLUMNS	16
#define GRID_CELL	96

struct grid {
	const char *const *titles;	/* "<" in front: left, else right */
	size_t columns;
	char (*cells)[GRID_CELL];
	size_t used;
	bool failed;			/* out of memory */
};

/* @titles: GRID_COLUMNS at most, then NULL. */
void grid_begin(struct grid *grid, const char *const *titles);
/* The next cell, row by row. */
void grid_cell(struct grid *grid, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* To standard output; forgets the cells. False without memory. */
bool grid_end(struct grid *grid);

#endif
