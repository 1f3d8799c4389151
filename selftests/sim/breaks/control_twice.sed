# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# ctl.c: a repeated control message is handled again
s/if (seq < ctl->rx_next)/if (0)/
