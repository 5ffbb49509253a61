"""The built-in policy, validated beforehand."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from nfstuned.host.config import FILE, builtin_policy
from nfstuned.host.policy import builtin_tables
from nfstuned.parse.config.policy import parse_config


def test_it_is_what_the_profiles_files_say(golden: Callable[[Path, str], None]) -> None:
    policy = parse_config(builtin_tables(), ())
    golden(Path(FILE), json.dumps(asdict(policy), indent=1) + "\n")
    assert asdict(builtin_policy()) == asdict(policy)
