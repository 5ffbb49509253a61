"""The system calls that a unit allows, and those that its process makes."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lab.kit.shell import run

TRACED = """[Service]
ExecStart=
ExecStart=/usr/bin/strace -D -f --seccomp-bpf -qq -s 0 -o {file} -e trace=!{passed} /usr/bin/nfstuned daemon
ReadWritePaths={folder}
SystemCallFilter=
TimeoutStartSec=300s
WatchdogSec=0
"""
"""A drop-in: nothing is forbidden, so that each call is made; the tracer is not the main process."""
_CALL = re.compile(r"^\d+ +([a-z_0-9]+)\(", re.MULTILINE)


def drop_in(file: Path, passed: frozenset[str]) -> str:
    """Return what has the service leave its system calls in a file, but for those of these names."""
    names = ",".join(f"?{name}" for name in sorted(passed))
    return TRACED.format(file=file, folder=file.parent, passed=names)


def made(file: Path) -> frozenset[str]:
    """Return the names of the calls in a file of strace's."""
    return frozenset(_CALL.findall(file.read_text(errors="replace")))


def allowed(unit: Path) -> frozenset[str]:
    """Return the names of the calls that the filter of a unit lets through, by this systemd's own groups."""
    found = _members("@default")
    for value in re.findall(r"^SystemCallFilter=(.+)$", unit.read_text(), re.MULTILINE):
        names = frozenset().union(*(_members(word) for word in value.lstrip("~").split()))
        found = found - names if value.startswith("~") else found | names
    return found


def _members(word: str) -> frozenset[str]:
    """Return the calls of a group, with those of its groups; a call is a group of itself."""
    if not word.startswith("@"):
        return frozenset({word})
    lines = [line.strip() for line in run("systemd-analyze", "syscall-filter", word).splitlines()[1:]]
    return frozenset().union(*(_members(line) for line in lines if line and not line.startswith("#")))
