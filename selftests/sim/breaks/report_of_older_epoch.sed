# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: an old report counts for a newer loss
s/fp->heard = max(fp->heard, epoch);/fp->heard = U32_MAX;/
