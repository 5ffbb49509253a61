from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nfstuned.core.samples.top import Saved, frame_between, frame_since_mounted
from nfstuned.model.kernel import MountStats, Options
from nfstuned.parse.proc.mountstats import parse_mountstats, parse_stanzas
from tests.core.counters import cut, moved, op, stats, written

DATA = Path(__file__).parents[1] / "parse/data"
MIB = 1 << 20
USED = stats(100, moved(50 * MIB), READ=op(50, 100))


def saved(*mounts: MountStats) -> Saved:
    return Saved.of("copy", cut(*mounts), mounts)


def at(point: str, mount: MountStats) -> MountStats:
    return replace(mount, point=point)


def test_mounts_with_the_same_counters_are_one_superblock_where_bytes_moved() -> None:
    idle = stats(100, GETATTR=op(3))
    mounts = (at("/a", USED), at("/b", idle), at("/folder", USED), at("/c", idle))
    shown = frame_since_mounted(saved(*(replace(mount, source=f"server:{mount.point}") for mount in mounts)))
    assert [entry.counted.mount_points for entry in shown.entries] == [("/a", "/folder"), ("/b",), ("/c",)]
    other = replace(USED, age_s=101)
    assert len(frame_since_mounted(saved(at("/a", USED), at("/b", other))).entries) == 2


def test_mounts_of_one_source_are_one_superblock_also_while_it_is_busy() -> None:
    """The second was printed a moment after the first."""
    busier = at("/bound", replace(USED, bytes=moved(51 * MIB)))
    (entry,) = frame_since_mounted(saved(at("/a", USED), busier)).entries
    assert entry.counted.mount_points == ("/a", "/bound")
    alone = Options((*USED.options.pairs, ("nosharecache", "")))
    apart = (replace(mount, options=alone) for mount in (at("/a", USED), busier))
    assert len(frame_since_mounted(saved(*apart)).entries) == 2


def bound(age_s: int, read: int) -> Saved:
    """A copy of an export and of a bind of a folder in it; Linux 6.12 prints options without an address."""
    real = (DATA / "6.12/mountstats").read_text()
    opts = next(line for line in real.splitlines() if "opts:" in line and "vers=4.2" in line)
    text = "".join(
        written(replace(stats(age_s, moved(read)), source=source, point=point)).replace("\topts:\trw", opts)
        for source, point in (("nas:/a", "/data"), ("nas:/a/home", "/home"))
    )
    mounts = (mount for mount in parse_mountstats(text) if isinstance(mount, MountStats))
    return Saved.of("copy", parse_stanzas([text.encode()]), mounts)


def test_a_bind_of_a_folder_is_no_superblock_of_its_own() -> None:
    (entry,) = frame_since_mounted(bound(100, 50 * MIB)).entries
    assert (entry.counted.mount_points, entry.counted.group) == (("/data", "/home"), "v4.2 tcp nas:2049")
    (entry,) = frame_between(bound(100, 50 * MIB), bound(110, 60 * MIB)).entries
    assert entry.sample is not None
    assert (entry.counted.mount_points, entry.sample.read_bytes_per_s) == (("/data", "/home"), MIB)


def test_the_means_since_a_mount_are_of_its_own_age() -> None:
    shown = frame_since_mounted(saved(at("/a", USED), at("/b", replace(USED, age_s=50))))
    rates = [entry.sample.read_bytes_per_s for entry in shown.entries if entry.sample is not None]
    assert rates == [MIB / 2, MIB]
    sample = shown.entries[0].sample
    assert sample is not None
    assert (sample.ops["READ"].per_s, sample.ops["READ"].rtt_ms) == (0.5, 2.0)


def test_a_mount_without_an_age_or_made_this_second_has_no_rates() -> None:
    for age in (None, 0):
        (entry,) = frame_since_mounted(saved(replace(USED, age_s=age))).entries
        assert entry.sample is None


def test_mounts_that_lie_on_each_other_are_silent() -> None:
    """Their stanzas have the same source and mount point, and nothing says which is whose."""
    shown = frame_since_mounted(saved(USED, replace(USED, age_s=90), at("/b", USED)))
    assert (len(shown.entries), shown.silent) == (1, 2)


def test_a_superblock_is_found_again_under_any_of_its_mount_points() -> None:
    later = replace(USED, age_s=110, bytes=moved(60 * MIB))
    shown = frame_between(saved(at("/b", USED)), saved(at("/a", later), at("/b", later)))
    (entry,) = shown.entries
    assert (shown.seconds, entry.counted.mount_points) == (10.0, ("/a", "/b"))
    assert entry.sample is not None
    assert entry.sample.read_bytes_per_s == MIB


def test_a_mount_that_was_made_again_between_the_copies_has_no_rates() -> None:
    pair = (at("/a", USED), at("/b", replace(USED, age_s=90)), at("/c", replace(USED, age_s=91)))
    made_again = at("/a", replace(USED, age_s=3))
    later = [replace(mount, age_s=mount.age_s + 60) for mount in pair[1:] if mount.age_s is not None]
    shown = frame_between(saved(*pair), saved(made_again, *later))
    assert shown.seconds == 60.0
    assert [entry.sample is None for entry in shown.entries] == [True, False, False]


def test_the_time_between_copies_is_that_of_mounts_that_lasted_where_as_many_were_made_again() -> None:
    """As autofs does with what nobody uses for a while."""
    lasts, made_again = at("/a", USED), at("/b", replace(USED, age_s=5))
    later = replace(lasts, age_s=160, bytes=moved(110 * MIB)), replace(made_again, age_s=25)
    shown = frame_between(saved(lasts, made_again), saved(*later))
    assert shown.seconds == 60.0
    rates = [entry.sample and entry.sample.read_bytes_per_s for entry in shown.entries]
    assert rates == [MIB, None]
