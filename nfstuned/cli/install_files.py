"""`nfstuned install-files`: the files of a package, for installations by pip."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from nfstuned.app.change import ALL_DONE, COULD_NOT_TRY, NOT_DONE
from nfstuned.cli.terminal import note
from nfstuned.core.image import plan_files
from nfstuned.host.files.ledger import Ledger
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.installed import contents, own_command
from nfstuned.host.root import Root
from nfstuned.host.udev_mask import made_masks, reload_rules, take_masks
from nfstuned.model.change import FileStep, Placement, Work
from nfstuned.view.words import printable

COMMAND = "install-files"
PREFIX = "usr/local"
"""Where an administrator's own installations belong: no package has anything there."""
LIST = f"{PREFIX}/lib/nfstuned/installed.json"
_AFTERWARDS = """\
Next, where systemd runs:
  systemctl daemon-reload
  journalctl --update-catalog
"""
_NEXT = f"{_AFTERWARDS}  systemctl enable --now nfstuned\n"


def _unmask() -> int:
    """Take back the masks of a service that was not stopped before; return the exit status."""
    host = Root()
    try:
        masked = made_masks(host)
        take_masks(host, masked)
    except OSError as error:
        return _failed(error)
    problem = reload_rules() if masked else ""
    if problem:
        note(f"udev did not reload its rules, which are in force again: {problem}")
    return NOT_DONE if problem else ALL_DONE


def _show(steps: Sequence[Placement]) -> int:
    """Print one line for each file, and return the exit status."""
    width = max((len(step.step.value) for step in steps), default=0)
    for placement in steps:
        reason = f"  ({placement.reason})" if placement.reason else ""
        sys.stdout.write(f"{placement.step.value:{width}}  /{printable(placement.path)}{reason}\n")
    if not steps:
        sys.stdout.write("Nothing to do: no file of install-files is here.\n")
    left = any(step.step in {FileStep.REFUSE, FileStep.KEEP} for step in steps)
    return NOT_DONE if left else ALL_DONE


def _failed(error: OSError) -> int:
    """Print the obstacle and the remedy; return the exit status."""
    denied = isinstance(error, PermissionError)
    remedy = "run it as root" if denied else "remove the obstacle and run it again, or with --remove"
    note(f"{error.filename}: {error.strerror}: {remedy}")
    return COULD_NOT_TRY if denied else NOT_DONE


@click.command("install-files")
@click.option(
    "--root",
    "folder",
    type=click.Path(),
    metavar="DIR",
    help="Install into the image in this folder instead; it needs nfstuned at the same place.",
)
@click.option("--dry-run", is_flag=True, help="Only show the steps.")
@click.option("--remove", "removal", is_flag=True, help="Remove the installed files that are unchanged.")
@click.pass_obj
def install_files_command(root: Root, /, *, folder: str | None, dry_run: bool, removal: bool) -> int:
    """Install the service, the manual and the completions.

    For installations by pip; packages have done it themselves. The files go below /usr/local, where systemd,
    man and the shells look, and the service starts the very command that runs this. Nothing is started or
    enabled. /usr/local/lib/nfstuned/installed.json lists the written files. A file that this command did not
    write, or that was changed since, is never overwritten: then nothing at all is changed.

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
    try:
        place = ImageRoot(folder if folder is not None else root.prefix)
        ledger = Ledger(place, LIST)
        texts = {} if removal else contents(PREFIX, own_command(place))
        found = ledger.digests(texts)
    except OSError as error:
        note(f"{error.filename}: {error.strerror}")
        return COULD_NOT_TRY
    steps = plan_files(texts, found, ledger.known, COMMAND)
    if any(step.step is FileStep.REFUSE for step in steps):
        _show(steps)
        note("nothing was changed")
        return NOT_DONE
    todo = any(step.step in {FileStep.WRITE, FileStep.REMOVE} for step in steps)
    if not dry_run and (todo or (removal and place.exists(LIST))):
        try:
            ledger.carry_out(Work(steps, texts, found))
        except OSError as error:
            return _failed(error)
    status = _show(steps)
    if dry_run:
        return status
    if removal:
        sys.stdout.write(_AFTERWARDS if steps else "")
        return max(status, _unmask()) if place.prefix == "/" else status
    sys.stdout.write(_NEXT if any(step.step is FileStep.WRITE for step in steps) else "")
    return status
