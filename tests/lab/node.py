"""A guest that is a node of a cluster on this machine: `python -m tests.lab.node KERNEL PAYLOAD TARGET`.

dev/cluster calls it, and ends it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lab import guest, image

_NETWORK = (
    *("-netdev", "tap,id=node,ifname=node0,script=no,downscript=no"),
    *("-device", "virtio-net-pci,netdev=node,romfile="),
)
_LIMITS = guest.Limits(total_s=3600, first_s=240, quiet_s=3600, retries=2)


if __name__ == "__main__":
    _kernel, _payload, _target = sys.argv[1:]
    _system = guest.System(image.release(_kernel), more=_NETWORK)
    print(guest.boot(_system, Path(_payload), Path(_target), guest.stdout_line, _LIMITS).explain())
