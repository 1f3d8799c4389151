# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: a connection request of an old epoch is accepted
s/if (epoch <= fence->path\[path\].epoch)/if (epoch < fence->path[path].epoch)/
