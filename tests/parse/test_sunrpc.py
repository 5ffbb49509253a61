from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.stalls import Requests, RpcRequest
from nfstuned.parse.proc.sunrpc import parse_endpoint, parse_requests, read_requests
from tests.tree import link, put

TASKS_510 = (
    "  154 5281      0 0x2 0x964d86ef      207 nfs41_sequence_ops [nfsv4] nfsv4 SEQUENCE a:call_bind "
    "[sunrpc] q:delayq\n"
    "  104 c881      0 0x7 0x660745a    12515 nfs4_close_ops [nfsv4] nfsv4 CLOSE a:call_status [sunrpc] "
    "q:xprt_pending\n"
)
"""Of Linux 5.10 beside a server that was stopped."""
WAITS = (
    "   37 c805      0 0x7 0xd90ecb7b    11260 nfs_pgio_common_ops [nfs] nfsv4 WRITE a:call_status [sunrpc] "
    "q:xprt_pending\n"
)
TASKS_73 = f"{WAITS}clnt[10.10.10.10:2049] RPC tasks[1]\n"
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
        "    9 c881      0 0x7 0x0      207 nfs4_open_ops [nfsv4] nfsv4 OPEN a:call_reserve [sunrpc] q:none"
    )
    assert list(parse_requests(f"{waits}\n", 2, "f")) == [(RpcRequest(2, 9, 0, "OPEN"), 4)]


@pytest.mark.parametrize("program", ["nlockmgrv4 LOCK", "nfs4_cbv1 CB_COMPOUND", "rpcbindv2 GETPORT"])
def test_what_is_not_of_a_mount_is_left_out(program: str) -> None:
    line = f"    9 c881      0 0x7 0x1      207 0xffffffffc0a01020 {program} a:call_status [sunrpc] q:none\n"
    assert list(parse_requests(line, 2, "f")) == []
    acl = line.replace(program, "nfsaclv3 GETACL")
    assert list(parse_requests(acl, 2, "f")) == [(RpcRequest(2, 9, 1, "GETACL"), 3)]


def test_a_version_of_too_many_digits_is_no_accident() -> None:
    with pytest.raises(ParseError):
        list(parse_requests(TASKS_510.replace("nfsv4", f"nfsv{'9' * 5000}"), 1, "f"))


def test_a_transport_says_which_server_it_leads_to() -> None:
    assert parse_endpoint("netid: tcp\naddr:  10.10.10.10\nport:  2049\nstate: 0x12\n") == "10.10.10.10:2049"
    assert parse_endpoint("netid: tcp6\naddr:  fe80::1\nport:  2049\n") == "[fe80::1]:2049"
    assert not parse_endpoint("")


def asked(tree: Path, client: str, tasks: str, xprt: str = "3") -> None:
    """Make what debugfs has of an RPC client, as Linux 5.10 to 7.3 show it."""
    folder = tree / "sys/kernel/debug/sunrpc/rpc_clnt" / client
    info = tree / "sys/kernel/debug/sunrpc/rpc_xprt" / xprt / "info"
    put(folder / "tasks", tasks)
    link(folder / "xprt", f"../../rpc_xprt/{xprt}")
    put(info, "netid: tcp\naddr:  10.10.10.10\nport:  2049\nstate: 0x12\n")


def test_a_request_is_its_clients_whose_number_debugfs_has_in_hexadecimal(tmp_path: Path) -> None:
    asked(tmp_path, "5", "")
    asked(tmp_path, "a", WAITS)
    links = tmp_path / "sys/fs/nfs/0:48"
    link(links / "nfs_client", "../../../kernel/sunrpc/rpc-clients/clnt-10")
    link(links / "nfs_state_client", "../../../kernel/sunrpc/rpc-clients/clnt-5")
    request = RpcRequest(10, 37, 0xD90ECB7B, "WRITE", "v4 10.10.10.10:2049")
    known = {"0:48": frozenset({10, 5}), "0:49": frozenset[int]()}
    assert read_requests(Root(str(tmp_path)), ["0:48", "0:49"]) == Requests((request,), known)


def test_before_linux_6_5_the_kernel_does_not_say_whose_clients_they_are(tmp_path: Path) -> None:
    asked(tmp_path, "a", WAITS)
    found = read_requests(Root(str(tmp_path)), ["0:48"])
    assert found is not None
    assert (len(found.waiting), found.clients) == (1, None)


def test_a_request_that_waits_for_a_slot_is_no_request_on_its_way(tmp_path: Path) -> None:
    slot = WAITS.replace("0xd90ecb7b", "0x0").replace("a:call_status", "a:rpc_prepare_task")
    asked(tmp_path, "a", WAITS + slot.replace("37 c805", "38 c805"))
    found = read_requests(Root(str(tmp_path)), [])
    assert found is not None
    assert [[request.task for request in them] for them in (found.waiting, found.queued)] == [[37], [38]]


@pytest.mark.parametrize("number", [None, errno.ENOENT, errno.EINVAL, errno.EIO])
def test_a_gone_client_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int | None) -> None:
    """tasks_open() says EINVAL of a client that nobody uses any more, and debugfs EIO of a file that went."""
    root, opened = Root(str(tmp_path)), os.open
    assert read_requests(root, ["0:48"]) is None
    asked(tmp_path, "a", WAITS)
    if number is None:
        (tmp_path / "sys/kernel/debug/sunrpc/rpc_clnt/b").mkdir()
    else:
        asked(tmp_path, "b", "")

    def refuse(path: str, *arguments: int) -> int:
        if number is not None and str(path).endswith("/b/tasks"):
            raise OSError(number, os.strerror(number), path)
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    found = read_requests(root, [])
    assert found is not None
    assert [request.client for request in found.waiting] == [10]
    assert tuple(root.faults) == ()


@pytest.mark.parametrize("text", ["tasks: 1\n", "a\x1d\x85b"])
def test_what_is_no_list_of_tasks_names_its_file(tmp_path: Path, text: str) -> None:
    asked(tmp_path, "a", text)
    with pytest.raises(ParseError, match="rpc_clnt/a/tasks:1: not a task"):
        read_requests(Root(str(tmp_path)), [])
