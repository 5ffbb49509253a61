"""Over every host tree: no finding missed, none too many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nfstuned.cli.examine import Scope, examine
from nfstuned.core.diagnose import diagnose
from nfstuned.core.rules import RULES
from nfstuned.errors import ConfigError
from nfstuned.host.configload import load, load_builtin
from nfstuned.host.imageroot import ImageRoot
from nfstuned.host.root import Root
from tests.check import hosts

if TYPE_CHECKING:
    from pathlib import Path

    from nfstuned.model.policy import Policy


@pytest.mark.parametrize("name", hosts.names())
def test_a_host_has_the_findings_of_its_truth_and_no_others(name: str, tmp_path: Path) -> None:
    case = hosts.load(name)
    arguments = case.truth.get("arguments", [])
    folder = case.build(tmp_path / "host")
    image = "--root" in arguments
    root = (ImageRoot if image else Root)(str(folder))
    scope = Scope(image, "--offline" in arguments, float(case.truth.get("sample_s", 0)))
    told = hosts.Told(case.network, hosts.HOSTS / name / hosts.LATER, folder)
    facts = examine(root, _policy(root), scope, told)
    diagnosis = diagnose(facts, RULES)
    assert [f"{one.rule} {one.subject}" for one in diagnosis.findings] == case.truth["findings"], "\n".join(
        f"{one.rule} {one.subject}: {one.message}" for one in diagnosis.findings
    )


def _policy(root: Root) -> Policy:
    try:
        return load(root)
    except ConfigError:
        return load_builtin()
