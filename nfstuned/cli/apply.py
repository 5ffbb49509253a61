"""`nfstuned apply` and `nfstuned undo`: the read-ahead."""

from __future__ import annotations

import click

from nfstuned.app.change import Wish, run_way
from nfstuned.app.read_ahead import ReadAheadWay, UndoWay
from nfstuned.cli.nconnect import change_drop_in, change_fstab, change_mounts, run_change
from nfstuned.cli.terminal import Terminal, format_option, note
from nfstuned.host.root import Root

ALL = "--all"
"""The value of --remount that stands for every server."""
_OLD_FORMS = ("fstab", "persist", "remount")
"""The changes that `nfstuned nconnect` makes, as options until 1.0."""
_OPTION_APPLIES_TO = {
    "yes": ("fstab", "remount"),
    "follow_symlink": ("fstab",),
    "prune": ("persist",),
}
"""Options that only some of them have, and which."""


@click.command("apply")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@format_option()
@click.option("--fstab", is_flag=True, hidden=True)
@click.option("--persist", is_flag=True, hidden=True)
@click.option("--remount", metavar="MOUNT|--all", hidden=True)
@click.option("--yes", is_flag=True, hidden=True)
@click.option("--follow-symlink", is_flag=True, hidden=True)
@click.option("--prune", is_flag=True, hidden=True)
@click.pass_obj
def apply_command(root: Root, /, *, dry_run: bool, form: str, **old: bool | str | None) -> int:
    """Set the read-ahead of every NFS mount.

    Each mount gets its profile's value (`nfstuned config show`), or the value to which its own reads have
    moved it. Nothing is unmounted or interrupted: a read-ahead counts for files opened afterwards. Values
    are only raised, unless the profile says `lower = true`, or the workload of a policy has a lower value.
    Values that `nfstuned undo` put back are set again. The old values are remembered until the next boot.
    The number of connections is changed by `nfstuned nconnect`.

    \b
    Examples:
      nfstuned apply --dry-run
      sudo nfstuned apply
      sudo nfstuned apply --format json

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed; the reason is shown
      2  could not try: the configuration is invalid, a file could not be read, or wrong usage
    """
    chosen = _old_form({name for name, value in old.items() if value not in (None, False)})
    wish = Wish(dry_run=dry_run, yes=bool(old["yes"]))
    if not chosen:
        return run_change(root, form, wish, ReadAheadWay)
    point = str(old["remount"])
    if chosen == "remount" and point != ALL and not point.startswith("/"):
        raise click.UsageError(f"--remount takes a mount point, which begins with a slash, or {ALL}")
    note(f"nfstuned apply --{chosen} is nfstuned nconnect {chosen} now; the old form ends with 1.0")
    if chosen == "fstab":
        return change_fstab(root, form, wish, follow=bool(old["follow_symlink"]))
    if chosen == "persist":
        return change_drop_in(root, form, wish, prune=bool(old["prune"]))
    return change_mounts(root, form, wish, None if point == ALL else point)


def _old_form(given: set[str]) -> str:
    """Return the change of `nfstuned nconnect` that old options ask for, "" for none.

    Raises click.UsageError.
    """
    changes = [f"--{name}" for name in _OLD_FORMS if name in given]
    if len(changes) > 1:
        raise click.UsageError(f"{' and '.join(changes)} change different things: run one after the other")
    for name, changes_of in _OPTION_APPLIES_TO.items():
        if name in given and not given & set(changes_of):
            which = " and ".join(f"nfstuned nconnect {change}" for change in changes_of)
            raise click.UsageError(f"--{name.replace('_', '-')} is an option of {which}")
    return next((name for name in _OLD_FORMS if name in given), "")


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
