"""What bench measured as a picture, drawn by matplotlib, which is installed with the extra `pictures`.

matplotlib takes a second to load, and is loaded for a picture alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, Literal

from nfstuned.model.bench import Bench, Spread
from nfstuned.view.bench_charts import BarChart, Curve, charts, key_texts, marks
from nfstuned.view.words import printable, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMS = ("png", "svg")
REMEDY = "install Debian's python3-matplotlib, or pip's matplotlib"
_WIDTH_INCHES = 11.0
_BAR_INCHES, _SCALE_INCHES, _CURVE_INCHES, _TITLE_INCHES = 0.32, 1.0, 3.2, 0.9
_DPI = 120
_COLOURS = ("#0969da", "#bc4c00", "#1a7f37", "#8250df")
_MARK_COLOURS = {True: "#8250df", False: "#59636e"}
"""Of the proposed value, and of the present value."""
_ERROR_BAR: dict[str, Any] = {"capsize": 3, "ecolor": "#1f2328"}
_NAME_WIDTH = 26
PARAMETERS: dict[Any, Any] = {"svg.hashsalt": "nfstuned", "svg.fonttype": "none", "font.size": 9.0}
"""matplotlib's: the same measurement is the same file, and text stays text."""


class NoPictureError(Exception):
    """Why there is no picture."""


def demand_library() -> None:
    """Raise NoPictureError, with the remedy, where matplotlib is not installed; it is not loaded."""
    if find_spec("matplotlib") is None:
        raise NoPictureError(f"a picture needs matplotlib: {REMEDY}")


def picture(bench: Bench, form: str) -> bytes:
    """Return the picture as a file of one of FORMS. Raises NoPictureError."""
    pairs = tuple(charts(bench))
    if not pairs:
        raise NoPictureError("no run counts: there is nothing to draw")
    try:
        from matplotlib import rc_context  # noqa: PLC0415 - see above
        from matplotlib.figure import Figure  # noqa: PLC0415 - see above
    except ImportError as error:
        raise NoPictureError(f"matplotlib cannot be loaded ({error}): {REMEDY}") from None
    with rc_context(PARAMETERS):
        heights = [_height(first) for first, _ in pairs]
        size = (_WIDTH_INCHES, sum(heights) + _TITLE_INCHES)
        drawn = Figure(figsize=size, dpi=_DPI, layout="constrained")
        drawn.suptitle(_plain(_title(bench)), fontsize=10)
        axes = drawn.subplots(len(pairs), 2, squeeze=False, gridspec_kw={"height_ratios": heights})
        for row, pair in zip(axes, pairs, strict=True):
            for place, chart in zip(row, pair, strict=True):
                place.set_title(_plain(chart.title), fontsize=9.5, loc="left")
                if isinstance(chart, BarChart):
                    _draw_bars(place, chart)
                else:
                    _draw_curve(place, chart)
        file = BytesIO()
        drawn.savefig(file, format=form, metadata={"Date": None} if form == "svg" else None)
    return file.getvalue()


def _title(bench: Bench) -> str:
    subject = bench.subject
    lines = (
        f"{subject.mount_point}, {shorten(printable(subject.source), 60)}: suite {bench.suite.name}",
        f"Linux {subject.kernel}; medians, with the least and the most of {bench.suite.repeats} runs",
        "; ".join(text for _, text in key_texts(bench)) if 1 < len(bench.settings) <= len(_COLOURS) else "",
    )
    return "\n".join(line for line in lines if line)


def _plain(text: str) -> str:
    """Return a text in which matplotlib sees no formula, and which a picture can show."""
    return "\n".join(printable(line) for line in text.split("\n")).replace("$", r"\$")


def _height(chart: BarChart | Curve) -> float:
    if isinstance(chart, Curve):
        return _CURVE_INCHES
    return _SCALE_INCHES + _BAR_INCHES * sum(1 + len(group.bars) for group in chart.groups)


def _ends(middles: list[Spread]) -> list[list[float]]:
    """Return how far error bars reach below and above the medians."""
    return [[each.median - each.least for each in middles], [each.most - each.median for each in middles]]


def _draw_bars(axes: Axes, chart: BarChart) -> None:
    names, label = [], chart.quantity.label
    for y, (name, number, middle) in enumerate(_rows(chart)):
        names.append(_plain(name))
        if middle is None:
            continue
        colour = _COLOURS[(number - 1) % len(_COLOURS)]
        axes.barh(y, middle.median, 0.7, color=colour, alpha=0.8, xerr=_ends([middle]), error_kw=_ERROR_BAR)
        text = _plain(label(middle.median))
        axes.annotate(text, (middle.most, y), (6, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.7)
    axes.margins(x=0.2)
    axes.set_xlim(left=0)
    axes.xaxis.set_major_formatter(lambda value, _: chart.quantity.tick(value))
    plain_frame(axes, "x")


def _rows(chart: BarChart) -> Iterator[tuple[str, int, Spread | None]]:
    """Yield what stands beside each row, the number of its setting, and its bar; a job's name has none."""
    several = len({bar.number for group in chart.groups for bar in group.bars}) > 1
    for group in chart.groups:
        if several:
            yield f"{group.name}:", 0, None
        for bar in group.bars:
            yield shorten(bar.name if several else group.name, _NAME_WIDTH), bar.number, bar.spread


def _draw_curve(axes: Axes, chart: Curve) -> None:
    middles = [point.spread for point in chart.points]
    axes.errorbar(
        [point.kb for point in chart.points],
        [middle.median for middle in middles],
        _ends(middles),
        marker="o",
        markersize=4,
        color=_COLOURS[0],
        **_ERROR_BAR,
    )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    axes.set_xlabel("read-ahead in KiB, by powers of two")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: chart.quantity.tick(value))
    for kb, text in marks(chart):
        proposed = kb == chart.proposed_kb
        style = "--" if proposed else ":"
        axes.axvline(kb, color=_MARK_COLOURS[proposed], linestyle=style, label=_plain(text), zorder=1)
    if marks(chart):
        # Throughput rises with the read-ahead: there is room below. "best" takes its time to look for room.
        axes.legend(fontsize=8, loc="lower right")
    plain_frame(axes, "y")


def plain_frame(axes: Axes, along: Literal["x", "y", "both"]) -> None:
    """Frame axes on the left and at the bottom alone, with faint lines of a grid behind what they show."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=along, alpha=0.3)
    axes.set_axisbelow(True)
