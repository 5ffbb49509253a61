"""The tools of a remount, with deadlines, and the users of file systems on this machine: real processes."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nfstuned.host import remount
from nfstuned.host.remount import Holders, MountGround, MountHands, path_uses, uninterrupted
from nfstuned.host.root import Root
from nfstuned.model.change import Connections, Part, PathUse, RemountPlan
from nfstuned.model.kernel import MountNode
from nfstuned.model.mounts import UnitState
from nfstuned.parse.proc.mounts import parse_nodes
from tests.host.servers import rpc_reply, rpc_server
from tests.tree import put
from tests.users import NOBODY, ROOT, rights_of

LINE = "{id} 27 0:50 / {point} rw shared:9 - nfs4 nas:/srv rw,vers=4.1{more},addr=127.0.0.1\n"
SERVERS = "NV SERVER   PORT USE HOSTNAME\n"
ROW = "v4 7f000001  801   2 nas\n"
NOTHING = Connections(0, "", 0, 0, ())


def accept(call: bytes, sock: socket.socket) -> None:
    if call:
        sock.sendall(rpc_reply(call, 1))


@pytest.fixture
def server() -> Iterator[tuple[str, int]]:
    with rpc_server(accept) as place:
        yield place


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("proc/1/net/nfsfs", "sys/class/bdi/0:50"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sys/class/bdi/0:50/read_ahead_kb").write_text("128\n")
    mounted(tmp_path, LINE.format(id=60, point="/a", more=""))
    return tmp_path


def mounted(tree: Path, *lines: str) -> None:
    (tree / "proc/1/mountinfo").write_text("".join(lines))


def part(tree: Path, mount_id: int = 60) -> Part:
    """Return a mount whose unmounting leaves a file behind, for want of a mount."""
    return Part("/a", mount_id, ("touch", str(tree / "ran")), ("true",), None)


def plan(known: Connections = NOTHING, *parts: Part) -> RemountPlan:
    return RemountPlan(1, 4, "x", parts, parts, known, reload=True)


def hands(tree: Path, *places: tuple[str, int], signals: tuple[int, ...] = ()) -> MountHands:
    return MountHands(Root(str(tree)), places, signals)


def closed() -> tuple[str, int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place: tuple[str, int] = listening.getsockname()
    return place


def test_it_runs_the_command_where_the_server_answers(tree: Path, server: tuple[str, int]) -> None:
    assert hands(tree, server).unmount(part(tree)) == ""
    assert (tree / "ran").exists()


def test_it_says_what_the_command_said(tree: Path) -> None:
    failing = ("sh", "-c", "echo umount: /a: target is busy. >&2; exit 32")
    one = Part("/a", 60, failing, failing, None)
    assert hands(tree).unmount(one) == "umount: /a: target is busy.; sh ended with status 32"
    assert "busy" in hands(tree).mount(failing)


def test_a_silent_server_keeps_it_from_doing_anything(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remount, "PATIENCE_S", 0.0)
    place = closed()
    one = hands(tree, place)
    for said in (one.unmount(part(tree)), one.mount(part(tree).leave)):
        assert said == f"127.0.0.1 port {place[1]}: Connection refused"
    assert not (tree / "ran").exists()


def test_it_waits_a_moment_for_a_server_that_comes_back(tree: Path) -> None:
    place = closed()
    with ExitStack() as later:
        timer = threading.Timer(0.5, lambda: later.enter_context(rpc_server(accept, place)))
        timer.start()
        assert hands(tree, place).mount(part(tree).leave) == ""
        timer.join()
    assert (tree / "ran").exists()


def test_a_port_that_opens_is_no_answer(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remount, "ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        place = listening.getsockname()
        said = hands(tree, place).unmount(part(tree))
    assert said == f"127.0.0.1 port {place[1]}: no answer within 0.3 s"
    assert not (tree / "ran").exists()


@pytest.mark.parametrize("lines", [(), (LINE.format(id=61, point="/a", more=""),)])
def test_another_mount_in_its_place_is_not_unmounted(tree: Path, lines: tuple[str, ...]) -> None:
    mounted(tree, *lines)
    assert hands(tree).unmount(part(tree)) == "meanwhile another mount is there, or none"
    assert not (tree / "ran").exists()


def test_after_a_signal_nothing_more_is_unmounted_and_everything_is_mounted(tree: Path) -> None:
    one = hands(tree, signals=(signal.SIGTERM,))
    assert one.unmount(part(tree)) == "interrupted by SIGTERM"
    assert not (tree / "ran").exists()
    assert one.mount(part(tree).leave) == ""
    assert (tree / "ran").exists()


def test_signals_are_noted_and_then_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with uninterrupted() as signals:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        end = time.monotonic() + 10
        while len(signals) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        assert sorted(signals) == [signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_is_mounted_is_what_mountinfo_says(tree: Path) -> None:
    one = hands(tree)
    assert [(one.mounted(point), one.nconnect(point)) for point in ("/a", "/b")] == [(True, 1), (False, None)]
    mounted(tree, LINE.format(id=60, point="/a", more=""), LINE.format(id=61, point="/a", more=",nconnect=4"))
    assert one.nconnect("/a") == 4


def test_connections_are_held_while_a_superblock_exists(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remount, "GONE_S", 0.2)
    file = tree / "sys/class/bdi/0:50/read_ahead_kb"
    known = Connections(0, "", 0, 0, (("0:50", file.stat().st_ino),))
    assert hands(tree).held(plan(known)) == "something still uses 0:50, and its connections with it"
    other = file.with_name("other")
    other.write_text("128\n")
    other.rename(file)  # the number is another superblock's by now
    assert hands(tree).held(plan(known)) == ""


def test_connections_are_held_while_the_client_is_there(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remount, "GONE_S", 0.2)
    servers = tree / "proc/1/net/nfsfs/servers"
    known = Connections(4, "127.0.0.1", 2049, 2, ())
    servers.write_text(SERVERS + ROW + ROW)
    assert hands(tree).held(plan(known)) == "something still uses the connections to 127.0.0.1 port 2049"
    servers.write_text(SERVERS + ROW)
    assert hands(tree).held(plan(known)) == ""


def test_only_root_on_the_host_itself_unmounts(tree: Path) -> None:
    ground = MountGround(Root(str(tree)))
    with rights_of(NOBODY):
        assert ground.obstacle().startswith("only root can unmount")
    if os.geteuid() != ROOT:
        return
    assert ground.obstacle() == ""
    for process in ("1", "self"):
        (tree / f"proc/{process}/ns").mkdir(parents=True)
        (tree / f"proc/{process}/ns/net").touch()
    assert ground.obstacle().startswith("process 1 has other connections than this process")


class TestSystemd:
    @pytest.fixture
    def systemctl(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A systemctl that writes down how it is called, and prints a file."""
        said = tmp_path / "said"
        text = f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\n[ "$1" = show ] && cat {said}\nexit 0\n'
        put(tmp_path / "bin/systemctl", text, 0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin", prepend=":")
        return said

    def unit(self, tree: Path) -> Part:
        return Part("/a", 60, part(tree).leave, ("true",), None, "a.mount", from_file=True)

    def test_after_a_reload_the_unit_is_looked_at_again(self, tree: Path, systemctl: Path) -> None:
        systemctl.write_text("Id=a.mount\nLoadState=loaded\nFragmentPath=/run/x\n")
        one = plan(NOTHING, self.unit(tree))
        assert hands(tree).reload(one) == ""
        calls = (tree / "calls").read_text().splitlines()
        assert calls[0] == "daemon-reload"
        assert calls[1].endswith("-- a.mount")
        systemctl.write_text("Id=a.mount\nLoadState=loaded\nFragmentPath=/run/x\nLazyUnmount=yes\n")
        assert hands(tree).reload(one).startswith("a.mount has LazyUnmount=yes")
        systemctl.write_text("Id=a.mount\nLoadState=not-found\nFragmentPath=\n")
        assert hands(tree).reload(one) == "a.mount: systemd makes no unit from the line that asks for it"
        (tree / "bin/systemctl").write_text("#!/bin/sh\necho no >&2; exit 1\n")
        assert hands(tree).reload(one) == "systemctl daemon-reload: no; systemctl ended with status 1"

    def test_a_host_with_systemd_tells_of_its_units(self, tree: Path, systemctl: Path) -> None:
        systemctl.write_text("Id=a.mount\nLoadState=loaded\nFragmentPath=/run/x\n")
        ground = MountGround(Root(str(tree)))
        assert ground.sight(frozenset(), ["a.mount"]).units == {}
        (tree / "run/systemd/system").mkdir(parents=True)
        seen = ground.sight(frozenset(), ["a.mount"])
        assert seen.units == {"a.mount": UnitState(loaded=True, fragment="/run/x")}
        assert [node.point for node in seen.nodes] == ["/a"]

    def test_superblocks_of_this_network_namespace_are_known(self, tree: Path) -> None:
        (tree / "proc/1/net/nfsfs/volumes").write_text(
            "NV SERVER   PORT DEV          FSID                              FSC\n"
            "v4 7f000001  801 0:50         0:0                               no \n"
        )
        assert MountGround(Root(str(tree))).sight(frozenset(), []).volumes == {"0:50"}


SHM = Path("/dev/shm")  # noqa: S108 - a file system that every machine has
NODES = parse_nodes(Path("/proc/self/mountinfo").read_text())
DEVICE = next((node.device for node in reversed(NODES) if node.point == str(SHM)), "")
WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"
HELD = {
    "open": "held = open('{file}'); ",
    "(deleted) open": "import os; held = open('{file}'); os.unlink('{file}'); open('{file}', 'w'); ",
    "mapped": (
        "import mmap, os; f = open('{file}', 'r+b'); held = mmap.mmap(f.fileno(), 0); "
        "os.closerange(3, 99); "  # mmap keeps a copy of the descriptor
    ),
    "working directory": "import os; os.chdir('{folder}'); ",
}
needs_shm = pytest.mark.skipif(not DEVICE, reason="no /dev/shm")


@pytest.fixture
def file() -> Iterator[Path]:
    path = SHM / f"nfstuned-test-{os.getpid()}"
    path.write_bytes(b"x" * 8192)
    yield path
    path.unlink()


@contextmanager
def child(program: str) -> Iterator[int]:
    """Run a program that waits; yield its number."""
    with subprocess.Popen(
        [sys.executable, "-c", program + WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


@needs_shm
@pytest.mark.parametrize("how", HELD)
def test_a_process_is_named_with_what_it_has(file: Path, how: str) -> None:
    with child(HELD[how].format(file=file, folder=SHM)) as pid, child("import os; os.chdir('/'); ") as other:
        uses = Holders(Root(), NODES).uses(frozenset({DEVICE}))
    (mine,) = [use for use in uses if f"({pid})" in use.text]
    assert mine.device == DEVICE
    assert re.match(r"\S*python\S* ", mine.text)
    assert how in mine.text
    assert str(SHM if how == "working directory" else file) in mine.text
    assert [use for use in uses if f"({other})" in use.text] == [], "it has nothing there"


@needs_shm
def test_nothing_is_opened_or_asked_for_on_the_mounts(file: Path, tmp_path: Path) -> None:
    """No stat, no open: on a dead server either would hang."""
    log = tmp_path / "calls"
    program = (
        "from nfstuned.host.remount import Holders, path_uses\n"
        "from nfstuned.host.root import Root\n"
        "from nfstuned.parse.proc.mounts import parse_nodes\n"
        "root = Root(); nodes = parse_nodes(root.read('proc/self/mountinfo'))\n"
        f"print(Holders(root, nodes).uses(frozenset({{'{DEVICE}'}})), path_uses(root, nodes))\n"
    )
    watch = ["strace", "-f", "-o", str(log), "-e", "trace=%file"]
    with child(HELD["open"].format(file=file) + HELD["working directory"].format(folder=SHM)) as pid:
        try:
            done = subprocess.run(
                [*watch, sys.executable, "-c", program],
                capture_output=True,
                text=True,
                check=False,
                cwd=Path(__file__).parents[2],
            )
        except FileNotFoundError:
            pytest.skip("no strace")
    assert done.returncode == 0, done.stderr
    assert f"({pid}) has {file} open" in done.stdout
    named = re.findall(r'^\d+ +(\w+)\((?:AT_FDCWD, )?"([^"]*)"', log.read_text(), re.MULTILINE)
    assert named
    assert [call for call in named if call[1].startswith(str(SHM))] == []
    followed = [name for name, path in named if re.fullmatch(r"/proc/\d+/(cwd|root|exe|fd/\d+)", path)]
    assert set(followed) == {"readlink"}


def test_another_mount_namespace_is_seen_through_its_process() -> None:
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo ready; exec sleep 300"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            pytest.skip("this user may not unshare(2)")
        nodes = parse_nodes(Path("/proc/self/mountinfo").read_text())
        spaces = Holders(Root(), nodes).spaces()
        process.kill()
    (mine,) = [space for space in spaces if space.process.endswith(f"({process.pid})")]
    assert {node.point for node in mine.nodes} == {node.point for node in nodes}
    assert all(node.shared is None and node.master is None for node in mine.nodes)


def test_what_the_kernel_uses_without_a_process(tmp_path: Path) -> None:
    files = {
        "proc/1/mountinfo": "",
        "proc/1/net/unix": (
            "Num       RefCount Protocol Flags    Type St Inode Path\n"
            "0000000000000000: 00000002 00000000 00010000 0001 01   560 /mnt/a/socket\n"
        ),
        "proc/swaps": "Filename Type Size Used Priority\n/mnt/a/swap file 1 0 -2\n",
        "proc/fs/nfsd/exports": "# Version 1.1\n/mnt/a/x\t*(rw)\n",
        "var/lib/nfs/etab": "/mnt/a/x\t*(rw)\n/mnt/a/y\t*(rw)\n",
        "sys/block/loop0/loop/backing_file": "/mnt/a/image\n",
    }
    for name, text in files.items():
        put(tmp_path / name, text)
    (tmp_path / "sys/block/sda").mkdir()
    overlay = MountNode(5, 1, "0:60", "/merged", "overlay", "overlay", "rw,lowerdir=/mnt/a/low,upperdir=/up")
    uses = path_uses(Root(str(tmp_path)), (overlay,))
    assert uses == (
        PathUse("/mnt/a/swap", "/mnt/a/swap is swapped to"),
        PathUse("/mnt/a/image", "/dev/loop0 is made from /mnt/a/image"),
        PathUse("/mnt/a/x", "this host's NFS server exports /mnt/a/x"),
        PathUse("/mnt/a/y", "this host's NFS server exports /mnt/a/y"),
        PathUse("/mnt/a/socket", "a socket is bound to /mnt/a/socket"),
        PathUse("/mnt/a/low", "the overlay at /merged is made of /mnt/a/low"),
        PathUse("/up", "the overlay at /merged is made of /up"),
    )
    var = MountNode(5, 1, "0:60", "/var", "nfs4", "nas:/var", "rw")
    without_etab = tuple(use for use in uses if use.path != "/mnt/a/y")
    assert path_uses(Root(str(tmp_path)), (overlay, var)) == without_etab, "etab is on a network mount"
