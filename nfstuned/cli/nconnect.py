"""`nfstuned nconnect fstab|persist|remount`: the number of connections to a server."""

# Each change is loaded only when it is chosen: its imports are slow.
# ruff: noqa: PLC0415

from __future__ import annotations

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import click

from nfstuned.app.change import COULD_NOT_TRY, Host, Way, Wish, run_way
from nfstuned.cli.terminal import Commands, Terminal, format_option, live_outside, usable_policy
from nfstuned.host.root import Root

if TYPE_CHECKING:
    from nfstuned.host.network.outside import Outside

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


def change_fstab(root: Root, form: str, wish: Wish, *, follow: bool) -> int:
    """Let the entries of /etc/fstab ask for nconnect; return the exit status."""
    from nfstuned.app.nconnect import FstabWay

    return run_change(root, form, wish, lambda host: FstabWay(host, follow=follow))


def change_drop_in(root: Root, form: str, wish: Wish, *, prune: bool) -> int:
    """Let mount.nfs ask for nconnect by itself; return the exit status."""
    from nfstuned.app.nconnect import PersistWay

    return run_change(root, form, wish, lambda host: PersistWay(host, prune=prune))


def change_mounts(root: Root, form: str, wish: Wish, point: str | None) -> int:
    """Mount the mounts of a server again, or for None of all servers; return the exit status."""
    from nfstuned.app.nconnect import GroupWish, RemountWay
    from nfstuned.host.remount import MountGround

    group = GroupWish(None if point is None else normalised_point(point), wish.dry_run)
    return run_change(root, form, wish, lambda host: RemountWay(host, group, MountGround(root)))


def normalised_point(point: str) -> str:
    """Return the mount point without excess slashes."""
    # POSIX keeps two slashes at the beginning; the kernel has one.
    return posixpath.normpath(f"/{point.lstrip('/')}")


_dry_run = click.option("--dry-run", is_flag=True, help="Only show the plan.")
_yes = click.option("--yes", is_flag=True, help="Change without a question.")


@click.group("nconnect", cls=Commands)
def nconnect() -> None:
    """Change the number of connections to a server.

    The kernel takes it from the first mount of a server, and no option changes it later. `fstab` and
    `persist` let the next mount ask for the number of its profile; `remount` gives it to mounts that exist.
    `nfstuned status` shows the numbers, and `nfstuned config show` the profiles.
    """


@nconnect.command("fstab")
@_dry_run
@_yes
@click.option("--follow-symlink", is_flag=True, help="Change the file that /etc/fstab leads to.")
@format_option()
@click.pass_obj
def fstab_command(root: Root, /, *, dry_run: bool, yes: bool, follow_symlink: bool, form: str) -> int:
    """Let the NFS entries of /etc/fstab ask for nconnect.

    Entries get the nconnect of their profile among their options, or its limit where they ask for more, all
    shares of a server the same. The command shows the changes as a diff and asks; without a terminal it
    changes nothing unless --yes is given. The old file stays next to the new one as
    /etc/fstab.nfstuned-backup. An entry counts from its next mount on.

    \b
    Examples:
      nfstuned nconnect fstab --dry-run
      sudo nfstuned nconnect fstab
      sudo nfstuned nconnect fstab --yes --format json

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed; the reason is shown
      2  could not try: the configuration is invalid, a file could not be read, nobody could be
         asked, or wrong usage
    """
    return change_fstab(root, form, Wish(dry_run, yes), follow=follow_symlink)


@nconnect.command("persist")
@_dry_run
@click.option("--prune", is_flag=True, help="Drop the servers that nothing uses any more.")
@format_option()
@click.pass_obj
def persist_command(root: Root, /, *, dry_run: bool, prune: bool, form: str) -> int:
    """Let mount.nfs ask for nconnect by itself.

    It writes /etc/nfsmount.conf.d/50-nfstuned.conf, a file of its own: mount.nfs then asks for the nconnect
    of the profile with each mount of a server that names no nconnect itself, also with those of units, of
    the automounter and by hand. A server that is mounted, that a file asks for, or that a policy names has a
    section there. A number of a mount or of your own nfsmount.conf takes precedence.

    \b
    Examples:
      nfstuned nconnect persist --dry-run
      sudo nfstuned nconnect persist
      sudo nfstuned nconnect persist --prune

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed; the reason is shown
      2  could not try: the configuration is invalid, a file could not be read, or wrong usage
    """
    return change_drop_in(root, form, Wish(dry_run), prune=prune)


@nconnect.command("remount")
@click.argument("mount_point", metavar="MOUNT|--all", required=False)
@click.option("--all", "every", is_flag=True, help="Mount the mounts of every server again.")
@_dry_run
@_yes
@format_option()
@click.pass_obj
def remount_command(root: Root, /, *, mount_point: str | None, every: bool, form: str, **wish: bool) -> int:
    """Give mounts their nconnect by mounting again.

    The first mount of a server decides for all of them, so all mounts of the server of MOUNT are unmounted
    and mounted again in the right order; not lazily, not by force, not while something uses one of them, and
    not where the server does not answer. The command shows its steps and asks; without a terminal it does
    nothing unless --yes is given.

    \b
    Examples:
      nfstuned nconnect remount /data --dry-run
      sudo nfstuned nconnect remount /data
      sudo nfstuned nconnect remount --all

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed, or MOUNT was left alone; the reason is shown
      2  could not try: no NFS mount is at MOUNT, the configuration is invalid, a file could not be
         read, nobody could be asked, or wrong usage
    """
    if (mount_point is None) is not every:
        raise click.UsageError("name a mount point, or give --all for every server")
    if mount_point is not None and not mount_point.startswith("/"):
        raise click.UsageError("MOUNT is a mount point, which begins with a slash")
    return change_mounts(root, form, Wish(**wish), mount_point)
