"""What nfstuned, nfsiostat, mountstats, node_exporter and PCP say of one load, beside what was really done.

Runs in the lab, where there are a server, an installed nfstuned and Debian's packages of the others:
`sh dev/lab KERNEL tools`. Each says what it says to a user: its own figures of all that it lists, added up as
a dashboard does (`tests/lab/kit/tools.py`).
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kit.load import Job, fio, nfsd, sockets
from tests.lab.kit.shell import CommandError, attempt
from tests.lab.kit.tools import Figures, mountstats, nfsiostat, nfstuned, node_exporter, pcp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from tests.lab.kit.mounts import Mounts
    from tests.lab.kit.tools import Say

    Tool = Callable[[Sequence[str]], AbstractContextManager[Say]]
    """Begins to count what the mounts at these points read, and then says it."""

OPTIONS = "vers=4.2,nconnect=4"
SIZE, JOB = 4 << 20, Job("read", "1M", direct=True, size="4M")
TOOLS: dict[str, Tool] = {
    "nfstuned": nfstuned,
    "node_exporter": node_exporter,
    "PCP": pcp,
    "mountstats": mountstats,
    "nfsiostat": nfsiostat,
}
"""In the order in which they begin: the last one's interval has to hold the load."""
TRUTH = "fio, nfsd, ss"


@dataclass(frozen=True)
class Comparison:
    """What was done, what each tool said of it, and why one said nothing."""

    truth: Figures
    said: dict[str, Figures]
    failed: dict[str, str]


def compare(mount: Mounts, tell: Callable[[str], None]) -> Comparison:
    """Read two shares of one server directly, one of them mounted three times, while all tools count."""
    for share in "ab":
        Path(f"/srv/{share}/load").write_bytes(os.urandom(SIZE))
    used = mount("a", OPTIONS)
    mounts = [used, mount.bind(used), mount("a", OPTIONS), mount("b", OPTIONS)]
    points = [str(each.point) for each in mounts]
    says: dict[str, Say] = {}
    failed: dict[str, str] = {}
    said: dict[str, Figures] = {}
    with contextlib.ExitStack() as stack:
        for name, tool in TOOLS.items():
            tell(f"{name} begins")
            with _kept(failed, name):
                says[name] = stack.enter_context(tool(points))
        counted = nfsd()
        tell("the load begins")
        asked = [fio(each, JOB) for each in (used, mounts[-1])]
        counted, connections = nfsd() - counted, sockets().number
        for name, say in reversed(says.items()):
            tell(f"{name} is asked")
            with _kept(failed, name):
                said[name] = say()
    programs = sum(each.read_bytes for each in asked)
    truth = Figures(2, programs, counted.read_bytes, counted.reads, connections)
    return Comparison(truth, {name: said[name] for name in TOOLS if name in said}, failed)


@contextlib.contextmanager
def _kept(failed: dict[str, str], name: str) -> Iterator[None]:
    """Let one tool fail without the others: its output is then what is to be read."""
    try:
        yield
    except (CommandError, subprocess.TimeoutExpired, OSError, ValueError, AssertionError) as error:
        failed[name] = str(error)


def table(found: Comparison) -> str:
    """Return the figures for people, as Markdown; a dash is what a tool does not say."""
    head = "| | listed | read by programs | sent by the server | READs | connections |"
    rows = [
        f"| {name} | {_cell(said.entries)} | {_mib(said.read_bytes)} | {_mib(said.server_bytes)} "
        f"| {_cell(said.requests)} | {_cell(said.connections)} |"
        for name, said in ((TRUTH, found.truth), *found.said.items())
    ]
    names = ("nfs-common", "prometheus-node-exporter", "pcp")
    versions = attempt("dpkg-query", "--show", "--showformat=${Package} ${Version}, ", *names).stdout
    about = f"Linux {os.uname().release}, {versions}{time.strftime('%Y-%m-%d', time.gmtime())}"
    return "\n".join(
        [
            head,
            "|---|--:|--:|--:|--:|--:|",
            *rows,
            about,
            *(f"{name}: {why}" for name, why in found.failed.items()),
        ]
    )


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}"


def _mib(value: float | None) -> str:
    return "-" if value is None else f"{value / (1 << 20):.2f} MiB"
