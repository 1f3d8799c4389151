# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# shellcheck shell=sh disable=SC2034
#
# For the scripts here: where things are, and tests as functions. A function's
# standard error is what a failed test tells.

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$here/../.." && pwd)
built=$repo/build
bench=$built/tools/hcomm_benchmark
diag=$built/tools/hcomm_diag
faulty=$built/selftests/tools/hcomm_benchmark_faulty
. "$built/kselftest/ktap_helpers.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# run_tests NAME...: each is the function test_NAME; '_' reads as a blank.
run_tests()
{
	ktap_print_header
	ktap_set_plan $#
	for name in "$@"; do
		# Not as a condition: there set -e would mean nothing.
		(set -e; "test_$name") >"$work/log" 2>&1
		result=$?
		if [ $result = 0 ]; then
			ktap_test_pass "$(echo "$name" | tr _ ' ')"
		else
			ktap_test_fail "$(echo "$name" | tr _ ' ')"
			sed 's/^/# /' "$work/log" | head -n 40
		fi
	done
	ktap_finished
}

# status EXPECTED COMMAND...: runs it; output in $work/out and $work/err.
status()
{
	expected=$1
	shift
	got=0
	"$@" >"$work/out" 2>"$work/err" || got=$?
	[ "$got" = "$expected" ] && return
	echo "exit status $got instead of $expected: $*"
	head -n 20 "$work/err"
	return 1
}

# said FILE WORDS: the file has them.
said()
{
	grep -qF -- "$2" "$work/$1" && return
	echo "\"$2\" is not in:"
	head -n 20 "$work/$1"
	return 1
}

# help_and_version TOOL OPTION: TOOL tells OPTION and its version, and when that
# cannot be written.
help_and_version()
{
	status 0 "$1" --help
	said out "$2"
	status 0 "$1" --version
	said out "${1##*/} "
	for option in --help --version; do
		got=0
		"$1" $option >/dev/full 2>"$work/err" || got=$?
		[ $got = 3 ]
		said err "standard output cannot be written"
	done
}
