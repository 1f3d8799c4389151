#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm_diag where there is nothing to see: what it accepts, how it ends.

# shellcheck disable=SC2154
. "$(dirname "$0")/common.sh"

# wrong_usage WORDS OPTION...: ends with 2 and says so; the way to help, too.
wrong_usage()
{
	words=$1
	shift
	status 2 "$diag" "$@"
	[ ! -s "$work/out" ]
	said err "$words"
	said err "see hcomm_diag --help"
}

test_wrong_usage_ends_with_2_and_says_what_is_wrong()
{
	wrong_usage "--link-status is missing"
	wrong_usage "--link-status is missing" --json
	wrong_usage "'rxe0' is no option" --link-status rxe0
	wrong_usage "unrecognized option '--nope'" --nope
	wrong_usage "'--link-status' doesn't allow an argument" --link-status=1
}

test_help_and_version_end_with_0()
{
	help_and_version "$diag" --link-status
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
	wrong_usage_ends_with_2_and_says_what_is_wrong \
	help_and_version_end_with_0 \
	without_RDMA_it_ends_with_3_and_says_so
