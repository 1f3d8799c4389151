#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Each way in breaks/ to break the core must be caught by the simulation.

here=$(dirname "$(readlink -f "$0")")
built=${BUILD:-$here/../../build}/selftests/sim/breaks

n=0
failed=0
set -- "$here"/breaks/*.sed
echo "TAP version 13"
echo "1..$#"
for break in "$@"; do
	n=$((n + 1))
	name=$(basename "$break" .sed)
	what=$(sed -n '2s/^# //p' "$break")
	timeout 100 "$built/$name/sim" --schedules 200000 >"$built/$name/log" 2>&1
	status=$?
	if [ $status -eq 1 ]; then
		echo "ok $n - caught: $what"
	else
		failed=1
		echo "# status $status of $built/$name/sim"
		echo "not ok $n - caught: $what"
	fi
done
exit $failed
