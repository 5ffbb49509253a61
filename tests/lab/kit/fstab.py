"""The guest's /etc/fstab for a while: as text, and with lines as systemd takes them at boot."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

from tests.lab.kit.shell import attempt, run

if TYPE_CHECKING:
    from collections.abc import Iterator

_FSTAB = Path("/etc/fstab")
POINTS = Path("/mnt/asked")


@contextlib.contextmanager
def replaced(text: str) -> Iterator[None]:
    """Have this text in fstab while the block runs; systemd is not told."""
    before = _FSTAB.read_text()
    _FSTAB.write_text(text)
    try:
        yield
    finally:
        _FSTAB.write_text(before)


@contextlib.contextmanager
def lines(*asked: tuple[str, str, str]) -> Iterator[None]:
    """Add lines to fstab, each a name, a source and its options, and have systemd know them."""
    before = _FSTAB.read_text()
    for name, _, _ in asked:
        (POINTS / name).mkdir(parents=True, exist_ok=True)
    _FSTAB.write_text(
        before + "".join(f"{source} {POINTS / name} nfs {more} 0 0\n" for name, source, more in asked)
    )
    run("systemctl", "daemon-reload")
    try:
        yield
    finally:
        for name, _, _ in asked:
            attempt("systemctl", "stop", unit(name), unit(name).replace(".mount", ".automount"), timeout=200)
            attempt("systemctl", "reset-failed", unit(name))
        _FSTAB.write_text(before)
        run("systemctl", "daemon-reload")


def unit(name: str) -> str:
    return f"mnt-asked-{name}.mount"
