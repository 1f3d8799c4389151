# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: replies on a lost path are forgotten
s/doubt_list(&flow->tx.replies, path);//
