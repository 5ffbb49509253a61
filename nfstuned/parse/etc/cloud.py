"""cloud-init's configuration: the mounts that it writes to fstab (cloudinit/config/cc_mounts.py), and names.

Of YAML only the lists that people write there are read: in brackets or of dashes, of plain and quoted texts.
What is anything else is an error, and never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from nfstuned.errors import ParseError
from nfstuned.model.system import CommandLine
from nfstuned.parse.etc.fstab import parse_fstab
from nfstuned.parse.etc.intent import Intent
from nfstuned.parse.fields import quoted
from nfstuned.parse.tree import FileTree

DEFAULTS: tuple[str | None, ...] = (None, None, "auto", "defaults,nofail,_netdev", "0", "2")
"""What a mount gets that names fewer fields; the ordering behind cloud-init itself is left out."""
_MOST_DEPTH = 4
_KEY = re.compile(r"(?P<key>[A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(?P<rest>.*))?")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_OTHER = tuple("&*!|>%@`{}?")
"""How a scalar begins that is more than a text: an alias, a tag, a block, a mapping."""
_PRESERVE = re.compile(r"""(['"]?)preserve_hostname\1[ \t]*:(?:[ \t]+(?P<value>.*))?""")
_TRUE = frozenset({"true", "yes", "on", "1"})
"""What cloud-init takes for true, in any case (cloudinit/util.py, is_true)."""
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "/": "/", " ": " ", "0": "\0"}


class _Line(NamedTuple):
    number: int
    indent: int
    content: str


class CloudEntry(NamedTuple):
    """An entry of `mounts`, and the line on which it begins."""

    line: int
    fields: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class CloudMounts:
    """What a file says of mounts; None where it does not have the key."""

    mounts: tuple[CloudEntry, ...] | None = None
    defaults: tuple[str | None, ...] | None = None


def parse_cloud_mounts(text: str, file: str) -> CloudMounts:
    """Return the mounts of a file; ParseError for what is no list of lists of texts."""
    found: dict[str, tuple[CloudEntry, ...]] = {}
    lines = list(_lines(text, file))
    for place, line in enumerate(lines):
        match = _KEY.fullmatch(line.content) if line.indent == 0 else None
        if match is None or match["key"] not in {"mounts", "mount_default_fields"}:
            continue
        block = [line._replace(content=match["rest"], indent=1)] if match["rest"] else []
        for following in lines[place + 1 :]:
            if following.indent == 0 and not _is_item(following.content):
                break
            block.append(following)
        found[match["key"]] = tuple(_ListReader(block, file).entries()) if block else ()
    fields = found.get("mount_default_fields")
    return CloudMounts(found.get("mounts"), None if fields is None else _flat(fields, file))


def parse_preserve_hostname(text: str) -> bool | None:
    """Return whether a file tells cloud-init to leave the host's name alone; None where it does not say."""
    matches = (_PRESERVE.fullmatch(_without_comment(line).rstrip()) for line in text.splitlines())
    values = [match["value"] or "" for match in matches if match]
    return values[-1].strip(" \t'\"").lower() in _TRUE if values else None


def as_fstab(mounts: Sequence[CloudEntry], defaults: Sequence[str | None]) -> str:
    """Return the lines that cloud-init makes of mounts, each on the line of its file that asks for it."""
    rows: dict[int, str] = {}
    for line, fields in mounts:
        filled = [
            defaults[index] if value is None and index < len(defaults) else value
            for index, value in enumerate(fields)
        ]
        filled += defaults[len(filled) :]
        if len(filled) > 1 and filled[0] and filled[1] is not None:
            rows[line] = "\t".join("" if value is None else value.replace("\n", " ") for value in filled)
    return "\n".join(rows.get(number, "") for number in range(1, max(rows, default=0) + 1))


def _flat(fields: tuple[CloudEntry, ...], file: str) -> tuple[str | None, ...]:
    """Return the default fields, which are texts and no lists."""
    if any(len(one.fields) != 1 for one in fields):
        raise ParseError(file, fields[0].line, "mount_default_fields is no list of texts")
    return tuple(one.fields[0] for one in fields)


def _is_item(content: str) -> bool:
    return content == "-" or content.startswith("- ")


def _lines(text: str, file: str) -> Iterator[_Line]:
    """Yield the lines that say something, without their comments."""
    for number, line in enumerate(text.splitlines(), 1):
        content = _without_comment(line).rstrip()
        bare = content.lstrip(" ")
        if bare.startswith("\t"):
            raise ParseError(file, number, "a tab in the indentation, which YAML does not have")
        if bare and bare not in {"---", "..."}:
            yield _Line(number, len(content) - len(bare), bare)


def _without_comment(line: str) -> str:
    quote = ""
    for place, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and (place == 0 or line[place - 1] in " \t[,"):
            quote = char
        elif char == "#" and (place == 0 or line[place - 1] in " \t"):
            return line[:place]
    return line


@dataclass(slots=True, eq=False)
class _ListReader:
    """A reader of a list: of dashes, or in brackets over as many lines as it takes."""

    lines: list[_Line]
    file: str
    at: int = 0
    text: str = ""
    """What of a line is still to be read, in brackets."""
    line: int = field(default=0)

    def entries(self) -> Iterator[CloudEntry]:
        """Yield the entries of the list; a text among them is an entry with that one field."""
        first = self.lines[0]
        if first.content.startswith("["):
            self.text, self.line, self.at = first.content, first.number, 1
            for number, value in self._brackets(1):
                yield CloudEntry(number, tuple(value) if isinstance(value, list) else (value,))
            self._demand_end(self.text)
            if self.at < len(self.lines):
                self._refuse(self.lines[self.at].content, self.lines[self.at].number)
            return
        for number, value in self._dashes(first.indent, 1):
            yield CloudEntry(number, tuple(value) if isinstance(value, list) else (value,))
        if self.at < len(self.lines):
            self._refuse(self.lines[self.at].content, self.lines[self.at].number)

    def _dashes(self, indent: int, depth: int) -> Iterator[tuple[int, str | list[str | None] | None]]:
        while self.at < len(self.lines):
            number, here, content = self.lines[self.at]
            if here != indent or not _is_item(content):
                return
            rest = content[1:].lstrip(" ")
            self.at += 1
            if rest.startswith("["):
                self.text, self.line = rest, number
                yield number, self._texts(self._brackets(depth + 1))
                self._demand_end(self.text)
            elif _is_item(rest) or not rest:
                if rest:
                    self.at -= 1
                    self.lines[self.at] = _Line(number, here + len(content) - len(rest), rest)
                inner = self.lines[self.at].indent if self.at < len(self.lines) else 0
                if inner > indent and _is_item(self.lines[self.at].content):
                    if depth >= _MOST_DEPTH:
                        self._refuse(content, number)
                    yield number, self._texts(self._dashes(inner, depth + 1))
                else:
                    yield number, None
            else:
                yield number, self._scalar(rest, number)

    def _texts(self, values: Iterator[tuple[int, str | list[str | None] | None]]) -> list[str | None]:
        texts: list[str | None] = []
        for number, value in values:
            if isinstance(value, list):
                self._refuse("a list in a list", number)
            else:
                texts.append(value)
        return texts

    def _brackets(self, depth: int) -> Iterator[tuple[int, str | list[str | None] | None]]:
        """Yield what is in brackets, and leave what follows them in `text`."""
        if depth > _MOST_DEPTH:
            self._refuse(self.text, self.line)
        self.text = self.text[1:]
        while True:
            self._more()
            number = self.line
            if self.text.startswith("]"):
                self.text = self.text[1:]
                return
            value: str | list[str | None] | None
            if self.text.startswith("["):
                value = self._texts(self._brackets(depth + 1))
            else:
                match = re.match(
                    r"""\"(?:[^"\\]|\\.)*\"|'(?:[^']|'')*'|[^\[\]{},'\"][^\[\]{},]*|(?=,)""", self.text
                )
                if match is None:
                    self._refuse(self.text, number)
                self.text = self.text[match.end() :]
                value = self._scalar(match[0].strip(), number)
            yield number, value
            self._more()
            if self.text.startswith(","):
                self.text = self.text[1:]
            elif not self.text.startswith("]"):
                self._refuse(self.text, self.line)

    def _more(self) -> None:
        """Go on to the next line where this one is at its end."""
        self.text = self.text.lstrip(" ")
        while not self.text:
            if self.at >= len(self.lines):
                raise ParseError(self.file, self.line, "a list without its closing bracket")
            self.line, _, self.text = self.lines[self.at]
            self.at += 1

    def _demand_end(self, text: str) -> None:
        if text.strip():
            self._refuse(text, self.line)

    def _scalar(self, text: str, number: int) -> str | None:
        if text in _NULL:
            return None
        if text[0] in "'\"":
            if not re.fullmatch(r"(['\"]).*\1", text, re.DOTALL):
                self._refuse(text, number)
            inner = text[1:-1]
            if text[0] == "'":
                return inner.replace("''", "'")
            return re.sub(r"\\(.)", lambda match: self._escape(match[1], text, number), inner)
        if text.startswith(_OTHER) or re.search(r":(?: |$)", text) or text.startswith("- "):
            self._refuse(text, number)
        return text

    def _escape(self, char: str, text: str, number: int) -> str:
        if char not in _ESCAPES:
            self._refuse(text, number)
        return _ESCAPES[char]

    def _refuse(self, text: str, number: int) -> NoReturn:
        raise ParseError(
            self.file, number, f"a mount that is no list of plain texts was not checked: {quoted(text)}"
        )


_CLOUD_CFG, _DROP_INS = "etc/cloud/cloud.cfg", "etc/cloud/cloud.cfg.d"
_OFF, _OFF_AT_BOOT = "etc/cloud/cloud-init.disabled", "cloud-init=disabled"
_PROGRAMS = ("usr/bin/cloud-init", "usr/local/bin/cloud-init")


def read_cloud_mounts(root: FileTree, collected: Intent) -> None:
    """Add the mounts of cloud-init's own files; what an instance is told at its start is not known.

    Of several files with the key the last counts, whole (cloudinit/util.py, read_conf_with_confd).
    """
    if root.exists(_OFF):
        return
    mounts: tuple[str, CloudMounts] | None = None
    defaults = DEFAULTS
    for name in _files(root):
        try:
            found = parse_cloud_mounts(root.read_or_empty(name), root.shown(name))
        except ParseError as error:
            collected.refuse(error)
            continue
        mounts = (name, found) if found.mounts is not None else mounts
        defaults = found.defaults or defaults
    if mounts is not None:
        name, found = mounts
        collected.add(parse_fstab(as_fstab(found.mounts or (), defaults), root.shown(name)))


def names_clones(root: FileTree, cmdline: CommandLine) -> bool:
    """Return whether cloud-init gives each clone of an image its own name.

    Its configuration stays where the package was removed and not purged: the program has to be there, too.
    """
    if root.exists(_OFF) or _OFF_AT_BOOT in cmdline.words:
        return False
    if not root.exists(_CLOUD_CFG) or not any(map(root.exists, _PROGRAMS)):
        return False
    told = [parse_preserve_hostname(root.read_or_empty(name)) for name in _files(root)]
    return not next((one for one in reversed(told) if one is not None), False)


def _files(root: FileTree) -> list[str]:
    """Return the names of cloud-init's files, of which the last counts."""
    names = (name for name in root.names(_DROP_INS) if name.endswith(".cfg"))
    return [_CLOUD_CFG, *(f"{_DROP_INS}/{name}" for name in names)]
