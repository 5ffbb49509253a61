"""`nfstuned why`: the places that decide a mount's read-ahead and nconnect."""

from __future__ import annotations

import os
import sys

import click

from nfstuned.cli.nconnect import normalised_point
from nfstuned.cli.status import INVALID, SHOWN, find_mount, nconnect_changes
from nfstuned.cli.terminal import (
    dated,
    format_option,
    note,
    print_document,
    terminal_width,
    unreadable_lines,
    usable_policy,
)
from nfstuned.core.mounts.status import status, status_rules
from nfstuned.core.mounts.why import Scene, explain
from nfstuned.core.udev.writers import file_writers, final_writers
from nfstuned.host.config import builtin_policy
from nfstuned.host.observe import observe_host
from nfstuned.host.root import Root
from nfstuned.parse.udev_rules import read_rule_files
from nfstuned.view.why import why_document, why_lines


@click.command("why")
@click.argument("path", metavar="MOUNT")
@format_option()
@click.pass_obj
def why_command(root: Root, path: str, form: str) -> int:
    """Show where a mount's read-ahead and nconnect come from.

    Each place with a say has a line: a line of a file, a profile, a udev rule or the kernel, with its number
    and the reason why it counts or not. A star marks the place that decides the number now. The last line
    has the command that brings the target, or the file to change. MOUNT is a mount point, or a path below
    it. No mount is touched, so that a dead server cannot hang this.

    \b
    Examples:
      nfstuned why /mnt/share
      nfstuned why . --format json | jq '.nconnect_origins[] | select(.wins)'

    \b
    Exit status:
      0  shown
      2  MOUNT is no NFS mount, the configuration is invalid (then there are no targets), a file could
         not be read, but for want of rights (the rest is shown), or wrong usage
    """
    policy = usable_policy(root)
    if policy is None:
        note("the configuration is invalid: no target is known")
    snapshot = observe_host(root)
    unreadable_lines(snapshot.problems)
    unreadable_lines(root.faults.denied((f"{root.view}/mountstats",)))
    wanted = normalised_point(os.path.abspath(path))
    at = find_mount(root, snapshot, wanted)
    if at is None:
        points = dict.fromkeys(mount.point for block in snapshot.superblocks for mount in block.mounts)
        known = f"NFS mounts: {', '.join(sorted(points))}" if points else "there are no NFS mounts"
        note(f"{wanted}: no NFS mount is there; {known}")
        return INVALID
    mount, superblock = at
    # Files beyond those of `status` are not read: the judgement is the same.
    rows = status(snapshot, policy or builtin_policy(), valid=policy is not None)
    row = next(row for row in rows if (row.mount_point, row.device) == (mount.point, mount.device))
    files = read_rule_files(root)
    scene = Scene(
        snapshot,
        policy or builtin_policy(),
        builtin_policy(),
        final_writers(files, file_writers(files)),
        status_rules(files),
    )
    why = explain(row, mount, superblock, scene)
    steps = nconnect_changes(root, snapshot, policy, (row,))
    step = next((step for step in steps if mount.point in step.points), None)
    if form == "json":
        print_document(dated(why_document(why, step)))
    else:
        width = terminal_width() if sys.stdout.isatty() else None
        sys.stdout.writelines(f"{line}\n" for line in why_lines(why, step, width))
    return SHOWN if policy is not None else INVALID
