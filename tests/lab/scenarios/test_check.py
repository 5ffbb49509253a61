"""`nfstuned check` of real mounts: which share their connections, and what the kernel gives them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.lab.kit import fstab, rivals, tls
from tests.lab.kit.check import GOOD, WITHOUT, check_is, vendors_host
from tests.lab.kit.expect import tuned
from tests.lab.kit.mounts import set_read_ahead_kb
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, GENERIC
from tests.lab.kit.shell import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.lab.kit.daemon import Daemon
    from tests.lab.kit.mounts import Mounted, Mounts
    from tests.lab.kit.server import Server

AGE_S = 2.0
"""mountstats counts ages in seconds."""
pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module", autouse=True)
def _host(_server: Server) -> Iterator[None]:
    with vendors_host(_server):
        yield


@pytest.mark.usefixtures("running_daemon")
def test_one_share_an_account_over_a_private_endpoint_is_clean(mount: Mounts) -> None:
    tuned(15360, mount("a", GOOD))
    check_is("clean")


@pytest.mark.usefixtures("running_daemon")
def test_the_first_mount_wins_with_v4(mount: Mounts) -> None:
    tuned(15360, mount("a", WITHOUT), _later(mount, "b", AZURE))
    check_is("first-mount-wins-v4")


@pytest.mark.usefixtures("running_daemon")
def test_the_first_mount_wins_with_v3(mount: Mounts) -> None:
    points = [mount.new_point() for _ in range(2)]
    asked = (
        f"{GENERIC}:/srv/a {points[0]} nfs vers=3,nolock,_netdev,nofail 0 0\n"
        f"{GENERIC}:/srv/b {points[1]} nfs vers=3,nolock,nconnect=4,_netdev,nofail 0 0\n"
    )
    with fstab.replaced(asked):
        for point in points:
            run("mount", str(point))
            time.sleep(AGE_S)
        check_is("first-mount-wins-v3")


@pytest.mark.usefixtures("running_daemon")
def test_the_first_mount_wins_under_another_name(mount: Mounts) -> None:
    tuned(15360, mount("a", WITHOUT), _later(mount, "b", AZURE_2))
    check_is("first-mount-wins-other-name")


@pytest.mark.usefixtures("running_daemon")
def test_a_tunnel_that_lives_and_one_that_died(mount: Mounts) -> None:
    with tls.tunnel() as client:
        mounted = mount("a", f"{GOOD},port={tls.PORT}", host="127.0.0.1")
        tuned(15360, mounted)
        check_is("tls")
        client.kill()
        client.wait()
        check_is("tls-helper-down")
    with tls.tunnel():
        # Without one the unmount would wait for ever.
        mount.umount(mounted)


@pytest.mark.usefixtures("running_daemon")
def test_a_tls_mount_after_a_clear_one_goes_in_the_clear(mount: Mounts) -> None:
    with tls.tunnel():
        clear = mount("b", GOOD)
        tunnelled = mount("a", f"{GOOD},port={tls.PORT}", host="127.0.0.1")
        tuned(15360, clear, tunnelled)
        assert tunnelled.options["addr"] == ADDRESS
        check_is("tls-in-the-clear")


@pytest.mark.usefixtures("running_daemon")
def test_a_clear_mount_after_a_tls_one_goes_through_its_tunnel(mount: Mounts) -> None:
    with tls.tunnel():
        mounts = [mount("a", f"{GOOD},port={tls.PORT}", host="127.0.0.1"), mount("b", GOOD)]
        tuned(15360, *mounts)
        assert mounts[1].options["addr"] == "127.0.0.1"
        check_is("tls-shared-tunnel")
        for mounted in mounts:
            mount.umount(mounted)


@pytest.mark.usefixtures("running_daemon")
def test_a_clear_line_beside_a_tls_mount(mount: Mounts) -> None:
    clear = f"{AZURE}:/sa1/b /mnt/clear nfs {GOOD},_netdev,nofail 0 0\n"
    with fstab.replaced(clear), tls.tunnel():
        mounted = mount("a", f"{GOOD},port={tls.PORT}", host="127.0.0.1")
        tuned(15360, mounted)
        check_is("tls-mixed")
        mount.umount(mounted)


def test_the_kernels_own_128_without_the_daemon(mount: Mounts, stopped_daemon: Daemon) -> None:
    assert not stopped_daemon.active
    mounted = mount("a", GOOD)
    rivals.settle()
    set_read_ahead_kb(mounted.device, 128)
    check_is("untuned")


def _later(mount: Mounts, share: str, host: str) -> Mounted:
    """Mount well; late enough that the superblocks' ages tell which came first."""
    time.sleep(AGE_S)
    return mount(share, GOOD, host=host)
