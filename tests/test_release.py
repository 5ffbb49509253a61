"""dev/release: the next version is written into each place, and no release is made of an unfinished tree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from dev.package import release
from dev.package.about import Release, version
from dev.package.run import BuildError

ROOT = Path(__file__).parents[1]
TEXTS = {name: (ROOT / name).read_text() for name in (release.CHANGES, "docs/install.md", *release.PLACES)}
WITH_NEWS = re.sub(r"## Unreleased\n(?=\n## )", "## Unreleased\n\n- News.\n", TEXTS[release.CHANGES])
NEXT = "99.0.0"


def _cut(new: str = NEXT, **changed: str) -> dict[str, str]:
    return release.cut(TEXTS | {release.CHANGES: WITH_NEWS} | changed, new, "2030-01-02")


def test_each_place_and_example_has_the_version_and_nothing_else_is_changed() -> None:
    address = f"server = 1{version()}.3, also {version()}.7\n"
    done = _cut(address=address)
    assert done.pop("address") == address
    assert done.keys() == TEXTS.keys()
    for name, lines in release.PLACES.items():
        assert lines.format(version()) in TEXTS[name]
        assert lines.format(NEXT) in done[name]
    assert f"/nfstuned_{NEXT}-1_amd64.deb" in done["docs/install.md"]
    assert f"## Unreleased\n\n## {NEXT} - 2030-01-02\n" in done[release.CHANGES]
    assert f"## {version()}" in done[release.CHANGES]


@pytest.mark.parametrize("new", ["", "1.0", version(), "0.0.1", "v1.0.0", "1.0.0rc1"])
def test_another_word_is_no_version(new: str) -> None:
    with pytest.raises(BuildError, match="is no version after"):
        _cut(new)


def test_a_release_has_changes_that_are_described() -> None:
    nothing = re.sub(r"(?s)## Unreleased\n.*?(?=\n## )", "## Unreleased\n", WITH_NEWS)
    with pytest.raises(BuildError, match="describe the changes first"):
        _cut(**{release.CHANGES: nothing})


def test_a_place_without_its_line_is_named() -> None:
    with pytest.raises(BuildError, match=r"galaxy\.yml has not these lines"):
        _cut(**{"deploy/ansible/galaxy.yml": "name: nfstuned\n"})


def test_a_release_is_made_of_a_clean_tree_with_a_section() -> None:
    changes = _cut()[release.CHANGES]
    release.demand_cut(changes, NEXT, "")
    with pytest.raises(BuildError, match=r"not committed:\n M README\.md"):
        release.demand_cut(changes, NEXT, " M README.md")
    with pytest.raises(BuildError, match=r"no section of 99\.0\.1"):
        release.demand_cut(changes, "99.0.1", "")


def test_the_provenance_names_files_commit_and_inputs() -> None:
    text = release.provenance(Release("1.2.3", 1, 0), "c0ffee", {"a.deb": "aa"}, {"vendor.lock": "bb"})
    statement = json.loads(text)
    assert statement["subject"] == [{"name": "a.deb", "digest": {"sha256": "aa"}}]
    build = statement["predicate"]["buildDefinition"]
    assert build["externalParameters"] == {"version": "1.2.3", "revision": 1}
    assert build["resolvedDependencies"] == [
        {"uri": "git+commit:c0ffee", "digest": {"gitCommit": "c0ffee"}},
        {"uri": "vendor.lock", "digest": {"sha256": "bb"}},
    ]
