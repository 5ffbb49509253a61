"""The tables of docs/performance.md, of documents of bench: python -m tests.bench.performance FOLDER.

FOLDER holds the files of `python -m tests.lab.documents performance`: a document for each
`<!-- measured NAME -->` of the page. They are copied to tests/data/performance, to which a test holds the
tables; the text between such a mark and the next `<!-- end -->` is replaced.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from nfstuned.model.bench import Bench
from nfstuned.parse.bench import parse_bench
from nfstuned.view.bench import HEADER, bench_rows, comparisons, proposed

PROJECT = Path(__file__).parents[2]
DOCUMENTS = PROJECT / "tests/data/performance"
PAGE = PROJECT / "docs/performance.md"
NOT_YET = "Nobody has measured this yet."
_PART = re.compile(r"(<!-- measured (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
_NAMES = 2


def take(folder: Path) -> None:
    """Copy the documents of a folder to the project's own; SystemExit where there are none."""
    found = sorted(folder.glob("*.json"))
    if not found:
        raise SystemExit(f"performance: no document of bench is in {folder}")
    DOCUMENTS.mkdir(parents=True, exist_ok=True)
    for file in found:
        parse_bench(file.read_text(), str(file))
        (DOCUMENTS / file.name).write_text(file.read_text())


def measured() -> dict[str, Bench]:
    """Return the project's documents by their names."""
    return {file.stem: parse_bench(file.read_text(), str(file)) for file in sorted(DOCUMENTS.glob("*.json"))}


def names(page: str) -> list[str]:
    """Return the names of the documents that the page has places for."""
    return [match[2] for match in _PART.finditer(page)]


def filled(page: str, documents: dict[str, Bench]) -> str:
    """Return the page with the tables of the documents; SystemExit for a document that has no place."""
    for name in documents:
        if name not in names(page):
            raise SystemExit(f"performance: {PAGE.name} has no place for {name}.json")
    return _PART.sub(lambda match: f"{match[1]}{_part(documents.get(match[2]))}\n{match[3]}", page)


def _part(bench: Bench | None) -> str:
    if bench is None:
        return NOT_YET
    return "\n".join((*_about(bench), "", *_rows(bench), "", *_verdicts(bench)))


def _about(bench: Bench) -> Iterator[str]:
    began = datetime.fromtimestamp(bench.time, timezone.utc)
    subject, suite = bench.subject, bench.suite
    options = ", ".join(
        option
        for option in subject.options.split(",")
        if option.partition("=")[0] in {"vers", "rsize", "wsize", "nconnect", "proto"}
    )
    yield (
        f"Linux {subject.kernel}, {subject.fio}, {began:%Y-%m-%d}; suite `{suite.name}`, "
        f"{suite.repeats} runs of {suite.jobs[0].runtime_s:g} s of each job under each setting; {options}."
    )


def _rows(bench: Bench) -> Iterator[str]:
    yield f"| {' | '.join(HEADER)} |"
    yield f"|{'---|' * _NAMES}{'---:|' * (len(HEADER) - _NAMES)}"
    for row in bench_rows(bench):
        yield f"| {' | '.join(row)} |"


def _verdicts(bench: Bench) -> Iterator[str]:
    for line in comparisons(bench):
        yield f"- {line}"
    best = proposed(bench)
    if best is not None and len(bench.settings) > 2:
        yield f"- bench proposes {best.read_ahead_kb} KiB."


def make(folder: Path, _: str) -> list[Path]:
    """Write the page of the documents that a guest left; return the files."""
    take(folder)
    PAGE.write_text(filled(PAGE.read_text(), measured()))
    return [PAGE]


def main(arguments: Sequence[str]) -> None:
    """Make the page from the documents of a guest."""
    if len(arguments) != len(("FOLDER",)):
        raise SystemExit("usage: python -m tests.bench.performance FOLDER")
    for file in make(Path(arguments[0]), ""):
        print(f"{file}: {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
