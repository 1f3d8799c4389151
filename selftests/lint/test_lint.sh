#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# What can be said of the sources without running them, one KTAP line a check.

cd "$(dirname "$0")/../.." || exit 1
. build/kselftest/ktap_helpers.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Files of this project: known to git and there, or, without git, all but build.
if git rev-parse --git-dir >/dev/null 2>&1; then
	git ls-files --cached --others --exclude-standard
else
	find . -path ./build -prune -o -type f -printf '%P\n'
fi | sort | while read -r file; do
	[ -f "$file" ] && echo "$file"
done >"$work/files"

# Result of a check: what it wrote to $work/found must be nothing.
result()
{
	if [ -s "$work/found" ]; then
		ktap_test_fail "$1"
		sed 's/^/# /' "$work/found" | head -n 60
	else
		ktap_test_pass "$1"
	fi
}

files()
{
	grep -E "$1" "$work/files"
}

# A name of a licence for each part, as LICENSES has them.
licence_of()
{
	case "$1" in
	# These forms of file have no comments.
	LICENSES/*|Documentation/ABI/*|*.json) ;;
	uapi/*) echo "GPL-2.0 WITH Linux-syscall-note" ;;
	kmod/*|selftests/lab/faults/*) echo "GPL-2.0" ;;
	*) echo "GPL-2.0 OR BSD-2-Clause" ;;
	esac
}

check_licences()
{
	while read -r file; do
		licence=$(licence_of "$file")
		[ -z "$licence" ] ||
			head -n 3 "$file" |
				grep -qE "SPDX-License-Identifier: $licence( \*/| -->)?$" ||
			echo "$file: no \"SPDX-License-Identifier: $licence\" at its head"
	done <"$work/files" >"$work/found"
	result "every file names its licence"
}

# $1: further types to ignore, then file names on standard input. Out of the
# kernel's tree there is no MAINTAINERS, and SPDX is checked above.
checkpatch()
{
	xargs -r perl build/checkpatch/checkpatch.pl --no-tree --strict --terse \
		--show-types --no-summary --max-line-length=100 \
		--ignore "FILE_PATH_CHANGES,SPDX_LICENSE_TAG,$1" -f 2>&1
}

# The form of TRACE_EVENT() is not checkpatch's; BIT() is not user space's; a
# wrapper may drop an argument that one kernel does without.
check_kernel_style()
{
	{
		files '^(kmod|selftests/lab/faults)/.*\.[ch]$' |
			grep -vE '/(trace|compat)\.h$' | checkpatch NONE
		files '^kmod/trace\.h$' | checkpatch OPEN_ENDED_LINE,PARENTHESIS_ALIGNMENT
		files '^kmod/compat/compat\.h$' | checkpatch MACRO_ARG_UNUSED
		files '^uapi/.*\.h$' | checkpatch BIT_MACRO
	} >"$work/found"
	# checkpatch leaves a cache in the folder it runs in.
	rm -f .checkpatch-camelcase.*
	result "checkpatch --strict finds nothing in kernel code"
}

check_sparse()
{
	kdir=$(selftests/lab/lab kdir 6.12)
	make -s -C kmod KDIR="$kdir" BUILD="$PWD/build/lint" SPARSE=1 >"$work/sparse" 2>&1 ||
		cp "$work/sparse" "$work/failed"
	if [ -e "$work/failed" ]; then
		cp "$work/failed" "$work/found"
	else
		grep -E '/kmod-[^ ]*: (warning|error)' "$work/sparse" >"$work/found"
	fi
	result "sparse finds nothing in kernel code"
}

# Two scripts of the kernel do not parse or do not end with Debian 12's spatch.
check_coccinelle()
{
	find build/checkpatch/coccinelle -name '*.cocci' \
		! -name check_bq27xxx_data.cocci ! -name badzero.cocci -print0 |
		xargs -0 -P "$(nproc)" -n 1 sh -c '
			spatch -D report --no-show-diff --very-quiet --timeout 60 \
				--cocci-file "$0" --dir kmod -I kmod 2>/dev/null ||
				echo "$0: spatch ended with $?"' >"$work/found"
	result "coccinelle finds nothing in kernel code"
}

check_tidy()
{
	files '^(libhcomm|tools)/.*\.c$' |
		xargs -P "$(nproc)" -n 6 sh -c 'clang-tidy --quiet "$@" -- -std=gnu11 \
			-Ilibhcomm/include -Ilibhcomm -I. -Iuapi -Itools/common \
			-D_GNU_SOURCE 2>&1' tidy |
		grep -E '(warning|error):' | sort -u >"$work/found"
	result "clang-tidy finds nothing in user code"
}

check_shell()
{
	if ! command -v shellcheck >/dev/null; then
		ktap_test_skip "shell scripts (no shellcheck)"
		return
	fi
	while read -r file; do
		head -n 1 "$file" | grep -qaE '^#!.*[/ ](ba|da)?sh$' && echo "$file"
	done <"$work/files" >"$work/scripts"
	xargs shellcheck -s dash -e SC1090,SC1091,SC2016,SC2039,SC3043 -f gcc \
		<"$work/scripts" >"$work/found"
	result "shellcheck finds nothing in shell scripts"
}

check_python()
{
	while read -r file; do
		head -n 1 "$file" | grep -qa '^#!.*python3' ||
			[ "${file%.py}" != "$file" ] || continue
		python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' \
			"$file" 2>&1 | tail -n 1
	done <"$work/files" >"$work/found"
	result "python scripts parse"
}

text_files()
{
	grep -vE '^LICENSES/' "$work/files" | tr '\n' '\0' | xargs -0 grep -lI '' | grep -v '^$'
}

check_text()
{
	text_files >"$work/text"
	xargs grep -nE '[[:space:]]+$' <"$work/text" >"$work/found"
	result "no line ends in white space"

	grep -vE '\.(rst|md|map|json)$' "$work/text" | while read -r file; do
		expand -t 8 "$file" | awk -v f="$file" \
			'length > 100 && !/"/ { print f ":" FNR ": " length " columns" }'
	done >"$work/found"
	result "no line of code is longer than 100 columns, but for texts"

	grep -v '^selftests/run$' "$work/text" |
		xargs grep -nE '\b(TO''DO|FIX''ME)\b' >"$work/found"
	result "nothing is left to do"

	xargs grep -nE '(^|[^[:alnum:]_.})])/(ho''me|ro''ot|wo''rk)/[a-z.]' \
		<"$work/text" >"$work/found"
	result "no path of somebody's machine"
}

check_versions()
{
	files '^kmod/' | xargs grep -nE 'LINUX_VERSION_CODE|KERNEL_VERSION\(' >"$work/found"
	result "kernel interfaces are probed, not guessed from a version"
}

ktap_print_header
ktap_set_plan 12
check_licences
check_kernel_style
check_sparse
check_coccinelle
check_tidy
check_shell
check_python
check_text
check_versions
ktap_finished
