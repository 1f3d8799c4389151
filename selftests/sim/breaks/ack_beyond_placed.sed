# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: acknowledges everything that has begun to arrive
s/return min(flow->rx.next, flow->rx.cap);/return min(flow->rx.top, flow->rx.cap);/
