"""Changes of files that have exactly one right answer: a line has the old text once, as whole options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from nfstuned.model.facts import Fix


def fixed_text(text: str, file: str, fixes: Iterable[Fix]) -> tuple[str, int]:
    """Return the text of a file with its changes, every other byte as it was, and the number of changes.

    A change is left out where its line does not have the old text exactly once, as under an anchor of YAML or
    in a text with expressions, or has it behind a `#`, which may start a comment.
    """
    lines = text.split("\n")
    done = 0
    # The longest text first: another change may be within it.
    for number, old, new in sorted(_changes(file, fixes), key=lambda one: (one[0], -len(one[1]), one)):
        line = lines[number - 1] if number <= len(lines) else ""
        places = [match.span() for match in re.finditer(rf"(?<![\w.=-]){re.escape(old)}(?![\w.-])", line)]
        if len(places) == 1 and "#" not in line[: places[0][0]]:
            start, end = places[0]
            lines[number - 1] = line[:start] + new + line[end:]
            done += 1
    return "\n".join(lines), done


def _changes(file: str, fixes: Iterable[Fix]) -> set[tuple[int, str, str]]:
    """Return the changes of a file, each once: several mounts may have one line."""
    places = ((*fix.place.rpartition(":")[::2], fix.old, fix.new) for fix in fixes)
    return {(int(line), old, new) for name, line, old, new in places if name == file}


def files_with(fixes: Iterable[Fix]) -> Mapping[str, list[Fix]]:
    """Return changes by their files."""
    files: dict[str, list[Fix]] = {}
    for fix in fixes:
        files.setdefault(fix.place.rpartition(":")[0], []).append(fix)
    return files
