"""Rules NFS213 and NFS214: lines of fstab and nfsmount.conf that cannot do what they say."""

from __future__ import annotations

from collections.abc import Iterator

from nfstuned.core.intent import ALIASES, GLOBAL, effective
from nfstuned.core.optionnames import COMMON, NFS, RARE_NFS
from nfstuned.errors import ParseError
from nfstuned.model.facts import NFS_TYPES, Facts
from nfstuned.model.finding import Fault, Rule, Severity
from nfstuned.model.intent import Setting
from nfstuned.parse.nfsmount import FILE, VENDOR_FILE
from nfstuned.parse.options import parse_options
from nfstuned.parse.utab import FILE as UTAB

_FIXED = ("nconnect", "rsize", "wsize", "vers", "nfsvers", "minorversion")
_COUNTED = {"nconnect": 16, "max_connect": 16}
"""Options whose number the kernel bounds (NFS_MAX_CONNECTIONS): from 1 to this."""
_VARIABLES = "environment"
_KNOWN = ("server", "mountpoint", _VARIABLES, GLOBAL)


def remount(facts: Facts) -> Iterator[Fault]:
    """Yield lines of fstab and of units that mean to change by remount what a mount keeps for its life."""
    for request in facts.snapshot.requests:
        wanted = parse_options(request.options)
        fixed = list(dict.fromkeys(name for name, _ in wanted.pairs if name in _FIXED))
        if request.file == UTAB or request.fstype not in NFS_TYPES or not fixed or "remount" not in wanted:
            continue
        yield Fault(
            f"{request.file}:{request.line}",
            f"remount cannot change {' and '.join(fixed)} of {request.point}: the kernel takes a new "
            "nconnect without a word and keeps the old one, and refuses the others",
            observed="remount," + ",".join(fixed),
            expected="umount and mount",
            remedy=f"take remount out of {request.file}:{request.line}, umount {request.point} and mount it",
        )


def ineffective(facts: Facts) -> Iterator[Fault]:
    """Yield lines of nfsmount.conf that count for no mount, or make the mounts that they mean fail.

    A section that no mount can be in is told once, at its first line.
    """
    for problem in facts.snapshot.problems:
        if _is_ours(problem):
            yield _fault(
                problem.file, problem.line, problem.message, "see nfsmount.conf(5) for what is meant"
            )
    settings = facts.snapshot.settings
    sloppy = any(setting.name.lower() == "sloppy" for setting in settings)
    counting = set() if sloppy else set(effective(settings))
    told: set[tuple[str, str, str | None]] = set()
    for setting in settings:
        section = (setting.file, setting.section, setting.argument)
        unmatched = _unmatched(setting)
        why = unmatched or (_refused(setting) if setting in counting else None)
        if why is not None and section not in told:
            yield _fault(setting.file, setting.line, *why)
        if unmatched is not None:
            told.add(section)


def _is_ours(problem: ParseError) -> bool:
    return problem.file in {FILE, VENDOR_FILE} or problem.file.startswith((FILE + ".d/", VENDOR_FILE + ".d/"))


def _unmatched(setting: Setting) -> tuple[str, str] | None:
    """Return why no mount can be in a setting's section, and what to do; None where one can."""
    section, argument = setting.section, setting.argument
    if section not in _KNOWN:
        return (
            f"{setting.name} stands in [ {section} ], which mount.nfs does not look at",
            'use [ NFSMount_Global_Options ], [ Server "name" ] or [ MountPoint "/path" ]',
        )
    if section == GLOBAL and argument is not None:
        return (
            f'{setting.name} stands in a global section named "{argument}", which counts for no mount',
            "write [ NFSMount_Global_Options ]",
        )
    if section == "server" and ":" in (argument or ""):
        return (
            f'{setting.name} is for the server "{argument}": mount.nfs ends a name at its first colon',
            "use the server's name, or the section of the mount point",
        )
    return None


def _refused(setting: Setting) -> tuple[str, str] | None:
    """Return why the kernel refuses a setting, and what to do; None where it does not, or may not."""
    name, value = setting.name.lower(), setting.value
    if setting.section == _VARIABLES:
        return None
    if not _is_known(name):
        return (
            f"neither the kernel nor mount(8) knows {setting.name}: every mount that gets it is refused",
            f"take {setting.name} out",
        )
    most = _COUNTED.get(name)
    if most is None or value.startswith(("$", "0x")):
        return None
    if value.isascii() and value.isdigit() and 1 <= int(value[:9]) <= most:
        return None
    return (
        f"{setting.name}={value} is not from 1 to {most}: the kernel refuses every mount that gets it",
        f"set {setting.name} to a number from 1 to {most}",
    )


def _is_known(name: str) -> bool:
    """Return whether a name may become an option; the words of nfsmount.conf itself are no options."""
    plain = name.removeprefix("default")
    return name in ALIASES or plain.startswith("x-") or plain in COMMON or plain in NFS or plain in RARE_NFS


def _fault(file: str, line: int, message: str, remedy: str) -> Fault:
    return Fault(f"{file}:{line}", message, remedy=remedy)


_NFS5 = "https://man7.org/linux/man-pages/man5/nfs.5.html"
_NFSMOUNT5 = "https://man7.org/linux/man-pages/man5/nfsmount.conf.5.html"

RULES: tuple[Rule, ...] = (
    Rule("NFS213", "remount-cannot-change", Severity.INFO, remount, _NFS5),
    Rule("NFS214", "nfsmount-conf-ineffective", Severity.ERROR, ineffective, _NFSMOUNT5),
)
