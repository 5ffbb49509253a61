"""What `findmnt --verify` says of an fstab (findmnt(8); misc-utils/findmnt-verify.c of util-linux)."""

from __future__ import annotations

import re
from collections import Counter

_PARSE_ERROR = re.compile(r"^findmnt: .*: (parse error at line \d+)", re.MULTILINE)
_ERROR = "[E]"
_SUMMARY = re.compile(r"^(?:\d+ parse errors?, \d+ errors?, |Success,)", re.MULTILINE)


def parse_verify(output: str, errors: str) -> Counter[str] | None:
    """Return each error as "mount point: what is wrong", counted; None where it came to no verdict.

    `output` and `errors` are its two streams. Warnings do not count: it gives one for every file system that
    is not loaded and every folder that a mount would need.
    """
    if not _SUMMARY.search(output) and not _SUMMARY.search(errors):
        return None
    found = Counter(_PARSE_ERROR.findall(errors))
    point = ""
    for line in output.splitlines():
        if not line.startswith((" ", "\t")):
            point = line
        elif line.lstrip().startswith(_ERROR):
            found[f"{point}: {line.lstrip().removeprefix(_ERROR).lstrip()}"] += 1
    return found
