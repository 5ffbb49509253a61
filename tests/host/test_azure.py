from __future__ import annotations

import time

import pytest

from nfstuned.host.network.outside import vm_size
from tests.host.servers import http_server, silent_port


def test_the_size_is_what_the_service_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with http_server(200, "Standard_D16_v4") as (url, seen):
        assert vm_size(url) == ("Standard_D16_v4", "")
    assert seen == ["/size?format=text true"]


@pytest.mark.parametrize(
    ("status", "body", "problem"),
    [
        (404, "Not found", "status 404"),
        (200, "<html>a captive portal</html>", "not a size"),
        (200, "", "not a size"),
    ],
)
def test_anything_else_is_no_size(status: int, body: str, problem: str) -> None:
    with http_server(status, body) as (url, _):
        size, said = vm_size(url)
    assert size is None
    assert said.startswith("VM size from Azure's metadata service: ")
    assert problem in said


def test_a_service_that_never_answers_is_given_up() -> None:
    with silent_port() as port:
        begun = time.monotonic()
        size, said = vm_size(f"http://127.0.0.1:{port}/", 0.3)
        assert time.monotonic() - begun < 30, "the limit of 0.3 s did not hold"
    assert size is None
    assert said
