"""What bench measured is kept, and found again to be compared with."""

from __future__ import annotations

from collections.abc import Sequence

from nfstuned.core.bench.against import Against, NotComparableError, demand_same_jobs
from nfstuned.errors import ParseError
from nfstuned.host.bench import kept
from nfstuned.host.root import Root
from nfstuned.model.bench import Bench, BenchSetting, MeasuredMount, Suite
from nfstuned.parse.bench import parse_bench
from nfstuned.parse.fields import masked
from nfstuned.view.bench import bench_document
from nfstuned.view.words import to_json

LAST = "last"
"""In the place of a file: the newest document of the same mount and the same jobs."""


def keep(root: Root, bench: Bench, against: Against | None) -> str:
    """Keep a measurement, and return where. Raises OSError."""
    text = to_json(bench_document(bench, against)) + "\n"
    return kept.keep(kept.result_folder(root), bench.time, text)


def earlier(
    root: Root, word: str, subject: MeasuredMount, suite: Suite, settings: Sequence[BenchSetting]
) -> Bench:
    """Return the earlier measurement that a file holds, or LAST means.

    `settings` are those that the jobs are going to run under, none where they are not known yet. Raises
    NotComparableError, ParseError for a damaged document, and OSError.
    """
    if word != LAST:
        before = parse_bench(kept.read_document(word), word)
        try:
            demand_same_jobs(before, suite, settings)
        except NotComparableError as error:
            raise NotComparableError(f"{word}: {error}") from None
        return before
    folder, reasons = kept.result_folder(root), []
    for path in kept.newest(folder):
        found, reason = _same_mount(path, subject, suite, settings)
        if found is not None:
            return found
        reasons.append(reason)
    about = f"of {subject.mount_point} with these jobs of suite {suite.name}"
    newest = next(filter(None, reasons), "")
    raise NotComparableError(f"{folder} has no measurement {about}" + (newest and f" ({newest})"))


def _place(subject: MeasuredMount) -> tuple[str, str]:
    """Return which mount it is, as a document has it: without secrets."""
    return masked(subject.source), masked(subject.mount_point)


def _same_mount(
    path: str, subject: MeasuredMount, suite: Suite, settings: Sequence[BenchSetting]
) -> tuple[Bench | None, str]:
    """Return the measurement of a document, or why it is none of these jobs; "" for another mount's."""
    try:
        before = parse_bench(kept.read_document(path), path)
        if _place(before.subject) != _place(subject):
            return None, ""
        demand_same_jobs(before, suite, settings)
        if not before.runs:
            return None, f"of {path}: it ended before any run"
    except NotComparableError as error:
        return None, f"of {path}: {error}"
    except (OSError, ParseError) as error:
        return None, str(error)
    return before, ""
