"""The rules' pages: in the package as it is installed, in docs/rules of a checkout."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_INSTALLED = os.path.join(_PACKAGE, "data", "rules")
_CHECKOUT = os.path.join(os.path.dirname(_PACKAGE), "docs", "rules")


def page(rule: str) -> str:
    """Return a rule's page in Markdown; "" when it has none."""
    folder = _INSTALLED if os.path.isdir(_INSTALLED) else _CHECKOUT
    try:
        with open(os.path.join(folder, f"{rule}.md"), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
