"""The lab's image: one Debian userland and several Debian kernels, built from packages and cached.

`python -m tests.lab.image` builds the missing parts. Building needs root; without it, sudo is asked.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import lzma
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.lab import apt, package, recipe

Say = Callable[[str], None]


_PROJECT = Path(__file__).parents[2]
_UNUSED_DAYS = 14


class NoKernelError(Exception):
    """A name fits none of the image's kernels."""


def folder() -> Path:
    """Return where the image of the present recipe is, or would be."""
    return recipe.cache() / recipe.key()


def disk() -> Path:
    """Return the guest's root disk. Guests never write to it."""
    return folder() / "lab.img"


def emulator() -> tuple[str, ...]:
    """Return the emulator and where its firmware is: the machine's own QEMU, or the one next to the image."""
    own = _emulator_folder(folder())
    if not own.exists():
        return ("qemu-system-x86_64",)
    firmware = (str(own / f"usr/share/{name}") for name in ("qemu", "seabios"))
    return (str(own / "usr/bin/qemu-system-x86_64"), *(part for path in firmware for part in ("-L", path)))


def _emulator_folder(image: Path) -> Path:
    """Its libraries are the machine's: another release needs another one."""
    return image / f"emulator-{apt.host()}"


def kernels() -> tuple[str, ...]:
    """Return the releases of the built kernels, oldest first; none before the first build."""
    names = (p.name.removeprefix("vmlinuz-") for p in (folder() / "boot").glob("vmlinuz-*"))
    return tuple(sorted(names, key=apt.version))


def release(name: str) -> str:
    """Return the kernel that a series (`last-6`) or the start of a release (`6.17`) means."""
    prefix = next((s.prefix for s in recipe.SERIES if s.name == name), name)
    fitting = [k for k in kernels() if k.startswith(prefix)]
    if not fitting:
        raise NoKernelError(
            f"no kernel {name!r}; there are {', '.join(kernels()) or 'none: build the image first'}"
        )
    return fitting[-1]


def ensure(say: Say) -> None:
    """Build the image unless it exists. `say` receives progress, one line at a time."""
    if disk().exists():
        os.utime(folder())  # as a sign that it is used
        return
    recipe.cache().mkdir(parents=True, exist_ok=True)
    if os.geteuid() != 0:
        _ensure_as_root(say)
        return
    with _lock(say):
        if not disk().exists():
            _build(say)
            _forget_unused()


def _ensure_as_root(say: Say) -> None:
    package.fetched()  # else the files would be root's
    say("building the image needs root: asking sudo")
    kept = {name: value for name, value in os.environ.items() if name == "NFSTUNED_LAB_MIRROR"}
    kept |= {"NFSTUNED_LAB_CACHE": str(recipe.cache()), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = [f"{name}={value}" for name, value in kept.items()]
    argv = ["sudo", "env", *environment, sys.executable, "-m", "tests.lab.image"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=_PROJECT
    ) as child:
        for line in child.stdout or ():
            say(line.rstrip())
    if child.returncode:
        raise RuntimeError(f"building the image failed with {child.returncode}")


@contextlib.contextmanager
def _lock(say: Say) -> Iterator[None]:
    with (recipe.cache() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another build is under way: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(say: Say) -> None:
    work = recipe.cache() / "building"
    shutil.rmtree(work, ignore_errors=True)
    (work / "boot").mkdir(parents=True)
    started = time.monotonic()

    def step(text: str) -> None:
        say(f"{time.monotonic() - started:4.0f} s  {text}")

    step("reading the package lists")
    index = apt.Index(recipe.cache() / "apt")
    picked = {series.name: index.newest_kernel(series) for series in recipe.SERIES}
    step(f"installing Debian {recipe.USERLAND} with {len(recipe.PACKAGES)} packages (the longest step)")
    root = work / "root"
    apt.bootstrap(recipe.USERLAND, recipe.PACKAGES, root, "--format=directory")
    for kernel in picked.values():
        step(f"adding {kernel.release}")
        _add_kernel(index, kernel, work)
    if suite := recipe.EMULATORS.get(apt.host()):
        step(f"adding the emulator of {suite}")
        index.unpack(tuple(f"{name}/{suite}" for name in recipe.EMULATOR), _emulator_folder(work))
    step("compiling the package's libraries")
    package.precompile(root)
    _furnish(root)
    step("writing the disk")
    image = work / "lab.img"
    apt.run("truncate", "-s", recipe.IMAGE_SIZE, str(image))
    apt.run("mke2fs", "-q", "-t", "ext4", "-d", str(root), "-F", str(image))
    shutil.rmtree(root)
    shutil.rmtree(folder(), ignore_errors=True)
    owner = recipe.cache().stat()
    os.chown(work, owner.st_uid, owner.st_gid)
    work.rename(folder())
    step(f"done: {folder()}")


def _add_kernel(index: apt.Index, kernel: apt.Kernel, work: Path) -> None:
    """Put one kernel's modules into the root and its image and initrd next to it; nothing is configured."""
    unpacked = work / "kernel"
    index.unpack(kernel.packages, unpacked)
    modules = next(p for p in unpacked.glob("**/lib/modules/*") if p.name == kernel.release)
    vmlinuz = next(
        p for p in (unpacked / f"boot/vmlinuz-{kernel.release}", modules / "vmlinuz") if p.exists()
    )
    shutil.copy(vmlinuz, work / "boot")
    (work / "boot" / vmlinuz.name).rename(work / f"boot/vmlinuz-{kernel.release}")
    root = work / "root"
    shutil.copytree(modules, root / "usr/lib/modules" / kernel.release, symlinks=True)
    apt.run("depmod", "-b", str(root), kernel.release)
    _write_initrd(root, kernel.release, work / f"boot/initrd-{kernel.release}")
    shutil.rmtree(unpacked)


def _write_initrd(root: Path, release: str, target: Path) -> None:
    """Write an initrd: busybox, the modules of the root disk, and a short init. Needs the work of depmod."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("bin", "proc", "sys", "dev", "mnt", "modules"):
            (tree / name).mkdir()
        shutil.copy("/bin/busybox", tree / "bin/busybox")
        names = []
        for number, module in enumerate(_needed(root, release)):
            # insmod of busybox reads plain files only, and the order of loading is the order of the names.
            names.append(f"/modules/{number:02}.ko")
            (tree / names[-1][1:]).write_bytes(_plain(module))
        (tree / "load").write_text("".join(f"{name}\n" for name in names))
        (tree / "init").write_text(recipe.INIT)
        (tree / "init").chmod(0o755)
        pack = f"find . | cpio -o -H newc --quiet | gzip -1 > '{target}'"
        subprocess.run(["sh", "-c", pack], check=True, cwd=tree)


def _needed(root: Path, release: str) -> list[Path]:
    needed: list[Path] = []
    for module in recipe.BOOT_MODULES:
        argv = ["modprobe", "-d", str(root), "-S", release, "--show-depends", module]
        shown = subprocess.run(argv, check=False, capture_output=True, text=True).stdout
        for word, *rest in map(str.split, shown.splitlines()):
            if word == "insmod" and Path(rest[0]) not in needed:
                needed.append(Path(rest[0]))
    return needed


def _plain(module: Path) -> bytes:
    if module.suffix == ".xz":
        return lzma.decompress(module.read_bytes())
    if module.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", str(module)], check=True, capture_output=True).stdout
    return module.read_bytes()


def _furnish(root: Path) -> None:
    """Make the guest boot straight into the payload, with a root account that needs no password."""
    units = root / "etc/systemd/system"
    (units / "lab.service").write_text(recipe.SERVICE)
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "lab.service").symlink_to("../lab.service")
    for unit in recipe.MASKED:
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    for unit in recipe.DISABLED:
        for wanted in units.glob("*.wants"):
            (wanted / unit).unlink(missing_ok=True)
    (root / "lab").mkdir()
    # Else each installation of a package with a manual reads all manuals again.
    (root / "var/lib/man-db/auto-update").unlink()
    # Without an identity this would be a first boot, which enables every unit that a preset names.
    (root / "etc/machine-id").write_text(f"{secrets.token_hex(16)}\n")
    (root / "etc/hostname").write_text("lab\n")
    passwd = root / "etc/passwd"
    passwd.write_text(re.sub(r"^root:[^:]*:", "root::", passwd.read_text(), flags=re.MULTILINE))


def _forget_unused() -> None:
    """Remove the images of recipes that no boot has used for two weeks: each is a gigabyte."""
    for image in recipe.cache().glob("*/lab.img"):
        if time.time() - image.parent.stat().st_mtime > _UNUSED_DAYS * 86400:
            shutil.rmtree(image.parent)


if __name__ == "__main__":
    ensure(functools.partial(print, flush=True))
