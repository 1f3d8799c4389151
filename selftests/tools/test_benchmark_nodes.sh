#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm_benchmark over two machines of the lab. The script runs on both, in
# step: every call is one job, which has a port of its own to meet at.

# shellcheck disable=SC2154
. "$(dirname "$0")/common.sh"
port=${HCOMM_ROOT##*:}

# job STATUS COMMAND...: as status(), of both nodes' commands together.
job()
{
	export HCOMM_ROOT="${HCOMM_ROOT%:*}:$port"
	port=$((port + 1))
	status "$@"
}

is_first()
{
	[ "$HCOMM_NODE" = 0 ]
}

test_all_operations_are_right_over_two_nodes()
{
	job 0 "$bench" -t all -g 2 -b 4 -e 256K -f 8 -n 1 -w 0 --json "$work/json"
	if is_first; then
		"$here/check_json.py" benchmark "$work/json" all
		grep -q '"authenticated":true' "$work/json"
		grep -q '"instances":2' "$work/json"
	fi
}

test_the_first_node_alone_writes_the_table()
{
	port=$((port + 10))
	job 0 "$bench" -g 2 -b 8 -e 8 -n 1
	if is_first; then
		awk '/^#  Rank/ { print $3, $7 }' "$work/out" | xargs >"$work/ranks"
		[ "$(cat "$work/ranks")" = "0 node0 1 node0 2 node1 3 node1" ]
	else
		[ ! -s "$work/out" ]
	fi
}

test_a_dead_rank_is_named_on_both_nodes()
{
	port=$((port + 20))
	job 3 timeout 120 env HCOMM_TEST_FAULT=die "$faulty" -g 2 -b 8 -e 8
	grep -qE 'rank [023]: .*HCOMM_REMOTE_ERROR: .*rank 1' "$work/err"
	if is_first; then
		said err "rank 1 (process"
	fi
}

run_tests \
	all_operations_are_right_over_two_nodes \
	the_first_node_alone_writes_the_table \
	a_dead_rank_is_named_on_both_nodes
