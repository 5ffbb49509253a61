"""The measurements of docs/performance.md: a mount 20 ms away, as in another region of a cloud.

Leaves a document of `nfstuned bench` among the results for each measurement. Nothing of them is changed
afterwards. Client and server are one guest, between which netem holds each packet for 10 ms each way.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lab.kit.clones import clone, shaped
from tests.lab.kit.server import AZURE, Server
from tests.lab.kit.shell import CommandError

RESULTS = Path("/results")
FAR = ("netem", "delay", "10ms", "limit", "100000")
MACHINE = "0123456789abcdef0123456789abcdef"
POINT = "/run/clone"
COMMON = ("--yes", "--format", "json")
MEASUREMENTS = (
    ("quick-20ms", ("--compare", "--size", "64M")),
    ("read-ahead-20ms", ("--suite", "read-ahead", "--repeats", "5", "--size", "64M")),
    ("model-loading-20ms", ("--suite", "model-loading", "--compare", "--size", "256M")),
)
"""The names of the documents, and how bench is called for each.

Emulation makes files slowly, so that they are small: what is read once more comes from the server again. Of a
mapped file it does not, whose pages stay: that file is larger than what a run can read.
"""
MOST_S = 1800.0


def main() -> int:
    """Leave the documents; return the exit status."""
    try:
        Server().start()
        folder = RESULTS / "clone"
        folder.mkdir()
        with clone(1, MACHINE, folder) as far, shaped(far, *FAR):
            far.mount(f"{AZURE}:/srv/a", "vers=4.1,nconnect=4")
            for name, words in MEASUREMENTS:
                print(f"lab: {name}", flush=True)
                argv = ("nfstuned", "bench", POINT, *COMMON, *words)
                (RESULTS / f"{name}.json").write_text(far.enter(*argv, timeout=MOST_S))
            far.umount()
    except (CommandError, AssertionError) as error:
        print(f"@failed {error}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
