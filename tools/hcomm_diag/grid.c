// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cells are kept as text until all widths are known. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid.h"

void grid_begin(struct grid *grid, const char *const *titles)
{
	*grid = (struct grid){ .titles = titles };
	while (grid->columns < GRID_COLUMNS && titles[grid->columns])
		grid->columns++;
}

void grid_cell(struct grid *grid, const char *format, ...)
{
	char (*more)[GRID_CELL];
	va_list ap;

	if (grid->used % 64 == 0) {
		more = reallocarray(grid->cells, grid->used + 64,
				    sizeof(*more));
		if (!more) {
			grid->failed = true;
			return;
		}
		grid->cells = more;
	}
	va_start(ap, format);
	vsnprintf(grid->cells[grid->used++], GRID_CELL, format, ap);
	va_end(ap);
}

static bool is_left(const char *title)
{
	return *title == '<';
}

static const char *title_of(const struct grid *grid, size_t column)
{
	return grid->titles[column] + is_left(grid->titles[column]);
}

static int width_of(const struct grid *grid, size_t column)
{
	size_t width = strlen(title_of(grid, column));

	for (size_t i = column; i < grid->used; i += grid->columns)
		if (strlen(grid->cells[i]) > width)
			width = strlen(grid->cells[i]);
	return width;
}

/* The last column is not filled up with blanks. */
static void print_cell(const struct grid *grid, size_t column, int width,
		       const char *text)
{
	bool last = column + 1 == grid->columns;

	if (is_left(grid->titles[column]))
		printf("%-*s", last ? 0 : width, text);
	else
		printf("%*s", width, text);
	fputs(last ? "\n" : "  ", stdout);
}

bool grid_end(struct grid *grid)
{
	int widths[GRID_COLUMNS];
	bool ok = !grid->failed;

	for (size_t c = 0; ok && c < grid->columns; c++)
		widths[c] = width_of(grid, c);
	for (size_t c = 0; ok && c < grid->columns; c++)
		print_cell(grid, c, widths[c], title_of(grid, c));
	for (size_t i = 0; ok && i < grid->used; i++)
		print_cell(grid, i % grid->columns, widths[i % grid->columns],
			   grid->cells[i]);
	free(grid->cells);
	grid->cells = NULL;
	return ok;
}
