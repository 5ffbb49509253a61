"""The targets of lines and mounts; real lines in tests/data/mount-lines/README.md."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from nfstuned.core.mounts.targets import program_of, targets
from nfstuned.core.nconnect.server import as_target
from nfstuned.core.policy.endpoint import as_address, split_source
from nfstuned.host.config import builtin_policy
from nfstuned.host.policy import builtin_texts, load_policy
from nfstuned.host.root import Root
from nfstuned.model.mounts import Maker, Request, Snapshot
from nfstuned.parse.etc.requests import parse_fstab
from nfstuned.parse.policy import parse_config

POLICY = load_policy(Root("/nonexistent"))
SMB = Request("//sa1.file.core.windows.net/s", "/smb", "ip=10.0.0.4", "/etc/fstab", 3, fstype="cifs")
TLS = Request("sa1.file.core.windows.net:/sa1/s", "/tls", "vers=4.1", "/etc/fstab", 4, fstype="aznfs")


def test_an_address_in_a_line_of_nfs_does_not_count_for_mount_nfs_takes_it_out() -> None:
    line = Request("nas:/e", "/e", "addr=10.0.0.9,ip=10.0.0.9", "/etc/fstab", 5)
    match = '[[policy]]\nmatch = { server = "10.0.0.9" }\nprofile = "azure-files"\n'
    policy = parse_config(builtin_texts(), [("own.toml", match)])
    (target,) = targets(Snapshot(requests=(line,)), policy)
    assert (target.endpoint.host, target.endpoint.address) == ("nas", None)
    assert target.profile.name == "generic"


@pytest.mark.parametrize("line", [SMB._replace(options="ip=nas"), TLS._replace(options="vers=4.1,addr=nas")])
def test_what_is_no_address_is_not_taken_for_the_servers(line: Request) -> None:
    (target,) = targets(Snapshot(requests=(line,)), POLICY)
    assert target.endpoint.address is None


@pytest.mark.parametrize(
    ("maker", "points"),
    [
        (
            Maker.KUBELET,
            (
                "/var/lib/kubelet/pods/7c1d/volumes/kubernetes.io~nfs/data",
                "/var/lib/kubelet/plugins/kubernetes.io/csi/file.csi.azure.com/9b2f/globalmount",
                "/var/snap/microk8s/common/var/lib/kubelet/pods/7c1d/volume-subpaths/pv/nginx/0",
                "/data/k8s/pods/7c1d/volumes/kubernetes.io~csi/pv/mount",
            ),
        ),
        (Maker.DOCKER, ("/var/lib/docker/volumes/m/_data", "/home/u/.local/share/docker/volumes/m/_data")),
        (Maker.PODMAN, ("/var/lib/containers/storage/volumes/m/_data",)),
        (Maker.PODMAN, ("/home/u/.local/share/containers/storage/volumes/m/_data",)),
        (Maker.NOMAD, ("/opt/nomad/data/client/csi/node/nfs/staging/v/rw-file-system-multi-node",)),
        (Maker.NOMAD, ("/srv/n/alloc/0b1a4d4c-5f2c-4f39-9a3e-6a5b1c2d3e4f/web/local/share",)),
        (Maker.PROXMOX, ("/mnt/pve/nas",)),
        (None, ("/mnt/volumes/data", "/var/lib/kubelet", "/srv/pods/volumes/a", "/mnt/pve/nas/images", "/")),
    ],
)
def test_a_mount_point_shows_the_program_that_made_it(maker: Maker | None, points: tuple[str, ...]) -> None:
    assert {program_of(point, Snapshot()) for point in points} == {maker}


def test_an_entry_of_aznfs_is_nfs_from_the_server_that_it_names() -> None:
    (target,) = targets(Snapshot(requests=(TLS,)), POLICY)
    assert (target.endpoint.host, target.endpoint.port) == ("sa1.file.core.windows.net", 2049)
    assert (target.profile.name, target.is_nfs) == ("azure-files", True)


@pytest.mark.parametrize(
    ("text", "name", "base", "channels"),
    [
        ('inherits = "azure-files"', "own", "azure-files-smb", 4),
        ('inherits = "azure-files"\nmax_channels = 2', "own", "azure-files-smb", 2),
        ('inherits = "azure-files-smb"\nmax_channels = 2', "own", "azure-files-smb", 2),
        ('inherits = "azure-files"\n[profile.own-smb]\nmax_channels = 3', "own-smb", "own-smb", 3),
        ('inherits = "generic"', "own", "generic", None),
        ("max_channels = 2", "own", "own", 2),
    ],
)
def test_an_own_profile_means_smb_mounts_too(text: str, name: str, base: str, channels: int | None) -> None:
    entry = '[[policy]]\nmatch = { mount_point = "/smb" }\nprofile = "own"\n[profile.own]\n'
    policy = parse_config(builtin_texts(), [("own.toml", entry + text)])
    (target,) = targets(Snapshot(requests=(SMB,)), policy)
    profile = target.profile
    assert (profile.name, profile.base, profile.max_channels) == (name, base, channels)


def test_a_port_that_does_not_exist_is_no_server_s() -> None:
    for port, found in (("65535", 65535), ("65536", 2049), ("9" * 20, 2049), ("0", 2049)):
        request = Request("nas:/a", "/a", f"port={port}", "/etc/fstab", 3)
        (target,) = targets(Snapshot(requests=(request,)), POLICY)
        assert target.endpoint.port == found


@pytest.mark.parametrize("source", ["nas:/vol", "nas:/vol/", "nas:/vol//"])
@pytest.mark.parametrize("point", ["/data", "/data/", "//data"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_a_slash_too_many_changes_no_profile(source: str, point: str, slash: str) -> None:
    """The kernel shows none, so that a line would otherwise be judged by another profile than its mount."""
    entry = f'match = {{ export = "/vol{slash}", mount_point = "/data{slash}" }}\nprofile = "own"\n'
    policy = parse_config(builtin_texts(), [("own.toml", f"[[policy]]\n{entry}[profile.own]\n")])
    (target,) = targets(Snapshot(requests=(Request(source, point, "", "/etc/fstab", 3),)), policy)
    assert target.profile.name == "own"


FOLDER = Path(__file__).parents[1] / "data/mount-lines"
LINES, SECOND = FOLDER / "lines.tsv", FOLDER / "second.tsv"
AT_LEAST = 60
ONE_IN = 5
# owner/name; a path at a commit, or an issue.
REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
PLACE = re.compile(r"(?P<path>\S.*)@[0-9a-f]{40}|issues/[0-9]+")
SECRET = re.compile(r"(?i)passw|passphrase|secret|token|credential|accountkey|[?&]sig=|AKIA|PRIVATE KEY")


class Line(NamedTuple):
    repository: str
    place: str
    line: str


def lines(*paths: Path) -> list[Line]:
    return [line for path in paths for line in _rows(path)]


def _rows(path: Path) -> list[Line]:
    with path.open(newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        assert next(rows) == list(Line._fields)
        return [Line(*row) for row in rows]


def request(line: Line) -> Request:
    # A file of lines from /proc/mounts alone is refused as a whole.
    (found,) = parse_fstab(f"# of a file\n{line.line}")
    assert isinstance(found, Request)
    return found


def profile(line: Line) -> str:
    """Return the profile of a line where nothing but the line is known: no host, no address, no policy."""
    return as_target(request(line), Snapshot(), builtin_policy()).profile.name


def test_each_has_an_origin_and_no_secret_and_they_are_as_many_and_none_twice() -> None:
    both = lines(LINES, SECOND)
    for line in both:
        assert REPOSITORY.fullmatch(line.repository), line
        assert PLACE.fullmatch(line.place), line
        assert not SECRET.search(line.line), line
        assert request(line).fstype in {"nfs", "nfs4", "aznfs"}, line
    assert len(lines(LINES)) >= AT_LEAST
    assert len({(line.repository, line.line) for line in both}) == len(both)


def test_at_most_one_in_five_is_generic() -> None:
    found = Counter(map(profile, lines(LINES)))
    assert found["generic"] * ONE_IN <= found.total(), found


def test_the_shares_are_told_with_what_was_left_out_and_without() -> None:
    readme = (FOLDER / "README.md").read_text()
    named = [line for line in lines(LINES, SECOND) if as_address(split_source(line.line)[0]) is None]
    for share in (lines(LINES), lines(LINES, SECOND), named):
        found = Counter(map(profile, share))
        assert f"{found['generic']} of {found.total()}" in readme


def test_no_name_of_a_vendor_is_taken_for_anothers() -> None:
    """A line whose server has a vendor's domain gets that vendor's profile, or none."""
    domains = {
        ".efs.": "aws-efs",
        ".fsx.": "aws-fsx-",
        ".file.core.": "azure-files",
        ".blob.core.": "azure-blob",
        ".nas.aliyuncs.": "alibaba-nas",
        ".softlayer.": "ibm-file-storage",
        ".networklayer.": "ibm-file-storage",
    }
    for line in lines(LINES, SECOND):
        expected = [name for domain, name in domains.items() if domain in line.line.split(":")[0]]
        assert profile(line).startswith((*expected, "generic", *([] if expected else ["vast"])))
