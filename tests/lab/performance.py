"""`python -m tests.lab.performance [KERNEL]`: measure anew what docs/performance.md says, in a guest.

What the guest left stays in the results' folder; `python -m tests.bench.performance FOLDER` makes the page's
tables and pictures of it once more.
"""

from __future__ import annotations

import sys

from tests.bench import performance
from tests.lab import errand, guest, image

USAGE = "usage: python -m tests.lab.performance [KERNEL]   (5.10, 6.1, 6.12, the default, last-6 or newest)"
MODULE = "tests.lab.kit.performance"
LIMITS = guest.Limits(total_s=3600, quiet_s=1200, retries=2)


def main(arguments: list[str]) -> int:
    """Return 0 when all is measured, 1 when the guest left nothing, 2 when it could not be tried."""
    if len(arguments) > 1 or arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0 if len(arguments) == 1 else 2
    try:
        files = errand.run(arguments[0] if arguments else "6.12", MODULE, LIMITS)
    except image.NoKernelError as error:
        errand.say("performance", str(error))
        return 2
    if files is None:
        return 1
    performance.take(files)
    for file in performance.write():
        errand.say("performance", f"{file}: {file.stat().st_size // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
