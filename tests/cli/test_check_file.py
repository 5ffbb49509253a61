"""`nfstuned check --fstab` with a file that is not this host's own: the file is judged, and nothing else."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import xmlschema

from nfstuned.cli.check import CheckOrder, run_check
from nfstuned.host.network.outside import FixedOutside, Questions
from nfstuned.host.root import Root
from nfstuned.model.system import Answer, Network
from nfstuned.parse.tree import FSTAB
from tests.cli.conftest import MakeHost, Run

HOST = "sa1.file.core.windows.net"
PERFECT = f"{HOST}:/sa1/a /mnt/a nfs vers=4.1,nconnect=4,noresvport,_netdev,nofail 0 0\n"
HOSTILE = ("helper-gone", "nic-single-queue", "mount-stalled", "mount-missing", "identity-generic")
"""Hosts without mount.nfs, with a slow network card, and with mounts of their own that fail."""
GUIDE = Path(__file__).parents[2] / "docs/guide.md"
JUNIT = Path(__file__).parents[1] / "check/schemas/junit-10.xsd"
OLD = ("--kernel", "4.18.0-193.el8.x86_64")
ALIBABA = "2564f49129-ysu87.cn-shenzhen.nas.aliyuncs.com:/share"
PASTED = "//srv/s /mnt/s cifs credentials=/etc/c,_netdev,nofail,"


class SealedRoot(Root):
    """A root below which only nfstuned's configuration may be read; fstab's inode is compared."""

    def _status(self, name: str) -> os.stat_result:
        return os.stat(self.prefix + name) if name == FSTAB else super()._status(name)

    def _full(self, name: str) -> str:
        assert name.startswith("etc/nfstuned"), name
        return super()._full(name)


class Listener(FixedOutside):
    __slots__ = ("asked",)

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        object.__setattr__(self, "asked", questions)
        return super().ask(questions, offline=offline)


@pytest.fixture
def check(host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Return a function that judges a text on the standard input, offline."""

    def run(text: str, *args: str, on: str = "no-nfs") -> Run:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        return host(on).run("check", "--fstab", "-", "--offline", *args)

    return run


@pytest.mark.parametrize("on", HOSTILE)
def test_a_perfect_line_is_clean_on_every_machine(on: str, check: Callable[..., Run]) -> None:
    run = check(PERFECT, on=on)
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        "Nothing to report: 1 mount, 42 rules; 59 rules skipped (53 need a host or an image, "
        "3 need the network, 3 need --kernel RELEASE)\n"
    )


def test_a_line_that_is_not_understood_is_not_nothing_to_report(check: Callable[..., Run]) -> None:
    run = check("nas:/x mnt nfs rw 0 0\n")
    assert (run.status, run.out.split(";")[0]) == (2, "Not everything was judged")


@pytest.mark.parametrize(
    ("line", "status", "ids"),
    [
        (
            "{account}.file.core.windows.net:/{account}/s /n aznfs vers=4.1,nolock",
            1,
            ["NFS305", "NFS308", "NFS201", "NFS323"],
        ),
        ("{account}.file.core.{suffix}:/{account}/s /n aznfs vers=4.1,nofail,_netdev", 0, []),
        ("{name}.file.core.windows.net:/s /n nfs vers=3,nofail,_netdev,nconnect=4", 1, ["NFS301", "NFS305"]),
        ("fs-{id}.efs.{region}.amazonaws.com:/ /n nfs4 vers=4.1,nofail,_netdev", 1, ["NFS305"]),
        ("{server}:/x /n nfs vers=4.1,nconnect={n},nofail,_netdev", 0, []),
        ("{source} /n nfs vers=4.1,nofail,_netdev", 0, []),
        ("//{server}/x /n nfs vers=4.1,nofail,_netdev", 1, ["NFS311"]),
        ("[NAS]:/x /n nfs vers=4.1,nofail,_netdev", 0, []),
        ("/dev/nfs / nfs defaults", 0, []),
    ],
)
def test_placeholders_are_left_out(line: str, status: int, ids: list[str], check: Callable[..., Run]) -> None:
    for form in (r"${\1}", r"__\1__", r"<\1>", r"$\1", r"{{ \1 }}"):
        text = re.sub(r"\{(\w+)\}", form, line)
        run = check(f"{text} 0 0\n", "--kernel", "5.4.0", "--format", "json")
        assert [finding["rule"] for finding in run.document["findings"]] == ids, text
        assert run.status == (2 if "{{ " in text else status)


def test_nobody_resolves_a_placeholder(host: MakeHost, tmp_path: Path) -> None:
    file = tmp_path / "fstab.new"
    file.write_text("${NAS}:/x /n nfs vers=4.1 0 0\n[NAS]:/x /m nfs 0 0\n/dev/nfs / nfs defaults 0 0\n")
    world = Listener(Network())
    run_check(Root(str(host("helper-gone").tree)), CheckOrder(fstab=str(file)), world)
    asked: Questions = world.asked  # type: ignore[attr-defined]  # its own slot
    assert (asked.names, asked.servers) == ((), ())


def test_nothing_of_the_running_host_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "fstab.new").write_text(PERFECT + "aznfs.example:/x /mnt/x aznfs soft,vers=4.1 0 0\n")
    order = CheckOrder(fstab=str(tmp_path / "fstab.new"), offline=True)
    assert run_check(SealedRoot(str(tmp_path)), order) == 1


def test_only_names_are_resolved(host: MakeHost, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "fstab.new"
    file.write_text(PERFECT + "nas.example.com:/x /mnt/x nfs vers=4.1,nofail,_netdev 0 0\n")
    gone = Answer("nas.example.com", error="NXDOMAIN")
    world = Listener(Network(answers=(Answer(HOST, ("10.10.10.10",)), gone)))
    assert run_check(Root(str(host("helper-gone").tree)), CheckOrder(fstab=str(file)), world) == 1
    asked: Questions = world.asked  # type: ignore[attr-defined]  # its own slot
    assert (asked.names, asked.servers, asked.addresses) == ((HOST, gone.host), (), ())
    assert (asked.azure, asked.links) == (False, False)
    out, err = capsys.readouterr()
    assert err == ""
    assert "NFS408" in out
    assert "NFS405" not in out


def test_the_configuration_of_this_host_counts(host: MakeHost, tmp_path: Path) -> None:
    file = tmp_path / "fstab.new"
    file.write_text("nas:/x /mnt/x nfs vers=4.1,nofail,_netdev 0 0\n")
    here = host("no-nfs")
    words = ("check", "--fstab", str(file), "--offline")
    assert "NFS201" not in here.run(*words).out
    here.configure(
        '[profile.fast]\ninherits = "generic"\nnconnect = 8\n'
        '[[policy]]\nmatch = {server = "nas"}\nprofile = "fast"\n'
    )
    assert "the profile fast recommends nconnect=8" in here.run(*words).out


@pytest.mark.parametrize("way", [os.link, os.symlink, None])
def test_the_hosts_own_fstab_is_judged_with_the_host(
    way: Callable[[Path, Path], None] | None, host: MakeHost, tmp_path: Path
) -> None:
    here = host("helper-gone")
    own, other = here.tree / "etc/fstab", here.tree / "other"
    if way is not None:
        way(own, other)
    run = here.run("check", "--offline", "--fstab", str(own if way is None else other))
    assert "NFS502" in run.out
    copy = tmp_path / "copy"
    copy.write_bytes(own.read_bytes())
    assert "NFS502" not in here.run("check", "--offline", "--fstab", str(copy)).out


@pytest.mark.parametrize(
    ("text", "options", "ids"),
    [
        (PERFECT, OLD, ["NFS203", "NFS505"]),
        (PERFECT, ("--kernel", "5.11.0-16-generic"), ["NFS501"]),
        (PERFECT, ("--kernel", "6.12.1"), []),
        ("nas:/x /mnt nfs vers=4.1,nconnect=16,_netdev 0 0\n", ("--kernel", "5.2.0"), ["NFS203"]),
        *(
            ("nas:/x /mnt nfs vers=4.1,nconnect=8,_netdev 0 0\n", ("--kernel", release), ids)
            for release, ids in {
                "2.6.32-754.35.1.el6.x86_64": ["NFS203"],
                "3.10.0-1160.119.1.el7.x86_64": ["NFS203"],
                "4.18.0-193.28.1.el8_2.x86_64": ["NFS203"],
                "4.18.0-240.el8.x86_64": [],
                "4.14.35-1818.3.3.el7uek.x86_64": [],
            }.items()
        ),
        ("nas:/x /mnt nfs vers=4.1,xprtsec=tls,_netdev 0 0\n", ("--kernel", "6.4.16"), ["NFS309"]),
        (PERFECT.replace("noresvport,", ""), ("--kernel", "5.17.15"), ["NFS305"]),
        (PERFECT.replace("noresvport,", ""), ("--kernel", "5.18.0"), []),
        *(
            (f"fs-0a1b2c3d.efs.eu-west-1.amazonaws.com:/ /m nfs4 vers=4.1,_netdev{more} 0 0\n", kernel, ids)
            for more, kernel, ids in [
                ("", (), ["NFS305"]),
                (",noresvport", (), []),
                ("", ("--kernel", "5.10"), ["NFS305"]),
            ]
        ),
        *(
            (f"{ALIBABA} /grdata nfs vers=3,noatime,_netdev{more} 0 0\n", kernel, ids)
            for kernel in ((), ("--kernel", "5.10.134-16.al8.x86_64"), ("--kernel", "6.12.1"))
            for more, ids in (("", ["NFS305"]), (",noresvport", []))
        ),
        (PERFECT.replace("vers=4.1", "vers=4,vers=4.1"), (), []),
        (PERFECT.replace("vers=4.1", "vers=4,vers=4.1"), ("--nfs-utils", "2.5.2"), []),
        (PERFECT.replace("vers=4.1", "vers=4,vers=4.1"), ("--nfs-utils", "1:2.6.4-3+deb12u1"), ["NFS309"]),
        (f"{PASTED}sec=ntlm 0 0\n", (), []),
        (f"{PASTED}sec=ntlm 0 0\n", ("--kernel", "5.15"), ["NFS309"]),
    ],
)
def test_the_kernel_and_nfs_utils_are_those_that_are_given(
    text: str, options: tuple[str, ...], ids: list[str], check: Callable[..., Run]
) -> None:
    findings = check(text, *options, "--select", "NFS2,NFS3,NFS5", "--format", "json").document["findings"]
    assert [finding["rule"] for finding in findings] == ids


@pytest.mark.parametrize(
    ("text", "rules", "needed"),
    [
        (PERFECT, "NFS501,NFS309,NFS502", {"NFS501": ["kernel"], "NFS502": ["host"]}),
        ("/dev/sda1 /a ext4 rw 0 1\n", "NFS501", {}),
        (PERFECT.replace("vers=4.1", "vers=4,vers=4.1"), "NFS309", {"NFS309": ["nfs_utils"]}),
        (PERFECT.replace("nconnect=4,", ""), "NFS203,NFS305", {}),
        (PERFECT.replace("noresvport,", ""), "NFS203,NFS305", {"NFS203": ["kernel"], "NFS305": ["kernel"]}),
        (f"{PASTED}sec=ntlm 0 0\n", "NFS309,NFS501", {"NFS309": ["kernel"]}),
        (f"{PASTED}vers=3.1.1 0 0\n", "NFS309,NFS501,NFS505", {}),
        (PERFECT.replace("vers=4.1", "vers=4.1,softreval"), "NFS309", {"NFS309": ["kernel"]}),
    ],
)
def test_a_rule_that_needs_a_version_for_a_line_names_the_option(
    text: str, rules: str, needed: dict[str, list[str]], check: Callable[..., Run]
) -> None:
    run = check(text, "--select", rules, "--format", "json")
    assert run.status == 0
    assert {row["rule"]: row["needs"] for row in run.document["skipped"]} == needed
    shown = check(text, "--select", rules).out
    for need, option in (("kernel", "--kernel RELEASE"), ("nfs_utils", "--nfs-utils VERSION")):
        assert shown.count(option) == ([need] in needed.values())


def test_remedies_name_the_line_and_no_command_for_a_running_host(check: Callable[..., Run]) -> None:
    lines = (
        "srv:/a /mnt/a nfs soft,rsize=4096,udp,nolock 0 0",
        "srv:/b /mnt/a nfs vers=4.1,nconnect=8 0 0",
        "srv:/c /mnt/c nfs vers=4.1,sec=krb5,nconnect=8,remount 0 0",
        "//srv/d /mnt/d cifs vers=1.0,cache=none,password=x 0 0",
        f"{HOST}:/sa1/e /mnt/e nfs vers=4.1,nconnect=16 0 0",
        "10.1.2.3:/f /mnt/f aznfs vers=3,sec=krb5 0 0",
    )
    findings = check("\n".join(lines) + "\n", "--format", "json").document["findings"]
    assert len({finding["rule"] for finding in findings}) > len(lines)
    assert [one for one in findings if re.search("sudo|systemctl|umount", one["remedy"])] == []
    assert {one["subject"].partition(":")[0] for one in findings} == {"-"}


@pytest.mark.parametrize("form", ["json", "junit", "sarif"])
def test_programs_get_the_kernel_that_was_given(form: str, check: Callable[..., Run]) -> None:
    run = check(PERFECT, *OLD, "--format", form)
    assert run.status == 1
    if form == "json":
        assert run.document["kernel"] == {"release": OLD[1], "distribution": None}
        assert check(PERFECT, "--format", "json").document["kernel"]["release"] is None
    elif form == "junit":
        xmlschema.XMLSchema(JUNIT).validate(run.out)
        assert run.out.count('<testcase name="NFS203 nconnect-unsupported-kernel: -:1"') == 1
    else:
        (first, *_) = json.loads(run.out)["runs"][0]["results"]
        assert first["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "-"}
