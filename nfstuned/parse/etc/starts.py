"""The links, units and scripts of a file tree that start a unit at boot."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property

from nfstuned.model.mounts import GRAPHICAL
from nfstuned.parse.etc.mount_units import AUTOMOUNT, MountUnits
from nfstuned.parse.etc.units import GENERATED, SUFFIX, UNIT_FOLDERS, enabled_by_preset, wanted_units
from nfstuned.parse.tree import ELF, FSTAB

ENABLED = "etc/systemd/system"
KINDS = (".service", ".target", ".timer", ".path", ".socket", ".mount", ".automount")
"""The units that may ask for another unit."""
ATTACHED = ("etc/systemd/system.attached", "run/systemd/system.attached")
GENERATOR_FOLDERS = tuple(
    f"{place}/systemd/system-generators" for place in ("etc", "run", "usr/local/lib", "usr/lib", "lib")
)
_TARGET = ".target"
ONLINE, REMOTE = "network-online.target", "remote-fs.target"
_MULTI_USER = "multi-user.target"
_OWN = (ONLINE, REMOTE, _MULTI_USER, GRAPHICAL, "basic.target", "network.target")
"""The targets of systemd that mounts name: an incomplete tree may lack them."""
_DEFAULT = "default.target"
EVERYWHERE = "sysinit.target"
"""A tree without it lacks systemd's own units."""
_SCRIPTS = (
    *("etc/NetworkManager/dispatcher.d", "etc/networkd-dispatcher/routable.d", "etc/udev/rules.d"),
    *("etc/network/if-up.d", "etc/network/interfaces.d", "etc/cron.d", "etc/cloud/cloud.cfg.d"),
    *("usr/lib/udev/rules.d", "var/spool/cron", "var/spool/cron/crontabs", *GENERATOR_FOLDERS),
)
_SCRIPT_FILES = (
    "etc/network/interfaces",
    "etc/rc.local",
    "etc/rc.d/rc.local",
    "etc/crontab",
    "etc/cloud/cloud.cfg",
    "proc/cmdline",
)
_MOST_OF_SCRIPT = 262_144
_MOST_LINKS = 4
INSTALL = re.compile(r"(?m)^[ \t]*(?:WantedBy|RequiredBy|UpheldBy)[ \t]*=[ \t]*\S")
_INERT = re.compile(
    r"\s*(?:[#;]|(?:After|Before|Description|Documentation|PartOf|Conflicts|(?:Wanted|Required|Upheld)By"
    r"|(?:Condition|Assert)\w+)\s*=)"
)
"""Lines that start no other unit."""


class Starts:
    """A reader of all that may start a unit; each kind of file is read once, when it is needed."""

    def __init__(self, units: MountUnits) -> None:
        self.units, self.root = units, units.root

    @cached_property
    def wanted(self) -> Mapping[str, set[str]]:
        """The mounts, automounts and targets that other units want, each with those units."""
        return wanted_units(self.root, (SUFFIX, AUTOMOUNT, _TARGET))

    @cached_property
    def idle_targets(self) -> set[str]:
        """The targets that nothing starts at boot, of those with links to mounts, and remote-fs.target.

        They are not there, or lack a link: remote-fs.target, administrators' targets with an [Install]
        section, and graphical.target where the default is another target. Others may be started by systemd
        itself, by devices or by people.
        """
        if not self.units.files(EVERYWHERE):
            return set()
        boot = {_DEFAULT}
        for _ in range(_MOST_LINKS):
            files = [file for name in boot for file in self.units.files(name)]
            boot |= {link.rpartition("/")[2] for file in files if (link := self.root.link(file))}
        runlevel = {"2", "3", "4", "5"}.intersection(self.root.read_or_empty("proc/cmdline").split())
        graphical = {GRAPHICAL} if _MULTI_USER in boot and not runlevel else set()
        links = [self.root.link(f"{ENABLED}/{n}") for n in self.units.folders[ENABLED] if n.endswith(_TARGET)]
        aliased = {link.rpartition("/")[2] for link in links if link}
        wanting = set[str]().union(*self.wanted.values(), {REMOTE})
        idle = set()
        for name in wanting - boot - aliased:
            files = self.units.files(name)
            made = any(name in self.root.names(each) for each in (*GENERATED, *ATTACHED))
            own = INSTALL.search(self.root.read_or_empty(f"{ENABLED}/{name}"))
            if files and (own or name in {REMOTE, *graphical}):
                enabled = enabled_by_preset(self.root, name)
            else:
                enabled = bool(files) or made or name in _OWN or "@" in name or not name.endswith(_TARGET)
            if not enabled:
                idle.add(name)
        idle = self._without_wanted(idle)
        return self._without_wanted({name for name in idle if not self.is_named((name,), (name,), "")})

    def _without_wanted(self, idle: set[str]) -> set[str]:
        """Return the idle units without those that another unit wants."""
        while wanted := {name for name in idle if self.wanted.get(name, set()) - idle}:
            idle = idle - wanted
        return idle

    def is_named(self, own: Sequence[str], words: Sequence[str], point: str) -> bool:
        """Return whether any unit or script may start a mount, or a unit known by these words.

        The files of units in `own` do not count. A path at or below the mount point makes systemd mount it,
        but for commands; a template's specifier stands for any text.
        """
        ends = "|".join(map(re.escape, words))
        named = re.compile(rf"(?<![\w/.-])(?:{ends})(?![\w-])")
        path = re.compile(rf"(?<![\w/.]){re.escape(point)}(?![\w.-])") if point else None
        for file, line in self.lines:
            if file.removesuffix(".d") in own:
                continue
            command = line.lstrip().startswith("Exec") and "mount" not in line
            if named.search(line) or (path and not command and path.search(line)):
                return True
            for word in re.split(r"[\s=:]", line) if "%" in line else ():
                parts = re.split("%[A-Za-z]", word)
                pattern = ".*".join(map(re.escape, parts))
                if re.search(r"\w", "".join(parts)) and any(
                    re.fullmatch(pattern, each) for each in (*words, point)
                ):
                    return True
        return False

    @cached_property
    def lines(self) -> list[tuple[str, str]]:
        """The lines of all files that may start a unit, each with its unit or folder of drop-ins."""
        files = [(name, name) for name in (*_SCRIPT_FILES, FSTAB)]
        files += [(f"{folder}/{name}", name) for folder in _SCRIPTS for name in self.root.names(folder)]
        for folder in (*UNIT_FOLDERS, *GENERATED):
            for name in self.root.names(folder):
                drops = self.root.names(f"{folder}/{name}") if name.endswith(".d") else ()
                files += [(f"{folder}/{name}/{drop}", name) for drop in drops if drop.endswith(".conf")]
                files += [(f"{folder}/{name}", name)] if name.endswith(KINDS) else []
        return [
            (name, line)
            for file, name in files
            for line in self.text(file).replace("\\\n", " ").split("\n")
            if line and not _INERT.match(line)
        ]

    def text(self, file: str) -> str:
        """Return a script's or a unit's text; "" for a program, such as systemd's own generators."""
        try:
            text = self.root.read_start(file, _MOST_OF_SCRIPT).decode("utf-8", "surrogateescape")
            return "" if text.startswith(ELF) else text
        except OSError:
            self.root.faults.forget(file)
            return ""
