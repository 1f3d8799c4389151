# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: the sender does not mind the window
s/if (tx->next - tx->una >= tx->window)/if (tx->next - tx->una >= 4 * tx->window)/
