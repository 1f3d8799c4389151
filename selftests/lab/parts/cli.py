# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command line of the lab."""

import argparse
import re
import signal
import sys

from . import buildkernel, kernels, session
from .host import LabError

EXITS = """\
exit status: the first of the commands' that is not zero; else
  99   a kernel reported something (its log is printed and kept in build/lab)
  124  time ran out
  125  the lab could not start, or a machine died
Ports: instance i (counted per machine) owns rxe<i>_<l> on link l, address
10.<18+l>.0.<1+g> where g counts instances over all machines.
With --vms N the command starts in each with HCOMM_NODE, HCOMM_NODES,
HCOMM_ROOT and HCOMM_SECRET; HCOMM_* variables of the caller go along."""


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def add_run(commands):
    run = commands.add_parser("run", help="run a command in virtual machines", epilog=EXITS,
                              formatter_class=argparse.RawDescriptionHelpFormatter)
    add = run.add_argument
    add("--kernel", default="6.12", help="6.1, 6.12 (default), debug, or a full release")
    add("--vms", type=positive, default=1, metavar="N", help="machines (1)")
    add("--instances", type=positive, default=None, metavar="K",
        help="hcomm devices per machine (2; with --vms 1)")
    add("--links", type=int, default=1, metavar="L", help="links between all instances (1)")
    add("--rate", default="", help="of each link end, e.g. 40mbit")
    add("--loss", default="", help="of each link end, e.g. 0.1%%")
    add("--delay", default="", help="in each direction, e.g. 1ms")
    add("--mtu", type=positive, default=4500, help="of links inside a machine (4500)")
    add("--cpus", type=positive, default=2, metavar="C", help="per machine (2)")
    add("--memory", default="2G", help="per machine (2G)")
    add("--timeout", type=positive, default=600, metavar="S", help="seconds, boot included (600)")
    add("--module", metavar="PATH", help="hcomm.ko to load instead of build/kmod-RELEASE/hcomm.ko")
    add("--module-args", default="", metavar="ARGS", help="more module parameters")
    add("--no-module", action="store_true", help="load no hcomm.ko")
    add("--no-leak-scan", action="store_true", help="do not look for leaks at the end")
    add("--append", default="", metavar="WORDS", help="more for the kernel's command line")
    add("--allow", type=re.compile, action="append", default=[], metavar="REGEX",
        help="kernel log lines that are expected and do not fail the run")
    add("command", nargs="+", metavar="COMMAND")
    run.set_defaults(action=run_command)


def run_command(args):
    if args.instances is None:
        args.instances = 1 if args.vms > 1 else 2
    return session.Run(args).go()


def build_kernel(_args):
    print(buildkernel.build())
    return 0


def show_release(args):
    print(kernels.find(args.kernel).release)
    return 0


def show_headers(args):
    print(kernels.headers(args.kernel))
    return 0


def parse(argv):
    parser = argparse.ArgumentParser(prog="lab")
    commands = parser.add_subparsers(required=True)
    add_run(commands)
    build = commands.add_parser("build-kernel", help="build and cache the debug kernel")
    build.add_argument("kernel", choices=["debug"])
    build.set_defaults(action=build_kernel)
    for name, action, what in (("kver", show_release, "release"),
                               ("kdir", show_headers, "headers")):
        query = commands.add_parser(name, help=f"print a kernel's {what}")
        query.add_argument("kernel")
        query.set_defaults(action=action)
    return parser.parse_args(argv)


def stop(number, _frame):
    sys.exit(128 + number)


def main(argv):
    args = parse(argv)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    try:
        return args.action(args)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 125
