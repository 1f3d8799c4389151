# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: a poster that is late still gets parts for a lost path
s/ || (flow->tx.blocked & BIT(path)))/ || path > 99)/
