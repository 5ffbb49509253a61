"""The requests of files without their host, and the kinds of the files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeVar

from nfstuned.errors import ParseError
from nfstuned.model.facts import Ignore
from nfstuned.model.mounts import Local, Misnamed, Request, Unexpanded, UnreadMap
from nfstuned.model.udev import UdevFile
from nfstuned.parse.etc.requests import Intent, local_lines, parse_fstab
from nfstuned.parse.fields import some


class Kind(str, Enum):
    """The kinds of files, in the words for people."""

    FSTAB = "fstab"
    UNIT = "unit of systemd"
    MAP = "map of the automounter"
    CONF = "nfsmount.conf or nfs.conf"
    UDEV = "udev rules"
    PARAMETERS = "modprobe.d or sysctl.d"
    CLOUD = "cloud-init"
    KUBERNETES = "Kubernetes"
    VALUES = "values of a Helm chart"
    COMPOSE = "compose"
    ANSIBLE = "Ansible"
    PLAN = "Terraform plan"
    SCRIPT = "script"
    OTHER = "YAML or JSON without a mount"
    UNREAD = "recognised, not read"


class JudgedFile(NamedTuple):
    """A file: its name in the user's words, and its text."""

    name: str
    text: str
    named: bool = False
    """The user named the file itself: it is looked at whatever its text has."""


RELEVANT = re.compile(
    r"(?<![a-z])(?:nfs|cifs|smb|csi|fstab)|(?<![a-z])efs(?![a-z])|azure-?file|flexVolume|storageDriverName"
    r"|sunrpc|read_ahead_kb|planned_values|\bmount\b[^\n]{0,300}?(?::/|//)",
    re.IGNORECASE,
)
"""A text without any of these asks for no mount, but for the variables of playbooks."""
_OPEN = re.compile(r"\$[{A-Za-z(]|\{\{|\{%")
"""The beginning of a placeholder, also where commas split it."""


Found = Request | Misnamed | Local | ParseError | Unexpanded | UnreadMap
R = TypeVar("R", bound=Found)


def moved(row: R, at: Callable[[int], int], file: str = "") -> R:
    """Return a row of a text within a file, named where it is another; `at` gives the file's lines."""
    if isinstance(row, Misnamed):
        return row._replace(request=moved(row.request, at, file))
    if isinstance(row, Local):
        return row._replace(request=moved(row.request, at, file), below=moved(row.below, at, file))
    file = file or row.file
    if isinstance(row, Request):
        below, source_line = tuple(map(at, row.option_lines)), row.source_line and at(row.source_line)
        row = row._replace(source_file=row.source_file if file == row.file else "")
        return row._replace(file=file, line=at(row.line), option_lines=below, source_line=source_line)
    if isinstance(row, ParseError):
        return type(row)(file, at(row.line), row.message)
    return row._replace(file=file, line=at(row.line)) if isinstance(row, Unexpanded) else row


def placed(row: R, line: int, *, is_block: bool) -> R:
    """Return a row of a text that begins on this line of its file.

    A text that is no block may have line breaks as escapes: all of its rows are on the one line.
    """
    if is_block:
        return moved(row, lambda own: line - 1 + own)
    row = moved(row, lambda _: line)
    return row._replace(option_lines=(), source_line=0) if isinstance(row, Request) else row


@dataclass(slots=True, eq=False)
class Deployment:
    """The requests of many files, and their kinds."""

    intent: Intent = field(default_factory=Intent)
    unexpanded: list[Unexpanded] = field(default_factory=list)
    udev: list[UdevFile] = field(default_factory=list)
    ignores: list[Ignore] = field(default_factory=list)
    kinds: dict[str, Kind] = field(default_factory=dict)
    """By the names of the files: each file that was recognised."""

    @property
    def unread(self) -> tuple[str, ...]:
        """The commands, tasks and files that were recognised and not read, for people."""
        lines: dict[tuple[str, str], list[int]] = {}
        for item in self.unexpanded:
            lines.setdefault((item.file, item.text), []).append(item.line)
        return tuple(
            f"{file}: not read: {text}" + (f" (line {some(list(map(str, at)))})" if any(at) else "")
            for (file, text), at in lines.items()
        )

    def add(self, items: Iterable[Found], group: str = "") -> None:
        """Keep the rows of a parser; requests without a group of their own get this one."""
        for item in items:
            if isinstance(item, Request) and any(_OPEN.search(name) for name, _ in item.pairs):
                self.unexpanded.append(Unexpanded("an option with a placeholder", item.file, item.line))
            elif isinstance(item, Unexpanded):
                self.unexpanded.append(item)
            elif isinstance(item, Request) and item.by_fuse:
                self.unexpanded.append(Unexpanded("a mount by AZNFS's own client", item.file, item.line))
            elif isinstance(item, Local):
                self.intent.local.append(item)
            elif isinstance(item, UnreadMap):
                self.intent.name(item)
            elif isinstance(item, Request):
                self.intent.add([item._replace(group=item.group or group)])
            else:
                self.intent.add([item])

    def part_alternatives(self) -> None:
        """Part the files of Kubernetes that have the same object: they are for several clusters."""
        files: dict[str, set[str]] = {}
        for request in self.intent.requests:
            if request.owner:
                files.setdefault(request.owner, set()).add(request.file)
        apart = {file for several in files.values() if len(several) > 1 for file in several}
        self.intent.requests = [
            request._replace(group=request.file) if request.owner and request.file in apart else request
            for request in self.intent.requests
        ]


def add_fstab(deployment: Deployment, source: JudgedFile, group: str = "") -> None:
    """Add the lines of an fstab, and the local file systems that lie on its mounts."""
    name, text = source.name, source.text
    requests = parse_fstab(text, name)
    deployment.add(requests, group)
    own = [request for request in requests if isinstance(request, Request)]
    deployment.add(local_lines(text, own, name))
