"""Rules NFS213 and NFS214: lines of fstab and nfsmount.conf that cannot do what they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from nfstuned.core.mounts.options import NO_VALUE, names, wanted, wanted_though_sloppy
from nfstuned.core.mounts.requests import GLOBAL, as_option, effective, is_version
from nfstuned.core.rules import sources
from nfstuned.core.rules.rule import ERROR, INFO, rule
from nfstuned.model.facts import NFS_TYPES, Facts
from nfstuned.model.finding import Fault
from nfstuned.model.kernel import parse_options
from nfstuned.model.mounts import UTAB
from nfstuned.model.requests import Setting
from nfstuned.model.shell import quote
from nfstuned.parse.etc.nfsmount import FILE, VENDOR_FILE
from nfstuned.parse.fields import clean_path

_FIXED = ("nconnect", "rsize", "wsize")
_DEFAULT, _DEFAULTS = "default", ("vers", "proto")
"""mount.nfs takes what begins with the word out, and reads two of them (default_value in configfile.c)."""
_VARIABLES = "environment"
_NAMED = {"server": "Server", "mountpoint": "MountPoint"}
_KNOWN = (*_NAMED, _VARIABLES, GLOBAL)


@rule("NFS213", "remount-cannot-change", INFO, source=sources.NFS)
def remount(facts: Facts) -> Iterator[Fault]:
    """Yield lines of fstab and of units that mean to change by remount what a mount keeps for its life."""
    for request in facts.snapshot.requests:
        wanted = parse_options(request.options)
        fixed = list(dict.fromkeys(name for name, _ in wanted.pairs if name in _FIXED or is_version(name)))
        if request.file == UTAB or request.fstype not in NFS_TYPES or not fixed or "remount" not in wanted:
            continue
        yield Fault(
            f"{request.file}:{request.line}",
            f"remount cannot change {' and '.join(fixed)} of {request.point}: the kernel takes a new "
            "nconnect without a word and keeps the old one, and refuses the others",
            observed="remount," + ",".join(fixed),
            expected="umount and mount",
            remedy=f"take remount out of {request.file}:{request.line}, umount {quote(request.point)} and "
            "mount it",
        )


@rule(
    "NFS214",
    "nfsmount-conf-ineffective",
    ERROR,
    source="https://man7.org/linux/man-pages/man5/nfsmount.conf.5.html",
)
def ineffective(facts: Facts) -> Iterator[Fault]:
    """Yield lines of nfsmount.conf that count for no mount, or make the mounts that they mean fail.

    A section that no mount can be in is told once, at its first line.
    """
    places = (FILE + ".d/", VENDOR_FILE + ".d/")
    for problem in facts.snapshot.problems:
        if problem.file in {FILE, VENDOR_FILE} or problem.file.startswith(places):
            yield _fault(
                problem.file, problem.line, problem.message, "see nfsmount.conf(5) for what is meant"
            )
    settings = facts.snapshot.settings
    sloppy = any(as_option(setting.name, setting.value) == "sloppy" for setting in settings)
    counting = set(effective(settings))
    reported: set[tuple[str, str, str | None]] = set()
    for setting in settings:
        section = (setting.file, setting.section, setting.argument)
        unmatched = _unmatched(setting)
        why = unmatched or (_refused(setting, sloppy=sloppy) if setting in counting else None)
        if why is not None and section not in reported:
            yield _fault(setting.file, setting.line, *why)
        if unmatched is not None:
            reported.add(section)
    yield from _overtaken(facts)


def _overtaken(facts: Facts) -> Iterator[Fault]:
    """Yield options that an older mount.nfs drops for the sake of another section's; see NfsUtils."""
    utils = facts.system.nfs_utils
    if utils is None or not utils.mixes_sections:
        return
    settings = [replace(setting, alone=False) for setting in facts.snapshot.settings]
    elsewhere = set(effective(settings))
    last = {(setting.section, setting.name.lower()): setting for setting in settings}
    for setting in settings:
        winner = last[setting.section, setting.name.lower()]
        if setting.section in _NAMED and setting.argument and setting in elsewhere and setting != winner:
            yield _fault(
                setting.file,
                setting.line,
                f"{setting.name} for {setting.argument} counts for no mount: {utils.name} has one "
                f"{setting.name} for all [ {_NAMED[setting.section]} ] sections, that of "
                f"{winner.file}:{winner.line}",
                "put it into the options of the mounts, or update nfs-utils to 2.8.3 or later",
            )


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
    if section == "mountpoint" and argument and argument.startswith("/") and argument != clean_path(argument):
        clean = clean_path(argument)
        why = f'{setting.name} is for the mount point "{argument}", which mount(8) hands on as {clean}'
        return f"{why}: mount.nfs compares the texts", f'write [ MountPoint "{clean}" ]'
    return None


def _refused(setting: Setting, *, sloppy: bool) -> tuple[str, str] | None:
    """Return why the kernel refuses a setting, and what to do; None where it does not, or may not."""
    # What a variable stands for hangs on the section of each mount.
    if setting.section == _VARIABLES or setting.value.startswith("$"):
        return None
    name, separator, text = as_option(setting.name, setting.value).partition("=")
    shown = f"{setting.name}={setting.value}"
    if name.startswith(_DEFAULT):
        return _no_default(setting, name.removeprefix(_DEFAULT), text)
    known = name.startswith("x-") or name in names().common | names().nfs | names().rare_nfs
    if not sloppy and name and not known:
        what = f"{name}, which {shown} becomes" if name == f"no{setting.name.lower()}" else setting.name
        return (
            f"neither the kernel nor mount(8) knows {what}: every mount that gets it is refused",
            f"take {setting.name} out",
        )
    judge = wanted_though_sloppy if sloppy else wanted
    # As mount.nfs hands it on; case matters to both, whatever nfsmount.conf(5) writes (Proto=Tcp).
    takes = judge(name, text if separator else None)
    if not takes:
        return None
    if separator and not judge(name, setting.value):
        why = (
            "mount.nfs takes what ends with k, m or g for a number, and every mount that gets this is refused"
        )
        remedy = f"put {name}={setting.value} into the options of the mounts instead"
        return f"{shown} becomes {name}={text}: {why}", remedy
    takes = "True or False" if takes == NO_VALUE else takes
    return (
        f"{shown}: {name} takes {takes}, and every mount that gets this is refused",
        f"set {setting.name} to {takes}",
    )


def _no_default(setting: Setting, name: str, value: str) -> tuple[str, str] | None:
    """Return why a default of mount.nfs's own negotiation counts for nothing."""
    if name not in _DEFAULTS:
        if name == "s" or name.startswith(_DEFAULTS):
            return None
        return f"{setting.name} sets nothing: mount.nfs has a default of version and protocol only", (
            f"use {setting.name[len(_DEFAULT) :]}, or take {setting.name} out"
        )
    takes = wanted(name, value)
    if not takes:
        return None
    return f"{setting.name}={setting.value} sets nothing: it takes {takes}", f"set {setting.name} to {takes}"


def _fault(file: str, line: int, message: str, remedy: str) -> Fault:
    return Fault(f"{file}:{line}", message, remedy=remedy)
