# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One qemu: its command line, its channels to the host, its end."""

import ctypes
import os
import signal
import subprocess

from .host import need_program

CHANNELS = ("out", "err", "status")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)

# la57=off: with five-level paging an early interrupt makes KASAN report a wild
# access in some boots, which takes lockdep away for the rest of the run.
CPU = "max,la57=off"
KERNEL_LINE = ("console=ttyS0 loglevel=7 panic=-1 oops=panic mitigations=off tsc=reliable "
               "printk.devkmsg=on rcupdate.rcu_cpu_stall_timeout=60 net.ifnames=0 ")
DEBUG_LINE = "kasan_multi_shot slub_debug=- "


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


class Machine:
    """Starts at once. channels maps out, err and status to readable ends that
    are at end of file when qemu is gone."""

    def __init__(self, node, kernel, initramfs, run_dir, console, cards, args):
        self.node = node
        self.console = console
        self.channels = {}
        give = [end.fileno() for end, _ in cards]
        mine = []
        command = self.base(kernel, initramfs, run_dir, args)
        for number, name in enumerate(CHANNELS):
            read, write = os.pipe()
            self.channels[name] = read
            mine.append(write)
            command += self.channel(name, number, write)
        for number, (end, mac) in enumerate(cards):
            command += self.card(number, end.fileno(), mac)
        self.qemu = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=give + mine,
            start_new_session=True, preexec_fn=die_with_parent)
        for fd in mine:
            os.close(fd)

    def base(self, kernel, initramfs, run_dir, args):
        line = KERNEL_LINE + (DEBUG_LINE if kernel.debug else "") + args.append
        return [
            need_program("qemu-system-x86_64"), "-nodefaults", "-no-reboot", "-display", "none",
            "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", CPU,
            "-smp", str(args.cpus), "-m", args.memory, "-nic", "none",
            "-kernel", str(kernel.image), "-initrd", str(initramfs),
            "-append", f"{line} hcomm.run={run_dir}",
            "-chardev", f"file,id=console,path={self.console}", "-serial", "chardev:console",
            "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,"
                       "multidevs=remap",
            "-device", "virtio-serial-pci"]

    @staticmethod
    def channel(name, number, fd):
        return ["-add-fd", f"fd={fd},set={number}",
                "-chardev", f"file,id={name},path=/dev/fdset/{number},append=on",
                "-device", f"virtserialport,chardev={name},name={name}"]

    @staticmethod
    def card(number, fd, mac):
        return ["-netdev", f"socket,id=card{number},fd={fd}",
                "-device", f"virtio-net-pci,netdev=card{number},mac={mac},host_mtu=9000,romfile="]

    def kill(self):
        self.qemu.kill()
        self.qemu.wait()
        for fd in self.channels.values():
            os.close(fd)
        self.channels = {}
