# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: a signal is applied as soon as its op is placed
s/slot_full(slot) \&\& (h->flags \& HCOMM_WIRE_F_UNORDERED)/slot_full(slot)/
