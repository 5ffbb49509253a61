"""The installed service and command, driven as an administrator drives them."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nfstuned.host.telemetry.journal import Message
from tests.lab.kit.mounts import Mounted
from tests.lab.kit.shell import COMMAND_S, PATIENCE_S, attempt, run, wait_for

UNIT = "nfstuned.service"
ETC = Path("/etc/nfstuned")
STATE = Path("/run/nfstuned")
Entry = dict[str, str]


@dataclass
class Journal:
    """Entries after the mark, which is where the journal stood when this was made."""

    cursor: str = field(default_factory=lambda: _cursor())

    def mark(self) -> None:
        """Forget the entries until now."""
        self.cursor = _cursor()

    def entries(self, *matches: str) -> list[Entry]:
        """Return the entries since the mark that fit journalctl's matches (`_PID=1`), oldest first."""
        run("journalctl", "--sync")
        text = run("journalctl", "-o", "json", "--all", "--after-cursor", self.cursor, *matches)
        return [_entry(json.loads(line)) for line in text.splitlines()]

    def messages(self, *matches: str) -> list[str]:
        return [entry.get("MESSAGE", "") for entry in self.entries("--output-fields=MESSAGE", *matches)]


def _entry(raw: dict[str, object]) -> Entry:
    """Journalctl prints bytes that are no text, and repeated fields, as lists."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in raw.items()}


def _cursor() -> str:
    run("journalctl", "--sync")
    text = run("journalctl", "-n", "1", "--show-cursor", "-q", "-o", "cat")
    return text.rpartition("-- cursor: ")[2].strip()


@dataclass
class Daemon:
    """`nfstuned.service`. `start` returns when it is READY, because its type is notify."""

    journal: Journal = field(default_factory=Journal)

    def configure(self, text: str, drop_in: str | None = None) -> Path:
        """Write the administrator's file, or one of conf.d; a running daemon sees it at its next reload."""
        path = ETC / "conf.d" / f"{drop_in}.toml" if drop_in else ETC / "nfstuned.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def start(self, configuration: str = "") -> None:
        """Start it, with this text as the administrator's file."""
        if configuration:
            self.configure(configuration)
        run("systemctl", "start", UNIT)

    def restart(self) -> None:
        run("systemctl", "restart", UNIT)

    def reload(self) -> None:
        run("systemctl", "reload", UNIT)

    def stop(self) -> None:
        run("systemctl", "stop", UNIT)

    def signal(self, name: str) -> None:
        """Send a signal (`KILL`, `STOP`, `HUP`) to the main process."""
        run("systemctl", "kill", "--kill-whom=main", f"--signal=SIG{name}", UNIT)

    def show(self, name: str) -> str:
        """Return one property of the unit, as systemctl prints it (`ActiveState`, `StatusText`)."""
        return unit_property(UNIT, name)

    @property
    def active(self) -> bool:
        return self.show("ActiveState") == "active"

    @property
    def pid(self) -> int:
        """The main process; 0 without one."""
        return int(self.show("MainPID"))

    @property
    def status_text(self) -> str:
        """Its last STATUS= to systemd."""
        return self.show("StatusText")

    @property
    def rss_kb(self) -> int:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise LookupError("no VmRSS")

    def entries(self, **fields: str) -> list[Entry]:
        """Return its journal entries of this test that have these fields (`NFSTUNED_DEVICE="0:45"`)."""
        return self.journal.entries(
            f"_SYSTEMD_UNIT={UNIT}", *(f"{name}={value}" for name, value in fields.items())
        )

    def wait_for_entry(self, seconds: float = PATIENCE_S, **fields: str) -> Entry:
        """Wait for such an entry and return the first."""
        wait_for(f"a journal entry with {fields}", lambda: bool(self.entries(**fields)), seconds)
        return self.entries(**fields)[0]

    def about(self, message: Message, mounted: Mounted) -> list[Entry]:
        return self.entries(MESSAGE_ID=message.id, NFSTUNED_DEVICE=mounted.device)

    @property
    def failed_cycles(self) -> list[str]:
        """The messages about cycles that failed since the test began."""
        return [entry["MESSAGE"] for entry in self.entries(MESSAGE_ID=Message.CYCLE_FAILED.id)]

    def clean(self) -> None:
        """Stop it and take away its configuration and its state, as if it had never run."""
        attempt("systemctl", "stop", UNIT)
        attempt("systemctl", "reset-failed", UNIT)
        for folder in (ETC, STATE):
            shutil.rmtree(folder, ignore_errors=True)


def unit_property(unit: str, name: str) -> str:
    return run("systemctl", "show", "--property", name, "--value", unit).strip()


def nfstuned(*argv: str, timeout: float = COMMAND_S, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the installed command and return however it ended."""
    return attempt("nfstuned", *argv, timeout=timeout, stdin=stdin)


def nfstuned_json(*argv: str, timeout: float = COMMAND_S) -> dict[str, object]:
    """Run the installed command with `--format json` and return its document; any exit status will do."""
    done = nfstuned(*argv, "--format", "json", timeout=timeout)
    document = json.loads(done.stdout)
    if not isinstance(document, dict):
        raise TypeError(f"not an object: {done.stdout[:200]}")
    return document


def status_rows() -> dict[str, dict[str, Any]]:
    mounts = nfstuned_json("status")["mounts"]
    assert isinstance(mounts, list)
    return {row["mount_point"]: row for row in mounts}
