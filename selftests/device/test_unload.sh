#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# Loading and unloading: refused while a file is open, whoever holds it, and
# possible at once afterwards; parameters that make no sense are refused.

here=$(cd "$(dirname "$0")" && pwd)
module=${HCOMM_MODULE:-$here/../../build/kmod-$(uname -r)/hcomm.ko}
nr=0
worst=0

result()
{
	nr=$((nr + 1))
	if [ "$1" = 0 ]; then
		echo "ok $nr $2"
	else
		echo "not ok $nr $2"
		worst=1
	fi
}

loaded()
{
	[ -d /sys/module/hcomm ]
}

echo "TAP version 13"
if ! loaded || [ ! -e "$module" ]; then
	echo "1..0 # SKIP no module to play with"
	exit 4
fi
echo "1..7"

exec 3<>/dev/hcomm0
! rmmod hcomm 2>/dev/null && loaded
result $? unload_is_refused_while_a_file_is_open

# A child keeps the file open when we have closed it.
sleep 1000 &
child=$!
exec 3>&-
! rmmod hcomm 2>/dev/null && loaded
result $? unload_is_refused_while_a_child_has_the_file

kill -9 $child
wait $child 2>/dev/null
rmmod hcomm && ! loaded && [ ! -e /dev/hcomm0 ]
result $? unload_follows_the_last_close

worse=0
for bad in instances=0 instances=65 base_port=0 "base_port=65535 instances=2"; do
	# shellcheck disable=SC2086
	insmod "$module" $bad 2>/dev/null && worse=1 && rmmod hcomm
done
result $worse parameters_out_of_range_are_refused

insmod "$module" instances=64 && [ -c /dev/hcomm0 ] && [ -c /dev/hcomm63 ] &&
	[ ! -e /dev/hcomm64 ]
result $? instances_make_as_many_devices

[ "$(stat -c %a /dev/hcomm5)" = 660 ]
result $? devices_are_for_owner_and_group

rmmod hcomm && insmod "$module" instances=2 && [ -c /dev/hcomm1 ]
result $? the_module_loads_again
exit $worst
