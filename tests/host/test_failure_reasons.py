"""The last messages of failed mounts, of their last start, within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest

from nfstuned.host import systemd
from nfstuned.host.command import Done
from nfstuned.model.mounts import UnitState

SMB = """\
mount error(13): Permission denied
Refer to the mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)
"""
Asked = list[tuple[Sequence[str], float]]
Says = Callable[..., Asked]
FAILED = UnitState(loaded=True, active="failed", invocation="5c0f")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Says:
    """Return what lets the journal say a text, each time after so many seconds, and what it was asked."""

    def answer(text: str, seconds: float = 0.0) -> Asked:
        calls: Asked = []
        clock = [0.0]

        def run(argv: Sequence[str], limit_s: float) -> Done:
            calls.append((argv, limit_s))
            clock[0] += seconds
            return Done(text, "")

        monkeypatch.setattr(systemd, "run_tool", run)
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        return calls

    return answer


def test_the_reason_is_the_last_line_that_says_one(asked: Says) -> None:
    for text, said in ((SMB, "mount error(13): Permission denied"), ("Refer to the x\n", ""), ("", "")):
        asked(text)
        assert systemd.with_failure_reasons({"a.mount": FAILED})["a.mount"].failure == said


def test_it_is_of_the_last_start_or_else_of_this_boot(asked: Says) -> None:
    calls = asked("x\n")
    systemd.with_failure_reasons({"a.mount": FAILED, "b.mount": UnitState(active="failed")})
    assert [argv[-2:] for argv, _ in calls] == [
        ["_SYSTEMD_INVOCATION_ID=5c0f", "_SYSTEMD_UNIT=a.mount"],
        ["--boot", "_SYSTEMD_UNIT=b.mount"],
    ]


def test_what_did_not_fail_is_not_asked_for_and_of_very_many_the_last_are_not(asked: Says) -> None:
    calls = asked("x\n", 3.0)
    states = {f"{number}.mount": FAILED for number in range(100)} | {
        "idle.mount": UnitState(active="inactive")
    }
    spoken = systemd.with_failure_reasons(states)
    assert spoken.keys() == states.keys()
    assert [state.failure for state in spoken.values()] == ["x"] * 7 + [""] * 94
    assert [limit_s for _, limit_s in calls] == [10.0, 10.0, 10.0, 10.0, 8.0, 5.0, 2.0]
