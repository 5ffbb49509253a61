"""No reader takes the square of its text's length, and no check the square of its host's size.

Each reader gets texts of repeated pieces that cost a naive reader the square of their length, or more: quotes
and brackets that never close, continued lines, blanks, names with dots.
"""

from __future__ import annotations

import inspect
import pkgutil
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import get_args

import pytest

import nfstuned.parse
from nfstuned import api
from nfstuned.core.samples.copies import parse_copies
from nfstuned.core.samples.top import parse_keys
from nfstuned.errors import ParseError
from nfstuned.host.system import calls_sysctl
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import AutoMap, MapEntry
from nfstuned.model.policy import ConfigError
from nfstuned.parse import fields, toml
from nfstuned.parse.etc import autofs, automaps, certificate, requests, settings, units
from nfstuned.parse.proc import mountstats
from nfstuned.parse.samples import parse_line
from tests.tree import put

Reader = Callable[[str], object]
FEW, MANY = 250, 2000
"""Mounts, files and lines of a host that is checked."""


def as_bytes(read: Callable[[bytes], object]) -> Reader:
    """Let a reader of bytes read a text."""
    return lambda text: read(text.encode("utf-8", "surrogateescape"))


def unit(text: str) -> object:
    """Read a mount unit as far as to its request."""
    pairs = [item for item in units.parse_unit("[Mount]\n" + text, "f") if not isinstance(item, ParseError)]
    return units.mount_request("mnt.mount", pairs, {})


def entry(text: str) -> object:
    auto = AutoMap("/a", "", "", "auto.a", "", "f", 1)
    return autofs.mount_requests(MapEntry("key", "-rw " + text, "f", 1), auto, {"HOST": "h" * 64})


def automount(text: str) -> object:
    with suppress(ParseError):
        return automaps.parse_automount("automount:" + text)
    return None


SPECIAL: dict[str, Reader] = {
    "autofs entry": entry,
    "auto.master, several maps": lambda text: autofs.parse_master("/a multi:" + text, "f"),
    "sssd.conf": automaps.starts_autofs,
    "automount in nsswitch.conf": automount,
    "findmnt --verify": lambda text: requests.parse_verify(text, text),
    "certificate": lambda text: certificate.parse_certificates("-----BEGIN CERTIFICATE-----\n" + text, "f"),
    "unit": unit,
    "unit names": lambda text: (fields.unit_name(text), units.unit_path(text)),
    "nfstuned.toml": partial(toml.parse_toml, "f"),
    "mountstats, cut": as_bytes(lambda data: mountstats.parse_stanzas([data])),
    "mountstats, saved": as_bytes(partial(parse_copies, "f")),
    "sample": lambda text: parse_line(text.encode("utf-8", "surrogateescape"), "f", 1),
    "keys": as_bytes(parse_keys),
    "options": parse_options,
    "path": fields.clean_path,
    "escapes": fields.unescape,
    "message": fields.quoted,
    "secrets": fields.mask_secrets,
    "calls of sysctl": calls_sysctl,
    "versions": lambda text: settings.in_version_order(text.split("\n")),
}
"""Readers with arguments or texts of their own, and other functions of a text."""
ARGUMENTS = {
    "file": "f", "provider": "p", "section": "s", "name": "AZURE", "subsystem": "bdi", "client": 1,
    "release": "6.12", "environment": {}, "known": {},
}  # fmt: skip


def parsers() -> Iterator[tuple[str, Reader]]:
    """Yield every `parse_x` of a text or of bytes that needs no arguments but ARGUMENTS."""
    for module in pkgutil.walk_packages(nfstuned.parse.__path__, "nfstuned.parse."):
        for name, function in vars(import_module(module.name)).items():
            if not name.startswith("parse_") or getattr(function, "__module__", "") != module.name:
                continue
            first, *others = inspect.signature(function, eval_str=True).parameters.values()
            needed = [other.name for other in others if other.default is other.empty]
            kind = first.annotation
            kinds = {*get_args(kind)} if isinstance(kind, UnionType) else {kind}
            if not kinds & {str, bytes} or not ARGUMENTS.keys() >= {*needed}:
                continue
            read = partial(function, **{argument: ARGUMENTS[argument] for argument in needed})
            yield f"{module.name}.{name}", read if str in kinds else as_bytes(read)


READERS = {**SPECIAL, **dict(parsers())}
# fmt: off
PIECES = (
    "a", "0", " ", "\t", "\n", "a\n", "a b\n", "\\", "\\\n", "a\\\n", "#\n", "\r\n", '"', '"a', "'", "\0",
    "01", "=", "a=1\n", "a = 1,", ",", "a,", ":", "::", "/", "//", "//u:", "//u:@", "[", "[a]\n", "{", "(",
    ")",
    "&", "$", "$HOST", "${", "%", "%a", "*", "-", "-a ", "+", "+a\n", ".", "a.", "a.a = 1\n", "[[a]]\n", "<",
    '"a".', "s:/a ", "s,", "s:/a /m nfs rw 0 0\n", "user=", "pass", "password=", "password=a\n", "sig=",
    "\\040", "\udcff", "\u00b2", "1 2 0:3 / /m rw - nfs s:/a rw\n", "[Mount]\nWhat=a\n", "GOTO=",
    'GOTO="a"\n', 'A=="b", ', 'A=="b"\\\n', "device s:/a mounted on /m with fstype nfs\n", "v4 ", "1.",
    "\timpl_id:\tname='", "',domain='", "',date='0,0'\n", "\n\n", "\tper-op statistics\n", "include=a\n",
    'key "', "a: b\n", "{a=", "device a mounted on ",
)
# fmt: on


def seconds(read: Reader, text: str, runs: int = 1) -> float:
    """Return the least CPU time of some runs."""

    def once() -> None:
        with suppress(ParseError, ConfigError, ValueError):
            made = read(text)
            if isinstance(made, Iterable) and not isinstance(made, str):
                deque(made, maxlen=0)

    return cpu_s(once, runs)


def cpu_s(work: Callable[[], object], runs: int) -> float:
    """Return the least CPU time of some runs, which a busy machine changes least."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def text_of(piece: str, length: int) -> str:
    """Return the piece repeated to about so many characters."""
    return piece * (length // len(piece))


def host_files(number: int) -> dict[str, dict[str, str]]:
    """Return by name the files of hosts with so many mounts, lines or sections."""
    each = range(number)
    return {
        "servers": {"etc/fstab": "".join(f"nas{n}:/v /mnt/{n} nfs vers=4.1,nconnect=4 0 0\n" for n in each)},
        "a server": {"etc/fstab": "".join(f"nas:/v{n} /mnt/{n} nfs vers=4.1,nconnect=4 0 0\n" for n in each)},
        "Azure": {
            "etc/fstab": "".join(f"a.file.core.windows.net:/a/{n} /mnt/{n} nfs vers=4.1 0 0\n" for n in each)
        },
        "SMB": {"etc/fstab": "".join(f"//nas/v{n} /mnt/{n} cifs vers=3.0 0 0\n" for n in each)},
        "sections": {
            "etc/fstab": "".join(f"nas{n}:/v /mnt/{n} nfs vers=4.1 0 0\n" for n in each),
            "etc/nfsmount.conf": "".join(f'[ Server "nas{n}" ]\nnconnect=4\n' for n in each),
        },
        "a map": {
            "etc/auto.master": "/a auto.a\n",
            "etc/auto.a": "".join(f"k{n} -vers=4.1 nas{n % 50}:/v{n}\n" for n in each),
        },
        "units": {
            f"etc/systemd/system/mnt-{n}.mount": f"[Mount]\nWhat=nas:/{n}\nWhere=/mnt/{n}\nType=nfs\n"
            for n in each
        },
        "udev rules": {
            "etc/udev/rules.d/60-x.rules": "".join(
                f'SUBSYSTEM=="bdi", ENV{{x{n}}}="{n}", GOTO="e{n}"\nLABEL="e{n}"\n' for n in each
            )
        },
        "mounts": {
            "proc/1/mountinfo": "".join(
                f"{100 + n} 27 0:{100 + n} / /mnt/{n} rw - nfs4 nas{n}:/v rw,vers=4.1,addr=10.1.2.4\n"
                for n in each
            ),
            **{f"sys/class/bdi/0:{100 + n}/read_ahead_kb": "128\n" for n in each},
        },
    }


def check_seconds(files: dict[str, str], runs: int = 1) -> float:
    """Return the least CPU time of some checks of a host with these files."""
    with TemporaryDirectory() as folder:
        for name, text in {"proc/sys/kernel/osrelease": "6.12.43\n", **files}.items():
            put(Path(folder, name), text)
        return cpu_s(lambda: api.diagnose(folder, network=api.Network()), runs)


SHORT, LONG = 4096, 8 * 4096
LEAST_S = 0.002
"""Shorter times are too short to compare, and do no harm."""
TIMES = 20
"""Between 8, or 10 for n log n, and 64 for the square."""
RUNS = 5


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_no_reader_takes_the_square_of_its_texts_length(name: str) -> None:
    """CPU time is measured, the least of some runs; a piece that seems slow is measured again."""
    read = READERS[name]
    for piece in PIECES:
        short, long = text_of(piece, SHORT), text_of(piece, LONG)
        if (once := seconds(read, long)) > LEAST_S and once > TIMES * seconds(read, short):
            ratio = seconds(read, long, RUNS) / seconds(read, short, RUNS)
            assert ratio < TIMES, f"{piece!r} eight times as long takes {ratio:.0f} times as long"


@pytest.mark.slow
@pytest.mark.parametrize("name", host_files(0))
def test_no_check_takes_the_square_of_its_hosts_size(name: str) -> None:
    few, many = host_files(FEW)[name], host_files(MANY)[name]
    assert MANY == 8 * FEW
    assert check_seconds(many, 2) < TIMES * check_seconds(few, RUNS)


def test_the_criterion_separates_the_square_from_linear_growth() -> None:
    def square(text: str) -> object:
        return [text[at:].count("b") for at in range(0, len(text), 4)]

    def linear(text: str) -> object:
        return [sorted(text.split("b")) for _ in range(40)]

    short, long = text_of("a", SHORT), text_of("a", LONG)
    assert seconds(square, long, RUNS) > TIMES * seconds(square, short, RUNS)
    assert seconds(linear, long, RUNS) < TIMES * seconds(linear, short, RUNS)
