"""Rules NFS104 to NFS107: who else writes the read-ahead, and udev rules that do not do what they mean."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.rivals import agrees, kind_of, names, nfsrahead_kb, rivals, wanted_kb
from nfstuned.core.udevfaults import find_broken, is_about_read_ahead
from nfstuned.core.udevinforce import is_nfsrahead, reaches_all, rule_writers, unsure
from nfstuned.core.udevmask import set_by_administrator
from nfstuned.model.facts import Facts
from nfstuned.model.finding import Fault, Rule
from nfstuned.model.intent import NFSRAHEAD
from nfstuned.model.severity import Severity
from nfstuned.model.udev import RuleWriter, UdevEvent, UdevFile, is_mask
from nfstuned.parse.udevrules import parse_udev_rules

_DISK = UdevEvent(kernel="8:0", read_ahead_kb="128")
"""A disk as most are, with the kernel's own default (VM_READAHEAD_PAGES)."""
_PACKAGED = ("/usr/lib/", "/lib/")
_ADMINISTRATORS = "/etc/udev/rules.d"
_NFS_RULES = "99-nfs.rules"
_SERVICE = "nfstuned.service"


def contested(facts: Facts) -> Iterator[Fault]:
    """Yield what else writes a value that the policy does not want for mounts of this host."""
    for rival in rivals(facts):
        against = [target for target in rival.targets if not agrees(facts, target, rival)]
        if not against:
            continue
        wanted = sorted({kb for target in against if (kb := wanted_kb(target)) is not None})
        values = " or ".join(f"{kb} KiB" for kb in wanted)
        yield Fault(
            rival.subject,
            f"{rival.program} writes a read-ahead of {rival.kb} KiB where the policy wants {values} "
            f"({names(against)}): whoever writes last wins",
            observed=f"{rival.kb} KiB",
            expected=values,
            remedy=rival.remedy,
            source=rival.source,
        )


def broken(facts: Facts) -> Iterator[Fault]:
    """Yield rules that udev reads as something else than what they mean."""
    everywhere = _everywhere(facts)
    for file in facts.udev:
        if not is_about_read_ahead(file.text):
            continue
        mine = {writer.line: writer.value for writer in everywhere if writer.file == file.path}
        for rule in find_broken(file.text, mine):
            yield Fault(
                f"{file.path}:{rule.line}",
                rule.message,
                observed=rule.defect,
                expected="one line, $$ for a program's own $, and a condition that only NFS meets",
                remedy=f"remove the rule from {file.path} and enable nfstuned.service, or write it as in "
                "nfstuned's 99-nfstuned.rules; then sudo udevadm control --reload",
            )


def _everywhere(facts: Facts) -> list[RuleWriter]:
    """Return the rules that write to a disk's bdi as they do to that of an NFS mount, whatever it is."""
    nfs = {(writer.file, writer.line) for writer in rule_writers(facts)}
    disks = [writer for writer in rule_writers(facts, _DISK) if (writer.file, writer.line) in nfs]
    return [writer for writer in disks if writer.kb is not None and not unsure(facts.udev, writer)]


def masked(facts: Facts) -> Iterator[Fault]:
    """Yield files that hide a packaged one of the same name."""
    for file in facts.udev:
        hidden = [path for path in file.hides if _is_packaged(path)]
        if hidden and _matters(facts, file):
            yield Fault(
                file.path,
                f"this file hides {' and '.join(hidden)} of the same name, which udev never reads: "
                "what a package brings and updates there has no effect"
                + (", and neither has [nfsrahead] of /etc/nfs.conf" if _is_nfs_rules(file) else ""),
                observed=f"{hidden[0]} is hidden",
                expected="a name of its own",
                remedy=_unhide(file, hidden[0]),
            )


def _matters(facts: Facts, file: UdevFile) -> bool:
    """Whether a hidden file is missed.

    One without a rule was made to hide. It does harm where nfs.conf still counts on what is hidden, and
    nfstuned does not do the work instead, or masked it before nfs.conf said so.
    """
    if parse_udev_rules(file.text).rules:
        return _is_nfs_rules(file) or is_about_read_ahead(file.text)
    if is_mask(file.text):
        return _is_nfs_rules(file) and set_by_administrator(facts.writers) is not None
    daemon = facts.system.daemon
    counted_on = _is_nfs_rules(file) and any(one.section == NFSRAHEAD for one in facts.writers)
    return counted_on and not (daemon.enabled or daemon.active)


def _unhide(file: UdevFile, hidden: str) -> str:
    if is_mask(file.text):
        return f"sudo systemctl reload {_SERVICE}, which masks the rule only where nfs.conf says nothing"
    if not parse_udev_rules(file.text).rules:
        return f"sudo rm {file.path}, then sudo udevadm control --reload"
    return _rename(hidden if _is_packaged(file.path) else file.path)


def _is_packaged(path: str) -> bool:
    return path.startswith(_PACKAGED)


def _is_nfs_rules(file: UdevFile) -> bool:
    return file.path.endswith("/" + _NFS_RULES)


def outrun(facts: Facts) -> Iterator[Fault]:
    """Yield rules whose value nfs-utils' rule overwrites, because its file comes later."""
    sure = [writer for writer in rule_writers(facts) if reaches_all(facts.udev, writer)]
    if not sure or not (is_nfsrahead(sure[-1]) or sure[-1].file.endswith("/" + _NFS_RULES)):
        return
    *earlier, winner = sure
    for writer in earlier:
        values = sorted(kb for kb in _values(facts, winner) if kb != writer.kb)
        if writer.kb is not None and values and writer.file != winner.file:
            said = " or ".join(str(kb) for kb in values)
            yield Fault(
                f"{writer.file}:{writer.line}",
                f"this rule writes {writer.kb} KiB, and {winner.file}, which sorts after it, then {said} KiB",
                observed=f"{said} KiB",
                expected=f"{writer.kb} KiB",
                remedy=_rename(writer.file),
            )


def _rename(path: str) -> str:
    """Return the remedy for a file's name: one that sorts after nfs-utils' own; a package's file stays.

    The name is the file's alone, and sorts among such names as the old one did.
    """
    folder, _, name = path.rpartition("/")
    verb, folder = ("cp", _ADMINISTRATORS) if _is_packaged(path) else ("mv", folder)
    return f"sudo {verb} -n {path} {folder}/99-read-ahead-{name}, then sudo udevadm control --reload"


def _values(facts: Facts, writer: RuleWriter) -> set[int]:
    """Return what a rule writes for the mounts of this host, or for either version where none is known."""
    if not is_nfsrahead(writer):
        return {writer.kb} if writer.kb is not None else set()
    kinds = {kind_of(target) for target in facts.nfs} or {"nfs", "nfs4"}
    return {nfsrahead_kb(facts, kind)[0] for kind in kinds}


_AZURE = "https://learn.microsoft.com/en-us/azure/storage/files/nfs-performance"
_UDEV = "https://www.freedesktop.org/software/systemd/man/latest/udev.html"

CONTESTED = Rule(
    "NFS104",
    "read-ahead-contested",
    Severity.WARNING,
    contested,
    "https://manpages.debian.org/bookworm/nfs-common/nfsrahead.5.en.html",
)
BROKEN = Rule("NFS105", "udev-rule-broken", Severity.ERROR, broken, _UDEV)
MASKED = Rule("NFS106", "udev-rule-masked", Severity.WARNING, masked, _UDEV)
OUTRUN = Rule("NFS107", "udev-rule-outrun", Severity.WARNING, outrun, _UDEV)
