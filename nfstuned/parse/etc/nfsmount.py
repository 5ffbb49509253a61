"""`/etc/nfsmount.conf`: options that mount.nfs adds by itself (nfsmount.conf(5)); nfs.conf(5) is alike.

The grammar is what nfs-utils 2.8.3 does: conf_parse and conf_parse_line in support/nfs/conffile.c. Which of
the settings then count for a mount is nfstuned.core.mounts.requests's matter.

`mount.nfs -V` prints PACKAGE_STRING, which stands in the file as it is printed; so the program need not be
run, and an image's can be asked, too. Names of functions stand in their messages (support/nfs/conffile.c).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nfstuned.errors import ParseError
from nfstuned.model.requests import ConfInclude, Setting
from nfstuned.model.system import NfsUtils
from nfstuned.parse.fields import clean_path, quoted
from nfstuned.parse.versions import in_version_order

FILE = "/etc/nfsmount.conf"
VENDOR_FILE = "/usr/etc/nfsmount.conf"
"""Read first, and forgotten with its folder of drop-ins where FILE exists (conf_init_file)."""
PERSISTED = f"{FILE}.d/50-nfstuned.conf"
"""nfstuned's own drop-in (`nfstuned apply --persist`)."""
_BLANK = " \t"
_SPACE = " \t\n\v\f\r"
SECTIONS_WITH_NAMES = ("server", "mountpoint")
"""Sections that need a name: mount.nfs hands it to strcasecmp, which crashes without."""

Item = Setting | ConfInclude | ParseError


@dataclass(slots=True, eq=False)
class _Reader:
    """What a file's lines held, and the section that they are in; None where assignments do not count."""

    file: str
    section: str | None
    argument: str | None
    items: list[Item] = field(default_factory=list)

    def refuse(self, line: int, message: str) -> None:
        self.items.append(ParseError(self.file, line, message))

    def begin_section(self, line: int, content: str) -> None:
        """Enter the section of `content`, a line without its opening bracket."""
        self.section = self.argument = None
        inside, bracket, _ = content.partition("]")
        if not bracket:
            self.refuse(line, f"a section without a closing bracket: {quoted('[' + content)}")
            return
        name, quote, rest = inside.strip(_BLANK).partition('"')
        self.section = name.rstrip(_BLANK).lower()
        if quote:
            argument, closing, _ = rest.partition('"')
            self.argument = argument if closing else None
        if self.argument is None and self.section in SECTIONS_WITH_NAMES:
            # The bracket that closes an IPv6 address ends the section, before the second quote.
            self.refuse(line, f"a section without a name makes mount.nfs crash: {quoted('[' + inside + ']')}")
        elif quote and self.argument is None:
            self.refuse(line, f"a section's name without a closing quote: {quoted('[' + inside + ']')}")

    def assign(self, line: int, content: str) -> None:
        """Take an assignment in the current section: a setting, or the include of another file."""
        name, _, rest = content.partition("=")
        name, rest = name.rstrip(_BLANK), rest.lstrip(_BLANK)
        value = _value(rest)
        place = (self.section or "", self.argument)
        if value is None:
            self.refuse(line, f"a quote that does not close: {quoted(rest)}")
        elif not name:
            self.refuse(line, f"a value without a name: {quoted(content)}")
        elif not value:
            self.refuse(line, f"an assignment without a value does not count: {quoted(content)}")
        elif name.lower() == "include":
            path = value.removeprefix("-")
            self.items.append(ConfInclude(path, path != value, *place, self.file, line))
        else:
            self.items.append(Setting(*place, name, value, self.file, line))


def parse_nfsmount(
    text: str, file: str = FILE, section: str | None = None, argument: str | None = None
) -> tuple[Item, ...]:
    """Return settings and includes in the file's order; an included file begins in its parent's section."""
    reader = _Reader(file, section, argument)
    for number, line, ended in _joined_lines(text.partition("\0")[0]):
        content = line.lstrip(_SPACE)
        if not content or content.startswith(("#", ";")):
            continue
        if not ended:
            reader.refuse(number, f"the last line does not end, so it does not count: {quoted(content)}")
        elif content.startswith("["):
            reader.begin_section(number, content[1:])
        elif "=" not in content:
            reader.refuse(number, f"neither a section nor an assignment: {quoted(content)}")
        elif reader.section is None:
            reader.refuse(number, f"an assignment outside of a section does not count: {quoted(content)}")
        else:
            reader.assign(number, content)
    return tuple(reader.items)


def drop_ins(names: list[str]) -> list[str]:
    """Return the files of a `.d` folder that count, in the order of reading: the last has the last word.

    conf_init_dir reads what ends with ".conf" in the order of versions.
    """
    return in_version_order([name for name in names if name.endswith(".conf") and not name.startswith(".")])


def included(include: ConfInclude) -> str:
    """Return the absolute path of an included file: it stands relative to the file that names it."""
    return clean_path(posixpath.join(posixpath.dirname(include.file), include.path))


def _joined_lines(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield each line's number, its text and whether it ends; a backslash joins a line with the next."""
    start = 1
    held: list[str] = []
    *lines, last = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.endswith("\\"):
            held.append(line[:-1] + "  ")
            continue
        yield start, "".join([*held, line]), True
        start, held = number + 1, []
    yield start, "".join([*held, last]), False


def _value(text: str) -> str | None:
    """Return what a value means: a comment ends it unless it is quoted; None where a quote does not close."""
    if text.startswith(('"', "'")):
        value, closing, _ = text[1:].partition(text[0])
        return value if closing else None
    return text.partition("#")[0].partition(";")[0].rstrip(_SPACE)


_VERSION = rb"\(linux nfs-utils ([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})[^)\n\0]{0,20}\)\n"
_DROP_INS = b"conf_init_dir: "
"""Since nfs-utils 2.5.3 ("conffile: process config.d directory config files"), and in backports of it."""


def parse_mount_nfs(program: bytes) -> NfsUtils:
    """Return what the file of mount.nfs tells; without a version where it is another program."""
    match = re.search(_VERSION, program)
    version = tuple(int(part) for part in match[1].split(b".")) if match else None
    return NfsUtils(version, _DROP_INS in program)
