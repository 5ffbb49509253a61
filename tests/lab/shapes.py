"""`python -m tests.lab.shapes [KERNEL]`: hold what bench proposes to the best of a sweep, in a guest.

It takes about 40 minutes. What the guest left becomes the table of docs/performance.md;
`python -m tests.bench.shapes FILE KERNEL` makes it once more.
"""

from __future__ import annotations

import sys

from tests.bench import shapes
from tests.lab import errand, guest, image

USAGE = "usage: python -m tests.lab.shapes [KERNEL]   (5.10, 6.1, 6.12, the default, last-6 or newest)"
LIMITS = guest.Limits(total_s=5400, quiet_s=900, retries=2)


def main(arguments: list[str]) -> int:
    """Return 0 when the table is written, 1 when the guest left nothing, 2 when it could not be tried."""
    if len(arguments) > 1 or arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0 if len(arguments) == 1 else 2
    kernel = arguments[0] if arguments else "6.12"
    try:
        files = errand.run(kernel, "tests.lab.kit.shapes", LIMITS)
    except image.NoKernelError as error:
        errand.say("shapes", str(error))
        return 2
    if files is None:
        return 1
    shapes.write(files / "shapes.jsonl", image.release(kernel))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
