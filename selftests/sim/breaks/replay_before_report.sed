# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: parts in doubt go again without the peer's report
s/ \&\& fp->heard >= lost)/)/
