"""`nfstuned install-files`: the files of a package, for installations by pip."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from nfstuned.app.change import ALL_DONE, COULD_NOT_TRY, REFUSED
from nfstuned.cli.messages import note
from nfstuned.core.image.files import plan_files, plan_removal
from nfstuned.host.change.udev_mask import made_masks, reload_rules, take_masks
from nfstuned.host.files.ledger import Ledger
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.installed import contents, own_command
from nfstuned.host.root import Root
from nfstuned.model.change import Placement, Step, Work
from nfstuned.view.words import printable

COMMAND = "install-files"
PREFIX = "usr/local"
"""Where an administrator's own installations belong: no package has anything there."""
LIST = f"{PREFIX}/lib/nfstuned/installed.json"
_NEXT = """\
Next, where systemd runs:
  systemctl daemon-reload
  journalctl --update-catalog
  systemctl enable --now nfstuned
"""
_AFTERWARDS = """\
Next, where systemd runs:
  systemctl daemon-reload
  journalctl --update-catalog
"""


def install(folder: str, *, dry_run: bool) -> int:
    """Put the files below a root, and print the step of each; return the exit status."""
    try:
        root = ImageRoot(folder)
        ledger = Ledger(root, LIST)
        known = ledger.known()
        texts = contents(PREFIX, own_command(root))
        digests = ledger.digests(tuple(texts), known)
    except OSError as error:
        return _unfit(error)
    steps = plan_files(texts, digests, known, COMMAND)
    if any(step.step is Step.REFUSE for step in steps):
        _show(steps)
        note("nothing was changed")
        return REFUSED
    if dry_run:
        return _show(steps)
    if any(step.step in {Step.WRITE, Step.REMOVE} for step in steps):
        try:
            ledger.carry_out(Work(steps, texts, digests, known))
        except OSError as error:
            return _failed(error)
    status = _show(steps)
    sys.stdout.write(_NEXT if any(step.step is Step.WRITE for step in steps) else "")
    return status


def remove(folder: str, *, dry_run: bool) -> int:
    """Take back the files that `install` wrote, and print the step of each; return the exit status."""
    try:
        root = ImageRoot(folder)
        ledger = Ledger(root, LIST)
        known = ledger.known()
        digests = ledger.digests((), known)
        steps = plan_removal(digests, known, COMMAND)
    except OSError as error:
        return _unfit(error)
    if not dry_run and root.exists(LIST):
        try:
            ledger.take_back(steps, known, digests)
        except OSError as error:
            return _failed(error)
    status = _show(steps)
    sys.stdout.write(_AFTERWARDS if steps and not dry_run else "")
    if not dry_run and root.prefix == "/":
        return max(status, _unmask())
    return status


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
        note(f"udev could not be told that its rules are in force again: {problem}")
    return REFUSED if problem else ALL_DONE


def _show(steps: Sequence[Placement]) -> int:
    """Print one line for each file, and return the exit status."""
    width = max((len(step.step.value) for step in steps), default=0)
    for placement in steps:
        reason = f"  ({placement.reason})" if placement.reason else ""
        sys.stdout.write(f"{placement.step.value:{width}}  /{printable(placement.path)}{reason}\n")
    if not steps:
        sys.stdout.write("Nothing to do: no file of install-files is here.\n")
    left = any(step.step in {Step.REFUSE, Step.KEEP} for step in steps)
    return REFUSED if left else ALL_DONE


def _unfit(error: OSError) -> int:
    """Print why nothing could be tried; return the exit status."""
    note(f"{error.filename}: {error.strerror}")
    return COULD_NOT_TRY


def _failed(error: OSError) -> int:
    """Print the obstacle and the remedy; return the exit status."""
    if isinstance(error, PermissionError):
        note(f"{error.filename}: {error.strerror}: run it as root")
        return COULD_NOT_TRY
    note(f"{error.filename}: {error.strerror}: run it again when that is mended, or with --remove")
    return REFUSED


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
def command(root: Root, /, *, folder: str | None, dry_run: bool, removal: bool) -> int:
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
    where = folder if folder is not None else root.prefix
    return remove(where, dry_run=dry_run) if removal else install(where, dry_run=dry_run)
