"""`nfstuned check --root DIR` and `bake` open nothing outside of DIR: strace(1) watches them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.check import hosts

PROJECT = Path(__file__).parents[2]
_CALL = re.compile(r"\d+ +(?P<call>\w+)\((?P<rest>.*)")
_AT = re.compile(r"(?:AT_FDCWD|\d+)<(?P<at>[^>]*)>, ")
_STRING = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*)"')
_RESULT = re.compile(r"= \d+<(?P<path>[^>]*)>(?:\(deleted\))?$")
_LIBRARIES = re.compile(
    r"/(?:usr/)?lib(?:32|64|x32)?(?:/[a-z0-9_]+-linux-[a-z0-9]+)?/(?:glibc-hwcaps/.*|[^/]*\.so[^/]*|gconv/.*)?$"
    r"|/etc/ld\.so\.(?:cache|preload)$|/usr/(?:lib|share)/locale(?:-langpack)?(?:/.*)?$|/etc/locale\.alias$"
    r"|/etc/localtime$|/usr/share/zoneinfo/.*|(?:/etc|/usr/lib)/ssl/openssl\.cnf$"
    r"|/proc/self/fd(?:/\d+)?$|/proc/(?:self|\d+)/cgroup$|/sys/fs/cgroup(?:/.*)?/cpu(?:\.[a-z_]+)?$"
)
"""Files that libraries open by themselves: the linker, the C library, OpenSSL; pydantic's counts processors.
And the process's own files: by /proc/self/fd a file without a name gets its name."""


def interpreter() -> tuple[str, ...]:
    """Return the paths of Python and its packages: a check may read these and the image."""
    paths, base = sysconfig.get_paths(), sys.base_prefix
    mine = (*filter(None, sys.path), paths["stdlib"], paths["platstdlib"], sys.prefix, str(PROJECT))
    zipped = f"{base}/lib/python{sys.version_info.major}{sys.version_info.minor}.zip"
    programs = (sys.executable, os.path.realpath(sys.executable), f"{base}/bin/", zipped)
    return (*mine, *programs, *map(os.path.realpath, mine), f"{base}/local/lib/python")


def looked_at(log: str) -> set[str]:
    """Return every path in a system call, and every file that a call opened."""
    seen: set[str] = set()
    for line in log.splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        rest = match["rest"]
        opened = _RESULT.search(rest)
        if opened and opened["path"].startswith("/"):
            seen.add(opened["path"])
        at, string = _AT.match(rest), _STRING.search(rest)
        if string and string["text"] and match["call"] != "getcwd":
            seen.add(os.path.normpath(os.path.join(at["at"] if at else str(PROJECT), string["text"])))
    return seen


def strangers(paths: set[str], image: Path) -> list[str]:
    """Return the paths outside the image and Python, but for the folders above them."""
    known = (str(image), *interpreter())
    return sorted(
        path
        for path in paths
        if not path.startswith(known)
        and not _LIBRARIES.match(path)
        and not any(one.startswith(path.rstrip("/") + "/") for one in known)
    )


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image with links, pipes and sizes that lead a careless reader astray."""
    folder = hosts.load("image-links-out").build(tmp_path / "image")
    links = {
        "etc/fstab": "/etc/fstab",
        "etc/nfsmount.conf.d": "/etc",
        "etc/nfstuned/nfstuned.toml": "../../../../../../../../../../etc/hostname",
        "etc/modprobe.d": "/../../../../../../../../etc/modprobe.d",
        "etc/systemd/system-preset": "/proc/self/cwd",
        "etc/udev/rules.d": "../../../../../../../../usr/lib/udev/rules.d",
        "run/udev/rules.d": "/run/udev",
        "usr/local/lib/systemd": str(tmp_path),
    }
    for name, target in links.items():
        (folder / name).unlink(missing_ok=True)
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target)
    return folder


def watched(log: Path, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command about the image under strace."""
    watch = ("strace", "-f", "-y", "-s", "4096", "-e", "trace=file", "-o", str(log))
    command = (sys.executable, "-s", "-m", "nfstuned", words[0], "--root", str(image), *words[1:])
    command = (*watch, *command, "--format", "json")
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=PROJECT, env=env)


def test_nothing_outside_the_image_is_looked_at(image: Path, tmp_path: Path) -> None:
    log = tmp_path / "strace"
    done = watched(log, image, "check")
    # Its fstab is a link to itself.
    assert done.returncode == 2
    assert "/etc/fstab: Too many levels of symbolic links" in done.stderr.splitlines()
    assert json.loads(done.stdout)["root"] == str(image)
    paths = looked_at(log.read_text())
    assert f"{image}/etc/auto.master" in paths
    assert strangers(paths, image) == []


@pytest.mark.slow
def test_nothing_outside_the_image_is_baked_nor_looked_at_for_that(image: Path, tmp_path: Path) -> None:
    # nfs.conf is a link to itself, after which nothing would be written.
    replaced = ("etc/nfstuned/nfstuned.toml", "etc/fstab", "etc/nfsmount.conf.d", "etc/modprobe.d")
    for name in (*replaced, "etc/nfs.conf"):
        (image / name).unlink()
    (image / "etc/nfstuned/nfstuned.toml").write_text(
        '[[policy]]\nmatch = { server = "10.1.2.4" }\nprofile = "azure-netapp-files"\n'
    )
    (image / "etc/fstab").write_text("10.1.2.4:/vol1 /mnt/vol1 nfs vers=4.1 0 0\n")
    for words in (("bake",), ("bake", "--daemonless"), ("bake", "--undo")):
        log = tmp_path / f"strace{len(words[-1])}"
        done = watched(log, image, *words)
        assert json.loads(done.stdout)["actions"], done.stderr
        paths = looked_at(log.read_text())
        assert f"{image}/etc/nfstuned-baked.json" in paths
        assert strangers(paths, image) == [], words


@pytest.mark.parametrize(
    "path", ["/etc/fstab", "/etc", "/proc/1/mountinfo", "/usr/lib/udev/rules.d", "/dev/null"]
)
def test_the_watch_would_see_a_file_of_the_host(path: str, tmp_path: Path) -> None:
    for call in (
        f'openat(AT_FDCWD<{PROJECT}>, "{path}", O_RDONLY|O_CLOEXEC) = 3<{path}>',
        f'openat(4<{tmp_path}/etc>, "fstab", O_RDONLY|O_CLOEXEC) = 3<{path}>',
        f'newfstatat(4</>, "{path[1:]}", 0x7ffc, AT_SYMLINK_NOFOLLOW) = -1 ENOENT (No such file)',
    ):
        assert strangers(looked_at(f"123 {call}\n"), tmp_path) == [path]
