# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# credit.c: credits above 15 in one message vanish
s/u16 n = min_t(u32, c->owed, U16_MAX);/u16 n = min_t(u32, c->owed, 15); c->owed = n;/
