"""`python -m tests.lab.workloads [KERNEL]`: measure what docs/workloads.md shows, in a guest.

It takes about 40 minutes. What the guest left stays in the results' folder;
`python -m tests.bench.workloads FOLDER KERNEL` writes the page once more.
"""

from __future__ import annotations

import sys

from tests.bench import workloads
from tests.lab import errand, guest

if __name__ == "__main__":
    limits = guest.Limits(total_s=5400, quiet_s=600, retries=2)
    sys.exit(errand.command("workloads", "newest", limits, workloads.make))
