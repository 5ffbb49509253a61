from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path

from nfstuned.core.mounts.status import status
from nfstuned.core.samples.rates import make_look
from nfstuned.core.samples.totals import add_look
from nfstuned.host.config import builtin_policy
from nfstuned.host.observe import observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.model.samples import MetricFamily, Service, Totals
from nfstuned.view.metrics import families, findings_families
from tests.check import hosts
from tests.core.counters import moved, op, stats
from tests.core.test_totals import counts, superblock
from tests.core.test_totals import look as look_at

SERVICE = Service("1.2.3", 1e9, 1e9 + 60, 60.0, 0.25, policy_valid=True, messages={"sample": 3})


def captured(most: int = 100) -> tuple[MetricFamily, ...]:
    with tempfile.TemporaryDirectory() as folder:
        root = Root(str(hosts.load("debian-13-6.12").build(Path(folder) / "host")))
        snapshot = observe_superblocks(root, deep=False)
        totals = add_look(Totals(), make_look(snapshot, observe_stanzas(root) or (), 1e9, 100.0), {}, most)
    return tuple(families(totals, status(snapshot, builtin_policy()), SERVICE))


def values(found: tuple[MetricFamily, ...], name: str) -> dict[tuple[str, ...], float]:
    (family,) = (family for family in found if family.name == name)
    return {point.labels: point.value for point in family.points}


def test_a_mount_and_its_transport_group_have_at_most_41_series() -> None:
    found = captured()
    series = Counter(point.labels[:2] for f in found if f.labels[:1] == ("device",) for point in f.points)
    groups = Counter(point.labels[0] for f in found if f.labels == ("group",) for point in f.points)
    assert len(series) > 3
    assert max(series.values()) + max(groups.values()) <= 41


def test_every_superblock_is_there_once_with_its_info_to_join_on() -> None:
    found = captured()
    info = values(found, "nfstuned_mount_info")
    devices = [labels[0] for labels in info]
    assert sorted(devices) == sorted(set(devices))
    per_mount = {p.labels[:2] for f in found if f.labels[:2] == ("device", "mount_point") for p in f.points}
    assert per_mount == {labels[:2] for labels in info}
    groups = {p.labels[0] for f in found if f.labels == ("group",) for p in f.points}
    assert groups == {labels[3] for labels in info}


def test_names_say_what_the_numbers_are() -> None:
    for family in captured():
        assert re.fullmatch(r"nfstuned_[a-z_]+", family.name)
        assert not re.search(r"_(ms|kb|kib|milliseconds|minutes)(_|$)", family.name)
        assert all(len(point.labels) == len(family.labels) for point in family.points)
        labels = [point.labels for point in family.points]
        assert len(set(labels)) == len(labels), family.name
    names = [family.name for family in captured()]
    assert len(set(names)) == len(names)


def test_units_are_seconds_and_bytes() -> None:
    shown = stats(500, moved(7, 6, 5, 4, 3), READ=op(9, rtt_ms=1500, transmissions=11, errors=2))
    totals = counts(look_at(-499.0), look_at(1.0, superblock(shown)), contests={"0:43": 2})
    found = tuple(families(totals, (), SERVICE))
    place = ("0:43", "/mnt/data")
    assert values(found, "nfstuned_mount_read_bytes_total") == {
        (*place, "buffered"): 7,
        (*place, "direct"): 3,
    }
    assert values(found, "nfstuned_mount_server_read_bytes_total") == {place: 5}
    rtt = values(found, "nfstuned_mount_operation_rtt_seconds_total")
    assert rtt == {(*place, "read"): 1.5} | {(*place, kind): 0 for kind in ("write", "metadata", "other")}
    assert values(found, "nfstuned_mount_operation_errors_total")[(*place, "read")] == 2
    assert values(found, "nfstuned_mount_retransmissions_total") == {place: 2}
    assert values(found, "nfstuned_mount_read_ahead_contested_total") == {place: 2}


def test_a_kernel_that_counts_no_errors_has_no_such_series() -> None:
    totals = counts(look_at(-999.0), look_at(1.0, superblock(stats(READ=op(9, errors=None)))))
    assert "nfstuned_mount_operation_errors_total" not in [f.name for f in families(totals, (), SERVICE)]


def test_the_target_of_what_is_tuned_is_there_beside_what_it_is() -> None:
    found = captured()
    now, target = (values(found, f"nfstuned_mount_read_ahead{end}_bytes") for end in ("", "_target"))
    assert set(now) == set(target)
    assert all(value % 4096 == 0 and value > 0 for value in (*now.values(), *target.values()))


def test_those_without_room_are_counted() -> None:
    everything, found = captured(), captured(most=2)
    mounts = len(values(everything, "nfstuned_mount_info"))
    assert len(values(found, "nfstuned_mount_info")) == 2
    assert values(found, "nfstuned_mounts") == {("true",): 2, ("false",): mounts - 2}
    assert values(found, "nfstuned_mounts_left_out_total") == {(): mounts - 2}


def test_findings_are_numbers_of_rules_and_never_of_mounts() -> None:
    counts = {("NFS204", "nconnect-inherited", "warning"): 2, ("NFS404", "address-drift", "warning"): 0}
    found, when, missing = findings_families(counts, 1e9)
    assert dict(found.points) == counts
    assert when.points == (((), 1e9),)
    assert missing.points == ()
    (*_, missing) = findings_families({("NFS412", "mount-missing", "error"): 2}, 1e9)
    assert missing.points == (((), 2),)
