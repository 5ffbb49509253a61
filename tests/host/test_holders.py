"""Who holds a file system, found on this machine: real processes on real mounts."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nfstuned.host.holders import Holders, path_uses
from nfstuned.host.root import Root
from nfstuned.model.kernel import MountNode
from nfstuned.model.remount import PathUse
from nfstuned.parse.proc.mountinfo import parse_nodes
from tests.tree import put

SHM = Path("/dev/shm")  # noqa: S108 - a file system that every machine has
NODES = parse_nodes(Path("/proc/self/mountinfo").read_text())
DEVICE = next((node.device for node in reversed(NODES) if node.point == str(SHM)), "")
WAIT = "import sys; print('ready', flush=True); sys.stdin.read()"
HELD = {
    "open": "held = open('{file}'); ",
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
    with child(HELD[how].format(file=file, folder=SHM)) as pid:
        uses = Holders(Root(), NODES).uses(frozenset({DEVICE}))
    (mine,) = [use for use in uses if f"({pid})" in use.text]
    assert mine.device == DEVICE
    assert re.match(r"\S*python\S* ", mine.text)
    assert how in mine.text
    assert str(SHM if how == "working directory" else file) in mine.text


@needs_shm
def test_a_deleted_file_still_counts(file: Path) -> None:
    with child(f"import os; held = open('{file}'); os.unlink('{file}'); open('{file}', 'w'); ") as pid:
        uses = Holders(Root(), NODES).uses(frozenset({DEVICE}))
        assert [use for use in uses if f"({pid})" in use.text]


@needs_shm
def test_who_has_nothing_there_is_not_named() -> None:
    with child("import os; os.chdir('/'); ") as pid:
        uses = Holders(Root(), NODES).uses(frozenset({DEVICE}))
    assert [use for use in uses if f"({pid})" in use.text] == []


@needs_shm
def test_nothing_is_opened_or_asked_for_on_the_mounts(file: Path, tmp_path: Path) -> None:
    """No stat, no open: on a dead server either would hang."""
    log = tmp_path / "calls"
    program = (
        "from nfstuned.host.holders import Holders, path_uses\n"
        "from nfstuned.host.root import Root\n"
        "from nfstuned.parse.proc.mountinfo import parse_nodes\n"
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
        spaces = Holders(Root(), NODES).spaces()
        process.kill()
    (mine,) = [space for space in spaces if space.process.endswith(f"({process.pid})")]
    assert {node.point for node in mine.nodes} == {node.point for node in NODES}
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
    assert path_uses(Root(str(tmp_path)), (overlay,)) == (
        PathUse("/mnt/a/swap", "/mnt/a/swap is swapped to"),
        PathUse("/mnt/a/image", "/dev/loop0 is made of /mnt/a/image"),
        PathUse("/mnt/a/x", "this host's NFS server exports /mnt/a/x"),
        PathUse("/mnt/a/y", "this host's NFS server exports /mnt/a/y"),
        PathUse("/mnt/a/socket", "a socket is bound to /mnt/a/socket"),
        PathUse("/mnt/a/low", "the overlay at /merged is made of /mnt/a/low"),
        PathUse("/up", "the overlay at /merged is made of /up"),
    )


def test_a_list_of_exports_on_a_network_mount_is_not_read(tmp_path: Path) -> None:
    put(tmp_path / "var/lib/nfs/etab", "/mnt/a\t*(rw)\n")
    var = MountNode(5, 1, "0:60", "/var", "nfs4", "nas:/var", "rw")
    assert path_uses(Root(str(tmp_path)), (var,)) == ()
