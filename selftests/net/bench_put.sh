#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm's put against ib_write_bw over the same software link, same MTU, size
# and depth, in turns: prints both rates of each round and, per size, the ratio
# as min/median/max. Run it as
#
#   selftests/lab/lab run --instances 2 -- selftests/net/bench_put.sh [ROUNDS]
#
# BENCH is the built program, BENCH_SIZES the sizes, BENCH_BYTES what one
# measurement moves, BENCH_DEPTH how many operations are under way.

rounds=${1:-7}
here=$(dirname "$0")
bench=${BENCH:-$here/../../build/selftests/net/bench_put}
depth=${BENCH_DEPTH:-32}
bytes=${BENCH_BYTES:-16777216}

theirs()
{
	ib_write_bw -R -F -d rxe1_0 -s "$1" -n "$2" -t "$depth" \
		>/tmp/server 2>&1 &
	server=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		ib_write_bw -R -F -d rxe0_0 -s "$1" -n "$2" -t "$depth" \
			10.18.0.2 >/tmp/client 2>&1 && break
	done
	wait "$server"
	# MiB per second, in the fourth column of the line of this size.
	awk -v size="$1" '$1 == size { printf "%.2f\n", $4 * 1.048576 }' /tmp/client
}

for size in ${BENCH_SIZES:-65536 262144 1048576}; do
	count=$((bytes / size))
	[ "$count" -ge "$((depth + 8))" ] || count=$((depth + 8))
	round=0
	while [ "$round" -lt "$rounds" ]; do
		ours=$("$bench" "$size" "$count" "$depth") || exit 1
		peer=$(theirs "$size" "$count")
		[ -n "$peer" ] || { cat /tmp/client /tmp/server >&2; exit 1; }
		echo "$size $ours $peer"
		round=$((round + 1))
	done
done | awk '
	{
		ratio = $2 / $3
		printf "%8d bytes: put %8.2f MB/s  ib_write_bw %8.2f MB/s  ratio %.2f\n", $1, $2, $3, ratio
		if (!($1 in n))
			order[++sizes] = $1
		all[$1, ++n[$1]] = ratio
	}
	END {
		for (i = 1; i <= sizes; i++) {
			s = order[i]
			for (a = 2; a <= n[s]; a++)
				for (b = a; b > 1 && all[s, b] < all[s, b - 1]; b--) {
					t = all[s, b]; all[s, b] = all[s, b - 1]; all[s, b - 1] = t
				}
			printf "%8d bytes: ratio min %.2f median %.2f max %.2f over %d rounds\n", s, all[s, 1], all[s, int((n[s] + 1) / 2)], all[s, n[s]], n[s]
		}
	}'
