"""The commands about what mounts deliver and delivered, as click knows them."""

from __future__ import annotations

import math
import sys
from typing import Any

import click

from nfstuned.cli.options import format_option
from nfstuned.core.samples.top import SORTS
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


_since = click.option(
    "--since",
    metavar="TIME",
    help="Begin here: 1h ago, today, 14:30, 2026-07-29 14:30 (default: of the journal 24h ago).",
)
_mount = click.option(
    "--mount", metavar="PATH", help="Only the mount at this mount point, also one that is gone by now."
)
_file = click.option(
    "--file",
    type=click.Path(),
    metavar="FILE|-",
    help="Read JSON lines instead of the journal, with the older files beside it; - is stdin.",
)


def _demand_whole_path(mount: str | None) -> None:
    """Raise click.BadParameter for what can be no mount point."""
    if mount is not None and not mount.startswith("/"):
        raise click.BadParameter("give the whole path, as in /mnt/data", param_hint="--mount")


@click.command()
@_since
@_mount
@_file
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

    _demand_whole_path(mount)
    return show(root, Order(since, mount, file, form))


@click.command()
@_since
@_mount
@_file
@click.option(
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the page to this file, as a whole or not at all (default: stdout).",
)
@click.option("--offline", is_flag=True, help="Send nothing over the network to judge this host.")
@click.option(
    "--samples-only",
    is_flag=True,
    help="Neither judge this host nor say what its service did, as for a file of another host.",
)
@click.pass_obj
def report(root: Root, /, **options: Any) -> int:  # noqa: ANN401 - Order has the types
    """Write what mounts delivered as one HTML page.

    It has charts of each mount's throughput, over-fetch, times, operations and connections, what `nfstuned
    check` says of this host now, and what the service did. It needs nothing but a browser: it loads nothing
    and runs no script. The samples are those of `nfstuned samples`. Where there are more than 400 points of
    time, a point is the mean of several samples; the page says of how long.

    \b
    Examples:
      sudo nfstuned report --output report.html
      sudo nfstuned report --since "7d ago" --mount /data > data.html
      nfstuned report --file samples.jsonl --samples-only --output report.html

    \b
    Exit status:
      0  written, even where there was nothing to show
      1  written, but without damaged samples, or without the check or the journal; stderr says why
      2  could not read the samples or write the page, or wrong usage
    """
    from nfstuned.cli.report import Order, write  # noqa: PLC0415 - no other command needs it

    _demand_whole_path(options["mount"])
    if options["output"] is None and sys.stdout.isatty():
        raise click.UsageError("a page is not for a terminal: give --output FILE")
    return write(root, Order(**options))


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
