"""cloud-init's configuration: the mounts that it writes to fstab (cloudinit/config/cc_mounts.py), and names.

PyYAML's safe loader composes the document within bounds; the nodes keep their lines. A mount is a list of
plain values: anything else in its place is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from nfstuned.errors import ParseError
from nfstuned.model.mounts import Request
from nfstuned.model.system import CommandLine
from nfstuned.parse.etc.requests import Intent, parse_fstab
from nfstuned.parse.fields import quoted
from nfstuned.parse.tree import FileTree

DEFAULTS: tuple[str | None, ...] = (None, None, "auto", "defaults,nofail,_netdev", "0", "2")
"""The fields that a mount gets where it names fewer; the ordering behind cloud-init itself is left out."""
MOST_CHARACTERS = 131_072
"""Of a file: a distribution's has 4,000, and the loader reads some 100,000 in a second."""
MOST_ALIASES = 100
MOST_DEPTH = 32
_NULL = "tag:yaml.org,2002:null"
_TRUE = frozenset({"true", "yes", "on", "1"})
"""The words that cloud-init takes for true, in any case (cloudinit/util.py, is_true)."""
_CLOUD_CFG, _DROP_INS = "etc/cloud/cloud.cfg", "etc/cloud/cloud.cfg.d"
_OFF, _OFF_AT_BOOT = "etc/cloud/cloud-init.disabled", "cloud-init=disabled"
_PROGRAMS = ("usr/bin/cloud-init", "usr/local/bin/cloud-init")


class CloudEntry(NamedTuple):
    """An entry of `mounts`, and the line on which it begins."""

    line: int
    fields: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """A file's keys about mounts and the host's name; None for a key that it does not have."""

    mounts: tuple[CloudEntry | ParseError, ...] | None = None
    defaults: tuple[str | None, ...] | None = None
    preserve_hostname: bool | None = None


def parse_cloud(text: str, file: str) -> CloudConfig:
    """Return the keys of a file; a mount that is no list of texts is an error.

    Of a key that is there twice the last counts, as for cloud-init.
    """
    keys = _keys(text, file)
    mounts, defaults = keys.get("mounts"), keys.get("mount_default_fields")
    name = keys.get("preserve_hostname")
    fields = None if defaults is None else [_scalar(item, file) for item in _items(defaults, file)]
    return CloudConfig(
        None if mounts is None else tuple(_entry(item, file) for item in _items(mounts, file)),
        None if fields is None else tuple(fields),
        None if name is None else str(name.value).lower() in _TRUE,
    )


def cloud_requests(
    mounts: Sequence[CloudEntry | ParseError], defaults: Sequence[str | None], file: str
) -> Iterator[Request | ParseError]:
    """Yield the requests of the lines that cloud-init writes to fstab, with the lines of their entries.

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
        line, fields = entry
        if at <= last.get(fields[0] if fields else None, -1):
            continue
        filled = [
            defaults[index] if value is None and index < len(defaults) else value
            for index, value in enumerate(fields)
        ]
        filled += defaults[len(filled) :]
        if len(filled) > 1 and filled[0] and filled[1] is not None:
            row = "\t".join("" if value is None else value.replace("\n", " ") for value in filled)
            for item in parse_fstab(row, file):
                if isinstance(item, ParseError):
                    yield ParseError(file, line, item.message)
                else:
                    yield item._replace(line=line)


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


def _keys(text: str, file: str) -> dict[str, Node]:
    """Return the nodes of a document's keys, none where it is no mapping. Raises ParseError."""
    if len(text) > MOST_CHARACTERS:
        raise ParseError(file, 0, f"the file was not read: more than {MOST_CHARACTERS} characters")
    try:
        document = yaml.compose(text, _BoundedLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise ParseError(file, line, f"the file was not read: {error.problem}") from None
    except yaml.YAMLError as error:
        raise ParseError(file, 0, f"the file was not read: {str(error).partition(chr(10))[0]}") from None
    pairs = document.value if isinstance(document, MappingNode) else ()
    return {key.value: value for key, value in pairs if isinstance(key, ScalarNode)}


class _BoundedLoader(yaml.SafeLoader):
    """A loader that refuses deep nesting and many aliases: both cost far more than they take to write."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self.depth = self.aliases = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Return the next node. Raises MarkedYAMLError beyond a bound."""
        event = self.peek_event()  # type: ignore[no-untyped-call] # types-PyYAML leaves it out
        self.aliases += isinstance(event, yaml.AliasEvent)
        self.depth += 1
        if self.depth > MOST_DEPTH or self.aliases > MOST_ALIASES:
            bound = f"more than {MOST_ALIASES} aliases, or {MOST_DEPTH} levels of nesting"
            raise yaml.MarkedYAMLError(problem=bound, problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _entry(node: Node, file: str) -> CloudEntry | ParseError:
    """Return a mount; more than six fields make no difference to mount(8)."""
    try:
        if not isinstance(node, SequenceNode):
            raise _not_plain(node, file)
        fields = tuple(_scalar(item, file) for item in islice(node.value, len(DEFAULTS)))
    except ParseError as error:
        return error
    return CloudEntry(node.start_mark.line + 1, fields)


def _items(node: Node, file: str) -> Sequence[Node]:
    if isinstance(node, SequenceNode):
        items: Sequence[Node] = node.value
        return items
    if node.tag == _NULL:
        return ()
    raise _not_plain(node, file)


def _scalar(node: Node, file: str) -> str | None:
    if not isinstance(node, ScalarNode):
        raise _not_plain(node, file)
    return None if node.tag == _NULL else str(node.value)


def _not_plain(node: Node, file: str) -> ParseError:
    start, end = node.start_mark, node.end_mark
    text = start.buffer[start.pointer : end.pointer].strip() if start.buffer else str(node.value)
    return ParseError(
        file, start.line + 1, f"a mount that is no list of plain texts was not checked: {quoted(text)}"
    )
