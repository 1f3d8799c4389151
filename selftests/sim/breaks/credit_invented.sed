# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# credit.c: a SEND takes no credit
s/^\tc->avail--;//
