"""`nfstuned check` of mounts, tunnels, options and udev rules, next to a silent server, as any user."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.kit import dns, rivals
from tests.lab.kit.check import GOOD, WITHOUT, check_is, findings, ids, vendors_host
from tests.lab.kit.daemon import nfstuned_json
from tests.lab.kit.faults import silent
from tests.lab.kit.mounts import Mounted, Mounts, nfs_clients, table_device
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, Server
from tests.lab.kit.shell import attempt, program, restored, run, tuned, wait_for
from tests.lab.kit.strangers import strangers
from tests.lab.kit.tunnel import CONFIGURATION, TLS_PORT, tunnel

pytestmark = [pytest.mark.kernel, pytest.mark.newest]

AGE_S = 2.0
"""mountstats counts ages in seconds."""


def _unmount(mount: Mounts, *mounts: Mounted) -> None:
    """Unmount, and wait for the end of the nfs_client, which its state manager may keep a little longer.

    A client that outlives its tunnel is found by the next mount of the server, which then shares its address.
    """
    for mounted in mounts:
        mount.umount(mounted)
    wait_for(
        "the end of the tunnel's nfs_client",
        lambda: not [row for row in nfs_clients() if row.port == TLS_PORT],
    )


@pytest.fixture(scope="module", autouse=True)
def _host(_server: Server) -> Iterator[None]:
    with vendors_host(_server):
        yield


@pytest.mark.usefixtures("running_daemon")
def test_one_share_an_account_is_clean(mount: Mounts) -> None:
    tuned(15360, mount("a", GOOD))
    check_is("clean")


@pytest.mark.usefixtures("running_daemon")
def test_a_second_mount_gets_the_connections_of_the_first(mount: Mounts) -> None:
    first = mount("a", WITHOUT)
    time.sleep(AGE_S)  # so that the superblocks' ages differ
    tuned(15360, first, mount("b", GOOD))
    check_is("first-mount-wins-v4")


@pytest.mark.release
@pytest.mark.usefixtures("running_daemon")
def test_a_tunnel_that_lives_and_one_that_died(mount: Mounts) -> None:
    with tunnel() as client:
        mounted = mount("a", f"{GOOD},port={TLS_PORT}", host="127.0.0.1")
        tuned(15360, mounted)
        check_is("tls")
        client.kill()
        client.wait()
        check_is("tls-helper-down")
    with tunnel():
        # Without one the unmount would wait for ever.
        _unmount(mount, mounted)


@pytest.mark.release
@pytest.mark.usefixtures("running_daemon")
def test_a_tls_mount_after_a_clear_one_goes_in_the_clear(mount: Mounts) -> None:
    with tunnel():
        clear = mount("b", GOOD)
        tunnelled = mount("a", f"{GOOD},port={TLS_PORT}", host="127.0.0.1")
        tuned(15360, clear, tunnelled)
        assert tunnelled.options["addr"] == ADDRESS
        check_is("tls-in-the-clear")


@pytest.mark.release
@pytest.mark.usefixtures("running_daemon")
def test_a_clear_mount_after_a_tls_one_goes_through_its_tunnel(mount: Mounts) -> None:
    with tunnel():
        mounts = [mount("a", f"{GOOD},port={TLS_PORT}", host="127.0.0.1"), mount("b", GOOD)]
        tuned(15360, *mounts)
        assert mounts[1].options["addr"] == "127.0.0.1"
        check_is("tls-shared-tunnel")
        _unmount(mount, *mounts)


LOOKS = 3
SAMPLED = ("--offline", "--sample", "5", "--select", "NFS421")
ONE_CONNECTION = f"vers=4.1,noresvport,port={TLS_PORT}"
READ = ("fio", "--name=read", "--thread", "--rw=read", "--size=64M")
MANY = ("--bs=1M", "--direct=1", "--ioengine=libaio", "--iodepth=16", "--time_based", "--runtime=300")
"""mountstats counts ages in seconds."""


@pytest.mark.release
def test_a_tunnel_of_which_a_thread_has_all_of_a_processor(mount: Mounts) -> None:
    """With one connection a reader is as fast as one thread of stunnel; two mounts of the server share it.

    The tunnel's client has a processor, and its server another: both ends on one would share it.
    """
    with tunnel():
        try:
            first, second = (mount(share, ONE_CONNECTION, host="127.0.0.1") for share in ("a", "b"))
            assert findings(*SAMPLED) == []
            argv = [*READ, f"--directory={first.point}"]
            run(*argv, "--fallocate=none", "--create_only=1")
            with program(*argv, *MANY):
                time.sleep(AGE_S)
                looks = (findings(*SAMPLED) for _ in range(LOOKS))
                found = next(filter(None, looks), [])
                if not found:
                    print(attempt("top", "-b", "-H", "-d", "5", "-n", "2").stdout)
            (first.point / "read.0.0").unlink()
        finally:
            # Without the tunnel the unmount would wait for ever.
            mount.clean()
    print(f"\n  {found}")
    (only,) = found
    assert only.startswith(f"advice NFS421 {CONFIGURATION}: in 5 s a thread of the tunnel had ")
    assert f"it is the limit for {first.point}, {second.point} together" in only


@pytest.mark.system
@pytest.mark.usefixtures("running_daemon")
def test_a_hung_server_and_a_resolver_that_never_answers(mount: Mounts) -> None:
    mounts: list[Mounted] = [mount("a", GOOD), mount("b", GOOD, host=AZURE_2)]
    tuned(15360, *mounts)
    with silent(ADDRESS), dns.silence():
        # Emulation is some ten times slower than a machine; the bound of 10 s is for that.
        document = nfstuned_json("check", timeout=120)
    found, unknown = document["findings"], document["unknown"]
    assert isinstance(found, list)
    assert isinstance(unknown, list)
    assert {one["rule"] for one in found} == {"NFS405"}, found
    assert {host for host in (AZURE, AZURE_2) if any(host in line for line in unknown)} == {AZURE, AZURE_2}


TEST = "'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}' /proc/fs/nfsfs/volumes"
AWK = f'PROGRAM="/usr/bin/awk -v bdi=$kernel {TEST}"'
DEFECTS = {
    # name: (the rule's text, whether it sets a new NFS mount, whether it sets other devices)
    "flattened": (
        f'SUBSYSTEM=="bdi" \\ , ACTION=="add" \\ , {AWK} \\ , ATTR{{read_ahead_kb}}="15360"\n',
        False,
        False,
    ),
    "missing-backslashes": (
        f'SUBSYSTEM=="bdi"\n, ACTION=="add"\n, {AWK}\n, ATTR{{read_ahead_kb}}="15360"\n',
        True,
        True,
    ),
    "dollar-four": (f'SUBSYSTEM=="bdi", ACTION=="add", {AWK}, ATTR{{read_ahead_kb}}="15360"\n', True, False),
}


@pytest.mark.release
@pytest.mark.usefixtures("stopped_daemon", "quiet_udev")
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_broken_rule_does_as_its_finding_reports(defect: str, mount: Mounts) -> None:
    text, tunes, spills = DEFECTS[defect]
    with rivals.rule("99-vendor.rules", text):
        mounted = mount("a", GOOD)
        with strangers() as others:
            rivals.settle()
            assert (mounted.read_ahead_kb == 15360) is tunes, f"{mounted.read_ahead_kb} KiB on NFS"
            values = {value.strip() for value in others.values().values()}
            assert ("15360" in values) is spills, f"{values} KiB on other devices"
        check_is(f"udev-{defect}", "--select", "NFS105,NFS106,NFS107,NFS111")


@pytest.mark.release
@pytest.mark.usefixtures("stopped_daemon")
def test_a_rule_that_sorts_before_nfs_utils_own_is_outrun(mount: Mounts) -> None:
    right = AWK.replace("$4", "$$4")
    text = f'SUBSYSTEM=="bdi", ACTION=="add", {right}, ATTR{{read_ahead_kb}}="4096"\n'
    with rivals.rule("90-vendor.rules", text):
        mounted = mount("a", GOOD)
        rivals.settle()
        assert mounted.read_ahead_kb == 15360, "the later rule's value is not there"
        check_is("udev-outrun", "--select", "NFS105,NFS106,NFS107")


@pytest.mark.system
@pytest.mark.usefixtures("running_daemon")
def test_every_user_gets_the_same_verdict(mount: Mounts) -> None:
    tuned(15360, mount("a", WITHOUT), mount("b", GOOD))
    mine = findings("--offline")
    done = attempt(
        "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "nfstuned", "check", "--offline"
    )
    assert done.returncode == 1, done.stderr
    for line in mine:
        rule = line.split(" ")[1]
        assert rule in done.stdout, f"{rule} is not in:\n{done.stdout}"


CONF = Path("/etc/nfsmount.conf")
BASE = "vers=4.1"
OPTIONS = (
    *("nconnect=1", "nconnect=16", "nconnect=0", "nconnect=17", "nconnect=four", "nconnect"),
    *("rsize=1048576", "rsize=1M", "rsize", "timeo=600", "timeo=0", "retrans=0", "retrans=-1", "acregmin=x"),
    *("lookupcache=pos", "lookupcache=some", "local_lock=all", "local_lock=true", "sec=sys", "sec=ntlm"),
    *("proto=tcp", "proto=quic", "port=2049", "port=70000"),
    *("minorversion=9", "vers=4,minorversion=1", "vers=4,minorversion=9"),
    *("hard", "nohard", "hard=1", "nosoft", "softreval", "nosoftreval", "resvport", "nonoresvport", "noac"),
    *("nconect=4", "vers=3,mountvers=4", "vers=3,mountproto=rdma"),
)
SETTINGS = (
    *("hard=True", "hard=False", "Soft=True", "Soft=False", "Softerr=True", "resvport=True"),
    *("noresvport=False", "ac=False", "cto=False", "Lock=True", "Intr=False"),
    *("rsize=8k", "rsize=True", "nconnect=4", "nconnect=17", "nconnect=True", "timeo=600", "timeo=long"),
    *("lookupcache=none", "lookupcache=some", "sec=sys", "sec=sis", "Background=False", "dev=False"),
)


@pytest.fixture
def nfsmount_conf() -> Iterator[Path]:
    with restored(CONF):
        yield CONF


@pytest.mark.usefixtures("quiet_udev")
def test_options_of_fstab(mount: Mounts, tmp_path: Path) -> None:
    points = [mount.new_point() for _ in OPTIONS]
    proposal = tmp_path / "fstab"
    rows = (f"{AZURE}:/srv/a {at} nfs {_options(one)} 0 0\n" for at, one in zip(points, OPTIONS, strict=True))
    proposal.write_text("".join(rows))
    found = ids("--offline", "--select", "NFS309", "--fstab", str(proposal))
    wrong = {one for number, one in enumerate(OPTIONS, 1) if f"NFS309 {proposal}:{number}" in found}
    made = {one for one, at in zip(OPTIONS, points, strict=True) if _mounts(at, _options(one))}
    assert wrong == {*OPTIONS} - made


@pytest.mark.usefixtures("quiet_udev")
@pytest.mark.release
def test_settings_of_nfsmount_conf(mount: Mounts, nfsmount_conf: Path) -> None:
    point = mount.new_point()
    section = f'[ MountPoint "{point}" ]\n'
    refused = set()
    for setting in SETTINGS:
        nfsmount_conf.write_text(f"{section}{setting}\n")
        if not _mounts(point, BASE):
            refused.add(setting)
    sections = (f'[ MountPoint "/{number}" ]\n{setting}\n' for number, setting in enumerate(SETTINGS))
    nfsmount_conf.write_text("".join(sections))
    found = ids("--offline", "--select", "NFS214")
    wrong = {
        one for number, one in enumerate(SETTINGS) if f"NFS214 {nfsmount_conf}:{2 * number + 2}" in found
    }
    assert wrong == refused


@pytest.mark.usefixtures("quiet_udev")
def test_a_list_of_types_mounts_nfs(mount: Mounts) -> None:
    for types in ("nfs4,nfs", "nfs,ext4", "ext4,nfs"):
        point = mount.new_point()
        done = attempt("mount", "-t", types, "-o", BASE, f"{AZURE}:/srv/a", str(point))
        if types.startswith("nfs"):
            assert done.returncode == 0, done.stderr
        # Before Linux 5.12 mount(8) ends at a first type that it knows and that wants a device.
        if done.returncode == 0:
            assert table_device(point) is not None
        else:
            assert "special device" in done.stderr


def _options(one: str) -> str:
    return one if one.startswith("vers=") else f"{BASE},{one}"


def _mounts(point: Path, options: str) -> bool:
    """Whether a mount is made; it is taken away again."""
    done = attempt("mount", "-t", "nfs", "-o", options, f"{AZURE}:/srv/a", str(point))
    if done.returncode == 0:
        run("umount", str(point))
    return done.returncode == 0
