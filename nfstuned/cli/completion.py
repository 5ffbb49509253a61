"""Completion scripts for bash, zsh and fish, made from the commands as click knows them.

click's own scripts start the program at every press of TAB. These hold all words themselves: there is nothing
on the host that a completion would have to ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click

from nfstuned.cli.app import app, children
from nfstuned.cli.options import RuleName

NAME = "nfstuned"
_HELP_WIDTH = 60


@dataclass(frozen=True, slots=True)
class Word:
    """A word that may follow, its help, and the values that may follow it in turn."""

    text: str
    help: str
    values: tuple[str, ...] | None = None
    """None for a word that takes no value, empty for one whose values are files or free."""


@dataclass(frozen=True, slots=True)
class Node:
    """A command: its full name, and the words that may follow it."""

    path: str
    commands: tuple[Word, ...]
    options: tuple[Word, ...]

    @property
    def words(self) -> tuple[Word, ...]:
        """Return all words that may follow."""
        return self.commands + self.options


def script(shell: str, app: click.Group) -> str:
    """Return the completion script of `shell`, one of SHELLS; KeyError for any other."""
    return SHELLS[shell](list(nodes(app, click.Context(app, info_name=NAME, **app.context_settings))))


def nodes(command: click.Command, context: click.Context) -> Iterator[Node]:
    """Yield `command` and all commands below it."""
    below = children(command)
    words = [Word(name, _short(child.get_short_help_str(_HELP_WIDTH))) for name, child in below.items()]
    options: list[Word] = []
    for parameter in command.get_params(context):
        if isinstance(parameter, click.Option):
            values = None if parameter.is_flag else tuple(word.text for word in _values(parameter))
            options.extend(Word(name, _short(parameter.help or ""), values) for name in parameter.opts)
        else:
            words.extend(_values(parameter))
    yield Node(context.command_path, tuple(words), tuple(options))
    for name, child in below.items():
        yield from nodes(child, click.Context(child, info_name=name, parent=context))


def _values(parameter: click.Parameter) -> list[Word]:
    """Return the values that a parameter may have, none where they are free."""
    if isinstance(parameter.type, click.Choice):
        return [Word(value, "") for value in parameter.type.choices]
    if isinstance(parameter.type, RuleName):
        from nfstuned.core.rules.catalogue import CATALOGUE  # noqa: PLC0415 - only the scripts need every rule

        return [Word(rule.id, rule.name) for rule in CATALOGUE]
    return []


def _short(text: str) -> str:
    """Return a help text as all three shells take it between single quotes."""
    return text.rstrip(".").replace("'", "").replace(":", " -")


def _fill(template: str, tree: list[Node], assign: Callable[[Sequence[Word]], str]) -> str:
    """Return a script with its tables: the names of commands, what may follow an option, and a command."""
    values = [
        f'        "{node.path} {option.text}") {assign([Word(value, "") for value in option.values])} ;;'
        for node in tree
        for option in node.options
        if option.values is not None
    ]
    words = [f'            "{node.path}") {assign(node.words)} ;;' for node in tree]
    paths = " | ".join(f'"{node.path}"' for node in tree if " " in node.path)
    return template.format(paths=paths, values="\n".join(values), words="\n".join(words))


def _bash_words(words: Sequence[Word]) -> str:
    return f'words="{" ".join(word.text for word in words)}"'


def _zsh_words(words: Sequence[Word]) -> str:
    described = (f"'{word.text}:{word.help}'" if word.help else word.text for word in words)
    return f"words_=({' '.join(described)})"


def _fish(tree: list[Node]) -> str:
    lines = ["# fish completion for nfstuned", f"complete -c {NAME} -f"]
    for node in tree:
        start = f"complete -c {NAME} -n '{_fish_condition(node)}'"
        lines += [f"{start} -a {word.text}{_fish_help(word)}" for word in node.commands]
        for word in node.options:
            flag = f"-l {word.text[2:]}" if word.text.startswith("--") else f"-s {word.text[1:]}"
            values = ""
            if word.values is not None:
                values = f" -x -a '{' '.join(word.values)}'" if word.values else " -r -F"
            lines.append(f"{start} {flag}{values}{_fish_help(word)}")
    return "\n".join(lines) + "\n"


def _fish_condition(node: Node) -> str:
    """Return when the words of a command are offered: behind its name, and before one of its own commands."""
    above = [f"__fish_seen_subcommand_from {name}" for name in node.path.split()[1:]]
    if not above:
        return "__fish_use_subcommand"
    if node.commands:
        names = " ".join(word.text for word in node.commands)
        above.append(f"not __fish_seen_subcommand_from {names}")
    return "; and ".join(above)


def _fish_help(word: Word) -> str:
    return f" -d '{word.help}'" if word.help else ""


_BASH = """\
# bash completion for nfstuned

_nfstuned() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} place=nfstuned words="" word
    # bash takes the "=" of --format=json for a word of its own.
    if [[ $cur == "=" ]]; then
        cur=""
    elif [[ $prev == "=" ]]; then
        prev=${{COMP_WORDS[COMP_CWORD-2]}}
    fi
    for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case "$place $word" in
            {paths}) place="$place $word" ;;
        esac
    done
    case "$place $prev" in
{values}
        *) case "$place" in
{words}
        esac ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}}

# Where no word is known, the value is a file's name or free.
complete -o default -F _nfstuned nfstuned
"""

_ZSH = """\
#compdef nfstuned

_nfstuned() {{
    local place=nfstuned word
    local -a words_
    for word in "${{(@)words[2,CURRENT-1]}}"; do
        case "$place $word" in
            {paths}) place="$place $word" ;;
        esac
    done
    case "$place $words[CURRENT-1]" in
{values}
        *) case "$place" in
{words}
        esac ;;
    esac
    if (( $#words_ )); then _describe nfstuned words_; else _files; fi
}}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _nfstuned "$@"
else
    compdef _nfstuned nfstuned
fi
"""

SHELLS: dict[str, Callable[[list[Node]], str]] = {
    "bash": lambda tree: _fill(_BASH, tree, _bash_words),
    "zsh": lambda tree: _fill(_ZSH, tree, _zsh_words),
    "fish": _fish,
}
FILES = {"bash": "nfstuned.bash", "zsh": "_nfstuned", "fish": "nfstuned.fish"}
"""The names under which docs/completion has the scripts."""


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "fish", "zsh")))
def command(shell: str) -> int:
    """Print a completion script: bash, zsh or fish.

    The scripts know every command and option by themselves: completing starts no program.

    \b
    Examples:
      nfstuned completion bash | sudo tee /etc/bash_completion.d/nfstuned
      nfstuned completion zsh > ~/.zfunc/_nfstuned
      nfstuned completion fish > ~/.config/fish/completions/nfstuned.fish

    \b
    Exit status:
      0  printed
      2  wrong usage
    """
    click.echo(script(shell, app), nl=False)
    return 0
