from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given

from nfstuned.errors import ParseError
from nfstuned.model.status import RpcRequest
from nfstuned.parse.proc.sunrpc import (
    parse_endpoint,
    parse_requests,
)
from tests.parse.damage import any_text, damaged

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
