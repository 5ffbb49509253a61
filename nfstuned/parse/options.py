"""Mount options: comma separated, as fstab, utab and the kernel write them (mount(8), nfs(5))."""

from __future__ import annotations

import re
from functools import lru_cache

from nfstuned.model.kernel import Options
from nfstuned.parse.fields import unescape

# A quote that is never closed takes the rest of the text along, so that nothing is lost.
_OPTION = r'(?:[^",]|"[^"]*(?:"|$))+'
_MOST_KEPT = 32


def parse_options(text: str) -> Options:
    """Return the options in their order; any text is a list of options, so there is no error.

    A comma within double quotes belongs to the value (SELinux labels: mount(8), "context="); the quotes
    stay part of it. Only the first `=` separates name and value. Empty options are left out.
    """
    options = re.findall(_OPTION, text) if '"' in text else text.split(",")
    parts = (option.partition("=") for option in options if option)
    return Options(tuple((name, value if separator else None) for name, separator, value in parts))


@lru_cache(_MOST_KEPT)
def parse_kernel_options(text: str) -> Options:
    """Return the options of a kernel file, where escapes stand for bytes: an escaped comma does not split.

    The mounts of a server have the same options, at each look again: they share a value.
    """
    options = parse_options(text)
    if "\\" not in text:
        return options
    return Options(tuple((unescape(name), value and unescape(value)) for name, value in options.pairs))
