# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: the report is made while completions are still to come
s/return fp->drained >= lost \&\& fp->told < lost;/return fp->told < lost;/
