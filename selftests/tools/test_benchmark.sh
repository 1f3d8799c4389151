#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm_benchmark on one host, without the module: what it accepts, prints,
# finds wrong, and how it ends. Faults are those of faults.c.

# shellcheck disable=SC2154
. "$(dirname "$0")/common.sh"
export HCOMM_TRANSPORT=local
small="-b 4 -e 1K -f 4 -n 1 -w 0"

test_wrong_usage_ends_with_2_and_names_the_option()
{
	while read -r option words; do
		# shellcheck disable=SC2086
		status 2 "$bench" $option $words
		said err "${option%%=*}"
		[ ! -s "$work/out" ]
	done <<-END
		-t foo
		-t all,
		-b 8Q
		-b -1
		-b 9 -e 8
		-e 2000000G
		-f 1
		-i 0
		-i 8 -f 2
		-n 0
		-n 5x
		-w -1
		-c x
		-d quad
		-o plus
		-o band -d float
		-r 4 -g 4
		-r x
		-g 0
		-g 257
		--instances eth0
		--instances hcomm0,hcomm1
		--buffers stack
		--model vgg
		--model=resnet50 -t barrier
		--model=resnet50 -d all
		--model-limit 1M
		--min-bw fast
		--nope
		nope
	END
	status 2 "$bench" --model resnet50 -b 8
	said err -b
	status 2 env HCOMM_NODES=2 HCOMM_NODE=2 HCOMM_ROOT=127.0.0.1:1 "$bench"
	said err HCOMM_NODE
	status 2 env HCOMM_NODES=2 HCOMM_NODE=1 "$bench"
	said err HCOMM_ROOT
}

test_help_and_version_end_with_0()
{
	help_and_version "$bench" --min-bw
}

# A table that went into a heap would make wrong data.
test_standard_files_may_be_closed()
{
	got=0
	# shellcheck disable=SC2086
	"$bench" -g 2 $small --json "$work/json" >&- 2>"$work/err" || got=$?
	[ $got = 0 ]
	"$here/check_json.py" benchmark "$work/json" all_reduce
	# shellcheck disable=SC2086
	"$bench" -g 2 $small --json "$work/json" <&- >&- 2>&-
	"$here/check_json.py" benchmark "$work/json" all_reduce
}

test_a_parent_may_ignore_SIGCHLD()
{
	# shellcheck disable=SC2086
	status 0 timeout 20 python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$bench" -g 2 $small
}

test_columns_are_those_of_nccl_tests()
{
	{
		echo "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong"
		echo "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)"
	} >"$work/header"
	status 0 "$bench" -g 2 -b 64 -e 64
	sed -n 's/ *$//; /^#  *size/p; /^#  *(B)/p' "$work/out" | diff "$work/header" -
	grep -v '^#' "$work/out" >"$work/rows"
	f='[0-9]+\.[0-9]+ +[0-9]+\.[0-9]{2} +[0-9]+\.[0-9]{2} +0'
	grep -qE "^ {10}64 {12}16 {5}float {5}sum {6}-1 +$f +$f\$" "$work/rows"
	said out "#  Rank  1 Pid"
	said out "# Out of bounds values : 0 OK"
	said out "# Avg bus bandwidth    :"
}

test_all_operations_types_and_buffers_are_right()
{
	for ranks in 1 3 4; do
		status 0 "$bench" -t all -g $ranks -b 0 -e 9K -f 9 -n 1 -w 0 -d all -o all \
			-r all --buffers all --json "$work/json"
		"$here/check_json.py" benchmark "$work/json" all
	done
}

test_sizes_follow_the_step()
{
	status 0 "$bench" -b 8 -e 32 -i 8 -n 1
	[ "$(awk '!/^#/ { print $1 }' "$work/out" | xargs)" = "8 16 24 32" ]
	status 0 "$bench" -b 1K -e 16K -f 4 -n 1
	[ "$(awk '!/^#/ { print $1 }' "$work/out" | xargs)" = "1024 4096 16384" ]
}

test_json_on_standard_output_is_alone_there()
{
	# shellcheck disable=SC2086
	status 0 "$bench" -g 2 $small -t all_reduce,sendrecv --json -
	"$here/check_json.py" benchmark "$work/out" all_reduce sendrecv
	said err "# Out of bounds values : 0 OK"
}

test_a_wrong_byte_is_found_in_every_operation()
{
	for op in all_reduce all_gather reduce_scatter broadcast reduce sendrecv; do
		# shellcheck disable=SC2086
		status 1 env HCOMM_TEST_FAULT=flip "$faulty" -t $op -g 2 -r 1 $small \
			--json "$work/json"
		said err "rank 1: $op of"
		said err "1 elements are wrong"
		said out FAILED
		"$here/check_json.py" wrong "$work/json"
	done
	# shellcheck disable=SC2086
	status 0 "$faulty" -t all -g 2 -r 1 $small
}

test_a_byte_behind_the_result_is_found()
{
	# shellcheck disable=SC2086
	status 1 env HCOMM_TEST_FAULT=outside "$faulty" -g 2 $small --json "$work/json"
	said out FAILED
	"$here/check_json.py" wrong "$work/json"
}

test_a_barrier_that_does_not_wait_is_found()
{
	status 1 env HCOMM_TEST_FAULT=absent "$faulty" -t barrier -g 2 -n 1 -c 20000
	status 0 "$faulty" -t barrier -g 2 -n 1 -c 20000
}

test_a_wrong_byte_in_a_bucket_is_found()
{
	status 1 env HCOMM_TEST_FAULT=flip "$faulty" -g 2 --model resnet50 --model-limit 1M
}

test_nothing_is_called_right_without_a_check()
{
	# shellcheck disable=SC2086
	status 0 env HCOMM_TEST_FAULT=flip "$faulty" -g 2 $small -c 0 --json "$work/json"
	said out "N/A (not checked)"
	grep -q '"wrong":null' "$work/json"
}

test_a_low_bandwidth_ends_with_1()
{
	# shellcheck disable=SC2086
	status 1 "$bench" -g 2 $small --min-bw 1000
	said err "--min-bw"
	# shellcheck disable=SC2086
	status 0 "$bench" -g 2 $small --min-bw 0.00000001
}

test_a_model_is_replayed_in_its_buckets()
{
	status 0 "$bench" -g 2 --model resnet50 --json "$work/json"
	"$here/check_json.py" benchmark "$work/json" all_reduce
	[ "$(awk '!/^#/ { n++; sum += $2 } END { print n, sum }' "$work/out")" = "5 25557032" ]
	status 0 "$bench" -g 2 --model llama-7b -d bfloat16 --model-limit 3M --buffers heap
	[ "$(awk '!/^#/ { sum += $1 } END { print sum }' "$work/out")" = 3145728 ]
	said out "(limited)"
}

test_a_dead_rank_is_named_and_ends_with_3()
{
	# shellcheck disable=SC2086
	status 3 timeout 20 env HCOMM_TEST_FAULT=die "$faulty" -g 3 $small --json "$work/json"
	said err "rank 1 (process"
	said err "was killed by signal 9"
	said out "# Stopped: rank 0:"
	python3 -c 'import json, sys; assert "REMOTE" in json.load(open(sys.argv[1]))["error"]' \
		"$work/json"
}

test_ranks_that_never_end_are_killed()
{
	# shellcheck disable=SC2086
	status 3 timeout 30 env HCOMM_TEST_FAULT=stuck "$faulty" -g 3 $small
	said err "2 more ranks did not end"
}

test_without_the_module_kmod_ends_with_3_and_says_why()
{
	[ ! -e /dev/hcomm0 ] || return 0
	for how in "HCOMM_TRANSPORT=kmod $bench" "-u HCOMM_TRANSPORT $bench --instances hcomm0"; do
		# shellcheck disable=SC2086
		status 3 env $how -g 1 -b 8 -e 8
		said err /dev/hcomm0
	done
	said err "--instances needs the module"
}

test_a_file_that_cannot_be_written_ends_with_3()
{
	status 3 "$bench" -b 8 -e 8 --json "$work/no/file"
	said err "$work/no/file"
}

# Until nobody has this program open any more.
gone()
{
	for attempt in $(seq 100); do
		pgrep -f "$1" >/dev/null || return 0
		sleep 0.05
	done
	echo "after $attempt looks there are still:"
	pgrep -af "$1"
	return 1
}

# A name of its own tells this run's processes from all others.
test_signals_leave_no_rank_behind()
{
	for signal in INT TERM HUP KILL; do
		ln "$bench" "$work/bench-$signal" 2>/dev/null ||
			cp "$bench" "$work/bench-$signal"
		set +e
		# Commands in the background ignore SIGINT: not this one.
		python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$work/bench-$signal" -g 3 -b 8 -e 8 -n 1000000000 \
			>"$work/running" 2>&1 &
		pid=$!
		for attempt in $(seq 200); do
			grep -q '(elements)' "$work/running" && break
			sleep 0.05
		done
		kill -s "$signal" $pid
		wait $pid
		got=$?
		set -e
		case $signal in
		HUP) [ $got = 129 ] ;;
		INT) [ $got = 130 ] ;;
		KILL) [ $got = 137 ] ;;
		TERM) [ $got = 143 ] ;;
		esac
		gone "$work/bench-$signal"
	done
}

test_two_nodes_make_one_group_and_one_table()
{
	export HCOMM_NODES=2 HCOMM_ROOT=127.0.0.1:18477 HCOMM_SECRET=0123456789abcdef
	# shellcheck disable=SC2086
	HCOMM_NODE=1 "$bench" -g 2 $small >"$work/second" 2>&1 &
	# shellcheck disable=SC2086
	status 0 env HCOMM_NODE=0 "$bench" -g 2 $small --json "$work/json"
	wait $!
	[ ! -s "$work/second" ]
	"$here/check_json.py" benchmark "$work/json" all_reduce
	[ "$(grep -c '^#  Rank' "$work/out")" = 4 ]
	grep -q '"authenticated":true' "$work/json"
}

test_a_launcher_may_start_the_ranks()
{
	export HCOMM_NRANKS=2 HCOMM_JOB="test-$$"
	# shellcheck disable=SC2086
	HCOMM_RANK=1 "$bench" $small >"$work/second" 2>&1 &
	# shellcheck disable=SC2086
	status 0 env HCOMM_RANK=0 "$bench" $small
	wait $!
	[ "$(grep -c '^#  Rank' "$work/out")" = 2 ]
	[ ! -s "$work/second" ]
}

run_tests \
	wrong_usage_ends_with_2_and_names_the_option \
	help_and_version_end_with_0 \
	standard_files_may_be_closed \
	a_parent_may_ignore_SIGCHLD \
	columns_are_those_of_nccl_tests \
	all_operations_types_and_buffers_are_right \
	sizes_follow_the_step \
	json_on_standard_output_is_alone_there \
	a_wrong_byte_is_found_in_every_operation \
	a_byte_behind_the_result_is_found \
	a_barrier_that_does_not_wait_is_found \
	a_wrong_byte_in_a_bucket_is_found \
	nothing_is_called_right_without_a_check \
	a_low_bandwidth_ends_with_1 \
	a_model_is_replayed_in_its_buckets \
	a_dead_rank_is_named_and_ends_with_3 \
	ranks_that_never_end_are_killed \
	without_the_module_kmod_ends_with_3_and_says_why \
	a_file_that_cannot_be_written_ends_with_3 \
	signals_leave_no_rank_behind \
	two_nodes_make_one_group_and_one_table \
	a_launcher_may_start_the_ranks
