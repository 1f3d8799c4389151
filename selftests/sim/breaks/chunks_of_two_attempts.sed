# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# fence.c: chunks of different attempts are put together
s/h->aux != fp->in_attempt ||/0 ||/
