"""`nfstuned apply` and `nfstuned undo`."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

import click

from nfstuned.app import read_ahead
from nfstuned.cli import talk
from nfstuned.cli.options import format_option
from nfstuned.cli.policy import usable_policy
from nfstuned.core.readahead.plan import named
from nfstuned.host.change.read_ahead import undo
from nfstuned.host.change.state import State
from nfstuned.host.look.host import observe
from nfstuned.host.root import Root
from nfstuned.model.mounts import Outcome, Result, Snapshot
from nfstuned.model.policy import Policy
from nfstuned.parse.fields import count
from nfstuned.view.change import apply_document, outcome_cells, summary
from nfstuned.view.words import to_json

ALL_DONE, REFUSED, COULD_NOT_TRY = 0, 1, 2


def preview(root: Root, form: str) -> int:
    """Print what `carry_out` would do, and change nothing."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    snapshot, outcomes = _planned(root, policy)
    return _report(root, form, outcomes, nothing=_nothing(snapshot))


def carry_out(root: Root, form: str) -> int:
    """Set every read-ahead that is not as its profile asks, and print what came of it."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    snapshot, planned = _planned(root, policy)
    return _report(root, form, read_ahead.carry_out(root, planned), nothing=_nothing(snapshot))


def take_back(root: Root, form: str) -> int:
    """Put back what nfstuned changed, and print what came of it."""
    snapshot = observe(root)
    talk.unreadable_lines(snapshot.problems)
    outcomes = named(undo(root, State(root)), snapshot)
    return _report(root, form, outcomes, nothing="Nothing to put back.")


def _planned(root: Root, policy: Policy) -> tuple[Snapshot, tuple[Outcome, ...]]:
    snapshot = observe(root)
    talk.unreadable_lines(snapshot.problems)
    return snapshot, read_ahead.plan_anew(snapshot, policy)


def _nothing(snapshot: Snapshot) -> str:
    if not snapshot.superblocks:
        return "No NFS mounts."
    mounts = count(sum(len(superblock.mounts) for superblock in snapshot.superblocks), "mount")
    return f"Nothing to do: {mounts} as the profiles ask."


def _report(root: Root, form: str, outcomes: tuple[Outcome, ...], *, nothing: str) -> int:
    talk.denied(root, harmless=(f"{root.view}/mountstats",))
    if form == "json":
        sys.stdout.write(to_json(apply_document(outcomes)) + "\n")
    elif outcomes:
        print_outcomes([outcome_cells(outcome) for outcome in outcomes], summary(outcomes))
    else:
        sys.stdout.write(nothing + "\n")
    failed = any(outcome.result is Result.FAILED for outcome in outcomes)
    return REFUSED if failed else ALL_DONE


def print_outcomes(rows: Sequence[Sequence[str]], total: str) -> None:
    """Print one line for each outcome and their counts: what, the change, what came of it, why."""
    from nfstuned.cli.table import Column, print_table  # noqa: PLC0415 - rich is slow to load

    print_table((Column(), Column(), Column(coloured=True), Column()), rows)
    sys.stdout.write(total + "\n")


_CHANGES = ("fstab", "persist", "remount", "live")
"""What can be changed instead of the read-ahead."""
_OF = {"yes": ("fstab", "remount", "live"), "follow_symlink": ("fstab",), "prune": ("persist",)}
"""Of which changes an option is."""


class _Apply(click.Command):
    """A command whose --live may stand alone; click's own way to that differs between its releases."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Say "--all" where --live stands alone, or before another option."""
        filled = []
        for word, following in itertools.zip_longest(args, args[1:]):
            filled.append(word)
            if word == "--live" and (
                following is None or (following.startswith("-") and following != "--all")
            ):
                filled.append("--all")
        return super().parse_args(ctx, filled)


@click.command("apply", cls=_Apply)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--fstab", is_flag=True, help="Let the NFS entries of /etc/fstab ask for nconnect instead.")
@click.option("--persist", is_flag=True, help="Let mount.nfs ask for nconnect by itself instead.")
@click.option(
    "--remount",
    metavar="MOUNT|--all",
    help="Unmount all mounts of this mount's server (or of every server) and mount them again instead.",
)
@click.option(
    "--live",
    metavar="[MOUNT]",
    help="Add connections to this mount's server (or to every server) while it is mounted instead.",
)
@click.option("--yes", is_flag=True, help="Of --fstab, --remount and --live: change without a question.")
@click.option("--follow-symlink", is_flag=True, help="Of --fstab: change the file that /etc/fstab leads to.")
@click.option("--prune", is_flag=True, help="Of --persist: drop the servers that nothing uses any more.")
@format_option()
@click.pass_obj
def command(root: Root, /, *, dry_run: bool, form: str, **wish: bool | str | None) -> int:
    """Set the read-ahead of every NFS mount.

    Each mount gets what its profile asks for, see `nfstuned config show`. Nothing is unmounted or
    interrupted: a read-ahead counts for files opened afterwards. Values are only raised, unless the profile
    says `lower = true`. What `nfstuned undo` put back is set again. The values before are remembered until
    the next boot.

    With --fstab it changes /etc/fstab instead, for the next time that something is mounted: entries whose
    profile names an nconnect get it among their options, all shares of a server the same. It shows the
    changes as a diff and asks; without a terminal it changes nothing unless --yes is given. The old file
    stays beside the new one as /etc/fstab.nfstuned-backup.

    With --persist it writes /etc/nfsmount.conf.d/50-nfstuned.conf instead, a file of its own: mount.nfs then
    asks for the nconnect of the profile with every mount of a server that says none itself, also with those
    of units, of the automounter and by hand. A server that is mounted, that a file asks for, or that a
    policy names has a section there. What a mount or your own nfsmount.conf says is never contradicted.

    With --remount it gives mounts that exist the nconnect of their profiles. The first mount of a server
    decides for all of them, so all are unmounted and mounted again in the right order; not lazily, not by
    force, not while something uses one of them, and not where the server does not answer. It shows the
    commands and asks; without a terminal it does nothing unless --yes is given.

    With --live it adds the connections that are missing while everything stays mounted. That is only done
    where it was proven to be safe: Linux 7.1.13 or later, mounts that were made with nconnect of at least 2
    and with noresvport. Everywhere else it says why not, and changes nothing. Each connection must carry
    requests before the next one comes; where one does not, all are taken back. It asks as --remount does.

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
      sudo nfstuned apply --live /data --dry-run

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed; the reason is shown
      2  could not try: the configuration is invalid, nobody could be asked, or wrong usage
    """
    change = _change({name for name, value in wish.items() if value not in (None, False)})
    # Each way is loaded by itself: what the others need is slow to import.
    if change == "fstab":
        from nfstuned.cli.apply import fstab  # noqa: PLC0415

        order = fstab.FstabWish(form, dry_run, bool(wish["yes"]), bool(wish["follow_symlink"]))
        return fstab.edit_fstab(root, order)
    if change == "persist":
        from nfstuned.cli.apply import persist  # noqa: PLC0415

        return persist.persist(root, persist.PersistWish(form, dry_run, bool(wish["prune"])))
    if change:
        from nfstuned.cli.apply import groups, live, remount  # noqa: PLC0415

        group = groups.GroupWish(str(wish[change]), form, dry_run, bool(wish["yes"]))
        return live.live(root, group) if change == "live" else remount.remount(root, group)
    return preview(root, form) if dry_run else carry_out(root, form)


def _change(given: set[str]) -> str:
    """Return the change that the options ask for, "" for the read-ahead. Raises click.UsageError."""
    changes = [f"--{name}" for name in _CHANGES if name in given]
    if len(changes) > 1:
        raise click.UsageError(f"{' and '.join(changes)} change different things: run one after the other")
    for name, changes_of in _OF.items():
        if name in given and not given & set(changes_of):
            which = " or ".join(f"--{change}" for change in changes_of)
            raise click.UsageError(f"--{name.replace('_', '-')} goes with {which}")
    return next((name for name in _CHANGES if name in given), "")


@click.command("undo")
@format_option()
@click.pass_obj
def undo_command(root: Root, form: str) -> int:
    """Put back every value that nfstuned changed.

    The changes of the service are put back, too; it then leaves these mounts alone, and `nfstuned apply`
    takes them up again. A value that somebody else has changed since is left as it is: skipped.

    \b
    Examples:
      sudo nfstuned undo

    \b
    Exit status:
      0  all put back, or nothing to put back
      1  the kernel refused something; the reason is shown
      2  wrong usage
    """
    return take_back(root, form)
