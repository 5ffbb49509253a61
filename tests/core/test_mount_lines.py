"""Mount lines from public repositories: their servers are recognised (tests/data/mount-lines/README.md)."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from nfstuned.core.nconnect.server import as_target
from nfstuned.core.policy.endpoint import as_address, split_source
from nfstuned.host.config import builtin_policy
from nfstuned.model.mounts import Request, Snapshot
from nfstuned.parse.etc.requests import parse_fstab

FOLDER = Path(__file__).parents[1] / "data/mount-lines"
LINES, SECOND = FOLDER / "lines.tsv", FOLDER / "second.tsv"
AT_LEAST = 60
ONE_IN = 5
# owner/name; a path at a commit, or an issue.
REPOSITORY = re.compile(r"[A-Za-z0-9-]+/[A-Za-z0-9._-]+")
PLACE = re.compile(r"(?P<path>\S.*)@[0-9a-f]{40}|issues/[0-9]+")
SECRET = re.compile(
    r"passw|passphrase|secret|token|credential|accountkey|[?&]sig=|AKIA|PRIVATE KEY", re.IGNORECASE
)


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
    (found,) = parse_fstab(line.line)
    assert isinstance(found, Request)
    return found


def profile(line: Line) -> str:
    """Return the profile of a line where nothing but the line is known: no host, no address, no policy."""
    return as_target(request(line), Snapshot(), builtin_policy()).profile.name


@pytest.mark.parametrize(
    "line", lines(LINES, SECOND), ids=lambda line: f"{line.repository}:{line.line.split()[0]}"
)
def test_each_has_an_origin_and_no_secret(line: Line) -> None:
    assert REPOSITORY.fullmatch(line.repository)
    assert PLACE.fullmatch(line.place)
    assert not SECRET.search(line.line)
    assert request(line).fstype in {"nfs", "nfs4", "aznfs"}


def test_they_are_as_many_and_none_twice() -> None:
    assert len(lines(LINES)) >= AT_LEAST
    both = lines(LINES, SECOND)
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
