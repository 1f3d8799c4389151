# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: a report is not made again when its path is lost
s/if (other->reporting \&\& other->via == path)/if (0)/
