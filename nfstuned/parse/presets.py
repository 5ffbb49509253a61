"""Presets: which units systemd enables at a first boot (systemd.preset(5))."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

_VERBS = ("enable", "disable", "ignore")


def preset_enables(texts: Iterable[str], unit: str) -> bool:
    """Return whether preset files, in systemd's order, enable a unit: the first line that fits decides.

    A unit that no line names is enabled. Instances of templates are of no interest here.
    """
    for text in texts:
        for line in text.splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in _VERBS and fnmatchcase(unit, words[1]):
                return words[0] == "enable"
    return True
