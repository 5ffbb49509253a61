"""The command that installs files beside the program, as click knows it."""

from __future__ import annotations

import click

from nfstuned.host.root import Root


@click.command("install-files")
@click.option(
    "--root",
    "folder",
    type=click.Path(),
    metavar="DIR",
    help="Install into the image in this folder instead.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--remove", "removal", is_flag=True, help="Take back what was installed and is unchanged.")
@click.pass_obj
def install_files(root: Root, /, *, folder: str | None, dry_run: bool, removal: bool) -> int:
    """Install the service, the manual and the completions.

    For installations by pip; packages have done it themselves. The files go below /usr/local, where systemd,
    man and the shells look, and the service starts the very command that runs this. Nothing is started or
    enabled. What was written is listed in /usr/local/lib/nfstuned/installed.json. A file that was not written
    by this command, or was changed since, is never overwritten: then nothing at all is changed.

    \b
    Examples:
      nfstuned install-files --dry-run
      sudo nfstuned install-files
      sudo nfstuned install-files --root /mnt/image
      sudo nfstuned install-files --remove

    \b
    Exit status:
      0  all done, or nothing to do
      1  a file is not ours, or was changed since; the reason is shown
      2  could not try: not allowed, no such image, or no files in this installation
    """
    from nfstuned.cli.install_files import install, remove  # noqa: PLC0415 - no other command needs it

    where = folder if folder is not None else root.prefix
    return remove(where, dry_run=dry_run) if removal else install(where, dry_run=dry_run)
