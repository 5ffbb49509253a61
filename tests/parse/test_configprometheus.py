from __future__ import annotations

import pytest

from nfstuned.errors import ConfigError
from nfstuned.model.policy import Policy, Prometheus
from nfstuned.parse.config.policy import parse_config
from nfstuned.view.policy import policy_text

A, B = "/etc/nfstuned/nfstuned.toml", "/etc/nfstuned/conf.d/50-site.toml"
SERVED = (
    "the service itself listens nowhere any more: take the line out, and let nfstuned-exporter.service serve "
    "the metrics (systemctl enable --now nfstuned-exporter, see METRICS in nfstuned(8))"
)
UNSAMPLED = (
    'metrics are counted when a sample is taken, and daemon.sample_interval is "0"; allowed: "1s" to "24h"'
)


def parse(*texts: str) -> Policy:
    return parse_config((), zip((A, B), texts, strict=False))


def problem(*texts: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(*texts)
    (only,) = caught.value.problems
    return only


@pytest.mark.parametrize(("key", "value"), [("listen", '"127.0.0.1:9814"'), ("allow_remote", "true")])
def test_a_key_of_the_former_server_names_the_unit_that_serves_now(key: str, value: str) -> None:
    assert problem(f"[prometheus]\n{key} = {value}") == f"{A}:2: prometheus.{key}: {value}: {SERVED}"


def test_a_later_file_replaces_single_keys() -> None:
    first = '[prometheus]\ntextfile = "/a/x.prom"\nmax_mounts = 5'
    assert parse(first, "prometheus.max_mounts = 9").prometheus == Prometheus("/a/x.prom", max_mounts=9)


def test_without_samples_there_is_nothing_to_count() -> None:
    text = 'daemon.sample_interval = "0"\nprometheus.textfile = "/a/x.prom"'
    assert problem(text) == f'{A}:2: prometheus.textfile: "/a/x.prom": {UNSAMPLED}'


PATH = "allowed: an absolute path without .. that ends with .prom"
KEYS = "max_mounts, textfile"


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("textfile", '"x.prom"', PATH),
        ("textfile", '"/a/../x.prom"', PATH),
        ("textfile", '"/a/x.txt"', PATH),
        ("textfile", "true", PATH),
        ("max_mounts", "0", "allowed: a number from 1 to 10000"),
        ("max_mounts", "10001", "allowed: a number from 1 to 10000"),
        ("max_mounts", '"5"', "allowed: a number from 1 to 10000"),
        ("textfiel", '"x"', f'unknown key; did you mean "textfile"? allowed: {KEYS}'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_what_is_allowed(key: str, value: str, allowed: str) -> None:
    shown = value if len(value) <= 80 else value[:77] + "..."
    assert problem(f"[prometheus]\n{key} = {value}") == f"{A}:2: prometheus.{key}: {shown}: {allowed}"


def test_config_show_prints_the_same_configuration() -> None:
    policy = parse('[prometheus]\ntextfile = "/a/b.prom"\nmax_mounts = 7')
    shown = policy_text(policy)
    assert 'textfile = "/a/b.prom"\nmax_mounts = 7\n' in shown
    assert parse(shown).prometheus == policy.prometheus
    assert "[prometheus]" not in policy_text(parse(""))
