"""`/run/mount/utab`: what user space asked for at each mount (libmount; mount.nfs writes its options there).

A private file of libmount, without a manual page: anything unknown in it is passed over.
"""

from __future__ import annotations

from nfstuned.errors import ParseError
from nfstuned.model.work import Request
from nfstuned.parse.fields import quoted, unescape
from nfstuned.parse.options import parse_options

FILE = "/run/mount/utab"
_NFS = ("addr", "vers")
"""mount.nfs always records the address that it resolved, and mostly the version that it negotiated."""


def parse_utab(text: str, file: str = FILE) -> tuple[Request | ParseError, ...]:
    """Return the NFS mounts' requests in the file's order, with the options that mount.nfs settled on."""
    found: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        values = dict(field.partition("=")[::2] for field in line.split(" "))
        options = unescape(values.get("ATTRS", ""))
        if not any(name in parse_options(options) for name in _NFS):
            continue
        source, point = values.get("SRC"), values.get("TARGET")
        if source and point:
            found.append(Request(unescape(source), unescape(point), options, file, position))
        else:
            found.append(ParseError(file, position, f"neither SRC nor TARGET may be missing: {quoted(line)}"))
    return tuple(found)
