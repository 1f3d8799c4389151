#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# probe.sh KDIR PROBES WORK: write WORK/hcomm_config.h for the kernel of KDIR.
#
# Every file of PROBES is GROUP-VARIANT.c: one way to use one interface. All
# are compiled in one kbuild pass; what compiles is defined as
# HCOMM_HAVE_GROUP_VARIANT. A group of which nothing compiles means that the
# kernel has yet another way, or that it cannot be built against at all: the
# compiler's words about it are shown, and there is no header.
# shellcheck disable=SC2086

set -eu
kdir=$1
probes=$2
work=$3/probes
config=$3/hcomm_config.h

rm -rf "$work"
mkdir -p "$work"
names=
for file in "$probes"/*.c; do
	ln -s "$file" "$work/"
	name=${file##*/}
	names="$names ${name%.c}"
done

{
	echo "OBJECT_FILES_NON_STANDARD := y"
	echo "ccflags-y := -DMODULE -Werror -Wno-missing-prototypes -Wno-missing-declarations"
	for name in $names; do
		echo "always-y += $name.o"
	done
} >"$work/Kbuild"

${MAKE:-make} -k -C "$kdir" M="$work" modules >"$work/log" 2>&1 || :

fail=
{
	echo "/* SPDX-License-Identifier: GPL-2.0 */"
	echo "/* What compat/probe.sh found to compile against this kernel. */"
	for name in $names; do
		macro=$(echo "$name" | tr 'a-z-' 'A-Z_')
		if [ -e "$work/$name.o" ]; then
			echo "#define HCOMM_HAVE_$macro 1"
		fi
	done
} >"$work/hcomm_config.h"

for group in $(printf '%s\n' $names | sed 's/-.*//' | sort -u); do
	for name in $names; do
		case "$name" in
		"$group"-*) [ -e "$work/$name.o" ] && continue 2 ;;
		esac
	done
	fail=1
	echo "hcomm: no known form of $group compiles against $kdir:" >&2
	grep -A 8 "/$group-" "$work/log" >&2 || cat "$work/log" >&2
done
[ -z "$fail" ] || exit 1

mv "$work/hcomm_config.h" "$config"
