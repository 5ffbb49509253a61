"""`nfstuned report`."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from typing import Any

import click

from nfstuned.cli import samples
from nfstuned.cli.check import judge_host
from nfstuned.cli.terminal import (
    file_option,
    host_name,
    mount_option,
    note,
    require_absolute_path,
    since_option,
    usable_policy,
    write_output,
)
from nfstuned.core.samples.history import Series
from nfstuned.host.files.write import demand_place
from nfstuned.host.network.outside import Outside
from nfstuned.host.root import STDIN, Root
from nfstuned.host.telemetry.history import changes
from nfstuned.host.volumes import read_kubelet_names
from nfstuned.parse.fields import count
from nfstuned.view.report import Account, Page, report_page

WRITTEN, INCOMPLETE, FAILED = 0, 1, 2
_LEFT_OUT = "Not checked: the page has samples only (--samples-only)."
_INVALID = "Not checked: the configuration is invalid, see nfstuned config check."


@dataclass(frozen=True, slots=True)
class ReportOrder:
    """The options."""

    since: str | None
    mount: str | None
    file: str | None
    output: str | None
    offline: bool
    samples_only: bool


def write_report(root: Root, order: ReportOrder, outside: Outside | None = None) -> int:
    """Write the page; a test answers for the world `outside`. Raises OSError of stdout."""
    asked = samples.SamplesOrder(order.since, order.mount, order.file)
    try:
        if order.output is not None:  # a week of samples takes a while to read
            demand_place(order.output)
    except OSError as error:
        note(f"{order.output}: {error.strerror or error}")
        return FAILED
    opened = samples.select_samples(root, asked)
    if opened is None:
        return FAILED
    selection, since_s = opened
    series = Series()
    for sample in selection:
        series.add(sample)
    if series.span is None:
        samples.explain_absence(asked, since_s, selection)
    # All samples are in the charts, and the time that was asked for. A file may have ended long ago.
    now = time.time()
    first, last = series.span or (now, now)
    start = first if since_s is None else min(first, since_s)
    end = last if order.file is not None and series.span is not None else max(last, now)
    title = f"NFS mounts of {host_name()}"
    if order.file is not None and order.samples_only:
        title = f"NFS mounts in {'standard input' if order.file == STDIN else order.file}"
    account = replace(_account(root, order, start, outside), damaged=selection.problems)
    mounts = tuple(series.mounts())
    page = Page(title, now, start, end, series.axis(), mounts, account)
    if not order.samples_only:
        points = (point for mount in mounts for point in mount.points)
        page = replace(page, names=read_kubelet_names(root, points))
    if not write_output(report_page(page), order.output, count(len(page.mounts), "mount")):
        return FAILED
    unknown = not order.samples_only and (account.report is None or bool(account.no_events))
    return INCOMPLETE if selection.problems or unknown else WRITTEN


def _account(root: Root, order: ReportOrder, since_s: float, outside: Outside | None) -> Account:
    """Return the check's findings and the service's events, or why the page is without them."""
    if order.samples_only:
        return Account(no_report=_LEFT_OUT, no_events=_LEFT_OUT)
    policy = usable_policy(root)
    report = None if policy is None else judge_host(root, policy, outside, offline=order.offline)
    account = Account(report=report, no_report=_INVALID if report is None else "")
    try:
        return replace(account, events=tuple(changes(root, since_s)))
    except OSError as error:
        why = error.strerror or error
        note(f"the service's changes are not on the page: {why}")
        return replace(account, no_events=f"Not known: {why}")


@click.command("report")
@since_option
@mount_option
@file_option
@click.option(
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the page to this file, completely or not at all (default: stdout).",
)
@click.option("--offline", is_flag=True, help="Send nothing over the network to judge this host.")
@click.option(
    "--samples-only",
    is_flag=True,
    help="Leave the check of this host and the service's changes out, as for a file of another host.",
)
@click.pass_obj
def report_command(root: Root, /, **options: Any) -> int:  # noqa: ANN401 - Order has the types
    """Write what mounts delivered as one HTML page.

    It has charts of each mount's throughput, over-fetch, times, operations and connections, the findings of
    `nfstuned check` on this host now, and the changes by the service. It needs nothing but a browser: it
    loads nothing and runs no script. The samples are those of `nfstuned samples`. Where there are more than
    400 points of time, a point is the mean of several samples; the page gives their time.

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
    require_absolute_path(options["mount"])
    if options["output"] is None and sys.stdout.isatty():
        raise click.UsageError("a page does not fit a terminal: give --output FILE")
    return write_report(root, ReportOrder(**options))
