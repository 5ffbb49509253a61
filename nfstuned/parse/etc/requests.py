"""Requests for mounts: `/etc/fstab` (fstab(5)), `/run/mount/utab`, and those of all files within bounds.

utab is a private file of libmount, without a manual page: anything unknown in it is passed over. The output
of `findmnt --verify` is about fstab.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nfstuned.errors import ParseError
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import (
    EARLY,
    EFS_TYPE,
    FSTAB,
    NFS_TYPES,
    SMB_TYPES,
    UTAB,
    EarlyService,
    Local,
    Maker,
    Misnamed,
    Request,
    Setting,
    Unloaded,
    Unordered,
    UnreadMap,
    Unstarted,
)
from nfstuned.parse.fields import (
    PLACEHOLDER,
    clean_path,
    has_placeholder,
    nearest_point,
    quoted,
    right_spelling,
    unmangle,
)

TYPES = frozenset((*NFS_TYPES, *SMB_TYPES, EFS_TYPE))
_LEAST, _NUMBERS = 3, 4
"""How many fields an entry has at least, and where its numbers begin."""
_OPTIONS = re.compile(r"(?:.*,)?(?:defaults|r[ow]|_netdev|nofail|noauto|hard|soft|[a-z0-9_.-]+=.*)(?:,.*)?")
"""Words that are options and no type: they stand behind it."""
_FIELD = rf"(?:{PLACEHOLDER}|[^ \t])+"
_LOOKED_AT = 500
"""Characters of a line that show the kind of its text."""
_RENDER = "render the template, and check the result"
_BLANK = "write a blank in a name as \\040 (fstab knows no quotes)"
_POINTS = ("none", "swap", "-")
_LIVE = "nfstuned check judges the live mounts of a host itself"
_AS_LINE = "write SOURCE POINT TYPE OPTIONS 0 0 as a line of fstab"
_MARK = r"[>|+`*\u2022\u2013]|-\S"
_NUMBERED = r"(?:[0-9]+|/[^\s:]*fstab[^\s:]*)(?::[0-9]+)?:[^\s:]+:/"
"""Marks before a source: lines with them have all the fields of an entry."""
_FOREIGN = {
    f"output of mount(8), not an entry: {_LIVE}": r"\S.* on /.* type \S+ \(",
    f"mountinfo, not an entry: {_LIVE}": r"[0-9]+ [0-9]+ [0-9]+:[0-9]+ /",
    f"output of findmnt or df, not an entry: {_LIVE}": (
        r"/\S* (?:\S+:/|//)\S* (?:nfs4?|cifs|smb3) r[ow](?:,\S*)?$|\S+:/\S* [0-9.]+[KMGTP]? "
    ),
    "mountstats, not an entry: nfstuned top --file FILE shows it": r"device \S.* (?:mounted on|with fstype) ",
    f"a command, not an entry: {_AS_LINE}": (
        r"(?:\S*(?: \S+)?[$#%>] )?(?:sudo )?"
        r"(?:u?mount(?:\.\w+)?|pcs|crm|docker|echo|printf|cat|tee|sh|bash|sed|grep|nano|vim?) "
    ),
    "a numbered list, or output of cat -n or grep: remove the numbers or the names before the lines": (
        rf"[0-9]+[.:)]? (?:#|\S+ (?:/|none |swap ))|{_NUMBERED}"
    ),
    "output of echo -e in a shell that knows no -e (dash), not an entry: remove -e, or write with printf": (
        r"-(?:e|n|en|ne) "
    ),
    "a map of the automounter, not an entry: nfstuned check judges the maps that auto.master names": (
        r"\S+ -\S+ \S*:/"
    ),
    "a quotation, a table or a diff, not an entry: begin each line with its source": _MARK,
    "a unit of systemd, not an entry: nfstuned check judges the units of a host, with --root an image's": (
        r"\[(?:Unit|Mount|Automount|Install)\]$|(?:What|Where|Type|Options|Description|After|WantedBy)="
    ),
    "a line of exports(5), the server's file: nfstuned judges clients": r"/\S* \S+\(",
    "Nix, not an entry: nfstuned check --root DIR judges the fstab that NixOS makes from it": (
        r"fileSystems\b|[\w.\"/-]+ = .*(?:;|\{)$|\};$"
    ),
    f"HCL, not an entry: {_AS_LINE}": r"[\w-]+ = [\"\[]|[a-z]+(?: \"[^\"]*\")+ \{",
    f"YAML or JSON, not an entry: {_AS_LINE}": r"(?:- )?[\w\".-]+:(?: |$)|- \S|[{}\[\]]+[,;]?$|\[ ?[\"' ]",
    f"a statement of a template, not an entry: {_RENDER}": r"\{[%#]|\{\{",
}
"""By the message about a text that is no fstab, and its remedy: a pattern of its lines."""
_KERNELS = r"(?m)^proc /proc proc r[ow],\S{0,200}?relatime\S{0,200} 0 0\r?$"
_KERNELS_MOUNT = r"(?m)^\S+ /\S* (?:nfs4?|cifs|smb3) r[ow],\S*,addr="
"""Lines as the kernel writes them: together they show a copy of /proc/mounts."""
_KERNELS_PART = r"\s*(?:\S+ /\S* (?:nfs4?|cifs|smb3|autofs|nfsd|rpc_pipefs) r[ow](?:,\S*)? 0 0\s*)+"
_KERNELS_OPTIONS = (
    r"(?m)^\S+ /\S* (?:nfs4? r[ow],(?=\S*,namlen=)(?=\S*,local_lock=)"
    r"|(?:cifs|smb3) r[ow],(?=\S*,bsize=)(?=\S*,echo_interval=))\S*,addr="
)
"""Nothing but such lines, with options that people do not write together: the output of grep."""
_NAMES = ("source", "mount point", "type", "options", "dump frequency", "fsck pass")


def parse_fstab(text: str, file: str = FSTAB) -> tuple[Request | ParseError, ...]:
    """Return the NFS, EFS and SMB entries in the file's order, and an error for each bad line.

    As mount(8) reads it (libmount/src/tab_parse.c, mnt_parse_table_line): the options can be missing, lines
    can end with CR and LF, and fields behind the sixth do not count. A line without a type is an
    error, because it could be anything; a line of another type is passed over, whatever is wrong with it. Of
    text that is no fstab the first line is an error. A line with placeholders is judged as it stands.
    """
    part = re.search(_KERNELS_OPTIONS, text) and re.fullmatch(_KERNELS_PART, text)
    of_kernel = part or (re.search(_KERNELS_MOUNT, text) and re.search(_KERNELS, text))
    if of_kernel:
        position = text.count("\n", 0, of_kernel.start()) + 1
        return (ParseError(file, position, f"a copy of /proc/mounts, not an fstab: {_LIVE}"),)
    entries: list[Request | ParseError] = []
    kinds: set[str] = set()
    others: dict[int, list[str]] = {}
    for position, line in enumerate(text.split("\n"), 1):
        fields = re.findall(_FIELD, line.removesuffix("\r"))
        if not fields or fields[0].startswith("#"):
            continue
        problem = _problem(fields)
        if problem and kinds and (problem in kinds or fields[0][0] in "})]"):
            continue
        kinds |= _FOREIGN.keys() & {problem}
        if problem is None:
            others[position] = fields
        elif problem:
            entries.append(ParseError(file, position, problem))
        if problem != "":
            continue
        source, point, named, options = (unmangle(token) for token in (*fields[:_NUMBERS], "")[:_NUMBERS])
        fstype = mounted_type(named, source)
        other = named if named != fstype else None
        entries.append(Request(source, point, options, file, position, fstype=fstype, named=other))
        split = next((field for field in fields if re.search(r"[ \t]", field)), "")
        if split:
            message = f"mount(8) splits the placeholder in {quoted(split)} at its blanks: {_RENDER}"
            entries.append(ParseError(file, position, message))
    if others and not entries and not any(map(_may_be_entry, others.values())):
        entries.append(ParseError(file, next(iter(others)), f"no line is an entry of fstab: {_AS_LINE}"))
    return tuple(entries)


def mounted_type(named: str, source: str) -> str:
    """Return the type that mount(8) mounts: without a type, or with `auto`, it looks at the source.

    So does mnt_context_guess_srcpath_fstype of libmount, where no such file exists: any colon means NFS, also
    in the name of an absent device. A source that may be a device has the type "" here. It tries the types of
    a list in turn (mnt_context_do_mount): the first that is NFS or SMB counts. For a misspelt type, or a
    disk's with a server for its source, it is the right type.
    """
    if source.startswith("//"):
        guess = "" if ":" in source else "cifs"
    else:
        guess = "nfs" if ":/" in source and "://" not in source and not source.startswith("/") else ""
    if named in {"", "auto"}:
        return guess
    bare = named.strip("\"',").lower()
    known = next((name for name in (*named.split(","), bare) if name in TYPES), "")
    if known or not guess:
        return known or named
    right = right_spelling("types", bare)
    return named if right is None else right[0].partition(" ")[0] or guess


def _problem(fields: list[str]) -> str | None:
    """Return the reason why mount(8) takes no such entry, "" where it does; None for another type's entry."""
    line = " ".join(fields)
    if "\0" in line:
        return "a NUL byte, which ends the line for mount(8)"
    foreign = _foreign(fields, line)
    unseen, seen = re.search(r"[^\S \t\r]|\\t", line), line.replace("\\t", " ").split()[:_LEAST]
    if unseen and TYPES.intersection(seen[2:]) and fields[:_LEAST] != seen:
        blank = "\\t" if unseen[0] == "\\t" else f"the blank U+{ord(unseen[0]):04X}"
        foreign = f"fields with {blank} between them: write a space or a tab"
    if line.startswith("\ufeff"):
        foreign = f"a byte order mark before {quoted(fields[0][1:])}: save the file without it"
    if foreign:
        return foreign
    if len(fields) < _LEAST:
        return f"no {_NAMES[len(fields)]} after {quoted(fields[-1])}"
    source, named = unmangle(fields[0]), unmangle(fields[2])
    if fields[1] in TYPES and mounted_type("", source):
        return f"no mount point between {quoted(fields[0])} and the type {fields[1]}: is a blank missing?"
    options = _OPTIONS.fullmatch(named)
    if has_placeholder(named):
        return f"the type is a placeholder, {quoted(named)}: {_RENDER}"
    if mounted_type(named, source) not in TYPES and not (options and mounted_type("", source)):
        shifted = mounted_type("", source) and TYPES.intersection(fields[_LEAST:_NUMBERS])
        return f"the type is {quoted(named)}: {_BLANK}" if shifted else None
    if options:
        return f"the options stand before the type: {quoted(fields[2])}"
    return _problem_of_rest(fields, line)


def _problem_of_rest(fields: list[str], line: str) -> str:
    """Return the reason why mount(8) does not take the rest of a line with a known type, "" where it does."""
    whole = [
        name for name, _ in parse_options("".join(fields[_LEAST:_NUMBERS])).pairs if has_placeholder(name)
    ]
    if whole:
        return f"the options have the placeholder {quoted(whole[0])}, so the line is not judged: {_RENDER}"
    if fields[_LEAST:_NUMBERS] == ["-o"] and fields[_NUMBERS:]:
        return f"-o belongs to mount's command line: write {quoted(fields[_NUMBERS], line)} in its place"
    for name, token in zip(_NAMES[_NUMBERS:], fields[_NUMBERS:], strict=False):
        if not re.fullmatch(r"[+-]?[0-9]+", token) and not has_placeholder(token):
            hint = ": remove the blank from the options" if _OPTIONS.fullmatch(token) else ""
            return f"{name} is not a number: {quoted(token, line)}{hint}"
    return ""


def _is_point(point: str) -> bool:
    """Return whether a field may be the mount point of an entry: a path, or the word for none."""
    return point.startswith("/") or point in _POINTS or has_placeholder(point)


def _may_be_entry(fields: list[str]) -> bool:
    """Return whether the first fields may be those of an entry of any type."""
    _, point, fstype = fields[:_LEAST]
    return _is_point(point) and not fstype.startswith("-") and not {*fstype} & {*"=:/\\"}


def _foreign(fields: list[str], line: str) -> str:
    """Return the kind of text that a line comes from and the command for it; "" where it may be an entry.

    The mount point of an entry is a path, or the word of one that is not mounted at any.
    """
    source, point = [*fields, ""][:2]
    exchanged = re.match(r"/(?!/)", source) and mounted_type("", point)
    if _is_point(point) and not exchanged and not re.match(f"{_MARK}|{_NUMBERED}", source):
        return ""
    kind = next((kind for kind, pattern in _FOREIGN.items() if re.match(pattern, line[:_LOOKED_AT])), "")
    if kind:
        return kind
    # A blank in a name shifts the type by a field.
    types = TYPES.intersection(fields[2:4] if mounted_type("", source) else fields[2:3])
    if exchanged:
        message = f"the source and the mount point are exchanged: write {quoted(point, line)} first"
        return message if types else ""
    hint = f": {_BLANK}" if {*source, *point} & {'"', "'"} or types.isdisjoint(fields[2:3]) else ""
    hint = ": fstab does not expand ~" if point.startswith("~") else hint
    return f"the mount point is not a path: {quoted(point, line)}{hint}" if types else ""


_NETWORKS = (
    r"(?:fuse\.)?(?:afs|ceph|cifs|davfs|gfs2?|glusterfs|lustre|ncpf?s?|nfs4?|ocfs2|orangefs|pvfs2|smb3|smbfs"
    r"|sshfs)"
)
"""The types that systemd takes for a network's (fstype_is_network in src/basic/mountpoint-util.c)."""
_LATER = {"_netdev", "nofail", "noauto", "x-systemd.automount", "comment=systemd.automount"}
"""Options of a line that no local file system waits for."""


def local_lines(text: str, requests: Iterable[Request], file: str = FSTAB) -> Iterator[Local]:
    """Yield the lines that systemd mounts with the local file systems, and that lie on a network's mount.

    Their source or the folder of their mount point does (mount_add_mount_dependencies in src/core/mount.c).
    `requests` are those of fstab and units.
    """
    points = {
        request.point: request
        for request in requests
        if request.maker is not Maker.AUTOFS
        and request.point not in EARLY
        and (re.fullmatch(_NETWORKS, request.fstype) or "_netdev" in request.options.split(","))
    }
    for position, line in enumerate(text.split("\n"), 1):
        fields = line.split()
        if len(fields) < _LEAST or fields[0].startswith("#") or fields[2] in TYPES or not points:
            continue
        source, point, named, options = (unmangle(token) for token in (*fields[:_NUMBERS], "")[:_NUMBERS])
        if not point.startswith("/") or _LATER.intersection(options.split(",")):
            continue
        for place in (source, posixpath.dirname(clean_path(point))):
            below = points.get(nearest_point(clean_path(place), points)) if place.startswith("/") else None
            if below and mounted_type(named, source) not in TYPES and not re.fullmatch(_NETWORKS, named):
                yield Local(Request(source, point, options, file, position, fstype=named), below)
                break


_NFS = ("addr", "vers")
"""mount.nfs always records the address that it resolved, and mostly the version that it negotiated."""


def parse_utab(text: str, file: str = UTAB) -> tuple[Request | ParseError, ...]:
    """Return the NFS mounts' requests in the file's order, with the options that mount.nfs settled on."""
    requests: list[Request | ParseError] = []
    for position, line in enumerate(text.split("\n"), 1):
        values = dict(field.partition("=")[::2] for field in line.split(" "))
        options = unmangle(values.get("ATTRS", ""))
        if not any(name in parse_options(options) for name in _NFS):
            continue
        source, point = values.get("SRC"), values.get("TARGET")
        if source and point:
            requests.append(Request(unmangle(source), unmangle(point), options, file, position))
        else:
            message = f"neither SRC nor TARGET may be missing: {quoted(line)}"
            requests.append(ParseError(file, position, message))
    return tuple(requests)


_PARSE_ERROR = r"(?m)^findmnt: .*: (parse error at line \d+)"
_ERROR = "[E]"
_SUMMARY = r"(?m)^(?:\d+ parse errors?, \d+ errors?, |Success,)"


def parse_verify(output: str, errors: str) -> Counter[str] | None:
    """Return each error of `findmnt --verify` as "mount point: reason", counted; None if it failed.

    `output` and `errors` are its two streams. Its warnings do not count: every file system that is not loaded
    and every folder that a mount would need causes a warning.
    """
    if not re.search(_SUMMARY, output) and not re.search(_SUMMARY, errors):
        return None
    problems = Counter(re.findall(_PARSE_ERROR, errors))
    point = ""
    for line in output.splitlines():
        if not line.startswith((" ", "\t")):
            point = line
        elif line.lstrip().startswith(_ERROR):
            problems[f"{point}: {line.lstrip().removeprefix(_ERROR).lstrip()}"] += 1
    return problems


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
TOO_MANY_REQUESTS = (
    f"the files of this host ask for more than {MOST_REQUESTS} mounts: this and all later ones were not "
    "checked; remove unused mounts"
)
_TOO_MANY_SETTINGS = (
    f"more than {MOST_SETTINGS} assignments: this and all later ones were not read; remove unused assignments"
)
_TOO_MANY_IN_SECTION = (
    f"more than {MOST_IN_SECTION} assignments in a section: this and all later ones there were not read; "
    "remove unused assignments"
)
_TOO_MANY_MAPS = f"more than {MOST_MAPS} maps cannot be read: the maps after this one are not named"
_TOO_MANY_PROBLEMS = f"more than {MOST_PROBLEMS} lines are not understood: correct the lines above first"


@dataclass(slots=True, eq=False)
class Intent:
    """The requests and settings of the files, and the problems in them."""

    requests: list[Request] = field(default_factory=list)
    misnamed: list[Misnamed] = field(default_factory=list)
    unloaded: list[Unloaded] = field(default_factory=list)
    unstarted: list[Unstarted] = field(default_factory=list)
    unordered: list[Unordered] = field(default_factory=list)
    local: list[Local] = field(default_factory=list)
    early: list[EarlyService] = field(default_factory=list)
    misplaced: list[ParseError] = field(default_factory=list)
    storages: dict[str, str] = field(default_factory=dict)
    settings: list[Setting] = field(default_factory=list)
    problems: list[ParseError] = field(default_factory=list)
    maps: dict[UnreadMap, None] = field(default_factory=dict)
    """The automounter's maps that are not read."""
    automounted: list[str] = field(default_factory=list)
    """The folders in which the automounter mounts."""
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
        """Keep requests of the kernel's clients, refused units and errors, each in its place."""
        for item in items:
            if isinstance(item, ParseError):
                self.refuse(item)
            elif isinstance(item, Misnamed):
                if len(self.misnamed) < MOST_REQUESTS:
                    self.misnamed.append(item)
            elif item.by_fuse:
                continue
            elif len(item.options) > MOST_OPTIONS or max(len(item.source), len(item.point)) > MOST_PATH:
                self.refuse(ParseError(item.file, item.line, _TOO_LONG))
            elif len(self.requests) < MOST_REQUESTS:
                self.requests.append(item)
            elif not self.refused:
                self.refused = True
                self.refuse(ParseError(item.file, item.line, TOO_MANY_REQUESTS))

    def refuse(self, problem: ParseError) -> None:
        """Keep an error, and of very many report once that there are more."""
        if len(self.problems) == MOST_PROBLEMS:
            self.problems.append(ParseError(problem.file, problem.line, _TOO_MANY_PROBLEMS))
        elif len(self.problems) < MOST_PROBLEMS:
            self.problems.append(problem)

    def name(self, item: UnreadMap) -> None:
        """Keep a map that is not read, each once, and of very many report once that there are more."""
        if item in self.maps or len(self.maps) > MOST_MAPS:
            return
        self.maps[item] = None
        if len(self.maps) > MOST_MAPS:
            self.refuse(ParseError(item.file, item.line, _TOO_MANY_MAPS))

    def set(self, setting: Setting) -> None:
        """Keep a setting; that there are too many, in a section or of all, is reported once."""
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
