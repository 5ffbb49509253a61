"""`python -m tests.lab.pictures [KERNEL]`: make the pictures of docs/pictures anew, in a guest.

What the guest left stays in the results' folder; `python -m tests.bench.pictures` draws it once more.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.bench import pictures
from tests.lab import guest, image, payload, results

USAGE = "usage: python -m tests.lab.pictures [KERNEL]   (5.10, 6.1, 6.12, last-6 or newest, the default)"
MODULE = "tests.lab.kit.pictures"
TARGET = payload.PROJECT / "docs/pictures"
LIMITS = guest.Limits(total_s=900, quiet_s=200, retries=2)


def main(arguments: list[str]) -> int:
    """Return 0 when the pictures are drawn, 1 when the guest left none, 2 when it could not be tried."""
    if len(arguments) > 1 or arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0 if len(arguments) == 1 else 2
    image.ensure(_progress)
    try:
        release = image.release(arguments[0] if arguments else "newest")
    except image.NoKernelError as error:
        _progress(str(error))
        return 2
    target = results.folder() / f"pictures-{release}"
    with tempfile.TemporaryDirectory() as folder:
        packed = payload.assemble(Path(folder), payload.Order(module=MODULE))
        boot = guest.boot(release, packed, target, guest.stdout_line, LIMITS)
    if not boot.passed or boot.files is None:
        _progress(boot.explain())
        return 1
    for picture in pictures.draw(boot.files, TARGET):
        _progress(f"{picture}: {picture.stat().st_size // 1000} kB")
    return 0


def _progress(line: str) -> None:
    print(f"pictures: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
