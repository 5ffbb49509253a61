"""Points in time as people write them, as journalctl's --since takes them (systemd.time(7)).

Of systemd.time(7) this leaves out `+2h` (the future), weekdays, and time zones other than UTC, Z and offsets.
No library's parser of dates is used: it would accept many other forms, and refuse "1h ago".
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone

FORMS = '"1h ago", "-90min", today, yesterday, "14:30", "2026-07-29 14:30", "2026-07-29T14:30:00Z", @SECONDS'
"""Examples of every allowed form, for messages to people."""

# Seconds of a unit, and the unit's names.
_UNITS = {
    1: "s sec second seconds",
    60: "m min minute minutes",
    3600: "h hr hour hours",
    86400: "d day days",
    604800: "w week weeks",
}
_SECONDS = {name: seconds for seconds, names in _UNITS.items() for name in names.split()}
# A number and a unit's name: "1h", "30 min".
_SPAN = r"(\d{1,9}(?:\.\d{1,9})?) ?([a-z]+) ?"
# A date, a clock time, or both with a space or T between them.
_DAY_CLOCK = r"(?:(\d{4}-\d{2}-\d{2})(?:[ T](?=\d)|$))?(\d{1,2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?)?"
_ZONE = r" ?(Z|UTC|[+-]\d{2}:?\d{2})$"
_DAYS = {"today": 0, "yesterday": -1}


def parse_since(text: str, now: datetime) -> float:
    """Return the point in time that `text` names, in Unix seconds.

    A time without a time zone is read in the time zone of `now`. Raises ValueError with FORMS in its message
    where `text` has none of these forms.
    """
    words = " ".join(text.split())
    try:
        return _moment(words, now).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"not a time: {text!r}; allowed: {FORMS}") from None


def _moment(text: str, now: datetime) -> datetime:
    if text == "now":
        return now
    if text in _DAYS:
        midnight = datetime.combine(now.date() + timedelta(days=_DAYS[text]), datetime.min.time())
        return _with_zone(midnight, now)
    if text.startswith("@"):
        return datetime.fromtimestamp(float(text[1:]), timezone.utc)
    if text.endswith(" ago"):
        return now - _span(text[: -len(" ago")])
    if text.startswith("-"):
        return now - _span(text[1:])
    return _date_and_clock(text, now)


def _span(text: str) -> timedelta:
    """Return "1h 30min" or "2 days" as a duration; ValueError for anything else."""
    parts = list(re.finditer(_SPAN, text))
    if (
        "".join(part[0] for part in parts) != text
        or not parts
        or not _SECONDS.keys() >= {p[2] for p in parts}
    ):
        raise ValueError
    return timedelta(seconds=sum(float(part[1]) * _SECONDS[part[2]] for part in parts))


def _date_and_clock(text: str, now: datetime) -> datetime:
    """Return the moment of a date, a time of today, or both; ValueError for anything else.

    It is in the time zone that the text names, else in the zone of `now`.
    """
    zone = re.search(_ZONE, text) if ":" in text else None
    plain = text[: zone.start()] if zone else text
    match = re.fullmatch(_DAY_CLOCK, plain)
    if match is None or not plain:
        raise ValueError
    day = match[1] or now.date().isoformat()
    clock = match[2] or "00:00"
    layout = "%H:%M:%S.%f" if "." in clock else "%H:%M:%S" if clock.count(":") > 1 else "%H:%M"
    moment = datetime.strptime(f"{day} {clock}", f"%Y-%m-%d {layout}")  # noqa: DTZ007 - the zone comes next
    if zone is None:
        return _with_zone(moment, now)
    offset = "+0000" if zone[1] in {"Z", "UTC"} else zone[1].replace(":", "")
    return moment.replace(tzinfo=datetime.strptime(offset, "%z").tzinfo)


def _with_zone(moment: datetime, now: datetime) -> datetime:
    """Return `moment`, which has no time zone, as a time in the zone of `now`.

    Where `now` has the host's offset, the host's zone gives the offset of the day of `moment` (summer time).
    """
    local = now.astimezone().utcoffset() == now.utcoffset()
    return moment.astimezone() if local else moment.replace(tzinfo=now.tzinfo)
