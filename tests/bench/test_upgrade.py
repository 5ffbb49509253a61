"""docs/reliability.md shows the kills of upgrades that a guest has tried; none had an effect that stayed."""

from __future__ import annotations

from tests.bench.page import KEPT, RELIABILITY, filled
from tests.bench.upgrade import lines, of_part
from tests.lab.kit.upgrade import PARTS, unsound

(FILE,) = KEPT.glob("upgrade-*.jsonl")
TEXT = FILE.read_text()


def test_page_is_of_the_kept_lines() -> None:
    page = RELIABILITY.read_text()
    release = FILE.stem.removeprefix("upgrade-")
    assert page == filled(page, "upgrade", lines(release, TEXT))


def test_each_moment_was_tried_both_ways_and_none_had_an_effect_that_stayed() -> None:
    tried = [(row["from"], row["moment"]) for row in of_part(TEXT, "dpkg")]
    versions = dict.fromkeys(version for version, _ in tried)
    assert len(versions) == 2
    parts = [[moment.name for moment in moments] for moments in PARTS.values()]
    moments = [name for names in parts for name in names]
    assert sorted(tried) == sorted((version, moment) for moment in moments for version in versions)
    rows = [row for kind in ("dpkg", "service", "installation") for row in of_part(TEXT, kind)]
    assert [row for row in rows if unsound(row)] == []
    assert [row["left"] for row in of_part(TEXT, "purge") if row["left"]] == []
