#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Runs each fuzzer for 5 seconds (HCOMM_SUITE=fast or unset) or 60; a crashing
# input stays in build/selftests/fuzz/crash-*.

here=$(dirname "$(readlink -f "$0")")
built=${BUILD:-$here/../../build}/selftests/fuzz
case ${HCOMM_SUITE:-fast} in
fast)
	seconds=5 ;;
*)
	seconds=60 ;;
esac

echo "TAP version 13"
set -- "$here"/fuzz_*.c
if [ ! -x "$built/$(basename "$1" .c)" ]; then
	echo "1..0 # SKIP the fuzzers are not built: clang is missing"
	exit 4
fi
echo "1..$#"
n=0
failed=0
for source in "$@"; do
	n=$((n + 1))
	name=$(basename "$source" .c)
	corpus=$built/corpus_$name
	mkdir -p "$corpus"
	if "$built/$name" -max_total_time=$seconds -max_len=4096 -timeout=10 \
		-print_final_stats=1 -artifact_prefix="$built/crash-" \
		"$corpus" >"$built/$name.log" 2>&1; then
		sed -n 's/^stat::number_of_executed_units: */# inputs: /p' \
			"$built/$name.log"
		echo "ok $n - $name finds nothing in $seconds seconds"
	else
		failed=1
		tail -n 20 "$built/$name.log" | sed 's/^/# /'
		echo "not ok $n - $name finds nothing in $seconds seconds"
	fi
done
exit $failed
