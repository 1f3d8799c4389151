# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Folders and locks of the machine the lab runs on."""

import contextlib
import fcntl
import os
import pathlib
import shutil

LAB = pathlib.Path(__file__).resolve().parent.parent
REPO = LAB.parent.parent
BUILD = REPO / "build"


class LabError(Exception):
    """The lab cannot do what was asked; the text says what to do about it."""


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    path = pathlib.Path(base) / "hcomm"
    path.mkdir(parents=True, exist_ok=True)
    return path


def need_program(name):
    path = shutil.which(name)
    if not path:
        raise LabError(f"{name} is not installed: run selftests/lab/setup")
    return path


@contextlib.contextmanager
def locked(path):
    """Hold an exclusive lock on path; it ends with the process at the latest."""
    with open(path, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
