"""The udev rules of distributions that write the read-ahead of every NFS mount, and the files that mask them.

While nfstuned.service runs, a file of the same name in /run/udev/rules.d, without any rule, hides each of
them (udev(7)). Administrators' own settings stay in force.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nfstuned.model.mounts import NFSRAHEAD, Setting
from nfstuned.model.udev import MASKED_NAMES, NFS_RULES, UdevFile, UdevToken
from nfstuned.parse.udev.rules import parse_udev_rules

_PACKAGED = ("/usr/lib/udev/rules.d/", "/lib/udev/rules.d/")
_VENDORS = "/usr/"
_ADDED = (UdevToken("ACTION", None, "==", "add"), UdevToken("SUBSYSTEM", None, "==", "bdi"))


@dataclass(frozen=True, slots=True)
class Mask:
    """A name, and why its file is left in force; "" where it is masked."""

    name: str
    left: str = ""


def choose_masks(files: Iterable[UdevFile], settings: Iterable[Setting]) -> tuple[Mask, ...]:
    """Return the mask of each name, given the files that count without nfstuned's masks.

    nfs-utils may be installed later than nfstuned: its name is masked even where there is no such file.
    """
    by_name = {file.path.rpartition("/")[2]: file for file in files}
    setting = set_by_administrator(settings)
    masks: list[Mask] = []
    for name in MASKED_NAMES:
        file = by_name.get(name)
        if file is None and name != NFS_RULES:
            continue
        if name == NFS_RULES and setting is not None:
            left = f"{setting.file}:{setting.line} sets {setting.name}={setting.value} below [nfsrahead]"
        else:
            left = "" if file is None or is_default(file) else f"{file.path} is not the distribution's own"
        masks.append(Mask(name, left))
    return tuple(masks)


def set_by_administrator(settings: Iterable[Setting]) -> Setting | None:
    """Return the last line below [nfsrahead] that is not a vendor's, or None."""
    lines = [
        setting
        for setting in settings
        if setting.section == NFSRAHEAD and not setting.file.startswith(_VENDORS)
    ]
    return lines[-1] if lines else None


def is_default(file: UdevFile) -> bool:
    """Whether a file is a distribution's, with its one known rule and nothing else."""
    return file.path.startswith(_PACKAGED) and is_copy(file)


def is_copy(file: UdevFile) -> bool:
    """Whether a file in any folder has only the rule of the distribution's file of its name.

    An administrator's copy keeps the rule in force where the service would mask it.
    """
    name = file.path.rpartition("/")[2]
    if name not in MASKED_NAMES:
        return False
    parsed = parse_udev_rules(file.text)
    if len(parsed.rules) != 1 or parsed.defects:
        return False
    rule = parsed.rules[0]
    programs = [token.value for token in rule.tokens if token.key == "PROGRAM"]
    if name == NFS_RULES:
        value, asks = "%c", any(program.split(" ")[0].endswith("/nfsrahead") for program in programs)
    else:  # amazon-ec2-utils
        value, asks = "15360", any(program.endswith(" /proc/fs/nfsfs/volumes") for program in programs)
    # Such a rule only writes the value to bdis that are added, if its program lets it.
    known = {*_ADDED, UdevToken("ATTR", "read_ahead_kb", "=", value)}
    others = [token for token in rule.tokens if token not in known]
    plain = rule.goto is None and rule.label is None and known <= set(rule.tokens)
    return asks and plain and all(token.is_match and token.key in {"KERNEL", "PROGRAM"} for token in others)
