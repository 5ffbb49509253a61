"""`nfstuned apply --fstab`: let the entries of /etc/fstab ask for the nconnect of their profiles."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import click

from nfstuned.cli import talk
from nfstuned.cli.apply.read_ahead import ALL_DONE, COULD_NOT_TRY, REFUSED, print_outcomes
from nfstuned.cli.policy import usable_policy
from nfstuned.cli.talk import Patient, can_ask, live_outside, show
from nfstuned.core.nconnect.fstab import counts, plan_fstab
from nfstuned.core.nconnect.fstab_members import mounts, unsettled
from nfstuned.core.nconnect.fstab_text import owner, with_counts
from nfstuned.host.change.findmnt import new_errors
from nfstuned.host.files.replace import LOCK, LinkError, Original, Replaced, load
from nfstuned.host.files.replace import replace as replace_file
from nfstuned.host.look.host import observe
from nfstuned.host.network.ask import Outside, Questions
from nfstuned.host.root import FSTAB, Root, WitnessRoot
from nfstuned.model.change import Change
from nfstuned.model.facts import Network
from nfstuned.model.mounts import Result
from nfstuned.model.policy import Policy
from nfstuned.view.change import change_cells, changes_document, diff_lines, summary
from nfstuned.view.words import to_json

_NEXT = (
    "A mount has the new number when it is made again, after every mount of its server was unmounted: see "
    "nfstuned check.\nsystemd reads the file at boot, or now: sudo systemctl daemon-reload\n"
)


@dataclass(frozen=True, slots=True)
class FstabWish:
    """What the user asked for."""

    form: str = "text"
    dry_run: bool = False
    yes: bool = False
    follow: bool = False
    """A symbolic link in the place of the file may be followed."""


def edit_fstab(root: Root, wish: FstabWish, outside: Outside | None = None) -> int:
    """Show what is to be changed, ask, change it, and print what came of it; a test answers as `outside`."""
    policy = usable_policy(root)
    if policy is None:
        return COULD_NOT_TRY
    try:
        original, link = _loaded(root, wish)
    except FileNotFoundError:
        return _end((), wish)
    except OSError as error:
        talk.note(f"{root.shown(FSTAB)}: {error.strerror}")
        return COULD_NOT_TRY
    text = _text(original)
    changes = _planned(root, policy, text, Patient(outside or live_outside(root)))
    return _settle(root, original, changes, wish, link or _owned(text))


def _settle(root: Root, original: Original, changes: Sequence[Change], wish: FstabWish, refusal: str) -> int:
    """Show the change, and make it where nothing is against it and it is wanted; return the exit status."""
    text = _text(original)
    new = with_counts(text, counts(changes))
    show(diff_lines(text, new, root.shown(FSTAB)), wish.form)
    if refusal:
        return _end(_settled(changes, Result.FAILED, refusal), wish)
    if wish.dry_run or new == text:
        return _end(changes, wish)
    if wish.yes or (can_ask(wish.form) and click.confirm("Change it?", err=True)):
        return _carry_out(root, original, new, changes, wish)
    return _leave(changes, wish)


def _text(original: Original) -> str:
    return original.data.decode("utf-8", "surrogateescape")


def _loaded(root: Root, wish: FstabWish) -> tuple[Original, str]:
    """Return the file, and why it will not be changed where it is a link. Raises OSError."""
    path = root.path(FSTAB)
    try:
        return load(path, follow=wish.follow), ""
    except LinkError as error:
        reason = f"{root.shown(FSTAB)} {error.strerror}: --follow-symlink changes the file that it leads to"
        return load(path, follow=True), reason


def _planned(root: Root, policy: Policy, text: str, outside: Outside) -> tuple[Change, ...]:
    # The snapshot must be of the text that is edited, whatever happens to the file meanwhile.
    root.propose(FSTAB, root.shown(FSTAB), text)
    snapshot = observe(root)
    unusable = root.problems() if isinstance(root, WitnessRoot) else ()
    talk.unreadable_lines((*snapshot.problems, *unusable))
    talk.denied(root, harmless=(f"{root.view}/mountstats",))
    found = mounts(text, snapshot, policy)
    names = unsettled(found)
    network, unknown = outside.ask(Questions(names), offline=False) if names else (Network(), ())
    for line in unknown:
        talk.note(line)
    return plan_fstab(found, network)


def _leave(changes: Sequence[Change], wish: FstabWish) -> int:
    """Change nothing: nobody could be asked, or the answer was no."""
    if can_ask(wish.form):
        return _end(_settled(changes, Result.SKIPPED, "not wanted"), wish, REFUSED)
    talk.note("nothing was changed: there is no terminal to ask on; --yes changes it without a question")
    return _end(changes, wish, COULD_NOT_TRY)


def _carry_out(root: Root, original: Original, new: str, changes: Sequence[Change], wish: FstabWish) -> int:
    def wrong(path: str) -> str:
        return new_errors(original.path, path)

    data = new.encode("utf-8", "surrogateescape")
    done = replace_file(original, data, root.path(LOCK), wrong)
    settled = _settled(changes, Result.FAILED if done.problem else Result.DONE, done.problem)
    status = _end(settled, wish)
    if wish.form == "text":
        _say_what_is_next(done)
    return status


def _say_what_is_next(done: Replaced) -> None:
    if not done.problem:
        sys.stdout.write(f"The old file is {done.backup}.\n{_NEXT}")


def _settled(changes: Sequence[Change], result: Result, reason: str) -> tuple[Change, ...]:
    """Return the changes with what came of those that were planned; each keeps its reason without another."""
    return tuple(
        replace(change, result=result, reason=reason or change.reason)
        if change.result is Result.PLANNED
        else change
        for change in changes
    )


def _owned(text: str) -> str:
    name = owner(text)
    return f"its comments say that {name} writes this file: change it there" if name else ""


def _end(changes: Sequence[Change], wish: FstabWish, status: int = ALL_DONE) -> int:
    """Print what came of it; return the exit status, REFUSED at the least where something failed."""
    if wish.form == "json":
        sys.stdout.write(to_json(changes_document(changes)) + "\n")
    elif changes:
        print_outcomes([change_cells(change) for change in changes], summary(changes))
    else:
        sys.stdout.write(
            "Nothing to do: no NFS entry of /etc/fstab asks for another nconnect than its profile.\n"
        )
    failed = any(change.result is Result.FAILED for change in changes)
    return REFUSED if failed else status
