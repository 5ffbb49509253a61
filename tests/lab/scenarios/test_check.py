"""`nfstuned check` of real mounts: a clean host, a first mount that wins, and mounts through a TLS tunnel."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.lab.kit import tls
from tests.lab.kit.check import GOOD, WITHOUT, check_is, vendors_host
from tests.lab.kit.mounts import Mounts
from tests.lab.kit.server import ADDRESS, Server
from tests.lab.kit.shell import tuned

AGE_S = 2.0
"""mountstats counts ages in seconds."""
pytestmark = pytest.mark.kernel


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


@pytest.mark.system
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


@pytest.mark.system
@pytest.mark.usefixtures("running_daemon")
def test_a_tls_mount_after_a_clear_one_goes_in_the_clear(mount: Mounts) -> None:
    with tls.tunnel():
        clear = mount("b", GOOD)
        tunnelled = mount("a", f"{GOOD},port={tls.PORT}", host="127.0.0.1")
        tuned(15360, clear, tunnelled)
        assert tunnelled.options["addr"] == ADDRESS
        check_is("tls-in-the-clear")


@pytest.mark.system
@pytest.mark.usefixtures("running_daemon")
def test_a_clear_mount_after_a_tls_one_goes_through_its_tunnel(mount: Mounts) -> None:
    with tls.tunnel():
        mounts = [mount("a", f"{GOOD},port={tls.PORT}", host="127.0.0.1"), mount("b", GOOD)]
        tuned(15360, *mounts)
        assert mounts[1].options["addr"] == "127.0.0.1"
        check_is("tls-shared-tunnel")
        for mounted in mounts:
            mount.umount(mounted)
