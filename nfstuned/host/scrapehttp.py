"""A scraper's request to its answer: bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable

from nfstuned.host.exposition import CONTENT_TYPE

_PLAIN = "text/plain; charset=utf-8"
_WORDS = 3
Answer = tuple[bytes, bytes]
"""Head and body; the body can be large, and is not copied."""


def _answer(status: str, text: bytes, kind: str = _PLAIN, more: str = "") -> Answer:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\n"
        f"{more}Connection: close\r\nX-Content-Type-Options: nosniff\r\n\r\n"
    )
    return head.encode(), text


TOO_LONG = b"".join(_answer("431 Request Header Fields Too Large", b"the request is too long\n"))


def answer(request: bytes, body: Callable[[], bytes | None]) -> Answer:
    """Return head and body for the request's first line; the fields of its header change nothing.

    `body` is asked for the metrics, and may return None: there are none yet.
    """
    words = request.partition(b"\n")[0].split()
    if len(words) != _WORDS or not words[2].startswith(b"HTTP/1."):
        return _answer("400 Bad Request", b"not a request of HTTP/1\n")
    method, path = words[0], words[1].partition(b"?")[0]
    if method not in {b"GET", b"HEAD"}:
        return _answer("405 Method Not Allowed", b"only GET and HEAD\n", more="Allow: GET, HEAD\r\n")
    if path == b"/metrics":
        metrics = body()
        if metrics is None:
            found = _answer(
                "503 Service Unavailable", b"no sample was taken yet\n", more="Retry-After: 1\r\n"
            )
        else:
            found = _answer("200 OK", metrics, CONTENT_TYPE)
    elif path == b"/":
        found = _answer("200 OK", b"nfstuned: the metrics are at /metrics\n")
    else:
        found = _answer("404 Not Found", b"there is only /metrics\n")
    return (found[0], b"") if method == b"HEAD" else found
