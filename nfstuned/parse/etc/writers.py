"""The configurations of programs that write a read-ahead: TuneD, efs-utils, AZNFS."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.model.requests import Setting

_BLANK = r"[^\S\n]"
_AZNFS = (
    rf"(?m)^{_BLANK}*(?:export{_BLANK}+)?AZNFS_READ_AHEAD_KB="
    r"""["']?(?:\$\{AZNFS_READ_AHEAD_KB:-)?([0-9]{1,9})\b"""
)


def parse_ini(text: str, file: str) -> Iterator[Setting]:
    """Yield the assignments of a file as Python's configparser reads it, with `=` alone and `#` anywhere.

    So TuneD's Loader does (tuned/profiles/loader.py). Names keep their case, and so do sections.
    """
    section = ""
    for number, line in enumerate(text.split("\n"), 1):
        content = re.sub(r"(?:^|\s)#.*", "", line).strip()
        if not content or content.startswith(";"):
            continue
        if heading := re.match(r"\[([^]]+)\]", content):
            section = heading[1]
            continue
        name, sign, value = content.partition("=")
        if sign and section:
            yield Setting(section, None, name.strip(), value.strip(), file, number)


def parse_aznfs(text: str, file: str, section: str) -> Setting | None:
    """Return what sets AZNFS_READ_AHEAD_KB in common.sh or in /etc/environment; the last line counts."""
    matches = list(re.finditer(_AZNFS, text))
    if not matches:
        return None
    line = text.count("\n", 0, matches[-1].start(1)) + 1
    return Setting(section, None, "AZNFS_READ_AHEAD_KB", matches[-1][1], file, line)
