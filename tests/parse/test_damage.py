"""Every parser of a text: damaged files and other texts are read, or refused with a line that they have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.host.network.names import name_server_lines, parse_hosts, parse_sources
from nfstuned.model.mounts import MapEntry, UnitSetting
from nfstuned.parse.etc.autofs import mount_requests, parse_map, parse_master, parse_master_name
from nfstuned.parse.etc.automaps import STATUSES, parse_automount
from nfstuned.parse.etc.certificate import parse_certificates
from nfstuned.parse.etc.cloud import DEFAULTS, cloud_requests, parse_cloud
from nfstuned.parse.etc.parameters import (
    parse_boot_entry,
    parse_grub_config,
    parse_grub_defaults,
    parse_grub_environment,
    parse_modprobe,
    parse_sysctl,
)
from nfstuned.parse.etc.requests import parse_fstab, parse_utab, parse_verify
from nfstuned.parse.etc.settings import parse_aznfs, parse_ini, parse_nfsmount
from nfstuned.parse.etc.tunnel import (
    parse_mountmap,
    parse_refusal,
    parse_services,
    parse_stunnel,
    parse_tunnel_list,
)
from nfstuned.parse.etc.units import mount_request, parse_unit
from nfstuned.parse.proc import mounts, processes
from nfstuned.parse.proc.cifs import parse_debug_data, parse_stats
from nfstuned.parse.proc.machine import parse_os_release, parse_release
from nfstuned.parse.proc.mountstats import parse_mountstats
from nfstuned.parse.proc.sunrpc import parse_requests
from nfstuned.parse.udev_rules import parse_udev_rules
from tests.parse import (
    test_autofs,
    test_certificate,
    test_cifs,
    test_cloud,
    test_fstab,
    test_mounts,
    test_mountstats,
    test_nsswitch,
    test_parameters,
    test_settings,
    test_sunrpc,
    test_tunnel,
    test_udevrules,
    test_units,
)
from tests.parse.damage import any_text, damaged, tokens_damaged

Reader = Callable[[str], Iterable[object]]


def unit(text: str) -> Iterable[object]:
    settings = parse_unit(text, "f")
    known = [one for one in settings if isinstance(one, UnitSetting)]
    return (*settings, *mount_request("mnt-a.mount", known, {}))


def cloud(text: str) -> Iterable[object]:
    found = parse_cloud(text, "f")
    return cloud_requests(found.mounts or (), found.defaults or DEFAULTS, "f")


def automount(text: str) -> Iterable[object]:
    sources, _ = parse_automount(text)
    return [source.ends <= {*STATUSES} for source in sources]


def tunnels(text: str) -> Iterable[object]:
    found = parse_stunnel(text, "f", "p")
    yield [one.port for one in found] == [one.port for one in parse_services(text, "f")]
    yield from (0 < one.port < 1 << 16 and 0 < one.host_port < 1 << 16 and one.host != "" for one in found)


def rules(text: str) -> Iterable[object]:
    parsed, last = parse_udev_rules(text), 1 + sum(map(text.count, "\n\r\0"))
    places = [(one.line, one.last) for one in parsed.rules]
    places += [(one.line, one.last) for one in parsed.defects]
    return [1 <= line <= end <= last for line, end in places]


def boot(text: str) -> Iterable[object]:
    release = test_parameters.RELEASE
    yield parse_boot_entry(text, release, parse_grub_environment(text))
    yield from (parse_grub_config(text, release), parse_grub_defaults(text, {}))


def names(text: str) -> Iterable[object]:
    yield all(parse_hosts(text).values())
    yield all(parse_sources("hosts:" + text))
    yield name_server_lines(text).count("\n") <= text.count("\n") + 1


def aznfs(text: str) -> Iterable[object]:
    found = parse_aznfs(text, "/f", "aznfs")
    yield found is None or int(found.value) >= 0
    yield from (one.line >= 1 for one in parse_ini(text, "/f"))


def verdict(text: str) -> Iterable[object]:
    return [count > 0 for count in (parse_verify(text, text) or {}).values()]


def entry(text: str) -> Iterable[object]:
    for auto in (test_autofs.HOME, test_autofs.DIRECT):
        for key in ("k", text):
            yield from mount_requests(MapEntry(key, text, "f", 1), auto, {"HOST": "&$"})


READERS: dict[str, tuple[str, str, Reader]] = {
    "auto.master": (test_autofs.MASTER, "/home /x ", lambda text: parse_master(text, "f")),
    "auto.misc": (test_autofs.MISC, "a ", lambda text: parse_map(text, "f")),
    "autofs.conf": ("[autofs]\nmaster_map_name = x\n", "", lambda text: [parse_master_name(text, "f")]),
    "an entry of a map": (test_autofs.SERVER, "-ro ", entry),
    "certificates": (
        test_certificate.ENDED + test_certificate.ROOT,
        test_certificate.BEGIN,
        lambda text: parse_certificates(text, "f"),
    ),
    "cifs/DebugData": (
        test_cifs.NEW + test_cifs.OLD,
        "",
        lambda text: [one.channels >= 1 and one.address != "" for one in parse_debug_data(text)],
    ),
    "cifs/Stats": (
        test_cifs.OLD_STATS + test_cifs.NEW_STATS,
        "",
        lambda text: [one.metadata >= 0 and one.data >= 0 for one in parse_stats(text)],
    ),
    "cloud.cfg": (test_cloud.FLOW + test_cloud.DASHES, "mounts:", cloud),
    "fstab": (test_fstab.REAL, "s:/ /m nfs ", parse_fstab),
    "utab": (test_fstab.UTAB_ROWS, "", parse_utab),
    "findmnt": (test_fstab.OUTPUT + test_fstab.ERRORS, "", verdict),
    "os-release": ("ID=x\nVERSION_ID='1'\n", "ID=", lambda text: [parse_os_release(text)]),
    "osrelease": ("6.12.107+deb13-cloud-amd64\n", "6.", lambda text: [parse_release(text)]),
    "mountinfo": (test_mounts.REAL, test_mounts.LINE, mounts.parse_mountinfo),
    "the tree of mounts": (
        test_mounts.REAL,
        test_mounts.LINE,
        lambda text: [len(mounts.parse_nodes(text)) <= text.count("\n") + 1],
    ),
    "mountstats": (test_mountstats.REAL, test_mountstats.HEADER, parse_mountstats),
    "nfsmount.conf": (test_settings.REAL, "[ NFSMount_Global_Options ]\n", parse_nfsmount),
    "nsswitch.conf": (test_nsswitch.RHEL_8, "automount: files [", automount),
    "modprobe.d": (
        test_parameters.REAL,
        "options ",
        lambda text: [s.line > 0 for s in parse_modprobe(text, "f")],
    ),
    "sysctl.d": (test_parameters.SYSCTL, "", lambda text: [one.line > 0 for one in parse_sysctl(text, "f")]),
    "boot entries": (test_parameters.ENTRY + test_parameters.GRUB_CFG, "", boot),
    "hosts": ("127.0.0.1 localhost\nhosts: files [!UNAVAIL=return] dns\nnameserver ::1%lo\n", "[", names),
    "tasks of RPC": (
        test_sunrpc.TASKS_510 + test_sunrpc.TASKS_73,
        "",
        lambda text: [request.operation != "" for request, _ in parse_requests(text, 1, "f")],
    ),
    "nfsfs/volumes": (test_mounts.REAL_ROWS, "v4 ", mounts.parse_volumes),
    "nfsfs/servers": (test_mounts.REAL_ROWS, "v4 ", mounts.parse_clients),
    "one volume": (test_mounts.REAL_ROWS, "v4 ", lambda text: [mounts.find_volume(text, "0:46")]),
    "read_ahead_kb": ("128\n", "1", lambda text: [0 <= mounts.parse_read_ahead(text, "f") < 1 << 64]),
    "a device number": ("0:46", "0:", lambda text: [mounts.is_device_number(text) in {True, False}]),
    "stunnel.conf": (test_tunnel.REAL + test_tunnel.AZNFS, "", tunnels),
    "mountmap": ("sa2 10.161.100.101 52.1.2.4\n", "", lambda text: parse_mountmap(text, "f", "azure-blob")),
    "tunnels of aznfs": (test_tunnel.ENTRY, "", lambda text: parse_tunnel_list(text, "f")),
    "stunnel.log": (test_tunnel.REFUSED, "", lambda text: [parse_refusal(text)]),
    "udev rules": (test_udevrules.VENDOR + test_udevrules.DROPPED + test_udevrules.KEPT, "", rules),
    "a unit": (test_units.REAL, test_units.REAL, unit),
    "writers": (test_settings.TUNED + test_settings.AZNFS, "", aznfs),
    "fdinfo": ("mnt_id:\t64\n", "mnt_id:\t", lambda text: [processes.parse_mount_id(text)]),
    "maps": ("7f0000000000-7f0000001000 rw-s 00000000 00:2b 12 /mnt/a\n", "", processes.parse_mapped),
    "swaps": ("Filename\n/mnt/a file 1 0 -2\n", "Filename\n", processes.parse_swaps),
    "exports": ("/srv/a\t*(rw,sync)\n", "", processes.parse_exports),
    "unix": ("Num\n0: 3 0 0 1 03 559 /mnt/a\n", "Num\n", processes.parse_unix),
    "layers": ("rw,lowerdir=/mnt/a:relative:/l2,upperdir=/u", "lowerdir=", processes.parse_layers),
}
"""By a parser's file: a real text, the start of a line, and its rows; False is a promise that was broken."""


_YAML_BREAK = "\r\n|[\n\r\x85\u2028\u2029]"
"""A line break as YAML counts it (chapter 5.4 of YAML 1.1, which PyYAML reads)."""


@pytest.mark.parametrize("name", READERS)
@given(data=st.data())
def test_any_text_is_read_or_refused_with_its_line(name: str, data: st.DataObject) -> None:
    real, start, read = READERS[name]
    text = data.draw(st.one_of(damaged(real), tokens_damaged(real), any_text, any_text.map(start.__add__)))
    try:
        rows = list(read(text))
    except ParseError as error:
        rows = [error]
    assert not any(row is False for row in rows)
    breaks = _YAML_BREAK if name == "cloud.cfg" else "\n"
    lines = len(re.findall(breaks, text)) + 1
    assert [str(row) for row in rows if isinstance(row, ParseError) and not 0 <= row.line <= lines] == []
