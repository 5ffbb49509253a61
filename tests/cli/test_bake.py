"""`nfstuned bake` in each distribution, when it is killed, when a disk is full, and in strange trees.

Sessions show its actions.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nfstuned.core.nconnect.persist import with_sections
from tests.cli.baked import (
    DROP_IN,
    RECORD,
    RULE,
    SESSION,
    SLOTS,
    UNIT,
    WANTED,
    Image,
    make,
    with_netapp,
)
from tests.cli.conftest import REPOSITORY, full_at
from tests.tree import everything, put
from tests.users import NOBODY, may_unshare, rights_of

CALLS = ("mkdir", "chmod", "link", "rename", "unlink", "symlink", "rmdir", "fchmod", "fsync")
KILLED = 9
DISTRIBUTIONS = ("image-debian-12", "image-debian-13", "image-rhel-9", "image-sles-15")
IDENTITY = "nfstuned-identity.service"
IDENTITY_LINK = f"etc/systemd/system/multi-user.target.wants/{IDENTITY}"
OTHER = ("etc", "etc/fstab", "etc/modprobe.d", "etc/systemd", "etc/systemd/system", "usr/lib/systemd/system")
PLACES = (DROP_IN, RECORD, RULE, SLOTS, SESSION, WANTED, UNIT, *OTHER)
TARGETS = ("/", "..", "../../../../../..", "/dev/null", "/proc/self", "/nowhere", "etc", "/etc", ".")
THINGS = st.sampled_from(["file", "empty", "folder", "fifo", "gone", *TARGETS])


@pytest.fixture
def image(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Image:
    return with_netapp(make("image-debian-13", tmp_path / "image", capsys))


@pytest.mark.parametrize("case", DISTRIBUTIONS)
def test_check_agrees_in_each_family(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = make(case, tmp_path / "image", capsys)
    (program,) = [path for path in image.tree.glob("**/mount.nfs") if "sbin" in str(path)]
    with_netapp(image, place=str(program.relative_to(image.tree)))
    image.put("etc/fstab", "10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1,nconnect=8,_netdev,nofail 0 0\n")
    assert {"NFS701", "NFS211"} <= set(image.findings("NFS2", "NFS7"))
    assert image.run("bake").status == 0
    assert image.findings("NFS2", "NFS7") == []


@pytest.fixture
def named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Image:
    """An image with a name that all clones would have."""
    image = make("image-one-name", tmp_path / "image", capsys)
    (image.tree / "etc/machine-id").unlink()
    return image


def test_the_document_keeps_its_schema_with_changes_of_each_kind(named: Image) -> None:
    put(with_netapp(named).tree / "usr/bin/awk", "#!", 0o755)
    kinds = {one["kind"] for one in named.run("bake", "--daemonless", "--format", "json").actions}
    assert kinds == {"udev-rule", "service", "nconnect", "parameter", "identity"}
    undone = named.run("bake", "--undo", "--format", "json").actions
    assert {(one["kind"], one["outcome"]) for one in undone} == {("file", "done")}


@pytest.mark.skipif(shutil.which("systemctl") is None, reason="no systemctl")
@pytest.mark.parametrize("package", [True, False])
def test_presets_leave_the_identity_enabled(named: Image, *, package: bool) -> None:
    """mkosi applies all presets after its scripts, Fedora and Azure Linux at a first boot."""
    named.put("usr/lib/systemd/system-preset/99-default-disable.preset", "disable *\n")
    for name in ("system-preset/90-nfstuned.preset", f"system/{IDENTITY}") if package else ():
        source = REPOSITORY / "systemd" / Path(name).name
        named.put(f"usr/lib/systemd/{name}", source.read_bytes())
    named.put("etc/machine-id", "uninitialized\n")
    before = everything(named.tree)
    named.run("bake")
    command = ["systemctl", f"--root={named.tree}", "preset", IDENTITY]
    subprocess.run(command, check=True, capture_output=True)
    assert named.has(IDENTITY_LINK)
    assert named.run("bake", "--undo").status == 0
    assert everything(named.tree) == before


def killed_at(number: int, image: Image, *args: str) -> bool:
    """Run a command in a process that ends before its n-th call that changes a file; return whether it did.

    Nothing else runs then, no `finally` either: as after kill -9.
    """
    pid = os.fork()
    if pid == 0:
        count = iter(range(10_000))
        for name in CALLS:
            setattr(os, name, _deadly(getattr(os, name), count, number))
        image.run(*args)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == KILLED


def _deadly(call: Callable[..., Any], count: Iterator[int], number: int) -> Callable[..., Any]:
    def deadly(*args: object, **words: object) -> object:
        if next(count) == number:
            os._exit(KILLED)
        return call(*args, **words)

    return deadly


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_bake_that_is_killed_anywhere_can_be_undone_or_completed(image: Image, tmp_path: Path) -> None:
    image.put(DROP_IN, with_sections({"10.9.9.9": 4}))
    before = everything(image.tree)
    finished = image.copy(tmp_path / "finished")
    finished.run("bake")
    baked = {name: one for name, one in everything(finished.tree).items() if name != RECORD}
    number = 0
    while killed_at(number, half := image.copy(tmp_path / f"half-{number}"), "bake"):
        other = half.copy(tmp_path / f"other-{number}")
        assert half.run("bake", "--undo").status == 0
        assert everything(half.tree) == before, number
        assert other.run("bake").status == 0
        found = everything(other.tree)
        assert {name: one for name, one in found.items() if name != RECORD} == baked, number
        other.run("bake", "--undo")
        assert everything(other.tree) == before, number
        shutil.rmtree(half.tree)
        shutil.rmtree(other.tree)
        number += 1
    assert number > len(CALLS)


@pytest.mark.timeout(300)
def test_an_undo_that_is_killed_anywhere_can_be_run_again(image: Image, tmp_path: Path) -> None:
    before = everything(image.tree)
    image.run("bake")
    number = 0
    while killed_at(number, half := image.copy(tmp_path / f"half-{number}"), "bake", "--undo"):
        assert half.run("bake", "--undo").status == 0
        assert everything(half.tree) == before, number
        shutil.rmtree(half.tree)
        number += 1
    assert number > len({WANTED, DROP_IN, SLOTS, SESSION})


@pytest.mark.parametrize("write", range(5))
def test_a_full_disk_leaves_a_way_to_undo(write: int, image: Image, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five are written: the record, three files, and the record again."""
    before = everything(image.tree)
    with full_at(write, monkeypatch):
        run = image.run("bake", "--format", "json")
    failed = [one for one in run.actions if one["outcome"] == "failed"]
    assert "No space left on device: remove the obstacle and run the command again" in run.err
    assert (run.status, bool(failed)) == (1, write < 4)
    assert all("No space left on device" in one["reason"] for one in failed)
    done = {one["path"] for one in run.actions if one["outcome"] == "done"}
    assert all(image.has(path[1:]) for path in done)
    assert image.run("bake", "--undo").status == 0
    assert everything(image.tree) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' rights to lay down")
def test_without_root_it_only_names_the_remedy(readable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    image = with_netapp(make("image-debian-13", readable / "image", capsys))
    before = everything(image.tree)
    with rights_of(NOBODY):
        run = image.run("bake")
    assert (run.status, run.out) == (2, "")
    assert run.err == f"/{RECORD}: Permission denied: run it as root\n"
    assert everything(image.tree) == before
    image.run("bake")
    baked = everything(image.tree)
    with rights_of(NOBODY):
        run = image.run("bake", "--undo")
    assert (run.status, run.out) == (2, "")
    assert run.err.endswith("Permission denied: run it as root\n")
    assert everything(image.tree) == baked


@pytest.mark.skipif(not may_unshare(), reason="no mount namespace for this user")
def test_a_prepared_image_on_a_read_only_file_system_needs_no_writing(image: Image) -> None:
    assert _read_only(image, "--undo") == (0, "Nothing to take back: bake wrote no file of this image.\n", "")
    status, out, err = _read_only(image)
    assert (status, "done" in out) == (1, False)
    remedy = "remove the obstacle and run the command again, or with --undo"
    assert err == f"/{RECORD}: Read-only file system: {remedy}\n"
    image.run("bake")
    assert _read_only(image) == (0, "Nothing to do: the image is prepared.\n", "")
    status, _, err = _read_only(image, "--undo")
    assert (status, err[0], "Read-only file system" in err) == (1, "/", True)
    assert image.run("bake", "--undo").status == 0


def _read_only(image: Image, *args: str) -> tuple[int, str, str]:
    """Run it where the image is mounted read-only, and return status, stdout and stderr."""
    mounted = 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"'
    command = [sys.executable, "-m", "nfstuned", "bake", "--root", str(image.tree), *args]
    isolated = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", mounted, str(image.tree)]
    done = subprocess.run([*isolated, *command], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def furnish(tree: Path, place: str, thing: str) -> None:
    path = tree / place
    if thing == "gone" and os.path.lexists(path):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    if os.path.lexists(path) or thing == "gone":
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if thing in {"file", "empty"}:
        path.write_text("" if thing == "empty" else "somebody's\n")
    elif thing == "folder":
        path.mkdir()
    elif thing == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(thing)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    odd=st.dictionaries(st.sampled_from(PLACES), THINGS, max_size=4),
    words=st.sampled_from([(), ("--daemonless",)]),
)
def test_whatever_an_image_is_an_undo_leaves_it_as_it_was(
    odd: dict[str, str], words: tuple[str, ...], image: Image, tmp_path: Path
) -> None:
    tree = Image(tmp_path / "odd", image.capture)
    shutil.rmtree(tree.tree, ignore_errors=True)
    image.copy(tree.tree)
    for place, thing in odd.items():
        with contextlib.suppress(OSError):  # below a name that is no folder by now
            furnish(tree.tree, place, thing)
    before, outside = everything(tree.tree), everything(image.tree)
    run = tree.run("bake", *words)
    assert run.status in {0, 1, 2}
    assert "Traceback" not in run.err
    if run.status == 0:
        assert "Nothing to do" in tree.run("bake", *words).out
    undone = tree.run("bake", "--undo")
    assert undone.status == 0 or RECORD in odd or "etc" in odd, undone
    assert everything(tree.tree) == before
    assert everything(image.tree) == outside
