"""Lines of the guest's /etc/fstab, as systemd takes them at boot."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from tests.lab.kit.shell import attempt, restored, run

FSTAB = Path("/etc/fstab")
POINTS = Path("/mnt/asked")


def append(text: str) -> None:
    """Add lines to fstab, and have systemd know them."""
    with FSTAB.open("a") as file:
        file.write(text)
    run("systemctl", "daemon-reload")


@contextlib.contextmanager
def lines(*asked: tuple[str, str, str]) -> Iterator[None]:
    """Add lines to fstab, each a name, a source and its options, and have systemd know them."""
    for name, _, _ in asked:
        (POINTS / name).mkdir(parents=True, exist_ok=True)
    with restored(FSTAB):
        append("".join(f"{source} {POINTS / name} nfs {more} 0 0\n" for name, source, more in asked))
        try:
            yield
        finally:
            for name, _, _ in asked:
                units = (unit(name), unit(name).replace(".mount", ".automount"))
                attempt("systemctl", "stop", *units, timeout=200)
                attempt("systemctl", "reset-failed", unit(name))
    run("systemctl", "daemon-reload")


def unit(name: str) -> str:
    return f"mnt-asked-{name}.mount"
