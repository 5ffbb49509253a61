"""The texts of bench: its page, safe with any name, and its proposal."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from nfstuned import __version__
from nfstuned.core.bench.compare import BenchComparison, compare_benches
from nfstuned.model.bench import Bench, BenchSetting
from nfstuned.view.bench import (
    BarChart,
    Curve,
    bench_charts,
    bench_document,
    bench_page,
    colour,
    comparison_lines,
)
from nfstuned.view.pages import environment
from nfstuned.view.words import to_json
from tests.core.bench_values import COMPARED, SEARCHED, VENDORS, measured
from tests.core.pages import element, loads_nothing, parsed, shown, tags

GOLDEN = Path(__file__).parents[1] / "data/report"
ALL = pytest.mark.parametrize("bench", [COMPARED, SEARCHED, VENDORS], ids=lambda bench: bench.suite.name)


def text(bench: Bench, earlier: BenchComparison | None = None) -> str:
    return "".join(f"{line}\n" for line in bench_page(bench, earlier, timezone.utc))


@ALL
def test_the_page_is_golden_and_loads_nothing(bench: Bench, golden: Callable[[Path, str], None]) -> None:
    earlier = compare_benches(replace(bench, mount=replace(bench.mount, kernel="6.1.0")), bench)
    page = text(bench, earlier if bench is COMPARED else None)
    assert loads_nothing(text(bench))
    neutral = page.replace(f"nfstuned {__version__}", "nfstuned VERSION")
    golden(GOLDEN / f"bench-{bench.suite.name}.html", neutral)


@ALL
def test_the_label_of_a_picture_has_every_number(bench: Bench) -> None:
    """For whom does not see it: the label has each median, with the least and the most."""
    pictures = [svg for svg in tags(parsed(text(bench)), "svg") if svg.attrib.get("role") == "img"]
    drawn = list(bench_charts(bench))
    assert len(pictures) == len(drawn)
    for svg, chart in zip(pictures, drawn, strict=True):
        label = svg.attrib["aria-label"]
        assert label.startswith(chart.title)
        for middle in spreads(chart):
            number = chart.quantity.unit
            assert f"{number(middle.median)} ({number(middle.least)} to {number(middle.most)}" in label
        assert sum(1 for _ in tags(svg, "title")) == len(spreads(chart))


def spreads(chart: BarChart | Curve) -> list[Any]:
    return [point.spread for point in chart.points]


def drawing(chart: BarChart | Curve) -> ET.Element:
    macros: Any = environment().get_template("charts.jinja").module
    text = macros.bars(chart) if isinstance(chart, BarChart) else macros.curve(chart)
    return element(text)


@ALL
def test_the_document_has_every_number_of_the_pictures(bench: Bench) -> None:
    document = json.loads(to_json(bench_document(bench)))
    kb = {setting["name"]: setting["read_ahead_kb"] for setting in document["settings"]}
    for chart in bench_charts(bench):
        for middle in spreads(chart):
            known = [row[chart.quantity.key] for row in document["results"]]
            assert {
                "median": middle.median,
                "least": middle.least,
                "most": middle.most,
                "count": middle.count,
            } in known
        if isinstance(chart, Curve):
            assert {point.setting.read_ahead_kb for point in chart.points} <= set(kb.values())
            assert chart.present_kb == document["mount"]["read_ahead_kb"]
            assert chart.proposed_kb == document["proposed_read_ahead_kb"]


def test_bars_are_as_long_as_the_numbers_and_error_bars_reach_from_the_least_to_the_most() -> None:
    chart, *_ = bench_charts(COMPARED)
    assert isinstance(chart, BarChart)
    svg = drawing(chart)
    widths = [float(rect.attrib["width"]) for rect in tags(svg, "rect")]
    old, new = spreads(chart)
    assert widths[1] / widths[0] == pytest.approx(new.median / old.median, rel=0.01)
    ends = [re.findall(r"M([0-9.]+) [0-9.]+[HV]([0-9.]+)", path.attrib["d"])[0] for path in tags(svg, "path")]
    left = 150.0
    for (least, most), middle, width in zip(ends, (old, new), widths, strict=True):
        assert (float(least) - left) / width == pytest.approx(middle.least / middle.median, rel=0.02)
        assert (float(most) - left) / width == pytest.approx(middle.most / middle.median, rel=0.02)


def test_a_search_has_curves_by_the_logarithm_with_both_values_marked() -> None:
    first, latency, *_ = bench_charts(SEARCHED)
    assert isinstance(first, Curve)
    assert isinstance(latency, Curve)
    values = [point.setting.read_ahead_kb or 0 for point in first.points]
    assert values == sorted(values)
    svg = drawing(first)
    places = [float(circle.attrib["cx"]) for circle in tags(svg, "circle")]
    step = places[1] - places[0]  # from 128 to 256
    assert places[2] - places[1] == pytest.approx(2 * step, abs=0.2)  # to 1024
    words = "".join(svg.itertext())
    assert "present: 128 KiB" in words
    assert f"proposed: {bench_document(SEARCHED)['proposed_read_ahead_kb']} KiB" in words


def test_a_value_that_is_both_is_marked_once_and_an_unknown_value_not_at_all() -> None:
    curve, *_ = bench_charts(SEARCHED)
    assert isinstance(curve, Curve)
    assert [text for _, text in replace(curve, present_kb=curve.proposed_kb).marks] == [
        f"present and proposed: {curve.proposed_kb} KiB"
    ]
    assert replace(curve, present_kb=None, proposed_kb=None).marks == ()


def test_names_of_others_are_shown_and_do_nothing() -> None:
    subject = replace(COMPARED.mount, mount_point="/<b>\udcff", source='nas:/"><script>', options="a&b")
    words = shown(text(replace(COMPARED, mount=subject, ended="stopped\x1b[31m")))
    assert "/<b>\\xff measured" in words
    assert 'nas:/"><script>' in words
    assert "It ended before its time: stopped\\x1b[31m" in words


def test_without_a_run_that_counts_the_page_has_no_picture() -> None:
    none = replace(COMPARED, runs=tuple(replace(run, problem="from memory") for run in COMPARED.runs))
    assert "not counted: 7 runs of sequential-read, kernel's default: from memory" in shown(text(none))
    assert not list(tags(parsed(text(none)), "figure"))


def test_settings_without_a_value_have_their_names() -> None:
    settings = tuple(BenchSetting(f"nconnect={number}") for number in (1, 2, 4, 8, 16))
    words = shown(text(measured("azure-files", settings, lambda job, _: float(job.block_bytes))))
    assert all(setting.name in words for setting in settings)
    assert [colour(number) for number in (0, 3, 4)] == ["b1", "b4", "b1"]


ONE, FOUR = BenchSetting("1 connection", connections=1), BenchSetting("4 connections", connections=4)


def numbers(gain: float) -> Bench:
    """Return a comparison of one connection with four, which read 4 KiB so many times as fast."""
    gains = {("read-4k", FOUR): gain}
    return measured("nconnect", (ONE, FOUR), lambda job, setting: 1e6 * gains.get((job.name, setting), 1))


def with_read_aheads(kernels: float, profiles: float) -> Bench:
    rates = {128: kernels, 15360: profiles}
    return measured("quick", COMPARED.settings, lambda _, setting: rates[setting.read_ahead_kb or 0])


@pytest.mark.parametrize(
    ("bench", "key", "best", "present"),
    [
        pytest.param(numbers(2), "nconnect", 4, 4, id="four"),
        pytest.param(numbers(0.5), "nconnect", 1, 4, id="one"),
        pytest.param(COMPARED, "read_ahead_kb", 15360, 128, id="the profile's"),
        pytest.param(with_read_aheads(5e7, 1e7), "read_ahead_kb", 128, 128, id="the kernel's"),
        pytest.param(SEARCHED, "read_ahead_kb", 4096, 128, id="a search's"),
    ],
)
def test_the_best_setting_for_all_jobs_is_proposed(bench: Bench, key: str, best: int, present: int) -> None:
    wanted = f"Best for all jobs: {key} = {best}; the mount has {present}. To change it: nfstuned-bench(1)."
    assert list(comparison_lines(bench))[len(bench.suite.jobs) :] == [wanted]
    document = bench_document(bench)
    assert {document["proposed_nconnect"], document["proposed_read_ahead_kb"]} == {best, None}
    assert document[f"proposed_{key}"] == best


def test_an_unknown_number_of_the_mount_is_called_unknown() -> None:
    bench = numbers(2)
    *_, line = comparison_lines(replace(bench, mount=replace(bench.mount, connections=None)))
    assert "nconnect = 4; the mount has an unknown number." in line


def test_a_search_that_ended_after_two_values_is_no_comparison() -> None:
    ends = tuple(setting for setting in SEARCHED.settings if setting.read_ahead_kb in {128, 15360})
    runs = tuple(run for run in SEARCHED.runs if run.setting in {setting.name for setting in ends})
    lines = list(comparison_lines(replace(SEARCHED, settings=ends, runs=runs)))
    assert [line.partition(":")[0] for line in lines] == ["one-reader", "four-readers"]
