"""The files with the nconnect for the next mount: /etc/fstab, and nfstuned's own drop-in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nfstuned.app.change import Ended, Host, Plan, Way, refusal_after
from nfstuned.core.nconnect.fstab import fstab_users, owner, plan_fstab, with_counts
from nfstuned.core.nconnect.persist import (
    FOREIGN,
    DropIn,
    plan_persist,
    section_uses,
    sections,
    with_sections,
)
from nfstuned.core.nconnect.server import M, Users
from nfstuned.host.files.replace import LOCK, LinkError, Original, read_original, replace
from nfstuned.host.network.outside import Questions
from nfstuned.host.observe import observe_host
from nfstuned.host.persist import PATH, load_persisted, write_persisted
from nfstuned.host.tools import new_errors
from nfstuned.model.change import Change, ChangeKind, settled
from nfstuned.model.mounts import Result, Snapshot
from nfstuned.model.system import Network
from nfstuned.parse.etc.nfsmount import PERSISTED, read_nfs_utils
from nfstuned.parse.tree import FSTAB
from nfstuned.view.change import diff_lines

_NO_ENTRY = "Nothing to do: no NFS entry of /etc/fstab asks for another nconnect than its profile."
_EDITED = (
    "A mount has the new number when it is made again, after every mount of its server was unmounted: see "
    "nfstuned check.\nsystemd reads the file at boot, or now: sudo systemctl daemon-reload"
)
_WRITTEN = (
    f"Written to {PERSISTED}.\nA server has the new number when it is mounted again, after every mount of it "
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
        """A symbolic link instead of the file may be followed."""

    def look(self) -> Plan[FstabEdit | None] | None:
        """Return the changes; None, reported, where the file cannot be read."""
        root = self._host.root
        try:
            original, refusal = self._load()
        except FileNotFoundError:
            return Plan((), None, _NO_ENTRY, todo=False)
        except OSError as error:
            self._host.dialog.note(f"{root.shown(FSTAB)}: {error.strerror}")
            return None
        text = original.data.decode("utf-8", "surrogateescape")
        with root.faults.block() as faults:
            # The snapshot must be of the text that is edited, also when the file changes meanwhile.
            root.propose(FSTAB, root.shown(FSTAB), text)
            users = fstab_users(text, _snapshot(self._host), self._host.policy)
            plan = plan_fstab(users, _addresses(self._host, users))
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
            return read_original(path, follow=self._follow), ""
        except LinkError as error:
            reason = (
                f"{root.shown(FSTAB)} {error.strerror}: --follow-symlink changes the file that it leads to"
            )
            return read_original(path, follow=True), reason

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
        """Return the changes; None, reported, where the file cannot be read."""
        nothing = f"Nothing to do: {PERSISTED} is as the profiles ask."
        try:
            original = load_persisted(self._host.root.path(PATH))
        except OSError as error:
            self._host.dialog.note(f"{PERSISTED}: {error.strerror}")
            return None
        has = {} if original is None else sections(original.data.decode("utf-8", "surrogateescape"))
        if has is None:
            foreign = Change(ChangeKind.PERSIST, PERSISTED, None, None, Result.FAILED, FOREIGN)
            return Plan((foreign,), DropInEdit(original, {}), nothing, todo=False)
        held = DropIn(has, self._prune)
        with self._host.root.faults.block() as faults:
            utils = read_nfs_utils(self._host.root)
            users = section_uses(_snapshot(self._host), self._host.policy)
            plan = plan_persist(users, _addresses(self._host, users), utils, held)
        for name in plan.unused:
            self._host.dialog.note(f"{PERSISTED}: nothing here uses {name}; --prune takes its section out")
        todo = any(change.result is Result.PLANNED for change in plan.changes)
        edit = DropInEdit(original, plan.sections(held))
        return Plan(plan.changes, edit, nothing, todo=todo, refusal=refusal_after(faults.values()))

    def carry_out(self, plan: Plan[DropInEdit]) -> Ended:
        """Replace the file, unless it is no longer the one that was read."""
        root, edit = self._host.root, plan.detail
        text = with_sections(edit.sections)
        problem = write_persisted(root.path(PATH), edit.original, text, root.path(LOCK))
        if problem:
            return Ended(settled(plan.changes, Result.FAILED, problem))
        return Ended(settled(plan.changes, Result.DONE), (_WRITTEN,))


def _snapshot(host: Host) -> Snapshot:
    """Return the host, and report the files that could not be read."""
    snapshot = observe_host(host.root)
    host.dialog.unreadable_lines(snapshot.problems)
    host.dialog.unreadable_lines(host.root.faults.denied((f"{host.root.view}/mountstats",)))
    return snapshot


def _addresses(host: Host, users: Users[M]) -> Network:
    names = users.names_to_resolve()
    return host.dialog.ask(host.outside, Questions(names)) if names else Network()
