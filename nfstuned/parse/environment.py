"""Environment variables where administrators write them down.

environment(5), systemd's Environment= and DefaultEnvironment=, the kernel command line's systemd.setenv=, and
what /etc/default has: all write NAME=value, some with quotes around the value or around both.
"""

from __future__ import annotations

import re


def parse_variable(text: str, name: str) -> str | None:
    """Return the value that the last line which is no comment gives to a variable; None when none does.

    Values with spaces are not looked for: a suffix of host names has none.
    """
    pattern = re.compile(
        rf"^(?![ \t]*[#;]).*?(?<![A-Za-z0-9_]){re.escape(name)}=[\"']?([^\s\"']+)", re.MULTILINE
    )
    found = pattern.findall(text)
    return str(found[-1]) if found else None
