"""The files that say which nconnect mounts ask for the next time: /etc/fstab, and nfstuned's own drop-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nfstuned.app.change import Ended, Host, Plan, Way, refusal_after
from nfstuned.core.nconnect.fstab import FstabPlan, mounts, plan_fstab
from nfstuned.core.nconnect.fstab import unsettled as unsettled_entries
from nfstuned.core.nconnect.fstab_text import owner, with_counts
from nfstuned.core.nconnect.persist import FOREIGN, Held, PersistPlan, plan_persist, sections, with_sections
from nfstuned.core.nconnect.persist_members import unsettled as unsettled_uses
from nfstuned.core.nconnect.persist_members import uses
from nfstuned.host.change.findmnt import new_errors
from nfstuned.host.change.persist import PATH, load_persisted, write_persisted
from nfstuned.host.files.replace import LOCK, LinkError, Original, load, replace
from nfstuned.host.network.ask import Questions
from nfstuned.host.observe import observe
from nfstuned.model.change import Change, ChangeKind, settled
from nfstuned.model.facts import Network
from nfstuned.model.mounts import Result, Snapshot
from nfstuned.parse.etc.nfsmount import PERSISTED, read_nfs_utils
from nfstuned.parse.tree import FSTAB
from nfstuned.view.change import diff_lines

_NO_ENTRY = "Nothing to do: no NFS entry of /etc/fstab asks for another nconnect than its profile."
_EDITED = (
    "A mount has the new number when it is made again, after every mount of its server was unmounted: see "
    "nfstuned check.\nsystemd reads the file at boot, or now: sudo systemctl daemon-reload"
)
_WRITTEN = (
    f"Written to {PERSISTED}.\nA server has the new number when it is mounted anew, after every mount of it "
    "was unmounted: see nfstuned check."
)


@dataclass(frozen=True, slots=True)
class FstabEdit:
    """The file as it was read, and as it is to be."""

    original: Original
    text: str


class FstabWay(Way[FstabEdit | None]):
    """Let the entries of /etc/fstab ask for the nconnect of their profiles."""

    question: ClassVar[str] = "Change it?"
    without: ClassVar[str] = "changes it"

    def __init__(self, host: Host, *, follow: bool) -> None:
        self._host = host
        self._follow = follow
        """A symbolic link in the place of the file may be followed."""

    def look(self) -> Plan[FstabEdit | None] | None:
        """Return what is to be changed; None, told, where the file cannot be read."""
        root = self._host.root
        try:
            original, refusal = self._load()
        except FileNotFoundError:
            return Plan((), None, _NO_ENTRY, todo=False)
        except OSError as error:
            self._host.talk.note(f"{root.shown(FSTAB)}: {error.strerror}")
            return None
        text = original.data.decode("utf-8", "surrogateescape")
        with root.faults.block() as faults:
            plan = self._plan(text)
        new = with_counts(text, plan.counts)
        refusal = refusal or refusal_after(faults.values())
        if not refusal and (name := owner(text)):
            refusal = f"its comments say that {name} writes this file: change it there"
        return Plan(
            plan.changes,
            FstabEdit(original, new),
            _NO_ENTRY,
            todo=new != text,
            lines=tuple(diff_lines(text, new, root.shown(FSTAB))),
            refusal=refusal,
        )

    def _load(self) -> tuple[Original, str]:
        """Return the file, and why it will not be changed where it is a link. Raises OSError."""
        root = self._host.root
        path = root.path(FSTAB)
        try:
            return load(path, follow=self._follow), ""
        except LinkError as error:
            reason = (
                f"{root.shown(FSTAB)} {error.strerror}: --follow-symlink changes the file that it leads to"
            )
            return load(path, follow=True), reason

    def _plan(self, text: str) -> FstabPlan:
        # The snapshot must be of the text that is edited, whatever happens to the file meanwhile.
        self._host.root.propose(FSTAB, self._host.root.shown(FSTAB), text)
        known = mounts(text, _snapshot(self._host), self._host.policy)
        return plan_fstab(known, _addresses(self._host, unsettled_entries(known)))

    def carry_out(self, plan: Plan[FstabEdit | None]) -> Ended:
        """Replace the file, unless it is no longer the one that was read."""
        edit = plan.detail
        if edit is None:
            return Ended(plan.changes)
        original = edit.original
        data, lock = edit.text.encode("utf-8", "surrogateescape"), self._host.root.path(LOCK)
        done = replace(original, data, lock, lambda path: new_errors(original.path, path))
        if done.problem:
            return Ended(settled(plan.changes, Result.FAILED, done.problem))
        return Ended(settled(plan.changes, Result.DONE), (f"The old file is {done.backup}.", _EDITED))


@dataclass(frozen=True, slots=True)
class DropInEdit:
    """nfstuned's drop-in as it was read, and the sections that it is to have."""

    original: Original | None
    sections: dict[str, int]


class PersistWay(Way[DropInEdit]):
    """Let mount.nfs by itself ask for the nconnect of each server's profile."""

    def __init__(self, host: Host, *, prune: bool) -> None:
        self._host = host
        self._prune = prune
        """Sections of servers that nothing uses go."""

    def look(self) -> Plan[DropInEdit] | None:
        """Return what is to be changed; None, told, where the file cannot be read."""
        nothing = f"Nothing to do: {PERSISTED} is as the profiles ask."
        try:
            original = load_persisted(self._host.root.path(PATH))
        except OSError as error:
            self._host.talk.note(f"{PERSISTED}: {error.strerror}")
            return None
        has = {} if original is None else sections(original.data.decode("utf-8", "surrogateescape"))
        if has is None:
            foreign = Change(ChangeKind.PERSIST, PERSISTED, None, None, Result.FAILED, FOREIGN)
            return Plan((foreign,), DropInEdit(original, {}), nothing, todo=False)
        held = Held(has, self._prune)
        with self._host.root.faults.block() as faults:
            plan = self._plan(held)
        for name in plan.unused:
            self._host.talk.note(f"{PERSISTED}: nothing here uses {name}; --prune takes its section out")
        todo = any(change.result is Result.PLANNED for change in plan.changes)
        edit = DropInEdit(original, plan.sections(held))
        return Plan(plan.changes, edit, nothing, todo=todo, refusal=refusal_after(faults.values()))

    def _plan(self, held: Held) -> PersistPlan:
        utils = read_nfs_utils(self._host.root)
        known = uses(_snapshot(self._host), self._host.policy)
        return plan_persist(known, _addresses(self._host, unsettled_uses(known)), utils, held)

    def carry_out(self, plan: Plan[DropInEdit]) -> Ended:
        """Replace the file, unless it is no longer the one that was read."""
        root, edit = self._host.root, plan.detail
        text = with_sections(edit.sections)
        problem = write_persisted(root.path(PATH), edit.original, text, root.path(LOCK))
        if problem:
            return Ended(settled(plan.changes, Result.FAILED, problem))
        return Ended(settled(plan.changes, Result.DONE), (_WRITTEN,))


def _snapshot(host: Host) -> Snapshot:
    """Return what there is, and say what could not be read of it."""
    snapshot = observe(host.root)
    host.talk.unreadable_lines(snapshot.problems)
    host.talk.unreadable_lines(host.root.faults.denied((f"{host.root.view}/mountstats",)))
    return snapshot


def _addresses(host: Host, names: tuple[str, ...]) -> Network:
    return host.talk.ask(host.outside, Questions(names)) if names else Network()
