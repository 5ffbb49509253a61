"""The commands about rules as click knows them: check, explain and rules."""

from __future__ import annotations

from typing import Any

import click

from nfstuned.cli.options import RuleName, format_option
from nfstuned.host.root import Root
from nfstuned.model.finding import Severity


@click.command("check")
@click.option(
    "--root",
    "image",
    type=click.Path(),
    metavar="DIR",
    help="Judge the files of an image instead of this host.",
)
@click.option(
    "--fstab",
    type=click.Path(),
    metavar="FILE|-",
    help="Judge this file in the place of /etc/fstab; - is stdin.",
)
@click.option("--offline", is_flag=True, help="Send nothing over the network.")
@click.option(
    "--sample",
    "sample_s",
    type=click.IntRange(0, 3600),
    default=0,
    metavar="SECONDS",
    help="Look twice, so many seconds apart, for the rules that measure.",
)
@click.option(
    "--select",
    multiple=True,
    type=RuleName(),
    metavar="IDS",
    help="Only these rules: ids, names, or the start of ids such as NFS1.",
)
@click.option("--ignore", multiple=True, type=RuleName(), metavar="IDS", help="Not these rules.")
@click.option(
    "--fail-on",
    type=click.Choice([severity.value for severity in Severity]),
    default="warning",
    show_default=True,
    help="The least severity that makes the exit status 1.",
)
@format_option("junit", "sarif", "prometheus")
@click.pass_obj
def check(root: Root, /, **options: Any) -> int:  # noqa: ANN401 - Order has the types
    """Say what is wrong with NFS and SMB mounts.

    It judges the mounts that exist on this host or that its files ask for (fstab, mount units, autofs maps),
    the udev rules, names and ports, and the host itself; with --root the files of an image. It changes
    nothing and touches no mount. `nfstuned rules` lists what it looks for, `nfstuned explain RULE` says why.
    IDS are separated by commas.

    \b
    Examples:
      nfstuned check
      nfstuned check --root /mnt/image --fail-on error
      nfstuned check --fstab fstab.new --offline --format junit > check.xml
      nfstuned check --sample 10 --select NFS1,NFS2 --ignore read-ahead-not-persistent

    \b
    Exit status:
      0  nothing as bad as --fail-on
      1  something is
      2  could not check: wrong usage, an invalid configuration of this host, a rule that crashed, or
         an fstab that cannot be read as a whole; what could be judged is told all the same
    """
    from nfstuned.cli.check import Order, judge  # noqa: PLC0415 - the rules are slow to load

    return judge(root, Order(**options))


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
    from nfstuned.cli.explain import print_page  # noqa: PLC0415 - the rules are slow to load

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
    from nfstuned.cli.explain import print_rules  # noqa: PLC0415 - the rules are slow to load

    return print_rules(form)
