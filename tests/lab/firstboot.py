"""Boot a root disk, and read the values in effect: before anybody could log in, and under a load."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nfstuned.model.kernel import Mount, MountStats
from nfstuned.parse.proc.mountinfo import parse_mountinfo
from nfstuned.parse.proc.mountstats import parse_mountstats
from tests.lab import guest, image, recipe, rootdisk
from tests.lab.rootdisk import DATA, SHARE, VOLUME, Order, Report, Way

_START = Path(__file__).parent / "kit/first_boot.sh"
_LIMITS = guest.Limits(total_s=1800, first_s=900, quiet_s=300, retries=2, processors=1)
"""The first word comes after a whole Debian has started: a minute, and several on a busy machine."""
_PERSIST = "nfstuned apply --persist --format json\n"
_RULE_KB, _GENERIC_KB = 15360, 1024


@dataclass(frozen=True, slots=True)
class Disk:
    """One root disk on one kernel."""

    kernel: str
    suite: str
    way: Way

    def __str__(self) -> str:
        return f"{self.kernel}-{self.suite}-{self.way.value}"


def disks(tier: str) -> tuple[Disk, ...]:
    """Return the root disks that a tier boots: one with the newest kernel in `ci`, every way in `all`."""
    oldest, newest = recipe.SERIES[0].name, recipe.SERIES[-1].name
    service = Disk(newest, "trixie", Way.SERVICE)
    others = (
        Disk(oldest, "bookworm", Way.SERVICE),
        Disk(newest, "trixie", Way.DAEMONLESS),
        Disk(oldest, "bookworm", Way.PERSIST),
    )
    return {"ci": (service,), "all": (service, *others)}.get(tier, ())


@dataclass(frozen=True)
class Seen:
    """The files of one boot of a disk, as kit/first_boot.sh leaves them. A moment is one of its looks."""

    boot: guest.Result
    folder: Path

    def mount(self, moment: str, point: str) -> Mount:
        """Return a mount; raise LookupError where it is not there."""
        for one in parse_mountinfo(self.text(f"{moment}/mountinfo")):
            if isinstance(one, Mount) and one.point == point:
                return one
        raise LookupError(f"{point} is not mounted: {self.text('failed')}")

    def read_ahead_kb(self, moment: str, point: str) -> int:
        """Return the read-ahead of a mount's superblock."""
        device = self.mount(moment, point).device
        lines = (line.split() for line in self.text(f"{moment}/read_ahead_kb").splitlines())
        return int(next(value for name, value in lines if name == device))

    def carried(self, point: str) -> tuple[int, ...]:
        """Return how many requests each connection of a mount sent during the load."""
        before, after = self._sends("idle", point), self._sends("loaded", point)
        return tuple(one - other for one, other in zip(after, before, strict=True))

    def shown(self, unit: str, name: str) -> str:
        """Return a property of a unit, as systemctl shows it."""
        lines = (line.partition("=") for line in self.text(unit).splitlines())
        return next(value for key, _, value in lines if key == name)

    def status(self, point: str) -> Mapping[str, Any]:
        """Return the row of a mount in `nfstuned status`."""
        rows: list[dict[str, Any]] = self.document("status.json")["mounts"]
        return next(row for row in rows if row["mount_point"] == point)

    def document(self, name: str) -> dict[str, Any]:
        """Return a file of JSON."""
        found: dict[str, Any] = json.loads(self.text(name))
        return found

    def text(self, name: str) -> str:
        """Return the text of a file."""
        return (self.folder / name).read_text()

    def _sends(self, moment: str, point: str) -> list[int]:
        stanzas = parse_mountstats(self.text(f"{moment}/mountstats"))
        (mine,) = [one for one in stanzas if isinstance(one, MountStats) and one.point == point]
        return [transport.sends for transport in mine.transports]


@dataclass(frozen=True)
class Booted:
    """A disk that was made and booted: once, or twice where its first boot persists the connections."""

    report: Report
    boots: tuple[Seen, ...]


def boot(disk: Disk, target: Path, say: Callable[[str], None]) -> Booted:
    """Make a disk and boot it; its results go into `target`. Raises AssertionError when it does not end."""
    order = Order(disk.suite, image.release(disk.kernel), disk.way)
    # A program that runs as root makes the disk: its failure counts, not that of the cleaning up.
    with tempfile.TemporaryDirectory(prefix="nfstuned-disk-", ignore_cleanup_errors=True) as folder:
        say(f"making the disk {disk}: {target}")
        report = rootdisk.make(order, Path(folder))
        keeps = disk.way is Way.PERSIST
        system = guest.System(order.release, rootdisk.disk(Path(folder)), keeps)
        boots = []
        for number, command in enumerate((_PERSIST, "") if keeps else ("",), 1):
            payload = _payload(Path(folder) / f"payload-{number}", command, disk.way)
            mine = target / f"boot-{number}"
            boots.append(_boot(system, payload, mine, lambda line: say(f"{disk} | {line}")))
    return Booted(report, tuple(boots))


def read_ahead_kb(way: Way) -> Mapping[str, int]:
    """Return the read-ahead that each mount of a disk should have: a udev rule knows no servers."""
    if way is Way.PERSIST:
        return {SHARE: _RULE_KB}
    data = _RULE_KB if way is Way.DAEMONLESS else _GENERIC_KB
    return {SHARE: _RULE_KB, VOLUME: _RULE_KB, DATA: data}


def _payload(folder: Path, command: str, way: Way) -> Path:
    folder.mkdir()
    shutil.copy(_START, folder / "start")
    (folder / "command").write_text(command)
    lines = (f"{point} {kb}\n" for point, kb in read_ahead_kb(way).items())
    (folder / "expected").write_text("".join(lines))
    return folder


def _boot(system: guest.System, payload: Path, target: Path, say: Callable[[str], None]) -> Seen:
    result = guest.boot(system, payload, target, say, _LIMITS)
    assert result.passed, f"{result.explain()}\nsee {target}"
    assert result.files is not None
    return Seen(result, result.files)
