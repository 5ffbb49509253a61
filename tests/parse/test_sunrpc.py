from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.model.kernel import Switch
from nfstuned.model.stalls import RpcRequest
from nfstuned.parse.proc.sunrpc import (
    parse_endpoint,
    parse_requests,
    parse_switch_info,
    parse_transport_info,
    parse_transport_name,
    parse_transport_state,
)
from tests.parse.conftest import Captured
from tests.parse.damage import any_text, damaged, tokens_damaged

REAL = "num_xprts=4\nnum_active=4\nnum_unique_destaddr=1\nqueue_len=0\n"


def test_a_real_switch_counts_its_transports(captured_6_12: Captured) -> None:
    assert parse_switch_info(captured_6_12("xprt-switches/switch-2/xprt_switch_info"), "f") == Switch(
        4, 4, 1, 0
    )


def test_every_real_transport_is_understood(captured_6_12: Captured) -> None:
    folders = sorted((captured_6_12.folder / "xprt-switches").glob("*/xprt-*/"))
    assert len(folders) == 6
    for folder in folders:
        name = f"xprt-switches/{folder.parent.name}/{folder.name}"
        number, protocol = parse_transport_name(folder.name, name)
        assert folder.name == f"xprt-{number}-{protocol}"
        assert parse_transport_state(captured_6_12(f"{name}/xprt_state"), name) == {"CONNECTED", "BOUND"}
        info = parse_transport_info(captured_6_12(f"{name}/xprt_info"), name)
        assert len(info) == 14
        assert info["last_used"] > 0


# early versions append a NUL byte (commit 0280e3c58f92)
@pytest.mark.parametrize("text", ["", "\0", "\n", "<closed>\n", "<closed>\n\0", "<not a socket>\n"])
def test_a_connection_that_is_down_says_nothing(text: str) -> None:
    assert parse_transport_info(text, "f") == {}
    assert parse_transport_state(text, "f") == frozenset()


def test_a_text_without_a_value_is_no_connection_that_is_down() -> None:
    with pytest.raises(ParseError, match=r"^f:1: not a transport's values: 'src_port 884'"):
        parse_transport_info("src_port 884\n", "f")


def test_values_may_be_negative_and_lines_without_value_do_not_count() -> None:
    assert parse_transport_info("a=-3\n\nnoise\nb=4\n\0", "f") == {"a": -3, "b": 4}


# rpc_sysfs_xprt_state_show of net/sunrpc/sysfs.c: CLOSED stands alone
def test_a_closed_transport_says_so() -> None:
    assert parse_transport_state("state=CLOSED\n", "f") == {"CLOSED"}
    assert parse_transport_state("state=      OFFLINE REMOVE\n", "f") == {"OFFLINE", "REMOVE"}


@pytest.mark.parametrize("text", ["CONNECTED", "states=CONNECTED", "state"])
def test_a_state_that_is_none_is_an_error(text: str) -> None:
    with pytest.raises(ParseError, match=f"^f:1: not a transport's state: '{text}'"):
        parse_transport_state(text, "f")


def test_a_damaged_switch_is_located() -> None:
    with pytest.raises(ParseError, match=r"^f:2: num_active is not a number: '4x'"):
        parse_switch_info(REAL.replace("active=4", "active=4x"), "f")
    with pytest.raises(ParseError, match=r"^f:1: no line 'queue_len'=\.\.\.: 'num_xprts=4"):
        parse_switch_info(REAL.replace("queue_len=0\n", ""), "f")


@pytest.mark.parametrize(
    "name", ["xprt_switch_info", "xprt-x-tcp", "xprt-7", "switch-7", "xprt-7-tcp/..", ""]
)
def test_other_names_are_no_transports(name: str) -> None:
    with pytest.raises(ParseError, match=r"^f:1: not the name of a transport: "):
        parse_transport_name(name, "f")


def test_protocols_with_a_hyphen_are_understood() -> None:
    assert parse_transport_name("xprt-12-tcp-tls", "f") == (12, "tcp-tls")


@given(st.one_of(damaged(REAL), tokens_damaged(REAL), any_text))
def test_nothing_but_parse_errors_comes_out(text: str) -> None:
    for parse in (parse_switch_info, parse_transport_info, parse_transport_state, parse_transport_name):
        with suppress(ParseError):
            parse(text, "f")


TASKS_510 = (
    "  154 5281      0 0x2 0x964d86ef      207 nfs41_sequence_ops [nfsv4] nfsv4 SEQUENCE a:call_bind "
    "[sunrpc] q:delayq\n"
    "  104 c881      0 0x7 0x660745a    12515 nfs4_close_ops [nfsv4] nfsv4 CLOSE a:call_status [sunrpc] "
    "q:xprt_pending\n"
)
"""Of Linux 5.10 beside a server that was stopped."""
TASKS_73 = (
    "   37 c805      0 0x7 0xd90ecb7b    11260 nfs_pgio_common_ops [nfs] nfsv4 WRITE a:call_status [sunrpc] "
    "q:xprt_pending\nclnt[10.10.10.10:2049] RPC tasks[1]\n"
)
"""Of Linux 7.3 beside a server whose packets were dropped."""


def test_real_tasks_are_requests_with_their_identity() -> None:
    assert list(parse_requests(TASKS_510, 2, "f")) == [
        (RpcRequest(2, 154, 0x964D86EF, "SEQUENCE"), 4),
        (RpcRequest(2, 104, 0x0660745A, "CLOSE"), 4),
    ]
    assert list(parse_requests(TASKS_73, 7, "f")) == [(RpcRequest(7, 37, 0xD90ECB7B, "WRITE"), 4)]


def test_a_full_page_of_tasks_may_end_within_a_line() -> None:
    """Since Linux 6.14 the number of tasks comes last: what fits of it, and a NUL."""
    for end in ("clnt[10.10.10.10:2049] RPC tasks[64]\n", "clnt[10.10.1\0", "c\0", "\0"):
        assert len(list(parse_requests(TASKS_73 + end, 7, "f"))) == 1
    for whole in range(TASKS_73.index("\n")):
        assert len(list(parse_requests(TASKS_73 + TASKS_73[:whole] + "\0", 7, "f"))) == 1


def test_a_task_without_an_xid_has_not_formed_its_request() -> None:
    waits = (
        "    9 c881      0 0x7 0x0      207 nfs4_open_ops [nfsv4] nfsv4 OPEN a:call_reserve [sunrpc] q:none\n"
    )
    assert list(parse_requests(waits, 2, "f")) == [(RpcRequest(2, 9, 0, "OPEN"), 4)]


@pytest.mark.parametrize("program", ["nlockmgrv4 LOCK", "nfs4_cbv1 CB_COMPOUND", "rpcbindv2 GETPORT"])
def test_what_is_not_of_a_mount_is_left_out(program: str) -> None:
    line = f"    9 c881      0 0x7 0x1      207 0xffffffffc0a01020 {program} a:call_status [sunrpc] q:none\n"
    assert list(parse_requests(line, 2, "f")) == []
    acl = line.replace(program, "nfsaclv3 GETACL")
    assert list(parse_requests(acl, 2, "f")) == [(RpcRequest(2, 9, 1, "GETACL"), 3)]


@given(damaged(TASKS_510 + TASKS_73) | any_text)
def test_damaged_tasks_are_told_or_understood(text: str) -> None:
    with suppress(ParseError):
        assert all(request.operation for request, _ in parse_requests(text, 1, "f"))


def test_a_transport_says_which_server_it_leads_to() -> None:
    assert parse_endpoint("netid: tcp\naddr:  10.10.10.10\nport:  2049\nstate: 0x12\n") == "10.10.10.10:2049"
    assert parse_endpoint("netid: tcp6\naddr:  fe80::1\nport:  2049\n") == "[fe80::1]:2049"
    assert not parse_endpoint("")
