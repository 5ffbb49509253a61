"""The screen of `nfstuned top` and its plain text, with golden files for 80 and 120 columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nfstuned.core.samples.top import SORTS, Frame, TopEntry, TopState, frame
from nfstuned.model.mounts import KubeletNames
from nfstuned.model.samples import Sample
from nfstuned.view.top import KEYS, ScreenLine, Size, Style, plain_lines, screen
from tests.core.tops import empty_frame, first_frame, looks, second_frame, snapshot
from tests.parse.test_samples import SAMPLES

GOLDEN = Path(__file__).parents[1] / "data/top"
FRAME = second_frame()
DATA, HOME, FAR, NEW = (entry.counted.key for entry in FRAME.entries)
UID, VOLUME = "5d1e8f3a-0b2c-4d6e-9f70-8192a3b4c5d6", "pvc-0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9"
IN_POD = f"/var/lib/kubelet/pods/{UID}/volumes/kubernetes.io~csi/{VOLUME}/mount"
STAGED = "/var/lib/kubelet/plugins/kubernetes.io/csi/nfs.csi.k8s.io/0a1b2c3d4e5f/globalmount"
LEASE = b"bm0=0x1,acl=0x3,sessions,pnfs=LAYOUT_NFSV4_1_FILES,lease_time=90,lease_expired=35"


def waiting(entry: TopEntry) -> TopEntry:
    """Return an idle superblock whose server says nothing more."""
    stats = entry.counted.stats._replace(nfsv4=LEASE, cached=True)
    counted = replace(entry.counted, stats=stats)
    return replace(entry, counted=counted, stalled_s=125.0, stalled_operations=("WRITE", "GETATTR"))


WAITING = tuple(waiting(one) if one.counted.key == HOME else one for one in FRAME.entries)
STALLED = replace(FRAME, entries=WAITING)
Golden = Callable[[Path, str], None]


def drawn(shown: Frame, state: TopState, size: Size) -> tuple[ScreenLine, ...]:
    return screen(shown, state, size, timezone.utc).lines


def text(lines: tuple[ScreenLine, ...]) -> str:
    """Return a screen as a file: what a person sees, and at the end of each line how it stands out."""
    return "".join(f"{line.text}|{line.style.value}\n" for line in lines)


def plain(shown: Frame, state: TopState, columns: int | None) -> list[str]:
    return list(plain_lines(shown, state, columns, timezone.utc))


@pytest.mark.parametrize("columns", [80, 120, 160])
@pytest.mark.parametrize(
    ("name", "shown", "state"),
    [
        ("first", first_frame(), TopState()),
        ("rates", FRAME, TopState()),
        ("opened", FRAME, TopState(sort="read-rtt", selected=DATA, opened=frozenset({DATA}))),
        ("empty", empty_frame(), TopState(paused=True)),
        ("help", FRAME, TopState(help=True)),
        ("stalled", STALLED, TopState(opened=frozenset({DATA, HOME}))),
    ],
)
def test_the_screen_is_golden(name: str, shown: Frame, state: TopState, columns: int, golden: Golden) -> None:
    golden(GOLDEN / f"{name}-{columns}.txt", text(drawn(shown, state, Size(columns, 24))))


@pytest.mark.parametrize("columns", [80, None])
def test_the_plain_text_is_the_golden_one(columns: int | None, golden: Golden) -> None:
    lines = plain(FRAME, TopState(sort="over-fetch"), columns)
    golden(GOLDEN / f"plain-{columns or 'piped'}.txt", "".join(f"{line}\n" for line in lines))


def test_a_volume_has_the_name_of_its_pod_and_its_whole_paths_below() -> None:
    chief, *others = FRAME.entries
    counted = replace(chief.counted, mount_points=(STAGED, IN_POD))
    names = KubeletNames({UID: "media/web-0"}, {STAGED: "nfs.csi.k8s.io, volume nas#share"})
    shown = replace(FRAME, entries=(replace(chief, counted=counted, names=names), *others))
    lines = [line.text.strip() for line in drawn(shown, TopState(opened=frozenset({DATA})), Size(80, 40))]
    assert lines[3].startswith("> pvc-0a1b2...ia/web-0  ")
    assert lines[5] == f"{VOLUME}, pod media/web-0"
    assert f"at{STAGED}(nfs.csi.k8s.io,volumenas#share)at{IN_POD}server:" in "".join("".join(lines).split())
    saved = plain(replace(shown, copies=("before", "after")), TopState(), 80)
    assert [line for line in saved if IN_POD in line] == [IN_POD]


@pytest.mark.parametrize("columns", [20, 40, 59, 60, 70, 79])
def test_a_narrow_terminal_leaves_out_figures_and_not_the_names(columns: int) -> None:
    shown = [line.text for line in drawn(FRAME, TopState(), Size(columns, 10))[3:6]]
    assert [line[2:5] for line in shown] == ["/da", "/sr", "/ho"]
    assert len(plain(FRAME, TopState(), columns)[3]) <= columns


@pytest.mark.parametrize("rows", [3, 5, 6, 8, 12])
@pytest.mark.parametrize("selected", [DATA, HOME, FAR, NEW])
def test_the_selected_line_is_always_on_the_screen(rows: int, selected: tuple[str, int]) -> None:
    state = TopState(selected=selected, opened=frozenset({DATA, FAR}))
    for offset in (0, 3, 7, 100):
        lines = drawn(FRAME, replace(state, offset=offset), Size(80, rows))
        chosen = [line for line in lines if line.style is Style.SELECTED]
        assert len(chosen) == (1 if rows > 4 else 0)


def test_a_title_without_room_lacks_its_last_parts_as_a_whole() -> None:
    title, *_ = drawn(STALLED, TopState(paused=True), Size(72, 24))
    assert title.text.rstrip() == "PAUSED, 17:20:10 UTC, 4 NFS superblocks, 1 stalled (!), 3 in use"


def test_events_are_shown_where_there_were_any() -> None:
    state = TopState(selected=DATA, opened=frozenset({DATA}))
    assert "events/s" not in text(drawn(FRAME, state, Size(120, 40)))
    chief, *others = FRAME.entries
    assert chief.sample is not None
    sample = replace(chief.sample, delays_per_s=2.5, short_reads_per_s=0.0, pnfs_reads_per_s=40.0)
    entries = (replace(chief, sample=sample), *others)
    shown = text(drawn(replace(FRAME, entries=entries), state, Size(120, 40)))
    assert "    events/s: delays 2.5, pNFS reads 40.0" in shown


def test_what_only_rdma_counts_is_shown_by_name() -> None:
    state = TopState(selected=DATA, opened=frozenset({DATA}))
    assert "RDMA" not in text(drawn(FRAME, state, Size(120, 40)))
    line = b"rdma 0 1 2 3 4 5 6 7 8 9 12 5 " + b"0 " * 6 + b"3 " + b"0 " * 8
    lines = b"\n".join([line.rstrip(), line.rstrip()])
    entries = [
        replace(entry, counted=replace(entry.counted, stats=entry.counted.stats._replace(transports=lines)))
        for entry in FRAME.entries
    ]
    shown = text(drawn(replace(FRAME, entries=tuple(entries)), state, Size(120, 40)))
    assert "    RDMA so far: read chunks 24, write chunks 10, failed marshals 6" in shown


@given(
    st.integers(1, 200),
    st.integers(1, 50),
    st.sampled_from(SORTS),
    st.frozensets(st.sampled_from([DATA, HOME, FAR, NEW])),
    st.integers(0, 100),
)
def test_every_line_is_as_wide_as_the_screen(
    columns: int, rows: int, sort: str, opened: frozenset[tuple[str, int]], offset: int
) -> None:
    assert len(KEYS) <= 80
    for shown in (FRAME, first_frame(), empty_frame()):
        state = TopState(sort=sort, opened=opened, offset=offset)
        lines = drawn(shown, state, Size(columns, rows))
        assert len(lines) == rows
        assert {cell_len(line.text) for line in lines} == {columns}


@given(st.lists(SAMPLES, max_size=4))
def test_no_sample_makes_a_line_too_wide_or_moves_the_cursor(samples: list[Sample]) -> None:
    shown = _frame_of(samples)
    state = TopState(opened=frozenset(entry.counted.key for entry in shown.entries))
    for line in drawn(shown, state, Size(80, 60)):
        assert line.text.isprintable()
        assert cell_len(line.text) == 80
    assert all(line.isprintable() for line in plain(shown, TopState(), None))


def _frame_of(samples: list[Sample]) -> Frame:
    _, now = looks()
    entries: list[TopEntry] = []
    for number, sample in enumerate(samples):
        like = FRAME.entries[number]
        counted = replace(like.counted, mount_points=sample.mount_points, source=sample.source)
        entries.append(replace(like, counted=counted, sample=sample))
    return replace(frame(None, now, snapshot(now)), seconds=10.0, entries=tuple(entries))
