"""Every bound on input is in docs/security.md with the code's number and message."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.bench import documents
from nfstuned.host.config import start_load
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.network.names import resolve
from nfstuned.host.network.outside import vm_size
from nfstuned.host.network.reach import reach
from nfstuned.host.observe import observe_intent
from nfstuned.host.root import LARGEST, LARGEST_MADE, Root, parts_of, read_proposal, read_saved
from nfstuned.host.telemetry.history import LONGEST, from_files
from nfstuned.model.policy import ConfigError
from nfstuned.parse.etc.certificate import parse_certificates
from nfstuned.parse.etc.cloud import parse_cloud
from nfstuned.parse.etc.tunnel import parse_mountmap, parse_tunnel_list
from nfstuned.parse.fields import parse_number, quoted
from nfstuned.parse.proc.mountstats import parse_mountstats
from nfstuned.parse.toml import parse_toml
from nfstuned.parse.udev_rules import parse_udev_rules
from nfstuned.view.metrics import findings_lines
from tests.host.servers import silent_port
from tests.tree import put

PAGE = Path(__file__).parents[1] / "docs/security.md"
NOTHING = "nothing: "
Reached = Callable[[Path], str]


class Row:
    """A row of the table."""

    def __init__(self, cells: list[str]) -> None:
        self.input, self.who, self.bound, said, constant = cells
        self.said = said.strip("`")
        self.constant = constant.strip("`")

    def __str__(self) -> str:
        return self.input

    @property
    def value(self) -> int:
        """The bound as a number."""
        return int(self.bound.split()[0].replace(",", ""))


def table() -> Iterator[Row]:
    """Yield the rows of the section about bounds."""
    section = PAGE.read_text().partition("\n## Bounds\n")[2].partition("\n## ")[0]
    for line in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        if not line.startswith("-"):
            yield Row(line.split(" | "))


ROWS = [row for row in table() if row.constant != "Constant"]


def intent_problems(folder: Path, **files: str) -> str:
    """Return the problems of the look at administrators' files."""
    for name, text in files.items():
        put(folder / "etc" / name.replace("_", "."), text)
    return "\n".join(map(str, observe_intent(Root(str(folder)), ()).problems))


def assignments(number: int) -> str:
    """Return lines of nfsmount.conf."""
    return "".join(f"a{step}=1\n" for step in range(number))


def sections(number: int) -> str:
    """Return a section with an assignment for each of so many servers."""
    return "".join(f'[ Server "s{step}" ]\nrsize=4096\n' for step in range(number))


def refused(run: Callable[[], object]) -> str:
    """Return why something is refused."""
    with pytest.raises((OSError, ValueError, ConfigError, ParseError)) as error:
        run()
    return str(error.value)


def large(bound: int, read: Callable[[Path], object]) -> Reached:
    """Return a reader of a file that is a byte larger than a bound."""

    def reach_bound(folder: Path) -> str:
        with (folder / "large").open("wb") as file:
            file.truncate(bound + 1)
        return refused(lambda: read(folder / "large"))

    return reach_bound


def read_table(path: Path) -> object:
    with path.open("rb") as file:
        return list(parts_of(file.fileno(), "large"))


def links(folder: Path) -> str:
    for step in range(50):
        (folder / str(step)).symlink_to(str(step + 1))
    return refused(lambda: ImageRoot(str(folder)).read("0"))


def includes(folder: Path) -> str:
    text = '[ Server "s" ]\n' + "include=/etc/n\n" * 101
    return intent_problems(folder, nfsmount_conf=text, n="a=1\n")


def deep_includes(folder: Path) -> str:
    return intent_problems(
        folder,
        nfsmount_conf='[ Server "s" ]\ninclude=/etc/n0\n',
        **{f"n{step}": f"include=/etc/n{step + 1}\n" for step in range(20)},
    )


def maps(folder: Path) -> str:
    return intent_problems(
        folder, auto_master="".join(f"/a{step} auto.x\n" for step in range(1001)), auto_x="k s:/x\n"
    )


def names(folder: Path) -> str:
    put(folder / "etc/resolv.conf", "nameserver 127.0.0.1\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.1", 0))
        (answer,) = resolve(Root(str(folder)), ["a.example.com"], port=dead.getsockname()[1])
    return str(answer.error)


def port(_: Path) -> str:
    with silent_port() as silent:
        (answer,) = reach([[("127.0.0.1", silent)]])
    return str(answer)


def metadata(_: Path) -> str:
    with silent_port() as silent:
        return vm_size(f"http://127.0.0.1:{silent}/")[1]


def samples(folder: Path) -> str:
    (folder / "samples").write_bytes(b"x" * (LONGEST + 1))
    return "\n".join(map(str, from_files(str(folder / "samples"), None)))


def late_child(folder: Path) -> str:
    child = start_load(Root(str(folder)), 0.0)
    assert child.overdue()
    return refused(child.finish)


REACHED: dict[str, Reached] = {
    "a document of bench, `bench --against FILE`": large(
        documents.LARGEST, lambda path: documents.read_bench(str(path))
    ),
    "a file that the kernel makes, such as mountinfo": large(LARGEST_MADE, read_table),
    "a saved copy of mountstats, `top --file FILE` or `-`": large(
        LARGEST_MADE, lambda path: read_saved(str(path))
    ),
    "a text file of the host or of an image": large(
        LARGEST, lambda path: Root(str(path.parent)).read(path.name)
    ),
    "a proposed file, `FILE` or `-`": large(LARGEST, lambda path: read_proposal(str(path))),
    "the links on a path in an image": links,
    "a number in a kernel's file": lambda _: refused(lambda: parse_number("x", str(2**64))),
    "damaged lines of a mount in mountstats": lambda _: str(
        parse_mountstats("device s:/ mounted on /m with fstype nfs\n" + "\tbytes:\tx\n" * 9)
    ),
    "the quotation of a text in a message": lambda _: quoted("x" * 81),
    "mounts that fstab, units and maps ask for": lambda folder: intent_problems(
        folder, fstab="".join(f"s:/{step} /mnt/{step} nfs rw 0 0\n" for step in range(10_001))
    ),
    "the options of such a mount": lambda folder: intent_problems(
        folder, fstab=f"s:/ /m nfs {'a' * 4097} 0 0\n"
    ),
    "its source and its mount point": lambda folder: intent_problems(
        folder, fstab=f"s:/{'a' * 4095} /m nfs rw 0 0\n"
    ),
    "lines of these files that are not understood": lambda folder: intent_problems(
        folder, fstab="x\n" * 1001
    ),
    "assignments of nfsmount.conf": lambda folder: intent_problems(folder, nfsmount_conf=sections(1001)),
    "assignments of a section of nfsmount.conf": lambda folder: intent_problems(
        folder, nfsmount_conf="[ NFSMount_Global_Options ]\n" + assignments(101)
    ),
    "files that nfsmount.conf includes": includes,
    "nesting of these includes": deep_includes,
    "files of the automounter's maps": maps,
    "nesting of maps that are mounted in each other": lambda folder: intent_problems(
        folder, auto_master="/a auto.x\n", auto_x="k -fstype=autofs auto.x\n"
    ),
    "maps that are not files": lambda folder: intent_problems(
        folder, auto_master="".join(f"/a{step} yp:x\n" for step in range(1001))
    ),
    "an entry of a map, with its key and variables put in": lambda folder: intent_problems(
        folder, auto_master="/a auto.x\n", auto_x=f"{'k' * 200} s:/{'&' * 82}\n"
    ),
    "servers of a location in a map": lambda folder: intent_problems(
        folder, auto_master="/a auto.x\n", auto_x=f"k {','.join(['s'] * 33)}:/x\n"
    ),
    "accounts that AZNFS lists as mounted": lambda _: str(
        parse_mountmap("sa1.blob.core.windows.net 10.161.100.100 52.1.2.3\n" * 1001, "f", "azure-blob")[-1]
    ),
    "tunnels that AZNFS lists": lambda _: str(
        parse_tunnel_list("10.0.0.4;/c;/l;/p;1;mounted;1\n" * 1001, "f")[-1]
    ),
    "a file of cloud-init's configuration, in an image": lambda _: refused(
        lambda: parse_cloud("#" * 131_073, "f")
    ),
    "the aliases in such a file": lambda _: refused(
        lambda: parse_cloud(f"a: &x 1\nb: [{'*x, ' * 101}]\n", "f")
    ),
    "nesting of its lists and mappings": lambda _: refused(lambda: parse_cloud("[" * 33, "f")),
    "certificates in such a CA file": lambda _: str(
        parse_certificates("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n" * 1001, "f")[-1]
    ),
    "such a certificate, in base64": lambda _: str(
        parse_certificates(f"-----BEGIN CERTIFICATE-----\n{'A' * 65_537}\n-----END CERTIFICATE-----\n", "f")
    ),
    "a line of a udev rules file": lambda _: str(parse_udev_rules("#" + "x" * 16_383).defects),
    "a file of nfstuned's configuration": lambda _: refused(lambda: parse_toml("f", "#" * 262_145)),
    "a key with dots in it": lambda _: refused(lambda: parse_toml("f", ".".join("a" * 17) + " = 1\n")),
    "the time of its validation": late_child,
    "a line of a file of samples": samples,
    "the findings that `nfstuned-check.timer` leaves": lambda _: refused(
        lambda: findings_lines("x" * 65_537)
    ),
    "the answers of name servers": names,
    "the connection to a server's port": port,
    "the answer of the VM's metadata service": metadata,
}
"""By input: a way to reach its bound."""


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_bound_is_the_codes_and_is_reported_where_it_is_reached(row: Row, tmp_path: Path) -> None:
    module, _, name = row.constant.rpartition(".")
    assert getattr(import_module(f"nfstuned.{module}"), name) == row.value
    if row.said.startswith(NOTHING):
        assert row.input not in REACHED
    else:
        assert row.said in REACHED[row.input](tmp_path)


@pytest.mark.parametrize(
    ("files", "below"),
    [
        ({"fstab": "".join(f"s:/{step} /mnt/{step} nfs rw 0 0\n" for step in range(10_000))}, "10000"),
        ({"fstab": f"s:/ /m nfs {'a' * 4096} 0 0\n"}, "4096"),
        ({"auto_master": "/a auto.x\n", "auto_x": f"k {','.join(['s'] * 32)}:/x\n"}, "32"),
        ({"nfsmount_conf": sections(1000)}, "1000"),
        ({"nfsmount_conf": "[ NFSMount_Global_Options ]\n" + assignments(100)}, "100"),
    ],
)
def test_a_text_within_a_bound_is_read_whole(files: dict[str, str], below: str, tmp_path: Path) -> None:
    assert below not in intent_problems(tmp_path, **files)


def test_maps_that_include_each_other_end(tmp_path: Path) -> None:
    """As sixteen files that include all others once did not."""
    files = {
        f"auto_x{step}": "".join(f"+auto.x{other}\n" for other in range(16)) + f"k{step} s:/x\n"
        for step in range(16)
    }
    assert intent_problems(tmp_path, auto_master="/a auto.x0\n", **files) == ""
    points = {request.point for request in observe_intent(Root(str(tmp_path)), ()).requests}
    assert points == {f"/a/k{step}" for step in range(16)}


@pytest.mark.slow
def test_each_test_that_the_page_names_is_there() -> None:
    page = PAGE.read_text()
    named = set(re.findall(r"`((?:tests/[a-z/]+/)?test_[a-z_]+\.py)`", page))
    project = PAGE.parents[1]
    assert named
    assert [name for name in sorted(named) if not list((project / "tests").rglob(Path(name).name))] == []
