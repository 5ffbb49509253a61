"""Build the container image:  python -m dev.package.image [OPTIONS], called by dev/image, which names them.

It is an archive of OCI's image layout, with one index for all architectures. Debian's packages are unpacked,
without their scripts. Only the interpreter for amd64 runs: it compiles the Python files of both.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import struct
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dev.package import base, sbom
from dev.package.about import Release, release
from dev.package.check import demand_same, elsewhere
from dev.package.run import PROJECT, BuildError, run
from dev.package.tree import DOC, HOME

BILL = "usr/share/nfstuned/image.cdx.json"
LARGEST = 30_000_000
"""Of the image of one architecture, compressed."""
_PYTHON = "313"
_LOADERS = {"amd64": ("x86_64-linux-gnu", 0x0303), "arm64": ("aarch64-linux-gnu", 0x0A03)}
"""The folder of an architecture's libraries, and their flags in /etc/ld.so.cache (glibc's ldconfig.h)."""
LEFT_OUT = re.compile(
    r"(boot|home|media|mnt|opt|root|srv)$"
    r"|etc/(default|dpkg|issue|motd|profile|python3|skel|update-motd)"
    # Programs: the interpreter, nfstuned and ldconfig remain.
    r"|usr/(s?bin|games)/(?!nfstuned$|python3|ldconfig$)"
    r"|usr/share/(?!common-licenses|doc$|doc/[^/]+(/copyright)?$)"
    # Of glibc and OpenSSL: tools for other programs, and encodings, which Python has itself.
    r"|usr/lib/[^/]+/(audit|engines-3|gconv|lib(BrokenLocale|c_malloc|memusage|mvec|nsl|nss|pcprof|thread_db))"
    r"|usr/lib/(systemd|binfmt\.d|udev|nfstuned/(compile|python\.sh)$)"
    # Of Python: its tests and tools, and modules with a library that the image does not have.
    r"|usr/lib/python3\.13/(curses|dbm|ensurepip|idlelib|pydoc_data|sitecustomize|sqlite3|test|tkinter|turtle|venv|_pyrepl)"
    r"|usr/lib/python3\.13/lib-dynload/(_ctypes_test|_curses|_dbm|_sqlite3|_test|_uuid|_xx|readline|xx)"
    rf"|.*\.cpython-3(?!{_PYTHON[1:]}-)\d+-[^/]*\.so$"
)
CONFIG = {
    "Entrypoint": ["nfstuned"],
    "Cmd": ["daemon"],
    "Env": ["PATH=/usr/sbin:/usr/bin", "LANG=C.UTF-8"],
}
_Json = dict[str, object]
_MEDIA = "application/vnd.oci.image."
_NAME = "org.opencontainers.image."
_HEADER = struct.Struct("<20sIIB19x")
"""Of the linker's cache: name and version, the number of entries, the size of the strings, the byte order."""
_ENTRY = struct.Struct("<iIIIQ")
"""Flags, the places of name and path, and two fields for libraries of special processors."""


def main() -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="dev/image", description="Build the container image of the packages in dist/."
    )
    parser.add_argument("--revision", type=int, default=1, help="of the packages (default: 1)")
    parser.add_argument("--check", action="store_true", help="build twice, compare, and run it by podman")
    parser.add_argument(
        "--lock", action="store_true", help="pin Debian's newest packages instead of building"
    )
    wish = parser.parse_args()
    try:
        if wish.lock:
            base.renew()
            return 0
        what = release(wish.revision)
        made = build(what, PROJECT / "dist", labels := _labels(what))
        if wish.check:
            _check(made, what, labels)
    except BuildError as error:
        print(f"dev/image: {error}", file=sys.stderr)
        return 1
    return 0


def build(what: Release, into: Path, labels: Mapping[str, str]) -> list[Path]:
    """Build the archive and a bill of materials for each architecture; return them. Raises BuildError."""
    packages = base.parse(base.LOCK.read_text())
    blobs: dict[str, bytes] = {}
    manifests, bills = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for architecture in base.ARCHITECTURES:
            root = Path(folder) / architecture
            chosen = [package for package in packages if package.architecture == architecture]
            for deb in (*base.fetch(chosen), own(what, architecture, PROJECT / "dist")):
                run("dpkg-deb", "-x", deb, root)
            bill = sbom.with_base((root / DOC / "nfstuned.cdx.json").read_bytes(), chosen)
            _prepare(root, architecture, bill)
            _compile(root, Path(folder) / base.ARCHITECTURES[0])
            manifests.append(_manifest(blobs, architecture, layer(root, what.time), labels))
            bills[architecture] = bill
    index = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}index.v1+json",
        "manifests": manifests,
        "annotations": labels,
    }
    whole = _blob(blobs, "index.v1+json", _json(index))
    print(f"digest: {whole['digest']}", flush=True)
    named = whole | {"annotations": {f"{_NAME}ref.name": f"localhost/nfstuned:{what.version}"}}
    stem = f"nfstuned-{what.version}-image"
    files = {f"{stem}.tar": _archive(blobs, named, what.time)}
    files |= {f"{stem}-{architecture}.cdx.json": bill for architecture, bill in bills.items()}
    for name, data in files.items():
        (into / name).write_bytes(data)
    return [into / name for name in files]


def _check(made: Sequence[Path], what: Release, labels: Mapping[str, str]) -> None:
    """Build an image a second time, at another place, and run it by podman. Raises BuildError."""
    with tempfile.TemporaryDirectory() as folder, elsewhere(Path(folder) / "home"):
        demand_same(made, build(what, Path(folder), labels))
    as_root = () if os.geteuid() == 0 else ("sudo",)
    alone = ("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc")
    script = PROJECT / "dev/package/prove/image.sh"
    print(run(*as_root, *alone, "sh", script, made[0], what.version), end="")


def own(what: Release, architecture: str, folder: Path) -> Path:
    """Return nfstuned's own package. Raises BuildError where it is missing, or of another commit."""
    path = folder / replace(what, architecture=architecture).deb
    if not path.exists():
        raise BuildError(f"{path} is missing: run `sh dev/build` first")
    # The first header of an ar archive: eight bytes of the format, then a name of 16 and a time of 12.
    with path.open("rb") as file:
        time = file.read(36)[24:].decode(errors="replace").strip()
    if time != str(what.time):
        raise BuildError(f"{path} is not of this commit, but of the time {time}: run `sh dev/build` first")
    return path


def _labels(what: Release) -> dict[str, str]:
    """Return the labels of the image. Without SITE_REPOSITORY there is no source."""
    known = {
        "title": "nfstuned",
        "description": "Keeps NFS clients on Linux at the speed that their server can give",
        "version": what.version,
        "licenses": "Apache-2.0",
        "revision": run("git", "rev-parse", "HEAD").strip(),
        "source": os.environ.get("SITE_REPOSITORY", ""),
        "created": dt.datetime.fromtimestamp(what.time, dt.timezone.utc).isoformat(),
    }
    return {f"{_NAME}{key}": value for key, value in sorted(known.items()) if value}


def _prepare(root: Path, architecture: str, bill: bytes) -> None:
    """Take unused files from a root, and add the command, the linker's cache and the bill."""
    for folder, folders, files in os.walk(root, topdown=False):
        for name in (*files, *folders):
            path = Path(folder) / name
            if LEFT_OUT.match(str(path.relative_to(root))):
                _remove(path)
    script = root / HOME / "__main__.py"
    script.write_bytes(b"#!/usr/bin/python3 -sE\n" + script.read_bytes())
    script.chmod(0o755)
    command = root / "usr/bin/nfstuned"
    command.unlink()
    command.symlink_to("../lib/nfstuned/__main__.py")
    triplet, flags = _LOADERS[architecture]
    names = [path.name for path in (root / "usr/lib" / triplet).glob("lib*.so.*")]
    libraries = {name: f"/usr/lib/{triplet}/{name}" for name in names if re.search(r"\.so\.\d+$", name)}
    (root / "etc/ld.so.cache").write_bytes(linker_cache(libraries, flags))
    # The default of glibc asks DNS first.
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    (root / BILL).parent.mkdir(parents=True)
    (root / BILL).write_bytes(bill)


def linker_cache(libraries: Mapping[str, str], flags: int) -> bytes:
    """Return /etc/ld.so.cache with libraries and their paths (glibc's elf/cache.c, format 1.1).

    pyudev asks `ldconfig -p` for libudev. ldconfig writes no entry for a library of another machine.
    """
    entries, strings = b"", b""
    start = _HEADER.size + _ENTRY.size * len(libraries)
    for name in sorted(libraries, key=rank, reverse=True):
        places = []
        for text in (name, libraries[name]):
            places.append(start + len(strings))
            strings += text.encode() + b"\0"
        entries += _ENTRY.pack(flags, *places, 0, 0)
    little_endian = 2
    header = _HEADER.pack(b"glibc-ld.so.cache1.1", len(libraries), len(strings), little_endian)
    return header + entries + strings


def rank(name: str) -> list[tuple[int, int]]:
    """Return the linker's order of names: a number is one character, after all others."""
    parts = re.findall(r"\d+|\D", name)
    return [(1, int(part)) if part.isdigit() else (0, ord(part)) for part in parts]


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _compile(root: Path, native: Path) -> None:
    """Compile Python files by the interpreter of the native root: a read-only root takes none later."""
    libraries = native / "usr/lib" / _LOADERS[base.ARCHITECTURES[0]][0]
    (loader,) = libraries.glob("ld-linux-*")
    # The packages leave out the same modules.
    script = PROJECT / "dev/package/files/compile"
    unused = run("sh", "-c", 'eval "$(grep ^unused= "$0")" && printf %s "$unused"', script)
    python = (loader, "--library-path", libraries, native / "usr/bin/python3.13", "-sSB")
    options = ("-q", "-s", root, "-p", "/", "-x", unused, "--invalidation-mode", "unchecked-hash")
    # The order of a set of names depends on their hashes.
    fixed = {"PYTHONHOME": str(native / "usr"), "PYTHONHASHSEED": "0"}
    run(*python, "-m", "compileall", *options, root / "usr/lib", env=fixed)


def layer(root: Path, time: int) -> bytes:
    """Return a root as tar, the same bytes each time: sorted, of root, with one time and plain modes."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = time
        sticky = member.mode & 0o1000 and 0o1777
        member.mode = sticky or (0o755 if member.isdir() or member.mode & 0o100 else 0o644)
        return member

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(root, ".", filter=plain)
    return packed.getvalue()


def _manifest(blobs: dict[str, bytes], architecture: str, layer: bytes, labels: Mapping[str, str]) -> _Json:
    """Add an image to the blobs; return its descriptor. Raises BuildError for a large image."""
    packed = gzip.compress(layer, 9, mtime=0)
    print(f"{architecture}: {len(packed)} bytes, {len(layer)} unpacked", flush=True)
    if len(packed) > LARGEST:
        raise BuildError(f"the image for {architecture} has {len(packed)} bytes, more than {LARGEST}")
    created = labels[f"{_NAME}created"]
    platform = {"architecture": architecture, "os": "linux"}
    config: _Json = {
        **platform,
        "created": created,
        "config": CONFIG | {"Labels": labels},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
        "history": [{"created": created, "created_by": "sh dev/image"}],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}manifest.v1+json",
        "config": _blob(blobs, "config.v1+json", _json(config)),
        "layers": [_blob(blobs, "layer.v1.tar+gzip", packed)],
        "annotations": labels,
    }
    return _blob(blobs, "manifest.v1+json", _json(manifest)) | {"platform": platform}


def _blob(blobs: dict[str, bytes], kind: str, data: bytes) -> _Json:
    digest = _digest(data)
    blobs[digest] = data
    return {"mediaType": f"{_MEDIA}{kind}", "digest": digest, "size": len(data)}


def _archive(blobs: Mapping[str, bytes], index: _Json, time: int) -> bytes:
    """Return OCI's image layout as tar."""
    files = {f"blobs/{digest.replace(':', '/')}": data for digest, data in blobs.items()}
    files["index.json"] = _json({"schemaVersion": 2, "manifests": [index]})
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(data), time
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(value: _Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


if __name__ == "__main__":
    sys.exit(main())
