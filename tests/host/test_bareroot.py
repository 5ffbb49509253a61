from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.image_root import BareRoot

HIDDEN = "etc/modprobe.d/slots.conf"


@pytest.fixture
def root(tmp_path: Path) -> BareRoot:
    for name in (HIDDEN, "etc/modprobe.d/other.conf", "etc/slots.conf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "etc/link").symlink_to("slots.conf")
    return BareRoot(str(tmp_path), {HIDDEN, "etc/link"})


def test_what_is_hidden_is_not_there_whoever_asks(root: BareRoot) -> None:
    assert not root.exists(HIDDEN)
    assert not root.executable(HIDDEN)
    assert root.read_or_empty(HIDDEN) == ""
    assert root.link("etc/link") is None
    assert root.names("etc/modprobe.d") == ["other.conf"]
    with pytest.raises(FileNotFoundError):
        root.read(HIDDEN)


def test_all_else_is(root: BareRoot) -> None:
    assert root.exists("etc/modprobe.d/other.conf")
    assert root.executable("etc/slots.conf")
    assert root.read("etc/slots.conf") == "text"
    assert root.names("etc") == ["modprobe.d", "slots.conf"]
