"""Wheels unpacked into one folder of libraries, which several versions of Python share.

That works because the name of a compiled file says for which Python it is (`.cpython-311-x86_64-linux-gnu.so`
or `.abi3.so`), and everything else is the same in each wheel of a library.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

from dev.package.run import BuildError

_KEPT_OF_METADATA = "METADATA"
"""What scanners for vulnerable libraries look for. The rest is for installers of Python packages."""
_LICENCE = re.compile(r"(licenses/)?(LICEN[CS]E|COPYING|AUTHORS|NOTICE)[^/]*$", re.IGNORECASE)
_ELF = {"x86_64": (62).to_bytes(2, "little"), "aarch64": (183).to_bytes(2, "little")}
"""The field e_machine of an ELF file's header, elf(5), for a machine."""
_SINGLE_PYTHON = re.compile(r"\.cpython-3\d+-[^/]*\.so$|\.abi3\.so$")


@dataclass(frozen=True, slots=True)
class Library:
    """One library: who made it, and under which terms it is passed on."""

    name: str
    version: str
    license: str
    """An SPDX expression."""
    authors: tuple[str, ...]
    source: str
    """Its home page."""
    texts: tuple[tuple[str, str], ...]
    """Its licence files: the name of each, and what it says."""
    folders: tuple[str, ...]
    """What it has at the top of the folder of libraries."""


def unpack(wheels: Iterable[Path]) -> dict[str, bytes]:
    """Return the files of all wheels by their path. Raises BuildError for what cannot share a folder."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        for path, data in _members(wheel):
            if ".data/" in path:
                raise BuildError(f"{wheel.name}: {path} belongs outside of the folder of libraries")
            if path.endswith(".so") and not _SINGLE_PYTHON.search(path):
                raise BuildError(f"{wheel.name}: the name of {path} does not say for which Python it is")
            if files.setdefault(path, data) != data:
                raise BuildError(f"{wheel.name}: another wheel has another {path}")
    return files


def demand_machine(files: Mapping[str, bytes], machine: str) -> None:
    """Raise BuildError for a file, whatever its name, that is compiled for another machine."""
    for path, data in files.items():
        if data.startswith(b"\x7fELF") and data[18:20] != _ELF[machine]:
            raise BuildError(
                f"{path} is compiled for a machine with the number {data[18]}, not for {machine}"
            )


def libraries(wheels: Iterable[Path]) -> tuple[Library, ...]:
    """Return whose work the wheels are, each library once. Raises BuildError where no licence is found."""
    found: dict[str, Library] = {}
    for wheel in wheels:
        library = _library(wheel)
        found.setdefault(library.name, library)
    return tuple(found[name] for name in sorted(found))


def _members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of a wheel that are of use once it is unpacked."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            _, _, rest = member.filename.partition(".dist-info/")
            if member.is_dir() or (rest and rest != _KEPT_OF_METADATA):
                continue
            yield member.filename, archive.read(member)


def _library(wheel: Path) -> Library:
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        about = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(about).decode())
        folder = about.removesuffix("METADATA")
        texts = tuple(
            (name.rpartition("/")[2], archive.read(name).decode())
            for name in sorted(names)
            if name.startswith(folder) and _LICENCE.match(name.removeprefix(folder))
        )
    if not texts:
        raise BuildError(f"{wheel.name}: has no licence file")
    tops = {name.partition("/")[0] for name in names if not name.startswith(folder)}
    expression = _expression(metadata, wheel, texts)
    return Library(
        metadata["Name"].lower().replace("_", "-"),
        metadata["Version"],
        expression,
        _authors(metadata, texts if expression.startswith(("MIT", "BSD", "ISC")) else ()),
        _source(metadata),
        texts,
        tuple(sorted(tops)),
    )


def _expression(metadata: Message, wheel: Path, texts: Iterable[tuple[str, str]]) -> str:
    """Return the licence of a library as SPDX names it; a BSD classifier does not number the clauses."""
    said: str = metadata["License-Expression"] or metadata["License"] or ""
    classified = metadata.get_all("Classifier", [])
    if not said and "License :: OSI Approved :: MIT License" in classified:
        said = "MIT"
    elif not said and "License :: OSI Approved :: BSD License" in classified:
        three = any("Neither the name" in text for _, text in texts)
        said = "BSD-3-Clause" if three else "BSD-2-Clause"
    if not re.fullmatch(r"[A-Za-z0-9.-]+( (OR|AND) [A-Za-z0-9.-]+)*", said):
        raise BuildError(f"{wheel.name}: its metadata name no licence that SPDX knows, but {said!r}")
    # Of two licences, the one of nfstuned itself.
    return "Apache-2.0" if "Apache-2.0" in said.split(" OR ") else said


def _authors(metadata: Message, texts: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return who holds the copyright: as the licence says, or else whom the metadata name as authors."""
    found = [
        line.strip()
        for _, text in texts
        for line in re.findall(r"^\s*Copyright \(?[Cc\d].*$", text, re.MULTILINE)
    ]
    if found:
        return tuple(dict.fromkeys(found))
    authors: str = metadata["Author"] or metadata["Author-email"] or ""
    return (re.sub(r"\s*<[^>]*>", "", authors).replace('"', "") or "the authors named at its home page",)


def _source(metadata: Message) -> str:
    """Return the address of a library's home page."""
    links = dict(line.split(", ", 1) for line in metadata.get_all("Project-URL", []))
    chosen = next((links[name] for name in ("Homepage", "Home", "Source", "homepage") if name in links), "")
    return str(metadata["Home-page"] or chosen or "without a home page")
