"""Which entries get which number, and which are left, with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nfstuned.core.fstabplan import entries, unsettled
from nfstuned.model.facts import Network
from nfstuned.model.intent import Setting
from nfstuned.model.kernel import Distribution, KernelRelease, Mount, MountStats, Server, Volume
from nfstuned.model.policy import Assignment, Match, Policy, Profile
from nfstuned.model.work import Result, Snapshot, Superblock
from nfstuned.parse.options import parse_options
from tests.core.fstabs import BUILTIN, NETWORK, POLICY, SNAPSHOT, edited

SA1 = "sa1.file.core.windows.net"


def line(
    source: str = f"{SA1}:/sa1/a", options: str = "vers=4.1", point: str = "/a", kind: str = "nfs"
) -> str:
    return f"{source} {point} {kind} {options} 0 0\n"


def numbers(text: str, policy: Policy = POLICY, **changes: object) -> list[tuple[int | None, int, Result]]:
    snapshot = replace(SNAPSHOT, **changes)  # type: ignore[arg-type]  # keyword arguments of any field
    return [(one.old, one.new, one.result) for one in edited(text, policy, snapshot).changes]


def reason(text: str, policy: Policy = POLICY, **changes: object) -> str:
    snapshot = replace(SNAPSHOT, **changes)  # type: ignore[arg-type]  # as above
    return edited(text, policy, snapshot).changes[0].reason


@pytest.mark.parametrize(
    ("source", "options", "old", "new"),
    [
        (f"{SA1}:/sa1/a", "vers=4.1", None, 4),
        (f"{SA1}:/sa1/a", "nconnect=1", 1, 4),
        (f"{SA1}:/sa1/a", "nconnect=x", None, 4),
        (f"{SA1}:/sa1/a", "nconnect=5", 5, 4),
        (f"{SA1}:/sa1/a", "nconnect=16,nconnect=2", 2, 4),
        ("10.1.2.4:/v", "vers=3", None, 8),
        ("10.1.2.4:/v", "nconnect=7", 7, 8),
        ("10.1.2.4:/v", "nconnect=17", 17, 8),
    ],
)
def test_an_entry_gets_the_number_of_its_profile(
    source: str, options: str, old: int | None, new: int
) -> None:
    assert numbers(line(source, options)) == [(old, new, Result.PLANNED)]


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (f"{SA1}:/sa1/a", "nconnect=4"),
        (f"{SA1}:/sa1/a", "nconnect=8,nconnect=4"),
        ("10.1.2.4:/v", "nconnect=8"),
        ("10.1.2.4:/v", "nconnect=16"),
        ("nas:/v", "rw"),
        ("nas:/v", "nconnect=16"),
        ("fs-0123456789abcdef0.efs.us-east-1.amazonaws.com:/", "rw"),
    ],
)
def test_what_is_right_or_without_an_opinion_is_not_mentioned(source: str, options: str) -> None:
    assert numbers(line(source, options)) == []


def test_smb_and_local_entries_are_none_of_ours() -> None:
    assert numbers(line(f"//{SA1}/s", "vers=3.1.1", kind="cifs") + "/dev/sda1 /b ext4 rw 0 1\n") == []


def test_the_reason_names_the_profile_and_its_limit() -> None:
    assert reason(line()) == "azure-files asks for nconnect=4"
    assert reason(line(options="nconnect=8")) == "azure-files allows at most 4"


def test_all_shares_of_a_server_get_what_one_asks_for_within_the_limit() -> None:
    text = (
        line("10.1.2.4:/a", "nconnect=12") + line("10.1.2.4:/b", "rw", "/b") + line("10.1.2.5:/c", "rw", "/c")
    )
    assert numbers(text) == [(None, 12, Result.PLANNED), (None, 8, Result.PLANNED)]
    assert reason(text) == "as /etc/fstab:1, which is of the same server"


def test_two_names_of_one_address_are_one_server() -> None:
    text = line("10.1.2.4:/a", "nconnect=12") + line("nas:/b", "addr=10.1.2.4", "/b")
    assert numbers(text) == [(None, 12, Result.PLANNED)]


STRICT = Profile("strict", nconnect=2, nconnect_max=2)
MIXED = replace(
    BUILTIN,
    profiles=(*BUILTIN.profiles, STRICT),
    assignments=(
        Assignment(Match(export=("/strict",)), "strict", "policy 1"),
        Assignment(Match(export=("/none",)), "generic", "policy 2"),
        Assignment(Match(server=("10.1.2.4",)), "azure-netapp-files", "policy 3"),
    ),
)


def test_the_strictest_profile_of_a_server_binds_all() -> None:
    text = line("10.1.2.4:/a", "nconnect=8") + line("10.1.2.4:/strict", "rw", "/b")
    assert numbers(text, MIXED) == [(8, 2, Result.PLANNED), (None, 2, Result.PLANNED)]
    assert reason(text, MIXED) == "the profiles of 10.1.2.4 allow nconnect=2"


def test_a_share_without_an_opinion_keeps_its_whole_server_as_it_is() -> None:
    text = line("10.1.2.4:/a") + line("10.1.2.4:/none", "rw", "/b")
    assert numbers(text, MIXED) == [(None, 8, Result.SKIPPED), (None, 8, Result.SKIPPED)]
    assert reason(text, MIXED).startswith(
        "/etc/fstab:2 is of the same server and stays as it is: its profile"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("vers=3,proto=udp", "proto=udp"),
        ("proto=rdma6", "proto=rdma"),
        ("rdma", "proto=rdma"),
        ("sec=krb5i", "Kerberos"),
        ("sec=sys:krb5", "Kerberos"),
        ("comment=cloudconfig", "cloud-init"),
    ],
)
def test_what_cannot_or_must_not_have_it_is_left(options: str, words: str) -> None:
    assert numbers(line("10.1.2.4:/a", options)) == [(None, 8, Result.SKIPPED)]
    assert words in reason(line("10.1.2.4:/a", options))


def test_a_line_of_another_protocol_does_not_hold_its_server_up() -> None:
    text = line("10.1.2.4:/a", "vers=3,proto=udp") + line("10.1.2.4:/b", "vers=3", "/b")
    assert [result for _, _, result in numbers(text)] == [Result.SKIPPED, Result.PLANNED]


DEBIAN = Distribution("debian", "10", "Debian")


@pytest.mark.parametrize(
    ("release", "options", "words"),
    [
        (
            KernelRelease((4, 19, 0), "4.19.0-27-amd64"),
            "vers=4.1",
            "Linux 4.19.0-27-amd64 does not know nconnect",
        ),
        (KernelRelease((5, 4, 0), "5.4.0"), "vers=4.0", "Linux 5.4.0 ignores nconnect with NFS 4.0"),
        (KernelRelease((5, 4, 0), "5.4.0"), "vers=4.1", ""),
        (KernelRelease((5, 8, 0), "5.8.0"), "vers=4.0", ""),
        (KernelRelease((4, 18, 0), "4.18.0-553.el8.x86_64"), "vers=3", ""),
        (None, "vers=4.0", "NFS 4.0 has nconnect only since Linux 5.8"),
        (None, "vers=4.1", ""),
    ],
)
def test_the_kernel_must_know_it(release: KernelRelease | None, options: str, words: str) -> None:
    text = line("10.1.2.4:/a", options)
    ((_, _, result),) = numbers(text, kernel=release, distribution=DEBIAN)
    assert result is (Result.SKIPPED if words else Result.PLANNED)
    assert not words or reason(text, kernel=release, distribution=DEBIAN) == words


def test_a_block_of_ansible_s_is_left() -> None:
    text = f"# BEGIN ANSIBLE MANAGED BLOCK\n{line()}# END ANSIBLE MANAGED BLOCK\n"
    assert "blockinfile" in reason(text)


def test_nfsmount_conf_counts_as_asking() -> None:
    setting = Setting("server", SA1, "nconnect", "4", "/etc/nfsmount.conf", 2)
    assert numbers(line(), settings=(setting,)) == []
    assert numbers(line(), settings=(replace(setting, value="8"),)) == [(8, 4, Result.PLANNED)]


def test_only_names_of_azure_files_need_the_name_servers() -> None:
    text = line() + line(point="/b") + line("nas:/c") + line("10.1.2.4:/d") + line("10.10.10.10:/e")
    assert unsettled(entries(text, SNAPSHOT, POLICY)) == (SA1,)


def live(source: str, address: str, **more: object) -> Snapshot:
    options = parse_options(f"vers=4.1,proto=tcp,addr={address}")
    mount = Mount(60, 27, "0:50", "/", "/live", "nfs4", source, options)
    volume, servers = Volume(4, address, 2049, "0:50", "0:0"), (Server(4, address, 2049, 2, "x"),)
    superblock = Superblock("0:50", 1, 128, (mount,), volume, servers)
    return replace(SNAPSHOT, superblocks=(superblock,), **more)  # type: ignore[arg-type]  # as above


@pytest.mark.parametrize(
    ("address", "result"), [("10.0.0.9", Result.PLANNED), ("52.239.238.8", Result.SKIPPED)]
)
def test_where_no_name_server_answers_a_live_mount_tells_the_endpoint(address: str, result: Result) -> None:
    snapshot = live(f"{SA1}:/sa1/live", address)
    (change,) = edited(line(), POLICY, snapshot, Network()).changes
    assert change.result is result


def test_a_public_answer_counts_before_a_live_mount() -> None:
    snapshot = live("sapublic.file.core.windows.net:/s", "10.0.0.9")
    (change,) = edited(line("sapublic.file.core.windows.net:/s"), POLICY, snapshot, NETWORK).changes
    assert (change.result, "public endpoint" in change.reason) == (Result.SKIPPED, True)


def test_a_server_that_says_netapp_by_a_live_mount_is_that_for_its_other_volumes() -> None:
    stats = MountStats("10.7.7.7:/v1", "/live", "nfs4", "1.1", 9, implementation="NetApp Release 9.13.1")
    snapshot = live("10.7.7.7:/v1", "10.7.7.7", stats=(stats,), azure=True)
    assert [one.new for one in edited(line("10.7.7.7:/v2", "noauto"), POLICY, snapshot).changes] == [8]
    assert edited(line("10.7.7.7:/v2", "noauto"), POLICY).changes == ()
