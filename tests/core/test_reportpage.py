"""The report's page and its charts: a golden file, well-formed, safe with any name."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nfstuned import __version__
from nfstuned.core.samples.history import Axis, Series
from nfstuned.core.samples.sample import amount
from nfstuned.model.facts import Diagnosis, Facts, Finding, Report, Severity
from nfstuned.model.mounts import KubeletNames, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.model.samples import Event, OpRate, ReadAheadStep, Sample
from nfstuned.view import pages
from nfstuned.view.report import MOST_EVENTS, MOST_MOUNTS, Account, Page, report_page, worst_mount
from tests.core.pages import element, loads_nothing, parsed, shown, tags
from tests.core.test_history import START, at
from tests.core.test_read_ahead_evidence import sample as reading
from tests.parse.test_samples import SAMPLES

GOLDEN = Path(__file__).parents[1] / "data/report/page.html"
OPS = MappingProxyType({
    "READ": OpRate(8.0, 1.5, 0.1, 1.7, 0.1, 0.0),
    "WRITE": OpRate(2.0, 5.5, 0.5, 6.0, 0.0, 0.0),
    "GETATTR": OpRate(1.0, 0.4, 0.0, 0.4, 0.0, 1.0),
})  # fmt: skip
FINDING = Finding(
    "NFS101", "read-ahead-below-policy", Severity.WARNING, "/mnt/<a>",
    "read-ahead is 128 KiB & the profile asks for 15360 KiB", "128", "15360",
    "sudo nfstuned apply", "https://learn.microsoft.com/azure",
)  # fmt: skip
REPORT = Report("/", Facts(frozenset(), Snapshot(), Policy(())), (), Diagnosis((FINDING,), ()))
SET = Event(
    START + 150, "READ_AHEAD_SET", "/mnt/a: read-ahead 128 -> 15360 KiB", "0:43", "/mnt/a",
    ReadAheadStep(START + 150, START + 150, 128, 15360),
)  # fmt: skip
STOPPED = Event(START + 300, "STOPPED", "stopped <by> \x1b[31msomebody")


def page(samples: Sequence[Sample], account: Account, **more: object) -> Page:
    series = Series()
    for sample in samples:
        series.add(sample)
    first, last = series.span or (START, START)
    made = Page(
        "NFS mounts of client<1>", START + 900, min(START, first), max(START + 600, last),
        series.axis(), tuple(series.mounts()), account, timezone.utc,
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def used(step: int) -> Sample:
    return replace(at(step, 1e6 * (step + 1)), ops=OPS, over_fetch_ratio=1.25, server_read_bytes_per_s=1.25e6)


def text(page: Page) -> str:
    return "".join(f"{line}\n" for line in report_page(page))


SMALL = page(
    [used(0), used(1), used(4), replace(at(2, 3e6), mount_points=("/srv/\udcff & \x07",), source="far:/<x>")],
    Account(report=REPORT, events=(SET, STOPPED), damaged=2),
)


def test_the_page_is_the_golden_one(golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN, text(SMALL).replace(f"nfstuned {__version__}", "nfstuned VERSION"))


def test_it_loads_nothing_and_every_link_inside_of_it_leads_somewhere() -> None:
    assert loads_nothing(text(SMALL), "#")
    elements = list(parsed(text(SMALL)).iter())
    ids = [element.attrib["id"] for element in elements if "id" in element.attrib]
    links = [e.attrib["href"][1:] for e in elements if e.attrib.get("href", "").startswith("#")]
    assert len(ids) == len(set(ids))
    assert links == ["m2", "m1", "m2"]  # the worst mount is first in a sentence
    assert set(links) <= set(ids)


SENT = "the server sent 537 MB, 1.00 times as much as programs read"


@pytest.mark.parametrize(
    ("page", "present", "absent"),
    [
        # The golden page has the numbers; here is the text that a browser shows.
        pytest.param(
            SMALL,
            [
                "2026-07-25 17:20:00 to 2026-07-25 17:30:00, UTC (UTC+00:00)",
                "read-ahead is 128 KiB & the profile asks for 15360 KiB",
                "/srv/\\377 & \\007",
                "far:/<x>",
                "stopped <by> \\x1b[31msomebody",
                "NFS mounts of client<1>",
            ],
            "\x1b",
            id="names of others do nothing",
        ),
        pytest.param(
            page([reading(1.0, 512, 128, 128), reading(1.0, 512, 1024)], Account()),
            [f"A read-ahead of 128 KiB is too small: {SENT}", f"A read-ahead of 15360 KiB helps: {SENT}"],
            None,
            id="what reads tell of the read-ahead",
        ),
        pytest.param(
            page([used(0), used(1)], Account()),
            ["Means of intervals are no percentiles of latency"],
            "read-ahead of",
            id="means are called so",
        ),
        pytest.param(
            page([replace(at(0, 1.0), ops={})], Account()), [], "Samples by the mean", id="no operations"
        ),
        pytest.param(
            page([], Account(no_report="Not asked for.", no_events="Not known: no journal")),
            ["There are no samples of this time", "Not asked for.", "Not known: no journal"],
            None,
            id="no samples",
        ),
        pytest.param(
            page([], Account(report=replace(REPORT, diagnosis=Diagnosis((), ())))),
            ["Nothing to report: 0 mounts, 0 rules", "The journal has nothing about it in this time."],
            "Severity",
            id="no findings",
        ),
    ],
)
def test_the_words_of_a_page(page: Page, present: list[str], absent: str | None) -> None:
    words = shown(text(page))
    assert [part for part in present if part not in words] == []
    assert absent is None or absent not in words


def test_less_than_a_byte_is_no_read_that_a_ratio_could_be_of() -> None:
    """A sample whose rate is next to nothing, which no kernel makes, must not print an infinite one."""
    words = shown(text(page([replace(used(step), read_bytes_per_s=5e-324) for step in (0, 1)], Account())))
    assert not re.search(r"\b(inf|nan)\b", words)


def marks(page: Page) -> list[tuple[str, str, str]]:
    """Return each chart with marks, the text of each of them, and the notes that are shown."""
    found = []
    for figure in tags(parsed(text(page)), "figure"):
        titles = [element.text or "" for element in tags(figure, "title")]
        notes = [e.text or "" for e in tags(figure, "text") if e.attrib.get("class", "").startswith("note")]
        if titles:
            name = next(tags(figure, "h3")).text or ""
            found.append((name, "; ".join(dict.fromkeys(titles)), "; ".join(dict.fromkeys(notes))))
    return found


OF_READS = ("Throughput", "Over-fetch", "Reads: mean time of each")
FAILED = Event(START + 200, "READ_AHEAD_FAILED", "/mnt/a: read-ahead of 9 KiB refused", "0:43", "/mnt/a")


def test_a_change_is_marked_in_the_charts_of_its_mount_alone_with_both_values() -> None:
    assert marks(SMALL) == [(name, SET.text, "128 -> 15360 KiB") for name in OF_READS]
    assert marks(page([used(0), used(4)], Account(events=(FAILED,)))) == [("Throughput", FAILED.text, "")]


def test_a_change_that_no_journal_has_is_marked_as_the_samples_show_it() -> None:
    kb = [128, 128, 128, None, 15360, None, 512]
    seen = page([replace(used(step), read_ahead_kb=each) for step, each in enumerate(kb)], Account())
    shows = "read-ahead 128 -> 15360 KiB, as the samples show"
    also = "read-ahead 15360 -> 512 KiB, as the samples show"
    both = "128 -> 15360 KiB; 15360 -> 512 KiB"
    assert marks(seen) == [(name, f"{shows}; {also}", both) for name in OF_READS]
    first, _ = seen.mounts[0].steps
    told = replace(SET, step=first._replace(after=first.after + 1, until=first.after + 1))
    known = replace(seen, account=Account(events=(told,)))
    assert marks(known)[0] == ("Throughput", f"{SET.text}; {also}", both)


def test_notes_are_inside_of_the_chart_and_none_is_on_another() -> None:
    moments = [START + 10 * step for step in range(0, 61, 3)]
    many = tuple(pages.Mark(moment, "text", "15360 -> 512 KiB") for moment in moments)
    line = pages.PlotLine("x", "s1", [1.0] * 10)
    plot = frame(10).plot(pages.Chart("Title", (line,), str, marks=many))
    spans = [
        (note.y, note.x - 144 if note.on_the_left else note.x, note.x if note.on_the_left else note.x + 144)
        for note in plot.notes
    ]
    assert len(spans) >= 6
    assert all(0 <= y <= plot.ceiling and left >= 0 and right <= 510 for y, left, right in spans)
    for y, _, right in spans:
        assert not [left for other, left, end in spans if other == y and left < right < end]


WASTED = replace(at(0, 1e7), server_read_bytes_per_s=3e7, stalled_s=None)
STALLED = replace(at(0, 1e7), stalled_s=6.0, interval_s=60.0)
SLOW = replace(STALLED, stalled_s=0.0, ops={"READ": OpRate(8.0, 25.0, 0.1, 25.1, 0.1, 0.0)})
FAST = replace(SLOW, ops={"READ": OpRate(8.0, 2.0, 0.1, 2.1, 0.1, 0.0)})
UNTIMED = "the round trip of 1 mount"
UNWATCHED = f"the time stalled of 1 mount, {UNTIMED}"
LEFT = "its server left requests unanswered"
SENT_MORE = "its server sent 3.00 times the bytes"
UNSEEN = "the time stalled of 1 mount, the round trip of 2 mounts"
WRONG = replace(REPORT, diagnosis=Diagnosis((replace(FINDING, severity=Severity.ERROR, subject="/0"),), ()))


@pytest.mark.parametrize(
    ("samples", "report", "worst"),
    [
        ([FAST, STALLED], WRONG, (0, "nfstuned check finds 1 error of this mount now", UNTIMED)),
        ([FAST, STALLED, WASTED], REPORT, (1, f"{LEFT} for 10.0 % of its time in use", UNSEEN)),
        ([FAST, WASTED, SLOW], REPORT, (1, f"{SENT_MORE} that programs read", UNWATCHED)),
        ([FAST, SLOW], None, (1, "its reads or writes have the longest mean round trip, 25.0 ms", "errors")),
        ([SLOW], REPORT, None),
        ([], REPORT, None),
    ],
)  # fmt: skip
def test_the_worst_mount_is_marked_with_the_reason_and_the_unknown_figures(
    samples: list[Sample], report: Report | None, worst: tuple[int, str, str] | None
) -> None:
    named = [replace(one, mount_points=(f"/{n}",), device=f"0:{n}") for n, one in enumerate(samples)]
    shows = page(named, Account(report=report))
    found = worst_mount(shows.mounts, report)
    assert worst == (found and (shows.mounts.index(found.mount), found.reason, found.unknown))
    mark = "slowest" if worst and "round trip, " in worst[1] else "worst"
    rows = [row for row in tags(parsed(text(shows)), "tr") if row.attrib.get("class") == mark]
    assert ["".join(next(tags(row, "a")).itertext()) for row in rows] == ([f"/{worst[0]}"] if worst else [])


def test_a_volume_has_its_name_and_its_whole_path_in_a_title_and_below() -> None:
    uid = "5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6"
    path = f"/var/lib/kubelet/pods/{uid}/volumes/kubernetes.io~csi/pvc-1/mount"
    finding = replace(FINDING, subject=path)
    report = replace(REPORT, diagnosis=Diagnosis((finding,), ()))
    seen = page([replace(used(0), mount_points=(path,))], Account(report=report))
    html = text(replace(seen, names=KubeletNames({uid: "media/web-0"}, {path: "nfs.csi.k8s.io, volume n"})))
    titles = [e.attrib["title"] for e in parsed(html).iter() if "title" in e.attrib]
    assert titles == [f"{path} (nfs.csi.k8s.io, volume n)"] * 2  # in both tables
    assert shown(html).count("pvc-1, pod media/web-0") == 3
    assert shown(html).count(path) == 1


def test_a_pod_that_is_gone_has_the_name_that_its_samples_have() -> None:
    path = "/var/lib/kubelet/pods/5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6/volumes/kubernetes.io~csi/pvc-1/mount"
    sample = replace(used(0), mount_points=(path,), namespace="media", pod="web-0", persistentvolume="pvc-1")
    assert shown(text(page([sample], Account()))).count("pvc-1, pod media/web-0") == 2


def test_of_many_mounts_those_that_moved_most_have_charts() -> None:
    many = [replace(at(0, float(n)), mount_points=(f"/m{n:03}",)) for n in range(MOST_MOUNTS + 3)]
    html = text(page(many, Account()))
    headings = [e.attrib["id"] for e in parsed(html).iter() if re.fullmatch(r"m\d+", e.attrib.get("id", ""))]
    assert len(headings) == MOST_MOUNTS
    words = shown(html)
    assert f"Charts are of the {MOST_MOUNTS} mounts that moved most; 3 more are in the table." in words
    assert "/m002" in words


def test_of_many_events_the_last_are_told() -> None:
    events = [replace(SET, time=START + n, text=f"event{n}.") for n in range(MOST_EVENTS + 5)]
    words = shown(text(page([used(0)], Account(events=events))))
    assert f"The last {MOST_EVENTS} entries; 5 earlier ones are in the journal." in words
    assert "event4." not in words
    assert f"event{MOST_EVENTS + 4}." in words


def test_a_zone_has_its_name_and_both_where_it_changed() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    winter, summer = (datetime(2026, month, 1, tzinfo=timezone.utc).timestamp() for month in (1, 7))
    assert pages.zone_name(winter, winter, berlin) == "CET (UTC+01:00)"
    assert pages.zone_name(winter, summer, berlin) == "CET (UTC+01:00) to CEST (UTC+02:00)"
    assert pages.zone_name(winter, winter, ZoneInfo("Asia/Kolkata")) == "IST (UTC+05:30)"


@pytest.mark.parametrize(("number", "text"), [(0, "0"), (1234, "1.2 kB"), (3.6e12, "3.6 TB")])
def test_an_amount_has_the_unit_of_its_size(number: float, text: str) -> None:
    assert amount(number) == text


@settings(max_examples=10)
@given(st.lists(SAMPLES, min_size=1, max_size=2), st.text(max_size=20))
def test_any_samples_make_a_page_without_a_number_that_is_none(samples: list[Sample], name: str) -> None:
    html = text(page(samples, Account(events=(replace(SET, text=name),)), title=name))
    parsed(html)
    assert not re.search(r'"[^"]*\b(nan|inf)\b[^"]*"/>', html)


def test_a_week_of_fifty_mounts_is_of_a_size_that_a_browser_takes() -> None:
    """Seven days of a sample every half hour have as many points as of one every minute."""
    halves = [replace(used(30 * step), interval_s=1800.0) for step in range(336)]
    week = [replace(one, mount_points=(f"/mnt/share{mount}",)) for one in halves for mount in range(2)]
    assert len(text(page(week, Account()))) / 2 * 50 < 8e6


START = 1_785_000_000.0
PLOT = (78.0, 490.0, 10.0, 174.0)
"""Left, right, ceiling and floor of a chart that is 500 wide."""
ESCAPED = pages.environment().from_string('<a b="{{ text }}">{{ text }}</a>')
CHARTS = pages.environment().get_template("charts.jinja").module
VALUES = st.lists(st.none() | st.floats(0, 1e100), min_size=1, max_size=30)


def frame(columns: int, before: float = 0.0, after: float = 0.0) -> pages.PlotFrame:
    axis = Axis(START, START + 60.0 * columns, columns)
    return pages.PlotFrame(START - before, axis.end + after, axis, timezone.utc)


def svg(chart: pages.Chart, shown: pages.PlotFrame) -> str:
    return str(CHARTS.over_time(chart, shown.plot(chart)))  # type: ignore[attr-defined]


def drawn(values: Sequence[float | None], **more: float) -> ET.Element:
    line = pages.PlotLine("name", "s1", values)
    chart = pages.Chart("Title", (line,), "{:g} ms".format, **more)  # type: ignore[arg-type]
    return element(svg(chart, frame(len(values))))


def paths(root: ET.Element) -> list[str]:
    return [path.attrib["d"] for path in root.iter("path")]


def points(path: str) -> list[tuple[float, float]]:
    """Return the points of a path; a horizontal line has two."""
    found: list[tuple[float, float]] = []
    for command, numbers in re.findall(r"([MLH])([^MLH]*)", path):
        first, *rest = map(float, numbers.split())
        found.append((first, rest[0] if command != "H" else found[-1][1]))
    return found


def test_a_value_alone_is_as_wide_as_its_column() -> None:
    (path,) = paths(drawn([None, 1.0, None, None]))
    assert points(path) == [(181.0, 10.0), (284.0, 10.0)]


@given(VALUES, VALUES, st.floats(0, 1e9), st.floats(0, 1e9))
def test_every_point_is_inside_of_the_plot(
    values: list[float | None], others: list[float | None], before: float, after: float
) -> None:
    columns = max(len(values), len(others))
    padded = ([*line, *[None] * (columns - len(line))] for line in (values, others))
    lines = tuple(pages.PlotLine("x", "s1", line) for line in padded)
    text = svg(pages.Chart("Title", lines, str), frame(columns, before, after))
    assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)
    left, right, ceiling, floor = PLOT
    root = element(text)
    for path in paths(root):
        for x, y in points(path):
            assert left <= x <= right
            assert ceiling <= y <= floor
    for inner in root.iter():
        for name in ("x", "x1", "x2", "y", "y1", "y2"):
            if name in inner.attrib:
                assert 0 <= float(inner.attrib[name]) <= (500 if name[0] == "x" else pages.HEIGHT)


@given(VALUES)
def test_a_small_one_stays_inside_too(values: list[float | None]) -> None:
    lines = [pages.PlotLine("x", "s1", values)]
    text = CHARTS.spark(lines, frame(len(values)).spark(lines))  # type: ignore[attr-defined]
    for path in paths(element(text)):
        for x, y in points(path):
            assert 0 <= x <= 160
            assert 2 <= y <= 26


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_is_xml_in_a_page(text: str) -> None:
    root = element(ESCAPED.render(text=text))
    assert root.text is None or root.text.isprintable()
    assert root.attrib["b"] == (root.text or "")


BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("most", "ticks"),
    [
        (0.0, (0, 5e-7, 1e-6)),
        (1.0, (0, 0.5, 1.0)),
        (4.0, (0, 1, 2, 3, 4)),
        (4.1, (0, 2, 4, 6)),
        (73.4e6, (0, 20e6, 40e6, 60e6, 80e6)),
        (100.0, (0, 50, 100)),
    ],
)
def test_numbers_are_round_and_reach_the_greatest(most: float, ticks: tuple[float, ...]) -> None:
    assert pages.number_ticks(most) == pytest.approx(ticks)


@given(st.floats(0, 1e100))
def test_every_scale_begins_at_0_and_is_not_much_too_long(most: float) -> None:
    ticks = pages.number_ticks(most)
    assert ticks[0] == 0
    assert len(ticks) in range(2, 7)
    assert ticks[-1] >= most * (1 - 1e-9)
    assert ticks[-2] < max(most, 1e-6)


def clock(start: datetime, hours: float, most: int = 8) -> list[str]:
    first = start.timestamp()
    return [label for _, label in pages.time_ticks(first, first + hours * 3600, start.tzinfo, most)]


def test_times_are_round_on_the_wall() -> None:
    start = datetime(2026, 7, 25, 17, 20, tzinfo=timezone.utc)
    assert clock(start, 24) == ["18:00", "21:00", "26 Jul", "03:00", "06:00", "09:00", "12:00", "15:00"]
    assert clock(start, 0.1) == ["17:20", "17:21", "17:22", "17:23", "17:24", "17:25", "17:26"]
    assert clock(start, 0.01) == [f"17:20:{second:02}" for second in range(0, 40, 5)]
    assert clock(start, 24 * 7) == ["26 Jul", "27 Jul", "28 Jul", "29 Jul", "30 Jul", "31 Jul", "1 Aug"]
    assert clock(start, 24 * 800, 3) == ["2026-08-29", "2027-05-23", "2028-02-14"]


def test_they_are_round_behind_a_change_of_the_clock_too() -> None:
    spring = datetime(2026, 3, 28, 20, tzinfo=BERLIN)
    assert clock(spring, 24) == ["21:00", "29 Mar", *(f"{hour:02}:00" for hour in range(3, 24, 3))]
    autumn = datetime(2026, 10, 24, 22, tzinfo=BERLIN)
    assert clock(autumn, 24)[:4] == ["25 Oct", "03:00", "06:00", "09:00"]
    twice = datetime(2026, 10, 25, 0, 30, tzinfo=BERLIN)
    assert clock(twice, 4) == ["00:30", "01:00", "01:30", "02:00", "02:30", "03:00", "03:30"]
    second = datetime(2026, 10, 25, 2, 5, tzinfo=BERLIN, fold=1)
    assert clock(second, 0.5, 3) == ["02:10", "02:20", "02:30"]
    gap = datetime(2026, 3, 29, 1, 10, tzinfo=BERLIN)
    assert clock(gap, 2) == ["01:15", "01:30", "01:45", "03:00", "03:15", "03:30", "03:45", "04:00"]


@given(
    st.floats(-1e9, 1e11),
    st.floats(1, 1e10),
    st.integers(2, 16),
    st.sampled_from([None, timezone.utc, BERLIN, ZoneInfo("Asia/Kolkata")]),
)
def test_they_are_in_order_inside_and_few(
    start: float, seconds: float, most: int, zone: timezone | ZoneInfo | None
) -> None:
    ticks = pages.time_ticks(start, start + seconds, zone, most)
    moments = [moment for moment, _ in ticks]
    assert moments == sorted(set(moments))
    assert len(ticks) <= most + 2
    assert all(start <= moment <= start + seconds for moment in moments)
