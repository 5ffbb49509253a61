"""A module of the kit that runs in a guest and leaves files, for scripts that make what docs/ shows."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.lab import guest, image, payload, results


def run(kernel: str, module: str, limits: guest.Limits) -> Path | None:
    """Boot a kernel, run a module there, and return the folder of what it left; None where it failed.

    Raises image.NoKernelError for a name that is none.
    """
    name = module.rpartition(".")[2]
    image.ensure(lambda line: say(name, line))
    release = image.release(kernel)
    target = results.folder() / f"{name}-{release}"
    with tempfile.TemporaryDirectory() as folder:
        packed = payload.assemble(Path(folder), payload.Order(module=module))
        boot = guest.boot(release, packed, target, guest.stdout_line, limits)
    if boot.passed and boot.files is not None:
        return boot.files
    say(name, boot.explain())
    return None


def say(name: str, line: str) -> None:
    """Say how far it is."""
    print(f"{name}: {line}", file=sys.stderr, flush=True)
