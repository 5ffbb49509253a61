"""Charts: well-formed, inside of their plot, with gaps where nothing is known."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.history import Axis
from nfstuned.view.pages import HEIGHT, Chart, PlotFrame, PlotLine, environment

START = 1_785_000_000.0
PLOT = (78.0, 490.0, 10.0, 174.0)
"""Left, right, ceiling and floor of a chart that is 500 wide."""
ESCAPED = environment().from_string('<a b="{{ text }}">{{ text }}</a>')
CHARTS = environment().get_template("charts.jinja").module
VALUES = st.lists(st.none() | st.floats(0, 1e100), min_size=1, max_size=30)


def frame(columns: int, before: float = 0.0, after: float = 0.0) -> PlotFrame:
    axis = Axis(START, START + 60.0 * columns, columns)
    return PlotFrame(START - before, axis.end + after, axis, timezone.utc)


def svg(chart: Chart, shown: PlotFrame) -> str:
    return str(CHARTS.over_time(chart, shown.plot(chart)))  # type: ignore[attr-defined]


def drawn(values: Sequence[float | None], **more: float) -> ET.Element:
    chart = Chart("Title", (PlotLine("name", "s1", values),), lambda value: f"{value:g} ms", **more)  # type: ignore[arg-type]
    return ET.fromstring(svg(chart, frame(len(values))))  # noqa: S314 - our own text


def paths(root: ET.Element) -> list[str]:
    return [path.attrib["d"] for path in root.iter("path")]


def points(path: str) -> list[tuple[float, float]]:
    """Return the points of a path; a horizontal line has two."""
    found: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLH])([^MLH]*)", path):
        first, *rest = map(float, numbers.split())
        found.append((first, rest[0] if command != "H" else found[-1][1]))
    return found


def test_neighbours_are_joined_and_what_is_not_known_is_a_gap() -> None:
    (path,) = paths(drawn([1.0, 2.0, None, 4.0, None, 3.0, 3.0]))
    assert path.count("M") == 3
    pieces = [points(f"M{piece}") for piece in path.split("M")[1:]]
    assert [len(piece) for piece in pieces] == [2, 2, 2]
    assert "H" in path.split("M")[2]


def test_a_line_goes_through_the_middles_of_its_columns() -> None:
    (path,) = paths(drawn([0.0, 4.0]))
    left, right, ceiling, floor = PLOT
    width = right - left
    assert points(path) == [(left + width / 4, floor), (left + 3 * width / 4, ceiling)]


def test_a_value_alone_is_as_wide_as_its_column() -> None:
    (path,) = paths(drawn([None, 1.0, None, None]))
    assert points(path) == [(181.0, 10.0), (284.0, 10.0)]


def test_a_line_of_nothing_is_not_drawn() -> None:
    assert paths(drawn([None, None])) == []


def test_axes_have_units_and_round_numbers_and_times() -> None:
    texts = [text.text for text in drawn([1.0, 73.0, 3.0, 4.0, 5.0]).iter("text")]
    assert texts[:5] == ["0 ms", "20 ms", "40 ms", "60 ms", "80 ms"]
    assert texts[5:] == ["17:20", "17:21", "17:22", "17:23", "17:24", "17:25"]


def test_a_reference_and_moments_are_marked_inside_of_the_frame_only() -> None:
    marks = ((START + 60, "changed <b>"), (START - 60, "before"), (START + 1e6, "after"))
    chart = Chart("Title", (PlotLine("name", "s1", (1.1, 1.2)),), str, reference=1.0, marks=marks)
    root = ET.fromstring(svg(chart, frame(2)))  # noqa: S314 - our own text
    lines = [line for line in root.iter("line") if line.get("class") in {"mark", "reference"}]
    assert [line.attrib["class"] for line in lines] == ["reference", "mark"]
    assert [title.text for title in root.iter("title")] == ["changed <b>"]
    assert float(lines[1].attrib["x1"]) == pytest.approx((PLOT[0] + PLOT[1]) / 2)


@given(VALUES, VALUES, st.floats(0, 1e9), st.floats(0, 1e9))
def test_every_point_is_inside_of_the_plot(
    values: list[float | None], others: list[float | None], before: float, after: float
) -> None:
    columns = max(len(values), len(others))
    lines = tuple(
        PlotLine("x", "s1", [*line, *[None] * (columns - len(line))]) for line in (values, others)
    )  # fmt: skip
    text = svg(Chart("Title", lines, str), frame(columns, before, after))
    assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)
    left, right, ceiling, floor = PLOT
    for path in paths(ET.fromstring(text)):  # noqa: S314 - our own text
        for x, y in points(path):
            assert left <= x <= right
            assert ceiling <= y <= floor
    for element in ET.fromstring(text).iter():  # noqa: S314 - our own text
        for name in ("x", "x1", "x2", "y", "y1", "y2"):
            if name in element.attrib:
                assert 0 <= float(element.attrib[name]) <= (500 if name[0] == "x" else HEIGHT)


@given(VALUES)
def test_a_small_one_stays_inside_too(values: list[float | None]) -> None:
    lines = [PlotLine("x", "s1", values)]
    text = CHARTS.spark(lines, frame(len(values)).spark(lines))  # type: ignore[attr-defined]
    root = ET.fromstring(text)  # noqa: S314 - our own text
    for path in paths(root):
        for x, y in points(path):
            assert 0 <= x <= 160
            assert 2 <= y <= 26
            assert math.isfinite(x)


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_xml_in_a_page(text: str) -> None:
    written = ESCAPED.render(text=text)
    element = ET.fromstring(written)  # noqa: S314 - our own text
    assert element.text is None or element.text.isprintable()
    assert element.attrib["b"] == (element.text or "")
