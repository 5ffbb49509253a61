"""`python -m tests.lab.pictures [KERNEL]`: make the pictures of docs/pictures anew, in a guest.

What the guest left stays in the results' folder; `python -m tests.bench.pictures` draws it once more.
"""

from __future__ import annotations

import sys

from tests.bench import pictures
from tests.lab import errand, guest, image, payload

USAGE = "usage: python -m tests.lab.pictures [KERNEL]   (5.10, 6.1, 6.12, last-6 or newest, the default)"
MODULE = "tests.lab.kit.pictures"
TARGET = payload.PROJECT / "docs/pictures"
LIMITS = guest.Limits(total_s=900, quiet_s=200, retries=2)


def main(arguments: list[str]) -> int:
    """Return 0 when the pictures are drawn, 1 when the guest left none, 2 when it could not be tried."""
    if len(arguments) > 1 or arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0 if len(arguments) == 1 else 2
    try:
        files = errand.run(arguments[0] if arguments else "newest", MODULE, LIMITS)
    except image.NoKernelError as error:
        errand.say("pictures", str(error))
        return 2
    if files is None:
        return 1
    for picture in pictures.draw(files, TARGET):
        errand.say("pictures", f"{picture}: {picture.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
