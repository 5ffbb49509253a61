"""`nfstuned udev mask` and `nfstuned udev unmask`, which the unit runs before its daemon and after it.

They are not among the commands, which are slow to load: mounts at boot wait for the unit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass

from nfstuned.host.config import sets_observe
from nfstuned.host.root import Root
from nfstuned.host.telemetry.journal import Journal, Message, Priority, stderr_is_journal
from nfstuned.host.udev_mask import made_masks, make_masks, reload_rules, take_masks, udev_runs
from nfstuned.model.udev import MASKS

DONE, FAILED = 0, 1


def change_masks(root: Root, verb: str) -> int:
    """Mask or unmask the rules, and report each file; return the exit status.

    The report goes to the journal where the unit runs this, and else to the terminal.
    """
    masks = Masks(root, Journal() if stderr_is_journal(os.environ) else None)
    return masks.make() if verb == "mask" else masks.take()


@dataclass(frozen=True, slots=True)
class Masks:
    """The masks of a host. Nothing is raised: the daemon starts and ends without them, too."""

    root: Root
    journal: Journal | None = None
    reload_rules: Callable[[], str] = reload_rules
    """Has udev read its rules again, and returns the reason where it could not."""

    def make(self) -> int:
        """Bring the masks in line with the administrators' rules and settings; return the exit status.

        A service that only observes leaves udev as it is.
        """
        if sets_observe(self.root):
            return self.take()
        try:
            return self._make() if udev_runs(self.root) else DONE
        except OSError as error:
            return self._failed(_reason(error))

    def take(self) -> int:
        """Leave udev as it was; return the exit status."""
        try:
            masked = made_masks(self.root)
            take_masks(self.root, masked)
        except OSError as error:
            return self._failed(_reason(error))
        self._report_removed(masked)
        return self._reload() if masked else DONE

    def _make(self) -> int:
        # To take masks back no rule has to be understood: this is the larger part of the program.
        from nfstuned.core.udev.writers import choose_masks  # noqa: PLC0415
        from nfstuned.parse.udev_rules import read_mask_grounds  # noqa: PLC0415

        grounds, masked = read_mask_grounds(self.root), made_masks(self.root)
        choice = choose_masks(grounds.files, grounds.settings)
        wanted = [mask.name for mask in choice if not mask.left]
        new = [name for name in wanted if name not in masked]
        old = [name for name in masked if name not in wanted]
        take_masks(self.root, old)
        make_masks(self.root, new)
        self._report_removed(old)
        for name in wanted:
            path = f"/{MASKS}/{name}"
            self._report(Message.RULE_MASKED, f"{path} masks the distribution's rule", file=path)
        for mask in choice:
            if mask.left:
                text = f"{mask.name} is left as it is: {mask.left}"
                self._report(Message.RULE_LEFT, text, file=mask.name, reason=mask.left)
        return self._reload() if old or new else DONE

    def _report_removed(self, names: list[str] | tuple[str, ...]) -> None:
        for name in names:
            path = f"/{MASKS}/{name}"
            self._report(Message.RULE_UNMASKED, f"{path} removed", file=path)

    def _reload(self) -> int:
        problem = self.reload_rules()
        return self._failed(f"udev could not reload its rules: {problem}") if problem else DONE

    def _failed(self, reason: str) -> int:
        if self.journal is None:
            sys.stderr.write(f"{reason}\n")
        else:
            self.journal.send(Message.RULES_FAILED, reason, Priority.WARNING, reason=reason)
        return FAILED

    def _report(self, message: Message, text: str, **fields: str) -> None:
        if self.journal is None:
            sys.stdout.write(f"{text}\n")
        else:
            self.journal.send(message, text, Priority.INFO, **fields)


def _reason(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    hint = "; run it as root" if isinstance(error, PermissionError) and os.geteuid() else ""
    return f"udev's rules stay as they are: {where}{error.strerror}{hint}"
