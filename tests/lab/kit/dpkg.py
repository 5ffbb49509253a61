"""Runs of dpkg that are killed at a moment of their work, and completed as a person does."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tests.lab.kit.daemon import UNIT
from tests.lab.kit.shell import attempt, run
from tests.lab.kit.unit import compiled

INSTALL_S = 600.0
LOOK_S = 0.002
REPOSITORY = Path("/srv/repository")
CGROUP = Path(f"/sys/fs/cgroup/system.slice/{UNIT}/cgroup.procs")


@dataclass(frozen=True)
class Version:
    """A version of the package, with its files in the order in which dpkg unpacks them."""

    name: str
    deb: str
    files: tuple[str, ...]
    compiled: tuple[Path, ...] = ()

    @property
    def _kept(self) -> str:
        return f"/srv/compiled-{self.name}.tar"

    def installed(self) -> Version:
        """Return the version with its compiled files, which it keeps; it must be installed."""
        found = tuple(compiled())
        run("tar", "-cPf", self._kept, *map(str, found))
        return replace(self, compiled=found)

    def put_compiled(self) -> None:
        run("tar", "-xPf", self._kept)


def version(folder: str) -> Version:
    (deb,) = Path("/lab", folder).glob("nfstuned_*_amd64.deb")
    lines = run("dpkg-deb", "--contents", str(deb)).splitlines()
    files = tuple(line.split()[5].removeprefix(".") for line in lines if line.startswith("-"))
    return Version(deb.name.split("_")[1].partition("-")[0], str(deb), files)


class Change:
    """A run of dpkg from a version to another, in a session of its own."""

    def __init__(self, old: Version, new: Version, service_pid: int) -> None:
        self.old, self.new, self.service_pid = old, new, service_pid
        only_old = [file for file in old.files if file not in set(new.files)]
        self.old_file = Path(only_old[len(only_old) // 2])
        self.began = time.monotonic()
        output = Path("/results/killed-dpkg.txt").open("a")  # noqa: SIM115 - dpkg has it until its end
        self.process = subprocess.Popen(
            ["dpkg", "--install", new.deb], stdout=output, stderr=output, start_new_session=True
        )
        output.close()

    def written(self, part: float) -> bool:
        """Whether the new file at this part of the package is written, below a temporary name."""
        return os.path.exists(f"{self.new.files[int(part * (len(self.new.files) - 1))]}.dpkg-new")

    def runs(self, word: str) -> bool:
        """Whether a process of the session has this word in its command line."""
        return any(word.encode() in _command(pid) for pid in self.pids())

    def pids(self) -> Iterator[int]:
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) >= self.process.pid:
                with suppress(OSError):
                    fields = Path(f"/proc/{name}/stat").read_text().rpartition(") ")[2].split()
                    if int(fields[3]) == self.process.pid:
                        yield int(name)

    def kill_at(self, reached: Callable[[Change], bool]) -> float:
        """Kill the session once `reached` holds; return the seconds since its begin.

        Raises AssertionError where dpkg ends before that.
        """
        while not reached(self):
            assert self.process.poll() is None, "dpkg ended before the moment of its kill"
            time.sleep(LOOK_S)
        seconds = time.monotonic() - self.began
        os.killpg(self.process.pid, signal.SIGKILL)
        for pid in self.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        return seconds

    def service_begins(self) -> bool:
        return any(pid != self.service_pid for pid in service_pids())


def _command(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def service_pids(word: bytes = b"__main__.py\0daemon") -> list[int]:
    """Return the processes of the service with this word in their command line."""
    with suppress(OSError):
        return [int(pid) for pid in CGROUP.read_text().split() if word in _command(int(pid))]
    return []


def _half_compiled(change: Change) -> bool:
    # prerm has removed those of the old version, which may have the same names.
    return change.new.compiled[len(change.new.compiled) // 2].exists() and change.runs("compileall")


@dataclass(frozen=True)
class Moment:
    name: str
    reached: Callable[[Change], bool]
    with_service: bool = False
    """Whether the service is killed as well, so that it starts from the files of that moment."""


MOMENTS = (
    Moment("prerm of the old version runs", lambda change: change.runs("nfstuned.prerm")),
    Moment("the first new file is written", lambda change: change.written(0)),
    Moment("half of the new files are written", lambda change: change.written(0.5)),
    Moment(
        "the first new file has its name",
        lambda change: change.written(1) and not change.written(0),
        with_service=True,
    ),
    Moment(
        "half of the new files have their names",
        lambda change: change.written(1) and not change.written(0.5),
        with_service=True,
    ),
    Moment(
        "files of the old version alone are removed",
        lambda change: not change.old_file.exists(),
        with_service=True,
    ),
    Moment("postinst of the new version runs", lambda change: change.runs("nfstuned.postinst")),
    Moment("half of the Python files are compiled", _half_compiled, with_service=True),
    Moment("deb-systemd-helper runs", lambda change: change.runs("deb-systemd-helper")),
    Moment("systemctl daemon-reload runs", lambda change: change.runs("daemon-reload")),
    Moment("deb-systemd-invoke runs", lambda change: change.runs("deb-systemd-invoke")),
    Moment("the new service begins", Change.service_begins),
)


def dpkg_state() -> str:
    """Return dpkg's word for the package and the version."""
    shown = attempt(
        "dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Version}", "nfstuned"
    ).stdout
    return shown.partition("-1")[0]


def complete(old: Version, new: Version) -> Iterator[str]:
    """Complete the work of a killed dpkg as a person does; yield the commands. Raises CommandError.

    The compiled files are put in place first, as an installation leaves them: in emulation it takes long to
    compile them.
    """
    (old if dpkg_state() == f"half-configured {old.name}" else new).put_compiled()
    attempt("dpkg", "--configure", "-a", timeout=INSTALL_S)
    yield "dpkg --configure -a"
    if dpkg_state() != f"installed {new.name}":
        run("dpkg", "--install", new.deb, timeout=INSTALL_S)
        yield "dpkg --install"


def upgrade_by_apt(new: Version) -> None:
    """Let apt upgrade to the version, from a repository that has nothing else. Raises CommandError."""
    REPOSITORY.mkdir(exist_ok=True)
    data, name = Path(new.deb).read_bytes(), Path(new.deb).name
    (REPOSITORY / name).write_bytes(data)
    more = f"Filename: ./{name}\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
    (REPOSITORY / "Packages").write_text(run("dpkg-deb", "--field", new.deb) + more)
    source = REPOSITORY / "lab.list"
    source.write_text(f"deb [trusted=yes] file:{REPOSITORY} ./\n")
    options = ("-o", f"Dir::Etc::SourceList={source}", "-o", "Dir::Etc::SourceParts=-")
    run("apt-get", *options, "update")
    run("apt-get", *options, "--yes", "upgrade", timeout=INSTALL_S)
