"""`python -m tests.lab.performance [KERNEL]`: measure anew what docs/performance.md says, in a guest.

What the guest left stays in the results' folder; `python -m tests.bench.performance FOLDER` makes the page's
tables and pictures of it once more.
"""

from __future__ import annotations

import sys

from tests.bench import performance
from tests.lab import errand, guest

if __name__ == "__main__":
    limits = guest.Limits(total_s=3600, quiet_s=1200, retries=2)
    sys.exit(errand.command("performance", "6.12", limits, performance.make))
