"""`nfstuned install-files`: what a package installs beside the program, for those who have it from pip."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from nfstuned.cli.apply import ALL_DONE, COULD_NOT_TRY, REFUSED
from nfstuned.cli.notes import note
from nfstuned.core.placement import plan_files, plan_removal
from nfstuned.core.render import printable
from nfstuned.host.files import (
    contents,
    digest,
    digest_at,
    missing_folders,
    own_command,
    put,
    take,
    take_folders,
)
from nfstuned.host.imageroot import ImageRoot
from nfstuned.model.files import Installed, Placement, Step
from nfstuned.parse.installed import parse_installed, render_installed

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
    """Put the files below a root, and say what became of each; return the exit status."""
    try:
        root = ImageRoot(folder)
        known = _known(root)
        texts = contents(PREFIX, own_command(root))
        found = {path: digest_at(root, path) for path in {**texts, **known.digests}}
    except OSError as error:
        return _unfit(error)
    steps = plan_files({path: digest(data) for path, data in texts.items()}, found, known)
    if any(one.step is Step.REFUSE for one in steps):
        _show(steps)
        note("nothing was changed")
        return REFUSED
    if dry_run:
        return _show(steps)
    if any(one.step in {Step.WRITE, Step.REMOVE} for one in steps):
        try:
            _carry_out(root, steps, texts, found, known)
        except OSError as error:
            return _failed(error)
    status = _show(steps)
    sys.stdout.write(_NEXT if any(one.step is Step.WRITE for one in steps) else "")
    return status


def remove(folder: str, *, dry_run: bool) -> int:
    """Take back the files that `install` wrote, and say what became of each; return the exit status."""
    try:
        root = ImageRoot(folder)
        known = _known(root)
        steps = plan_removal({path: digest_at(root, path) for path in known.digests}, known)
    except OSError as error:
        return _unfit(error)
    if not dry_run and root.exists(LIST):
        try:
            _take(root, steps)
            take(root, LIST)
        except OSError as error:
            return _failed(error)
        take_folders(root, known.folders)
    status = _show(steps)
    sys.stdout.write(_AFTERWARDS if steps and not dry_run else "")
    return status


def _carry_out(
    root: ImageRoot,
    steps: Sequence[Placement],
    texts: Mapping[str, bytes],
    found: Mapping[str, str | None],
    known: Installed,
) -> None:
    """Write and remove what is planned; raises OSError.

    The list comes first, with what is there and what will be: a kill leaves no file that it does not name.
    """
    written = [one.path for one in steps if one.step is Step.WRITE]
    after = {path: values for path, values in known.digests.items() if path in texts}
    after |= {path: (digest(texts[path]),) for path in written}
    before = {path: (*values, *known.digests.get(path, ())) for path, values in after.items()}
    folders = tuple(dict.fromkeys((*known.folders, *missing_folders(root, (*written, LIST)))))
    _keep(root, Installed({**known.digests, **before}, folders))
    for path in written:
        put(root, path, texts[path], found[path])
    _take(root, steps)
    _keep(root, Installed(after, folders))


def _take(root: ImageRoot, steps: Sequence[Placement]) -> None:
    for one in steps:
        if one.step is Step.REMOVE:
            take(root, one.path)


def _known(root: ImageRoot) -> Installed:
    """Return what was written before. Raises ParseError for a list that is damaged, and OSError."""
    try:
        return parse_installed(root.read(LIST), root.path(LIST))
    except FileNotFoundError:
        return Installed()


def _keep(root: ImageRoot, installed: Installed) -> None:
    put(root, LIST, render_installed(installed).encode(), digest_at(root, LIST))


def _show(steps: Sequence[Placement]) -> int:
    """Print one line for each file, and return the exit status."""
    width = max((len(one.step.value) for one in steps), default=0)
    for one in steps:
        reason = f"  ({one.reason})" if one.reason else ""
        sys.stdout.write(f"{one.step.value:{width}}  /{printable(one.path)}{reason}\n")
    if not steps:
        sys.stdout.write("Nothing to do: no file of install-files is here.\n")
    left = any(one.step in {Step.REFUSE, Step.KEEP} for one in steps)
    return REFUSED if left else ALL_DONE


def _unfit(error: OSError) -> int:
    """Say why nothing could be tried; return the exit status."""
    note(f"{error.filename}: {error.strerror}")
    return COULD_NOT_TRY


def _failed(error: OSError) -> int:
    """Say what was in the way, and what to do; return the exit status."""
    if isinstance(error, PermissionError):
        note(f"{error.filename}: {error.strerror}: run it as root")
        return COULD_NOT_TRY
    note(f"{error.filename}: {error.strerror}: run it again when that is mended, or with --remove")
    return REFUSED
