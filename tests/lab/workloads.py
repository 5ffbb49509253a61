"""`python -m tests.lab.workloads [KERNEL]`: measure what docs/workloads.md shows, in a guest.

It takes about 40 minutes. What the guest left stays in the results' folder;
`python -m tests.bench.workloads FILE` draws it once more.
"""

from __future__ import annotations

import sys

from tests.bench import workloads
from tests.lab import errand, guest, image

USAGE = "usage: python -m tests.lab.workloads [KERNEL]   (5.10, 6.1, 6.12, last-6 or newest, the default)"
LIMITS = guest.Limits(total_s=5400, quiet_s=600, retries=2)


def main(arguments: list[str]) -> int:
    """Return 0 when the page is written, 1 when the guest left nothing, 2 when it could not be tried."""
    if len(arguments) > 1 or arguments in (["-h"], ["--help"]):
        print(USAGE)
        return 0 if len(arguments) == 1 else 2
    kernel = arguments[0] if arguments else "newest"
    try:
        files = errand.run(kernel, "tests.lab.kit.workloads", LIMITS)
    except image.NoKernelError as error:
        errand.say("workloads", str(error))
        return 2
    if files is None:
        return 1
    workloads.write(files / "workloads.jsonl", image.release(kernel))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
