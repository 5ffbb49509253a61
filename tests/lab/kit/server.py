"""An NFS server in the guest itself, on an address and under names like those of Azure Files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.kit.shell import run

ADDRESS = "10.10.10.10"
OTHER_ADDRESS = "10.10.10.11"
# Two accounts on one address, as in a private network where one endpoint carries both; a third on its own.
NAMES = {
    "sa1.file.core.windows.net": ADDRESS,
    "sa2.file.core.windows.net": ADDRESS,
    "sa3.file.core.windows.net": OTHER_ADDRESS,
    "nas.lab.internal": OTHER_ADDRESS,
}
AZURE = "sa1.file.core.windows.net"
AZURE_2 = "sa2.file.core.windows.net"
GENERIC = "nas.lab.internal"
GENERIC_KB = 1024
GENERIC_NUMBER = f"[profile.generic]\nread_ahead_kb = {GENERIC_KB}\n"
"""An administrator's read-ahead for servers without a vendor's, which the service leaves alone by itself."""
SHARES = ("a", "b", "c", "d")
_EXPORTS = Path("/etc/exports.d/lab.exports")
_HOSTS = Path("/etc/hosts")
_GRACE = Path("/proc/fs/nfsd/nfsv4gracetime")
GRACE_S, SHORT_GRACE_S = 90, 10
"""The kernel's own, and its least: a test that writes waits for the grace that an earlier test left."""
_OPTIONS = "rw,no_root_squash,no_subtree_check,crossmnt"


@dataclass
class Server:
    """The guest's NFS server: `/srv/<share>`, each share a file system of its own to the client."""

    shares: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Bring up addresses, names, shares and the server; quick when they are."""
        if self.running and self.shares.keys() >= set(SHARES):
            return
        for address in sorted(set(NAMES.values())):
            run("ip", "address", "replace", f"{address}/32", "dev", "lo")
        known = _HOSTS.read_text()
        missing = [f"{address} {name}\n" for name, address in NAMES.items() if name not in known]
        _HOSTS.write_text(known + "".join(missing))
        run("systemctl", "start", "nfs-server")
        # At its first request rpc.mountd flushes the kernel's caches (nfs-utils, support/export/auth.c).
        # A share that `exportfs -ra` tries at that moment fails: "does not support NFS export".
        run("showmount", "--no-headers", "--exports", ADDRESS)
        self.export(*(share for share in SHARES if share not in self.shares))

    @property
    def running(self) -> bool:
        """Whether it has threads that serve."""
        threads = Path("/proc/fs/nfsd/threads")
        return threads.exists() and int(threads.read_text()) > 0

    def stop(self, grace_s: int = SHORT_GRACE_S) -> None:
        """Stop the server; its clients wait for it, and for so long after its start only reclaim."""
        run("systemctl", "stop", "nfs-server")
        _GRACE.write_text(f"{grace_s}\n")

    def path(self, share: str) -> Path:
        return Path("/srv", share)

    def export(self, *shares: str, options: str = "") -> None:
        """Export more shares, or the same with other options (`insecure`)."""
        for share in shares:
            self.path(share).mkdir(parents=True, exist_ok=True)
            self.shares[share] = options
        _EXPORTS.parent.mkdir(exist_ok=True)
        _EXPORTS.write_text("".join(self._line(n, share) for n, share in enumerate(self.shares, 100)))
        # Without this the first mounts after a start can be refused: "access denied by server".
        run("exportfs", "-ra")

    def _line(self, fsid: int, share: str) -> str:
        more = self.shares[share]
        # Their own fsid makes folders of one disk separate superblocks to the client.
        return f"/srv/{share} *({_OPTIONS},fsid={fsid}{',' + more if more else ''})\n"
