"""What connections carry, how many slots they have, and what lines about them cannot do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.app.facts import Scope
from nfstuned.core.mounts.targets import targets
from nfstuned.model.facts import Facts, Measured
from nfstuned.model.mounts import Setting, Snapshot
from nfstuned.model.samples import OpRate, TransportRate
from nfstuned.model.system import CommandLine, KernelSetting, NfsUtils, System
from tests.core.nconnect_hosts import AZURE, LIVE, NAS, POLICY, Made, facts, faults, subjects
from tests.parse.test_samples import SAMPLE


def test_connections_of_the_host_s_mount_are_not_those_of_a_container_s_with_its_source_and_point() -> None:
    """The container keeps what the host mounted again after the server got another address."""
    shown = "vers=4.1,proto=tcp"
    found = facts(Made("/a", None, f"{shown},nconnect=4"), Made("/a", None, shown, at="10.0.0.6")).snapshot
    kept, new = found.superblocks
    assert [len(stats.transports) for stats in found.stanzas.values()] == [1]
    assert faults("NFS208", judged(found))
    away = kept._replace(mounts=(replace(kept.mounts[0], foreign=True),))
    assert not faults("NFS208", judged(replace(found, superblocks=(away, new))))


def judged(snapshot: Snapshot) -> Facts:
    return Facts(LIVE, snapshot, POLICY, targets(snapshot, POLICY))


def test_slots_of_an_image_are_what_its_files_set_last_and_the_kernels_default_else() -> None:
    name = "sunrpc.tcp_max_slot_table_entries"
    image = facts(lines=("10.9.0.4:/v /v vers=3", "10.9.0.5:/v /w vers=4.1"), has=Scope(image=True).has)
    assert subjects("NFS210", image) == ["/etc/fstab:100"]
    assert subjects("NFS211", image) == ["/etc/fstab:101"]
    for values, told in (((129,), 1), ((128,), 0), ((65536, 128), 0), ((128, 256), 1)):
        settings = tuple(KernelSetting(name, str(value), "/etc/modprobe.d/a.conf", 1) for value in values)
        assert len(faults("NFS210", replace(image, system=System(settings=settings)))) == told


def test_slots_of_a_running_kernel_are_what_it_says() -> None:
    live = facts(Made("/a", source="10.9.0.5:/v"))
    assert not faults("NFS211", live)
    assert faults("NFS211", facts(lines=("10.9.0.5:/v /w vers=4.1",)))  # nothing is loaded yet
    for value, told in (("64", 1), ("179", 1), ("180", 0), ("odd", 0)):
        system = System(parameters={"nfs.max_session_slots": value})
        assert len(faults("NFS211", replace(live, system=system))) == told


def test_slots_are_the_host_s_and_the_mounts_that_are_counted_need_not_be_of_one_server() -> None:
    lines = tuple(f"10.9.0.{number}:/v /w{number} vers=4.1" for number in (5, 6, 7))
    for count, told in ((1, "under way"), (2, "; the same for 1 more mount"), (3, "for 2 more mounts")):
        (fault,) = faults("NFS211", facts(lines=lines[:count]))
        assert fault.message.endswith(told)


SLOT = "tcp_max_slot_table_entries"
SLOTS, OPTION = f"sunrpc.{SLOT}", f"options sunrpc {SLOT}=128"
SESSION = "max_session_slots"
LINE = "the kernel's command line"
MODPROBE, SYSCTL = "/etc/modprobe.d", "/etc/sysctl.d"
NOW = f"for now: sudo sysctl {SLOTS}=128, then unmount and mount again"


@pytest.mark.parametrize(
    ("cmdline", "file", "value", "remedy"),
    [
        ("", "", "", f"{OPTION} into {MODPROBE}/sunrpc-slots.conf"),
        ("", "/usr/lib/modprobe.d/vendor.conf", "256", f"{OPTION} into {MODPROBE}/vendor_nfs.conf"),
        ("", f"{MODPROBE}/a.conf", "256", f"{SLOT}=128 instead of {SLOT}=256 in {MODPROBE}/a.conf:7"),
        ("", "/usr/lib/sysctl.d/50-nfs.conf", "256", f"{SLOTS}=128 into {SYSCTL}/sunrpc-slots.conf"),
        ("64", "/etc/sysctl.conf", "256", f"{SLOTS}=128 instead of {SLOTS}=256 in /etc/sysctl.conf:7"),
        ("512", f"{MODPROBE}/a.conf", "64", f"{SLOTS}=128 instead of {SLOTS}=512 on {LINE}"),
        ("", f"{MODPROBE}/a.conf", "64", ""),
    ],
)
def test_slots_are_set_where_they_are_decided(cmdline: str, file: str, value: str, remedy: str) -> None:
    settings = (KernelSetting(SLOTS, value, file, 7),) if file else ()
    system = System(settings=settings, cmdline=CommandLine(f"{SLOTS}={cmdline}" if cmdline else ""))
    image = facts(lines=("10.9.0.4:/v /v vers=3",), has=Scope(image=True).has, system=system)
    assert [fault.remedy for fault in faults("NFS210", image)] == ([f"write {remedy}"] if remedy else [])
    running = replace(system, parameters={SLOTS: "65536"})
    (live,) = faults("NFS210", replace(image, has=Scope(offline=True).has, system=running))
    assert live.remedy == (f"write {remedy}; {NOW}" if remedy else NOW)


@pytest.mark.parametrize(
    ("folder", "value", "loaded", "remedy"),
    [
        (MODPROBE, "100", "64", f"{SESSION}=180 instead of {SESSION}=100 in {MODPROBE}/z.conf:7"),
        (MODPROBE, "256", "64", ""),
        # There is no such sysctl.
        (SYSCTL, "180", "", f"options nfs {SESSION}=180 into {MODPROBE}/nfs-slots.conf"),
    ],
)
def test_session_slots_are_set_where_it_counts(folder: str, value: str, loaded: str, remedy: str) -> None:
    name = f"nfs.{SESSION}"
    settings = (KernelSetting(name, value, f"{folder}/z.conf", 7),)
    system = System(parameters={name: loaded} if loaded else {}, settings=settings)
    (fault,) = faults("NFS211", facts(lines=("10.9.0.5:/v /w vers=4.1",), system=system))
    assert fault.remedy == (f"write {remedy}, then reboot" if remedy else "reboot")


def _configured(*values: tuple[str, str | None, str, str]) -> Facts:
    found = facts()
    settings = tuple(
        Setting(section, argument, name, value, "/etc/nfsmount.conf", line)
        for line, (section, argument, name, value) in enumerate(values, 1)
    )
    return replace(found, snapshot=replace(found.snapshot, settings=settings))


def test_nconnect_of_nfsmount_conf_is_a_number_that_the_kernel_takes() -> None:
    for values, told in ((("1", "16", "$count", "0x4"), 0), (("17", "0", "4k", "True"), 1)):
        for value in values:
            assert len(faults("NFS214", _configured(("server", "nas", "nconnect", value)))) == told, value


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("proto", "tcp", ""),
        ("Proto", "Tcp", "Proto=Tcp: proto takes rdma, rdma6, tcp, tcp6, udp or udp6, and every mount"),
        ("Sec", "SYS", "Sec=SYS: sec takes the flavours of nfs(5), and every mount"),
        ("Rsize", "8k", ""),
        ("Rsize", "8q", "Rsize=8q: rsize takes a number without a unit, and every mount"),
        ("local_lock", "posix", ""),
        ("local_lock", "flock", "local_lock=flock becomes local_lock=0: mount.nfs reads a value with k,"),
        ("Defaultproto", "tcp", ""),
        ("Defaultproto", "Tcp", "Defaultproto=Tcp has no effect: it takes rdma, rdma6, tcp"),
    ],
)
def test_a_value_of_nfsmount_conf_counts_as_mount_nfs_hands_it_on(name: str, value: str, said: str) -> None:
    told = faults("NFS214", _configured(("nfsmount_global_options", None, name, value)))
    assert len(told) == bool(said)
    assert all(fault.message.startswith(said) for fault in told)


def test_an_option_of_nfsmount_conf_is_one_that_somebody_knows() -> None:
    names = ("nconect", "Rsize", "Defaultvers", "Defaultsize", "retry", "x-mine")
    found = [faults("NFS214", _configured(("nfsmount_global_options", None, name, "4"))) for name in names]
    assert [len(each) for each in found] == [1, 0, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("sloppy", "told"),
    [("True", ["/etc/nfsmount.conf:3"]), ("False", [f"/etc/nfsmount.conf:{n}" for n in (1, 2, 3)])],
)
def test_sloppy_skips_names_and_what_is_no_number_but_no_bound(sloppy: str, told: list[str]) -> None:
    section = ("nfsmount_global_options", None)
    settings = (("nconect", "4"), ("rsize", "much"), ("nconnect", "17"), ("Sloppy", sloppy))
    assert subjects("NFS214", _configured(*((*section, *setting) for setting in settings))) == told


def test_a_setting_that_a_later_one_replaces_refuses_nothing() -> None:
    pair = ("server", "nas", "nconnect")
    assert not faults("NFS214", _configured((*pair, "99"), (*pair, "4")))


@pytest.mark.parametrize(
    ("utils", "told"),
    [
        (None, []),
        (NfsUtils(), []),
        (NfsUtils((2, 3, 3)), []),
        (NfsUtils((2, 6, 2), drop_ins=True), [1, 3]),
        (NfsUtils((2, 8, 3), drop_ins=True), []),
    ],
)
def test_an_older_mount_nfs_has_the_last_value_for_all(utils: NfsUtils | None, told: list[int]) -> None:
    lines = (
        ("server", "nas", "nconnect", "4"),
        ("server", "nas", "retrans", "4"),
        ("mountpoint", "/a", "timeo", "600"),
        ("server", "other", "Nconnect", "8"),
        ("mountpoint", "/b", "timeo", "700"),
        ("nfsmount_global_options", None, "nconnect", "2"),
    )
    found = replace(_configured(*lines), system=System(nfs_utils=utils))
    assert subjects("NFS214", found) == [f"/etc/nfsmount.conf:{line}" for line in told]
    for fault in faults("NFS214", found):
        assert "mount.nfs 2.6.2 uses one " in fault.message


def test_a_section_that_no_mount_can_be_in_is_told_once() -> None:
    lines = (
        ("servers", "nas", "nconnect", "4"),
        ("servers", "nas", "rsize", "64k"),
        ("server", "fd00::5", "nconnect", "4"),
        ("server", "[fd00", "nconnect", "4"),  # what mount.nfs makes of [fd00::5]:/export
        ("environment", None, "count", "99"),
    )
    assert subjects("NFS214", _configured(*lines)) == ["/etc/nfsmount.conf:1", "/etc/nfsmount.conf:3"]


def test_only_a_line_with_remount_relies_on_remount() -> None:
    options = ("remount,nconnect=4", "remount,ro", "nconnect=4", "remount,v4.2")
    found = facts(lines=tuple(f"{NAS}:/{n} /{n} {text}" for n, text in enumerate(options)))
    assert subjects("NFS213", found) == ["/etc/fstab:100", "/etc/fstab:103"]


def _sampled(
    depth: float, per_s: float, rtt_ms: float, sent: tuple[int, ...], pending: float | None = None
) -> Facts:
    made = Made("/a", None, "vers=4.1,proto=tcp,nconnect=4", f"{AZURE}:/sa1/s", connections=4)
    sample = replace(
        SAMPLE,
        device="0:50",
        ops={"READ": OpRate(per_s, rtt_ms, 0.0, rtt_ms, 0.0, 0.0)},
        transport=TransportRate("v4.1 tcp 10.0.0.5:2049", 4, depth, 0.0, pending=pending),
    )
    return facts(made, measured=Measured(10.0, (sample,), {"0:50": sent} if sent else {}))


@pytest.mark.parametrize(
    ("depth", "sent", "told"),
    [
        (16.1, (9, 9, 9, 9), 1),
        (16.0, (9, 9, 9, 9), 0),
        (33.0, (9, 9, 0, 0), 1),
        (40.0, (), 0),  # on how many connections that is nobody knows
        (64.1, (), 1),
    ],
)
def test_a_queues_depth_is_of_all_busy_connections(depth: float, sent: tuple[int, ...], told: int) -> None:
    assert len(faults("NFS209", _sampled(depth, 4000, 20, sent))) == told


def test_what_a_broken_connection_lost_is_not_under_way() -> None:
    """Sends less receives never loses it; a thread that waits for each answer finds a hundred requests."""
    sent = (250, 250, 250, 250)
    for pending, deep, alone in ((0.0, 0, 1), (19.0, 1, 0), (None, 0, 0)):
        found = _sampled(101.0, 400, 2, sent, pending)
        assert (len(faults("NFS209", found)), len(faults("NFS212", found))) == (deep, alone)


def test_a_depth_without_the_count_of_waiting_requests_is_confirmed_by_their_time() -> None:
    """RDMA and old kernels."""
    for rtt_ms, told in ((20, 1), (10, 1), (9, 0)):
        assert len(faults("NFS209", _sampled(20.0, 4000, rtt_ms, (9, 9, 9, 9)))) == told


def test_a_connection_is_silent_only_beside_a_busy_one() -> None:
    assert faults("NFS208", _sampled(2, 400, 2, (64, 60, 0, 62)))
    for sent in ((63, 60, 0, 62), (64, 1, 1, 1), (0, 0, 0, 0)):
        assert not faults("NFS208", _sampled(2, 400, 2, sent))
