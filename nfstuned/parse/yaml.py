"""The documents of YAML and JSON as nodes with their lines, within bounds.

PyYAML's parser gives the events, by libyaml where that is installed. The nodes are composed here: libyaml's
composer knows no bounds, and PyYAML's own is slow. Nothing is constructed: a text stays a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import yaml

from nfstuned.errors import ParseError

MOST_CHARACTERS = 4 << 20
"""Of a file: bundles of manifests have up to 4 MB, and libyaml reads some 2 MB in a second."""
MOST_ALIASES = 1000
MOST_DEPTH = 64
MOST_VALUES = 500_000
"""Of a file, each alias and each merged mapping with its own: a bundle of 4 MB has some 200,000."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_MERGE = "<<"
_PAIR = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
"""Two escapes of JSON for a character, which YAML does not know."""
_ODD = re.compile("[\ud800-\udfff\0]")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NO_PAIRS: Mapping[str, Node] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a document, and the line on which it begins."""

    line: int
    text: str | None = None
    """A scalar as it is written, without quotes; None for null, and for a value with parts or with a tag."""
    items: tuple[Node, ...] = ()
    """The values of a sequence."""
    pairs: Mapping[str, Node] = field(default_factory=lambda: _NO_PAIRS)
    """The values of a mapping, merged keys too; of a key that is there twice the last counts."""
    is_scalar: bool = False
    is_null: bool = False
    is_block: bool = False
    """The text is a block (`|`, or `>` with all lines joined): its first line is the line after `line`."""
    tag: str = ""
    """A tag of the document's own, such as !vault: the text or the parts are not the value itself."""
    height: int = 0
    """The levels of values in it, at most MOST_DEPTH, also those of aliases."""
    weight: int = 1
    """The number of values in it, at most MOST_VALUES, each alias with all of its values."""

    def at(self, *keys: str) -> Node:
        """Return the value below keys; an empty node where a key is missing."""
        node = self
        for key in keys:
            node = node.pairs.get(key, ABSENT)
        return node

    def text_at(self, *keys: str) -> str:
        """Return the text below keys, "" where a key is missing."""
        return self.at(*keys).text or ""

    def __bool__(self) -> bool:
        return self is not ABSENT


ABSENT = Node(0, is_null=True)
"""The value of a missing key."""


def parse_documents(text: str, file: str) -> tuple[Node, ...]:
    """Return the documents of a file. Raises ParseError: no part of such a file is judged.

    Tabs between the tokens of JSON are blanks; YAML refuses them.
    """
    if len(text) > MOST_CHARACTERS:
        raise ParseError(file, 0, f"the file was not read: more than {MOST_CHARACTERS} characters")
    odd = _ODD.search(text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        shown = f"0x{ord(odd[0]) & 0xFF:02x}"
        raise ParseError(
            file, line, f"the file was not read: the byte {shown} is not UTF-8: save it as UTF-8"
        )
    if text.lstrip()[:1] in {"{", "["}:
        text = _PAIR.sub(lambda match: json.loads(f'"{match[0]}"'), text.replace("\t", " "))
    try:
        return tuple(_Composer(yaml.parse(text, Loader=_LOADER)).documents())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        # The mark at the end of a text may lie below its last line.
        line = min(mark.line, text.count("\n")) + 1 if mark else 0
        raise ParseError(file, line, f"the file was not read: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # libyaml's reader refuses surrogates with a ValueError
        first = str(error).partition("\n")[0]
        raise ParseError(file, 0, f"the file was not read: {first}") from None


class _Composer:
    """The events of a file as nodes. Raises MarkedYAMLError beyond a bound."""

    def __init__(self, events: Iterator[Any]) -> None:
        self._events = events
        self._aliases = self._merged = self._values = 0
        self._anchors: dict[str, Node] = {}
        self._open: list[tuple[Any, list[Node]]] = []
        """The collections that have begun, each with its values up to now."""

    def documents(self) -> Iterator[Node]:
        """Yield the root of each document."""
        begin = 1
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                mark: Any = event.end_mark
                self._anchors, begin = {}, mark.line + 1
            elif isinstance(event, yaml.CollectionStartEvent):
                if len(self._open) == MOST_DEPTH:
                    raise _problem(f"more than {MOST_DEPTH} levels of nesting", event)
                self._open.append((event, []))
            elif isinstance(event, (yaml.NodeEvent, yaml.CollectionEndEvent)):
                node = self._node(event)
                if not self._open:
                    self._values += node.weight
                    # libyaml has an empty document behind it, where the file may have no more lines.
                    yield replace(node, line=begin) if node.is_null else node
                else:
                    self._open[-1][1].append(node)

    def _node(self, event: Any) -> Node:  # noqa: ANN401 - types-PyYAML leaves the events' fields out
        """Return the node that ends with an event."""
        if isinstance(event, yaml.AliasEvent):
            self._aliases += 1
            if self._aliases > MOST_ALIASES:
                raise _problem(f"more than {MOST_ALIASES} aliases", event)
            if event.anchor not in self._anchors:
                raise _problem(f"an alias without its anchor, {event.anchor}", event)
            return self._anchors[event.anchor]
        if isinstance(event, yaml.ScalarEvent):
            start, node = event, _scalar(event)
        else:
            start, parts = self._open.pop()
            node = _collection(start, parts)
            if node.height > MOST_DEPTH:
                raise _problem(f"more than {MOST_DEPTH} levels of nesting, with those of aliases", start)
            self._merged += max(0, len(node.pairs) - len(parts) // 2)
            if max(self._values + node.weight, self._merged) > MOST_VALUES:
                raise _problem(f"more than {MOST_VALUES} values, with those of aliases", start)
        if start.anchor:
            self._anchors[start.anchor] = node
        return node


def _scalar(event: Any) -> Node:  # noqa: ANN401 - types-PyYAML leaves the events' fields out
    line, tag = event.start_mark.line + 1, _own_tag(event.tag)
    is_null = event.implicit[0] and event.value in _NULLS
    text = None if is_null or tag else event.value
    # Where a folded block has several lines, nothing says on which lines of the file they were.
    is_block = event.style == "|" or (event.style == ">" and "\n" not in event.value.rstrip("\n"))
    return Node(line, text, is_scalar=True, is_null=is_null, is_block=is_block, tag=tag)


def _collection(start: Any, parts: list[Node]) -> Node:  # noqa: ANN401 - as above
    line, tag = start.start_mark.line + 1, _own_tag(start.tag)
    height = 1 + max((part.height for part in parts), default=0)
    weight = 1 + sum(part.weight for part in parts)
    if isinstance(start, yaml.SequenceStartEvent):
        return Node(line, items=tuple(parts), tag=tag, height=height, weight=weight)
    merged: dict[str, Node] = {}
    own: dict[str, Node] = {}
    if weight > MOST_VALUES:  # a mapping that is refused is not copied
        return Node(line, height=height, weight=weight)
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        if key.text == _MERGE:
            # An earlier mapping of a list has precedence.
            for each in reversed(value.items or (value,)):
                merged |= each.pairs
        elif key.is_scalar:
            own[key.text or ""] = value
    return Node(line, pairs=MappingProxyType(merged | own), tag=tag, height=height, weight=weight)


def _own_tag(tag: str | None) -> str:
    return tag if tag and not tag.startswith("tag:yaml.org,2002:") and tag != "!" else ""


def _problem(problem: str, event: Any) -> yaml.MarkedYAMLError:  # noqa: ANN401 - as above
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
