"""Print how the time of every reader of text grows with its text: python -m tests.bench.bench_growth [BOUND].

Each reads texts of repeated pieces that cost a naive reader the square of their length, or more: quotes and
brackets that never close, continued lines, blanks, names with dots. The length doubles up to BOUND
characters (by default LARGEST of nfstuned.host.root, a file's bound), or until a reader takes half a second.
The power is computed from the last three doublings: 1 is linear. Each reader's worst piece is printed.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from nfstuned import api
from nfstuned.errors import ConfigError, ParseError
from nfstuned.host.root import LARGEST
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import AutoMap, MapEntry
from nfstuned.parse.config.toml import parse_toml
from nfstuned.parse.etc import (
    autofs,
    automaps,
    certificate,
    fstab,
    nfsmount,
    parameters,
    resolver,
    services,
    tunnel,
    units,
    writers,
)
from nfstuned.parse.etc.installed import parse_installed
from nfstuned.parse.etc.nfsmount import in_version_order
from nfstuned.parse.fields import clean_path, mask_secrets, parse_kernel_options, quoted, unescape
from nfstuned.parse.keys import parse_keys
from nfstuned.parse.proc import (
    cifs,
    machine,
    mountinfo,
    mountstats,
    processes,
    sunrpc,
    superblocks,
)
from nfstuned.parse.samples import parse_line
from nfstuned.parse.udev.rules import parse_udev_rules
from tests.bench.timing import cpu_s

Reader = Callable[[str], object]
ENOUGH_S = 0.5
SMALLEST = 4096
MEASURABLE_S = 0.01
FEW, MANY = 250, 2000
"""Mounts, files and lines of a host that is checked."""


def as_bytes(read: Callable[[bytes], object]) -> Reader:
    """Let a reader of bytes read a text."""
    return lambda text: read(text.encode("utf-8", "surrogateescape"))


def unit(text: str) -> object:
    """Read a mount unit as far as to its request."""
    settings = [
        item for item in units.parse_unit("[Mount]\n" + text, "f") if not isinstance(item, ParseError)
    ]
    return units.mount_request("mnt.mount", settings, {})


def entry(text: str) -> object:
    """Read an entry of an automounter's map."""
    auto = AutoMap("/a", "", "", "auto.a", "", "f", 1)
    return autofs.mount_requests(MapEntry("key", "-rw " + text, "f", 1), auto, {"HOST": "h" * 64})


def automount(text: str) -> object:
    """Read the automounter's sources."""
    with suppress(ParseError):
        return automaps.parse_automount("automount:" + text)
    return None


READERS: dict[str, Reader] = {
    "autofs entry": entry,
    "autofs map": partial(autofs.parse_map, file="f"),
    "auto.master": partial(autofs.parse_master, file="f"),
    "auto.master, several maps": lambda text: autofs.parse_master("/a multi:" + text, "f"),
    "autofs.conf": partial(autofs.parse_master_name, file="f"),
    "sssd.conf": automaps.starts_autofs,
    "automount in nsswitch.conf": automount,
    "fstab": fstab.parse_fstab,
    "findmnt --verify": lambda text: fstab.parse_verify(text, text),
    "utab": fstab.parse_utab,
    "installed files": partial(parse_installed, file="f"),
    "modprobe.d": partial(parameters.parse_modprobe, file="f"),
    "sysctl.d": partial(parameters.parse_sysctl, file="f"),
    "nfsmount.conf": nfsmount.parse_nfsmount,
    "mount.nfs": as_bytes(nfsmount.parse_mount_nfs),
    "hosts": resolver.parse_hosts,
    "nsswitch.conf": resolver.parse_sources,
    "stunnel": partial(tunnel.parse_stunnel, file="f", provider="p"),
    "stunnel, whom it trusts": partial(tunnel.parse_services, file="f"),
    "tunnels of AZNFS": partial(tunnel.parse_tunnel_list, file="f"),
    "stunnel's log": tunnel.parse_refusal,
    "certificates": partial(certificate.parse_certificates, file="f"),
    "certificate": lambda text: certificate.parse_certificates("-----BEGIN CERTIFICATE-----\n" + text, "f"),
    "environment": partial(tunnel.parse_variable, name="AZURE"),
    "unit": unit,
    "unit names": lambda text: (units.unit_name(text), units.unit_path(text)),
    "systemctl show": services.parse_units,
    "tuned.conf": partial(writers.parse_ini, file="f"),
    "aznfs": partial(writers.parse_aznfs, file="f", section="s"),
    "nfstuned.toml": partial(parse_toml, "f"),
    "udev rules": parse_udev_rules,
    "bdi": partial(superblocks.parse_read_ahead, file="f"),
    "uevent": as_bytes(partial(superblocks.parse_uevent, subsystem="bdi")),
    "cifs DebugData": cifs.parse_debug_data,
    "cifs Stats": cifs.parse_stats,
    "osrelease": machine.parse_release,
    "os-release": machine.parse_os_release,
    "modules": machine.parse_modules,
    "kernel config": machine.parse_kernel_config,
    "slabinfo": machine.parse_slabinfo,
    "mountinfo": mountinfo.parse_mountinfo,
    "mountinfo of all": mountinfo.parse_nodes,
    "mountstats": mountstats.parse_mountstats,
    "mountstats, cut": as_bytes(lambda data: mountstats.parse_stanzas([data])),
    "mountstats, saved": as_bytes(mountstats.kernel_text),
    "nfsfs servers": superblocks.parse_clients,
    "nfsfs volumes": superblocks.parse_volumes,
    "maps": processes.parse_mapped,
    "exports": processes.parse_exports,
    "unix": processes.parse_unix,
    "overlay": processes.parse_layers,
    "tcp": tunnel.parse_listening,
    "tasks": lambda text: tuple(sunrpc.parse_requests(text, 1, "f")),
    "sample": lambda text: parse_line(text.encode("utf-8", "surrogateescape"), "f", 1),
    "keys": as_bytes(parse_keys),
    "options": parse_options,
    "kernel options": parse_kernel_options,
    "path": clean_path,
    "escapes": unescape,
    "message": quoted,
    "secrets": mask_secrets,
    "versions": lambda text: in_version_order(text.split("\n")),
}
# fmt: off
PIECES = (
    "a", "0", " ", "\t", "\n", "a\n", "a b\n", "\\", "\\\n", "a\\\n", "#\n", "\r\n", '"', '"a', "'", "\0",
    "01", "=", "a=1\n", "a = 1,", ",", "a,", ":", "::", "/", "//", "//u:", "//u:@", "[", "[a]\n", "{", "(",
    ")",
    "&", "$", "$HOST", "${", "%", "%a", "*", "-", "-a ", "+", "+a\n", ".", "a.", "a.a = 1\n", "[[a]]\n", "<",
    '"a".', "s:/a ", "s,", "s:/a /m nfs rw 0 0\n", "user=", "pass", "password=", "password=a\n", "sig=",
    "\\040", "\udcff", "\u00b2", "1 2 0:3 / /m rw - nfs s:/a rw\n", "[Mount]\nWhat=a\n", "GOTO=",
    'GOTO="a"\n', 'A=="b", ', 'A=="b"\\\n', "device s:/a mounted on /m with fstype nfs\n", "v4 ", "1.",
    "\timpl_id:\tname='", "',domain='", "',date='0,0'\n", "\n\n", "\tper-op statistics\n", "include=a\n",
    'key "', "a: b\n", "{a=",
)
# fmt: on


def seconds(read: Reader, text: str, runs: int = 1) -> float:
    """Return the least CPU time of some runs."""

    def once() -> None:
        with suppress(ParseError, ConfigError, ValueError):
            made = read(text)
            if isinstance(made, Iterable) and not isinstance(made, str):
                deque(made, maxlen=0)

    return cpu_s(once, runs)


def text_of(piece: str, length: int) -> str:
    """Return the piece repeated to about so many characters."""
    return piece * (length // len(piece))


def exponent(read: Reader, piece: str, most: int) -> tuple[float, float, int]:
    """Return the power of the length with which the time grows at the end, that time, and the length."""
    times: list[float] = []
    length = SMALLEST
    while True:
        times.append(seconds(read, text_of(piece, length), 3))
        if length * 2 > most or times[-1] > ENOUGH_S:
            break
        length *= 2
    last = times[-4:]
    return math.log2(max(last[-1], 1e-6) / max(last[0], 1e-6)) / max(len(last) - 1, 1), last[-1], length


def hosts(number: int) -> dict[str, dict[str, str]]:
    """Return by name the files of hosts with so many mounts, lines or sections."""
    each = range(number)
    return {
        "servers": {"etc/fstab": "".join(f"nas{n}:/v /mnt/{n} nfs vers=4.1,nconnect=4 0 0\n" for n in each)},
        "a server": {"etc/fstab": "".join(f"nas:/v{n} /mnt/{n} nfs vers=4.1,nconnect=4 0 0\n" for n in each)},
        "Azure": {
            "etc/fstab": "".join(f"a.file.core.windows.net:/a/{n} /mnt/{n} nfs vers=4.1 0 0\n" for n in each)
        },
        "SMB": {"etc/fstab": "".join(f"//nas/v{n} /mnt/{n} cifs vers=3.0 0 0\n" for n in each)},
        "sections": {
            "etc/fstab": "".join(f"nas{n}:/v /mnt/{n} nfs vers=4.1 0 0\n" for n in each),
            "etc/nfsmount.conf": "".join(f'[ Server "nas{n}" ]\nnconnect=4\n' for n in each),
        },
        "a map": {
            "etc/auto.master": "/a auto.a\n",
            "etc/auto.a": "".join(f"k{n} -vers=4.1 nas{n % 50}:/v{n}\n" for n in each),
        },
        "units": {
            f"etc/systemd/system/mnt-{n}.mount": f"[Mount]\nWhat=nas:/{n}\nWhere=/mnt/{n}\nType=nfs\n"
            for n in each
        },
        "udev rules": {
            "etc/udev/rules.d/60-x.rules": "".join(
                f'SUBSYSTEM=="bdi", ENV{{x{n}}}="{n}", GOTO="e{n}"\nLABEL="e{n}"\n' for n in each
            )
        },
        "mounts": {
            "proc/1/mountinfo": "".join(
                f"{100 + n} 27 0:{100 + n} / /mnt/{n} rw - nfs4 nas{n}:/v rw,vers=4.1,addr=10.1.2.4\n"
                for n in each
            ),
            **{f"sys/class/bdi/0:{100 + n}/read_ahead_kb": "128\n" for n in each},
        },
    }


def check_seconds(files: dict[str, str], runs: int = 1) -> float:
    """Return the least CPU time of some checks of a host with these files."""
    with TemporaryDirectory() as folder:
        for name, text in {"proc/sys/kernel/osrelease": "6.12.43\n", **files}.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return cpu_s(lambda: api.diagnose(folder, network=api.Network()), runs)


def main(arguments: list[str]) -> None:
    """Print the worst of each reader."""
    most = int(arguments[0]) if arguments else LARGEST
    print(f"{'':<20} {'power':>5} {'seconds':>8} {'characters':>10}  repeated")
    for name, read in READERS.items():
        rows = [(*exponent(read, piece, most), piece) for piece in PIECES]
        power, took, length, piece = max(rows, key=lambda row: row[0] if row[1] > MEASURABLE_S else 0.0)
        print(f"{name:<20} {power:5.2f} {took:8.3f} {length:>10,}  {piece!r}", flush=True)
    print(f"\n{'a check of':<20} {'power':>5} {'seconds':>8} {'of them':>10}")
    for name in hosts(0):
        short, long = (check_seconds(hosts(number)[name], 3) for number in (FEW, MANY))
        print(f"{name:<20} {math.log2(long / short) / math.log2(MANY / FEW):5.2f} {long:8.3f} {MANY:>10,}")


if __name__ == "__main__":
    main(sys.argv[1:])
