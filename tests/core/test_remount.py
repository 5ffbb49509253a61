"""The groups that are mounted again, by which commands, with any step failing in any way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.nconnect import obstacles
from nfstuned.core.nconnect.remount import cases, group_at, plan_remount, remount
from nfstuned.model.change import RELOAD, BusyUse, Change, LeftGroup, PathUse, RemountPlan, Sight, Space
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import MountNode, Volume
from nfstuned.model.mounts import Maker, Result, Superblock, Tunnel, UnitState
from nfstuned.model.system import Answer, Network, Reach, Reachable
from nfstuned.parse.fields import shell_line
from tests.core.nconnect_hosts import AZURE, NAS_ADDRESS, Made, answered, facts, on_host
from tests.core.remounting import ROOT, Kernel, argv, left_alone, plan_of, planned, sight, the_plan, tree, why

BARE, FOUR = "vers=4.1,proto=tcp", "vers=4.1,proto=tcp,nconnect=4"
A = Made("/a", "vers=4.1,clientaddr=10.0.0.9,addr=10.0.0.5,_netdev", BARE, age_s=9)
B = Made("/b", "vers=4.1,nconnect=4", BARE, fstab="vers=4.1,nconnect=4", age_s=5)
POD = "/var/lib/kubelet/pods/7c1d/volumes/kubernetes.io~csi/pv/mount"
STOP = "systemctl stop --job-mode=ignore-dependencies --"
DEVICE = "0:50"
LOADED = UnitState(loaded=True, fragment="/x")
TUNNEL = Tunnel(20049, AZURE, 2049, "azure-files", "/etc/stunnel/x.conf")


def seen(*made: Made, **changes: object) -> Sight:
    return sight(facts(*made), **changes)  # type: ignore[arg-type]  # keyword arguments of any field


def asked_by(found: Facts, maker: Maker) -> Facts:
    """Return the same host with what fstab asks for asked for by something else."""
    asked = found.snapshot.requests
    made = (one._replace(maker=maker) if one.file == "/etc/fstab" else one for one in asked)
    return on_host(found, requests=tuple(made))


class TestCommands:
    def test_units_are_systemds_and_what_was_made_by_hand_gets_its_own_options(self) -> None:
        plan = the_plan(A, B)
        assert argv(plan.commands) == [
            f"{STOP} b.mount",
            "umount -c -- /a",
            "systemctl start -- b.mount",
            "mount -t nfs4 -o vers=4.1,_netdev,nconnect=4 -- nas:/srv /a",
        ]
        assert (plan.old, plan.new, plan.reload) == (1, 4, False)
        assert plan.reason == "/etc/fstab:2 asks for nconnect=4"

    def test_without_systemd_fstab_is_for_mount(self) -> None:
        plan = the_plan(A, B, seen=seen(A, B, systemd=False))
        assert argv(plan.commands)[:3] == ["umount -c -- /b", "umount -c -- /a", "mount -- /b"]

    def test_what_it_was_before_is_kept_for_the_way_back(self) -> None:
        odd = replace(A, asked="vers=4.1,hard", flags="ro,nosuid,relatime")
        parts = {part.point: part for part in the_plan(odd, B).coming}
        assert argv(parts["/a"].back) == ["mount -t nfs4 -o vers=4.1,hard,ro,nosuid -- nas:/srv /a"]
        by_hand = "mount -t nfs4 -o vers=4.1,nconnect=4 -- nas:/srv /b"
        assert argv(parts["/b"].back) == ["systemctl start -- b.mount", by_hand]

    @pytest.mark.parametrize(
        ("recorded", "again"),
        [
            ("vers=4,vers=4.1,hard", "vers=4.1,hard"),
            ("v4.1,sec=sys,vers=4.1", "sec=sys,vers=4.1"),
            ("minorversion=1,vers=4,vers=4.1", "vers=4.1"),
            ("vers=4,minorversion=1", "vers=4,minorversion=1"),
            ("nfsvers=3,mountvers=3", "nfsvers=3,mountvers=3"),
        ],
    )
    def test_a_version_that_mount_nfs_recorded_twice_is_asked_once(self, recorded: str, again: str) -> None:
        """With two mount.nfs refuses the mount, which would then be away."""
        (part,) = [one for one in the_plan(replace(A, asked=recorded), B).coming if one.point == "/a"]
        assert shell_line(part.make) == f"mount -t nfs4 -o {again},nconnect=4 -- nas:/srv /a"
        assert argv(part.back) == [f"mount -t nfs4 -o {again} -- nas:/srv /a"]

    def test_the_outer_one_goes_last_and_comes_first(self) -> None:
        outer, inner = replace(B, point="/x"), replace(B, point="/x/y", fstab="vers=4.1")
        plan = the_plan(inner, outer)
        assert [part.point for part in plan.going] == ["/x/y", "/x"]
        assert [part.point for part in plan.coming] == ["/x", "/x/y"]

    def test_no_name_is_taken_for_an_option(self) -> None:
        """A server, and so its source, can begin with a hyphen; the unit of the root is `-.mount`."""
        plan = the_plan(A, B)
        parts = {part.point: part for part in plan.coming}
        commands = [*plan.commands, *parts["/a"].back, *parts["/b"].back]
        for command in (command for command in commands if command != RELOAD):
            words = list(command)
            operands = words[words.index("--") + 1 :]
            assert operands[-1] in {"/a", "/b", "b.mount"}
            assert "nas:/srv" not in words[: -len(operands)]

    def test_a_point_with_a_space_is_named_as_systemd_escapes_it(self) -> None:
        plan = the_plan(replace(B, point="/srv/my data-1"))
        assert plan.commands[0][-1] == r"srv-my\x20data\x2d1.mount"

    def test_systemd_reads_its_files_first_where_it_has_not(self) -> None:
        for state in (LOADED._replace(stale=True), UnitState(loaded=True)):
            plan = the_plan(A, B, seen=seen(A, B, units={"b.mount": state}))
            assert shell_line(plan.commands[0]) == "systemctl daemon-reload"

    def test_the_group_is_known_again_by_its_superblocks_and_its_clients(self) -> None:
        known = the_plan(A, B).connections
        assert known.superblocks == (("0:50", 0), ("0:51", 1))
        assert (known.version, known.address, known.port, known.clients) == (4, NAS_ADDRESS, 2049, 1)


class TestGoal:
    def test_mounts_that_have_what_they_ask_for_are_left_alone(self) -> None:
        assert planned(facts(replace(A, shown=FOUR), replace(B, shown=FOUR))) == []

    def test_mounts_that_nobody_asks_anything_for_are_left_alone(self) -> None:
        assert planned(facts(A, replace(A, point="/c", shown=BARE))) == []
        assert planned(facts(replace(A, shown=FOUR), replace(A, point="/c", shown=FOUR))) == []

    def test_the_profile_is_reached_with_what_was_made_by_hand(self) -> None:
        plan = the_plan(replace(A, source=f"{AZURE}:/sa1/s", at="10.1.1.1"))
        assert shell_line(plan.coming[0].make).endswith(f"nconnect=4 -- {AZURE}:/sa1/s /a")
        assert plan.reason == "azure-files asks for nconnect=4"

    def test_lines_that_say_otherwise_are_named(self) -> None:
        other = replace(B, point="/c", asked="vers=4.1", fstab="vers=4.1")
        plan = the_plan(B, other)
        assert plan.reason.endswith("; put it also into /etc/fstab:2, or the next boot decides again")

    def test_where_no_line_asks_for_it_the_line_is_to_be_changed_first(self) -> None:
        made = Made("/a", "vers=4.1", BARE, f"{AZURE}:/sa1/s", at="10.1.1.1", fstab="vers=4.1")
        none = "with these options no mount of the server gets nconnect=4"
        assert why(made) == f"{none}: put it into /etc/fstab:1 (sudo nfstuned nconnect fstab)"

    def test_an_outer_mount_that_asks_otherwise_cannot_come_second(self) -> None:
        outer = Made("/x", "vers=4.1", BARE, fstab="vers=4.1")
        assert "with these options no mount of the server gets nconnect=4" in why(
            outer, replace(B, point="/x/y")
        )

    def test_one_mount_can_be_asked_for_alone(self) -> None:
        other = Made("/o", "nconnect=4", BARE, "other:/x", at="10.0.0.7")
        found = facts(A, B, other)
        assert [part.point for part in plan_of(found, point="/o").coming] == ["/o"]
        assert len(planned(found)) == 2
        assert [one.point for one in group_at(found, sight(found), "/a")] == ["/a", "/b"]
        assert group_at(found, sight(found), "/nowhere") == ()


class TestLeftAlone:
    def test_automount_is_left_alone_on_purpose(self) -> None:
        left = left_alone(asked_by(facts(A, B), Maker.AUTOFS))
        assert (left.result, left.points) == (Result.SKIPPED, ("/a", "/b"))
        assert left.reason.startswith("automount(8) mounts /b")

    def test_a_mount_of_a_pod_is_left_alone_on_purpose(self) -> None:
        left = left_alone(facts(replace(A, point=POD), B))
        assert (left.result, sorted(left.points)) == (Result.SKIPPED, ["/b", POD])
        assert left.reason.startswith(f"the kubelet makes {POD}, with the options in its PersistentVolume")

    def test_a_mount_in_an_autofs_is_automounts_unless_that_is_systemds(self) -> None:
        found = facts(A, B)
        ours = sight(found)
        for source, expected in (("systemd-1", RemountPlan), ("/etc/auto.nfs", LeftGroup)):
            trigger = MountNode(90, 27, "0:90", "/b", "autofs", source, "rw", shared=190)
            nodes = [one._replace(parent_id=90) if one.point == "/b" else one for one in ours.nodes]
            (plan,) = planned(found, replace(ours, nodes=(*nodes, trigger)))
            assert isinstance(plan, expected)

    def test_kerberos_that_has_too_many_is_left_alone_on_purpose(self) -> None:
        left = left_alone(facts(Made("/k", "sec=krb5,nconnect=1", f"{FOUR},sec=krb5", at="10.9.0.5")))
        assert (left.result, left.new) == (Result.SKIPPED, 1)
        assert "Kerberos" in left.reason


class TestAgainst:
    def test_a_process_is_named(self) -> None:
        uses = (BusyUse(DEVICE, "tail (4711) has /a/log open"), BusyUse("0:99", "nobody"))
        assert why(A, B, seen=seen(A, B, uses=uses)) == "in use: tail (4711) has /a/log open"

    def test_of_many_processes_some_are_named(self) -> None:
        uses = tuple(BusyUse(DEVICE, f"tail ({number}) has /a/log open") for number in range(9))
        assert why(A, B, seen=seen(A, B, uses=uses)).endswith("tail (4) has /a/log open; and 4 more")

    def test_a_path_counts_where_it_is_on_one_of_the_mounts(self) -> None:
        swapped = PathUse("/a/swapfile", "/a/swapfile is swapped to")
        paths = (swapped, PathUse("/ab", "no"), PathUse("/x", "no"))
        assert why(A, B, seen=seen(A, B, paths=paths)) == "in use: /a/swapfile is swapped to"

    @pytest.mark.parametrize("point", ["/a", "/a/deep/er"])
    def test_what_else_is_mounted_there(self, point: str) -> None:
        ours = sight(facts(A, B))
        between = MountNode(91, 60, "8:2", point, "ext4", "/dev/vdb", "rw")
        expected = f"{point} (ext4) is mounted there, within or on top: unmount it first"
        assert why(A, B, seen=replace(ours, nodes=(*ours.nodes, between))) == expected

    def test_a_bind_mount(self) -> None:
        found = facts(A, B)
        block, *others = found.snapshot.superblocks
        bind = replace(block.mounts[0], mount_id=95, point="/bind")
        twice = block._replace(mounts=(*block.mounts, bind))
        left = left_alone(on_host(found, superblocks=(twice, *others)))
        assert left.reason.startswith("the options of /bind are not known")

    def test_what_the_kernel_mounted_within_goes_by_itself(self) -> None:
        inner = Made("/a/sub", None, BARE, "nas:/srv/sub")
        plan = the_plan(A, B, inner)
        assert [part.point for part in plan.coming] == ["/b", "/a"]
        assert {device for device, _ in plan.connections.superblocks} == {"0:50", "0:51", "0:52"}
        uses = (BusyUse("0:52", "vim (12) has /a/sub/x open"),)
        assert why(A, B, inner, seen=seen(A, B, inner, uses=uses)) == "in use: vim (12) has /a/sub/x open"

    def test_mounts_on_top_of_each_other(self) -> None:
        assert "cover each other at /a" in why(A, B, replace(A, age_s=1))

    def test_a_lazily_unmounted_superblock(self) -> None:
        found = facts(A, B)
        volume = Volume(4, NAS_ADDRESS, 2049, "0:77", "0:0")
        hidden = Superblock("0:77", 77, 128, (), volume, found.snapshot.superblocks[0].servers)
        left = left_alone(on_host(found, superblocks=(*found.snapshot.superblocks, hidden)))
        assert left.reason.startswith("0:77 of the same server is still in use without a mount")

    def test_the_root_file_system(self) -> None:
        assert why(replace(B, point="/")) == "the root file system cannot be unmounted"

    def test_a_public_endpoint(self) -> None:
        made = Made("/a", "vers=4.1", BARE, f"{AZURE}:/sa1/s", at="52.239.238.8")
        assert f"/a: {AZURE} is a public endpoint" in why(made)

    @pytest.mark.parametrize(
        ("state", "said"),
        [
            (LOADED._replace(lazy=True), "b.mount has LazyUnmount=yes"),
            (LOADED._replace(force=True), "b.mount has ForceUnmount=yes"),
            (LOADED._replace(bound_by=("db.service",)), "b.mount would stop db.service with it"),
            (UnitState(fragment="/dev/null"), "b.mount is masked or broken"),
        ],
    )
    def test_a_unit_that_does_more(self, state: UnitState, said: str) -> None:
        assert why(A, B, seen=seen(A, B, units={"b.mount": state})).startswith(said)

    def test_a_unit_of_which_systemd_says_nothing(self) -> None:
        assert why(A, B, seen=seen(A, B, units={})) == "systemd does not know b.mount"

    def test_a_tunnels_mount_by_hand(self) -> None:
        made = Made("/t", "port=20049", f"{BARE},port=20049", "127.0.0.1:/sa1/s", at="127.0.0.1")
        host = on_host(facts(made, network=answered(AZURE, "10.1.1.1")), tunnels=(TUNNEL,))
        left = left_alone(host)
        assert left.reason == "/t goes through a mount helper's tunnel: mount it again with the helper"


class TestNamespaces:
    def inside(self, point: str = "/a", **outer: int | None) -> Space:
        root = MountNode(200, 199, "8:1", "/", "ext4", "/dev/vda1", "rw", **outer)
        return Space("podman (77)", (root, MountNode(201, 200, DEVICE, point, "nfs4", "nas:/srv", "rw")))

    def test_a_copy_that_follows_ours_goes_with_it(self) -> None:
        for outer in ({"master": 1}, {"shared": 1}, {"shared": 300, "master": 1}):
            assert the_plan(A, B, seen=seen(A, B, spaces=(self.inside("/a", **outer),)))

    def test_a_copy_of_a_copy_goes_too(self) -> None:
        spaces = (self.inside(shared=300, master=1), self.inside(master=300))
        assert the_plan(A, B, seen=seen(A, B, spaces=spaces))

    def test_a_copy_of_its_own_keeps_the_connections(self) -> None:
        own = {"master": 44}, {"shared": 45}
        for space in (
            self.inside(),
            *(self.inside("/a", **each) for each in own),
            self.inside("/c", master=1),
        ):
            said = why(A, B, seen=seen(A, B, spaces=(space,)))
            assert said == f"in use: podman (77) has {space.nodes[1].point} in a mount namespace of its own"

    def test_where_ours_is_private_every_copy_keeps_them(self) -> None:
        ours = sight(facts(A, B), spaces=(self.inside(master=1),))
        nodes = (ROOT._replace(shared=None), *ours.nodes[1:])
        assert why(A, B, seen=replace(ours, nodes=nodes)).startswith("in use: podman (77)")

    def test_a_mount_over_another_network_namespace_cannot_be_made_from_here(self) -> None:
        said = "/b was mounted in another network namespace"
        assert why(A, B, seen=seen(A, B, volumes=frozenset({DEVICE}))) == said

    def test_a_mount_that_only_another_namespace_has(self) -> None:
        ours = sight(facts(A, B))
        nodes = tuple(node for node in ours.nodes if node.point != "/a")
        said = "another mount namespace has a mount of the same connections at /a"
        assert why(A, B, seen=replace(ours, nodes=nodes)) == said


class TestServers:
    def case(self, *made: Made, tunnel: bool = False) -> obstacles.Case:
        found = on_host(facts(*made), tunnels=(TUNNEL,) if tunnel else ())
        group = tuple(one for one in found.nfs if one.live)
        return obstacles.Case(found, Sight(nodes=tree(found)), group, group, (), obstacles.Goal(1, 4, "x"))

    def test_the_address_of_the_connections_is_asked(self) -> None:
        case = self.case(A, B)
        assert (obstacles.servers_of(case), obstacles.host_names(case)) == (((NAS_ADDRESS, 2049),), ())

    def test_both_ends_of_a_tunnel_are_asked(self) -> None:
        made = Made("/t", "port=20049", f"{BARE},port=20049", "127.0.0.1:/sa1/s", at="127.0.0.1")
        case = self.case(made, tunnel=True)
        assert obstacles.servers_of(case) == (("127.0.0.1", 20049), (AZURE, 2049))
        assert obstacles.host_names(case) == (AZURE,)
        network = Network(
            (Answer(AZURE, ("10.1.1.1",)),),
            (Reach("127.0.0.1", 20049, Reachable.OPEN), Reach("10.1.1.1", 2049, Reachable.TIMEOUT, "late")),
        )
        assert "(10.1.1.1 port 2049: late)" in obstacles.cannot_mount_again(case, network)
        unknown = network._replace(answers=(Answer(AZURE, error="NXDOMAIN"),))
        assert f"({AZURE} port 2049: NXDOMAIN)" in obstacles.cannot_mount_again(case, unknown)
        opened = network._replace(reaches=(network.reaches[0], Reach("10.1.1.1", 2049, Reachable.OPEN)))
        assert obstacles.cannot_mount_again(case, opened) == ""
        assert obstacles.open_places(case, opened) == (("127.0.0.1", 20049), ("10.1.1.1", 2049))

    def test_a_silent_server_is_a_reason(self) -> None:
        found = facts(A, B)
        (case,) = cases(found, sight(found))
        left = plan_remount(case, "it is dead")
        assert isinstance(left, LeftGroup)
        assert (left.reason, left.result) == ("it is dead", Result.FAILED)


BY_HAND = Made("/a", "vers=4.1", BARE, age_s=9)
POINTS = ("/a", "/a/b", "/a/b/c", "/d", "/d e", "/f/g")


def by_point(ended: tuple[Change, ...]) -> dict[str, Change]:
    return {change.target: change for change in ended}


def failing(*steps: str, how: str = "refused") -> Callable[[str, str], str]:
    return lambda step, point: how if f"{step} {point}".strip() in steps else ""


def test_all_go_then_the_one_that_asks_comes_first() -> None:
    kernel = Kernel({"/a": BY_HAND, "/b": B})
    ended = remount(the_plan(BY_HAND, B), kernel)
    assert kernel.calls == ["unmount /b", "unmount /a", "held", "mount /b", "mount /a"]
    assert kernel.mounts == {"/a": 4, "/b": 4}
    done = [(one.target, one.result, one.mounted, one.command) for one in ended]
    assert done == [(point, Result.DONE, True, None) for point in ("/a", "/b")]


def test_what_is_busy_brings_back_what_is_gone() -> None:
    kernel = Kernel({"/a": BY_HAND, "/b": B}, failing("unmount /a"))
    ended = remount(the_plan(BY_HAND, B), kernel)
    assert kernel.calls == ["unmount /b", "unmount /a", "mount /b"]
    assert kernel.mounts == {"/a": 1, "/b": 1}
    assert {one.result for one in ended} == {Result.FAILED}
    refused = "/a could not be unmounted: unmount refused"
    assert by_point(ended)["/b"].reason == f"{refused}; it is mounted and has nconnect=1"


def test_a_mount_that_is_refused_leaves_no_other_one_away() -> None:
    kernel = Kernel({"/a": BY_HAND, "/b": B}, failing("mount /a"))
    ended = by_point(remount(the_plan(BY_HAND, B), kernel))
    assert kernel.mounts == {"/b": 4}
    assert not ended["/a"].mounted
    assert shell_line(ended["/a"].command or ()) == "mount -t nfs4 -o vers=4.1 -- nas:/srv /a"
    assert (ended["/b"].mounted, ended["/b"].result) == (True, Result.DONE)
    assert "mount refused" in ended["/a"].reason


def test_a_unit_that_is_refused_is_mounted_as_it_was() -> None:
    calls: list[str] = []

    def first_time(step: str, point: str) -> str:
        calls.append(f"{step} {point}")
        return "refused" if calls.count("mount /b") == 1 and calls[-1] == "mount /b" else ""

    kernel = Kernel({"/a": BY_HAND, "/b": B}, first_time)
    ended = by_point(remount(the_plan(BY_HAND, B), kernel))
    assert kernel.calls[-3:] == ["mount /b", "mount /b", "mount /a"]
    assert set(kernel.mounts) == {"/a", "/b"}
    assert ended["/b"].result is Result.FAILED
    assert "systemctl start -- b.mount" in ended["/b"].reason


def test_a_server_that_went_away_leaves_the_commands_to_finish() -> None:
    kernel = Kernel({"/a": BY_HAND, "/b": B}, lambda step, _: "refused" if step == "mount" else "")
    ended = by_point(remount(the_plan(BY_HAND, B), kernel))
    assert kernel.mounts == {}
    assert {point: shell_line(one.command or ()) for point, one in ended.items()} == {
        "/a": "mount -t nfs4 -o vers=4.1 -- nas:/srv /a",
        "/b": "systemctl start -- b.mount",
    }


def test_what_lies_in_a_mount_that_is_missing_is_not_mounted_below_it() -> None:
    inner = Made("/b/c", "vers=4.1", BARE)
    kernel = Kernel({"/b": B, "/b/c": inner}, failing("mount /b"))
    ended = by_point(remount(the_plan(B, inner), kernel))
    assert kernel.mounts == {}
    assert ended["/b/c"].reason == "not mounted now: it lies in /b"


def test_an_automount_that_was_quicker_is_no_accident_where_it_has_the_number() -> None:
    kernel = Kernel({"/a": BY_HAND, "/b": B})

    class Eager:
        """Somebody goes to /b as soon as it is gone."""

        def __getattr__(self, name: str) -> object:
            return getattr(kernel, name)

        def held(self, plan: RemountPlan) -> str:
            del plan
            kernel.count = kernel.mounts["/b"] = 4
            return "something still uses the connections"

    ended = remount(the_plan(BY_HAND, B), Eager())  # type: ignore[arg-type]  # it has what Kernel has
    assert kernel.mounts == {"/a": 4, "/b": 4}
    assert {one.result for one in ended} == {Result.DONE}


@st.composite
def _hosts(draw: st.DrawFn) -> tuple[list[Made], list[RemountPlan | LeftGroup]]:
    """Return the mounts of a random host, and what is planned for them."""
    points = draw(st.lists(st.sampled_from(POINTS), min_size=1, unique=True))
    shown = draw(st.sampled_from([BARE, f"{BARE},nconnect=2"]))
    asked = st.sampled_from(["vers=4.1", "vers=4.1,nconnect=2", "vers=4.1,nconnect=4,nosuid"])
    made = []
    for point in points:
        options = draw(asked)
        fstab = draw(st.sampled_from([None, options, "vers=4.1,nconnect=4"]))
        made.append(Made(point, options, shown, fstab=fstab))
    found = facts(*made)
    return made, planned(found, sight(found, systemd=draw(st.booleans())))


Planned = tuple[list[Made], list[RemountPlan | LeftGroup]]
_HOW = st.sampled_from(["", "", "", "refused", "silent", "late"])


@given(st.data(), _hosts())
def test_whatever_fails_every_mount_is_back_or_named(data: st.DataObject, host: Planned) -> None:
    made, plans = host
    for plan in plans:
        if isinstance(plan, RemountPlan):
            kernel = Kernel({one.point: one for one in made}, lambda *_: data.draw(_HOW))
            ended = remount(plan, kernel)
            assert [one.target for one in ended] == sorted(kernel.made)
            assert {one.target for one in ended if one.mounted} == set(kernel.mounts)
            for one in ended:
                assert (one.command is None) is one.mounted
                assert one.result is not Result.DONE or kernel.mounts[one.target] == plan.new
            _finish(kernel, ended)


@given(_hosts())
def test_where_nothing_fails_all_have_the_number(host: Planned) -> None:
    made, plans = host
    for plan in plans:
        if isinstance(plan, RemountPlan):
            kernel = Kernel({one.point: one for one in made})
            ended = remount(plan, kernel)
            assert kernel.mounts == dict.fromkeys(kernel.made, plan.new)
            assert {one.result for one in ended} == {Result.DONE}


@given(st.data(), _hosts())
def test_where_only_unmounting_fails_every_mount_is_back(data: st.DataObject, host: Planned) -> None:
    made, plans = host
    for plan in plans:
        if isinstance(plan, RemountPlan):
            points = {one.point: one for one in made}
            kernel = Kernel(points, lambda step, _: "" if step == "mount" else data.draw(_HOW))
            ended = remount(plan, kernel)
            assert set(kernel.mounts) == set(kernel.made)
            assert all(one.mounted for one in ended)


def _finish(kernel: Kernel, ended: tuple[Change, ...]) -> None:
    """Do what the outcomes say is left to do: then everything is there again."""
    kernel.fails = lambda _step, _point: ""
    for one in ended:
        if one.command is not None:
            assert kernel.mount(one.command) == ""
    assert set(kernel.mounts) == set(kernel.made)


@pytest.mark.parametrize("how", ["refused", "silent", "late"])
def test_only_what_mountinfo_says_counts(how: str) -> None:
    kernel = Kernel({"/a": BY_HAND, "/b": B}, failing("unmount /b", how=how))
    ended = remount(the_plan(BY_HAND, B), kernel)
    assert {one.result for one in ended} == {Result.DONE if how == "late" else Result.FAILED}
    assert set(kernel.mounts) == {"/a", "/b"}
