"""`nfstuned bake`: let an image's first boot have fast mounts, and take that back."""

from __future__ import annotations

from functools import partial

import click

from nfstuned.app.change import COULD_NOT_TRY, Way, Wish, run_way
from nfstuned.app.image import BakeWay, UnbakeWay, image_obstacle, open_image
from nfstuned.cli.terminal import Terminal, format_option, usable_policy
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.root import Root
from nfstuned.model.change import Work
from nfstuned.view.change import bake_document


@click.command("bake")
@click.option(
    "--root",
    "folder",
    type=click.Path(),
    metavar="DIR",
    help="Prepare the image in this folder instead of the running system.",
)
@click.option("--daemonless", is_flag=True, help="Write a udev rule and do not enable the service.")
@click.option("--undo", is_flag=True, help="Take back the written files that are unchanged.")
@click.option("--dry-run", is_flag=True, help="Only show the plan.")
@format_option()
@click.pass_obj
def bake_command(root: Root, /, *, folder: str | None, undo: bool, form: str, **wish: bool) -> int:
    """Prepare an image, so that its first boot has fast mounts.

    It enables nfstuned.service without a running systemd, and writes /etc/nfsmount.conf.d/50-nfstuned.conf
    for the servers that the image's fstab, units, autofs maps and policies name, as `nfstuned nconnect
    persist` does on a host. For mounts of Azure NetApp Files it writes the slots that NFS210 and NFS211
    ask for into /etc/modprobe.d. Clones of one name get an identifier for their NFSv4 client at
    boot (NFS413). No name server is asked, nothing outside of DIR is read or written, and
    nothing is started. An image without the package is refused as a whole. A file that this command did not
    write, or that was changed since, stays as it is.

    With --daemonless it writes the udev rule /etc/udev/rules.d/99-nfstuned.rules instead of enabling the
    service: every NFS mount then gets 15360 KiB, whatever its server is.

    /etc/nfstuned-baked.json lists the written files. --undo takes exactly these back.

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
      2  could not try: no such image, an invalid configuration in it, not allowed, or wrong usage;
         or a file in it could not be read, which is shown: nothing is changed then
    """
    daemonless, limits = wish["daemonless"], Wish(wish["dry_run"])
    if undo and daemonless:
        raise click.UsageError("--undo takes back all written files: leave --daemonless out")
    folder = folder if folder is not None else root.prefix
    terminal = Terminal(form, partial(bake_document, folder), wraps=True)
    try:
        root = ImageRoot(folder)
    except OSError as error:
        raise click.BadParameter(f"{folder}: {error.strerror}", param_hint="--root") from None
    way: Way[Work]
    try:
        image = open_image(root)
        if undo:
            way = UnbakeWay(image, terminal)
        else:
            policy = usable_policy(image.bare)
            if policy is None:
                return COULD_NOT_TRY
            way = BakeWay(image, policy, terminal, daemonless=daemonless, dry_run=limits.dry_run)
    except FileNotFoundError:
        terminal.note(f"{folder} has no /etc, so it is not an image: mount the image there")
        return COULD_NOT_TRY
    except OSError as error:
        terminal.note(image_obstacle(error))
        return COULD_NOT_TRY
    status = run_way(way, limits, terminal)
    terminal.unreadable_lines(image.unreported())
    return max(status, COULD_NOT_TRY) if image.faults else status
