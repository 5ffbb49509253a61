"""Over every host tree: no finding missed, none too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nfstuned.cli.examine import Scope, examine
from nfstuned.cli.policy import image_policy
from nfstuned.core.diagnose import diagnose
from nfstuned.core.rules import RULES
from nfstuned.host.configload import load
from nfstuned.host.imageroot import ImageRoot
from nfstuned.host.root import Root
from tests.check import hosts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", hosts.names())
def test_a_host_has_the_findings_of_its_truth_and_no_others(name: str, tmp_path: Path) -> None:
    case = hosts.load(name)
    arguments = case.truth.get("arguments", [])
    folder = case.build(tmp_path / "host")
    image = "--root" in arguments
    root = (ImageRoot if image else Root)(str(folder))
    scope = Scope(image, "--offline" in arguments, float(case.truth.get("sample_s", 0)))
    told = hosts.Told(case.network, hosts.HOSTS / name / hosts.LATER, folder)
    policy = image_policy(root) if image else load(root)
    facts = examine(root, policy, scope, told)
    diagnosis = diagnose(facts, RULES)
    assert [f"{one.rule} {one.subject}" for one in diagnosis.findings] == case.truth["findings"], "\n".join(
        f"{one.rule} {one.subject}: {one.message}" for one in diagnosis.findings
    )
