"""The preparation of an image, so that its first boot has fast mounts, and its undo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from nfstuned.app.change import Dialog, Ended, Plan, Way, refusal_after
from nfstuned.app.facts import Scope, examine
from nfstuned.core.image import (
    SERVICE,
    ImageUnit,
    Wanted,
    interrupted,
    joined,
    plan_files,
    plan_removal,
    refused_sections,
    results,
    taken_back,
    wanted_identity,
    wanted_mask,
    wanted_parameters,
    wanted_rule,
    wanted_sections,
    wanted_service,
    with_folder,
    with_remedy,
)
from nfstuned.core.nconnect.persist import (
    FOREIGN,
    DropIn,
    plan_persist,
    section_uses,
    sections,
    with_sections,
)
from nfstuned.errors import ParseError
from nfstuned.host.files.ledger import Ledger
from nfstuned.host.image_root import BareRoot, ImageRoot
from nfstuned.host.installed import baked_text
from nfstuned.host.network.names import from_hosts
from nfstuned.host.network.outside import LiveOutside
from nfstuned.model.change import IDENTITY, RULE, FileStep, Work, digest, encoded, is_file, settled
from nfstuned.model.facts import Facts
from nfstuned.model.mounts import PERSISTED, Result
from nfstuned.model.policy import Policy
from nfstuned.model.system import IDENTITY_UNIT, Network
from nfstuned.parse.etc.units import read_unit, unit_file

COMMAND = "bake"
_DROP_IN = PERSISTED[1:]
RECORD = "etc/nfstuned-baked.json"
"""In /etc itself, which every image has: no folder has to be made that a kill could leave behind."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, and the files that an earlier bake wrote there."""

    root: ImageRoot
    ledger: Ledger
    digests: Mapping[str, str | None]
    """The digests of bake's files, and of its drop-in of nfsmount.conf."""
    ours: frozenset[str]
    """The files that are still as they were written."""
    bare: BareRoot
    """The image without bake's files."""

    @property
    def faults(self) -> tuple[ParseError, ...]:
        """The faults of all reads until now."""
        return (*self.bare.faults, *self.root.faults)

    def unreported(self) -> tuple[ParseError, ...]:
        """Return the faults that neither this method nor a look has returned before."""
        return (*self.bare.faults.unreported(), *self.root.faults.unreported())


def open_image(root: ImageRoot) -> Image:
    """Return the image in a folder.

    Raises OSError, FileNotFoundError where it has no /etc, and ParseError where its record is broken.
    """
    root.listing("etc")
    ledger = Ledger(root, RECORD)
    digests = ledger.digests((_DROP_IN,))
    ours = frozenset(path for path, values in ledger.known.digests.items() if digests[path] in values)
    return Image(root, ledger, digests, ours, BareRoot(root.prefix, ours))


class _ImageWay(Way[Work]):
    """Files that are written into an image, or taken out of it."""

    remedy: ClassVar[str] = "remove the obstacle and run the command again"
    """The remedy of a change that was cut short."""

    def __init__(self, image: Image, dialog: Dialog) -> None:
        self._image = image
        self._dialog = dialog

    def carry_out(self, plan: Plan[Work]) -> Ended | None:
        """Change each file; None, with a note, where rights were missing from the start."""
        changes, ledger = settled(plan.changes, Result.DONE), self._image.ledger
        try:
            ledger.carry_out(plan.detail)
        except OSError as error:
            done, problem = ledger.finished(plan.detail), image_obstacle(error)
            refused = isinstance(error, PermissionError)
            self._dialog.note(problem if refused else f"{problem}: {self.remedy}")
            if refused and not done:
                return None
            return Ended(interrupted(changes, {f"/{path}" for path in done}, problem), failed=True)
        return Ended(changes)


class BakeWay(_ImageWay):
    """Prepare an image; without the service by a udev rule."""

    remedy: ClassVar[str] = "remove the obstacle and run the command again, or with --undo"

    def __init__(
        self, image: Image, policy: Policy, dialog: Dialog, *, daemonless: bool, dry_run: bool
    ) -> None:
        super().__init__(image, dialog)
        self._policy = policy
        self._daemonless = daemonless
        self._dry_run = dry_run

    def look(self) -> Plan[Work] | None:
        """Return the files to write; None, with a note, where the image cannot be read."""
        image, ledger = self._image, self._image.ledger
        try:
            wanted, replaced = self._wanted()
            if wanted.unprepared:
                return Plan(with_folder(wanted.changes, image.root.prefix), Work((), {}, {}), "", todo=False)
            digests = ledger.digests(wanted.contents)
            refusal = refusal_after(image.faults)
            if not (self._dry_run or refusal):
                # carry_out does not run where nothing is to do: a killed bake's temporary files go here.
                ledger.tidy()
        except OSError as error:
            self._dialog.note(image_obstacle(error))
            return None
        # A text that nfstuned wrote by another command may be replaced.
        texts = {path: (digest(encoded(text)),) for path, text in replaced.items()}
        known = replace(ledger.known, digests={**ledger.known.digests, **texts})
        steps = plan_files(wanted.contents, digests, known, COMMAND)
        return Plan(
            with_folder(results(wanted, steps), image.root.prefix),
            Work(steps, wanted.contents, digests, replaced),
            "Nothing to do: the image is prepared.",
            todo=any(step.step in {FileStep.WRITE, FileStep.REMOVE} for step in steps),
            refusal=refusal,
        )

    def _wanted(self) -> tuple[Wanted, dict[str, str]]:
        """Return the files that the image should have, and the texts that they replace. Raises OSError.

        The plan ignores an earlier bake: so a second one has the same result.
        """
        bare = self._image.bare
        facts = examine(bare, self._policy, Scope(image=True), LiveOutside(bare))
        self._dialog.unreadable_lines(facts.snapshot.problems)
        self._dialog.unreadable_lines(bare.faults.denied())
        unit = read_unit(bare, SERVICE, image=True)
        if self._daemonless:
            # The rule runs awk: without it only the rule's refusal counts.
            awk, starts = bare.executable("usr/bin/awk"), facts.system.daemon.enabled
            rule = wanted_rule(baked_text(RULE), has_awk=awk, linked=unit.enabled, starts=starts)
            start = joined((rule, wanted_mask(facts))) if awk else rule
        else:
            start = wanted_service(ImageUnit(unit, *unit_file(bare, SERVICE)))
        if start.unprepared:
            return start, {}
        drop_in, replaced = _drop_in(self._image, facts, service=not self._daemonless)
        known = ImageUnit(read_unit(bare, IDENTITY_UNIT, image=True), *unit_file(bare, IDENTITY_UNIT))
        identity = wanted_identity(facts, known, baked_text(IDENTITY))
        return joined((start, drop_in, wanted_parameters(facts), identity)), replaced


class UnbakeWay(_ImageWay):
    """Take bake's files out of an image."""

    def look(self) -> Plan[Work]:
        """Return the files to remove or to restore."""
        known, digests = self._image.ledger.known, self._image.digests
        steps = plan_removal(digests, known, COMMAND)
        return Plan(
            taken_back(steps, known.before),
            Work(steps, {}, digests),
            "Nothing to take back: bake wrote no file of this image.",
            todo=True,  # also without steps: the record is to be removed
        )


def image_obstacle(error: OSError) -> str:
    """Return the file of an error and the reason; without rights, also the remedy."""
    hint = ": run it as root" if isinstance(error, PermissionError) else ""
    return f"{error.filename}: {error.strerror}{hint}"


def _drop_in(image: Image, facts: Facts, *, service: bool) -> tuple[Wanted, dict[str, str]]:
    """Return nfstuned's drop-in of nfsmount.conf as it should be, and its text by another command.

    `service`: nfstuned's service will run in the image, and can find out more at its boot.
    """
    ours, there = _DROP_IN in image.ours, image.digests[_DROP_IN] is not None
    text = image.root.read(_DROP_IN) if is_file(image.digests[_DROP_IN]) else ""
    present = sections(text) if there else {}
    if present is None:
        return refused_sections(FOREIGN), {}
    earlier = image.ledger.known.before.get(_DROP_IN, "") if ours else text
    held = DropIn(sections(earlier) or {})
    users = section_uses(facts.snapshot, facts.policy)
    answers = from_hosts(image.bare, users.names_to_resolve())  # no name server is asked
    plan = plan_persist(users, Network(answers=answers), facts.system.nfs_utils, held)
    unresolved = tuple(answer.host for answer in answers if not answer.addresses)
    mode = facts.policy.nconnect_mode if service else None
    planned = tuple(with_remedy(change, unresolved, mode) for change in plan.changes)
    after = plan.sections(held)
    if after == present:
        wanted = text if there else None
    else:
        # Without sections bake's own file is removed, and another command's stays.
        wanted = with_sections(after) if after or (there and not ours) else None
    replaced = {} if ours or not there or wanted == text else {_DROP_IN: text}
    return wanted_sections(planned, after, present, wanted), replaced
