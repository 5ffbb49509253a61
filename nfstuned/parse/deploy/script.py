"""Mounts in a shell's text: commands of mount(8) and Docker, lines for fstab, and the files that it writes.

The language is sh(1) with the additions of bash(1). Nothing is expanded: a command that depends on a variable
is named, not judged. Commands in functions, conditions and loops count like all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import Maker, Request, Unexpanded
from nfstuned.parse.deploy.docker import VOLUME_TYPES, docker_request
from nfstuned.parse.deploy.shell import KEYWORDS, MARK, Command, OpenQuoteError, Reader, Word, decoded
from nfstuned.parse.etc.requests import TYPES, mounted_type, parse_fstab
from nfstuned.parse.fields import PLACEHOLDER, has_placeholder

_DEEPEST = 8
"""Commands within the quoted text of a command: each level is read again."""
_MOST_REPEATED = 10_000
"""Characters of a format that printf repeats."""
_MAY_ASK = re.compile(r"mount|fstab|volume", re.IGNORECASE)
_ASKS = re.compile(r"(?<![\w-])mount(?:\.\w+)?[ \t]|fstab")
EXPANDED = "a command with a variable"
_OPEN = "a text with an open quote"

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_WRAPPERS = {
    **dict.fromkeys(("busybox", "command", "eval", "nohup", "setsid"), ("", 0)),
    "arch-chroot": ("u", 1),
    "chroot": ("", 1),
    "doas": ("Cu", 0),
    "env": ("uC", 0),
    "exec": ("a", 0),
    "ionice": ("cnp", 0),
    "k3s": ("", 0),
    "microk8s": ("", 0),
    "nice": ("n", 0),
    "nsenter": ("tSG", 0),
    "sshpass": ("Ppdf", 0),
    "sudo": ("CDRTUghprtu", 0),
    "time": ("fo", 0),
    "timeout": ("ks", 1),
}
"""Programs that start a command: the letters of their options with a value, and the number of operands."""
_SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "su", "zsh"})
_REMOTE, _REMOTE_VALUED = "ssh", frozenset("BbcDEeFIiJLlmOoPpQRSWw")
"""The letters of its options with a value."""
_PLAIN = re.compile(rf"[\w./:=,@%+{MARK}-]+")
"""A word that another shell reads as it is."""
_WRITERS = frozenset({"echo", "printf", "cat", "tee", "envsubst"})
_SILENT = frozenset(
    {"mkdir", "cd", "set", "umask", "export", "rm", "chmod", "chown", "test", "[", "true", ""}
)
"""Commands that leave the input to the next."""
_MOST_PIPED = 10
"""Commands of a pipe through which a text is followed."""
_ENGINES = {"docker": Maker.DOCKER, "podman": Maker.PODMAN}
_CLUSTERS = frozenset({"kubectl", "oc"})
MOUNT, AUTOMOUNT, SERVICE = UNITS = (".mount", ".automount", ".service")
YAML = (".yaml", ".yml")
_FILE = re.compile(r".*(?:\.(?:mount|automount|service)(?:\.d/[^/]+\.conf)?|\.ya?ml)", re.DOTALL)
_SECTION, _OBJECT = re.compile(r"(?m)^\[Mount\]"), re.compile(r"(?m)^apiVersion:")
"""The beginnings of the files that count, where the name is in a variable."""
_MOST_TARGETS, _MOST_NAME = 10, 255
"""Files of a command that are looked at, and the longest name of a file (NAME_MAX)."""


class WrittenFile(NamedTuple):
    """A unit, a drop-in or a file of YAML that a command writes, or the input of kubectl."""

    name: str
    """The file, as the command has it; "" for kubectl's input."""
    text: Word
    group: str = ""
    """The machine, where it is another."""


Row = Request | ParseError | Unexpanded | WrittenFile


def parse_command(text: str, file: str, line: int = 1) -> Iterator[Row]:
    """Yield the mounts of a text's commands, and the files that they write.

    Also a text that is no entry of fstab, and commands with variables. A quote without an end ends the
    reading. The text may have several lines, from `line` of the file on.
    """
    text = text.replace("\r\n", "\n")
    return _requests(Word(text, range(line, line + text.count("\n") + 1)), file, 0)


def _requests(text: Word, file: str, depth: int, given: Word | None = None) -> Iterator[Row]:
    """Yield those of a text; `given` is the input of its first command that reads any."""
    if depth > _DEEPEST or not any(_MAY_ASK.search(each.text) for each in (text, given) if each):
        return
    reader = Reader(text.text + "\n", (*text.lines, text.lines[-1]))
    try:
        for pipeline in reader.pipelines():
            piped = given
            for place, command in enumerate(pipeline):
                if not (command.reads_file or place > _MOST_PIPED):
                    command.document = command.document or piped
                piped = _output(command)
                yield from _requests_of_command(command, piped, file, depth)
            given = given if _name_of(_bare(pipeline[0].words)) in _SILENT else None
            for inner in reader.inner:
                yield from _requests(inner, file, depth + 1)
            reader.inner.clear()
    except OpenQuoteError:
        if _ASKS.search(reader.text, reader.start):
            row = reader.text.count("\n", 0, reader.start)
            yield Unexpanded(_OPEN, file, reader.lines[row])


def _requests_of_command(command: Command, written: Word | None, file: str, depth: int) -> Iterator[Row]:
    """Yield those of a command that writes this text, as far as it is known."""
    words = _bare(command.words)
    name = _name_of(words)
    if name in _SHELLS:
        text = _shell_text(words, command)
        if text:
            given = None if text is command.document else command.document
            yield from _requests(text, file, depth + 1, given)
    elif name == _REMOTE and depth < _DEEPEST:
        yield from _remote(words, command, file, depth)
    elif name.partition(".")[0] == "mount":
        yield from _mount(name, words[1:], command.words[0].line, file)
    elif name in _ENGINES:
        yield from _volumes(words, command.words[0].line, file)
    elif written:
        targets = [*command.targets, *(word.text for word in words[1:] if name == "tee")]
        if any(target.endswith("/etc/fstab") for target in targets):
            yield from _entries(written, file)
        else:
            yield from _files(targets[:_MOST_TARGETS], written)
    elif command.document and _reads_manifest(words):
        yield WrittenFile("", command.document)


def _output(command: Command) -> Word | None:
    """Return the text that a command writes, as far as it is known."""
    words = _bare(command.words)
    name = _name_of(words)
    if name in {"echo", "printf"}:
        return _written(name, words[1:])
    if name == "cat" and any(not word.text.startswith("-") for word in words[1:]):
        return None
    return command.document if name in _WRITERS else None


def _remote(words: list[Word], command: Command, file: str, depth: int) -> Iterator[Row]:
    """Yield those of a command for ssh: each is for a machine of its own."""
    place = _behind_options(words, 1)
    if len(words) > place + 1 and words[place].text == MARK and "@" in words[place + 1].text:
        place = _behind_options(words, place + 1)  # a variable with options
    rest, given = words[_behind_options(words, place + 1) :], command.document
    if rest and all(_PLAIN.fullmatch(word.text) for word in rest):
        remote = Command(rest, document=given)
        rows = _requests_of_command(remote, _output(remote), file, depth + 1)
    elif rest:
        rows = _requests(_spaced(rest), file, depth + 1, given)
    elif given:
        rows = _requests(given, file, depth + 1)
    else:
        return
    group = f"{file}:{words[0].line}"
    for row in rows:
        yield row._replace(group=group) if isinstance(row, (Request, WrittenFile)) else row


def _behind_options(words: list[Word], place: int) -> int:
    """Return the place of the next operand of ssh."""
    while place < len(words) and words[place].text.startswith("-"):
        place += 1 + (words[place].text[1:] in _REMOTE_VALUED)
    return place


def _name_of(words: list[Word]) -> str:
    """Return the name of a command's program, "" without words."""
    return _name(words[0].text) if words else ""


def _name(text: str) -> str:
    """Return a program's name, without its folder and the marks before it in a unit or a Makefile."""
    return "" if text.startswith("--") else text.lstrip("-@+:!").rpartition("/")[2]


def _bare(words: list[Word]) -> list[Word]:
    """Return the words without keywords, assignments, and the programs that start the command."""
    place = 0
    while place < len(words):
        text = words[place].text
        # A variable may be $SUDO.
        if text in KEYWORDS or text == MARK or _ASSIGNMENT.match(text):
            place += 1
            continue
        if _name(text) not in _WRAPPERS:
            break
        valued, operands = _WRAPPERS[_name(text)]
        place += 1
        while place < len(words) and words[place].text.startswith("-"):
            letters = words[place].text[1:]
            of_next = letters[-1:] in [*valued] and {*valued}.isdisjoint(letters[:-1])
            place += 2 if of_next and not letters.startswith("-") else 1
        place += operands
    return words[place:]


def _arguments(words: Iterable[Word], valued: re.Pattern[str]) -> Iterator[tuple[str, Word]]:
    """Yield each option with its value as getopt_long(3) reads them; operands have the option ""."""
    rest = iter(words)
    for word in rest:
        text = word.text
        if text == "--":
            yield from (("", operand) for operand in rest)
        elif text.startswith("--"):
            name, equals, value = text.partition("=")
            if valued.fullmatch(name) and not equals:
                yield name, next(rest, Word("", word.lines))
            else:
                yield name, Word(value, word.lines)
        elif text.startswith("-") and text != "-":
            for place, letter in enumerate(text[1:], 2):
                if valued.fullmatch(f"-{letter}"):
                    own = Word(text[place:], word.lines)
                    yield f"-{letter}", own if own.text else next(rest, own)
                    break
                yield f"-{letter}", word
        else:
            yield "", word


def _files(targets: Iterable[str], text: Word) -> Iterator[WrittenFile]:
    """Yield the files that count, by their names, or by their text where the name is in a variable."""
    for target in targets:
        name = target.rpartition("/")[2]
        if len(name) <= _MOST_NAME and _FILE.fullmatch(target):
            yield WrittenFile("" if MARK in name and name.endswith(YAML) else target, text)
        elif MARK in name and _OBJECT.search(text.text):
            yield WrittenFile("", text)
        elif MARK in name and _SECTION.search(text.text):
            yield WrittenFile(target + MOUNT, text)


def _reads_manifest(words: list[Word]) -> bool:
    """Return whether a command gives its input to a cluster of Kubernetes."""
    if _name_of(words).rpartition(".")[2] not in _CLUSTERS:
        return False
    arguments = [*_arguments(words[1:], _MANIFEST_VALUED)]
    asked = any(not option and word.text in {"apply", "create", "replace"} for option, word in arguments)
    return asked and any(option and word.text in {"-", "/dev/stdin"} for option, word in arguments)


def _shell_text(words: list[Word], command: Command) -> Word | None:
    """Return the text that a shell reads: behind -c, or from its input."""
    for place, word in enumerate(words):
        if re.fullmatch(r"-[A-Za-z]*c", word.text):
            return next((text for text in words[place + 1 :] if not text.text.startswith("-")), None)
    options = all(word.text.startswith(("-", "+")) for word in words[1:])
    return command.document if options or any(word.text == "-s" for word in words[1:]) else None


def marked(text: str) -> str:
    """Return the text with each placeholder of a template as an expansion; a `$` in it stands for itself."""
    if not has_placeholder(text):
        return text
    return re.sub(PLACEHOLDER, lambda match: match[0] if match[0].startswith("$") else MARK, text)


_OPERANDS = 2
"""A source and a mount point."""
_MOUNT_FLAGS = {"-r": "ro", "--read-only": "ro", "-w": "rw", "--rw": "rw", "--read-write": "rw"}
_MOUNT_VALUED = re.compile(
    r"-[toOLUNTp]|--(?:types|options|test-opts|label|uuid|namespace|fstab|source|target|target-prefix"
    r"|options-mode|options-source|map-users|map-groups)"
)
_MANIFEST_VALUED = re.compile(r"-[fnlo]|--(?:filename|namespace|context)")
_VOLUME_VALUED = re.compile(r"-[dolHc]|--(?:driver|opt|label|name|host|context|config)")
"""The options with a value, of mount(8), kubectl and `docker volume create`."""


def _mount(name: str, words: list[Word], line: int, file: str) -> Iterator[Request | Unexpanded]:
    """Yield the mount of mount(8), or of a helper such as mount.nfs, that begins in this line."""
    named = name.partition(".")[2]
    options: list[Word] = []
    places: list[Word] = []
    for option, word in _arguments(words, _MOUNT_VALUED):
        if option in {"-t", "--types"} and name == "mount":
            named = word.text
        elif option in {"-o", "--options"}:
            options.append(word)
        elif option in _MOUNT_FLAGS:
            options.append(Word(_MOUNT_FLAGS[option], word.lines))
        elif not option:
            places.append(word)
    options = [word for word in options if word.text]
    joined = ",".join(word.text for word in options)
    if "remount" in joined.split(","):
        return
    known = "" if MARK in marked(named) else named
    texts = [marked(word.text) for word in places]
    if MARK in "".join((marked(named), marked(joined), *texts)):
        # A variable may be several words.
        is_whole = len(places) >= _OPERANDS or (known in TYPES and MARK in "".join(texts))
        if is_whole and any(mounted_type(known, text) in TYPES for text in texts):
            yield Unexpanded(EXPANDED, file, line)
        return
    match places:
        case [source, point] if (fstype := mounted_type(named, source.text)) in TYPES:
            lines = tuple(word.line for word in options for _ in parse_options(word.text).pairs)
            line = options[0].line if options else line
            yield Request(source.text, point.text, joined, file, line)._replace(
                fstype=fstype,
                maker=Maker.COMMAND,
                named=named if named != fstype else None,
                option_lines=lines if len({*lines}) > 1 else (),
                source_line=source.line if source.line != line else 0,
            )


def _volumes(words: list[Word], line: int, file: str) -> Iterator[Request | Unexpanded]:
    """Yield the volumes that a command of Docker or Podman makes."""
    for opts in _volume_options(words):
        fstype, device, options = (opts.get(key, ("", 0))[0] for key in ("type", "device", "o"))
        if any(MARK in marked(text) for text in (fstype, device, options)):
            asked = mounted_type("", device) if MARK in marked(fstype) else fstype
            if asked in VOLUME_TYPES:
                yield Unexpanded(EXPANDED, file, line)
        else:
            for row in docker_request(opts, file):
                engine = _ENGINES[_name(words[0].text)]
                yield row._replace(maker=engine) if isinstance(row, Request) else row


def _volume_options(words: list[Word]) -> Iterator[dict[str, tuple[str, int]]]:
    """Yield the options of the driver for `volume create`, and for each --mount (a line of CSV)."""
    arguments = [*_arguments(words[1:], _VOLUME_VALUED)]
    if [word.text for option, word in arguments if not option][:2] == ["volume", "create"]:
        settings = [word for option, word in arguments if option in {"-o", "--opt"}]
        texts = [(word.text.removeprefix("="), word.line) for word in settings]
        yield {key: (value, line) for text, line in texts for key, _, value in [text.partition("=")]}
    for option, word in pairwise(words):
        text = word.text if option.text == "--mount" else word.text.partition("--mount=")[2]
        fields = [part.replace('"', "") for part in re.findall(r'(?:"[^"]*"|[^,"]+)+', text)]
        parts = [part.removeprefix("volume-opt=") for part in fields if part.startswith("volume-opt=")]
        yield {key: (value, word.line) for part in parts for key, _, value in [part.partition("=")]}


def _written(name: str, words: list[Word]) -> Word | None:
    """Return the text that echo or printf writes; None where a format repeats it too often."""
    if name == "printf":
        return _formatted([word for word in words if word.text != "--"])
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0].text):
        escapes |= "e" in words[0].text
        words = words[1:]
    text = _spaced(words)
    return decoded(text) if escapes else text


def _spaced(words: list[Word]) -> Word:
    """Return words as one text."""
    return _joined([part for word in words for part in (Word(" ", word.lines), word)][1:])


def _formatted(words: list[Word]) -> Word | None:
    """Return the text of printf(1): it repeats the format for all arguments."""
    if not words:
        return None
    form, values = decoded(words[0]), iter(words[1:])
    pieces: list[Word] = []
    row = 0
    for text in re.split(r"%-?[0-9]*[bds]", form.text):
        breaks = text.count("\n")
        pieces.append(Word(text, form.lines[row : row + breaks + 1]))
        row += breaks
    rounds = max(1, -(-len(words[1:]) // len(pieces[1:]))) if pieces[1:] else 1
    if rounds > 1 and rounds * len(form.text) > _MOST_REPEATED:
        return None
    parts: list[Word] = []
    for _ in range(rounds):
        parts.append(pieces[0])
        for piece in pieces[1:]:
            parts += (next(values, Word("", form.lines)), piece)
    return _joined(parts)


def _joined(parts: list[Word]) -> Word:
    """Return the parts as one text; a line is where its first part is."""
    rows = [0]
    for part in parts:
        for number, (text, line) in enumerate(zip(part.text.split("\n"), part.lines, strict=False)):
            rows += [0] if number else []
            rows[-1] = rows[-1] or (line if text else 0)
    return Word("".join(part.text for part in parts), rows)


def _entries(written: Word, file: str) -> Iterator[Request | ParseError | Unexpanded]:
    """Yield the requests of lines for fstab; lines of other file systems do not matter."""
    is_named = False
    for text, line in zip(written.text.split("\n"), written.lines, strict=False):
        shown = marked(text)
        fields = shown.split()
        if not fields or fields[0].startswith("#"):
            continue
        if not (TYPES.intersection(fields[2:4]) or mounted_type("", fields[0])):
            continue
        if MARK not in shown:
            for row in parse_fstab(text, file):
                if isinstance(row, ParseError):
                    yield ParseError(file, line, row.message)
                else:
                    yield row._replace(line=line, maker=Maker.TASK)
        elif not is_named:
            is_named = True
            yield Unexpanded(EXPANDED, file, line)
