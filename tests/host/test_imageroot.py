from __future__ import annotations

import ctypes
import os
import socket
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.host.image_root import BareRoot, ImageRoot
from nfstuned.host.root import LARGEST, Root, UnusableError
from nfstuned.host.system import observe_image
from tests.tree import link, put

OUTSIDE = "outside the image"
OPENAT2 = 437
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10
PARTS = st.lists(st.sampled_from(("a", "b", "c", "..")), min_size=1, max_size=5).map("/".join)
TARGETS = st.tuples(st.sampled_from(("", "/")), PARTS).map("".join)
LINKS = st.dictionaries(st.sampled_from(("a", "b", "c/a", "c/b", "c/c/a", "c/c/b")), TARGETS, max_size=6)


class OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def kernel_reads(image: str, name: str) -> str:
    """Return the text that openat2(2) finds inside a folder; "" for an absent file."""
    folder = os.open(image, os.O_PATH)
    how = OpenHow(os.O_RDONLY, 0, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS)
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    fd = syscall(OPENAT2, folder, name.encode(), ctypes.byref(how), ctypes.sizeof(how))
    try:
        return os.read(fd, 1000).decode() if fd >= 0 else ""
    except IsADirectoryError:
        return ""
    finally:
        os.close(folder)
        if fd >= 0:
            os.close(fd)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """An image next to a file outside it."""
    folder = tmp_path / "image"
    (folder / "etc").mkdir(parents=True)
    put(tmp_path / "secret", OUTSIDE)
    put(tmp_path / "etc/fstab", OUTSIDE)
    return folder


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_an_absolute_link_starts_again_at_the_image(image: Path) -> None:
    put(image / "usr/lib/os-release", "ID=image\n")
    link(image / "etc/os-release", "/usr/lib/os-release")
    link(image / "lib", "/usr/lib")
    root = ImageRoot(str(image))
    assert root.read("etc/os-release") == root.read("lib/os-release") == "ID=image\n"
    assert root.names("lib") == ["os-release"]
    assert root.same("lib", "usr/lib")
    assert not root.same("lib", "etc")


@pytest.mark.parametrize(
    "target",
    [
        "../../etc/fstab",
        "../../../../../../../../../../../../../etc/fstab",
        "/../etc/fstab",
        "{tmp}/etc/fstab",
        "{tmp}/secret",
        "../../secret",
        "/proc/self/root/etc/passwd",
        "/proc/1/mountinfo",
        "/dev/fd/0",
    ],
)
def test_no_link_leads_out(image: Path, target: str) -> None:
    link(image / "etc/a", target.format(tmp=image.parent))
    link(image / "etc/b", "c")
    link(image / "etc/c", "/etc/a")
    link(image / "up", "..")
    root = ImageRoot(str(image))
    for name in ("etc/a", "etc/b", "up/etc/a", "up/secret", "../secret", "etc/../../secret"):
        assert root.read_or_empty(name) == ""
        assert not root.executable(name)
    assert root.names("up") == root.names("") == ["etc", "up"]


def test_a_parent_above_the_image_is_the_image_as_in_a_chroot(image: Path) -> None:
    (image / "etc" / "fstab").write_text("inside")
    link(image / "etc/a", "../../../etc/fstab")
    assert ImageRoot(str(image)).read("etc/a") == "inside"


def test_a_loop_of_links_is_an_absent_file(image: Path) -> None:
    link(image / "etc/fstab", "../etc/mtab")
    link(image / "etc/mtab", "/etc/fstab")
    link(image / "self", "self/x")
    root = ImageRoot(str(image))
    with pytest.raises(OSError, match="symbolic links"):
        root.read("etc/fstab")
    assert root.names("self") == []
    assert root.exists("etc/fstab")
    assert root.link("etc/fstab") == "../etc/mtab"
    assert root.link("etc/none") is root.link("etc") is None


def test_a_chain_of_links_is_followed_as_far_as_the_kernel_does(image: Path) -> None:
    (image / "etc" / "0").write_text("end")
    for number in range(50):
        link(image / f"etc/{number + 1}", str(number))
    root = ImageRoot(str(image))
    for number in (1, 40, 41):
        try:
            theirs = (image / "etc" / str(number)).read_text()
        except OSError:
            theirs = ""
        assert root.read_or_empty(f"etc/{number}") == theirs


def test_a_link_to_nowhere_exists_and_an_absent_name_does_not(image: Path) -> None:
    link(image / "etc/a", "nowhere")
    root = ImageRoot(str(image))
    assert root.exists("etc/a")
    assert root.exists("etc")
    assert not root.exists("etc/b")
    assert not root.exists("none/b")
    with pytest.raises(FileNotFoundError):
        root.read("etc/a")


def test_a_link_to_dev_null_is_an_empty_file(image: Path) -> None:
    link(image / "etc/a", "/dev/null")
    link(image / "etc/b", "../dev/null")
    root = ImageRoot(str(image))
    assert root.read("etc/a") == root.read("etc/b") == ""
    assert tuple(root.faults) == ()


def test_folders_that_are_filled_at_boot_are_not_looked_at(image: Path) -> None:
    for folder in ("proc", "sys", "run", "dev"):
        put(image / folder / "1/mountinfo", "text")
    put(image / "etc/run/a", "text")
    root = ImageRoot(str(image))
    assert root.view == "proc/self"
    assert [root.names(folder) for folder in ("proc", "sys", "run", "dev")] == [[], [], [], []]
    assert root.read_or_empty("proc/1/mountinfo") == ""
    assert root.read("etc/run/a") == "text"


def misplace(path: Path) -> dict[str, str]:
    """Put other things where files should be; return the problem of each."""
    os.mkfifo(path / "fifo")
    (path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path / "socket"))
    with (path / "large").open("wb") as file:
        file.truncate(50_000_000)
    (path / "linked").symlink_to("fifo")
    return {
        "fifo": "a fifo where a file should be: not read",
        "folder": "a directory where a file should be: not read",
        "socket": "a socket where a file should be: not read",
        "large": "is 50 MB, more than 4 MB: not read",
        "linked": "a fifo where a file should be: not read",
    }


@pytest.mark.timeout(5)
@pytest.mark.parametrize("kind", [ImageRoot, Root])
def test_anything_but_a_text_is_reported_and_never_waited_for(
    image: Path, kind: type[Root], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(image / "etc")  # a socket's name has room for a hundred bytes
    wanted = misplace(Path())
    root = kind(str(image))
    before = descriptors()
    for name in wanted:
        with pytest.raises(UnusableError):
            root.read(f"etc/{name}")
    assert [str(problem) for problem in tuple(root.faults)] == [
        f"/etc/{name}: {why}" for name, why in wanted.items()
    ]
    assert descriptors() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_reported_and_never_opened(image: Path) -> None:
    os.mknod(image / "etc" / "fstab", 0o20666, os.makedev(1, 5))  # /dev/zero, which has no end
    for root in (ImageRoot(str(image)), Root(str(image))):
        assert root.read_or_empty("etc/fstab") == ""
        assert str(next(iter(root.faults))) == "/etc/fstab: a device where a file should be: not read"


@pytest.mark.parametrize("kind", [ImageRoot, Root])
def test_a_file_of_the_largest_size_is_read(image: Path, kind: type[Root]) -> None:
    (image / "etc" / "fstab").write_bytes(b"#" * LARGEST)
    assert len(kind(str(image)).read("etc/fstab")) == LARGEST


@pytest.mark.parametrize("kind", [ImageRoot, Root])
def test_bytes_that_are_not_utf8_are_kept_in_texts_and_names(image: Path, kind: type[Root]) -> None:
    (image / "etc" / "\udcff").write_bytes(b"\xff\xfe")
    root = kind(str(image))
    assert root.names("etc") == ["\udcff"]
    assert root.read("etc/\udcff") == "\udcff\udcfe"


@pytest.mark.parametrize("kind", [ImageRoot, Root])
def test_a_name_that_no_file_can_have_is_absent(image: Path, kind: type[Root]) -> None:
    root = kind(str(image))
    assert root.read_or_empty("etc/a\0b") == ""
    assert root.names("etc\0") == []
    assert root.link("etc\0") is None
    assert not root.exists("etc\0")
    assert not root.executable("etc\0")
    assert not root.same("etc\0", "etc")


def test_an_executable_is_one_by_its_own_mode(image: Path) -> None:
    put(image / "bin/a", mode=0o755)
    put(image / "bin/b", mode=0o644)
    link(image / "etc/a", "/bin/a")
    root = ImageRoot(str(image))
    assert root.executable("bin/a")
    assert root.executable("etc/a")
    assert not root.executable("bin/b")
    assert not root.executable("bin")


def test_a_denied_file_is_remembered(as_user: None) -> None:
    del as_user
    root = ImageRoot("/")
    assert root.read_or_empty("etc/shadow") == ""
    assert [error.file for error in root.faults.denied()] == ["/etc/shadow"]


def test_a_root_that_is_no_folder_is_refused(image: Path) -> None:
    with pytest.raises(NotADirectoryError):
        ImageRoot(str(image.parent / "secret"))
    with pytest.raises(FileNotFoundError):
        ImageRoot(str(image / "none"))


def test_walking_leaves_no_descriptor_open(image: Path) -> None:
    link(image / "a", "/etc/../etc/..//etc")
    (image / "etc" / "fstab").touch()
    root = ImageRoot(str(image))
    before = descriptors()
    for name in ("a/fstab", "a/none", "a/fstab/x", "a", "", "a/../.."):
        root.read_or_empty(name)
        root.names(name)
        root.exists(name)
        root.link(name)
    assert descriptors() == before


@pytest.mark.timeout(10)
def test_an_image_full_of_pipes_is_read_in_a_moment(image: Path) -> None:
    for name in ("fstab", "nfsmount.conf", "auto.master", "nfs.conf", "os-release", "machine-id"):
        os.mkfifo(image / "etc" / name)
    (image / "etc" / "systemd" / "system" / "mnt.mount").mkdir(parents=True)
    root = ImageRoot(str(image))
    started = time.monotonic()
    assert observe_image(root).requests == ()
    assert time.monotonic() - started < 2
    assert {problem.file for problem in tuple(root.faults)} >= {"/etc/fstab", "/etc/systemd/system/mnt.mount"}


@pytest.mark.skipif(tuple(map(int, os.uname().release.split(".")[:2])) < (5, 6), reason="needs openat2(2)")
@given(links=LINKS, names=st.lists(PARTS, min_size=1, max_size=8))
def test_a_name_leads_where_the_kernel_would_find_it_in_this_root(
    links: dict[str, str], names: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "image"
        (image / "c" / "c").mkdir(parents=True)
        for name in ("../a", "../c", "c/c/c", *(set("ab") - links.keys())):
            (image / name).write_text(f"the file {name}")
        for name, target in links.items():
            (image / name).symlink_to(target)
        root = ImageRoot(str(image))
        assert [root.read_or_empty(name) for name in names] == [
            kernel_reads(str(image), name) for name in names
        ]


HIDDEN = "etc/modprobe.d/slots.conf"


@pytest.fixture
def root(tmp_path: Path) -> BareRoot:
    for name in (HIDDEN, "etc/modprobe.d/other.conf", "etc/slots.conf"):
        put(tmp_path / name, "text", 0o755)
    (tmp_path / "etc/link").symlink_to("slots.conf")
    return BareRoot(str(tmp_path), {HIDDEN, "etc/link"})


def test_a_hidden_file_is_absent_for_every_reader(root: BareRoot) -> None:
    assert not root.exists(HIDDEN)
    assert not root.executable(HIDDEN)
    assert root.read_or_empty(HIDDEN) == ""
    assert root.link("etc/link") is None
    assert root.names("etc/modprobe.d") == ["other.conf"]
    with pytest.raises(FileNotFoundError):
        root.read(HIDDEN)


def test_all_other_files_are_there(root: BareRoot) -> None:
    assert root.exists("etc/modprobe.d/other.conf")
    assert root.executable("etc/slots.conf")
    assert root.read("etc/slots.conf") == "text"
    assert root.names("etc") == ["modprobe.d", "slots.conf"]
