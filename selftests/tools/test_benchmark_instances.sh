#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm_benchmark over the module in a machine of the lab with two instances:
# all data is right, on both sides of a real link.

# shellcheck disable=SC2154
. "$(dirname "$0")/common.sh"
both="--instances hcomm0,hcomm1"
largest=1M
types=uint8,double
if [ "$HCOMM_TEST_PLACE" = debug ]; then
	largest=64K
	types=uint8
fi

test_all_operations_are_right_over_two_instances()
{
	# shellcheck disable=SC2086
	status 0 "$bench" -t all -g 4 $both -b 4 -e $largest -f 8 -n 1 -w 0 --json -
	"$here/check_json.py" benchmark "$work/out" all
	grep -q '"instances":2' "$work/out"
	said err "# Out of bounds values : 0 OK"
}

test_ranks_are_spread_in_blocks()
{
	# shellcheck disable=SC2086
	status 0 "$bench" -g 4 $both -b 8 -e 8 -n 1
	awk '/^#  Rank/ { print $NF }' "$work/out" | xargs >"$work/devices"
	[ "$(cat "$work/devices")" = "hcomm0 hcomm0 hcomm1 hcomm1" ]
}

test_software_devices_and_emulation_are_told()
{
	# shellcheck disable=SC2086
	status 0 "$bench" -g 2 $both -b 8 -e 8 -n 1 --json "$work/json"
	said out "# Software RDMA: rxe0_0"
	said out "# Emulated processor (TCG"
	grep -q '"software_rdma":true' "$work/json"
	grep -q '"emulated":true' "$work/json"
}

test_heap_buffers_and_odd_counts_are_right()
{
	# shellcheck disable=SC2086
	status 0 "$bench" -t all -g 3 $both -b 1 -e 40000 -f 7 -n 1 -w 0 -d $types \
		--buffers heap --json -
	"$here/check_json.py" benchmark "$work/out" all
}

test_a_model_is_replayed_over_two_instances()
{
	# shellcheck disable=SC2086
	status 0 "$bench" -g 2 $both --model resnet50 --model-limit 3M --json -
	"$here/check_json.py" benchmark "$work/out" all_reduce
}

test_a_dead_rank_is_named_by_the_others()
{
	# shellcheck disable=SC2086
	status 3 timeout 60 env HCOMM_TEST_FAULT=die "$faulty" -g 4 $both -b 8 -e 8
	said err "was killed by signal 9"
	grep -qE 'rank [023]: .*HCOMM_REMOTE_ERROR: .*rank 1' "$work/err"
}

test_a_device_that_is_not_there_ends_with_3()
{
	status 3 "$bench" --instances hcomm77 -b 8 -e 8
	said err hcomm77
}

run_tests \
	all_operations_are_right_over_two_instances \
	ranks_are_spread_in_blocks \
	software_devices_and_emulation_are_told \
	heap_buffers_and_odd_counts_are_right \
	a_model_is_replayed_over_two_instances \
	a_dead_rank_is_named_by_the_others \
	a_device_that_is_not_there_ends_with_3
