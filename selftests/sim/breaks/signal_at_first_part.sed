# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: an op counts as placed after one part
s/slot->placed == hcomm_mask(slot->nparts)/slot->placed/
