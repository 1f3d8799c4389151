// SPDX-License-Identifier: GPL-2.0
/* MODULE_IMPORT_NS() takes a string; where it takes a word this compiles too. */
#include <linux/module.h>

MODULE_IMPORT_NS("DMA_BUF");
