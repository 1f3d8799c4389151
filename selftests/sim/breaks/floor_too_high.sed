# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: the get floor passes gets that are not answered
s/get_slot(flow, tx->get_floor)->finished)/tx->get_floor <= number)/
