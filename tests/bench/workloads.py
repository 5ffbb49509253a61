"""The tables and the pictures of docs/workloads.md about the loop, from the lines that a guest has measured.

`sh dev/lab KERNEL workloads` measures (tests/lab/kit/workloads.py) and makes both. The lines are kept in
tests/data, by kernel; a test holds the page and the pictures to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log2
from pathlib import Path
from xml.sax.saxutils import escape

from nfstuned.core.samples.sample import amount, speed
from tests.bench.page import KEPT, PROJECT, Row, filled, rows_of

PAGE = PROJECT / "docs/workloads.md"
ENOUGH = 0.9
"""The least part of the better column, and of the kernel's, that a case is to have."""
_FROM_MEMORY = 0.5
"""Of the bytes that were read: where the server sent less, a run says nothing of the read-ahead."""


def kept(release: str) -> Path:
    """Return the file of a kernel's lines."""
    return KEPT / f"workloads-{release}.jsonl"


def counts(row: Row) -> bool:
    """Whether nearly all that was read came from the server."""
    sent = [row["fixed"]["128"][1], row["fixed"]["15360"][1], row["adapted"][1]]
    return all(each >= _FROM_MEMORY for each in sent)


def of_better(row: Row) -> float:
    kernels, vendors = (row["fixed"][kb][0] for kb in ("128", "15360"))
    return float(row["adapted"][0] / max(kernels, vendors))


def of_kernels(row: Row) -> float:
    return float(row["adapted"][0] / row["fixed"]["128"][0])


def losses(rows: Sequence[Row]) -> list[Row]:
    """Return the cases in which the loop ends below nine tenths of a fixed value."""
    return [row for row in rows if counts(row) and min(of_better(row), of_kernels(row)) < ENOUGH]


def tables(release: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of a kernel's tables."""
    counted = [row for row in rows if counts(row)]
    link = f"{rows[0]['mbit']} Mbit/s"
    yield f"Linux {release} over {link}: throughput of programs, and bytes sent for each byte read."
    for rtt_ms in dict.fromkeys(row["rtt_ms"] for row in rows):
        yield ""
        yield f"A round trip of {rtt_ms:g} ms:"
        yield ""
        yield "| Readers | 128 KiB | 15360 KiB | adapted | its last value | samples | wasted on the way |"
        yield "|---|---|---|---|---|---|---|"
        for row in counted:
            if row["rtt_ms"] == rtt_ms:
                yield _line(row)
    few = losses(rows)
    yield ""
    yield f"{len(counted) - len(few)} of {len(counted)} cases end with 0.9 of the better value or more; "
    yield f"{len(rows) - len(counted)} are left out, as their data came from the client's memory."
    if few:
        yield ""
        yield "The others:"
        yield ""
        yield from (
            f"- {row['readers']}, {row['way']}, {row['rtt_ms']:g} ms: {of_better(row):.2f} of the better, "
            f"{of_kernels(row):.2f} of 128 KiB"
            for row in few
        )


def _line(row: Row) -> str:
    cells = [_cell(*row["fixed"]["128"]), _cell(*row["fixed"]["15360"]), _cell(*row["adapted"])]
    cells += [f"{row['values'][-1]} KiB", str(row["samples"]), amount(row["wasted_bytes"])]
    return f"| {row['readers']}, {row['way']} | {' | '.join(cells)} |"


def _cell(rate: float, ratio: float) -> str:
    return f"{speed(rate)}, {ratio:{',.0f' if ratio >= 10 else '.1f'}}"


_TOP, _ROW, _LEFT, _WIDTH, _PANEL = 64, 17, 150, 210, 250
_SVG = "http://www.w3.org/2000/svg"
_LEAST, _MOST = -8, 2
"""Powers of two of the axis: the throughput as a multiple of the kernel's."""


def picture(release: str, rows: Sequence[Row]) -> str:
    """Return the throughput with 15360 KiB and with the loop as multiples of the kernel's, as an SVG."""
    rtts = list(dict.fromkeys(row["rtt_ms"] for row in rows))
    names = list(dict.fromkeys(f"{row['readers']}, {row['way']}" for row in rows if counts(row)))
    width, height = _LEFT + _PANEL * len(rtts), _TOP + _ROW * len(names) + 30
    lines = [
        f'<svg xmlns="{_SVG}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(8, 18, f"Throughput as a multiple of the kernel's 128 KiB, Linux {release}", size=14),
        '<circle cx="14" cy="34" r="4" fill="none" stroke="#bc4c00" stroke-width="1.5"/>',
        _text(24, 38, "15360 KiB"),
        '<circle cx="104" cy="34" r="4" fill="#0969da"/>',
        _text(114, 38, "adapted"),
    ]
    lines += [_text(8, _TOP + _ROW * (at + 1) - 5, name) for at, name in enumerate(names)]
    for at, rtt_ms in enumerate(rtts):
        left = _LEFT + _PANEL * at
        lines.append(_text(left, _TOP - 8, f"{rtt_ms:g} ms"))
        for power in range(_LEAST, _MOST + 1, 2):
            x, stroke = _x(left, 2.0**power), "#59636e" if power == 0 else "#d1d9e0"
            bottom = _TOP + _ROW * len(names)
            lines.append(f'<path d="M{x:.1f} {_TOP}V{bottom}" stroke="{stroke}" fill="none"/>')
            name = str(2**power) if power >= 0 else f"1/{2**-power}"
            lines.append(_text(x, bottom + 16, name, anchor="middle"))
        for row in rows:
            if row["rtt_ms"] == rtt_ms and counts(row):
                y = _TOP + _ROW * names.index(f"{row['readers']}, {row['way']}") + _ROW / 2
                fixed = row["fixed"]["15360"][0] / row["fixed"]["128"][0]
                lines.append(
                    f'<circle cx="{_x(left, fixed):.1f}" cy="{y}" r="4" fill="none" stroke="#bc4c00" '
                    'stroke-width="1.5"/>'
                )
                lines.append(f'<circle cx="{_x(left, of_kernels(row)):.1f}" cy="{y}" r="4" fill="#0969da"/>')
    return "\n".join([*lines, "</svg>", ""])


def _x(left: float, times: float) -> float:
    power = min(_MOST, max(_LEAST, log2(max(times, 1e-9))))
    return left + (power - _LEAST) / (_MOST - _LEAST) * _WIDTH


def _text(x: float, y: float, text: str, *, size: int = 11, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="#1f2328">'
        f"{escape(text)}</text>"
    )


def picture_file(release: str) -> Path:
    return PROJECT / f"docs/pictures/adapting-{release.partition('-')[0]}.svg"


def make(text: str, release: str) -> list[Path]:
    """Keep the lines that guests have left, and make the tables and the picture; return the files."""
    rows = rows_of(text)
    kept(release).write_text(text)
    PAGE.write_text(filled(PAGE.read_text(), release, tables(release, rows)))
    picture_file(release).write_text(picture(release, rows))
    return [kept(release), PAGE, picture_file(release)]
