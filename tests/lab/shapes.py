"""`python -m tests.lab.shapes [KERNEL]`: hold what bench proposes to the best of a sweep, in a guest.

It takes about 40 minutes. What the guest left becomes a table of docs/performance.md;
`python -m tests.bench.shapes FOLDER KERNEL` makes it once more.
"""

from __future__ import annotations

import sys

from tests.bench import shapes
from tests.lab import errand, guest

if __name__ == "__main__":
    limits = guest.Limits(total_s=5400, quiet_s=900, retries=2)
    sys.exit(errand.command("shapes", "6.12", limits, shapes.make))
