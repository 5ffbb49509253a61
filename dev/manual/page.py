"""The manual's pages of commands, each from its `--help` and from a part that is written by hand.

A command of nfstuned has a page. A command of a group has one where it has a part, and else a section of the
group's page. A part is roff(7) and has the command's name: config-check.roff. It stands after DESCRIPTION,
or at the end if a section begins it. A line `.so NAME.roff` in it stands for another part.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from nfstuned.cli.app import NAME, app, children

PARTS = Path(__file__).parent
DATE = "2026-11-29"
_WIDTH = 78
"""mandoc wants lines of at most 80 bytes."""
_LONG = 50
"""A synopsis, which is indented, has no longer list of words."""
_MARK = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|(?<![\w/-])(?P<option>--?[a-z][a-z-]*|-(?!\S))"
    r"|(?<!\w)(?P<path>/\w[\w./*@-]*\w/?)"
    r"|(?P<page>[a-z][\w.-]+)\((?P<section>[1-9])\)"
    r"|(?<![\w-])(?P<capitals>[A-Z]+)(?![\w-])"
    r"|(?<=\d)-(?=\w)"
    r"|\\"
)
_SECTIONS = ("Examples", "Exit status")
"""The blocks of a docstring that are sections; nfstuned(1) lists all commands instead of "Start here"."""
_ENTRY = re.compile(r"(\S.*?) {2,}(\S.*)")


class _Paragraph(NamedTuple):
    """A paragraph of a docstring: a text, or lines that stay as they are."""

    text: str = ""
    heading: str = ""
    lines: tuple[str, ...] = ()


def pages() -> dict[str, str]:
    """Return each page by the name of its file."""
    contexts = [ctx for ctx in _all(click.Context(app, None, NAME, **app.context_settings)) if _has_page(ctx)]
    return {f"{_title(ctx)}.1": _page(ctx, contexts) for ctx in contexts}


def part(name: str) -> str:
    """Return a part with the parts that it names; "" where there is none."""
    file = PARTS / f"{name}.roff"
    text = file.read_text() if file.exists() else ""
    return re.sub(r"^\.so (.*)\.roff\n", lambda line: part(line[1]), text, flags=re.MULTILINE)


def _below(ctx: click.Context) -> list[click.Context]:
    """Return the commands of a group that `--help` shows."""
    found = sorted(children(ctx.command).items())
    return [click.Context(child, ctx, name) for name, child in found if not child.hidden]


def _all(ctx: click.Context) -> Iterator[click.Context]:
    yield ctx
    for child in _below(ctx):
        yield from _all(child)


def _title(ctx: click.Context) -> str:
    return ctx.command_path.replace(" ", "-")


def _lead(ctx: click.Context) -> str:
    return _sentences(_paragraphs(ctx)[0].text)[0]


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!]) ", " ".join(text.split()))


def _part(ctx: click.Context) -> str:
    return part(_title(ctx).removeprefix(f"{NAME}-"))


def _has_page(ctx: click.Context) -> bool:
    return ctx.parent is None or ctx.parent.parent is None or _part(ctx) != ""


def _page(ctx: click.Context, contexts: Sequence[click.Context]) -> str:
    title = _title(ctx)
    lead = _lead(ctx).rstrip(".")
    own = [child for child in _below(ctx) if _has_page(child)]
    inner = [child for child in _below(ctx) if not _has_page(child)]
    text = _part(ctx).splitlines()
    apart = bool(text) and text[0].startswith(".SH")
    if text and not text[0].startswith(".S"):
        text.insert(0, ".PP")
    lines = [
        f'.TH {title.upper()} 1 {DATE} nfstuned "User Commands"',
        r".\" Made by `python -m dev.manual` from the command's help and from dev/manual.",
        ".nr HY 0",  # no hyphens in the names of commands
        ".ad l",
        ".SH NAME",
        f"{_dashes(title)} \\- {lead[0].lower()}{lead[1:]}",
        ".SH SYNOPSIS",
        *(line for shown in inner or [ctx] for line in _synopsis(shown)),
        ".SH DESCRIPTION",
        *_description(ctx),
        *([] if apart else text),
        *_commands(own),
        *_details(ctx, ".SH"),
        *(text if apart else []),
    ]
    for child in inner:
        lines += [f".SH {child.command_path.upper()}", *_description(child), *_details(child, ".SS")]
    listed = {_title(ctx), *map(_title, own)}
    others = [other for other in contexts if _title(other) not in listed]
    return "\n".join([*lines, *_see_also("\n".join(lines), listed, others)]) + "\n"


def _synopsis(ctx: click.Context) -> Iterator[str]:
    yield f".SY {NAME}"
    if ctx.parent is not None:
        yield f".B {_dashes(ctx.command_path.removeprefix(f'{NAME} '))}"
    for _, names, metavar in _options(ctx):
        name = names.rpartition(", ")[2]
        value = _marked(name.lstrip("-").upper()) if len(_plain(metavar)) > _LONG else metavar
        yield _folded(f"[{_marked(name)}\\~{value}]" if value else f"[{_marked(name)}]")
    usage = [piece for param in _params(ctx) for piece in param.get_usage_pieces(ctx)]
    if isinstance(ctx.command, click.Group):
        usage.append(ctx.command.subcommand_metavar or "")
    yield from (_marked(piece.strip("{}")) for piece in usage)
    yield ".YS"


def _description(ctx: click.Context) -> Iterator[str]:
    first, *others = [paragraph for paragraph in _paragraphs(ctx) if not paragraph.heading]
    lead = others.pop(0).text if others and others[0].text else ""
    yield from _prose(f"{first.text} {lead}", ctx)
    for paragraph in others:
        yield from (".PP", *_prose(paragraph.text, ctx)) if paragraph.text else _block(paragraph.lines, ctx)


def _commands(below: Sequence[click.Context]) -> Iterator[str]:
    if below:
        yield ".SH COMMANDS"
    width = max((len(_title(ctx)) for ctx in below), default=0) + len("(1)") + 2
    for ctx in below:
        yield from (f".TP {width}", f".BR {_dashes(_title(ctx))} (1)")
        yield from _prose(_lead(ctx), ctx)


def _details(ctx: click.Context, head: str) -> Iterator[str]:
    """Yield the options, the examples and the exit statuses, each with a heading."""
    options = list(_options(ctx))
    if options:
        yield _heading(head, "Options")
    for option, names, metavar in options:
        yield ".TP"
        yield _folded(" ".join(filter(None, (", ".join(map(_marked, names.split(", "))), metavar))))
        default = f"The default is {option.default}." if option.show_default else ""
        yield from _prose(f"{option.help} {_allowed(option, metavar)}{default}", ctx)
    for paragraph in _paragraphs(ctx):
        if paragraph.heading in _SECTIONS:
            yield _heading(head, paragraph.heading)
            yield from _block(paragraph.lines, ctx)


def _heading(head: str, title: str) -> str:
    return f"{head} {title.upper() if head == '.SH' else title}"


def _see_also(text: str, listed: Collection[str], contexts: Sequence[click.Context]) -> Iterator[str]:
    """Yield the pages and the commands that a page names, but those that it lists elsewhere."""
    plain = _plain(text)
    named = {(section, name) for name, section in re.findall(r"([a-z][\w.-]+) ?\(([1-9])\)", plain)}
    commands = (ctx for ctx in contexts if re.search(rf"\b{ctx.command_path}\b(?!-)", plain))
    named |= {("1", _title(ctx)) for ctx in commands} | {("1", NAME), ("5", "nfstuned.toml"), ("8", NAME)}
    yield ".SH SEE ALSO"
    left = sorted(named - {("1", name) for name in listed})
    for section, name in left:
        yield f".BR {_dashes(name)} ({section})" + ("," if (section, name) != left[-1] else "")


def _paragraphs(ctx: click.Context) -> list[_Paragraph]:
    """Return the paragraphs of a docstring; click's mark of lines that stay as they are is a backspace."""
    found = []
    for text in inspect.cleandoc(ctx.command.help or "").split("\n\n"):
        first, *lines = text.split("\n")
        if first == "\b":
            heading = lines.pop(0).rstrip(":") if lines[0].endswith(":") else ""
            kept = textwrap.dedent("\n".join(lines)).split("\n")
            found.append(_Paragraph(heading=heading, lines=tuple(kept)))
        else:
            found.append(_Paragraph(text))
    return found


def _params(ctx: click.Context) -> list[click.Parameter]:
    """Return the parameters; nfstuned(1) alone has --help, which all commands share."""
    return ctx.command.get_params(ctx) if ctx.parent is None else ctx.command.params


def _options(ctx: click.Context) -> Iterator[tuple[click.Option, str, str]]:
    """Yield the options that `--help` shows, each with its names and its metavariable in roff."""
    for param in _params(ctx):
        record = param.get_help_record(ctx)
        match = re.fullmatch(r"((?:--?[\w-]+(?:, )?)+)(?: \[?(.*?)\]?)?", record[0]) if record else None
        if isinstance(param, click.Option) and match:
            yield param, match[1], _marked(match[2] or "")


def _allowed(option: click.Option, metavar: str) -> str:
    """Return the values that an option takes, where its metavariable does not show them."""
    kind = option.type
    if isinstance(kind, click.Choice) and "|" not in metavar:
        return f"{', '.join(kind.choices[:-1])} or {kind.choices[-1]}. "
    if not isinstance(kind, click.IntRange | click.FloatRange):
        return ""
    return f"At least {kind.min}. " if kind.max is None else f"From {kind.min} to {kind.max}. "


def _block(lines: Sequence[str], ctx: click.Context) -> Iterator[str]:
    """Yield a list of terms and their texts, or the lines as they are."""
    entries: list[tuple[str, str]] = []
    for line in lines:
        match = _ENTRY.fullmatch(line)
        if line.startswith(" ") and entries:
            entries[-1] = entries[-1][0], f"{entries[-1][1]} {line.strip()}"
        elif match:
            entries.append((match[1], match[2]))
        else:
            yield from (".EX", *(_protected(_dashes(shown.replace("\\", "\\e"))) for shown in lines), ".EE")
            return
    width = max(len(term) for term, _ in entries) + 2
    for term, text in entries:
        yield from (f".TP {width}", f".B {_dashes(term)}")
        yield from _prose(text, ctx)


def _prose(text: str, ctx: click.Context) -> Iterator[str]:
    """Yield a text as lines of roff; each sentence begins a line."""
    usage = [piece for param in _params(ctx) for piece in param.get_usage_pieces(ctx)]
    usage += [_plain(metavar) for _, _, metavar in _options(ctx)]
    metavars = re.findall(r"[A-Z]+", " ".join(usage))

    def mark(match: re.Match[str]) -> str:
        if match["code"] or match["option"]:
            return f"\\fB{_dashes(match['code'] or match['option'])}\\fP"
        if match["path"]:
            return f"\\fI{_dashes(match[0])}\\fP"
        if match["page"]:
            return f"\\fB{_dashes(match['page'])}\\fP({match['section']})"
        if match["capitals"]:
            return f"\\fI{match[0]}\\fP" if match[0] in metavars else match[0]
        return "\\-" if match[0] == "-" else "\\e"

    for sentence in _sentences(text):
        marked = _MARK.sub(mark, sentence)
        lines = textwrap.wrap(marked, _WIDTH, break_long_words=False, break_on_hyphens=False)
        yield from map(_protected, lines)


def _marked(usage: str) -> str:
    """Return a piece of usage: a word in capitals stands for another, and the others are typed."""
    return re.sub(r"[\w-]+", lambda m: f"\\f{'I' if m[0].isupper() else 'B'}{_dashes(m[0])}\\fP", usage)


def _plain(roff: str) -> str:
    return re.sub(r"\\f[BIPR]", "", roff).replace("\\-", "-")


def _folded(line: str) -> str:
    """Return a line, or pieces that roff joins."""
    return line if len(line) <= _WIDTH else line.replace("|", "|\\\n")


def _dashes(text: str) -> str:
    return text.replace("-", "\\-")


def _protected(line: str) -> str:
    """Return a line of text that roff does not take for a request."""
    return f"\\&{line}" if line.startswith((".", "'")) else line
