"""`nfstuned status`, and `nfstuned wait` for one of its rows."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

import click

from nfstuned.cli.terminal import dated, format_option, note, print_document, unreadable_lines, usable_policy
from nfstuned.core.mounts.status import StatusRow, hidden, status, status_rules
from nfstuned.host.config import builtin_policy
from nfstuned.host.observe import observe_host, read_seen, read_stalls
from nfstuned.host.remount import mount_nodes
from nfstuned.host.root import Root
from nfstuned.host.system import read_service
from nfstuned.model.change import NconnectStep
from nfstuned.model.kernel import Mount
from nfstuned.model.mounts import Snapshot, Superblock
from nfstuned.model.policy import Policy
from nfstuned.parse.proc.mounts import node_at
from nfstuned.parse.udev_rules import read_rule_files
from nfstuned.view.status import (
    STALLED_HEADER,
    STATUS_HEADER,
    hints,
    legend,
    nconnect_mark,
    path_lines,
    rule_lines,
    seen_lines,
    service_line,
    stalled_cell,
    status_cells,
    status_document,
    wait_reason,
)

SHOWN, NOT_YET, INVALID = 0, 1, 2
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0
OBSERVES = 'mode = "observe": the service only reports the values, and writes none'


def _print(rows: tuple[StatusRow, ...], lines: tuple[str, ...]) -> None:
    if rows:
        from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

        columns = [
            Column(shrinks=2),
            Column(shrinks=1),
            Column(),
            Column(right=True),
            Column(mark=True),
            Column(right=True),
            Column(mark=True),
            Column(right=True),
        ]
        cells = [status_cells(row) for row in rows]
        header: tuple[str, ...] = STATUS_HEADER
        if any(row.stalled_s for row in rows):
            columns.append(Column(right=True))
            cells = [(*shown, stalled_cell(row)) for shown, row in zip(cells, rows, strict=True)]
            header = (*header, STALLED_HEADER)
        print_table(columns, cells, header)
    else:
        sys.stdout.write("No NFS mounts.\n")
    sys.stdout.writelines(line + "\n" for line in lines)


def _named(root: Root, rows: tuple[StatusRow, ...]) -> tuple[StatusRow, ...]:
    """Return rows with the names that a kubelet's files have for their volumes."""
    if not any("/kubernetes.io" in row.mount_point or "/pods/" in row.mount_point for row in rows):
        return rows
    # Only a node of Kubernetes needs these.
    from nfstuned.core.mounts.volumes import pod_volumes, volume_name, volume_paths  # noqa: PLC0415
    from nfstuned.host.volumes import read_kubelet_names  # noqa: PLC0415

    names = read_kubelet_names(root, [row.mount_point for row in rows])
    named = []
    for row in rows:
        points = (row.mount_point,)
        if label := volume_name(points, names, row.source):
            volumes, paths = pod_volumes(points, names, row.source), volume_paths(points, names)
            named.append(replace(row, label=label, path=paths[0], volume=next(iter(volumes), None)))
        else:
            named.append(row)
    return tuple(named)


def nconnect_changes(
    root: Root, snapshot: Snapshot, policy: Policy | None, rows: tuple[StatusRow, ...]
) -> tuple[NconnectStep, ...]:
    """Return the steps to the right nconnect; none where all mounts have it, or no target is known."""
    if policy is None or not {"low", "high", "ignored"} & {nconnect_mark(row) for row in rows}:
        return ()
    from nfstuned.app.nconnect import nconnect_steps  # noqa: PLC0415 - where all is right nobody needs it

    return nconnect_steps(root, snapshot, policy)


@click.command("status")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Explain the table's words, and add lines on mounts of pods and on the reads that the service saw.",
)
@format_option()
@click.pass_obj
def status_command(root: Root, form: str, *, verbose: bool) -> int:
    """Show the settings of every NFS mount, and its targets.

    READ-AHEAD is now/target in KiB. NCONNECT is requested/now/target: the kernel takes it from the first
    mount of a server, later mounts share its connections whatever they ask for. CONN counts the connections
    that exist. The word after a number judges it; -v explains the words of the output:

    \b
      ok, low, high  by the target
      adapted        the mount's reads moved the target: ADAPTING in nfstuned.toml(5)
      undone         by `nfstuned undo`
      existing       from before the installation, left unchanged until the next boot
      ignored        the mount asked for another number
      unknown        it could not be read
      -              the profile asks for nothing

    Below the table a line for each kind of difference has the number of its mounts, and the command that
    changes something, or the reason why none does. `nfstuned why` shows where a mount's numbers come from.

    A mount that a kubelet made has the name of its volume and pod instead of its path of 200 characters;
    with -v a line has the mount point.

    STALLED is there if requests wait for a server, and for how long. No mount is touched: a dead server
    cannot hang this.

    With -v each mount that was read also has a line: its throughput, the round trip of READ and the
    over-fetch before and after the last change of its read-ahead, as far as the load stayed the same, and
    the bytes in flight that fill the link to its server.

    \b
    Examples:
      nfstuned status
      nfstuned status -v
      nfstuned status --format json | jq '.mounts[] |
        select(.read_ahead_kb and .read_ahead_kb < .read_ahead_target_kb)'

    \b
    Exit status:
      0  shown, even where something is low
      2  the configuration is invalid (the mounts are shown, without targets), a file could not be
         read, but for want of rights (the rest is shown), or wrong usage
    """
    policy = usable_policy(root)
    if policy is None:
        note("the configuration is invalid: the targets are unknown")
    snapshot = observe_host(root)
    rows = status(
        snapshot, policy or builtin_policy(), read_stalls(root), read_seen(root), valid=policy is not None
    )
    writers, service = status_rules(read_rule_files(root)), read_service(root)
    unreadable_lines(snapshot.problems)
    complete = all(row.connections is not None for row in rows)
    unreadable_lines(root.faults.denied((f"{root.view}/mountstats",) if complete else ()))
    rows = _named(root, rows)
    if form == "json":
        print_document(dated(status_document(rows, writers, policy.mode if policy else None, service)))
    else:
        lines = hints(rows, hidden(snapshot), nconnect_changes(root, snapshot, policy, rows))
        observes = (OBSERVES,) if policy is not None and policy.observes else ()
        stopped = service_line(service)
        reads = (*path_lines(rows), *seen_lines(rows)) if verbose else ()
        words = legend(rows) if verbose else ()
        _print(rows, (*stopped, *observes, *reads, *lines, *(rule_lines(writers) if rows else ()), *words))
    return SHOWN if policy is not None else INVALID


def find_mount(root: Root, snapshot: Snapshot, path: str) -> tuple[Mount, Superblock] | None:
    """Return the NFS mount that has a path, and its superblock; None where another mount has it.

    Only names are compared. A mount of another mount namespace counts where none of this one is as deep.
    """
    pairs = [(mount, superblock) for superblock in snapshot.superblocks for mount in superblock.mounts]
    on_top = node_at(path, mount_nodes(root))
    own = [pair for pair in pairs if not pair[0].foreign]
    if on_top is not None and any(pair[0].mount_id == on_top.mount_id for pair in own):
        return next(pair for pair in own if pair[0].mount_id == on_top.mount_id)
    deepest = len(on_top.point) if on_top is not None else 0
    foreign = [pair for pair in pairs if pair[0].foreign and len(pair[0].point) > deepest]
    holding = [pair for pair in foreign if f"{path}/".startswith(f"{pair[0].point}/")]
    return max(holding, key=lambda pair: (len(pair[0].point), pair[0].mount_id), default=None)


def _row_of(root: Root, snapshot: Snapshot, policy: Policy, point: str) -> StatusRow | None:
    """Return the row of the mount that this mount namespace shows at a point; None where it is no NFS."""
    found = find_mount(root, snapshot, point)
    if found is None or found[0].foreign or found[0].point != point:
        return None
    device = found[1].device
    return next(row for row in status(snapshot, policy) if (row.mount_point, row.device) == (point, device))


@click.command("wait")
@click.argument("mount_point", metavar="MOUNT")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=30,
    show_default=True,
    metavar="SECONDS",
    help="Give up after this time; 0 looks once.",
)
@click.pass_obj
def wait_command(root: Root, mount_point: str, timeout: float) -> int:
    """Wait until MOUNT has the read-ahead of its profile.

    It need not be mounted yet. For programs that shall not start before: the service sets the read-ahead a
    moment after a mount. Files that are open by then keep the old one until they are opened again. Where the
    profile asks for nothing, a mount is ready at once. Nothing is changed, and the mount is not touched, so
    that a dead server cannot hang this.

    \b
    Examples:
      nfstuned wait /mnt/share
      ExecStartPre=/usr/bin/nfstuned wait /mnt/share --timeout 60    in a unit

    \b
    Exit status:
      0  the mount has its read-ahead
      1  not within the time; or never, as after `nfstuned undo`: stderr has the reason at once
      2  the configuration is invalid, a file could not be read, or wrong usage
    """
    policy = usable_policy(root)
    if policy is None:
        return INVALID
    wanted, end, pause = os.path.abspath(mount_point), time.monotonic() + timeout, _FIRST_PAUSE_S
    while True:
        root.faults.clear()  # a fault that has passed does not count
        snapshot = observe_host(root)
        row = _row_of(root, snapshot, policy, wanted)
        reason = wait_reason(wanted, row)
        if reason is None:
            return SHOWN
        left = end - time.monotonic()
        if left <= 0 or policy.observes or (row is not None and row.hold):
            unreadable_lines(snapshot.problems)
            note(reason)
            if policy.observes:
                note(OBSERVES)
            return NOT_YET
        time.sleep(min(pause, left))
        pause = min(2 * pause, _LONGEST_PAUSE_S)
