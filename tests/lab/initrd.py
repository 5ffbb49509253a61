"""The initrd of a lab kernel: busybox, the modules to reach the root disk, and a short init."""

from __future__ import annotations

import lzma
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.lab import recipe


def write(root: Path, release: str, target: Path) -> None:
    """Write the initrd for one kernel of `root`, in which depmod has already run for it."""
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
