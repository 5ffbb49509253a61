"""Where an axis has its marks: round numbers, and round times of the wall clock."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from itertools import takewhile

_LEAST = 1e-6
"""A scale of less shows nothing that anybody could want to know."""
_HOUR, _DAY = 3600, 86400
_STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    _HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR,
    _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY,
)  # fmt: skip
_YEARS_S = 300 * _DAY
"""From here on a day is not clear without its year."""


def number_ticks(most: float, about: int = 4) -> tuple[float, ...]:
    """Return round numbers from 0 to `most` or a little above: 1, 2 or 5 times a power of ten apart."""
    step = _round_up(max(most, _LEAST) / about)
    # A number is not to be above its axis because of the last bit of a quotient.
    count = max(1, math.ceil(max(most, _LEAST) / step * (1 - 1e-12)))
    return tuple(step * number for number in range(count + 1))


def _round_up(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * times for times in (1, 2, 5, 10) if power * times >= step * (1 - 1e-12))


def time_ticks(start: float, end: float, zone: tzinfo | None, most: int = 8) -> tuple[tuple[float, str], ...]:
    """Return moments of a wall clock in Unix seconds, at most one more than `most`, and what they are called.

    They are round in the zone, also behind a change to or from summer time. `zone` None is the host's.
    """
    step_s = next((step for step in _STEPS_S if (end - start) / step <= most), None)
    if step_s is None:
        step_s = _DAY * math.ceil((end - start) / most / _DAY)
    form = _form(step_s, end - start)
    found: list[tuple[float, str]] = []
    walls = _walls(datetime.fromtimestamp(start, zone).replace(tzinfo=None), step_s)
    moments = ((wall.replace(tzinfo=zone).timestamp(), wall) for wall in walls)
    for moment, wall in takewhile(lambda one: one[0] <= end, moments):
        if moment >= start and (not found or moment > found[-1][0]):
            found.append((moment, _label(wall, form, step_s)))
    return tuple(found)


def _walls(start: datetime, step_s: int) -> Iterator[datetime]:
    """Yield round times of a wall clock from a little before `start` on, for ever."""
    midnight = datetime.combine(start.date(), datetime.min.time())
    if step_s >= _DAY:
        days = step_s // _DAY
        wall = midnight - timedelta(days=midnight.toordinal() % days)
    else:
        wall = midnight + timedelta(seconds=(start - midnight).total_seconds() // step_s * step_s)
    # An hour that comes twice begins before the wall clock says so.
    wall -= timedelta(seconds=step_s)
    while True:
        yield wall
        wall += timedelta(seconds=step_s)


def _form(step_s: int, span_s: float) -> str:
    if step_s < 60:  # noqa: PLR2004 - a minute
        return "%H:%M:%S"
    if step_s < _DAY:
        return "%H:%M"
    return "%Y-%m-%d" if span_s >= _YEARS_S else "%d %b"


def _label(wall: datetime, form: str, step_s: int) -> str:
    """Return the time; at midnight the day that begins."""
    if step_s < _DAY and (wall.hour, wall.minute, wall.second) == (0, 0, 0):
        form = "%d %b"
    return wall.strftime(form).lstrip("0") if form == "%d %b" else wall.strftime(form)
