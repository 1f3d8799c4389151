# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: a NACK is not remembered
s/op->status = status;$/;/
