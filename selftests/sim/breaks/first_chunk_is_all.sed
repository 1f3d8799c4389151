# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: a report counts as whole after its first chunk
s/if (!(m->h.flags \& HCOMM_WIRE_F_LAST))/if (m->h.offset)/
