"""`python -m tests.lab.soak`: a soak in a guest, its data, its table in docs/reliability.md and its picture.

See `dev/soak`. The data of each kernel's last soak of KEPT_HOURS or more are kept in tests/data; a test
holds page and picture to them.
"""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from dev.package.run import BuildError, run
from tests.bench.page import KEPT, RELIABILITY, Row, filled, rows_of
from tests.lab import guest, image, runs
from tests.lab.kit import judge
from tests.lab.kit.judge import Trend, grows
from tests.lab.kit.trouble import RIVAL_KB

PICTURES = runs.PROJECT / "docs/pictures"
PART = "soak"
KEPT_HOURS = 1.0
"""A shorter soak, as a release makes it, says nothing of hours: it leaves the page as it is."""
MOST_POINTS = 240
"""Of each curve that is kept and drawn."""


def main(arguments: list[str]) -> int:
    """Soak a kernel; return the exit status of dev/soak."""
    parser = argparse.ArgumentParser(prog="sh dev/soak")
    parser.add_argument("--hours", type=float, required=True)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("kernel", nargs="?", default="newest")
    words = parser.parse_args(arguments)
    commit = _commit()
    try:
        image.ensure(_say)
        release = image.release(words.kernel)
        target = runs.folder() / f"soak-{release}"
        # The rest of it is for the boot, the last stalls and the last unmounts.
        limits = guest.Limits(words.hours * 3600 + 2700, first_s=240, quiet_s=900, retries=2)
        module = ("tests.lab.kit.soak", str(words.hours), str(words.seed))
        boot = runs.run_module(module, release, target, guest.stdout_line, limits)
    except image.NoKernelError as error:
        _say(str(error))
        return 2
    except BuildError as error:
        _say(f"nfstuned's package does not build: {error}")
        return 2
    _say(boot.explain())
    _say(f"results: {target}")
    if boot.files is None or boot.status not in {0, 1} or not (boot.files / "soak.jsonl").exists():
        return 2
    rows = rows_of((boot.files / "soak.jsonl").read_text())
    if rows[-1]["kind"] != "summary":
        return 2
    if words.hours >= KEPT_HOURS:
        for file in make(rows, release, {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": commit}):
            _say(str(file))
    return 0 if boot.status == 0 else 1


def _commit() -> str:
    """Return the commit of the tree that is packed; empty where git does not know it."""
    try:
        is_changed = bool(run("git", "status", "--porcelain", "--untracked-files=no"))
        return run("git", "rev-parse", "--short=12", "HEAD").strip() + (", changed" if is_changed else "")
    except BuildError:
        return ""


def make(rows: Sequence[Row], release: str, run_of: Row) -> list[Path]:
    """Keep a guest's lines, and make the page's part and the picture; return the files.

    `run_of` has the date and the commit, which the guest does not know.
    """
    data, drawing = KEPT / f"soak-{release}.jsonl", picture_file(release)
    few = thinned(rows, run_of)
    data.write_text("".join(json.dumps(row) + "\n" for row in few))
    RELIABILITY.write_text(page(RELIABILITY.read_text(), [rows_of(file.read_text()) for file in kept()]))
    drawing.write_text(picture(few))
    return [data, RELIABILITY, drawing]


def kept() -> list[Path]:
    """Return the files of all kernels, the oldest kernel first."""

    def version(path: Path) -> list[int]:
        return [int(word) for word in path.stem.split("-")[1].partition("+")[0].split(".")]

    return sorted(KEPT.glob("soak-*.jsonl"), key=version)


def picture_file(release: str) -> Path:
    return PICTURES / f"soak-{release.partition('-')[0]}.svg"


def thinned(rows: Sequence[Row], run_of: Row) -> list[Row]:
    """Return the rows that the page and the picture show, and those about stalls, the summary last."""
    meters = [row for row in rows if row["kind"] == "meter" and "fds" in row]
    step = -(-len(meters) // MOST_POINTS)
    keys = ("t", "kind", *MEMORY, "fds", "mounts", "cpu_s")
    few = [{key: row[key] for key in keys if key in row} for row in meters[::step]]
    addresses = {row["point"]: row["address"] for row in rows if row["kind"] == "mount"}
    events = [
        {key: row[key] for key in ("t", "kind")} | shown for row in rows if (shown := _shown(row, addresses))
    ]
    return [*sorted([*few, *events], key=lambda row: float(row["t"])), rows[-1] | run_of]


def _shown(row: Row, addresses: Mapping[str, str]) -> Row:
    """Return the fields of an event that are kept; none where it is not kept."""
    if row["kind"] == "outage":
        times: Row = {key: round(row[key], 1) for key in ("lasted_s", "back_s") if key in row}
        return {"what": row["what"], "address": row["address"], **times}
    if row["kind"] == "wait":
        return {key: row[key] for key in ("what", "point", "address", "took_s")}
    if row.get("message") in {"STALLED", "STALL_ENDED"}:
        return {key: row[key] for key in ("message", "point")} | {"address": addresses.get(row["point"], "")}
    lane = {"reload": "reload", "rival": "rival", "clock": "clock", "restart": "restart"}.get(row["kind"])
    return {"what": lane} if lane else {}


def page(text: str, soaks: Sequence[Sequence[Row]]) -> str:
    """Return the page with the table of all soaks."""
    return filled(text, PART, _lines([rows[-1] for rows in soaks]))


def _lines(sums: Sequence[Row]) -> Iterator[str]:
    if not sums:
        return
    yield "In an emulator, on a machine with other work."
    yield ""
    yield f"| | {' | '.join(one['release'] for one in sums)} |"
    yield f"|---|{'---|' * len(sums)}"
    for name, cell in CELLS.items():
        yield f"| {name} | {' | '.join(cell(one) for one in sums)} |"
    yield ""
    yield from (f"- {term}" for term in TERMS)
    for one in sums:
        if one["judged_by"] == "rss_kb" and _memory("pss_kb")(one).endswith("grows"):
            yield ""
            yield (
                f"On {one['release']} PSS grows by the limits, and RSS, which the verdict is by, does not. "
                "A leak is not excluded: the next run records RssAnon and judges it."
            )
    for one in sums:
        yield ""
        words = f"Memory, descriptors, mounts, processor time and events on {one['release']}, over the time"
        yield f"![{words}](pictures/{picture_file(one['release']).name})"
    for one in sums:
        if one["faults"]:
            yield ""
            yield f"Faults on {one['release']}:"
            yield ""
            yield from (f"- {fault}" for fault in one["faults"])


def _slope(trend: Sequence[float], unit: str) -> str:
    slope, error = trend
    return f"{slope:+.1f} ± {2 * error:.1f} {unit}"


def _memory(key: str) -> Callable[[Row], str]:
    def cell(one: Row) -> str:
        if key not in one["trends"]:
            return "-"
        whole, later = Trend(*one["trends"][key]), Trend(*one["later"][key])
        # The first tenth is left out.
        verdict = "grows" if grows(0.9 * one["hours"], whole, later) else "no growth"
        return f"{_slope(whole, 'KiB/h')}; {_slope(later, 'KiB/h')}; {verdict}"

    return cell


def _times(key: str) -> Callable[[Row], str]:
    return lambda one: " / ".join(f"{ms:,.0f}" for ms in one[key]) + " ms"


def _part(one: Row, key: str) -> str:
    # Earlier runs have no waits of programs: their number of stalls made up could hardly be above 0.
    return f"{one[key]}; {100 * one[f'{key}_part']:.0f} %" if f"{key}_part" in one else "-"


def _events(*kinds: str) -> Callable[[Row], str]:
    return lambda one: f"{sum(one['events'].get(kind, 0) for kind in kinds):,}"


MEMORY = {"rss_kb": "RSS", "pss_kb": "PSS", "anon_kb": "RssAnon"}
EVENTS = ("mount", "unmount", "outage", "reload", "rival", "clock", "restart")
CELLS: dict[str, Callable[[Row], str]] = {
    "the daemon's version; commit": lambda one: f"{one['version']}; {one.get('commit') or '-'}",
    "date; hours; seed": lambda one: f"{one['date']}; {one['hours']:.2f}; {one['seed']}",
    "mounts made; through TLS (stunnel)": lambda one: f"{_events('mount')(one)}; {one['through_tls']}",
    "mounts seen with the right value; unmounted before": lambda one: (
        f"{one['mounts']:,}; {one['events']['mount'] - one['mounts']:,}"
    ),
    "calls of mount(8) that failed; other work of programs that failed": lambda one: "; ".join(
        _events(kind)(one) for kind in ("refused", "work failed")
    ),
    "outages; reloads; rivals' writes; clock steps and restarts of udev and journald": lambda one: "; ".join(
        _events(*kinds)(one) for kinds in (("outage",), ("reload",), ("rival",), ("clock", "restart"))
    ),
    "these, mounts and unmounts together": _events(*EVENTS),
    "programs read and wrote": lambda one: f"{one['moved_bytes'] / 1e9:.1f} GB",
    "read-aheads written; of these by the closed loop": lambda one: (
        f"{one['writes']:,}; {one['entries'].get('READ_AHEAD_ADAPTED', 0):,}"
    ),
    "longest time between two looks at the values": lambda one: f"{one['longest_gap_s']:.1f} s",
    "**wrong values**": lambda one: str(one["wrong"]),
    "from mount(8)'s return to the right value: median / p99 / worst": _times("first_ms"),
    "from a rival's write to the right value: median / p99 / worst": _times("again_ms"),
    "stalls reported": lambda one: str(one["reported_stalls"]),
    "stalls **missed**, of those due; shortest wait that is due": lambda one: (
        f"{one['missed']} of {one.get('due', '-')}; {one['due_s']:.0f} s"
    ),
    "stalls **made up**; part of the time in which a report would be made up": lambda one: _part(
        one, "made_up"
    ),
    "stalls outside of outages; part of the time that is outside": lambda one: _part(one, "outside_outages"),
    "stalls without a request that the kernel lists": lambda one: (
        "not known" if one.get("unlisted") is None else str(one["unlisted"])
    ),
    "**restarts by itself**": lambda one: str(one["restarts"]),
    "RSS after a tenth / at the end / most": lambda one: (
        " / ".join(f"{kb:,}" for kb in one["rss_kb"]) + " KiB"
    ),
    **{
        f"{name}, slope ± 2 standard errors; in the later half; by the limits": _memory(key)
        for key, name in MEMORY.items()
    },
    "the verdict is by": lambda one: MEMORY[one["judged_by"]],
    "descriptors after a tenth / at the end / most": lambda one: " / ".join(map(str, one["fds"])),
    "descriptors, slope ± 2 standard errors": lambda one: _slope(one["trends"]["fds"], "/h"),
    "processor time": lambda one: f"{one['cpu_percent']:.1f} % of one",
    "journal": lambda one: f"{one['entries_an_hour']:,} entries/h, nearly all of them samples",
}


TERMS = (
    (
        f"*Wrong*: for longer than {judge.GRACE_S:.0f} s, sysfs shows another program a value that the "
        "configuration does not allow. The time begins with mount(8)'s return, a rival's write or the end of "
        "a reload: a late value is a wrong value. `status` with another value than sysfs counts as well, and "
        "another device with a changed read-ahead."
    ),
    (
        f"The *closed loop* of Azure Files begins at {judge.VENDORS_KB:,} KiB and may choose any value from "
        f'{judge.KERNELS_KB} KiB to that. With `adapt = "off"` that value alone is right. A bad choice '
        "within these bounds is not seen here."
    ),
    (
        f"A *rival* writes {RIVAL_KB} KiB. The daemon sets its value again {judge.TRIES} times in "
        f"{judge.WINDOW_S:.0f} s. Then it leaves the mount to the rival, and reports that."
    ),
    (
        "*Missed*: a program's write waits for long enough in an outage, and the journal has no stall of its "
        f"mount. Long enough is {judge.DUE_S:.0f} s: {judge.SAMPLE_S:.0f} s until a sample has the request, "
        f"{judge.STALLED_S:.0f} s of waiting, {judge.FOLLOW_S:.0f} s to the next look, and "
        f"{judge.SLOW_S:.0f} s for the emulator. The table has each run's time. Shorter waits do not count."
    ),
    (
        "*Made up*: the journal reports a stall while no write or umount(8) of a program waits for the "
        f"server: from {judge.STALLED_S - judge.MARGIN_S:.0f} s after the wait's begin to "
        f"{judge.FOLLOW_S:.0f} s after its end. A run has - where the waits were not recorded: "
        "it is older than this rule and the next."
    ),
    (
        "*Outside of outages*: the report comes before an outage of the server, or later than "
        f"{judge.MARGIN_S:.0f} s after the server is back. The part of the time is of the server with more "
        "outages. A report at a random time is outside with at least that probability."
    ),
    (
        "Memory *grows*: its slope less two standard errors is above "
        f"{judge.MOST_KB_AN_HOUR} KiB/h in the later half, or adds {judge.MOST_GROWTH_KB:,} KiB in all "
        "of the time. RSS falls when the kernel reclaims pages of files. PSS rises when other programs "
        "drop shared pages. Neither moves RssAnon."
    ),
)
"""The words of the table, for a reader without the source."""


class Panel(NamedTuple):
    """A curve of the picture."""

    title: str
    points: list[tuple[float, float]]


_WIDTH, _LEFT, _HEIGHT, _GAP, _TOP = 720, 90, 70, 34, 30
_LANES = ("silent", "stopped", "slow", "reload", "rival", "clock", "restart")
_LANE = 16


def picture(rows: Sequence[Row]) -> str:
    """Return the SVG: four curves over the time, and below them a lane for each kind of event."""
    meters, last = [row for row in rows if row["kind"] == "meter"], rows[-1]
    end_s = max(last["hours"] * 3600, meters[-1]["t"])
    rates = [(b["t"], 100 * (b["cpu_s"] - a["cpu_s"]) / (b["t"] - a["t"])) for a, b in pairwise(meters)]
    curves = {"RSS, MiB": "rss_kb", "descriptors": "fds", "mounts": "mounts"}
    panels = [
        Panel(title, [(row["t"], row[key] / (1024 if key == "rss_kb" else 1)) for row in meters])
        for title, key in curves.items()
    ]
    panels.append(Panel("processor, %", rates))
    height = _TOP + (_HEIGHT + _GAP) * len(panels) + _LANE * len(_LANES) + 40
    total = _LEFT + _WIDTH + 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" font-family="sans-serif">',
        f'<rect width="{total}" height="{height}" fill="#ffffff"/>',
        _text(8, 16, f"Linux {last['release']}, {last['hours']:.2f} hours, seed {last['seed']}", size=13),
    ]
    for at, panel in enumerate(panels):
        lines += _curve(panel, _TOP + (_HEIGHT + _GAP) * at + 14, end_s)
    top = _TOP + (_HEIGHT + _GAP) * len(panels) + 4
    lines += _lanes(rows, top, end_s)
    bottom = top + _LANE * len(_LANES)
    step_s = next((s for s in (60, 300, 600, 1800, 3600) if end_s / s <= 12), 7200)
    for second in range(0, int(end_s) + 1, step_s):
        lines.append(_text(_x(second, end_s), bottom + 16, f"{second / 60:.0f} min", anchor="middle"))
    return "\n".join([*lines, "</svg>", ""])


def _curve(panel: Panel, top: float, end_s: float) -> Iterator[str]:
    least, most = (choose(value for _, value in panel.points) for choose in (min, max))
    most = most if most > least else least + 1

    def y(value: float) -> float:
        return top + _HEIGHT - _HEIGHT * (value - least) / (most - least)

    yield _text(8, top + _HEIGHT / 2, panel.title)
    for value in (least, most):
        yield f'<path d="M{_LEFT} {y(value):.1f}H{_LEFT + _WIDTH}" stroke="#d1d9e0" fill="none"/>'
        yield _text(_LEFT - 6, y(value) + 4, f"{value:.3g}", anchor="end")
    path = "L".join(f"{_x(at, end_s):.1f} {y(value):.1f}" for at, value in panel.points)
    yield f'<path d="M{path}" stroke="#0969da" stroke-width="1.2" fill="none"/>'


def _lanes(rows: Sequence[Row], top: float, end_s: float) -> Iterator[str]:
    for at, lane in enumerate(_LANES):
        y = top + _LANE * at
        yield _text(8, y + 11, lane)
        yield f'<path d="M{_LEFT} {y + 7}H{_LEFT + _WIDTH}" stroke="#d1d9e0" fill="none"/>'
        for row in rows:
            if row.get("what") == lane:
                lasted_s = row.get("lasted_s", 0)
                x, width = _x(row["t"] - lasted_s, end_s), max(1.5, _WIDTH * lasted_s / end_s)
                yield f'<rect x="{x:.1f}" y="{y + 2}" width="{width:.1f}" height="10" fill="#bc4c00"/>'


def _x(at_s: float, end_s: float) -> float:
    return _LEFT + _WIDTH * min(1.0, max(0.0, at_s / end_s))


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#1f2328">'
        f"{escape(text)}</text>"
    )


def _say(line: str) -> None:
    print(f"soak: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
