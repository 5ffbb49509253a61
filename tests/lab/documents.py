"""`python -m tests.lab.documents NAME [KERNEL]`: measure in a guest, and write a page or pictures of docs/.

The guest's files stay in the results' folder; `python -m tests.bench.NAME FOLDER [KERNEL]` makes the page of
them again. NAME is a module of the kit and of tests/bench: performance, pictures, shapes or workloads.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.bench import performance, pictures, shapes, workloads
from tests.lab import guest, image, payload, runs


@dataclass(frozen=True, slots=True)
class Document:
    """A kernel and limits for the guest, and the function that makes the document's files.

    It gets the folder of the guest's files and the kernel's release.
    """

    kernel: str
    limits: guest.Limits
    make: Callable[[Path, str], Iterable[Path]]


def _draw(files: Path, release: str) -> Iterable[Path]:
    del release
    return pictures.draw(files, payload.PROJECT / "docs/pictures")


DOCUMENTS = {
    "performance": Document("6.12", guest.Limits(3600, quiet_s=1200, retries=2), performance.make),
    "pictures": Document("newest", guest.Limits(900, quiet_s=200, retries=2), _draw),
    "shapes": Document("6.12", guest.Limits(5400, quiet_s=900, retries=2), shapes.make),
    "workloads": Document("newest", guest.Limits(5400, quiet_s=600, retries=2), workloads.make),
}
"""shapes and workloads take 40 minutes each."""


def main(arguments: list[str]) -> int:
    """Return 0 when the files are made, 1 when the guest left nothing, 2 when it could not be tried."""
    if len(arguments) not in {1, 2} or arguments[0] not in DOCUMENTS:
        print(f"usage: python -m tests.lab.documents {'|'.join(DOCUMENTS)} [KERNEL]", file=sys.stderr)
        return 2
    name, document = arguments[0], DOCUMENTS[arguments[0]]
    try:
        image.ensure(_progress)
        release = image.release(arguments[1] if len(arguments) > 1 else document.kernel)
    except image.NoKernelError as error:
        _progress(str(error))
        return 2
    with tempfile.TemporaryDirectory() as folder:
        packed = payload.assemble(Path(folder), payload.Order(module=f"tests.lab.kit.{name}"))
        target = runs.folder() / f"{name}-{release}"
        boot = guest.boot(release, packed, target, guest.stdout_line, document.limits)
    if not boot.passed or boot.files is None:
        _progress(boot.explain())
        return 1
    for file in document.make(boot.files, release):
        _progress(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


def _progress(line: str) -> None:
    print(f"documents: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
