# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

# Everything that is built goes to BUILD.
BUILD ?= build
override BUILD := $(abspath $(BUILD))
PREFIX ?= /usr/local
DESTDIR ?=
override DESTDIR := $(abspath $(DESTDIR))

# The module of `make` is for the newest kernel whose headers are installed.
# KDIR=FOLDER names other headers, KERNEL=6.1|6.12|debug those of a lab kernel.
ifdef KERNEL
KDIR := $(shell selftests/lab/lab kdir $(KERNEL))
no_headers := KERNEL=$(KERNEL) has no headers: the line above says why
endif
KDIR ?= $(shell ls -d /lib/modules/*/build/ 2>/dev/null | sort -V | tail -n 1)
no_headers ?= /lib/modules has no kernel headers: install linux-headers-RELEASE, \
	or name their folder by KDIR=

LAB := selftests/lab/lab
LIBRARY_OPTIONS := O=$(BUILD) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)

help:
	@echo 'make [TARGET] [KDIR=HEADERS | KERNEL=6.1|6.12|debug]'
	@echo
	@echo '  all           (the default) module for the newest installed headers, or for'
	@echo '                those that are named; library, tools'
	@echo '  module        the module alone'
	@echo '  library       the library alone'
	@echo '  tools         hcomm_benchmark, hcomm_diag; the library'
	@echo '  demo          two virtual nodes all-reduce and check every byte'
	@echo
	@echo '  check         host tests, lint, DKMS, kernels 6.1 and 6.12, and what is'
	@echo '                essential on the debug kernel (which is built if missing)'
	@echo '  check-fast    a few minutes: host unit tests and one virtual machine'
	@echo '  check-native  what needs no virtual machine'
	@echo '  check-vm      all groups on kernels 6.1 and 6.12'
	@echo '  check-debug   all groups on the debug kernel'
	@echo '  lint          style, static checks, licence tags'
	@echo
	@echo '  setup         installs what the checks and the demo need (Debian 12)'
	@echo '  selftests     builds the tests'
	@echo '  module-6.1, module-6.12, module-debug'
	@echo '                the module for a lab kernel, warnings being errors'
	@echo '  debug-kernel  builds the debug kernel, once'
	@echo
	@echo '  install       library, tools, rules, module source for DKMS (PREFIX, DESTDIR)'
	@echo '  uninstall     the same, away'
	@echo '  clean         removes $(BUILD)'

all: module library tools

setup:
	@selftests/lab/setup

module:
	$(if $(KDIR),,$(error $(no_headers)))
	$(MAKE) -C kmod KDIR=$(KDIR) BUILD=$(BUILD)

# Who asks for more than a build of his own has the set-up come first, also
# with -j.
ifneq ($(filter demo check% lint selftests module-% debug-kernel,$(MAKECMDGOALS)),)
library: setup
endif

library:
	$(MAKE) -C libhcomm $(LIBRARY_OPTIONS)

tools: library
	$(MAKE) -C tools $(LIBRARY_OPTIONS)

selftests: setup library tools
	$(MAKE) -C selftests O=$(BUILD)

# The lab's kernels are found after set-up, hence by a make of their own.
module-6.1 module-6.12: setup
	$(MAKE) module KERNEL=$(@:module-%=%) WERROR=1

module-debug: debug-kernel
	$(MAKE) module KERNEL=debug WERROR=1

debug-kernel: setup
	$(LAB) build-kernel debug

demo: setup library tools module-6.12
	selftests/lab/demo

check: selftests module-6.1 module-6.12 module-debug
	selftests/run check

check-fast: selftests module-6.12
	selftests/run check-fast

check-native: selftests
	selftests/run check-native

check-vm: selftests module-6.1 module-6.12
	selftests/run check-vm

check-debug: selftests module-debug
	selftests/run check-debug

lint: setup
	selftests/lint/test_lint.sh

install: library tools
	$(MAKE) -C libhcomm $(LIBRARY_OPTIONS) install
	$(MAKE) -C tools $(LIBRARY_OPTIONS) install
	$(MAKE) -C packaging $(LIBRARY_OPTIONS) install
	$(MAKE) -C Documentation $(LIBRARY_OPTIONS) install

uninstall:
	$(MAKE) -C Documentation $(LIBRARY_OPTIONS) uninstall
	$(MAKE) -C packaging $(LIBRARY_OPTIONS) uninstall
	$(MAKE) -C tools $(LIBRARY_OPTIONS) uninstall
	$(MAKE) -C libhcomm $(LIBRARY_OPTIONS) uninstall
	$(MAKE) -C packaging $(LIBRARY_OPTIONS) uninstall-folders

clean:
	rm -rf $(BUILD)

.PHONY: help all setup module library tools selftests demo lint install uninstall clean
.PHONY: module-6.1 module-6.12 module-debug debug-kernel
.PHONY: check check-fast check-native check-vm check-debug
.DEFAULT_GOAL := all
