"""The requests and settings of a host's configuration, within bounds, and the problems in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Misnamed, Request, Setting, UnreadMap

SECTIONS_WITH_NAMES = ("server", "mountpoint")
"""Sections of nfsmount.conf that need a name: mount.nfs hands it to strcasecmp, which crashes without."""
MOST_REQUESTS = 10_000
"""Mounts that the files of a host ask for: each is judged by every rule."""
MOST_SETTINGS = 1000
"""Assignments of nfsmount.conf, its drop-ins and includes: each may count for every mount."""
MOST_IN_SECTION = 100
"""Of these in a section, which count together; mount.nfs knows some sixty names."""
MOST_MAPS = 1000
"""Maps of the automounter's that are not read: each is named."""
MOST_PROBLEMS = 1000
"""Lines that could not be understood, of all files: each is shown."""
MOST_OPTIONS = 4096
"""Characters: mount(2) takes a page of options."""
MOST_PATH = 4096
"""Characters of a source or of a mount point: PATH_MAX."""
_TOO_LONG = (
    f"more than {MOST_OPTIONS} characters of options, or {MOST_PATH} of a source or a mount point, which "
    "mount(2) does not take: shorten the line"
)
_TOO_MANY_REQUESTS = (
    f"the files of this host ask for more than {MOST_REQUESTS} mounts: this and all later ones were not "
    "checked; take out mounts that nobody needs"
)
_TOO_MANY_SETTINGS = (
    f"more than {MOST_SETTINGS} assignments: this and all later ones were not read; take out those that no "
    "mount needs"
)
_TOO_MANY_IN_SECTION = (
    f"more than {MOST_IN_SECTION} assignments in a section: this and all later ones there were not read; "
    "take out those that no mount needs"
)
_TOO_MANY_MAPS = f"more than {MOST_MAPS} maps cannot be read: the maps after this one are not named"
_TOO_MANY_PROBLEMS = f"more than {MOST_PROBLEMS} lines are not understood: mend those above first"


@dataclass(slots=True, eq=False)
class Intent:
    """The requests and settings of the files, and the problems in them."""

    requests: list[Request] = field(default_factory=list)
    misnamed: list[Misnamed] = field(default_factory=list)
    settings: list[Setting] = field(default_factory=list)
    problems: list[ParseError] = field(default_factory=list)
    maps: dict[UnreadMap, None] = field(default_factory=dict)
    """The automounter's maps that are not read."""
    faults: list[str] = field(default_factory=list)
    """Files of nfs-utils' configuration that are there and could not be read, each with the reason."""
    refused: bool = False
    """There were more requests than are kept."""
    overset: bool = False
    """There were more settings than are kept."""
    of_section: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def full(self) -> bool:
        """Whether no request is kept any more; the next request is reported once."""
        return self.refused

    def add(self, items: Iterable[Request | Misnamed | ParseError]) -> None:
        """Keep requests, refused units and errors, each in its place."""
        for item in items:
            if isinstance(item, ParseError):
                self.refuse(item)
            elif isinstance(item, Misnamed):
                if len(self.misnamed) < MOST_REQUESTS:
                    self.misnamed.append(item)
            elif len(item.options) > MOST_OPTIONS or max(len(item.source), len(item.point)) > MOST_PATH:
                self.refuse(ParseError(item.file, item.line, _TOO_LONG))
            elif len(self.requests) < MOST_REQUESTS:
                self.requests.append(item)
            elif not self.refused:
                self.refused = True
                self.refuse(ParseError(item.file, item.line, _TOO_MANY_REQUESTS))

    def refuse(self, problem: ParseError) -> None:
        """Keep an error, and of very many say once that there are more."""
        if len(self.problems) == MOST_PROBLEMS:
            self.problems.append(ParseError(problem.file, problem.line, _TOO_MANY_PROBLEMS))
        elif len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def name(self, item: UnreadMap) -> None:
        """Keep a map that is not read, each once, and of very many say once that there are more."""
        if item in self.maps or len(self.maps) > MOST_MAPS:
            return
        self.maps[item] = None
        if len(self.maps) > MOST_MAPS:
            self.refuse(ParseError(item.file, item.line, _TOO_MANY_MAPS))

    def set(self, setting: Setting) -> None:
        """Keep a setting; that there are too many, in a section or of all, is said once."""
        named = setting.section in SECTIONS_WITH_NAMES and setting.argument is not None
        section = (setting.section, setting.argument.lower() if named and setting.argument else "")
        self.of_section[section] += 1
        if self.of_section[section] == MOST_IN_SECTION + 1:
            self.refuse(ParseError(setting.file, setting.line, _TOO_MANY_IN_SECTION))
        elif self.of_section[section] > MOST_IN_SECTION:
            return
        elif len(self.settings) < MOST_SETTINGS:
            self.settings.append(setting)
        elif not self.overset:
            self.overset = True
            self.refuse(ParseError(setting.file, setting.line, _TOO_MANY_SETTINGS))
