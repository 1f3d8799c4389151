# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# flow.c: sequences are compared by their low halves
s/return tx_ack(flow, flow->tx.una + ahead, done);/return tx_ack(flow, ack, done);/
