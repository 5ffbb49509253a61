"""`nfstuned explain` and `nfstuned rules`."""

from __future__ import annotations

import os
import sys

import click
from rich.console import Console
from rich.markdown import Markdown

from nfstuned.cli.options import RuleName, format_option
from nfstuned.core.rules.catalogue import CATALOGUE, correction, find
from nfstuned.host.files.installed import page
from nfstuned.model.finding import Rule
from nfstuned.view.check import needs, rules_document
from nfstuned.view.words import to_json


def print_markdown(text: str) -> None:
    """Print it at the terminal's width, in colour unless NO_COLOR asks for none."""
    console = Console(file=sys.stdout, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    console.print(Markdown(text, hyperlinks=False))


SHOWN = 0
HEADER = ("RULE", "SEVERITY", "NAME", "NEEDS")


def print_page(word: str) -> int:
    """Print the page of a rule by its id or name; raises click.BadParameter where there is none."""
    rules = find(word)
    if not rules:
        raise click.BadParameter(correction(word), param_hint="RULE")
    text = "\n".join(page(rule.id) or _stub(rule) for rule in rules)
    if sys.stdout.isatty():
        print_markdown(text)
    else:
        sys.stdout.write(text)
    return SHOWN


def print_rules(form: str) -> int:
    """Print the catalogue."""
    if form == "json":
        sys.stdout.write(to_json(rules_document(CATALOGUE)) + "\n")
        return SHOWN
    from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

    rows = [(rule.id, rule.severity.value, rule.name, ", ".join(needs(rule)) or "-") for rule in CATALOGUE]
    print_table((Column(), Column(coloured=True), Column(), Column()), rows, HEADER)
    return SHOWN


def _stub(rule: Rule) -> str:
    """Return what is known of a rule without its page, which a package may have left out."""
    return f"# {rule.id}: {rule.name}\n\n*{rule.severity.value}*\n\nSource: {rule.source}\n"


@click.command()
@click.argument("rule", type=RuleName())
def explain(rule: str) -> int:
    """Print why a rule matters and how to mend it.

    RULE is an id or a name, as `nfstuned check` and `nfstuned rules` print them.

    \b
    Examples:
      nfstuned explain NFS101
      nfstuned explain read-ahead-below-policy

    \b
    Exit status:
      0  printed
      2  there is no such rule; the nearest ones are named
    """
    return print_page(rule)


@click.command()
@format_option()
def rules(form: str) -> int:
    """List the rules of `nfstuned check`.

    NEEDS says what a rule cannot judge without: the running kernel (live), the network, two looks
    (sample, see `nfstuned check --sample`) or an image (`--root`). The others judge files alone.

    \b
    Examples:
      nfstuned rules
      nfstuned rules --format json | jq -r '.rules[] | select(.severity == "error") | .id'

    \b
    Exit status:
      0  printed
      2  wrong usage
    """
    return print_rules(form)
