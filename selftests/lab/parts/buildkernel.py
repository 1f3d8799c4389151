# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The debug kernel: linux-source-6.12 as tinyconfig plus debug.config.

The whole build tree stays in the cache, because modules are built against it.
Its name holds the source package's version and a digest of the options, so a
change of either is a new tree. A tree counts only once its stamp is written:
an interrupted build goes on where it stopped.
"""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess

from .host import LAB, LabError, cache_dir, locked

SOURCE = pathlib.Path("/usr/src/linux-source-6.12.tar.xz")
PACKAGE = "linux-source-6.12"
FRAGMENT = LAB / "debug.config"
STAMP = "hcomm-build-done"
OPTION = re.compile(r"^(# )?(CONFIG_\w+)( is not set|=.*)$")


def options():
    return [line for line in FRAGMENT.read_text().splitlines() if OPTION.match(line)]


def source_version():
    query = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE],
                           capture_output=True, text=True, check=False)
    if query.returncode or not SOURCE.exists():
        raise LabError(f"{PACKAGE} is not installed: run selftests/lab/setup")
    return query.stdout.strip()


def tree():
    digest = hashlib.sha256("\n".join(sorted(options())).encode()).hexdigest()[:12]
    return cache_dir() / f"linux-{source_version()}-debug-{digest}"


def is_done(path):
    return (path / STAMP).exists()


def release(path):
    return (path / "include/config/kernel.release").read_text().strip()


def make(path, *targets):
    command = ["nice", "-n", "10", "make", "-s", f"-j{os.cpu_count()}", *targets]
    if subprocess.run(command, cwd=path, check=False).returncode:
        raise LabError(f"make {' '.join(targets)} failed in {path}")


def unpack(path):
    part = path.with_name(path.name + ".unpack")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    subprocess.run(["tar", "-xf", SOURCE, "-C", part, "--strip-components=1"], check=True)
    part.rename(path)


def configure(path):
    """olddefconfig drops what it cannot satisfy without a word: look again."""
    make(path, "tinyconfig")
    config = path / ".config"
    ours = {symbol(line) for line in options()}
    kept = [line for line in config.read_text().splitlines() if symbol(line) not in ours]
    config.write_text("\n".join(kept + options()) + "\n")
    make(path, "olddefconfig")
    got = set((path / ".config").read_text().splitlines())
    lost = [line for line in options() if not satisfied(line, got)]
    if lost:
        raise LabError("the kernel's configuration lost: " + ", ".join(lost))


def symbol(line):
    """CONFIG_X of "CONFIG_X=y" and of "# CONFIG_X is not set"."""
    match = OPTION.match(line)
    return match[2] if match else None


def satisfied(line, got):
    """A symbol that is not even offered is as good as one that is not set."""
    if line in got:
        return True
    return line.startswith("#") and not any(symbol(have) == symbol(line) for have in got)


def build():
    """Build unless done already, and say where it is."""
    path = tree()
    with locked(cache_dir() / "build-kernel.lock"):
        if is_done(path):
            return path
        if not path.exists():
            unpack(path)
        configure(path)
        make(path, "bzImage", "modules")
        (path / STAMP).touch()
    return path
