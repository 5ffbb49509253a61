"""`python -m tests.lab.pictures [KERNEL]`: make the pictures of docs/pictures anew, in a guest.

What the guest left stays in the results' folder; `python -m tests.bench.pictures` draws it once more.
"""

from __future__ import annotations

import sys

from tests.bench import pictures
from tests.lab import errand, guest, payload

if __name__ == "__main__":
    limits = guest.Limits(total_s=900, quiet_s=200, retries=2)
    target = payload.PROJECT / "docs/pictures"
    sys.exit(errand.command("pictures", "newest", limits, lambda files, _: pictures.draw(files, target)))
