r"""Host trees, each with the findings that a check must have there, and no others.

tests/hosts/NAME.host has the format of tests/host_file.py. Its head has these keys:

    why = "a sentence on the host"
    base = "clean"                  # another host, or a system of tests/hosts/os: its files come first
    arguments = ["--offline"]       # "--root", "--offline" or nothing; default: nothing
    findings = ["NFS101 /mnt/a"]    # rule and subject of every finding, in the order of the output;
                                    # with its severity where that is not the rule's: "NFS101 /a (advice)"
    now = 2026-12-01T00:00:00Z      # the time of the check; default: 2026-11-25T12:00:00Z
    sample_s = 10                   # the seconds until a second look, with the files of `later/`
    vm_size = "Standard_D8s_v5"
    answer = [                      # the world beyond files: the values of nfstuned.model.facts
        { host = "sa1.file.core.windows.net", addresses = ["10.10.10.10"] },
    ]                               # reach, route and interface as well
    gone = ["etc/fstab"]            # files of the base that are not there
    empty = ["etc/krb5.keytab"]     # empty files
    programs = ["usr/sbin/mount.nfs"]  # files that can be executed
    fifos = ["etc/fstab"]

    [messages]                      # the texts of findings: each rule has them in one host
    "NFS101 /mnt/a" = "/mnt/a reads ahead 128 KiB"

    [units]                         # the states of units that systemd has loaded
    "mnt-a.mount" = { active = "failed" }

    [modes]                         # of folders, and of files that a base has
    "etc/smb.cred" = "0600"

    [links]
    lib = "usr/lib"

The network, the time and vm_size are the base's where a host has none of its own.
`python -m tests.check.hosts NAME FOLDER` builds a tree, with `later/` in it.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from nfstuned.app.facts import Scope, examine
from nfstuned.core.rules.catalogue import find_rules
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.network.outside import Questions
from nfstuned.host.policy import image_policy, load_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Facts, Finding
from nfstuned.model.mounts import UnitState
from nfstuned.model.system import Answer, Interface, Network, Reach, Reachable, Route
from tests.host_file import File, HostFile, HostFileError, parse_host

HOSTS = Path(__file__).parents[1] / "hosts"
SUFFIX = ".host"
MOMENT = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Case:
    name: str
    host: HostFile

    @property
    def base(self) -> Case | None:
        """The host whose files come first."""
        return load(self.host.head["base"]) if "base" in self.host.head else None

    @property
    def image(self) -> bool:
        return "--root" in self.host.head.get("arguments", ())

    @property
    def scope(self) -> Scope:
        """The scope of the check; `sample_s` is the seconds until a second look, 0 for none."""
        head = self.host.head
        return Scope(self.image, "--offline" in head.get("arguments", ()), float(head.get("sample_s", 0)))

    @property
    def findings(self) -> list[str]:
        """The labels of all findings, in the order of the output."""
        return list(self.host.head["findings"])

    @property
    def messages(self) -> Mapping[str, str]:
        """Texts of findings by rule and subject."""
        return dict(self.host.head.get("messages", {}))

    @property
    def moment(self) -> datetime:
        return self._inherited("now") or MOMENT

    @property
    def units(self) -> dict[str, UnitState]:
        return {
            name: UnitState(loaded=True, **_tuples(state))
            for name, state in self.host.head.get("units", {}).items()
        }

    @property
    def network(self) -> Network:
        return Network(
            answers=tuple(Answer(**_tuples(row)) for row in self._inherited("answer")),
            reaches=tuple(
                Reach(**{**row, "state": Reachable(row["state"])}) for row in self._inherited("reach")
            ),
            routes=tuple(Route(**row) for row in self._inherited("route")),
            interfaces=tuple(Interface(**row) for row in self._inherited("interface")),
            vm_size=self._inherited("vm_size") or None,
        )

    def _inherited(self, key: str) -> Any:  # noqa: ANN401 - TOML holds anything
        """Return a value of the head, or of the nearest base that has it."""
        if key in self.host.head or self.base is None:
            return self.host.head.get(key, [])
        return self.base._inherited(key)  # noqa: SLF001 - another case

    def update(self, messages: Mapping[str, str]) -> Case:
        """Write the texts of findings to this host's file, over the old; return the new host."""
        file = HOSTS / f"{self.name}{SUFFIX}"
        text = file.read_text()
        for finding, old in self.messages.items():
            key = json.dumps(finding, ensure_ascii=False)
            text = text.replace(
                f"{key} = {json.dumps(old, ensure_ascii=False)}\n",
                f"{key} = {json.dumps(messages[finding], ensure_ascii=False)}\n",
            )
        file.write_text(text)
        load.cache_clear()
        return load(self.name)

    def build(self, target: Path) -> Path:
        """Write the whole tree to a folder."""
        if self.base is not None:
            self.base.build(target)
        head = self.host.head
        for name in head.get("gone", ()):
            path = target / name
            if not os.path.lexists(path):
                raise HostFileError(f"{self.name}{SUFFIX}: its base has no {name} that could be gone")
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        write(self.host.files, target)
        for name, leads_to in head.get("links", {}).items():
            _room(target / name).symlink_to(leads_to)
        for name in head.get("fifos", ()):
            os.mkfifo(_room(target / name))
        for name, mode in head.get("modes", {}).items():
            (target / name).chmod(int(mode, 8))
        return target


def world(case: Case, folder: Path) -> World:
    """Return the world beyond the files of a host that was built in a folder."""
    return World(case.network, case.host.later, folder, case.units, moment=case.moment)


def facts_of(case: Case, folder: Path) -> Facts:
    """Build a host in a folder; return the facts of its check."""
    root = (ImageRoot if case.image else Root)(str(case.build(folder)))
    policy = image_policy(root) if case.image else load_policy(root)
    return examine(root, policy, case.scope, world(case, folder))


def label(finding: Finding) -> str:
    """Return rule and subject of a finding, and its severity where that is not the rule's."""
    (rule,) = find_rules(finding.rule)
    own = "" if finding.severity is rule.severity else f" ({finding.severity.value})"
    return f"{finding.rule} {finding.subject}{own}"


def write(files: Mapping[str, File], folder: Path) -> None:
    """Write files below a folder, over those that are there."""
    for name, file in files.items():
        path = _room(folder / name)
        path.write_bytes(file.content)
        path.chmod(file.mode)


def _room(path: Path) -> Path:
    """Make the folder of a path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@dataclass(frozen=True)
class World:
    """The world beyond files of a host; with --offline only this machine's own part."""

    network: Network
    later: Mapping[str, File] = field(default_factory=dict)
    """The files that change while time passes, and `root`, where the host was built."""
    root: Path | None = None
    states: Mapping[str, UnitState] = field(default_factory=dict)
    words: str = ""
    moment: datetime = MOMENT

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Answer without a network."""
        del questions
        if offline:
            return Network(routes=self.network.routes, interfaces=self.network.interfaces), ()
        return self.network, ()

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        return {name: state for name, state in self.states.items() if name in names}

    def failure_reasons(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Return the states as they are: they have their last lines."""
        return states

    def kernel_message(self) -> str:
        return self.words

    def now(self) -> float:
        return self.moment.timestamp()

    def pause(self, seconds: float) -> float:
        """Change the files as if time had passed."""
        if self.root is not None:
            write(self.later, self.root)
        return seconds


@functools.cache
def load(name: str) -> Case:
    """Return one host, or `os/NAME`, a system."""
    file = HOSTS / f"{name}{SUFFIX}"
    return Case(name, parse_host(file.read_bytes().decode(), file.name))


@functools.cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in HOSTS.glob(f"*{SUFFIX}")))


def texts(name: str) -> Iterator[str]:
    """Yield the texts of all files of this name."""
    for each in map(load, names()):
        for files in (each.host.files, each.host.later):
            yield from (file.content.decode() for path, file in files.items() if Path(path).name == name)


def text(name: str, path: str) -> str:
    """Return a file's text from a host's own part."""
    return load(name).host.files[path].content.decode()


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}


if __name__ == "__main__":
    built = load(sys.argv[1])
    write(built.host.later, built.build(Path(sys.argv[2])) / "later")
