"""Which groups get connections while they are mounted, and what is against it everywhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.nconnect.groups import carrying
from nfstuned.core.nconnect.live import plan_live
from nfstuned.core.nconnect.remount import cases
from nfstuned.errors import ParseError
from nfstuned.model.connections import Left, LivePlan, SwitchSeen, Xprt
from nfstuned.model.kernel import KernelRelease, Switch
from nfstuned.model.mounts import Result
from tests.core.living import (
    FIXED,
    FOUR,
    MADE,
    NETAPP,
    SHOWN,
    drawn,
    host,
    on_kernel,
    seen,
    the_plan,
    why,
    xprt,
)
from tests.core.nconnect_hosts import Made, facts, faults, subjects
from tests.core.remounting import sight


def with_shown(options: str) -> Made:
    return replace(FOUR, shown=options)


def kernel(*version: int) -> KernelRelease:
    number = (*version, 0, 0)
    return KernelRelease(number[:3], ".".join(map(str, version)))  # type: ignore[arg-type]  # always three


def test_a_group_gets_what_is_missing() -> None:
    plan = the_plan()
    assert (plan.points, plan.old, plan.new, plan.adding, plan.shown) == (("/a",), 2, 4, 2, 2)
    assert (plan.reason, plan.place) == ("/etc/fstab:1 asks for nconnect=4", ("10.0.0.5", 2049))
    assert (plan.spot.point, plan.spot.device, plan.spot.mount_id, plan.spot.bdi) == ("/a", "0:50", 60, 0)
    assert plan.spot.source == "nas:/srv"


def test_a_profile_asks_for_it_too_and_all_mounts_of_the_group_get_it() -> None:
    other = replace(MADE, point="/b")
    plan = the_plan(MADE, other)
    assert (plan.points, plan.new, plan.reason) == (("/a", "/b"), 8, "azure-netapp-files asks for nconnect=8")


def test_connections_that_were_added_before_count() -> None:
    plan = the_plan(replace(MADE, connections=4))
    assert plan.old == 2, "what the switch has: mountstats is of an earlier moment"
    (found,) = drawn(host(replace(MADE, connections=4)), seen(4))
    assert isinstance(found, LivePlan)
    assert found.old == 4
    assert drawn(host(replace(FOUR, connections=4)), seen(4)) == []


@pytest.mark.parametrize(
    ("release", "text"),
    [
        (kernel(5, 10, 223), "5.10.223"),
        (kernel(6, 12, 107), "6.12.107"),
        (kernel(6, 18, 9), "6.18.9"),
        (kernel(7, 1, 12), "7.1.12"),
        (kernel(7, 0), "7.0"),
    ],
)
def test_a_kernel_without_the_fix_is_refused(release: KernelRelease, text: str) -> None:
    reason = why(FOUR, kernel=release)
    assert reason.startswith(f"Linux {text} cannot do it safely: ")
    assert "7.1.13" in reason


def test_a_kernel_that_is_not_known_is_refused() -> None:
    assert why(FOUR, kernel=None).startswith("this kernel cannot do it safely")


@pytest.mark.parametrize("release", [kernel(7, 1, 13), kernel(7, 2), FIXED, kernel(8, 0)])
def test_a_kernel_with_it_is_not(release: KernelRelease) -> None:
    (found,) = drawn(host(FOUR, kernel=release))
    assert isinstance(found, LivePlan)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("vers=4.1,proto=tcp,noresvport", "/a was made without nconnect: "),
        ("vers=4.1,proto=tcp,noresvport,nconnect=1", "/a was made without nconnect: "),
        ("vers=4.1,proto=tcp,nconnect=2", "/a was made without noresvport: "),
        ("vers=4.0,proto=tcp,noresvport,nconnect=2", "/a is not NFS 3, 4.1 or 4.2: "),
        (f"{SHOWN},xprtsec=tls", "/a is encrypted on its way: "),
        (f"{SHOWN},max_connect=4", "/a has max_connect: "),
        (SHOWN.replace("tcp", "rdma"), "/a: proto=rdma: nconnect is for TCP"),
    ],
)
def test_what_was_not_proven_is_refused(options: str, said: str) -> None:
    assert why(with_shown(options)).startswith(said)


@pytest.mark.parametrize("version", ["3", "4.1", "4.2"])
def test_what_was_proven_is_not(version: str) -> None:
    assert the_plan(with_shown(SHOWN.replace("4.1", version))).new == 4


def test_one_mount_of_a_group_without_noresvport_is_enough() -> None:
    other = replace(FOUR, point="/b", shown="vers=4.1,proto=tcp,nconnect=2")
    assert why(FOUR, other).startswith("/b was made without noresvport: ")


def test_the_first_mounts_port_tells_more_than_the_options() -> None:
    reason = why(FOUR, switch=seen(xprts=(xprt(0), xprt(1, 782))))
    assert reason.startswith("xprt-1-tcp comes from a port of at most 1023, whatever the options say")


def test_idle_connections_have_no_port_and_are_no_reason() -> None:
    idle = seen(xprts=(xprt(0, None), xprt(1, None)))
    assert isinstance(drawn(host(FOUR), idle)[0], LivePlan)


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        (ParseError("/x", 2, "damaged"), "its connections are not understood: /x:2: damaged"),
        (seen(grows=False), "the kernel has no add_xprt for switch-3"),
        (seen(info=Switch(2, 2, 2, 0)), "its connections lead to 2 addresses: "),
        (seen(info=Switch(2, 1, 1, 0)), "nconnect=2 is shown and 1 connection exists: "),
        (seen(info=Switch(4, 4, 1, 0)), "it has 4 connections already, though not all of them carried"),
        (seen(xprts=(Xprt("xprt-0-tcp-tls", "tcp-tls"),)), "its connections are tcp-tls, and not plain TCP"),
    ],
)
def test_connections_that_nobody_tried_are_refused(switch: SwitchSeen | ParseError, said: str) -> None:
    assert why(FOUR, switch=switch).startswith(said)


def test_superblocks_must_lead_to_the_same_connections() -> None:
    found = host(FOUR, replace(FOUR, point="/b"))
    (case,) = cases(found, sight(found))
    for switches, said in (
        ({}, "the kernel does not tell which connections it uses (/sys/fs/nfs)"),
        ({"0:50": seen()}, "the kernel does not tell which connections it uses (/sys/fs/nfs)"),
        (
            {"0:50": seen(), "0:51": seen(name="switch-4")},
            "its superblocks use different connections (switch-3, switch-4)",
        ),
    ):
        left = plan_live(case, switches)
        assert isinstance(left, Left)
        assert (left.reason, left.result, left.points) == (said, Result.FAILED, ("/a", "/b"))


def test_a_server_that_does_not_answer_is_refused() -> None:
    found = host(FOUR)
    (case,) = cases(found, sight(found))
    left = plan_live(case, {"0:50": seen()}, "its server does not answer")
    assert isinstance(left, Left)
    assert left.reason == "its server does not answer"


def test_connections_are_never_taken_away() -> None:
    many = replace(FOUR, fstab=SHOWN, shown=SHOWN.replace("=2", "=4"), asked=SHOWN)
    assert why(many).startswith("it has more connections than it should (/etc/fstab:1 asks for nconnect=2)")


class TestCarrying:
    def test_what_was_added_to_a_mount_with_nconnect_counts(self) -> None:
        (target,) = host(replace(FOUR, connections=4)).targets
        assert carrying(target) == 4

    def test_what_carried_nothing_does_not(self) -> None:
        (target,) = host(replace(FOUR, connections=4)).targets
        assert target.stats is not None
        idle = tuple(replace(one, receives=0) for one in target.stats.transports)
        assert carrying(replace(target, stats=replace(target.stats, transports=idle))) == 2
        assert carrying(replace(target, stats=None)) == 2

    def test_what_was_added_to_one_without_does_not(self) -> None:
        (target,) = host(replace(FOUR, shown="vers=4.1,proto=tcp", connections=4)).targets
        assert carrying(target) == 1

    def test_other_addresses_do_not(self) -> None:
        (target,) = host(replace(FOUR, shown=f"{SHOWN},max_connect=4", connections=4)).targets
        assert carrying(target) == 2

    def test_what_is_not_mounted_carries_nothing(self) -> None:
        (target,) = facts(lines=("nas:/srv /a nconnect=4",)).targets
        assert carrying(target) is None

    def test_neither_rule_asks_for_more_then(self) -> None:
        raised = replace(MADE, asked=SHOWN.replace("=2", "=8"))
        for rule in ("NFS201", "NFS204"):
            assert subjects(rule, host(replace(raised, connections=8))) == []
        assert subjects("NFS204", host(raised)) == ["/a"]
        assert subjects("NFS204", host(replace(MADE, asked=SHOWN.replace("=2", "=1")))) == ["/a"]
        assert subjects("NFS201", host(MADE)) == ["/a"]
        assert subjects("NFS201", host(replace(MADE, connections=6))) == ["/a"]


class TestRemedies:
    HOW = "; or, while everything stays mounted: sudo nfstuned apply --live /a"

    def test_both_rules_name_it_where_the_options_allow_it(self) -> None:
        for rule, made in (("NFS201", MADE), ("NFS204", replace(MADE, asked=SHOWN.replace("=2", "=8")))):
            (fault,) = faults(rule, host(made))
            assert fault.remedy.endswith(self.HOW)

    @pytest.mark.parametrize(
        ("made", "kernel"),
        [
            (MADE, kernel(6, 12)),
            (MADE, None),
            (replace(MADE, shown="vers=4.1,proto=tcp,nconnect=2"), FIXED),
            (replace(MADE, shown="vers=4.1,proto=tcp,noresvport"), FIXED),
            (replace(MADE, shown=f"{SHOWN},max_connect=2"), FIXED),
        ],
    )
    def test_nowhere_else(self, made: Made, kernel: KernelRelease | None) -> None:
        (fault,) = faults("NFS201", host(made, kernel=kernel))
        assert "--live" not in fault.remedy

    def test_one_mount_of_the_group_is_enough_to_forbid_it(self) -> None:
        other = replace(MADE, point="/b", shown="vers=4.1,proto=tcp,nconnect=2")
        assert not any("--live" in fault.remedy for fault in faults("NFS201", host(MADE, other)))

    def test_what_is_not_mounted_has_no_such_way(self) -> None:
        found = on_kernel(facts(lines=(f"{NETAPP}:/vol1 /a nconnect=2,noresvport,vers=4.1",)), FIXED)
        (fault,) = faults("NFS201", found)
        assert "--live" not in fault.remedy
