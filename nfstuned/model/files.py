"""Files in folders of the system, outside the program's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

FILES = MappingProxyType(
    {
        "systemd/nfstuned.service": "lib/systemd/system/nfstuned.service",
        "systemd/nfstuned-persist.path": "lib/systemd/system/nfstuned-persist.path",
        "systemd/nfstuned-persist.service": "lib/systemd/system/nfstuned-persist.service",
        "systemd/nfstuned-check.service": "lib/systemd/system/nfstuned-check.service",
        "systemd/nfstuned-check.timer": "lib/systemd/system/nfstuned-check.timer",
        "systemd/nfstuned-identity.service": "lib/systemd/system/nfstuned-identity.service",
        "systemd/nfstuned-exporter.service": "lib/systemd/system/nfstuned-exporter.service",
        "docs/prometheus/nfstuned.rules.yml": "share/nfstuned/nfstuned.rules.yml",
        "docs/prometheus/nfstuned.dashboard.json": "share/nfstuned/nfstuned.dashboard.json",
        "systemd/90-nfstuned.preset": "lib/systemd/system-preset/90-nfstuned.preset",
        "systemd/nfstuned.catalog": "lib/systemd/catalog/nfstuned.catalog",
        "docs/man/nfstuned.1": "share/man/man1/nfstuned.1",
        "docs/man/nfstuned.toml.5": "share/man/man5/nfstuned.toml.5",
        "docs/man/nfstuned.8": "share/man/man8/nfstuned.8",
        "docs/completion/nfstuned.bash": "share/bash-completion/completions/nfstuned",
        "docs/completion/_nfstuned": "share/zsh/site-functions/_nfstuned",
        "docs/completion/nfstuned.fish": "share/fish/vendor_completions.d/nfstuned.fish",
    }
)
"""By the name in the repository: the place below /usr or /usr/local; systemd and man read both."""
RULE, IDENTITY = "udev/99-nfstuned.rules", "systemd/nfstuned-identity.service"
"""Files that an image may have without the program: the udev rule that does without the service, and the unit
that gives the NFSv4 client its identity."""
SERVICES = tuple(name for name in FILES if name.endswith(".service") and name != IDENTITY)
"""The units that start the program."""


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, which stands where another file would have its bytes."""

    target: str


Content = bytes | Link


class Step(Enum):
    """The step for a file; the values are for people."""

    WRITE = "write"
    SAME = "unchanged"
    REMOVE = "remove"
    REFUSE = "refused"
    """The file was not written by nfstuned: nothing at all is changed."""
    KEEP = "kept"
    """It was written by nfstuned, but somebody has changed it since."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A file, and the step for it."""

    path: str
    """Below the root, without a leading slash."""
    step: Step
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Installed:
    """The files that were written, so that exactly these can be taken back."""

    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By path: the SHA-256 of the written text, or "-> " and where a link leads; two of them when a change of
    the file was cut short."""
    folders: tuple[str, ...] = ()
    """The folders that had to be made, each before those in it."""
    before: Mapping[str, str] = field(default_factory=dict)
    """By path: the text that a written file replaced, and that goes back there."""


@dataclass(frozen=True, slots=True)
class Work:
    """The planned steps for files; without `contents` all that was written is taken back."""

    steps: tuple[Placement, ...]
    contents: Mapping[str, Content]
    """The wanted content of each file."""
    found: Mapping[str, str | None]
    """The digest of each of these files, and of those written before, as they are now; None for no file."""
    replaced: Mapping[str, str] = field(default_factory=dict)
    """By path: the text of another command that a written file replaces, and that a removal puts back."""
