#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# hcomm_diag --link-status in a machine of the lab with two instances: what it
# tells against what sysfs says, with a link cut, with a path in use, and
# without the module. Instance i owns the ports rxe<i>_<l> over h<i>l<l>.

# shellcheck disable=SC2154
. "$(dirname "$0")/common.sh"

# until SECONDS COMMAND...: repeats it until it succeeds.
until_true()
{
	end=$(($(date +%s) + $1))
	shift
	while ! "$@"; do
		if [ "$(date +%s)" -ge $end ]; then
			echo "never true: $*"
			return 1
		fi
		sleep 0.2
	done
}

# field OBJECT KEY: of the one in $work/json for which the python OBJECT is true.
field()
{
	"$diag" --link-status --json >"$work/json" || [ $? = 1 ]
	python3 -c 'import json, sys
data = json.load(open(sys.argv[1]))
print([o[sys.argv[3]] for o in data["ports"] + data["paths"] if eval(sys.argv[2])][0])' \
		"$work/json" "$1" "$2"
}

test_ports_are_as_sysfs_says()
{
	status 0 "$diag" --link-status --json
	"$here/check_json.py" links "$work/out"
}

test_ports_have_their_owner()
{
	status 0 "$diag" --link-status
	for i in 0 1; do
		for port in "/sys/class/infiniband/rxe${i}_"*; do
			grep -qE "^${port##*/}/1 +hcomm$i +roce \(soft\) +active" "$work/out"
		done
	done
}

test_the_table_is_sorted_and_aligned()
{
	status 0 "$diag" --link-status
	sed -n '/^Port/,/^$/p' "$work/out" | grep . >"$work/table"
	[ "$(wc -l <"$work/table")" -gt 2 ]
	tail -n +2 "$work/table" | sort -V -c
	# The last column begins at one place in all rows.
	column=$(head -n 1 "$work/table" | sed 's/Verdict$//' | wc -c)
	[ "$(cut -c "$column-" "$work/table" | sort -u | xargs)" = "Verdict ok" ]
}

# ports_are STATE: both ends of the first link.
ports_are()
{
	for port in rxe0_0 rxe1_0; do
		until_true 10 grep -q "$1" /sys/class/infiniband/$port/ports/1/state
	done
}

no_paths()
{
	"$diag" --link-status >"$work/out" && ! grep -q ^Instance "$work/out"
}

all_is_well()
{
	"$diag" --link-status >"$work/out"
}

test_a_cut_link_is_told_and_ends_with_1()
{
	# A session of an earlier test may live on for some seconds, and its path
	# be told, too.
	until_true 20 no_paths
	ip link set h0l0 down
	# The far end learns of it by its carrier, up to a second later.
	ports_are DOWN
	got=0
	"$diag" --link-status >"$work/out" || got=$?
	"$diag" --link-status --json >"$work/json" || [ $? = 1 ]
	ip link set h0l0 up
	ports_are ACTIVE
	[ $got = 1 ]
	grep -qE '^rxe0_0/1 .* down .*FAIL: port is down: its network device is down' "$work/out"
	grep -qE '^rxe1_0/1 .* no-carrier .*FAIL' "$work/out"
	grep -q '"failed":2' "$work/json"
	status 0 "$diag" --link-status
}

begin_traffic()
{
	"$built/tools/hcomm_benchmark" -g 2 --instances hcomm0,hcomm1 -b 64K -e 64K -c 0 \
		-n 1000000 >"$work/running" 2>&1 &
	pid=$!
	path='o.get("path") == "0" and o["instance"] == "hcomm0"'
}

end_traffic()
{
	kill -KILL "$pid" || echo "the benchmark has ended by itself"
	wait "$pid" || true
}

bytes_grow()
{
	first=$(field "$path" tx_bytes 2>/dev/null) &&
		second=$(field "$path" tx_bytes 2>/dev/null) && [ "$second" -gt "$first" ]
}

test_a_path_is_back_soon_after_its_link_is()
{
	begin_traffic
	until_true 60 bytes_grow
	ip link set h0l0 down
	ports_are DOWN
	# The other link leads nowhere here: attempts over it must not cost the
	# session its life, nor the path the time once its own link is back: the
	# drain of such an attempt takes 5 s at the most.
	sleep 7
	ip link set h0l0 up
	ok=0
	until_true 8 all_is_well && until_true 20 bytes_grow || ok=1
	end_traffic
	[ $ok = 0 ] || cat "$work/running" "$work/out"
	[ $ok = 0 ]
}

test_a_path_in_use_is_seen_with_its_bytes()
{
	begin_traffic
	ok=0
	until_true 60 bytes_grow || ok=1
	[ $ok = 1 ] || [ "$(field "$path" state)" = up ] || ok=2
	[ $ok != 0 ] || [ "$(field "$path" peer_instance)" = hcomm1 ] || ok=3
	[ $ok != 0 ] || "$diag" --link-status | grep -qE '^hcomm0 +hcomm1 +0 +up +rxe0_.* ok$' || ok=4
	end_traffic
	[ $ok = 0 ] || cat "$work/running" "$work/json"
	[ $ok = 0 ]
}

# The last test: nothing here needs the module any more.
test_without_the_module_ports_are_still_listed()
{
	until_true 20 rmmod hcomm
	status 0 "$diag" --link-status
	said out "hcomm.ko is not loaded"
	grep -qE '^rxe0_0/1 +- +roce' "$work/out"
	status 0 "$diag" --link-status --json
	"$here/check_json.py" links "$work/out"
}

run_tests \
	ports_are_as_sysfs_says \
	ports_have_their_owner \
	the_table_is_sorted_and_aligned \
	a_cut_link_is_told_and_ends_with_1 \
	a_path_in_use_is_seen_with_its_bytes \
	a_path_is_back_soon_after_its_link_is \
	without_the_module_ports_are_still_listed
