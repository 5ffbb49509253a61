"""The hands of `apply --live`: what they write to sysfs, and what they never write."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.change import live, live_child
from nfstuned.host.change.bdi import identity
from nfstuned.host.change.live import SunrpcGround, SysfsHands
from nfstuned.host.root import Root
from nfstuned.model.connections import LivePlan, SwitchSeen
from tests.core.living import the_plan
from tests.host.switches import ADD, connect
from tests.users import NOBODY, ROOT, rights_of

LINE = "{id} 27 0:50 / {point} rw shared:9 - nfs4 nas:/srv rw,vers=4.1,nconnect=2,noresvport,addr=127.0.0.1\n"
STANZA = """\
device nas:/srv mounted on {point} with fstype nfs4 statvers=1.1
	xprt:	tcp 0 0 2 0 0 20 20 0 48 0 8 14 21
	xprt:	tcp 0 0 2 0 0 15 14 0 43 0 8 27 16
	per-op statistics
	NULL: 0 0 0 0 0 0 0 0 0

"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("proc/1/net/nfsfs", "sys/class/bdi/0:50", "mnt"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sys/class/bdi/0:50/read_ahead_kb").write_text("128\n")
    connect(tmp_path, "0:50")
    mounted(tmp_path)
    return tmp_path


def mounted(tree: Path, mount_id: int = 60, point: str = "/a") -> None:
    (tree / "proc/1/mountinfo").write_text(LINE.format(id=mount_id, point=point))
    (tree / "proc/1/mountstats").write_text(STANZA.format(point=point))


def plan(tree: Path, **changes: object) -> LivePlan:
    """Return a plan for the mount of the tree."""
    found = the_plan()
    bdi = identity(Root(str(tree)), "0:50")
    assert bdi is not None
    spot = replace(found.spot, bdi=bdi)
    seen = SunrpcGround(Root(str(tree))).switches(frozenset({"0:50"}))["0:50"]
    assert isinstance(seen, SwitchSeen)
    return replace(found, **{"spot": spot, "switch": seen, **changes})  # type: ignore[arg-type]  # any field


def hands(tree: Path, **changes: object) -> SysfsHands:
    return SysfsHands(Root(str(tree)), plan(tree, **changes), ())


def test_a_write_to_add_xprt_adds_one(tree: Path) -> None:
    assert hands(tree).add() == ""
    assert (tree / "sys/kernel/sunrpc/xprt-switches/switch-2/add_xprt").read_text() == "1\n" + ADD[2:]


def test_a_state_is_written_by_a_child(tree: Path) -> None:
    file = tree / "sys/kernel/sunrpc/xprt-switches/switch-2/xprt-3-tcp/xprt_state"
    one = hands(tree)
    assert one.offline("xprt-3-tcp") == ""
    assert file.read_text().startswith("offline")
    file.write_text("state= CONNECTED OFFLINE\n")
    assert one.remove("xprt-3-tcp") == ""
    assert file.read_text().startswith("remove")
    assert one.offline("xprt-9-tcp") == "", "it is gone already"


def unmounted(tree: Path) -> None:
    (tree / "proc/1/mountinfo").write_text("")


def mounted_anew(tree: Path) -> None:
    mounted(tree, mount_id=61)


def other_superblock(tree: Path) -> None:
    file = tree / "sys/class/bdi/0:50/read_ahead_kb"
    kept = file.with_name("kept")
    file.rename(kept)
    file.write_text("128\n")


def other_switch(tree: Path) -> None:
    link = tree / "sys/kernel/sunrpc/rpc-clients/clnt-0/switch"
    connect(tree, switch="switch-3")
    link.unlink()
    link.symlink_to("../../xprt-switches/switch-3")


def damaged(tree: Path) -> None:
    (tree / "sys/kernel/sunrpc/xprt-switches/switch-2/xprt_switch_info").write_text("num_xprts=x\n")


@pytest.mark.parametrize("change", [unmounted, mounted_anew, other_superblock, other_switch, damaged])
def test_what_is_not_the_plans_any_more_is_never_written(tree: Path, change: Callable[[Path], None]) -> None:
    one = hands(tree)
    change(tree)
    folder = tree / "sys/kernel/sunrpc/xprt-switches/switch-2"
    state = (folder / "xprt-3-tcp/xprt_state").read_text()
    assert one.switch() is None
    assert one.add() == "another mount is there by now, or none"
    assert one.offline("xprt-3-tcp") == "another mount is there by now, or none"
    assert (folder / "add_xprt").read_text() == ADD
    assert (folder / "xprt-3-tcp/xprt_state").read_text() == state


def test_a_file_that_is_not_there_is_a_refusal(tree: Path) -> None:
    one = hands(tree)
    (tree / "sys/kernel/sunrpc/xprt-switches/switch-2/add_xprt").unlink()
    assert one.add() == "add_xprt: No such file or directory"


def test_counters_are_those_of_the_mount(tree: Path) -> None:
    one = hands(tree)
    assert [(found.sends, found.receives) for found in one.counters()] == [(20, 20), (15, 14)]
    mounted(tree, point="/b")
    assert one.counters() == ()


def mount_id(folder: Path) -> int:
    """Return the id of the mount that a folder of this machine is on."""
    fd = os.open(folder, os.O_PATH)
    try:
        text = Path(f"/proc/self/fdinfo/{fd}").read_text()
    finally:
        os.close(fd)
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("mnt_id:"))


def asking(tree: Path, point: str, number: int) -> str:
    spot = replace(plan(tree).spot, point=point, mount_id=number)
    return hands(tree, spot=spot).ask(3)


def test_requests_go_to_the_mount_of_the_plan_only(tree: Path) -> None:
    there = mount_id(tree / "mnt")
    assert asking(tree, str(tree / "mnt"), there) == ""
    assert asking(tree, str(tree / "mnt"), there + 1) == f"another mount is at {tree}/mnt by now"
    assert asking(tree, str(tree / "gone"), there) == "No such file or directory"


def test_requests_have_a_deadline(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tree / "child.py"
    child.write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setattr(live_child, "__file__", str(child))
    monkeypatch.setattr(live, "ASK_S", 0.5)
    started = time.monotonic()
    assert asking(tree, "/a", 60) == "no end within 0.5 s"
    assert time.monotonic() - started < 20


def test_it_waits_for_requests_under_way_and_not_for_ever(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SETTLE_S", 0.2)
    info = tree / "sys/kernel/sunrpc/xprt-switches/switch-2/xprt-3-tcp/xprt_info"
    one = hands(tree)
    started = time.monotonic()
    one.settle("xprt-3-tcp")
    assert time.monotonic() - started < 0.2
    info.write_text(info.read_text().replace("tasks_queuelen=0", "tasks_queuelen=2"))
    started = time.monotonic()
    one.settle("xprt-3-tcp")
    assert time.monotonic() - started >= 0.2


def test_the_server_is_asked_on_further_connections(tree: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = listening.getsockname()
    said = hands(tree, place=place).answers(2)
    assert said == f"127.0.0.1 port {place[1]}: Connection refused"


def test_a_signal_is_named(tree: Path) -> None:
    assert hands(tree).interrupted() == ""
    one = SysfsHands(Root(str(tree)), plan(tree), [signal.SIGTERM])
    assert one.interrupted() == "interrupted by SIGTERM"


def test_the_ground_tells_switches_and_what_is_wrong_with_them(tree: Path) -> None:
    ground = SunrpcGround(Root(str(tree)))
    damaged(tree)
    found = ground.switches(frozenset({"0:50", "0:51"}))
    assert found["0:51"] is None
    assert isinstance(found["0:50"], ParseError)
    assert [node.point for node in ground.nodes()] == ["/a"]


def test_only_root_on_the_host_itself_can_add(tree: Path) -> None:
    ground = SunrpcGround(Root(str(tree)))
    with rights_of(NOBODY):
        assert os.geteuid() == ROOT or ground.obstacle() == "only root can add connections"
    if os.geteuid() != ROOT:
        return
    assert ground.obstacle() == ""
    for process in ("1", "self"):
        (tree / f"proc/{process}/ns").mkdir(parents=True)
        (tree / f"proc/{process}/ns/mnt").touch()
    assert ground.obstacle().startswith("process 1 has other mounts than this one")
