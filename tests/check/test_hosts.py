"""Over every host tree: no finding missed, none too many."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nfstuned.app.facts import Scope, examine
from nfstuned.core.rules.catalogue import RULES, run_rules
from nfstuned.host.policy import load_policy
from nfstuned.host.root import Root
from nfstuned.model.facts import Finding, Severity
from tests.check import hosts
from tests.tree import put


@pytest.mark.parametrize("name", hosts.names())
def test_a_host_has_its_findings(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    case = hosts.load(name)
    diagnosis = run_rules(hosts.facts_of(case, tmp_path / "host"), RULES)
    findings = diagnosis.findings
    assert {f"{one.subject}: {one.message}" for one in findings}.isdisjoint(diagnosis.doubts)
    assert list(map(hosts.label, findings)) == case.findings, "\n".join(
        f"{one.rule} {one.subject}: {one.message}" for one in findings
    )
    assert [one for one in findings if not _is_whole(one)] == []
    messages = {f"{one.rule} {one.subject}": _without_time(one) for one in findings}
    if request.config.getoption("--update-golden"):
        case = case.update(messages)
    assert {key: messages[key] for key in case.messages} == case.messages, (
        "pytest --update-golden updates texts"
    )


@pytest.mark.parametrize(("longer", "found"), [(1, ["NFS510"]), (2, [])])
def test_a_measured_rate_is_by_the_time_that_passed(longer: int, found: list[str], tmp_path: Path) -> None:
    class Busy(hosts.World):
        def pause(self, seconds: float) -> float:
            return super().pause(seconds) * longer

    name = "egress-at-limit"
    case = hosts.load(name)
    folder = case.build(tmp_path / "host")
    world = Busy(case.network, case.host.later, folder)
    root = Root(str(folder))
    facts = examine(root, load_policy(root), case.scope, world)
    assert facts.measured is not None
    assert facts.measured.seconds == longer * case.scope.sample_s
    assert [one.rule for one in run_rules(facts, RULES).findings if one.rule == "NFS510"] == found


def _without_time(finding: Finding) -> str:
    """Return a finding's message; how long a mount has stalled is by the clock of this machine."""
    return re.sub(r"\b\d+ s\b", "N s", finding.message) if finding.rule == "NFS411" else finding.message


def _is_whole(finding: Finding) -> bool:
    """Whether a finding has a message, a remedy and a source, in texts without a gap."""
    texts = (finding.message, finding.observed, finding.expected, finding.remedy, finding.source)
    gap = any(text != text.strip() or "  " in text or "None" in text for text in texts)
    complete = finding.message and finding.source and (finding.remedy or finding.severity is Severity.INFO)
    return bool(complete) and not gap and not finding.remedy.endswith((",", "then", ";", "&&"))


HUGE = "9" * 5000
NUMBERS = ("nconnect", "port", "rsize", "actimeo", "acregmin", "minorversion", "max_channels")
OPTIONS = ",".join(f"{name}={HUGE}" for name in NUMBERS)
TEXTS = {
    "etc/fstab": f"10.10.10.10:/a /a nfs vers=4,{OPTIONS} 0 0\n//10.10.10.10/b /b cifs {OPTIONS} 0 0\n",
    "run/mount/utab": f"SRC=sa1.file.core.windows.net:/sa1/share TARGET=/mnt/share ATTRS={OPTIONS}\n",
    "etc/nfsmount.conf": f"[ NFSMount_Global_Options ]\nnconnect={HUGE}\nrsize={HUGE}k\nport={HUGE}\n",
    "etc/nfs.conf": f"[nfsrahead]\nnfs4={HUGE}\n",
    "etc/modprobe.d/nfs.conf": f"options nfs max_session_slots={HUGE}\n",
    "etc/sysctl.d/nfs.conf": f"sunrpc.tcp_max_slot_table_entries={HUGE}\n",
    "etc/udev/rules.d/99-nfs.rules": f'SUBSYSTEM=="bdi", ATTR{{read_ahead_kb}}="{HUGE}"\n',
    "sys/class/bdi/0:46/read_ahead_kb": f"{HUGE}\n",
    "sys/module/nfs/parameters/max_session_slots": f"{HUGE}\n",
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_number_is_too_long_for_a_check(name: str, tmp_path: Path) -> None:
    case = hosts.load("clean")
    folder = case.build(tmp_path / "host")
    put(folder / name, TEXTS[name])
    root = Root(str(folder))
    facts = examine(root, load_policy(root), Scope(), hosts.World(case.network))
    assert "NFS000" not in {one.rule for one in run_rules(facts, RULES).findings}


def test_an_absent_target_is_another_reason_than_a_target_that_nothing_starts(tmp_path: Path) -> None:
    case = hosts.load("image-targets-that-nothing-starts")
    units = hosts.facts_of(case, tmp_path / "host").snapshot.unstarted
    absent = {unit.target: unit.absent for unit in units if unit.target}
    there = dict.fromkeys(("own.target", "graphical.target", "remote-fs.target"), False)
    assert absent == {"multiuser.target": True, **there}
