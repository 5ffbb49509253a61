"""Every bound on input is in docs/security.md with the code's number and message."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
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
from nfstuned.parse.deploy.ansible import PlayFile, ansible_requests
from nfstuned.parse.etc.certificate import parse_certificates
from nfstuned.parse.etc.cloud import parse_cloud
from nfstuned.parse.etc.tunnel import parse_mountmap, parse_tunnel_list
from nfstuned.parse.fields import parse_number, quoted
from nfstuned.parse.proc.mountstats import parse_mountstats
from nfstuned.parse.toml import parse_toml
from nfstuned.parse.udev_rules import parse_udev_rules
from nfstuned.parse.verdict import parse_verdict
from nfstuned.parse.yaml import parse_documents
from nfstuned.view.metrics import findings_lines
from tests.host.servers import silent_port
from tests.tree import put

PAGE = Path(__file__).parents[1] / "docs/security.md"
NOTHING = "nothing: "


class Row:
    def __init__(self, cells: list[str]) -> None:
        self.input, self.who, self.bound, said, constant = cells
        self.said = said.strip("`")
        self.constant = constant.strip("`")

    def __str__(self) -> str:
        return self.input

    @property
    def value(self) -> int:
        return int(self.bound.split()[0].replace(",", ""))


def table() -> Iterator[Row]:
    """Yield the rows of the section about bounds."""
    section = PAGE.read_text().partition("\n## Bounds\n")[2].partition("\n## ")[0]
    for line in re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[1:]:
        if not line.startswith("-"):
            yield Row(line.split(" | "))


ROWS = [row for row in table() if row.constant != "Constant"]


def intent_problems(folder: Path, files: Mapping[str, str]) -> str:
    """Return the problems of the look at administrators' files, which are in /etc."""
    for name, text in files.items():
        put(folder / "etc" / name, text)
    return "\n".join(map(str, observe_intent(Root(str(folder)), ()).problems))


GLOBAL = "[ NFSMount_Global_Options ]\n"
SECTION = '[ Server "s{}" ]\nrsize=4096\n'


def outcome(run: Callable[[], object]) -> str:
    """Return the result as a text, or the reason of its refusal."""
    try:
        found = run()
    except (OSError, ValueError, ConfigError, ParseError) as error:
        return str(error)
    return "\n".join(map(str, found)) if isinstance(found, (list, tuple)) else str(found)


def read_table(path: str) -> object:
    with Path(path).open("rb") as file:
        return list(parts_of(file.fileno(), "large"))


def links(folder: Path) -> object:
    for step in range(50):
        (folder / str(step)).symlink_to(str(step + 1))
    return ImageRoot(str(folder)).read("0")


def names(folder: Path) -> object:
    put(folder / "etc/resolv.conf", "nameserver 127.0.0.1\n")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.1", 0))
        return resolve(Root(str(folder)), ["a.example.com"], port=dead.getsockname()[1])


def port(_: Path) -> object:
    with silent_port() as silent:
        return reach([[("127.0.0.1", silent)]])


def metadata(_: Path) -> object:
    with silent_port() as silent:
        return vm_size(f"http://127.0.0.1:{silent}/")


def late_child(folder: Path) -> object:
    child = start_load(Root(str(folder)), 0.0)
    assert child.overdue()
    return child.finish()


def many(text: str, number: int) -> str:
    """Return a text so many times, with its number for each {}."""
    return "".join(text.replace("{}", str(step)) for step in range(number))


INCLUDING = '[ Server "s" ]\n'
DIRECT = "/a auto.x\n"
FILES: dict[str, dict[str, str]] = {
    "mounts that fstab, units and maps ask for": {"fstab": many("s:/{} /mnt/{} nfs rw 0 0\n", 10_001)},
    "the options of such a mount": {"fstab": f"s:/ /m nfs {'a' * 4097} 0 0\n"},
    "its source and its mount point": {"fstab": f"s:/{'a' * 4095} /m nfs rw 0 0\n"},
    "lines of these files that are not understood": {"fstab": "x\n" * 1001},
    "assignments of nfsmount.conf": {"nfsmount.conf": many(SECTION, 1001)},
    "assignments of a section of nfsmount.conf": {"nfsmount.conf": GLOBAL + many("a{}=1\n", 101)},
    "files that nfsmount.conf includes": {
        "nfsmount.conf": INCLUDING + "include=/etc/n\n" * 101,
        "n": "a=1\n",
    },
    "nesting of these includes": {
        "nfsmount.conf": f"{INCLUDING}include=/etc/n0\n",
        **{f"n{step}": f"include=/etc/n{step + 1}\n" for step in range(20)},
    },
    "files of the automounter's maps": {"auto.master": many("/a{} auto.x\n", 1001), "auto.x": "k s:/x\n"},
    "nesting of maps that are mounted in each other": {
        "auto.master": DIRECT,
        "auto.x": "k -fstype=autofs auto.x\n",
    },
    "maps that are not files": {"auto.master": many("/a{} yp:x\n", 1001)},
    "an entry of a map, with its key and variables put in": {
        "auto.master": DIRECT,
        "auto.x": f"{'k' * 200} s:/{'&' * 82}\n",
    },
    "servers of a location in a map": {"auto.master": DIRECT, "auto.x": f"k {','.join(['s'] * 33)}:/x\n"},
}
"""By input: files of administrators that reach its bound."""
BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)
LOOPS = parse_documents(f"- {{mount: {{src: '{{{{ item }}}}'}}, loop: [{'x, ' * 200}]}}\n" * 251, "f")
CERTIFICATE = "-----BEGIN CERTIFICATE-----\n{}-----END CERTIFICATE-----\n"
VERDICT = {
    "schema": "nfstuned.check/1",
    "host": "a",
    "root": "/",
    "exit_code": 0,
    "mounts": [],
    "skipped": [],
    "findings": [{}] * 10_001,
}
ACCOUNT = "sa1.blob.core.windows.net 10.161.100.100 52.1.2.3\n"
PARSED: dict[str, Callable[[], object]] = {
    "a number in a kernel's file": lambda: parse_number("x", str(2**64)),
    "damaged lines of a mount in mountstats": lambda: parse_mountstats(
        "device s:/ mounted on /m with fstype nfs\n" + "\tbytes:\tx\n" * 9
    ),
    "the quotation of a text in a message": lambda: quoted("x" * 81),
    "accounts that AZNFS lists as mounted": lambda: parse_mountmap(ACCOUNT * 1001, "f", "azure-blob")[-1],
    "tunnels that AZNFS lists": lambda: parse_tunnel_list("10.0.0.4;/c;/l;/p;1;mounted;1\n" * 1002, "f")[-1],
    "a file of YAML or JSON: cloud-init's, or of a deployment": lambda: parse_cloud("#" * 4_194_305, "f"),
    "the aliases in such a file": lambda: parse_cloud(f"a: &x 1\nb: [{'*x, ' * 1001}]\n", "f"),
    "nesting of its lists and mappings": lambda: parse_cloud("[" * 65, "f"),
    "its values, each alias with its own": lambda: parse_cloud(BOMB, "f"),
    "tasks of Ansible with those of loops": lambda: [*ansible_requests([PlayFile("f", LOOPS)])],
    "certificates in such a CA file": lambda: parse_certificates(CERTIFICATE.format("") * 1001, "f")[-1],
    "such a certificate, in base64": lambda: parse_certificates(CERTIFICATE.format("A" * 65_537 + "\n"), "f"),
    "a line of a udev rules file": lambda: parse_udev_rules("#" + "x" * 16_383).defects,
    "a file of nfstuned's configuration": lambda: parse_toml("f", "#" * 262_145),
    "a key with dots in it": lambda: parse_toml("f", ".".join("a" * 17) + " = 1\n"),
    "its findings": lambda: parse_verdict(json.dumps(VERDICT), "f"),
    "the findings that `nfstuned-check.timer` leaves": lambda: findings_lines("x" * 65_537),
}
"""By input: a parse that reaches its bound."""
LARGE: dict[str, tuple[int, Callable[[str], object]]] = {
    "a document of bench, `bench --against FILE`": (documents.LARGEST, documents.read_bench),
    "a file that the kernel makes, such as mountinfo": (LARGEST_MADE, read_table),
    "a saved copy of mountstats, `top --file FILE` or `-`": (LARGEST_MADE, read_saved),
    "a text file of the host or of an image": (LARGEST, lambda path: Root("/").read(path[1:])),
    "a proposed file, `FILE` or `-`": (LARGEST, read_proposal),
    "a document of a host, `merge FILE` or a line of `-`": (LARGEST, read_proposal),
    "a line of a file of samples": (LONGEST, lambda path: list(from_files(path, None))),
}
"""By input: its bound in bytes, and the reader of a file that is larger."""
REACHED: dict[str, Callable[[Path], object]] = {
    "the links on a path in an image": links,
    "the time of its validation": late_child,
    "the answers of name servers": names,
    "the connection to a server's port": port,
    "the answer of the VM's metadata service": metadata,
}
"""By input: another way to reach its bound."""


def reached(name: str, folder: Path) -> str:
    """Return the messages where the bound of an input is reached."""
    if name in FILES:
        return intent_problems(folder, FILES[name])
    if name in LARGE:
        bound, read = LARGE[name]
        os.truncate(put(folder / "large"), bound + 1)
        return outcome(lambda: read(str(folder / "large")))
    return outcome(PARSED[name] if name in PARSED else lambda: REACHED[name](folder))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_a_bound_is_the_codes_and_is_reported_where_it_is_reached(row: Row, tmp_path: Path) -> None:
    module, _, name = row.constant.rpartition(".")
    assert getattr(import_module(f"nfstuned.{module}"), name) == row.value
    if row.said.startswith(NOTHING):
        assert row.input not in {*FILES, *PARSED, *LARGE, *REACHED}
    else:
        assert row.said in reached(row.input, tmp_path)


@pytest.mark.parametrize(
    ("files", "below"),
    [
        ({"fstab": many("s:/{} /mnt/{} nfs rw 0 0\n", 10_000)}, "10000"),
        ({"fstab": f"s:/ /m nfs {'a' * 4096} 0 0\n"}, "4096"),
        ({"auto.master": DIRECT, "auto.x": f"k {','.join(['s'] * 32)}:/x\n"}, "32"),
        ({"nfsmount.conf": many(SECTION, 1000)}, "1000"),
        ({"nfsmount.conf": GLOBAL + many("a{}=1\n", 100)}, "100"),
    ],
)
def test_a_text_within_a_bound_is_read_whole(files: dict[str, str], below: str, tmp_path: Path) -> None:
    assert below not in intent_problems(tmp_path, files)


def test_maps_that_include_each_other_end(tmp_path: Path) -> None:
    """As sixteen files that include all others once did not."""
    files = {
        f"auto.x{step}": "".join(f"+auto.x{other}\n" for other in range(16)) + f"k{step} s:/x\n"
        for step in range(16)
    }
    assert intent_problems(tmp_path, files | {"auto.master": "/a auto.x0\n"}) == ""
    points = {request.point for request in observe_intent(Root(str(tmp_path)), ()).requests}
    assert points == {f"/a/k{step}" for step in range(16)}


@pytest.mark.slow
def test_each_test_that_the_page_names_is_there() -> None:
    page = PAGE.read_text()
    named = set(re.findall(r"`((?:tests/[a-z/]+/)?test_[a-z_]+\.py)`", page))
    project = PAGE.parents[1]
    assert named
    assert [name for name in sorted(named) if not list((project / "tests").rglob(Path(name).name))] == []
