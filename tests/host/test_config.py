from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from nfstuned.host.config import FILE, builtin_policy, find_files, start_load
from nfstuned.host.policy import builtin_texts, load_policy
from nfstuned.host.root import Root
from nfstuned.model.policy import ConfigError, UnvalidatedError
from nfstuned.parse.policy import parse_config
from tests.tree import put

TIMEOUT_S = 60.0
BROKEN = "[daemon]\nrestore_on_stop = 1\nx = 2\n"


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    folder = tmp_path / "etc" / "nfstuned"
    (folder / "conf.d").mkdir(parents=True)
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(str(tmp_path))


def open_descriptors() -> list[str]:
    return sorted(str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())


def children() -> set[str]:
    """The processes that this one has started and not yet waited for."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def problems(root: Root) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        load_policy(root)
    return caught.value.problems


def test_a_host_without_configuration_has_the_built_in_profiles(root: Root) -> None:
    assert find_files(root) == ()
    policy = load_policy(root)
    names = [profile.name for profile in policy.profiles]
    names += [workload.name for workload in policy.workloads]
    assert [name for name, _ in builtin_texts()] == [f"built-in {name}.toml" for name in names]


def test_drop_ins_follow_the_main_file_by_name_and_editors_files_are_left_out(etc: Path, root: Root) -> None:
    for name in ("20-b.toml", "10-a.toml", "x.toml~", ".#10-a.toml", "README"):
        (etc / "conf.d" / name).write_text("")
    (etc / "nfstuned.toml").write_text("")
    assert find_files(root) == (
        "etc/nfstuned/nfstuned.toml",
        "etc/nfstuned/conf.d/10-a.toml",
        "etc/nfstuned/conf.d/20-b.toml",
    )
    assert load_policy(root).files == tuple(root.path(name) for name in find_files(root))


def test_a_file_instead_of_the_drop_ins_folder_is_reported(etc: Path, root: Root) -> None:
    (etc / "conf.d").rmdir()
    (etc / "conf.d").write_text("")
    assert problems(root) == (f"{etc}/conf.d: cannot be listed: Not a directory",)


def test_an_unreadable_file_is_reported_and_the_others_are_checked(etc: Path, root: Root) -> None:
    (etc / "nfstuned.toml").mkdir()
    (etc / "conf.d" / "1.toml").symlink_to("nowhere")
    (etc / "conf.d" / "2.toml").write_bytes(b"# one\n# \xe9\n")
    (etc / "conf.d" / "3.toml").write_text(BROKEN)
    assert [line.partition(": ")[0] for line in problems(root)] == [
        f"{etc}/nfstuned.toml",
        f"{etc}/conf.d/1.toml",
        f"{etc}/conf.d/2.toml:2",
        f"{etc}/conf.d/3.toml:2",
        f"{etc}/conf.d/3.toml:3",
    ]


def test_a_file_of_others_is_reported(readable: Path, request: pytest.FixtureRequest) -> None:
    etc = readable / "etc/nfstuned"
    (etc / "conf.d").mkdir(parents=True)
    (etc / "nfstuned.toml").touch(0o000)
    request.getfixturevalue("as_user")
    assert problems(Root(str(readable))) == (f"{etc}/nfstuned.toml: cannot be read: Permission denied",)


def test_a_child_answers_the_same_as_this_process(etc: Path, root: Root) -> None:
    (etc / "nfstuned.toml").write_text('[[policy]]\nmatch.export = "/é"\nprofile = "generic"\n')
    assert asdict(start_load(root, TIMEOUT_S).finish()) == asdict(load_policy(root))
    for name, shown in (("nfstuned.toml", "nfstuned.toml"), ("conf.d/\udcff.toml", "conf.d/\\udcff.toml")):
        (etc / name).write_text(BROKEN)
        with pytest.raises(ConfigError) as caught:
            start_load(root, TIMEOUT_S).finish()
        assert caught.value.problems == tuple(line.replace(name, shown) for line in problems(root))


def test_a_file_that_cannot_be_read_may_be_right_and_a_wrong_text_is_not(etc: Path, root: Root) -> None:
    (etc / "nfstuned.toml").mkdir()
    with pytest.raises(UnvalidatedError, match=r"nfstuned\.toml: cannot be read: "):
        start_load(root, TIMEOUT_S).finish()
    (etc / "nfstuned.toml").rmdir()
    (etc / "nfstuned.toml").write_text(BROKEN)
    with pytest.raises(ConfigError) as caught:
        start_load(root, TIMEOUT_S).finish()
    assert not isinstance(caught.value, UnvalidatedError)


def test_a_running_child_can_be_watched(root: Root) -> None:
    child = start_load(root, TIMEOUT_S)
    assert not child.overdue()
    assert child.deadline > time.monotonic()
    poll = select.poll()
    poll.register(child, select.POLLIN)
    assert poll.poll(TIMEOUT_S * 1000)
    assert child.finish().profiles == load_policy(root).profiles
    assert child.fileno() == -1


def test_a_child_that_is_killed_leaves_nothing_behind(root: Root) -> None:
    before = open_descriptors(), children()
    child = start_load(root, TIMEOUT_S)
    assert len(children() - before[1]) == 1
    child.kill()
    child.kill()
    assert (open_descriptors(), children()) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("#!/bin/sh\nexit 3\n", "its child ended with 3"),
        ("#!/bin/sh\nexit 2\n", "its child ended with 2"),
        ("#!/bin/sh\nkill -9 $$\n", "its child ended with -9"),
        ("#!/bin/sh\necho '{}'\n", "not a policy"),
        ("#!/bin/sh\nexec >&-\nsleep 30\n", "in time"),
        ("#!/bin/sh\necho x\nexec sleep 30\n", "in time"),
        (None, "cannot be validated"),
    ],
)
def test_each_failure_of_the_child_is_a_configuration_error(
    program: str | None, message: str, tmp_path: Path, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    if program is not None:
        put(python, program, 0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    before = children()
    with pytest.raises(UnvalidatedError, match=message):
        start_load(root, 0.5).finish()
    assert children() == before


@pytest.mark.parametrize("room", [0, 1, 2, 3])
def test_without_free_descriptors_the_configuration_is_refused(root: Root, room: int) -> None:
    before = open_descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + room, hard))
    try:
        with pytest.raises(ConfigError, match="Too many open files"):
            start_load(root, TIMEOUT_S)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert open_descriptors() == before


def test_a_child_that_cannot_be_killed_holds_nobody_up(root: Root, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfstuned.host.config.GRACE_S", 0.1)
    child = start_load(root, 0.0)
    process = child._process  # noqa: SLF001 - nobody else can let it live
    kill = process.kill
    monkeypatch.setattr(process, "kill", lambda: None)
    os.kill(process.pid, signal.SIGSTOP)
    with pytest.raises(ConfigError, match="in time"):
        child.finish()
    assert process.poll() is None
    kill()
    process.wait(TIMEOUT_S)


def test_the_built_in_policy_is_that_of_the_profiles_files(golden: Callable[[Path, str], None]) -> None:
    policy = parse_config(builtin_texts(), ())
    golden(Path(FILE), json.dumps(asdict(policy), indent=1) + "\n")
    assert asdict(builtin_policy()) == asdict(policy)
