"""The command that prepares an image, as click knows it."""

from __future__ import annotations

from typing import Any

import click

from nfstuned.cli.options import format_option
from nfstuned.host.root import Root


@click.command("bake")
@click.option(
    "--root",
    "folder",
    type=click.Path(),
    metavar="DIR",
    help="Prepare the image in this folder, and not the system that this runs in.",
)
@click.option("--daemonless", is_flag=True, help="Write a udev rule and do not enable the service.")
@click.option("--undo", is_flag=True, help="Take back what was written and is unchanged.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@format_option()
@click.pass_obj
def bake(root: Root, /, *, folder: str | None, undo: bool, **options: Any) -> int:  # noqa: ANN401 - Wish has them
    """Prepare an image, so that its first boot has fast mounts.

    It enables nfstuned.service without a running systemd, and writes /etc/nfsmount.conf.d/50-nfstuned.conf
    for the servers that the image's fstab, units, autofs maps and policies name, as `nfstuned apply
    --persist` does on a host. For mounts of Azure NetApp Files it writes the slots that NFS210 and NFS211
    ask for into /etc/modprobe.d. No name server is asked, nothing outside of DIR is read or written, and
    nothing is started. A file that was not written by this command, or was changed since, stays as it is.

    With --daemonless it writes the udev rule /etc/udev/rules.d/99-nfstuned.rules instead of enabling the
    service: every NFS mount then gets 15360 KiB, whatever its server is.

    What was written is listed in /etc/nfstuned-baked.json. --undo takes exactly that back.

    \b
    Examples:
      sudo nfstuned bake --root /mnt/image --dry-run
      sudo nfstuned bake --root /mnt/image
      nfstuned check --root /mnt/image
      sudo nfstuned bake --root /mnt/image --undo

    \b
    Exit status:
      0  all done, or nothing to do
      1  something was refused or failed; the reason is shown
      2  could not try: no such image, an invalid configuration in it, not allowed, or wrong usage
    """
    from nfstuned.cli.bake import Wish, take_back  # noqa: PLC0415 - no other command needs it
    from nfstuned.cli.bake import bake as prepare  # noqa: PLC0415 - as above

    wish = Wish(**options)
    if undo and wish.daemonless:
        raise click.UsageError("--undo takes back whatever was written: leave --daemonless out")
    where = folder if folder is not None else root.prefix
    return take_back(where, wish) if undo else prepare(where, wish)
