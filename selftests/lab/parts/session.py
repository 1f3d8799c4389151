# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A run: machines from start to exit status.

Whatever ends it, the machines are dead and the run's folder is gone when run()
returns; the kernel logs stay in build/lab.
"""

import os
import pathlib
import secrets
import selectors
import shlex
import shutil
import sys
import tempfile
import time

from . import initramfs, kernels, network, report
from .host import BUILD, LAB, REPO, LabError, cache_dir
from .machine import Machine

EXIT_REPORT = 99
EXIT_TIMEOUT = 124
EXIT_BROKEN = 125
KEPT_LOGS = 20
ROOT_PORT = 18500


def say(text):
    print(f"lab: {text}", file=sys.stderr, flush=True)


def log_folder():
    base = BUILD / "lab"
    base.mkdir(parents=True, exist_ok=True)
    for old in sorted(base.iterdir())[:-KEPT_LOGS]:
        shutil.rmtree(old, ignore_errors=True)
    return pathlib.Path(tempfile.mkdtemp(prefix=time.strftime("%Y%m%d-%H%M%S-"), dir=base))


def find_module(args, kernel):
    if args.no_module:
        return None
    if args.module:
        module = pathlib.Path(args.module).resolve()
    else:
        module = BUILD / f"kmod-{kernel.release}" / "hcomm.ko"
    if not module.exists():
        raise LabError(f"no {module}: make -C kmod KDIR={kernel.headers}")
    return module


def search_path():
    """Where a command of this project, or any other, is looked for."""
    ours = [BUILD / "tools", BUILD / "selftests", LAB]
    for folder in (BUILD / "tools", BUILD / "selftests"):
        if folder.is_dir():
            ours += sorted(p for p in folder.iterdir() if p.is_dir())
    rest = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
    return ":".join([*map(str, ours), *rest])


def quoted(values):
    return "".join(f"{name}={shlex.quote(str(value))}\n" for name, value in values.items())


def exported(values):
    return "".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in values.items())


class Run:
    def __init__(self, args):
        self.args = args
        self.kernel = kernels.find(args.kernel)
        self.module = find_module(args, self.kernel)
        self.initramfs = initramfs.get(self.kernel)
        self.deadline = time.monotonic() + args.timeout
        self.logs = log_folder()
        self.secret = secrets.token_hex(32)

    def go(self):
        """The emulator now and then kills a guest while it boots: once more."""
        timed_out = self.attempt()
        if not timed_out and not self.broken and not all(self.booted):
            say(f"a machine died while booting, before hcomm; kernel logs in {self.logs}: "
                "once more")
            self.logs = log_folder()
            timed_out = self.attempt()
        return self.verdict(timed_out)

    def attempt(self):
        """Machines from start to end; True when time ran out."""
        parent = cache_dir() / "run"
        parent.mkdir(exist_ok=True)
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=parent))
        self.machines = []
        self.status = [None] * self.args.vms
        self.booted = [False] * self.args.vms
        self.finished = [False] * self.args.vms
        self.broken = []
        try:
            self.start()
            return self.pump()
        finally:
            for machine in self.machines:
                machine.kill()
            shutil.rmtree(self.folder, ignore_errors=True)

    def start(self):
        wires = network.Wires(self.args.vms, self.args.instances, self.args.links)
        for node in range(self.args.vms):
            folder = self.folder / str(node)
            self.write_settings(node, folder)
            self.machines.append(Machine(
                node, self.kernel, self.initramfs, folder, self.logs / f"node{node}.log",
                wires.cards[node], self.args))
        wires.handed_over()

    def write_settings(self, node, folder):
        args = self.args
        folder.mkdir()
        shown = " ".join(self.shown_paths())
        (folder / "paths").write_text(quoted({"LAB_SHOW": shown, "LAB_DIR": LAB}))
        settings = {
            "LAB_NODE": node, "LAB_NODES": args.vms, "LAB_INSTANCES": args.instances,
            "LAB_LINKS": args.links, "LAB_RATE": args.rate, "LAB_LOSS": args.loss,
            "LAB_DELAY": args.delay, "LAB_MTU": args.mtu, "LAB_TIMEOUT": args.timeout,
            "LAB_MODULE": self.module or "", "LAB_MODULE_ARGS": args.module_args,
            "LAB_CWD": os.getcwd(), "LAB_PATH": search_path(),
            "LAB_DEBUG": int(self.kernel.debug), "LAB_SCAN": int(not args.no_leak_scan)}
        (folder / "config").write_text(quoted(settings))
        (folder / "command").write_text(exported(self.environment(node)) +
                                        f"exec {shlex.join(args.command)}\n")

    def shown_paths(self):
        """What the guest must see even where it has a tmpfs of its own."""
        show = {str(REPO), os.getcwd()}
        if self.module:
            show.add(str(self.module.parent))
        show |= {word for word in self.args.command if os.path.isabs(word) and os.path.exists(word)}
        return sorted(show)

    def environment(self, node):
        env = {k: v for k, v in os.environ.items() if k.startswith("HCOMM_")}
        env["LD_LIBRARY_PATH"] = str(BUILD / "lib")
        env["HCOMM_LAB_KERNEL"] = self.args.kernel
        if self.args.vms > 1:
            env |= {"HCOMM_NODE": node, "HCOMM_NODES": self.args.vms,
                    "HCOMM_ROOT": f"10.18.0.1:{ROOT_PORT}", "HCOMM_SECRET": self.secret}
        return env

    def pump(self):
        """Pass on what the machines say; True when time ran out."""
        with selectors.DefaultSelector() as selector:
            for machine in self.machines:
                for name, fd in machine.channels.items():
                    selector.register(fd, selectors.EVENT_READ, (machine.node, name, bytearray()))
            while selector.get_map():
                left = self.deadline - time.monotonic()
                if left <= 0:
                    return True
                for key, _ in selector.select(left):
                    data = os.read(key.fd, 1 << 16)
                    self.take(*key.data, data)
                    if not data:
                        selector.unregister(key.fd)
        return False

    def take(self, node, name, pending, data):
        if name == "out" and node == 0:
            write_all(1, data)
        elif name == "err" and self.args.vms == 1:
            write_all(2, data)
        else:
            pending += data
            end = len(pending) if not data else pending.rfind(b"\n") + 1
            for line in bytes(pending[:end]).splitlines():
                self.take_line(node, name, line)
            del pending[:end]

    def take_line(self, node, name, line):
        if name != "status":
            write_all(2, b"[%d] %s\n" % (node, line))
            return
        word, _, rest = line.decode("utf-8", "replace").partition(" ")
        if word == "exit":
            self.status[node] = int(rest)
        elif word == "booted":
            self.booted[node] = True
        elif word == "done":
            self.finished[node] = True
        elif word == "broken":
            self.broken.append(f"node {node}: {rest}")

    def verdict(self, timed_out):
        """What the command said counts first, then what the kernel said."""
        reports = self.check_logs()
        if timed_out:
            say(f"timed out after {self.args.timeout} s; kernel logs in {self.logs}")
            return EXIT_TIMEOUT
        for what in self.broken:
            say(what)
        dead = [n for n, ok in enumerate(self.finished) if not ok]
        if dead and not self.broken:
            say(f"node {dead[0]} ended before its time")
        failed = [s for s in self.status if s]
        if failed:
            return failed[0]
        if reports:
            return EXIT_REPORT
        if dead:
            say(f"kernel logs in {self.logs}")
            return EXIT_BROKEN
        return 0

    def check_logs(self):
        reports = False
        for node in range(len(self.machines)):
            log = self.logs / f"node{node}.log"
            lines = report.clean(log.read_bytes() if log.exists() else b"")
            hits = report.find(lines, self.args.allow)
            if hits:
                reports = True
                say(f"kernel report on node {node}, {log} line {hits[0] + 1}:")
                for line in report.describe(lines, hits):
                    print(f"lab:   {line}", file=sys.stderr)
        return reports


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]
