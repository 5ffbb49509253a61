"""The language of sh(1), with the additions of bash(1): a text as commands of words, each with its line.

Nothing is expanded: a mark stands for each expansion in a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

MARK = "\0"
"""In the text of a word, the place of an expansion: no script has this byte."""
MOST_KEYWORDS = 20
"""Before a calculation, that are looked at."""
KEYWORDS = frozenset({"if", "then", "elif", "else", "while", "until", "do", "{", "}", "!"})
"""Words before a command."""
_MOST_WORDS = 10_000
"""Words of a command that are kept."""

_ANGLES = r"<[A-Za-z_][\w.-]*>"
_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t]|\\\n)+|#[^\n]*)|(?P<newline>\n)"
    rf"|(?!{_ANGLES})(?P<descriptor>\d*)(?P<redirection>&>>?|>[>|&]|<<<|<<-|<<|<[>&]|[<>](?!\())"
    r"|(?P<separator>;;&|;[;&]?|&&?|\|\||\(\(?|\))|(?P<pipe>\|&?)"
)
"""All that stands between words."""
_PIECE = re.compile(
    r"""(?P<plain>[^ \t\n'"\\$`;&|<>(){]+)|(?P<join>\\\n)|\\(?P<escaped>.)|'(?P<single>[^']*)'|(?P<open>')"""
    r"""|(?P<double>\$?")|\$'(?P<escapes>(?:[^'\\]|\\.)*)'|(?P<expansion>[$`]|[<>]\()"""
    rf"""|(?P<template>\{{\{{[^{{}}]*\}}\}}|{_ANGLES})|(?P<other>[\\{{])""",
    re.DOTALL,
)
"""A piece of a word, as its text has it: without quotes."""
_QUOTED = re.compile(
    r"""(?P<plain>[^"\\$`]+)|(?P<join>\\\n)|\\(?P<escaped>["\\$`])|(?P<expansion>[$`])|(?P<end>")|(?P<other>\\)"""
)
_DOCUMENT = re.compile(
    r"(?P<plain>[^\\$`]+)|(?P<join>\\\n)|\\(?P<escaped>[\\$`])|(?P<expansion>[$`])|(?P<other>\\)"
)
"""Pieces within double quotes, and of a here-document."""
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
_BACKTICKS = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL)
_PARENTHESES = re.compile(
    r"""\\.|'[^']*'|"(?:[^"\\]|\\.)*"|(?<=\s)#[^\n]*|(?P<opens>\()|(?P<closes>\))|(?P<quote>['"])""",
    re.DOTALL,
)
_BRACES = re.compile(r"\\.|(?P<opens>\{)|(?P<closes>\})", re.DOTALL)
_LINE = re.compile(r"(?m)^\t*(.*)$")
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}


class Word(NamedTuple):
    """A word without its quotes, or a longer text."""

    text: str
    lines: Sequence[int]
    """The file's line of each line of the text."""

    @property
    def line(self) -> int:
        """Where it begins."""
        return self.lines[0]


@dataclass(slots=True, eq=False)
class Command:
    """A command, as far as the shell itself reads it."""

    words: list[Word] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    """The files to which it writes its output."""
    document: Word | None = None
    """Its input: a here-document or a here-string."""
    reads_file: bool = False
    """Its input is a file."""


class OpenQuoteError(Exception):
    """The text ends within quotes, or within an expansion."""


@dataclass(slots=True, eq=False)
class Reader:
    """Splits a text into commands as a shell does, with the line of each word."""

    text: str
    lines: Sequence[int]
    place: int = 0
    row: int = 0
    """The number of line breaks before `place`."""
    start: int = 0
    """The place behind the last whole pipeline."""
    pipeline: list[Command] = field(default_factory=lambda: [Command()])
    ended: list[list[Command]] = field(default_factory=list)
    """Pipelines that wait for the text of their here-documents."""
    pending: list[tuple[Command, str, bool, bool]] = field(default_factory=list)
    """Here-documents from the next line on: the line that ends each, whether tabs before its lines do not
    count, and whether a `$` stands for itself."""
    inner: list[Word] = field(default_factory=list)
    """The texts of `$(...)` and of backticks."""
    parts: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    """The text and the lines of the word that is read."""

    def pipelines(self) -> Iterator[list[Command]]:
        """Yield the commands, joined where a pipe joins them; OpenQuoteError where a quote has no end."""
        while self.place < len(self.text):
            match = _TOKEN.match(self.text, self.place)
            if match:
                self._token(match)
                if not self.pending:
                    yield from self.ended
                    self.ended.clear()
                continue
            word, words = self.word(_PIECE), self.pipeline[-1].words
            if len(words) < _MOST_WORDS:
                words.append(word)

    def word(self, pattern: re.Pattern[str]) -> Word:
        """Return the word here, as far as the pieces of this pattern go."""
        self.parts, self.rows = [], [self.lines[self.row]]
        while match := pattern.match(self.text, self.place):
            self._piece(match)
        return Word("".join(self.parts), tuple(self.rows))

    def _take(self, end: int) -> str:
        chunk = self.text[self.place : end]
        self.row += chunk.count("\n")
        self.place = end
        return chunk

    def _token(self, match: re.Match[str]) -> None:
        separator, words = self._take(match.end()), self.pipeline[-1].words
        if match.lastgroup == "redirection":
            self._redirect(match["redirection"], match["descriptor"])
        elif match.lastgroup == "pipe":
            self.pipeline.append(Command())
        elif match.lastgroup == "newline":
            self._read_documents()
            if words or not self.pipeline[1:]:
                self._end()
        elif separator == "((" and all(word.text in KEYWORDS for word in words[-MOST_KEYWORDS:]):
            # In a calculation, << does not begin a here-document.
            self.place -= len(separator)
            self._nest(1, self._closed(_PARENTHESES))
        elif match.lastgroup == "separator":
            self._end()

    def _end(self) -> None:
        if self.pipeline[0].words or self.inner:
            self.ended.append(self.pipeline)
        self.pipeline, self.start = [Command()], self.place

    def _redirect(self, operator: str, descriptor: str) -> None:
        blank = _TOKEN.match(self.text, self.place)
        if blank and blank.lastgroup == "blank":
            self._take(blank.end())
        command, start = self.pipeline[-1], self.place
        word = self.word(_PIECE)
        written = self.text[start : self.place]
        if operator == "<<<":
            command.document = word
        elif operator.startswith("<<"):
            literal = not {*"'\"\\"}.isdisjoint(written)
            self.pending.append((command, word.text, operator == "<<-", literal))
        elif operator == "<":
            command.reads_file = True
        elif operator in {">", ">>", ">|", "&>", "&>>"} and descriptor in {"", "1"}:
            command.targets.append(word.text)

    def _read_documents(self) -> None:
        for command, last, tabbed, literal in self.pending:
            first, lines = self.row, _LINE.finditer(self.text, self.place)
            end = next((match for match in lines if match[tabbed] == last), None)
            text = self._take(end.start() if end else len(self.text))
            lines_of_text = self.lines[first : self.row + 1]
            document = Word(re.sub(r"(?m)^\t+", "", text) if tabbed else text, lines_of_text)
            self._take(end.end() + 1 if end else len(self.text))
            try:
                command.document = document if literal else Reader(*document).word(_DOCUMENT)
            except OpenQuoteError:
                command.document = document
        self.pending.clear()

    def _piece(self, match: re.Match[str]) -> None:
        kind, first = match.lastgroup or "", self.row
        if kind == "expansion":
            self._expansion()
            return
        if kind == "open":
            raise OpenQuoteError
        self._take(match.end())
        lines = self.lines[first : self.row + 1]
        if kind == "double":
            while (piece := _QUOTED.match(self.text, self.place)) and piece.lastgroup != "end":
                self._piece(piece)
            if not piece:
                raise OpenQuoteError
            self._take(piece.end())
        elif kind == "template":
            self.parts.append(MARK)
        elif kind != "join":
            text = Word(match[kind], lines)
            text = decoded(text) if kind == "escapes" else text
            self.parts.append(text.text)
            self.rows += text.lines[1:]

    def _expansion(self) -> None:
        begin = self.text[self.place : self.place + 2]
        variable = _VARIABLE.match(self.text, self.place)
        if variable:
            self._take(variable.end())
        elif begin == "${":
            self._take(self._closed(_BRACES))
        elif begin.startswith("`"):
            backticks = _BACKTICKS.match(self.text, self.place)
            if not backticks:
                raise OpenQuoteError
            self._nest(1, backticks.end())
        elif begin.endswith("("):
            self._nest(2, self._closed(_PARENTHESES))
        else:
            self.parts.append(self._take(self.place + 1))
            return
        self.parts.append(MARK)

    def _nest(self, marks: int, end: int) -> None:
        """Keep the text between marks as commands of its own, and go on behind it."""
        first = self.row
        text = self._take(end)[marks:-1]
        self.inner.append(Word(text, self.lines[first : self.row + 1]))

    def _closed(self, pattern: re.Pattern[str]) -> int:
        """Return the place behind the bracket that closes the first from here on."""
        depth = 0
        for match in pattern.finditer(self.text, self.place):
            if match.lastgroup == "quote":
                break
            depth += (match.lastgroup == "opens") - (match.lastgroup == "closes")
            if match.lastgroup and not depth:
                return match.end()
        raise OpenQuoteError


def decoded(text: Word) -> Word:
    r"""Return the text without the escapes of `echo -e`, printf and $'...' for blanks and quotes (`\t`)."""
    parts: list[str] = []
    rows: list[int] = []
    for part, line in zip(text.text.split("\n"), text.lines, strict=False):
        parts.append(re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[0]), part))
        rows += [line] * (parts[-1].count("\n") + 1)
    return Word("\n".join(parts), rows)
