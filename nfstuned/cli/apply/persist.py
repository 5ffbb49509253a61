"""`nfstuned apply --persist`: let the next mount of each server ask for the nconnect of its profile."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from nfstuned.cli import talk
from nfstuned.cli.apply.read_ahead import ALL_DONE, COULD_NOT_TRY, REFUSED, print_outcomes
from nfstuned.cli.policy import usable_policy
from nfstuned.cli.talk import Patient, live_outside
from nfstuned.core.nconnect.persist import FOREIGN, Held, PersistPlan, plan_persist, sections, with_sections
from nfstuned.core.nconnect.persist_members import Uses, unsettled, uses
from nfstuned.host.change.persist import PATH, load_persisted, write_persisted
from nfstuned.host.files.replace import LOCK, Original
from nfstuned.host.look.host import observe
from nfstuned.host.look.nfsmount import observe_nfs_utils
from nfstuned.host.network.ask import Outside, Questions
from nfstuned.host.root import Root, WitnessRoot
from nfstuned.model.change import SectionChange
from nfstuned.model.facts import Network
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.parse.etc.nfsmount import PERSISTED
from nfstuned.view.change import section_cells, sections_document, summary
from nfstuned.view.words import to_json

_NEXT = (
    f"Written to {PERSISTED}.\nA server has the new number when it is mounted anew, after every mount of it "
    "was unmounted: see nfstuned check.\n"
)


@dataclass(frozen=True, slots=True)
class PersistWish:
    """What the user asked for."""

    form: str = "text"
    dry_run: bool = False
    prune: bool = False


def persist(root: Root, wish: PersistWish, outside: Outside | None = None) -> int:
    """Bring nfstuned's drop-in up to date, and print what came of it; a test answers as `outside`."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    try:
        original = load_persisted(root.path(PATH))
    except OSError as error:
        talk.note(f"{PERSISTED}: {error.strerror}")
        return COULD_NOT_TRY
    has = {} if original is None else sections(original.data.decode("utf-8", "surrogateescape"))
    if has is None:
        return _end((SectionChange(PERSISTED, None, None, Result.FAILED, FOREIGN),), wish)
    held = Held(has, wish.prune)
    plan = _planned(root, policy, held, Patient(outside or live_outside(root)))
    _say_unused(plan)
    planned = any(change.result is Result.PLANNED for change in plan.changes)
    if wish.dry_run or not planned:
        return _end(plan.changes, wish)
    return _carry_out(root, original, plan, held, wish)


def _planned(root: Root, policy: Policy, held: Held, outside: Outside) -> PersistPlan:
    snapshot = observe(root)
    utils = observe_nfs_utils(root)
    unusable = root.problems() if isinstance(root, WitnessRoot) else ()
    talk.unreadable_lines((*snapshot.problems, *unusable))
    talk.denied(root, harmless=(f"{root.view}/mountstats",))
    found = uses(snapshot, policy)
    return plan_persist(found, _asked(found, outside), utils, held)


def _asked(found: Uses, outside: Outside) -> Network:
    names = unsettled(found)
    if not names:
        return Network()
    network, unknown = outside.ask(Questions(names), offline=False)
    for line in unknown:
        talk.note(line)
    return network


def _carry_out(
    root: Root, original: Original | None, plan: PersistPlan, held: Held, wish: PersistWish
) -> int:
    text = with_sections(plan.sections(held))
    problem = write_persisted(root.path(PATH), original, text, root.path(LOCK))
    result = Result.FAILED if problem else Result.DONE
    settled = tuple(
        replace(change, result=result, reason=problem or change.reason)
        if change.result is Result.PLANNED
        else change
        for change in plan.changes
    )
    status = _end(settled, wish)
    if wish.form == "text" and not problem:
        sys.stdout.write(_NEXT)
    return status


def _say_unused(plan: PersistPlan) -> None:
    for name in plan.unused:
        talk.note(f"{PERSISTED}: nothing here uses {name}; --prune takes its section out")


def _end(changes: Sequence[SectionChange], wish: PersistWish) -> int:
    """Print what came of it; return the exit status."""
    if wish.form == "json":
        sys.stdout.write(to_json(sections_document(changes)) + "\n")
    elif changes:
        print_outcomes([section_cells(change) for change in changes], summary(changes))
    else:
        sys.stdout.write(f"Nothing to do: {PERSISTED} is as the profiles ask.\n")
    failed = any(change.result is Result.FAILED for change in changes)
    return REFUSED if failed else ALL_DONE
