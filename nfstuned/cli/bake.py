"""`nfstuned bake`: let an image's first boot have fast mounts, and take that back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from nfstuned.app.facts import Scope, examine
from nfstuned.cli import talk
from nfstuned.cli.apply.read_ahead import ALL_DONE, COULD_NOT_TRY, REFUSED, print_outcomes
from nfstuned.cli.options import format_option
from nfstuned.cli.policy import usable_policy
from nfstuned.core.image.bake import (
    SERVICE,
    interrupted,
    refused_sections,
    settled,
    taken_back,
    together,
    wanted_mask,
    wanted_parameters,
    wanted_rule,
    wanted_sections,
    wanted_service,
    with_way,
)
from nfstuned.core.image.files import plan_files, plan_removal
from nfstuned.core.nconnect.persist import FOREIGN, Held, PersistPlan, plan_persist, sections, with_sections
from nfstuned.core.nconnect.persist_members import unsettled, uses
from nfstuned.host.change.persist import PATH
from nfstuned.host.files.installed import daemonless_rule, digest_at
from nfstuned.host.files.ledger import Ledger
from nfstuned.host.image_root import BareRoot, ImageRoot
from nfstuned.host.look.services import observe_unit, unit_file
from nfstuned.host.network.answers import LiveOutside
from nfstuned.host.network.names import from_hosts
from nfstuned.host.root import Root
from nfstuned.model.change import ImageChange, ImageService, Wanted
from nfstuned.model.facts import Facts, Network
from nfstuned.model.files import Content, Installed, Step, Work
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.parse.etc.installed import digest, encoded, is_file
from nfstuned.view.change import bake_document, image_cells, summary
from nfstuned.view.words import to_json

COMMAND = "bake"
RECORD = "etc/nfstuned-baked.json"
"""In /etc itself, which every image has: no folder has to be made that a kill could leave behind."""


@dataclass(frozen=True, slots=True)
class BakeWish:
    """What the user asked for."""

    daemonless: bool = False
    dry_run: bool = False
    form: str = "text"


@dataclass(frozen=True, slots=True)
class _Image:
    """An image, and what an earlier bake wrote there."""

    folder: str
    root: ImageRoot
    ledger: Ledger
    known: Installed
    now: Mapping[str, str | None]
    """The digests of what it wrote, and of its drop-in of nfsmount.conf."""

    @property
    def ours(self) -> frozenset[str]:
        """The files that are still as they were written."""
        return frozenset(path for path, values in self.known.digests.items() if self.now[path] in values)


def bake(folder: str, wish: BakeWish) -> int:
    """Prepare the image in a folder, and print what came of it; return the exit status."""
    image = _opened(folder)
    if image is None:
        return COULD_NOT_TRY
    try:
        bare = BareRoot(folder, image.ours)
        policy = usable_policy(bare)
        if policy is None:
            return COULD_NOT_TRY
        wanted, replaced = _wanted(image, bare, policy, wish)
        found = image.ledger.digests(tuple(wanted.contents), image.known)
        if not wish.dry_run:
            image.ledger.tidy(image.known)
    except OSError as error:
        return _unfit(error)
    known = _with_replaced(image.known, replaced)
    work = Work(plan_files(wanted.contents, found, known, COMMAND), wanted.contents, found, image.known)
    todo = any(step.step in {Step.WRITE, Step.REMOVE} for step in work.steps)
    if wish.dry_run or not todo:
        return _end(folder, settled(wanted, work.steps, Result.PLANNED), wish.form)
    try:
        return _end(folder, _carry_out(image, work, wanted, replaced), wish.form)
    except PermissionError as error:
        return _unfit(error)


def take_back(folder: str, wish: BakeWish) -> int:
    """Take back what was baked into an image, and print what came of it; return the exit status."""
    image = _opened(folder)
    if image is None:
        return COULD_NOT_TRY
    found = {path: image.now[path] for path in image.known.digests}
    steps = plan_removal(found, image.known, COMMAND)
    before = image.known.before
    if wish.dry_run:
        return _end(folder, taken_back(steps, before, Result.PLANNED), wish.form, nothing=_nothing_baked())
    changes, problem = taken_back(steps, before, Result.DONE), ""
    try:
        image.ledger.take_back(steps, image.known, found)
    except OSError as error:
        gone = {f"/{step.path}" for step in steps if _now(image.root, step.path) != found[step.path]}
        if isinstance(error, PermissionError) and not gone:
            return _unfit(error)
        problem = _said(error)
        changes = interrupted(changes, gone, problem)
        talk.note(f"{problem}: run it again when that is mended")
    status = _end(folder, changes, wish.form, nothing=_nothing_baked())
    return REFUSED if problem else status


def _opened(folder: str) -> _Image | None:
    """Return the image; None, said, where there is none. Raises click.BadParameter, and ParseError."""
    try:
        root = ImageRoot(folder)
    except OSError as error:
        raise click.BadParameter(f"{folder}: {error.strerror}", param_hint="--root") from None
    try:
        root.listing("etc")
        ledger = Ledger(root, RECORD)
        known = ledger.known()
        return _Image(folder, root, ledger, known, ledger.digests((PATH,), known))
    except FileNotFoundError:
        talk.note(f"{folder} has no /etc, and so is no image")
    except OSError as error:
        _unfit(error)
    return None


def _wanted(image: _Image, bare: BareRoot, policy: Policy, wish: BakeWish) -> tuple[Wanted, dict[str, str]]:
    """Return what the image should have, and the texts that this replaces. Raises OSError.

    It is planned as if no bake had been: so a second one comes to the same.
    """
    facts = examine(bare, policy, Scope(image=True), LiveOutside(bare))
    talk.unreadable_lines(facts.snapshot.problems)
    talk.denied(bare)
    unit = observe_unit(bare, SERVICE, image=True)
    if wish.daemonless:
        awk, starts = bare.executable("usr/bin/awk"), facts.system.daemon.enabled
        rule = wanted_rule(daemonless_rule(), has_awk=awk, linked=unit.enabled, starts=starts)
        start = together((rule, wanted_mask(facts))) if awk else rule
    else:
        start = wanted_service(ImageService(unit, *unit_file(bare, SERVICE)))
    drop_in, replaced = _drop_in(image, facts, service=not wish.daemonless)
    return together((start, drop_in, wanted_parameters(facts))), replaced


def _drop_in(image: _Image, facts: Facts, *, service: bool) -> tuple[Wanted, dict[str, str]]:
    """Return what nfstuned's drop-in of nfsmount.conf should be, and the text of another command there.

    `service` is whether nfstuned's own will run, which can find out more where the image boots.
    """
    ours, there = PATH in image.ours, image.now[PATH] is not None
    text = image.root.read(PATH) if is_file(image.now[PATH]) else ""
    now = sections(text) if there else {}
    if now is None:
        return refused_sections(FOREIGN), {}
    own = image.known.before.get(PATH, "") if ours else text
    held = Held(sections(own) or {})
    plan, left = _planned(image.root, facts, held)
    mode = facts.policy.nconnect_mode if service else None
    planned, after = tuple(with_way(change, left, mode) for change in plan.changes), plan.sections(held)
    if after == now:
        wanted = text if there else None
    else:
        wanted = with_sections(after) if after or (there and not ours) else None
    replaced = {} if ours or not there or wanted == text else {PATH: text}
    return wanted_sections(planned, after, now, wanted), replaced


def _planned(root: ImageRoot, facts: Facts, held: Held) -> tuple[PersistPlan, tuple[str, ...]]:
    """Return what becomes of the drop-in's sections, and the names of which only a network knows more.

    No name server is asked.
    """
    found = uses(facts.snapshot, facts.policy)
    answers = from_hosts(root, unsettled(found))
    plan = plan_persist(found, Network(answers=answers), facts.system.nfs_utils, held)
    return plan, tuple(answer.host for answer in answers if not answer.addresses)


def _with_replaced(known: Installed, replaced: Mapping[str, str]) -> Installed:
    """Return what was written, and beside it what nfstuned itself wrote by another command."""
    texts = {path: (digest(encoded(text)),) for path, text in replaced.items()}
    return replace(known, digests={**known.digests, **texts})


def _carry_out(
    image: _Image, work: Work, wanted: Wanted, replaced: Mapping[str, str]
) -> tuple[ImageChange, ...]:
    """Write what is planned, and return what came of it. Raises PermissionError when nothing was done."""
    changes = settled(wanted, work.steps, Result.DONE)
    try:
        if wanted.contents:
            image.ledger.carry_out(work, replaced)
        else:
            image.ledger.take_back(work.steps, work.known, work.found)
    except OSError as error:
        done = set(_done(image.root, work, wanted.contents))
        if isinstance(error, PermissionError) and not done:
            raise
        problem = _said(error)
        talk.note(f"{problem}: run it again when that is mended, or with --undo")
        return interrupted(changes, done, problem)
    return changes


def _done(root: ImageRoot, work: Work, contents: Mapping[str, Content]) -> Iterable[str]:
    """Yield the files that are now as they should be."""
    for step in work.steps:
        if step.step not in {Step.WRITE, Step.REMOVE}:
            continue
        content = contents.get(step.path)
        if _now(root, step.path) == (None if content is None else digest(content)):
            yield f"/{step.path}"


def _now(root: ImageRoot, path: str) -> str | None:
    try:
        return digest_at(root, path)
    except OSError:
        return ""


def _end(folder: str, changes: Sequence[ImageChange], form: str, nothing: str = "") -> int:
    """Print what came of it; return the exit status."""
    if form == "json":
        sys.stdout.write(to_json(bake_document(folder, changes)) + "\n")
    elif changes:
        print_outcomes([image_cells(change) for change in changes], summary(changes))
    else:
        sys.stdout.write((nothing or "Nothing to do: the image is prepared.") + "\n")
    return REFUSED if any(change.result is Result.FAILED for change in changes) else ALL_DONE


def _nothing_baked() -> str:
    return "Nothing to take back: the image has nothing of bake's."


def _unfit(error: OSError) -> int:
    """Say why nothing could be tried; return the exit status."""
    talk.note(_said(error))
    return COULD_NOT_TRY


def _said(error: OSError) -> str:
    hint = ": run it as root" if isinstance(error, PermissionError) else ""
    return f"{error.filename}: {error.strerror}{hint}"


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
def command(root: Root, /, *, folder: str | None, undo: bool, **options: Any) -> int:  # noqa: ANN401 - Wish has them
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
    wish = BakeWish(**options)
    if undo and wish.daemonless:
        raise click.UsageError("--undo takes back whatever was written: leave --daemonless out")
    where = folder if folder is not None else root.prefix
    return take_back(where, wish) if undo else bake(where, wish)
