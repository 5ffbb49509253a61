from __future__ import annotations

import pytest

from nfstuned.errors import ConfigError
from nfstuned.model.policy import Policy, Prometheus
from nfstuned.parse.config.policy import parse_config
from nfstuned.view.policy import policy_text

A, B = "/etc/nfstuned/nfstuned.toml", "/etc/nfstuned/conf.d/50-site.toml"
REMOTE = (
    "other machines would reach it, and it asks nobody for a password; "
    "allowed: an address of 127.0.0.0/8, [::1], unix:/PATH, or allow_remote = true beside it"
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


def test_there_are_no_metrics_unless_somebody_asks() -> None:
    assert not parse("").prometheus.wanted
    assert not parse("prometheus.max_mounts = 9").prometheus.wanted


@pytest.mark.parametrize(
    "listen", ["127.0.0.1:9814", "127.8.9.1:1", "[::1]:65535", "unix:/run/nfstuned/m.sock"]
)
def test_what_only_this_machine_reaches_is_allowed(listen: str) -> None:
    assert parse(f'prometheus.listen = "{listen}"').prometheus == Prometheus(listen)


@pytest.mark.parametrize("listen", ["0.0.0.0:9814", "10.1.2.3:9814", "[::]:9814", "[::ffff:10.0.0.1]:80"])
def test_an_address_that_others_reach_needs_a_word(listen: str) -> None:
    assert problem(f'[prometheus]\nlisten = "{listen}"') == f'{A}:2: prometheus.listen: "{listen}": {REMOTE}'
    policy = parse(f'[prometheus]\nlisten = "{listen}"', "prometheus.allow_remote = true")
    assert policy.prometheus == Prometheus(listen, allow_remote=True)


def test_a_later_file_replaces_single_keys() -> None:
    first = '[prometheus]\nlisten = "0.0.0.0:9814"\ntextfile = "/a/x.prom"\nmax_mounts = 5'
    second = '[prometheus]\nlisten = "127.0.0.1:9814"'
    assert parse(first, second).prometheus == Prometheus("127.0.0.1:9814", textfile="/a/x.prom", max_mounts=5)
    assert problem(second, first) == f'{B}:2: prometheus.listen: "0.0.0.0:9814": {REMOTE}'


@pytest.mark.parametrize(("key", "value"), [("listen", "127.0.0.1:9814"), ("textfile", "/a/x.prom")])
def test_without_samples_there_is_nothing_to_count(key: str, value: str) -> None:
    text = f'daemon.sample_interval = "0"\nprometheus.{key} = "{value}"'
    assert problem(text) == f'{A}:2: prometheus.{key}: "{value}": {UNSAMPLED}'


ADDRESS = 'allowed: an address and a port such as "127.0.0.1:9814" or "[::1]:9814", or "unix:/PATH"'
PATH = "allowed: an absolute path without .. that ends with .prom"
SOCKET = "allowed: an absolute path without .., of at most 107 bytes"
KEYS = "allow_remote, listen, max_mounts, textfile"
HOST = "allowed: an address such as 127.0.0.1 or [::1] before the port"


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("listen", "9814", ADDRESS),
        ("listen", '"localhost:9814"', ADDRESS),
        ("listen", '"127.0.0.1"', ADDRESS),
        ("listen", '"127.0.0.1:0"', ADDRESS),
        ("listen", '"unix:metrics.sock"', ADDRESS),
        ("listen", '"127.0.0.1:65536"', "allowed: a port from 1 to 65535"),
        ("listen", '"127.0.0.300:1"', f"'127.0.0.300' does not appear to be an IPv4 or IPv6 address; {HOST}"),
        ("listen", '"[::1::]:1"', f"'::1::' does not appear to be an IPv4 or IPv6 address; {HOST}"),
        ("listen", '"unix:/run/../x"', SOCKET),
        ("listen", f'"unix:/{"x" * 107}"', SOCKET),
        ("textfile", '"x.prom"', PATH),
        ("textfile", '"/a/../x.prom"', PATH),
        ("textfile", '"/a/x.txt"', PATH),
        ("textfile", "true", PATH),
        ("max_mounts", "0", "allowed: a number from 1 to 10000"),
        ("max_mounts", "10001", "allowed: a number from 1 to 10000"),
        ("max_mounts", '"5"', "allowed: a number from 1 to 10000"),
        ("allow_remote", "1", "allowed: true or false"),
        ("listne", '"x"', f'unknown key; did you mean "listen"? allowed: {KEYS}'),
    ],
)  # fmt: skip
def test_a_wrong_value_is_told_with_what_is_allowed(key: str, value: str, allowed: str) -> None:
    shown = value if len(value) <= 80 else value[:77] + "..."
    assert problem(f"[prometheus]\n{key} = {value}") == f"{A}:2: prometheus.{key}: {shown}: {allowed}"


def test_what_config_show_prints_is_the_same_configuration() -> None:
    policy = parse(
        '[prometheus]\nlisten = "0.0.0.0:9814"\nallow_remote = true\ntextfile = "/a/b.prom"\nmax_mounts = 7'
    )
    shown = policy_text(policy)
    assert 'listen = "0.0.0.0:9814"\nallow_remote = true\ntextfile = "/a/b.prom"\nmax_mounts = 7\n' in shown
    assert parse(shown).prometheus == policy.prometheus
    assert "[prometheus]" not in policy_text(parse(""))
