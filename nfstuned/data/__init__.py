"""Tables that come with the program, and are a part of it as its code is: no rule looks at a host here."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def read_table(name: str) -> dict[str, Any]:
    """Return the content of a TOML file of this folder."""
    with open(f"{__path__[0]}/{name}", "rb") as file:
        return tomllib.load(file)
