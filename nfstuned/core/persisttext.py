"""The text of nfstuned's own drop-in of nfsmount.conf, and how to tell that nobody else wrote in it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from nfstuned.model.intent import Setting
from nfstuned.model.kernel import decimal
from nfstuned.parse.nfsmount import PERSISTED, parse_nfsmount

FOREIGN = (
    "it is not as nfstuned wrote it: move what was added to a file of another name in that folder, delete "
    "it, and run this again"
)
"""Why a file is not replaced that is none of these texts."""
_MARK = re.compile(r"# nfstuned wrote this, sha256 ([0-9a-f]{64})\n")
_HEAD = """\
# Do not edit it: `nfstuned apply --persist` refuses a file that is not as nfstuned wrote it.
# mount.nfs asks for these numbers of connections where neither the options of a mount nor a section of its
# mount point say one: nfsmount.conf(5). Say another one for a server in a file of another name: nfstuned
# then takes its section out.
"""


def with_sections(sections: Mapping[str, int]) -> str:
    """Return the file's whole text, with one section for each server's name."""
    parts = [f'\n[ Server "{name}" ]\nnconnect={count}\n' for name, count in sorted(sections.items())]
    body = _HEAD + "".join(parts)
    return f"# nfstuned wrote this, sha256 {_hash(body)}\n{body}"


def sections(text: str) -> dict[str, int] | None:
    """Return the sections of a text that nfstuned wrote, perhaps another version of it; None of any other."""
    mark = _MARK.match(text)
    if mark is None or mark[1] != _hash(text[mark.end() :]):
        return None
    found: dict[str, int] = {}
    for item in parse_nfsmount(text, PERSISTED):
        count = decimal(item.value) if isinstance(item, Setting) else None
        if not isinstance(item, Setting) or item.argument is None or count is None:
            return None
        found[item.argument] = count
    return found


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogateescape")).hexdigest()
