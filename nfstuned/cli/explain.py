"""`nfstuned explain` and `nfstuned rules`."""

from __future__ import annotations

import os
import sys

import click

from nfstuned.cli.terminal import RuleName, format_option, print_document
from nfstuned.core.rules.catalogue import CATALOGUE, correction, find_rules
from nfstuned.host.installed import page
from nfstuned.view.check import needs, rules_document

SHOWN = 0
HEADER = ("RULE", "SEVERITY", "NAME", "NEEDS")


@click.command()
@click.argument("rule", type=RuleName())
def explain_command(rule: str) -> int:
    """Print why a rule matters and how to follow it.

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
    named = find_rules(rule)
    if not named:
        raise click.BadParameter(correction(rule), param_hint="RULE")
    # A package may have left the pages out.
    text = "\n".join(
        page(r.id) or f"# {r.id}: {r.name}\n\n*{r.severity.value}*\n\nSource: {r.source}\n" for r in named
    )
    if not sys.stdout.isatty():
        sys.stdout.write(text)
        return SHOWN
    from rich.console import Console  # noqa: PLC0415 - slow to load, and only for a terminal
    from rich.markdown import Markdown  # noqa: PLC0415 - as above

    console = Console(file=sys.stdout, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)
    console.print(Markdown(text, hyperlinks=False))
    return SHOWN


@click.command()
@format_option()
def rules(form: str) -> int:
    """List the rules of `nfstuned check`.

    NEEDS lists the input of a rule: host (a host or an image), live (the running kernel), network, sample
    (two looks, see `nfstuned check --sample`), image (`--root`). The other rules also judge an fstab alone
    (`--fstab`).

    \b
    Examples:
      nfstuned rules
      nfstuned rules --format json |
        jq -r '.rules[] | select(.severity == "error") | .id'

    \b
    Exit status:
      0  printed
      2  wrong usage
    """
    if form == "json":
        print_document(rules_document(CATALOGUE))
        return SHOWN
    from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

    rows = [(rule.id, rule.severity.value, rule.name, ", ".join(needs(rule)) or "-") for rule in CATALOGUE]
    print_table((Column(), Column(coloured=True), Column(), Column()), rows, HEADER)
    return SHOWN
