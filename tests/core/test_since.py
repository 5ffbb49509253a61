"""What --since takes; where systemd-analyze is there, it is asked whether it agrees."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.parse.samples import parse_since

NOW = datetime(2026, 7, 29, 15, 0, 30, tzinfo=timezone(timedelta(hours=2)))


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "2026-07-29T15:00:30+02:00"),
        ("today", "2026-07-29T00:00:00+02:00"),
        ("yesterday", "2026-07-28T00:00:00+02:00"),
        ("1h ago", "2026-07-29T14:00:30+02:00"),
        ("-1h", "2026-07-29T14:00:30+02:00"),
        ("1 hour 30 min ago", "2026-07-29T13:30:30+02:00"),
        ("1h30min ago", "2026-07-29T13:30:30+02:00"),
        ("2 days ago", "2026-07-27T15:00:30+02:00"),
        ("-1w", "2026-07-22T15:00:30+02:00"),
        ("1.5h ago", "2026-07-29T13:30:30+02:00"),
        ("14:30", "2026-07-29T14:30:00+02:00"),
        ("9:05:07", "2026-07-29T09:05:07+02:00"),
        ("2026-07-01", "2026-07-01T00:00:00+02:00"),
        ("2026-07-01 14:30", "2026-07-01T14:30:00+02:00"),
        ("  2026-07-01   14:30 ", "2026-07-01T14:30:00+02:00"),
        ("2026-07-01T14:30:05.25", "2026-07-01T14:30:05.250000+02:00"),
        ("2026-07-01T14:30:05Z", "2026-07-01T14:30:05+00:00"),
        ("2026-07-01 14:30 UTC", "2026-07-01T14:30:00+00:00"),
        ("2026-07-01T14:30:05+05:30", "2026-07-01T14:30:05+05:30"),
        ("2026-07-01T14:30:05-0700", "2026-07-01T14:30:05-07:00"),
        ("@1785000000.5", "2026-07-25T17:20:00.500000+00:00"),
    ],
)
def test_a_time_means_what_journalctl_would_take_it_for(text: str, moment: str) -> None:
    assert parse_since(text, NOW) == at(moment)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "soon", "1h", "+1h", "1x ago", "ago", "-", "h ago", "1h ago ago", "999999999w ago"),
        *("25:00", "14:30 CEST", "2026-13-01", "2026-07-01 x", "2026-07-01T", "@", "@x", "@nan", "@1e300"),
    ],
)
def test_anything_else_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=r"^not a time: .*; allowed: \"1h ago\", "):
        parse_since(text, NOW)


@given(st.text(max_size=30))
def test_no_text_raises_anything_else(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert isinstance(parse_since(text, NOW), float)


@pytest.mark.parametrize(
    "text", ["today", "yesterday", "2026-07-01", "2026-01-01 14:30", "2026-07-01 14:30:05 UTC", "@1785000000"]
)
def test_systemd_says_the_same(text: str) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed")
    done = subprocess.run([program, "timestamp", text], capture_output=True, text=True, check=True)
    (line,) = [line for line in done.stdout.splitlines() if "UNIX seconds: " in line]
    assert parse_since(text, datetime.now().astimezone()) == float(line.partition("@")[2])
