"""The command about samples that were kept, as click knows it."""

from __future__ import annotations

import click

from nfstuned.cli.options import format_option
from nfstuned.host.root import Root


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
