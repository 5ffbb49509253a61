"""The package for Debian and Ubuntu, packed by dpkg-deb."""

from __future__ import annotations

import hashlib
import tempfile
import textwrap
from collections.abc import Iterable, Sequence
from email.utils import formatdate
from pathlib import Path
from string import Template

from dev.package.about import MAINTAINER, Release
from dev.package.run import PROJECT, run
from dev.package.tree import DOC, HOME, File, Tree, compressed, write
from dev.package.wheels import Library

_OWN = PROJECT / "dev/package/deb"
_SCRIPTS = ("postinst", "prerm", "postrm")
_MOVED = {"usr/share/zsh/site-functions/_nfstuned": "usr/share/zsh/vendor-completions/_nfstuned"}
"""Debian's zsh looks elsewhere."""
_COMMON = {"Apache-2.0": "Apache-2.0", "LGPL-2.1-or-later": "LGPL-2.1"}
"""Licences that every Debian system has in /usr/share/common-licenses."""
_FORMAT = "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
SMALL = ("-Zxz", "-z6", "--threads-max=1")
"""Level 6 finds what five compiled libraries have in common; more only takes memory where it is installed."""
QUICK = ("-Zzstd", "-z3")
"""For whoever packs after each change and unpacks in emulation: a 40th of the time, and twice the size."""


def build(
    common: Tree, libraries: Iterable[Library], release: Release, into: Path, packing: Sequence[str] = SMALL
) -> Path:
    """Write the package into a folder and return its path; the same bytes each time. Raises BuildError."""
    target = into / release.deb
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        root.mkdir()
        write(files(common, libraries, release), root, release.time)
        epoch = {"SOURCE_DATE_EPOCH": str(release.time)}
        run("dpkg-deb", "--root-owner-group", *packing, "--build", root, target, env=epoch)
    return target


def files(common: Tree, libraries: Iterable[Library], release: Release) -> dict[str, File]:
    """Return what is in the package, control files included."""
    tree = {_MOVED.get(path, path): file for path, file in common.items()}
    tree["usr/share/python3/runtime.d/nfstuned.rtupdate"] = File(_own("rtupdate"), executable=True)
    tree["usr/share/lintian/overrides/nfstuned"] = File(_own("lintian-overrides"))
    tree[f"{DOC}/copyright"] = File(copyright_file(libraries).encode())
    tree[f"{DOC}/changelog.gz"] = File(compressed((PROJECT / "CHANGELOG.md").read_bytes()))
    tree[f"{DOC}/changelog.Debian.gz"] = File(compressed(_changelog(release).encode()))
    control = {f"DEBIAN/{name}": File(_own(name), executable=True) for name in _SCRIPTS}
    control["DEBIAN/md5sums"] = File(_sums(tree).encode())
    control["DEBIAN/control"] = File(_control(tree, release).encode())
    return tree | control


def copyright_file(libraries: Iterable[Library]) -> str:
    """Return whose work is in the package, in Debian's machine-readable format (DEP-5)."""
    parts = [
        f"Format: {_FORMAT}\nUpstream-Name: nfstuned\n",
        _stanza("*", ("the contributors of nfstuned",), "Apache-2.0", ""),
    ]
    for library in libraries:
        places = " ".join(f"{HOME}/vendor/{_all_of(name)}" for name in library.folders)
        comment = f"Comment: {library.name} {library.version}, {library.source}\n"
        text = "" if library.license in _COMMON else "\n".join(text for _, text in library.texts)
        parts.append(_stanza(places, library.authors, library.license, text) + comment)
    return "\n".join(parts)


def _stanza(places: str, holders: Iterable[str], terms: str, text: str) -> str:
    said = text or f"See /usr/share/common-licenses/{_COMMON[terms]}, which every Debian system has."
    lines = [f" {line.rstrip() or '.'}" for line in said.strip().splitlines()]
    indented = "\n           ".join(holders)
    return f"Files: {places}\nCopyright: {indented}\nLicense: {terms}\n" + "\n".join(lines) + "\n"


def _all_of(name: str) -> str:
    return name if name.endswith(".py") else f"{name}/*"


def _own(name: str) -> bytes:
    return (_OWN / name).read_bytes()


def _sums(tree: Tree) -> str:
    return "".join(
        f"{hashlib.md5(file.data, usedforsecurity=False).hexdigest()}  {path}\n"
        for path, file in sorted(tree.items())
    )


def _control(tree: Tree, release: Release) -> str:
    size = sum(-(-len(file.data) // 1024) for file in tree.values())
    text = Template(_own("control").decode())
    return text.substitute(
        version=release.full, architecture=release.architecture, maintainer=MAINTAINER, size=size
    )


def _changelog(release: Release) -> str:
    return textwrap.dedent(f"""\
        nfstuned ({release.full}) stable; urgency=medium

          * What changed in nfstuned is in changelog.gz.

         -- {MAINTAINER}  {formatdate(release.time)}
    """)
