"""`nfstuned apply` and `nfstuned undo`: the read-ahead, and the number of connections."""

# Each change is loaded only when it is chosen: its imports are slow.
# ruff: noqa: PLC0415

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from nfstuned.app.change import COULD_NOT_TRY, Host, Way, Wish, run_way
from nfstuned.app.read_ahead import ReadAheadWay, UndoWay
from nfstuned.cli.terminal import Terminal, format_option, live_outside, usable_policy
from nfstuned.host.root import Root

if TYPE_CHECKING:
    from nfstuned.host.network.outside import Outside

ALL = "--all"
"""The value of --remount that stands for every server."""
Detail = TypeVar("Detail")


def run_change(
    root: Root, form: str, wish: Wish, way: Callable[[Host], Way[Detail]], outside: Outside | None = None
) -> int:
    """Run a change under the policy in effect; return the exit status. Tests give the network, `outside`."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    terminal = Terminal(form)
    return run_way(way(Host(root, policy, terminal, outside or live_outside(root))), wish, terminal)


def normalised_point(point: str) -> str | None:
    """Return the mount point without excess slashes; None for ALL."""
    # POSIX keeps two slashes at the beginning; the kernel has one.
    return None if point == ALL else posixpath.normpath(f"/{point.lstrip('/')}")


_CHANGES = ("fstab", "persist", "remount")
"""The changes that can be made instead of the read-ahead's."""
_OPTION_APPLIES_TO = {
    "yes": ("fstab", "remount"),
    "follow_symlink": ("fstab",),
    "prune": ("persist",),
}
"""Options that only some changes have, and which."""


@click.command("apply")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@click.option("--fstab", is_flag=True, help="Let the NFS entries of /etc/fstab ask for nconnect instead.")
@click.option("--persist", is_flag=True, help="Let mount.nfs ask for nconnect by itself instead.")
@click.option(
    "--remount",
    metavar="MOUNT|--all",
    help="Unmount all mounts of this mount's server (or of every server) and mount them again instead.",
)
@click.option("--yes", is_flag=True, help="Of --fstab and --remount: change without a question.")
@click.option("--follow-symlink", is_flag=True, help="Of --fstab: change the file that /etc/fstab leads to.")
@click.option("--prune", is_flag=True, help="Of --persist: drop the servers that nothing uses any more.")
@format_option()
@click.pass_obj
def apply_command(root: Root, /, *, dry_run: bool, form: str, **wish: bool | str | None) -> int:
    """Set the read-ahead of every NFS mount.

    Each mount gets its profile's value (`nfstuned config show`), or the value to which its own reads have
    moved it. Nothing is unmounted or interrupted: a read-ahead counts for files opened afterwards. Values
    are only raised, unless the profile says `lower = true`, or the workload of a policy has a lower value.
    Values that `nfstuned undo` put back are set again. The old values are remembered until the next boot.

    With --fstab it changes /etc/fstab instead, for the next time that something is mounted: entries
    get the nconnect of their profile among their options, or its limit where they ask for more, all shares
    of a server the same. It shows the changes as a diff and asks; without a terminal it changes nothing
    unless --yes is given. The old file stays next to the new one as /etc/fstab.nfstuned-backup.

    With --persist it writes /etc/nfsmount.conf.d/50-nfstuned.conf instead, a file of its own: mount.nfs then
    asks for the nconnect of the profile with each mount of a server that names no nconnect itself, also with
    those of units, of the automounter and by hand. A server that is mounted, that a file asks for, or that a
    policy names has a section there. A number of a mount or of your own nfsmount.conf takes precedence.

    With --remount it gives mounts that exist the nconnect of their profiles. The first mount of a server
    decides for all of them, so all are unmounted and mounted again in the right order; not lazily, not by
    force, not while something uses one of them, and not where the server does not answer. It shows the
    commands and asks; without a terminal it does nothing unless --yes is given.

    \b
    Examples:
      nfstuned apply --dry-run
      sudo nfstuned apply
      sudo nfstuned apply --format json
      nfstuned apply --fstab --dry-run
      sudo nfstuned apply --fstab
      nfstuned apply --persist --dry-run
      sudo nfstuned apply --persist --prune
      sudo nfstuned apply --remount /data --dry-run
      sudo nfstuned apply --remount --all

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed; the reason is shown
      2  could not try: the configuration is invalid, a file could not be read, nobody could be
         asked, or wrong usage
    """
    chosen = _chosen({name for name, value in wish.items() if value not in (None, False)})
    limits = Wish(dry_run=dry_run, yes=bool(wish["yes"]))
    if chosen == "fstab":
        from nfstuned.app.nconnect import FstabWay

        return run_change(
            root, form, limits, lambda host: FstabWay(host, follow=bool(wish["follow_symlink"]))
        )
    if chosen == "persist":
        from nfstuned.app.nconnect import PersistWay

        return run_change(root, form, limits, lambda host: PersistWay(host, prune=bool(wish["prune"])))
    if chosen == "remount":
        from nfstuned.app.nconnect import GroupWish, RemountWay
        from nfstuned.host.remount import MountGround

        point = str(wish["remount"])
        if point != ALL and not point.startswith("/"):
            raise click.UsageError(f"--remount takes a mount point, which begins with a slash, or {ALL}")
        group = GroupWish(normalised_point(point), dry_run)
        return run_change(root, form, limits, lambda host: RemountWay(host, group, MountGround(root)))
    return run_change(root, form, limits, ReadAheadWay)


def _chosen(given: set[str]) -> str:
    """Return the change that the options ask for, "" for the read-ahead. Raises click.UsageError."""
    changes = [f"--{name}" for name in _CHANGES if name in given]
    if len(changes) > 1:
        raise click.UsageError(f"{' and '.join(changes)} change different things: run one after the other")
    for name, changes_of in _OPTION_APPLIES_TO.items():
        if name in given and not given & set(changes_of):
            which = " or ".join(f"--{change}" for change in changes_of)
            raise click.UsageError(f"--{name.replace('_', '-')} goes with {which}")
    return next((name for name in _CHANGES if name in given), "")


@click.command("undo")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@format_option()
@click.pass_obj
def undo_command(root: Root, /, *, dry_run: bool, form: str) -> int:
    """Put back each read-ahead that nfstuned set.

    The changes of the service are put back, too; it then leaves these mounts alone, and `nfstuned apply`
    takes them up again. A value that somebody else has changed since is left as it is: skipped.

    \b
    Examples:
      nfstuned undo --dry-run
      sudo nfstuned undo

    \b
    Exit status:
      0  all put back, or nothing to put back
      1  the kernel refused something; the reason is shown
      2  wrong usage
    """
    terminal = Terminal(form)
    return run_way(UndoWay(root, terminal), Wish(dry_run=dry_run), terminal)
