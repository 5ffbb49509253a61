"""The line `automount:` of /etc/nsswitch.conf, as automount(8) itself reads it; and whether SSSD has maps.

The grammar is that of lib/nss_tok.l and lib/nss_parse.y of autofs, which is not glibc's: a comment does not
end the line, sources of other names are passed over, and after an error in the line automount(8) takes no map
that is given without a path.
"""

from __future__ import annotations

import re

from nfstuned.errors import ParseError
from nfstuned.model.requests import MapSource
from nfstuned.parse.fields import quoted

FILE = "/etc/nsswitch.conf"
FILES = "files"
STATUSES = ("SUCCESS", "NOTFOUND", "UNAVAIL", "TRYAGAIN")
_SOURCES = (FILES, "yp", "nis", "nisplus", "ldap", "hesiod", "sss")
_LINE = r"(?i)automount:(.*)"
_PIECE = r"\[(?P<actions>[^\]]*)(?P<end>\]?)|(?P<source>[\w@$%^&*()+\":;?,<>./'{}~`]+)"
_ACTION = rf"(?i:\s*(!?)\s*({'|'.join(STATUSES)})\s*=\s*(continue|return))"


def parse_automount(text: str, file: str = FILE) -> tuple[tuple[MapSource, ...], int]:
    """Return the sources in their order and the number of the line; without a line `files` and 0.

    Raises ParseError for a line that automount(8) refuses.
    """
    matches = ((number, re.match(_LINE, line)) for number, line in enumerate(text.split("\n"), 1))
    lines = [(number, match[1]) for number, match in matches if match]
    if not lines:
        return (MapSource(FILES),), 0
    if len(lines) > 1:
        raise ParseError(
            file, lines[1][0], "a second line for automount, for which automount(8) reads neither"
        )
    number, content = lines[0]
    sources: list[MapSource] = []
    after_source = False
    for piece in re.finditer(_PIECE, content, re.ASCII):
        if piece["source"] is not None:
            sources.append(MapSource(piece["source"]))
        else:
            ends = _ending_answers(piece["actions"]) if after_source and piece["end"] else None
            if ends is None:
                raise ParseError(file, number, f"automount(8) does not understand {quoted(piece[0])}")
            sources[-1] = MapSource(sources[-1].name, ends)
        after_source = piece["source"] is not None
    known = tuple(source for source in sources if source.name in _SOURCES)
    if not known:
        raise ParseError(file, number, "no source of which automount(8) takes a map")
    return known, number


def _ending_answers(text: str) -> frozenset[str] | None:
    """Return the answers that end the search (check_nss_result of daemon/lookup.c); None for another text."""
    if not re.fullmatch(rf"(?:{_ACTION})+\s*", text, re.ASCII):
        return None
    actions = {
        match[2].upper(): (bool(match[1]), match[3].lower() == "return")
        for match in re.finditer(_ACTION, text, re.ASCII)
    }
    others = {status for status, (negated, returns) in actions.items() if negated and returns}
    return frozenset(
        status
        for status in STATUSES
        if others - {status} or actions.get(status, (False, status == "SUCCESS"))[1]
    )


def starts_autofs(text: str) -> bool:
    """Return whether `autofs` is among the `services` of the section [sssd] in a file of sssd.conf(5).

    SSSD then starts the service that answers automount(8). The list may go on over indented lines.
    """
    section = key = ""
    for line in text.split("\n"):
        content = line.strip()
        if not content or content.startswith(("#", ";")):
            continue
        if content.startswith("["):
            section, key = content.strip("[] \t").lower(), ""
            continue
        if not (key and line[0].isspace()):
            key, _, content = content.partition("=")
        if (section, key.strip().lower()) == ("sssd", "services") and re.search(r"\bautofs\b", content):
            return True
    return False
