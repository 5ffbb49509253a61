"""What packages of any format install: nfstuned, its libraries, the launcher, what systemd and man read."""

from __future__ import annotations

import gzip
import os
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dev.package.run import PROJECT
from nfstuned.model.change import FILES

HOME = "usr/lib/nfstuned"
DOC = "usr/share/doc/nfstuned"
_OWN = PROJECT / "dev/package/files"
DOCUMENTS = {
    "README.md": "README.md",
    "docs/guide.md": "guide.md",
    "docs/install.md": "install.md",
    "docs/json.md": "json.md",
    "docs/samples.md": "samples.md",
    "docs/api.md": "api.md",
    "docs/architecture.md": "architecture.md",
    "docs/decisions.md": "decisions.md",
    "docs/kernel-facts.md": "kernel-facts.md",
    "udev/99-nfstuned.rules": "examples/99-nfstuned.rules",
}
_FOR_PIP = "nfstuned/data/install/"
"""What `nfstuned install-files` installs; a package has done it already."""


@dataclass(frozen=True, slots=True)
class File:
    """A file of a package, which belongs to root."""

    data: bytes
    executable: bool = False

    @property
    def mode(self) -> int:
        """Its permissions."""
        return 0o755 if self.executable else 0o644


Tree = Mapping[str, File]
"""Files by their path below /."""


def tree(wheel: Path, libraries: Mapping[str, bytes]) -> dict[str, File]:
    """Return what every package has: the project's wheel unpacked, and the files of its libraries."""
    files = {f"{HOME}/vendor/{path}": File(data) for path, data in libraries.items()}
    files |= {f"{HOME}/{path}": File(data) for path, data in _unpacked(wheel)}
    files["usr/bin/nfstuned"] = File((_OWN / "nfstuned").read_bytes(), executable=True)
    files[f"{HOME}/compile"] = File((_OWN / "compile").read_bytes(), executable=True)
    files |= {f"{HOME}/{name}": File((_OWN / name).read_bytes()) for name in ("__main__.py", "python.sh")}
    for source, place in FILES.items():
        data = (PROJECT / source).read_bytes()
        packed = place.startswith("share/man/")
        files[f"usr/{place}{'.gz' if packed else ''}"] = File(compressed(data) if packed else data)
    for source, place in DOCUMENTS.items():
        files[f"{DOC}/{place}"] = File((PROJECT / source).read_bytes())
    return files


def compressed(data: bytes) -> bytes:
    """Return a text as gzip -9n makes it: the same bytes each time."""
    return gzip.compress(data, 9, mtime=0)


def folders(paths: Iterable[str]) -> list[str]:
    """Return all folders that files are in, each after the one that it is in."""
    found = {path.rpartition("/")[0] for path in paths}
    for path in list(found):
        parts = path.split("/")
        found.update("/".join(parts[:count]) for count in range(1, len(parts)))
    return sorted(found - {""})


def write(files: Tree, folder: Path, time: int) -> None:
    """Write the files below an empty folder, all with one time (seconds since 1970)."""
    for name in folders(files):
        (folder / name).mkdir(mode=0o755)
    for name, file in files.items():
        path = folder / name
        path.write_bytes(file.data)
        path.chmod(file.mode)
        os.utime(path, (time, time))
    for name in reversed(folders(files)):
        (folder / name).chmod(0o755)
        os.utime(folder / name, (time, time))
    folder.chmod(0o755)
    os.utime(folder, (time, time))


def _unpacked(wheel: Path) -> Iterable[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename
            ours = name.startswith("nfstuned/") and not name.startswith(_FOR_PIP)
            if ours and not member.is_dir():
                yield name, archive.read(member)
