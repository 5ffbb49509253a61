"""`nfstuned check` next to a silent server and resolver, with rules of udev, and as another user."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.lab.kit import dns, rivals
from tests.lab.kit.check import GOOD, WITHOUT, check_is, findings, vendors_host
from tests.lab.kit.daemon import nfstuned_json
from tests.lab.kit.faults import silent
from tests.lab.kit.mounts import Mounted, Mounts
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, Server
from tests.lab.kit.shell import attempt, tuned
from tests.lab.kit.strangers import strangers

pytestmark = pytest.mark.system


@pytest.fixture(scope="module", autouse=True)
def _host(_server: Server) -> Iterator[None]:
    with vendors_host(_server):
        yield


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


@pytest.mark.usefixtures("stopped_daemon", "quiet_udev")
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_broken_rule_does_as_its_finding_reports(defect: str, mount: Mounts) -> None:
    text, tunes, spills = DEFECTS[defect]
    path = rivals.add_rule("99-vendor.rules", text)
    try:
        mounted = mount("a", GOOD)
        with strangers() as beside:
            rivals.settle()
            assert (mounted.read_ahead_kb == 15360) is tunes, f"{mounted.read_ahead_kb} KiB on NFS"
            others = {value.strip() for value in beside.values().values()}
            assert ("15360" in others) is spills, f"{others} KiB on other devices"
        check_is(f"udev-{defect}", "--select", "NFS105,NFS106,NFS107,NFS111")
    finally:
        path.unlink()
        rivals.reload_rules()


@pytest.mark.usefixtures("stopped_daemon")
def test_a_rule_that_sorts_before_nfs_utils_own_is_outrun(mount: Mounts) -> None:
    right = AWK.replace("$4", "$$4")
    path = rivals.add_rule(
        "90-vendor.rules", f'SUBSYSTEM=="bdi", ACTION=="add", {right}, ATTR{{read_ahead_kb}}="4096"\n'
    )
    try:
        mounted = mount("a", GOOD)
        rivals.settle()
        assert mounted.read_ahead_kb == 15360, "the later rule's value is not there"
        check_is("udev-outrun", "--select", "NFS105,NFS106,NFS107")
    finally:
        path.unlink()
        rivals.reload_rules()


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
