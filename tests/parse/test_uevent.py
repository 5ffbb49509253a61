from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.model.kernel import Uevent
from nfstuned.parse.proc.superblocks import parse_uevent


def message(action: str = "add", path: str = "/devices/virtual/bdi/0:43", subsystem: str = "bdi") -> bytes:
    fields = [
        f"{action}@{path}",
        f"ACTION={action}",
        f"DEVPATH={path}",
        f"SUBSYSTEM={subsystem}",
        "SEQNUM=832",
        "",
    ]
    return "\0".join(fields).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize("action", ["add", "remove", "change"])
def test_a_bdi_event_names_its_device(action: str) -> None:
    assert parse_uevent(message(action), "bdi") == Uevent(action, "bdi", "0:43")


def test_events_of_other_subsystems_are_none() -> None:
    assert parse_uevent(message(subsystem="bdisk"), "bdi") is None
    assert parse_uevent(message(subsystem="xbdi"), "bdi") is None
    assert parse_uevent(message(subsystem="net"), "bdi") is None


def test_the_short_path_of_a_removed_transport_is_understood() -> None:
    event = parse_uevent(message("remove", "/switch-1/xprt-0-tcp", "sunrpc"), "sunrpc")
    assert event == Uevent("remove", "sunrpc", "xprt-0-tcp")


def test_messages_of_udev_itself_are_none() -> None:
    assert parse_uevent(b"libudev\0\xfe\xed\xca\xfe(\0\0\0ACTION=add\0SUBSYSTEM=bdi\0", "bdi") is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"add@/devices/virtual/bdi/0:43\0",
        b"add@/devices/virtual/bdi/0:43\0SUBSYSTEM=bdi",
        b"@/devices/virtual/bdi/0:43\0SUBSYSTEM=bdi\0",
        b"SUBSYSTEM=bdi\0",
    ],
)
def test_a_message_that_was_cut_is_none(data: bytes) -> None:
    assert parse_uevent(data, "bdi") is None


@given(st.binary(), st.integers(0, 120))
def test_no_datagram_breaks_the_parser(data: bytes, cut: int) -> None:
    for text in (data, message()[:cut] + data, data + message()):
        parse_uevent(text, "bdi")


def test_names_that_are_not_utf_8_come_through() -> None:
    assert parse_uevent(b"add@/x/\xff\0SUBSYSTEM=\xfe\0", "\udcfe") == Uevent("add", "\udcfe", "\udcff")
