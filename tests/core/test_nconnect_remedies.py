"""What the rules about nconnect tell to do, done on a model of the kernel: the first mount decides."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace

import pytest

from nfstuned.core.mounts.targets import targets
from nfstuned.model.facts import Fault
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Request, Setting, Tunnel
from nfstuned.model.policy import Assignment, Match
from nfstuned.parse.etc.nfsmount import PERSISTED
from tests.core.nconnect_hosts import AZURE, NAS, NAS_ADDRESS, POLICY, Made, answered, facts, faults, on_host

RULES = ("NFS201", "NFS202", "NFS204", "NFS205", "NFS207")
FLAGS = ("ro", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "nosymfollow", "sync", "dirsync")


@dataclass
class Host:
    """The mounts of one server, which share connections, and what is mounted of them now."""

    made: dict[str, Made]
    mounted: list[Made] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.mounted = list(self.made.values())

    def follow(self, remedy: str) -> None:
        for step in re.split(r", then | && ", remedy):
            self._do(step)

    def found(self) -> list[Fault]:
        assert {one.point for one in self.mounted} == self.made.keys(), "not all mounts are back"
        host = facts(*self.made.values())
        return [fault for rule in RULES for fault in faults(rule, host)]

    def _do(self, step: str) -> None:
        words = shlex.split(step)
        if change := re.match(r"(?:put|set) nconnect=(\d+)", step):
            for line in re.findall(r"/etc/fstab:(\d+)", step):
                self._write(int(line), f"nconnect={change[1]}")
        elif words[:2] == ["sudo", "umount"]:
            for point in words[2:]:
                self.mounted = [one for one in self.mounted if one.point != point]
                assert not [one for one in self.mounted if one.point.startswith(f"{point}/")], "busy"
        elif words[:3] == ["sudo", "mount", "-t"]:
            assert self.made[words[-1]].fstab is None
            self._mount(words[-1], words[5])
        elif words[:2] == ["sudo", "mount"]:
            self._mount(words[2], self.made[words[2]].fstab or "")
        elif again := re.fullmatch(
            r"mount (\S+) again with (\S+) and otherwise the options that it had", step
        ):
            self._mount(again[1], ",".join([again[2], *self.made[again[1]].flags.split(",")]))
        else:
            assert step == "sudo nfstuned apply --persist"

    def _write(self, line: int, count: str) -> None:
        point = list(self.made)[line - 1]
        kept = [one for one in (self.made[point].fstab or "").split(",") if not one.startswith("nconnect=")]
        self.made[point] = replace(self.made[point], fstab=",".join([*kept, count]))

    def _mount(self, point: str, options: str) -> None:
        outer = {one for one in self.made if point.startswith(f"{one}/")}
        assert outer <= {one.point for one in self.mounted}, "it will lie below what it lies in"
        first = self.mounted[0].shown if self.mounted else options
        count = parse_options(first).number("nconnect") or 1
        shown = re.sub(r",nconnect=\d+", "", self.made[point].shown)
        flags = [name for name in FLAGS if name in parse_options(options)]
        made = replace(
            self.made[point],
            asked=options,
            shown=shown if count == 1 else f"{shown},nconnect={count}",
            age_s=90 - len(self.mounted),
            flags=",".join([*([] if "ro" in flags else ["rw"]), *flags, "relatime"]),
        )
        self.made[point] = made
        self.mounted.append(made)


BARE, FOUR, EIGHT = "vers=4.1,proto=tcp", "vers=4.1,proto=tcp,nconnect=4", "vers=4.1,proto=tcp,nconnect=8"
IN_WORDS = (" and mount all of them again", " and mount them again without nconnect")
NETAPP = "10.9.0.5"
SHARE = f"{AZURE}:/sa1/s"
IN_FSTAB = Made("/a", "nconnect=4", BARE, fstab="nconnect=4", age_s=5)
BY_HAND = Made("/b", "hard", BARE, age_s=9)
LIVES = {
    "a mount by hand came first": (IN_FSTAB, BY_HAND),
    "a mount by hand lies outside": (replace(IN_FSTAB, point="/b/a"), BY_HAND),
    "a mount by hand lies outside, whose options nothing tells": (
        replace(IN_FSTAB, point="/b/a"),
        replace(BY_HAND, asked=None),
    ),
    "a mount by hand asks for another number": (IN_FSTAB, replace(BY_HAND, asked="nconnect=2,hard")),
    "read-only by hand": (IN_FSTAB, replace(BY_HAND, flags="ro,nosuid,nodev,noexec,noatime,relatime")),
    "read-only by hand, and nothing tells its options": (
        IN_FSTAB,
        replace(BY_HAND, asked=None, flags="ro,relatime"),
    ),
    "fewer than the profile asks for": (
        Made("/a", "hard", BARE, SHARE, fstab="hard"),
        Made("/b", "hard", BARE, SHARE, flags="ro,relatime"),
    ),
    "more than the profile allows": (
        Made("/a", "hard", EIGHT, SHARE, fstab="hard"),
        Made("/b", "nconnect=8", EIGHT, SHARE, fstab="nconnect=8"),
        Made("/c", "nconnect=8", EIGHT, SHARE),
        Made("/d", "nconnect=4", EIGHT, SHARE, fstab="nconnect=4"),
    ),
    "a line was changed and its mount was not made again": (
        Made("/a", "nconnect=4", FOUR, SHARE, fstab="hard"),
        Made("/b", "nconnect=8", FOUR, SHARE, fstab="nconnect=4"),
    ),
    "the line of an outer mount asks no longer for what the mount was made with": (
        Made("/a", "nconnect=4", BARE, fstab="hard"),
        Made("/a/b", "nconnect=4", BARE, fstab="nconnect=4"),
    ),
    "the profile allows less than a mount asks for": (
        Made("/a", "nconnect=8", FOUR, SHARE, fstab="nconnect=8"),
        Made("/a/b", "nconnect=4", FOUR, SHARE, fstab="nconnect=4"),
    ),
    "Kerberos allows less than a line asks for, and utab is gone": (
        Made("/a", None, BARE, fstab="nconnect=4"),
        Made("/b", None, f"{BARE},sec=krb5", fstab="sec=krb5"),
    ),
    "the profile allows less than a mount by hand asks for": (
        Made("/a", "nconnect=4", FOUR, SHARE, fstab="nconnect=4"),
        Made("/b", "nconnect=8", FOUR, SHARE, flags="ro,relatime"),
    ),
    "a mount beside Kerberos asks for several connections": (
        Made("/a", "nconnect=8", BARE, fstab="nconnect=8", at=NETAPP),
        Made("/b", "sec=krb5", f"{BARE},sec=krb5", fstab="sec=krb5", at=NETAPP),
    ),
    "mounts beside Kerberos ask for different numbers": (
        Made("/a", "nconnect=8", FOUR, fstab="nconnect=8", at=NETAPP),
        Made("/b", "sec=krb5,nconnect=4", f"{FOUR},sec=krb5", fstab="sec=krb5,nconnect=4", at=NETAPP),
        Made("/c", "nconnect=4", FOUR, at=NETAPP),
    ),
}


@pytest.mark.parametrize("why", LIVES)
def test_who_does_what_a_finding_says_has_what_it_promises_and_no_other_finding(why: str) -> None:
    made = {one.point: one for one in LIVES[why]}
    first = Host(dict(made)).found()
    assert first
    for fault in first:
        if fault.remedy.endswith(IN_WORDS):
            continue
        host = Host(dict(made))
        host.follow(fault.remedy)
        assert host.found() == [], fault.remedy
        assert {one.point: set(one.flags.split(",")) for one in host.mounted} == {
            one.point: set(one.flags.split(",")) for one in made.values()
        }


def test_nothing_beside_kerberos_is_told_to_have_several_connections() -> None:
    plain, kerberos = Made("/a", "hard", BARE, at=NETAPP), Made("/b", None, f"{BARE},sec=krb5p", at=NETAPP)
    network = answered(NAS, NETAPP)
    pod, line = replace(plain, point="/b", space="pod"), f"{NAS}:/x /x vers=4.1,sec="
    for host, told in (
        (facts(plain), ["/a"]),
        (facts(plain, kerberos), []),
        (facts(plain, replace(kerberos, at="10.9.0.6")), ["/a"]),
        (facts(plain, replace(kerberos, space="pod")), ["/a"]),
        (facts(plain, lines=(f"{line}krb5",), network=network), []),
        (facts(plain, lines=(f"{line}sys",), network=network), ["/a"]),
        (facts(plain, lines=(f"{line}sys,nconnect=8",), network=network), []),
        (facts(plain, pod, lines=(f"{line}krb5",), network=network), ["/a", "/b"]),
        (facts(lines=(f"{line}krb5", f"{NAS}:/y /y vers=4.1"), network=network), []),
    ):
        assert [fault.subject for fault in faults("NFS201", host)] == told


def test_what_nfstuneds_own_file_asks_for_only_has_to_be_mounted_again() -> None:
    made = Made("/a", asked="rw", source=f"{AZURE}:/sa1/s", fstab="vers=4.1")
    host = facts(made)
    settings = (Setting("server", AZURE, "nconnect", "4", PERSISTED, 7),)
    (fault,) = faults("NFS201", on_host(host, settings=settings))
    assert fault.remedy == "sudo umount /a && sudo mount /a"


@pytest.mark.parametrize(
    ("source", "at", "said"),
    [
        (f"{AZURE}:/sa1/s", NAS_ADDRESS, "sudo nfstuned apply --persist, then "),
        ("10.9.0.5:/v", "10.9.0.5", "sudo nfstuned apply --persist, then "),
        ("[fd00::5]:/v", "fd00::5", "put nconnect=8 into the options, then "),
    ],
)
def test_a_mount_by_hand_gets_it_from_nfstuneds_own_file_where_that_can_say_it(
    source: str, at: str, said: str
) -> None:
    host = facts(Made("/a", asked="rw", source=source, at=at))
    policy = replace(
        POLICY,
        assignments=(Assignment(Match(server=("10.9.0.0/16", "fd00::/8")), "azure-netapp-files", "p"),),
    )
    found = replace(host, policy=policy, targets=targets(host.snapshot, policy))
    (fault,) = faults("NFS201", found)
    assert fault.remedy.startswith(f"{said}sudo umount /a && sudo mount -t nfs4 -o ")


def test_where_mount_aznfs_mounts_an_address_of_its_own_no_file_of_nfsmount_conf_can_say_it() -> None:
    host = facts(Made("/a", asked="vers=4.1", source="10.161.100.100:/sa1/s", at="10.161.100.100"))
    tunnels = (Tunnel(0, AZURE, 0, "azure-files", "/list", "10.161.100.100", "10.10.10.10"),)
    settings = (Setting("server", AZURE, "nconnect", "4", PERSISTED, 7),)
    by_hand = on_host(host, tunnels=tunnels, settings=settings)
    (fault,) = faults("NFS201", by_hand)
    assert fault.remedy.startswith("put nconnect=4 into the options, then sudo umount /a && sudo mount -t ")
    line = Request(f"{AZURE}:/sa1/s", "/a", "vers=4,minorversion=1,notls", "/etc/fstab", 1, fstype="aznfs")
    named = on_host(by_hand, requests=(*by_hand.snapshot.requests, line))
    (fault,) = faults("NFS201", named)
    assert fault.remedy == "set nconnect=4 in /etc/fstab:1, then sudo umount /a && sudo mount /a"


def test_over_a_public_endpoint_of_azure_files_none_are_proposed() -> None:
    host = facts(Made("/a", asked="rw", source=f"{AZURE}:/sa1/s", at="52.239.238.8"))
    assert faults("NFS201", host) == []


def test_what_is_mounted_in_another_mount_namespace_is_not_unmounted_in_the_hosts() -> None:
    """The host may have something else at the same mount point."""
    source = f"{AZURE}:/sa1/s"
    own, other = Made("/a", "nconnect=4", BARE, source), Made("/data", None, BARE, source)
    command = f"sudo umount /a && sudo mount -t nfs4 -o nconnect=4 {source} /a"
    there = "unmount /data in its own mount namespace, and mount it there again"
    for rule, made, said in (
        ("NFS204", (own, other), f"{command} (first {there} afterwards)"),
        ("NFS201", (other,), f"sudo nfstuned apply --persist, then {there} with nconnect=4"),
    ):
        host = facts(*made)
        (*before, last) = host.snapshot.superblocks
        blocks = (*before, replace(last, mounts=(replace(last.mounts[0], foreign=True),)))
        found = on_host(host, superblocks=blocks)
        assert [fault.remedy for fault in faults(rule, found)] == [said]
