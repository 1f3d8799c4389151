#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# DKMS adds, builds and installs the module for both kernels from what `make
# install` leaves it, and a virtual machine loads the very file it installed.
# Everything happens in trees of the test's own; the folders that dkms writes to
# whatever its options say (its signing key) are covered in a mount namespace.

cd "$(dirname "$0")/../.." || exit 1
. build/kselftest/ktap_helpers.sh

lab=selftests/lab/lab
version=$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check()
{
	if [ "$2" = 0 ]; then
		ktap_test_pass "$1"
	else
		ktap_test_fail "$1"
		sed 's/^/# /' "$work/log" | tail -n 40
	fi
}

host_state()
{
	find /var/lib/dkms /etc/dkms /usr/src /lib/modules -printf '%p %s %T@\n' 2>/dev/null |
		sort | sha256sum
}

in_own_trees()
{
	unshare -m sh -c '
		work=$1
		shift
		mount --bind "$work/var" /var/lib/dkms && mount --bind "$work/etc" /etc/dkms &&
			exec "$@"' sh "$work" \
		dkms "$@" --dkmstree "$work/dkms" --sourcetree "$work/root/usr/src" \
		--installtree "$work/modules" --no-depmod -m hcomm -v "$version" >>"$work/log" 2>&1
}

prepare()
{
	mkdir -p "$work/dkms" "$work/modules" "$work/var" "$work/etc"
	cp -a /etc/dkms/. "$work/etc/"
	make -s -C packaging install-dkms DESTDIR="$work/root" >"$work/log" 2>&1 &&
		in_own_trees add
	check "dkms adds the installed source" $?
}

# $1: name of the kernel
try_kernel()
{
	release=$($lab kver "$1")
	mkdir -p "$work/modules/$release"
	: >"$work/log"
	in_own_trees build -k "$release" && in_own_trees install -k "$release"
	check "dkms builds and installs for $1" $?
	module=$(find "$work/modules/$release" -name 'hcomm.ko*' 2>/dev/null)
	[ -n "$module" ] && $lab run --kernel "$1" --module "$module" -- sh -c '
		[ -c /dev/hcomm0 ] && [ -c /dev/hcomm1 ] &&
		[ "$(cat /sys/module/hcomm/srcversion)" = "$(modinfo -F srcversion "$1")" ]' \
		sh "$module" >"$work/log" 2>&1
	check "kernel $1 loads what dkms installed" $?
}

ktap_print_header
if [ "$(id -u)" != 0 ]; then
	ktap_skip_all "dkms needs root"
	exit "$KSFT_SKIP"
fi
ktap_set_plan 6
before=$(host_state)
prepare
try_kernel 6.1
try_kernel 6.12
[ "$before" = "$(host_state)" ]
check "the host is as it was" $?
ktap_finished
