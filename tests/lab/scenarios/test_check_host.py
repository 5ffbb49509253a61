"""`nfstuned check` of what is around mounts: names, ports, fstab, udev's rules, and who asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.lab.kit import dns, fstab, rivals
from tests.lab.kit.check import AGREED, GOOD, WITHOUT, check_is, findings, vendors_host
from tests.lab.kit.daemon import nfstuned_json
from tests.lab.kit.expect import tuned
from tests.lab.kit.network import silent
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, GENERIC
from tests.lab.kit.shell import attempt, run
from tests.lab.kit.strangers import strangers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

PUBLIC = ("52.239.238.8", "52.239.238.7")
pytestmark = pytest.mark.system


@pytest.fixture(scope="module", autouse=True)
def _host(_server: Server) -> Iterator[None]:
    with vendors_host(_server):
        yield


@pytest.fixture
def public() -> Iterator[None]:
    """The guest's server also has addresses of the public internet."""
    for address in PUBLIC:
        run("ip", "address", "replace", f"{address}/32", "dev", "lo")
    yield
    for address in PUBLIC:
        run("ip", "address", "del", f"{address}/32", "dev", "lo")


@pytest.mark.usefixtures("running_daemon", "public")
def test_nconnect_over_public_endpoints(mount: Mounts) -> None:
    records = [f"address=/{name}/{address}" for name, address in zip((AZURE, AZURE_2), PUBLIC, strict=True)]
    with dns.zone(records):
        tuned(15360, mount("a", GOOD), mount("b", WITHOUT, host=AZURE_2))
        check_is("public-endpoints")


@pytest.mark.usefixtures("running_daemon")
def test_several_shares_of_one_account_over_a_private_endpoint(mount: Mounts) -> None:
    with dns.zone(_private(AZURE, ADDRESS)):
        tuned(15360, mount("a", GOOD), mount("b", WITHOUT), mount("c", WITHOUT))
        check_is("private-endpoint-three-shares")


@pytest.mark.usefixtures("running_daemon", "public")
def test_a_privatelink_chain_that_ends_public(mount: Mounts) -> None:
    with dns.zone(_private(AZURE, PUBLIC[0])):
        tuned(15360, mount("a", GOOD))
        check_is("privatelink-not-linked")


@pytest.mark.usefixtures("running_daemon")
def test_an_address_that_changed_after_the_mount(mount: Mounts) -> None:
    with dns.zone(_private(AZURE, ADDRESS)):
        tuned(15360, mount("a", GOOD))
    with dns.zone(_private(AZURE, "10.10.10.11")):
        check_is("address-drift")


@pytest.mark.usefixtures("running_daemon")
def test_a_filtered_port(mount: Mounts) -> None:
    tuned(15360, mount("a", GOOD))
    with silent(ADDRESS):
        check_is("port-filtered")


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


@pytest.mark.usefixtures("running_daemon")
def test_a_soft_mount_and_kerberos_in_fstab(mount: Mounts) -> None:
    tuned(15360, mount("a", f"{GOOD},soft"))
    asked = (
        f"{GENERIC}:/srv/b /mnt/krb nfs vers=4.2,sec=krb5p,nconnect=4,_netdev,nofail 0 0\n"
        f"{AZURE_2}:/sa2/c /mnt/azure nfs {GOOD},sec=krb5,_netdev,nofail 0 0\n"
    )
    with fstab.replaced(asked):
        check_is("soft-and-kerberos")


@pytest.mark.usefixtures("running_daemon")
def test_nfsrahead_at_its_default_against_the_policy(mount: Mounts) -> None:
    text = AGREED.read_text()
    AGREED.write_text("")
    try:
        tuned(15360, mount("a", GOOD), seconds=30)
        check_is("nfsrahead-default")
    finally:
        AGREED.write_text(text)


TEST = "'BEGIN{ret=1} {if ($4 == bdi) {ret=0}} END{exit ret}' /proc/fs/nfsfs/volumes"
AWK = f'PROGRAM="/usr/bin/awk -v bdi=$kernel {TEST}"'
DEFECTS = {
    # name of the file: (its text, whether it sets a new NFS mount, whether it sets what is not NFS)
    "flattened": (
        f'SUBSYSTEM=="bdi" \\ , ACTION=="add" \\ , {AWK} \\ , ATTR{{read_ahead_kb}}="15360"\n',
        False,
        False,
    ),
    "space-after-backslash": (
        f'SUBSYSTEM=="bdi" \\\n, ACTION=="add" \\\n, {AWK} \\ \n, ATTR{{read_ahead_kb}}="15360"\n',
        True,
        True,
    ),
    "missing-backslashes": (
        f'SUBSYSTEM=="bdi"\n, ACTION=="add"\n, {AWK}\n, ATTR{{read_ahead_kb}}="15360"\n',
        True,
        True,
    ),
    "unconditional": ('SUBSYSTEM=="bdi", ACTION=="add", ATTR{read_ahead_kb}="15360"\n', True, True),
    "dollar-four": (f'SUBSYSTEM=="bdi", ACTION=="add", {AWK}, ATTR{{read_ahead_kb}}="15360"\n', True, False),
}


@pytest.mark.usefixtures("stopped_daemon", "quiet_udev")
@pytest.mark.parametrize("defect", DEFECTS)
def test_a_broken_rule_does_what_the_finding_says(defect: str, mount: Mounts) -> None:
    text, tunes, spills = DEFECTS[defect]
    path = rivals.add_rule("99-vendor.rules", text)
    try:
        mounted = mount("a", GOOD)
        with strangers() as beside:
            rivals.settle()
            assert (mounted.read_ahead_kb == 15360) is tunes, f"{mounted.read_ahead_kb} KiB on NFS"
            others = {value.strip() for value in beside.values().values()}
            assert ("15360" in others) is spills, f"{others} KiB on what is not NFS"
        check_is(f"udev-{defect}", "--select", "NFS105,NFS106,NFS107,NFS111")
    finally:
        path.unlink()
        rivals.reload_rules()


@pytest.mark.usefixtures("stopped_daemon")
def test_a_rule_of_the_same_name_hides_nfs_utils_own(mount: Mounts) -> None:
    path = rivals.add_rule("99-nfs.rules", 'SUBSYSTEM=="block", ACTION=="add", TAG+="lab"\n')
    try:
        mounted = mount("a", GOOD)
        rivals.settle()
        assert mounted.read_ahead_kb == 128, "nfs-utils' rule wrote its 15360"
        check_is("udev-masked", "--select", "NFS105,NFS106,NFS107")
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


def _private(name: str, address: str) -> list[str]:
    """The records of a private endpoint: a chain through its privatelink zone to an address."""
    link = name.replace(".file.", ".privatelink.file.", 1)
    return [f"cname={name},{link}", f"host-record={link},{address}"]
