#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# `make install` puts everything where it belongs, `make uninstall` leaves
# nothing, under both kinds of prefix. Nothing outside a DESTDIR is touched.

cd "$(dirname "$0")/../.." || exit 1
. build/kselftest/ktap_helpers.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check()
{
	if [ "$2" = 0 ]; then
		ktap_test_pass "$1"
	else
		ktap_test_fail "$1"
		sed 's/^/# /' "$work/log" | tail -n 30
	fi
}

# All of the list must be there.
has()
{
	missing=0
	for path in "$@"; do
		if [ ! -e "$work/root$path" ]; then
			echo "missing: $path" >>"$work/log"
			missing=1
		fi
	done
	return $missing
}

# Without a word of complaint.
uninstalls()
{
	make -s uninstall DESTDIR="$work/root" PREFIX="$prefix" >"$work/log" 2>&1 &&
		! grep -q . "$work/log"
	result=$?
	find "$work/root" >>"$work/log"
	return $result
}

try_prefix()
{
	prefix=$1
	rules=$2
	make -s install DESTDIR="$work/root" PREFIX="$prefix" >"$work/log" 2>&1
	check "installs under $prefix" $?
	has "$rules/udev/rules.d/60-hcomm.rules" "$rules/sysusers.d/hcomm.conf" \
		/etc/security/limits.d/60-hcomm.conf "$prefix/share/hcomm/modules-load.conf" \
		"$prefix/share/hcomm/systemd-memlock.conf" "/usr/src/hcomm-$version/dkms.conf" \
		"/usr/src/hcomm-$version/kmod/Kbuild" "/usr/src/hcomm-$version/uapi/hcomm.h" \
		"$prefix/include/hcomm.h" "$prefix/bin/hcomm_benchmark" "$prefix/bin/hcomm_diag"
	check "everything is where it belongs under $prefix" $?
	[ -z "$(find "$work/root" -xtype l)" ]
	check "no link leads nowhere under $prefix" $?
	library=$(find "$work/root$prefix" -name hcomm.pc)
	PKG_CONFIG_SYSROOT_DIR="$work/root" PKG_CONFIG_PATH="${library%/*}" sh -c '
		cc -o "$1/first" Documentation/examples/first.c \
			$(pkg-config --cflags --libs hcomm)' sh "$work" >"$work/log" 2>&1
	check "the first program builds with pkg-config against $prefix" $?
	mkdir "$work/root/of-another"
	uninstalls && [ "$(ls "$work/root")" = of-another ]
	check "uninstall leaves nothing of ours under $prefix" $?
	uninstalls
	check "a second uninstall under $prefix finds nothing, silently" $?
	rm -rf "$work/root"
}

version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
ktap_print_header
ktap_set_plan 12
try_prefix /usr/local /etc
try_prefix /usr /usr/lib
ktap_finished
