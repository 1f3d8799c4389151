# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The first file system of a guest: busybox, init and the few modules that it
takes to mount the host's root. One per kernel release, kept in the cache."""

import gzip
import hashlib
import lzma
import os
import pathlib
import shutil
import subprocess
import tempfile

from .host import LAB, cache_dir, locked, need_program

INIT = LAB / "init"
MODULES = ("virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p")
BUSYBOX = pathlib.Path("/bin/busybox")


def module_files(release):
    """What insmod takes, in order, to have all of MODULES."""
    files = []
    for name in MODULES:
        query = subprocess.run([need_program("modprobe"), "-S", release, "--show-depends", name],
                               capture_output=True, text=True, check=True)
        for line in query.stdout.splitlines():
            verb, path = line.split()[:2]
            if verb == "insmod" and path not in files:
                files.append(path)
    return [pathlib.Path(f) for f in files]


def plain_module(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def digest(files):
    what = hashlib.sha256(INIT.read_bytes())
    for path in [BUSYBOX, *files]:
        stat = path.stat()
        what.update(f"{path} {stat.st_size} {stat.st_mtime_ns}\n".encode())
    return what.hexdigest()[:12]


def fill(root, files):
    for folder in ("bin", "dev", "host", "modules", "newroot", "proc", "sys"):
        (root / folder).mkdir()
    shutil.copy(BUSYBOX, root / "bin/busybox")
    shutil.copy(INIT, root / "init")
    os.chmod(root / "init", 0o755)
    for number, path in enumerate(files):
        name = path.name.removesuffix(".xz")
        (root / "modules" / f"{number:02d}-{name}").write_bytes(plain_module(path))


def pack(root, image):
    names = sorted(str(p.relative_to(root)) for p in root.rglob("*"))
    packed = subprocess.run([need_program("cpio"), "--quiet", "-o", "-H", "newc"], cwd=root,
                            input="\n".join(names).encode(), capture_output=True, check=True)
    part = image.with_suffix(".part")
    part.write_bytes(gzip.compress(packed.stdout, compresslevel=1))
    part.rename(image)


def get(kernel):
    files = [] if kernel.debug else module_files(kernel.release)
    image = cache_dir() / f"initramfs-{kernel.release}-{digest(files)}.gz"
    with locked(cache_dir() / "initramfs.lock"):
        if not image.exists():
            for old in cache_dir().glob(f"initramfs-{kernel.release}-*"):
                old.unlink()
            with tempfile.TemporaryDirectory() as folder:
                fill(pathlib.Path(folder), files)
                pack(pathlib.Path(folder), image)
    return image
