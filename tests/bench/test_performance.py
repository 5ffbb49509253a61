"""docs/performance.md: its tables are those of the documents that bench wrote, and nothing else's."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.view.bench import bench_document
from nfstuned.view.words import to_json
from tests.bench import performance
from tests.core.bench_values import COMPARED, SEARCHED

PLACES = "before\n<!-- measured a -->\nold\n<!-- end -->\nbetween\n<!-- measured b -->\n<!-- end -->\nafter\n"


def test_the_page_has_the_tables_of_its_documents() -> None:
    page, documents = performance.PAGE.read_text(), performance.measured()
    assert performance.names(page) == list(dict.fromkeys(performance.names(page)))
    assert performance.filled(page, documents) == page


def test_what_stands_at_a_place_is_written_anew_and_all_else_stays() -> None:
    filled = performance.filled(PLACES, {"a": COMPARED, "b": SEARCHED})
    assert filled.startswith("before\n<!-- measured a -->\nLinux 6.12.48+deb13-amd64, fio-3.39, 2026-09-21; ")
    assert "old" not in filled
    assert "\n| sequential-read | profile azure-files | 188 MB/s | 182 MB/s | 194 MB/s |" in filled
    assert "\n- sequential-read: 15.67 times as fast" in filled
    assert filled.endswith("\n- bench proposes 4096 KiB.\n<!-- end -->\nafter\n")
    assert performance.filled(filled, {"a": COMPARED, "b": SEARCHED}) == filled


def test_a_place_without_a_document_has_no_number_and_a_document_without_a_place_is_an_error() -> None:
    filled = performance.filled(PLACES, {"a": COMPARED})
    assert f"<!-- measured b -->\n{performance.NOT_YET}\n<!-- end -->" in filled
    with pytest.raises(SystemExit, match=r"no place for c\.json"):
        performance.filled(PLACES, {"c": COMPARED})


def test_documents_become_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, page = tmp_path / "left", tmp_path / "page.md"
    left.mkdir()
    page.write_text(PLACES)
    monkeypatch.setattr(performance, "DOCUMENTS", tmp_path / "documents")
    monkeypatch.setattr(performance, "PAGE", page)
    with pytest.raises(SystemExit, match="no document"):
        performance.main([str(left)])
    for name, bench in (("a", COMPARED), ("b", SEARCHED)):
        (left / f"{name}.json").write_text(to_json(bench_document(bench)))
    performance.main([str(left)])
    assert page.read_text() == performance.filled(PLACES, {"a": COMPARED, "b": SEARCHED})
