"""Mount options: comma separated, as fstab, utab and the kernel write them (mount(8), nfs(5))."""

from __future__ import annotations

import re
from functools import lru_cache

from nfstuned.model.kernel import Options
from nfstuned.parse.fields import unescape

# A quote that is never closed takes the rest of the text along, so that nothing is lost.
_OPTION = re.compile(r'(?:[^",]|"[^"]*(?:"|$))+')
_MOST_KEPT = 32


def parse_options(text: str) -> Options:
    """Return the options in their order; any text is a list of options, so there is no error.

    A comma within double quotes belongs to the value (SELinux labels: mount(8), "context="); the quotes
    stay part of it. Only the first `=` separates name and value. Empty options are left out.
    """
    options = _OPTION.findall(text) if '"' in text else text.split(",")
    return Options(tuple(_pair(option) for option in options if option))


@lru_cache(_MOST_KEPT)
def parse_kernel_options(text: str) -> Options:
    """Return the options of a kernel file, where escapes stand for bytes: an escaped comma does not split.

    The mounts of a server have the same, and each look finds them again: one value serves them all.
    """
    options = parse_options(text)
    if "\\" not in text:
        return options
    return Options(tuple((unescape(name), value and unescape(value)) for name, value in options.pairs))


def _pair(option: str) -> tuple[str, str | None]:
    name, separator, value = option.partition("=")
    return name, value if separator else None
