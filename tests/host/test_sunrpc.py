"""The requests that clients wait for, over files as debugfs has them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from nfstuned.errors import ParseError
from nfstuned.host.root import Root
from nfstuned.model.status import Requests, RpcRequest
from nfstuned.parse.proc.sunrpc import read_requests


def asked(tree: Path, client: str, tasks: str, xprt: str = "3") -> None:
    """Make what debugfs has of an RPC client, as Linux 5.10 to 7.3 show it."""
    folder = tree / "sys/kernel/debug/sunrpc/rpc_clnt" / client
    transport = tree / "sys/kernel/debug/sunrpc/rpc_xprt" / xprt
    folder.mkdir(parents=True)
    transport.mkdir(parents=True, exist_ok=True)
    (folder / "tasks").write_text(tasks)
    (folder / "xprt").symlink_to(f"../../rpc_xprt/{xprt}")
    (transport / "info").write_text("netid: tcp\naddr:  10.10.10.10\nport:  2049\nstate: 0x12\n")


WAITS = (
    "   37 c805      0 0xa 0xd90ecb7b    11260 nfs_pgio_common_ops [nfs] nfsv4 WRITE a:call_status [sunrpc] "
    "q:xprt_pending\n"
)


def test_a_request_is_its_clients_whose_number_debugfs_has_in_hexadecimal(tmp_path: Path) -> None:
    asked(tmp_path, "5", "")
    asked(tmp_path, "a", WAITS)
    links = tmp_path / "sys/fs/nfs/0:48"
    links.mkdir(parents=True)
    (links / "nfs_client").symlink_to("../../../kernel/sunrpc/rpc-clients/clnt-10")
    (links / "nfs_state_client").symlink_to("../../../kernel/sunrpc/rpc-clients/clnt-5")
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


def test_without_debugfs_nothing_is_known_and_that_is_no_fault(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    assert read_requests(root, ["0:48"]) is None
    assert tuple(root.faults) == ()


def test_a_client_that_goes_meanwhile_has_no_request(tmp_path: Path) -> None:
    asked(tmp_path, "a", WAITS)
    (tmp_path / "sys/kernel/debug/sunrpc/rpc_clnt/b").mkdir()
    found = read_requests(Root(str(tmp_path)), [])
    assert found is not None
    assert [request.client for request in found.waiting] == [10]


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EINVAL, errno.EIO])
def test_so_has_one_whose_file_is_about_to_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """tasks_open() says EINVAL of a client that nobody uses any more, and debugfs EIO of a file that went."""
    asked(tmp_path, "a", WAITS)
    asked(tmp_path, "b", "")
    opened = os.open

    def refuse(path: str, *arguments: int) -> int:
        if str(path).endswith("/b/tasks"):
            raise OSError(number, os.strerror(number), path)
        return opened(path, *arguments)

    monkeypatch.setattr(os, "open", refuse)
    root = Root(str(tmp_path))
    found = read_requests(root, [])
    assert found is not None
    assert [request.client for request in found.waiting] == [10]
    assert tuple(root.faults) == ()


def test_what_is_no_list_of_tasks_names_its_file(tmp_path: Path) -> None:
    asked(tmp_path, "a", "tasks: 1\n")
    with pytest.raises(ParseError, match="rpc_clnt/a/tasks:1: not a task"):
        read_requests(Root(str(tmp_path)), [])
