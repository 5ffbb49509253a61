from __future__ import annotations

from pathlib import Path

from nfstuned.host.installed import baked_text, contents
from nfstuned.model.change import FILES, RULE
from tests.check.hosts import text


def test_each_file_of_this_installation_has_a_place_below_the_prefix() -> None:
    texts = contents("usr/local", "/opt/nfstuned/bin/nfstuned")
    assert set(texts) == {f"usr/local/{place}" for place in FILES.values()}
    unit = texts["usr/local/lib/systemd/system/nfstuned.service"]
    assert unit.count(b"/opt/nfstuned/bin/nfstuned") == 4
    assert b"/usr/bin/nfstuned" not in unit


def test_the_host_that_shows_the_rule_has_the_rule_that_is_written() -> None:
    shown = text("image-daemonless", "etc/udev/rules.d/99-nfstuned.rules")
    assert baked_text(RULE) == (Path(__file__).parents[2] / RULE).read_bytes() == shown.encode()
