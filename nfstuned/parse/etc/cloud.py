"""cloud-init's configuration: the mounts that it writes to fstab (cloudinit/config/cc_mounts.py), and names.

A mount is a list of plain values: anything else in its place is an error, never a guess.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request
from nfstuned.model.system import CommandLine
from nfstuned.parse.etc.requests import Intent, parse_fstab
from nfstuned.parse.fields import quoted
from nfstuned.parse.tree import FileTree
from nfstuned.parse.yaml import ABSENT, Node, parse_documents

DEFAULTS: tuple[str | None, ...] = (None, None, "auto", "defaults,nofail,_netdev", "0", "2")
"""The fields that a mount gets where it names fewer; the ordering behind cloud-init itself is left out."""
_OPTIONS = 3
"""The field with the options."""
_TRUE = frozenset({"true", "yes", "on", "1"})
"""The words that cloud-init takes for true, in any case (cloudinit/util.py, is_true)."""
_CLOUD_CFG, _DROP_INS = "etc/cloud/cloud.cfg", "etc/cloud/cloud.cfg.d"
_OFF, _OFF_AT_BOOT = "etc/cloud/cloud-init.disabled", "cloud-init=disabled"
_PROGRAMS = ("usr/bin/cloud-init", "usr/local/bin/cloud-init")


class CloudEntry(NamedTuple):
    """An entry of `mounts`, and the line on which it begins."""

    line: int
    fields: tuple[str | None, ...]
    lines: tuple[int, ...] = ()
    """The line of each field; () where all are on `line`."""

    def line_of(self, index: int) -> int:
        """Return the line of a field; the entry's own where the defaults fill it."""
        given = index < len(self.lines) and self.fields[index] is not None
        return self.lines[index] if given else self.line


class CloudText(NamedTuple):
    """A command, or a file that cloud-init writes, and the line on which its text begins."""

    text: str
    line: int
    is_block: bool
    """Its lines are lines of the configuration."""
    path: str = ""


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """A file's keys about mounts and the host's name; None for a key that it does not have."""

    mounts: tuple[CloudEntry | ParseError, ...] | None = None
    defaults: tuple[str | None, ...] | None = None
    preserve_hostname: bool | None = None
    commands: tuple[CloudText, ...] = ()
    """The commands of bootcmd and runcmd."""
    files: tuple[CloudText, ...] = ()
    """The files of write_files that are plain text."""
    encoded: tuple[int, ...] = ()
    """The lines of the other files of write_files."""


def parse_cloud(text: str, file: str) -> CloudConfig:
    """Return the keys of a file; a mount that is no list of texts is an error. Raises ParseError.

    Of a key that is there twice the last counts, as for cloud-init.
    """
    document, *others = parse_documents(text, file) or (ABSENT,)
    if others:
        raise ParseError(file, others[0].line, "the file was not read: another document begins here")
    keys = document.pairs
    mounts, defaults, name = (
        keys.get(key) for key in ("mounts", "mount_default_fields", "preserve_hostname")
    )
    fields = None if defaults is None else [_scalar(item, file) for item in _items(defaults, file)]
    commands = (item for key in ("bootcmd", "runcmd") for item in keys.get(key, ABSENT).items)
    files = keys.get("write_files", ABSENT).items
    written = (item for item in files if "encoding" not in item.pairs)
    return CloudConfig(
        None if mounts is None else tuple(_entry(item, file) for item in _items(mounts, file)),
        None if fields is None else tuple(fields),
        None if name is None else (name.text or "").lower() in _TRUE,
        tuple(CloudText(_command(item), item.line + item.is_block, item.is_block) for item in commands),
        tuple(
            CloudText(content.text, content.line + content.is_block, content.is_block, item.text_at("path"))
            for item in written
            if (content := item.at("content")).text
        ),
        tuple(item.line for item in files if "encoding" in item.pairs),
    )


def _command(node: Node) -> str:
    """Return a command for the shell; cloud-init runs a list without one."""
    return node.text or shlex.join(item.text or "" for item in node.items)


def cloud_lines(
    mounts: Sequence[CloudEntry | ParseError], defaults: Sequence[str | None]
) -> Iterator[tuple[CloudEntry, str] | ParseError]:
    """Yield the lines that cloud-init writes to fstab, each with its entry.

    An entry without a mount point takes back earlier entries of its source (remove_nonexistent_devices).
    """
    last = {
        entry.fields[0]: at
        for at, entry in enumerate(mounts)
        if isinstance(entry, CloudEntry) and entry.fields[1:2] == (None,)
    }
    for at, entry in enumerate(mounts):
        if isinstance(entry, ParseError):
            yield entry
            continue
        fields = entry.fields
        if at <= last.get(fields[0] if fields else None, -1):
            continue
        filled = [
            defaults[index] if value is None and index < len(defaults) else value
            for index, value in enumerate(fields)
        ]
        filled += defaults[len(filled) :]
        if len(filled) > 1 and filled[0] and filled[1] is not None:
            yield entry, "\t".join("" if value is None else value.replace("\n", " ") for value in filled)


def cloud_requests(
    mounts: Sequence[CloudEntry | ParseError], defaults: Sequence[str | None], file: str
) -> Iterator[Request | ParseError]:
    """Yield the requests of the lines that cloud-init writes to fstab, with the lines of their fields."""
    for row in cloud_lines(mounts, defaults):
        if isinstance(row, ParseError):
            yield row
            continue
        entry, text = row
        for item in parse_fstab(text, file):
            if isinstance(item, ParseError):
                yield ParseError(file, entry.line, item.message)
                continue
            source, options = entry.line_of(0), entry.line_of(_OPTIONS)
            yield item._replace(
                line=entry.line,
                source_line=source if source != entry.line else 0,
                option_lines=(options,) * len(item.pairs) if options != entry.line else (),
            )


def read_cloud_mounts(root: FileTree, intent: Intent, cmdline: CommandLine) -> None:
    """Add the mounts of cloud-init's own files; the user data of an instance is not known.

    Of several files with the key the last counts, whole (cloudinit/util.py, read_conf_with_confd).
    """
    if root.exists(_OFF) or _OFF_AT_BOOT in cmdline.words:
        return
    mounts: tuple[str, Sequence[CloudEntry | ParseError]] | None = None
    defaults: Sequence[str | None] = DEFAULTS
    for file, config in _configs(root):
        if isinstance(config, ParseError):
            intent.refuse(config)
            continue
        mounts = mounts if config.mounts is None else (file, config.mounts)
        defaults = config.defaults or defaults
    if mounts is not None:
        file, entries = mounts
        intent.add(cloud_requests(entries, defaults, file))


def names_clones(root: FileTree, cmdline: CommandLine) -> bool:
    """Return whether cloud-init gives each clone of an image its own name.

    Its configuration stays where the package was removed and not purged: the program has to be there, too.
    """
    if root.exists(_OFF) or _OFF_AT_BOOT in cmdline.words:
        return False
    if not root.exists(_CLOUD_CFG) or not any(map(root.exists, _PROGRAMS)):
        return False
    # read_cloud_mounts reports the errors.
    configs = (config for _, config in _configs(root) if isinstance(config, CloudConfig))
    choices = [config.preserve_hostname for config in configs if config.preserve_hostname is not None]
    return not (choices and choices[-1])


def _configs(root: FileTree) -> Iterator[tuple[str, CloudConfig | ParseError]]:
    """Yield cloud-init's files in their order, each with its keys or its error; the last counts."""
    names = (f"{_DROP_INS}/{name}" for name in root.names(_DROP_INS) if name.endswith(".cfg"))
    for name in (_CLOUD_CFG, *names):
        file = root.shown(name)
        try:
            config: CloudConfig | ParseError = parse_cloud(root.read_or_empty(name), file)
        except ParseError as error:
            config = error
        yield file, config


def _entry(node: Node, file: str) -> CloudEntry | ParseError:
    """Return a mount; more than six fields make no difference to mount(8)."""
    try:
        if node.is_scalar or node.pairs or node.tag:
            raise _not_plain(node, file)
        items = node.items[: len(DEFAULTS)]
        fields = tuple(_scalar(item, file) for item in items)
    except ParseError as error:
        return error
    lines = tuple(item.line + item.is_block for item in items)
    return CloudEntry(node.line, fields, lines if {*lines} != {node.line} else ())


def _items(node: Node, file: str) -> Sequence[Node]:
    if node.is_null or not (node.is_scalar or node.pairs or node.tag):
        return node.items
    raise _not_plain(node, file)


def _scalar(node: Node, file: str) -> str | None:
    if not node.is_scalar or node.tag:
        raise _not_plain(node, file)
    return node.text


def _not_plain(node: Node, file: str) -> ParseError:
    shown = quoted(_flow(node))
    return ParseError(file, node.line, f"a mount that is not a list of plain texts was not checked: {shown}")


def _flow(node: Node, depth: int = 2) -> str:
    """Return the first parts of a value for people, as YAML has it in a line."""
    if node.is_scalar:
        return node.tag or ("null" if node.text is None else node.text)
    if depth == 0:
        return "..."
    pairs = [f"{key}: {_flow(value, depth - 1)}" for key, value in islice(node.pairs.items(), len(DEFAULTS))]
    items = [_flow(item, depth - 1) for item in islice(node.items, len(DEFAULTS))]
    return f"{{{', '.join(pairs)}}}" if pairs else f"[{', '.join(items)}]"
