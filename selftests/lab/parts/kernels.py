# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which kernel a name stands for: 6.1 and 6.12 are the newest installed ones
of the distribution, debug is the one that build-kernel leaves in the cache.
Any installed release may be named in full, too."""

import dataclasses
import pathlib
import re

from . import buildkernel
from .host import LabError

NAMES = ("6.1", "6.12", "debug")


@dataclasses.dataclass
class Kernel:
    name: str
    release: str
    image: pathlib.Path
    headers: pathlib.Path
    debug: bool


def version_key(release):
    return [int(n) for n in re.findall(r"\d+", release)]


def installed():
    """Releases with an image, oldest first."""
    found = [p.name[len("vmlinuz-"):] for p in pathlib.Path("/boot").glob("vmlinuz-*")]
    return sorted(found, key=version_key)


def stock(name):
    have = installed()
    match = [r for r in have if r == name or re.match(re.escape(name) + r"[.-]", r)]
    if not match:
        raise LabError(f"no kernel {name} in /boot: name {', '.join(NAMES)} or a full release; "
                       f"installed: {', '.join(have) or 'none'}; "
                       "selftests/lab/setup installs 6.1 and 6.12")
    release = match[-1]
    return Kernel(name, release, pathlib.Path("/boot") / f"vmlinuz-{release}",
                  pathlib.Path("/lib/modules") / release / "build", False)


def find(name):
    if name != "debug":
        return stock(name)
    tree = buildkernel.tree()
    if not buildkernel.is_done(tree):
        raise LabError("the debug kernel is not built: run selftests/lab/lab build-kernel debug")
    return Kernel(name, buildkernel.release(tree), tree / "arch/x86/boot/bzImage", tree, True)


def headers(name):
    """What modules for a kernel are built against."""
    kernel = find(name)
    if not kernel.headers.exists():
        raise LabError(f"no headers of kernel {kernel.release}, {kernel.headers} is missing: "
                       f"install linux-headers-{kernel.release} or run selftests/lab/setup")
    return kernel.headers
