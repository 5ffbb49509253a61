from __future__ import annotations

from dataclasses import fields
from operator import attrgetter

import pytest

from nfstuned.model.policy import (
    Assignment,
    Match,
    Policy,
    Profile,
    Prometheus,
    ReadAhead,
    Source,
    policy_from_json,
    policy_to_json,
)

FULL = Policy(
    (
        Profile("a", ReadAhead(kb=15360), 16384, lower=True, nconnect=4, nconnect_max=4, rsize_max=262144),
        Profile("b", ReadAhead(times_rsize=15), sources=(Source("x", "2026", ("read_ahead_kb",), "X"),)),
        Profile("c", actimeo_min=30, max_channels=4, inherits="a"),
    ),
    (Assignment(Match(("10.0.0.0/8", "nas"), ("/a",), ("/mnt \udcff",)), "a", "policy 1 of x.toml"),),
    sample_interval_s=0.0,
    restore_on_stop=True,
    nconnect_mode="persist",
    sample_file="/var/log/x.jsonl",
    sample_file_bytes=0,
    sample_files_kept=9,
    prometheus=Prometheus("/srv/x.prom", max_mounts=7),
    files=("/etc/nfstuned/nfstuned.toml",),
)
parts = attrgetter(*(field.name for field in fields(Policy)))


@pytest.mark.parametrize("policy", [FULL, Policy(())])
def test_a_policy_survives_the_way_through_json(policy: Policy) -> None:
    again = policy_from_json(policy_to_json(policy))
    assert parts(again) == parts(policy)


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "3", '{"profiles": 3}', '{"profiles": [{}]}'),
        '{"profiles": [], "assignments": [], "files": [], "x": 1}',
    ],
)
def test_anything_else_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"policy|Expecting"):
        policy_from_json(text)
