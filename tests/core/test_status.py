"""One row for each visible mount."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.mounts.status import hidden, status
from nfstuned.core.policy.plan import forget_holds, name_targets
from nfstuned.model.kernel import Mount, MountStats, Transport, parse_options
from nfstuned.model.mounts import Action, Hold, Outcome, Record, Request, Result, Snapshot, Superblock
from nfstuned.model.policy import Policy, Profile, ReadAhead
from nfstuned.view.status import hints, nconnect_mark

POLICY = Policy(profiles=(Profile("generic", ReadAhead(1024), nconnect=2),))
TRANSPORT = Transport("tcp", 800, 1, 0, 5, 5, 0, 5, 0)


def mount(point: str, options: str = "rw", device: str = "0:43") -> Mount:
    return Mount(60, 27, device, "/", point, "nfs4", "server:/a", parse_options(options))


def host(*mounts: Mount, **fields: object) -> Snapshot:
    superblock = Superblock("0:43", 7, 128, mounts)
    return replace(Snapshot((superblock,)), **fields)  # type: ignore[arg-type]  # a test's shorthand


def test_mounts_of_one_superblock_have_a_row_each_in_the_order_of_their_points() -> None:
    rows = status(host(mount("/b"), mount("/a")), POLICY)
    assert [(row.mount_point, row.device) for row in rows] == [("/a", "0:43"), ("/b", "0:43")]
    assert {(row.read_ahead_kb, row.read_ahead_target_kb, row.nconnect_target) for row in rows} == {
        (128, 1024, 2)
    }


def test_a_superblock_without_mounts_is_hidden_and_has_no_row() -> None:
    assert status(host(), POLICY) == ()
    assert hidden(host()) == ("0:43",)
    assert hidden(host(mount("/a"))) == ()


@pytest.mark.parametrize(("options", "number"), [("rw", 1), ("rw,nconnect=4", 4), ("nconnect=x", 1)])
def test_nconnect_is_what_is_in_effect_and_1_when_it_is_absent(options: str, number: int) -> None:
    assert status(host(mount("/a", options)), POLICY)[0].nconnect == number


def test_the_target_is_one_that_the_kernel_can_hold() -> None:
    policy = Policy(profiles=(Profile("generic", ReadAhead(1000)),))
    assert status(host(mount("/a"), page_kb=64), policy)[0].read_ahead_target_kb == 960


def test_a_version_for_which_nconnect_is_not_recommended_has_one_connection_for_its_target() -> None:
    profile = Profile("generic", ReadAhead(1024), nconnect=8, nconnect_not_for=("4.0",))
    policy = Policy(profiles=(profile,))
    for options, mark in (("vers=4.0", "ok"), ("vers=4.0,nconnect=8", "high"), ("vers=4.1", "low")):
        (row,) = status(host(mount("/a", options)), policy)
        assert (row.nconnect_target, nconnect_mark(row)) == (8 if "4.1" in options else 1, mark)


def test_without_a_policy_there_are_values_and_no_targets() -> None:
    (row,) = status(host(mount("/a")), POLICY, valid=False)
    assert (row.read_ahead_kb, row.provider) == (128, "generic")
    assert (row.profile, row.read_ahead_target_kb, row.nconnect_target) == (None, None, None)


def test_connections_are_joined_by_source_and_point() -> None:
    mine = MountStats("server:/a", "/a", "nfs4", "1.1", transports=(TRANSPORT, TRANSPORT))
    other = MountStats("server:/b", "/a", "nfs4", "1.1", transports=(TRANSPORT,))
    assert status(host(mount("/a"), stats=(mine, other)), POLICY)[0].connections == 2
    assert status(host(mount("/a"), stats=(other,)), POLICY)[0].connections is None


def test_a_request_has_its_number_and_the_line_that_asks_for_it() -> None:
    requests = (Request("server:/a", "/a", "nconnect=8", "/etc/fstab", 7),)
    (row,) = status(host(mount("/a"), requests=requests), POLICY)
    assert (row.nconnect_requested, row.nconnect_requested_by) == (8, "/etc/fstab:7")
    (row,) = status(host(mount("/b"), requests=requests), POLICY)
    assert (row.nconnect_requested, row.nconnect_requested_by) == (None, None)


def test_forgetting_an_undo_forgets_only_that_something_was_undone() -> None:
    undone = Record("0:43", 7, 128, 128, hold=Hold.UNDONE)
    superblocks = (
        Superblock("0:43", 7, 128, record=undone),
        Superblock("0:44", 8, 128, record=undone._replace(device="0:44", hold=None)),
        Superblock("0:45", 9, 128),
    )
    first, second, third = forget_holds(Snapshot(superblocks)).superblocks
    assert first.record == undone._replace(hold=None)
    assert (second, third) == superblocks[1:]
    assert status(host(mount("/a")), POLICY)[0].hold is None


def test_outcomes_get_the_name_of_the_same_superblock_only() -> None:
    action = Action("read-ahead", "0:43", 7, "0:43", 1024, 128, "undo")
    outcomes = (
        Outcome(action, Result.DONE, ""),
        Outcome(replace(action, bdi=6), Result.SKIPPED, "unmounted since"),
    )
    assert [o.action.target for o in name_targets(outcomes, host(mount("/a")))] == ["/a", "0:43"]


@pytest.mark.parametrize(("transports", "mark"), [(2, "low"), (4, "ok")])
def test_added_connections_that_carry_requests_are_not_asked_for_again(transports: int, mark: str) -> None:
    stats = (MountStats("server:/a", "/a", "nfs4", "1.1", transports=(TRANSPORT,) * transports),)
    requests = (Request("server:/a", "/a", "nconnect=4", "/etc/fstab", 3),)
    policy = Policy(profiles=(Profile("generic", ReadAhead(128), nconnect=4),))
    (row,) = status(host(mount("/a", "rw,nconnect=2"), stats=stats, requests=requests), policy)
    assert (row.nconnect, row.connections, nconnect_mark(row)) == (2, transports, mark)
    assert (hints([row], []) == ()) == (mark == "ok")
