from __future__ import annotations

import ctypes
import os
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.host.image_root import BareRoot, ImageRoot
from nfstuned.host.root import LARGEST, PART, Root, UnusableError, parts_of, resolve_links
from tests.tree import link, put

OUTSIDE = "outside the image"
OPENAT2 = 437
RESOLVE_NO_MAGICLINKS, RESOLVE_IN_ROOT = 0x02, 0x10
PARTS = st.lists(st.sampled_from(("a", "b", "c", "..")), min_size=1, max_size=5).map("/".join)
TARGETS = st.tuples(st.sampled_from(("", "/")), PARTS).map("".join)
LINKS = st.dictionaries(st.sampled_from(("a", "b", "c/a", "c/b", "c/c/a", "c/c/b")), TARGETS, max_size=6)


READS: tuple[Callable[[Root, str], object], ...] = (
    lambda root, name: root.read(name),
    lambda root, name: root.read_bytes(name),
    lambda root, name: list(root.read_parts(name)),
)


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


@pytest.fixture
def root(image: Path) -> ImageRoot:
    return ImageRoot(str(image))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_an_absolute_link_starts_again_at_the_image(image: Path, root: ImageRoot) -> None:
    put(image / "usr/lib/os-release", "ID=image\n")
    link(image / "etc/os-release", "/usr/lib/os-release")
    link(image / "lib", "/usr/lib")
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
def test_no_link_leads_out(image: Path, root: ImageRoot, target: str) -> None:
    link(image / "etc/a", target.format(tmp=image.parent))
    link(image / "etc/b", "c")
    link(image / "etc/c", "/etc/a")
    link(image / "up", "..")
    for name in ("etc/a", "etc/b", "up/etc/a", "up/secret", "../secret", "etc/../../secret"):
        assert root.read_or_empty(name) == ""
        assert not root.executable(name)
    assert root.names("up") == root.names("") == ["etc", "up"]


def test_a_loop_of_links_is_an_absent_file(image: Path, root: ImageRoot) -> None:
    link(image / "etc/fstab", "../etc/mtab")
    link(image / "etc/mtab", "/etc/fstab")
    link(image / "self", "self/x")
    with pytest.raises(OSError, match="symbolic links"):
        root.read("etc/fstab")
    assert root.names("self") == []
    assert root.exists("etc/fstab")
    assert root.link("etc/fstab") == "../etc/mtab"
    assert root.link("etc/none") is root.link("etc") is None


def test_a_chain_of_links_is_followed_as_far_as_the_kernel_does(image: Path, root: ImageRoot) -> None:
    (image / "etc" / "0").write_text("end")
    for number in range(50):
        link(image / f"etc/{number + 1}", str(number))
    for number in (1, 40, 41):
        try:
            theirs = (image / "etc" / str(number)).read_text()
        except OSError:
            theirs = ""
        assert root.read_or_empty(f"etc/{number}") == theirs


def test_a_link_to_nowhere_exists_and_an_absent_name_does_not(image: Path, root: ImageRoot) -> None:
    for name, target in (("a", "nowhere"), ("null", "/dev/null"), ("other", "../dev/null")):
        link(image / "etc" / name, target)
    assert [root.exists(name) for name in ("etc/a", "etc", "etc/b", "none/b")] == [True, True, False, False]
    with pytest.raises(FileNotFoundError):
        root.read("etc/a")
    assert root.read("etc/null") == root.read("etc/other") == ""
    assert not root.faults


def test_folders_that_are_filled_at_boot_are_not_looked_at(image: Path, root: ImageRoot) -> None:
    for folder in ("proc", "sys", "run", "dev"):
        put(image / folder / "1/mountinfo", "text")
    put(image / "etc/run/a", "text")
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
        "fifo": "a fifo instead of a file: not read",
        "folder": "a directory instead of a file: not read",
        "socket": "a socket instead of a file: not read",
        "large": "is 50 MB, more than 4 MB: not read",
        "linked": "a fifo instead of a file: not read",
    }


@pytest.mark.timeout(5)
@pytest.mark.parametrize("kind", [ImageRoot, Root])
@pytest.mark.parametrize("read", READS)
def test_anything_but_a_text_is_reported_and_never_waited_for(
    image: Path, kind: type[Root], read: Callable[[Root, str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(image / "etc")  # a socket's name has room for a hundred bytes
    wanted = misplace(Path())
    root = kind(str(image))
    before = descriptors()
    for name in wanted:
        with pytest.raises(UnusableError):
            read(root, f"etc/{name}")
    with pytest.raises(FileNotFoundError):
        read(root, "etc/absent")
    assert [str(problem) for problem in tuple(root.faults)] == [
        f"/etc/{name}: {why}" for name, why in wanted.items()
    ]
    assert descriptors() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
def test_a_device_is_reported_and_never_opened(image: Path) -> None:
    os.mknod(image / "etc" / "fstab", 0o20666, os.makedev(1, 5))  # /dev/zero, which has no end
    for root in (ImageRoot(str(image)), Root(str(image))):
        assert root.read_or_empty("etc/fstab") == ""
        assert str(next(iter(root.faults))) == "/etc/fstab: a device instead of a file: not read"


@pytest.mark.parametrize("kind", [ImageRoot, Root])
def test_a_largest_file_is_read_and_bytes_that_are_not_utf8_stay(image: Path, kind: type[Root]) -> None:
    (image / "etc" / "\udcff").write_bytes(b"\xff" * LARGEST)
    root = kind(str(image))
    assert root.names("etc") == ["\udcff"]
    assert root.read("etc/\udcff") == "\udcff" * LARGEST


@pytest.mark.parametrize("kind", [ImageRoot, Root])
def test_a_name_that_no_file_can_have_is_absent(image: Path, kind: type[Root]) -> None:
    root = kind(str(image))
    assert root.read_or_empty("etc/a\0b") == ""
    assert root.names("etc\0") == []
    assert root.link("etc\0") is None
    assert not root.exists("etc\0")
    assert not root.executable("etc\0")
    assert not root.same("etc\0", "etc")


def test_an_executable_is_one_by_its_own_mode(image: Path, root: ImageRoot) -> None:
    put(image / "bin/a", mode=0o755)
    put(image / "bin/b", mode=0o644)
    link(image / "etc/a", "/bin/a")
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


def test_walking_leaves_no_descriptor_open(image: Path, root: ImageRoot) -> None:
    link(image / "a", "/etc/../etc/..//etc")
    (image / "etc" / "fstab").touch()
    before = descriptors()
    for name in ("a/fstab", "a/none", "a/fstab/x", "a", "", "a/../.."):
        root.read_or_empty(name)
        root.names(name)
        root.exists(name)
        root.link(name)
    assert descriptors() == before


@pytest.mark.skipif(tuple(map(int, os.uname().release.split(".")[:2])) < (5, 6), reason="needs openat2(2)")
@given(links=LINKS, names=st.lists(PARTS, min_size=1, max_size=8))
def test_a_name_leads_where_the_kernel_would_find_it(links: dict[str, str], names: list[str]) -> None:
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
def bare(tmp_path: Path) -> BareRoot:
    for name in (HIDDEN, "etc/modprobe.d/other.conf", "etc/slots.conf"):
        put(tmp_path / name, "text", 0o755)
    (tmp_path / "etc/link").symlink_to("slots.conf")
    return BareRoot(str(tmp_path), {HIDDEN, "etc/link"})


def test_a_hidden_file_is_absent_for_every_reader_and_all_others_are_there(bare: BareRoot) -> None:
    for name, there in ((HIDDEN, False), ("etc/modprobe.d/other.conf", True)):
        assert bare.exists(name) is bare.executable(name) is there
        assert bare.read_or_empty(name) == ("text" if there else "")
    assert bare.link("etc/link") is None
    assert bare.names("etc/modprobe.d") == ["other.conf"]
    assert bare.names("etc") == ["modprobe.d", "slots.conf"]
    with pytest.raises(FileNotFoundError):
        bare.read(HIDDEN)


def test_a_file_comes_in_parts_that_are_all_of_it(tmp_path: Path) -> None:
    data = bytes(range(256)) * (PART // 100)
    (tmp_path / "file").write_bytes(data)
    parts = list(Root(str(tmp_path)).read_parts("file"))
    assert b"".join(parts) == data
    assert max(map(len, parts)) <= PART
    assert len(parts) == -(-len(data) // PART)
    (tmp_path / "empty").touch()
    assert list(Root(str(tmp_path)).read_parts("empty")) == []
    before = descriptors()
    unwanted = Root(str(tmp_path)).read_parts("file")
    next(unwanted)
    unwanted.close()  # type: ignore[attr-defined]  # a generator, which the contract does not say
    assert descriptors() == before


def test_what_the_kernel_gives_in_small_pieces_is_put_together() -> None:
    """A pipe gives what was written to it so far, as a file of /proc gives one entry after the other."""
    reader, writer = os.pipe()

    def write() -> None:
        for _ in range(100):
            os.write(writer, b"x" * 4096)
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        parts = list(parts_of(reader, "pipe"))
    finally:
        os.close(reader)
        thread.join()
    assert [len(part) for part in parts] == [PART, 100 * 4096 - PART]


def test_what_the_kernel_makes_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nfstuned.host.root.LARGEST_MADE", 2 * PART)
    (tmp_path / "mountinfo").write_bytes(b"x" * (3 * PART))
    for read in READS:
        root = Root(str(tmp_path))
        with pytest.raises(UnusableError, match="more than"):
            read(root, "mountinfo")
        assert [error.file for error in root.faults] == ["/mountinfo"]


def test_what_cannot_be_read_is_kept_and_what_is_absent_is_not(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    root = Root(str(tmp_path))
    assert (root.read_or_empty("absent"), root.names("absent"), root.exists("absent")) == ("", [], False)
    assert root.link("absent") is None
    assert not root.faults
    with root.faults.block() as outer:
        with root.faults.block() as inner:
            assert root.read_or_empty("loop") == ""
        assert [str(error) for error in inner.values()] == ["/loop: Too many levels of symbolic links"]
        assert outer == inner
    assert [error.file for error in root.faults] == ["/loop"]
    assert [error.file for error in root.faults.unreported()] == ["/loop"]
    assert root.faults.unreported() == ()


MOUNTINFO = """\
1 1 8:1 / / rw - ext4 /dev/sda1 rw
2 1 0:43 / /srv/nfs rw - nfs4 nas:/a rw
3 1 0:50 / /net rw - autofs auto.net rw
"""


@pytest.fixture
def linked(tmp_path: Path) -> Root:
    put(tmp_path / "proc/self/mountinfo", MOUNTINFO)
    (tmp_path / "var/mnt/a").mkdir(parents=True)
    (tmp_path / "srv").mkdir()
    for name, target in {
        "mnt": "var/mnt",
        "data": "/mnt/a",
        "var/mnt/up": "../../srv",
        "export": "srv/nfs/share",
        "loop": "loop",
        "srv/nfs": "/nowhere",  # nothing below a mount is looked at
    }.items():
        (tmp_path / name).symlink_to(target)
    return Root(str(tmp_path))


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("/", "/"),
        ("/var/mnt", "/var/mnt"),
        ("/mnt/a/b", "/var/mnt/a/b"),
        ("/mnt//a/./new/", "/var/mnt/a/new"),
        ("/data", "/var/mnt/a"),
        ("/mnt/up/x", "/srv/x"),
        ("/mnt/a/../../../..", "/"),
        ("/loop/a", "/loop/a"),
        ("/srv/nfs/x/y", "/srv/nfs/x/y"),
        ("/export/x", "/srv/nfs/share/x"),
        ("/net/host", "/net/host"),
    ],
)
def test_links_are_followed_as_far_as_no_server_is_asked(linked: Root, path: str, leads_to: str) -> None:
    assert resolve_links(linked, path) == leads_to


def test_without_mountinfo_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve_links(Root(str(tmp_path)), "/mnt")


@pytest.mark.parametrize(
    ("point", "fstype", "name"),
    [
        ("/opt", "nfs4", "opt/microsoft/aznfs/data/mountmap"),
        ("/opt", "autofs", "opt/microsoft/aznfs/data/mountmap"),
        ("/usr/local", "fuse.sshfs", "usr/local/lib/udev/rules.d/99-nfs.rules"),
        ("/srv/nfs", "nfs", "usr/local/lib/udev/rules.d/99-nfs.rules"),
    ],
)
def test_a_sites_files_on_a_network_are_absent(tmp_path: Path, point: str, fstype: str, name: str) -> None:
    place = tmp_path / name
    if point == "/srv/nfs":
        (tmp_path / "usr").mkdir()
        (tmp_path / "usr/local").symlink_to("../srv/nfs/local")
    place.resolve().parent.mkdir(parents=True)
    place.write_text("a rule")
    mountinfo = put(tmp_path / "proc/1/mountinfo", MOUNTINFO.splitlines()[0] + "\n")
    folder, _, last = name.rpartition("/")
    assert (Root(str(tmp_path)).read(name), Root(str(tmp_path)).names(folder)) == ("a rule", [last])
    mountinfo.write_text(f"{mountinfo.read_text()}9 1 0:60 / {point} rw - {fstype} nas:/x rw\n")
    root = Root(str(tmp_path))
    assert (root.read_or_empty(name), root.names(folder), root.exists(name)) == ("", [], False)
    assert not root.faults


@pytest.mark.parametrize("point", ["/", "/usr"])
def test_where_the_system_is_a_servers_its_files_are_read(tmp_path: Path, point: str) -> None:
    put(tmp_path / "proc/1/mountinfo", f"1 1 0:43 / {point} rw - nfs4 nas:/root rw\n")
    put(tmp_path / "usr/local/file", "text")
    assert Root(str(tmp_path)).read("usr/local/file") == "text"
