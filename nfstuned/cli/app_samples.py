"""The commands about what mounts deliver and delivered, as click knows them."""

from __future__ import annotations

import math
from typing import Any

import click

from nfstuned.cli.options import format_option
from nfstuned.core.top import SORTS
from nfstuned.host.root import Root


class Seconds(click.FloatRange):
    """A range of seconds; "nan" lies in none, whatever comparisons say."""

    name = "seconds"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click's
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number, or fail as click does."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


@click.command()
@click.option(
    "--since",
    metavar="TIME",
    help="Begin here: 1h ago, today, 14:30, 2026-07-29 14:30 (default: of the journal 24h ago).",
)
@click.option(
    "--mount", metavar="PATH", help="Only the mount at this mount point, also one that is gone by now."
)
@click.option(
    "--file",
    type=click.Path(),
    metavar="FILE|-",
    help="Read JSON lines instead of the journal, with the older files beside it; - is stdin.",
)
@format_option("csv")
@click.pass_obj
def samples(root: Root, /, *, since: str | None, mount: str | None, file: str | None, form: str) -> int:
    """Show what mounts delivered in the past.

    The service writes a sample of each mount that was in use once in each sample_interval. They are read
    from the journal, or from the file that [samples] in nfstuned.toml(5) names; no mount is touched. Each
    figure is a row with bars over the time, all mounts over the same, and with its least, median and
    greatest value while the mount was in use:

    \b
      read, write          what programs asked for, and got
      over-fetch           bytes read from the server for each byte that programs read
      read RTT, write RTT  the mean time from sending a request to its reply

    \b
    Examples:
      nfstuned samples
      nfstuned samples --since "2h ago" --mount /data
      nfstuned samples --since today --format csv > today.csv
      nfstuned samples --file /var/log/nfstuned/samples.jsonl
      nfstuned samples --format json | jq '.samples[] | select(.over_fetch_ratio > 2) | .mount_points'

    \b
    Exit status:
      0  shown, even where there was nothing to show
      1  shown, but without lines or entries that are damaged; stderr names them
      2  could not read: no access to the journal, no such file, or wrong usage
    """
    from nfstuned.cli.samples import Order, show  # noqa: PLC0415 - no other command needs it

    if mount is not None and not mount.startswith("/"):
        raise click.BadParameter("give the whole path, as in /mnt/data", param_hint="--mount")
    return show(root, Order(since, mount, file, form))


@click.command()
@click.option(
    "--interval",
    "interval_s",
    type=Seconds(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How far apart two looks are, from 0.1 to 3600.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default=SORTS[0],
    show_default=True,
    metavar="KEY",
    help="What comes first: total (read and write), read, write, over-fetch, ops, read-rtt, and so on.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="Print so many blocks of text and end, also on a terminal.",
)
@click.pass_obj
def top(root: Root, /, *, interval_s: float, sort: str, count: int | None) -> int:
    """Show what each mount delivers, now.

    A line is one superblock, which several mounts can share: what programs read and wrote, the over-fetch,
    operations, mean round trips and connections. It opens to its operations and connections; h explains the
    keys and the columns. The figures are those of the service's samples, which need not run. No mount is
    touched, so that a dead server cannot hang this.

    Where the output is no terminal, and with --count, it prints a block of text for each interval, with the
    superblocks that were in use.

    \b
    Examples:
      nfstuned top
      nfstuned top --interval 10 --sort over-fetch
      nfstuned top --count 1
      nfstuned top --interval 60 >> throughput.txt

    \b
    Exit status:
      0  ended by q, or after --count blocks
      2  wrong usage, or the reader of the output has gone
      130 (Ctrl-C) or 128 and the number of another signal, which ended it
    """
    from nfstuned.cli.top import Order, show  # noqa: PLC0415 - no other command needs it

    return show(root, Order(interval_s, sort, count))
