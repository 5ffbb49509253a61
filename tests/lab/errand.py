"""A module of the kit that runs in a guest and leaves files, of which something in docs/ is made."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.lab import guest, image, payload, runs

KERNELS = "5.10, 6.1, 6.12, last-6 or newest"


def command(name: str, kernel: str, limits: guest.Limits, make: Callable[[Path, str], Iterable[Path]]) -> int:
    """Be `python -m tests.lab.NAME [KERNEL]`: run the kit's module of that name, and make the files of docs/.

    `make` gets the folder of what the guest left and the kernel's release. Returns 0 when the files are made,
    1 when the guest left nothing, 2 when it could not be tried.
    """
    arguments = sys.argv[1:]
    if len(arguments) > 1 or arguments in (["-h"], ["--help"]):
        print(f"usage: python -m tests.lab.{name} [KERNEL]   ({KERNELS}; by default {kernel})")
        return 0 if len(arguments) == 1 else 2
    try:
        image.ensure(lambda line: _say(name, line))
        release = image.release(arguments[0] if arguments else kernel)
    except image.NoKernelError as error:
        _say(name, str(error))
        return 2
    files = _run(name, release, limits)
    if files is None:
        return 1
    for file in make(files, release):
        _say(name, f"{file}: {file.stat().st_size // 1000} kB")
    return 0


def _run(name: str, release: str, limits: guest.Limits) -> Path | None:
    target = runs.folder() / f"{name}-{release}"
    with tempfile.TemporaryDirectory() as folder:
        packed = payload.assemble(Path(folder), payload.Order(module=f"tests.lab.kit.{name}"))
        boot = guest.boot(release, packed, target, guest.stdout_line, limits)
    if boot.passed and boot.files is not None:
        return boot.files
    _say(name, boot.explain())
    return None


def _say(name: str, line: str) -> None:
    print(f"{name}: {line}", file=sys.stderr, flush=True)
