"""`python -m tests.lab.documents [KERNEL]`: draw docs/pictures in a guest with mounts in use.

The guest's files stay in the results' folder; `python -m tests.bench.pictures FOLDER TARGET` draws them
again.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench import pictures
from tests.lab import guest, image, payload, runs

LIMITS = guest.Limits(900, quiet_s=200, retries=2)


def main(arguments: list[str]) -> int:
    """Return 0 when the files are made, 1 when the guest left nothing, 2 when it could not be tried."""
    if len(arguments) > 1:
        print("usage: python -m tests.lab.documents [KERNEL]", file=sys.stderr)
        return 2
    try:
        image.ensure(_progress)
        release = image.release(arguments[0] if arguments else "newest")
    except image.NoKernelError as error:
        _progress(str(error))
        return 2
    with tempfile.TemporaryDirectory() as folder:
        packed = payload.assemble(Path(folder), payload.Order(module="tests.lab.kit.pictures"))
        boot = guest.boot(release, packed, runs.folder() / f"pictures-{release}", guest.stdout_line, LIMITS)
    if not boot.passed or boot.files is None:
        _progress(boot.explain())
        return 1
    for file in pictures.draw(boot.files, payload.PROJECT / "docs/pictures"):
        _progress(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


def _progress(line: str) -> None:
    print(f"pictures: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
