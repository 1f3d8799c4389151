#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm_diag where there is nothing to see: what it accepts, how it ends.

# shellcheck disable=SC2154
. "$(dirname "$0")/common.sh"

test_wrong_usage_ends_with_2_and_names_the_option()
{
	for words in "" --json "--link-status rxe0" --nope --link-status=1; do
		# shellcheck disable=SC2086
		status 2 "$diag" $words
		[ ! -s "$work/out" ]
	done
	said err link-status
	status 2 "$diag" --link-status rxe0
	said err rxe0
}

test_help_and_version_end_with_0()
{
	status 0 "$diag" --help
	said out --link-status
	status 0 "$diag" --version
	said out "hcomm_diag "
	for option in --help --version; do
		got=0
		"$diag" $option >/dev/full 2>"$work/err" || got=$?
		[ $got = 3 ]
		said err "standard output cannot be written"
	done
}

test_without_RDMA_it_ends_with_3_and_says_so()
{
	[ ! -e /sys/class/infiniband ] || return 0
	for form in "" --json; do
		# shellcheck disable=SC2086
		status 3 "$diag" --link-status $form
		said err RDMA
		[ ! -s "$work/out" ]
	done
}

run_tests \
	wrong_usage_ends_with_2_and_names_the_option \
	help_and_version_end_with_0 \
	without_RDMA_it_ends_with_3_and_says_so
