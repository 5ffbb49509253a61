"""Metric families in the text format of Prometheus, written by prometheus-client.

https://prometheus.io/docs/instrumenting/exposition_formats/ describes it. The library is an extra, and is
loaded when metrics are first wanted: it takes more memory than the rest of the daemon's libraries together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

from nfstuned.model.totals import Kind, MetricFamily, Point
from nfstuned.parse.secrets import masked

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
REMEDY = "install Debian's python3-prometheus-client, or pip's prometheus-client"
FINDINGS = frozenset({"nfstuned_findings", "nfstuned_findings_timestamp_seconds", "nfstuned_mounts_missing"})
_FINDINGS_MOST = 1 << 16
"""Characters of a file of findings: a line for each rule has an eighth of it."""
_PIECE = 100
"""Series that are written at a time, in half a millisecond."""


class MissingError(Exception):
    """prometheus-client is not installed, or cannot be loaded; the text says what to do."""


class Exposition(NamedTuple):
    """The parts of prometheus-client that are used: its writer, its families, its parser of the format."""

    generate_latest: Callable[[Any], bytes]
    core: Any
    parse: Callable[[str], Iterable[Any]]

    def render(self, families: Iterable[MetricFamily], between: Callable[[], None]) -> bytes:
        """Return the families as text; `between` is called after each piece, for what cannot wait."""
        pieces: list[bytes] = []
        for family in families:
            for start in range(0, len(family.points), _PIECE):
                text = self.generate_latest(
                    _FamilyPiece(self.core, family, family.points[start : start + _PIECE])
                )
                # Of a family in pieces only the first has the lines that explain it, `# HELP` and `# TYPE`.
                pieces.append(text if start == 0 else text.split(b"\n", 2)[2])
                between()
        return b"".join(pieces)

    def findings(self, text: str) -> bytes:
        """Return the findings of `nfstuned check --format prometheus`, and nothing else that is in the text.

        Raises ValueError where it is not the text format, or has more than _FINDINGS_MOST characters.
        """
        if len(text) > _FINDINGS_MOST:
            raise ValueError(f"longer than {_FINDINGS_MOST} characters")
        try:
            known = [metric for metric in self.parse(text) if metric.name in FINDINGS]
            return self.generate_latest(_ParsedMetrics(known))
        except (KeyError, IndexError, OverflowError) as error:  # what the library lets slip
            raise ValueError(f"not the text format of Prometheus: {error!r}") from None


class _ParsedMetrics:
    """A collector of metrics that the library itself has read."""

    def __init__(self, metrics: Iterable[Any]) -> None:
        self._metrics = tuple(metrics)

    def collect(self) -> tuple[Any, ...]:
        """Return the metrics, as the library's registry would."""
        return self._metrics


class _FamilyPiece:
    r"""A collector of a family, or of a piece of it; bytes in labels that are not UTF-8 become `\xff`."""

    def __init__(self, core: Any, family: MetricFamily, points: tuple[Point, ...]) -> None:  # noqa: ANN401 - a module
        make = core.CounterMetricFamily if family.kind is Kind.COUNTER else core.GaugeMetricFamily
        self._metric = make(family.name, family.help, labels=family.labels)
        for point in points:
            labels = (masked(label).encode("utf-8", "surrogateescape") for label in point.labels)
            self._metric.add_metric(
                [label.decode("utf-8", "backslashreplace") for label in labels], point.value
            )

    def collect(self) -> Iterator[Any]:
        """Yield the family, as the library's registry would."""
        yield self._metric


def load() -> Exposition:
    """Return what writes the format; raises MissingError with the remedy where it is not installed."""
    try:
        exposition = import_module("prometheus_client.exposition")
        parser = import_module("prometheus_client.parser")
        core = import_module("prometheus_client.core")
        return Exposition(exposition.generate_latest, core, parser.text_string_to_metric_families)
    except ImportError as error:
        raise MissingError(f"prometheus-client cannot be loaded ({error}): {REMEDY}") from None
