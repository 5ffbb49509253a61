"""Rules NFS7xx: an image's first boot: its service, kernels, modules, configuration and read-aheads."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nfstuned.core.mounts.options import has_nconnect, read_ahead_is_small
from nfstuned.core.rules.nfs1_read_ahead import kbs_at_mount
from nfstuned.core.rules.nfs1_udev import broken_rules, lost_kbs, overtaken_rules
from nfstuned.core.rules.rivals import fits_policy, is_aznfs, wanted_kb
from nfstuned.core.rules.rule import (
    ERROR,
    IMAGE,
    INFO,
    SERVICE,
    WARNING,
    Manual,
    bake,
    enable,
    name_others,
    rule,
    source_of,
)
from nfstuned.core.udev.writers import in_force, is_nfsrahead, reaches_all, set_by_administrator
from nfstuned.errors import ParseError
from nfstuned.model.facts import Facts, Fault, Target
from nfstuned.model.kernel import is_v3
from nfstuned.model.policy import KERNEL_KB, Profile
from nfstuned.parse.proc.machine import CHARSET, parse_release

_NFS_HELPERS = frozenset({"mount.nfs", "mount.nfs4", "mount.aznfs"})
_CONFIG = "/etc/nfstuned"
_PLACE = re.compile(r"(/[^:]+(?::[0-9]+)?): (.*)", re.DOTALL)
_SMALL_READ_AHEAD: dict[bool | None, str] = {
    True: "a read-ahead of 128 KiB",
    False: "a read-ahead of 15 times rsize",
}
_HAS_NCONNECT: dict[bool | None, str] = {
    True: "as many connections as nconnect asks for",
    False: "one connection, as it has no nconnect",
}
_PACKAGES = {
    "debian": "install linux-image-{release} again",
    "ubuntu": "install linux-modules-{release} or linux-modules-extra-{release}: apt-file search {module}.ko "
    "names the package",
    "rhel": "install kernel-modules-{release}",
    "fedora": "install kernel-modules-{release}",
    "sles": "install kernel-default instead of kernel-default-base",
}
"""Which package has the modules, by os-release's ID or ID_LIKE."""
_UBUNTU_NFS = "install linux-modules-{release} again"
_OF_NFS = frozenset({"nfs", "nfsv3", "nfsv4"})
_OWN_MODULE = r"utf8|iso8859-\d+|cp\d+"
"""Character sets with a module of their name; others are aliases."""
_WITH_NFS = ("-generic", "-azure", "-aws")
"""Ubuntu's kernels with fs/nfs/* in linux-modules (debian.*/control.d/*.inclusion-list); others differ."""


@rule("NFS701", "daemon-not-enabled", WARNING, needs=(IMAGE,), source=Manual.SYSTEMCTL)
def not_enabled(facts: Facts) -> Iterator[Fault]:
    """Yield the service where it is installed, nothing will start it, and no udev rule does its work."""
    daemon = facts.system.daemon
    # Where no daemon is wanted, a udev rule raises the read-ahead of every NFS mount.
    written = [writer.kb for writer in in_force(facts) if reaches_all(facts.udev, writer)]
    ruled = bool(written) and (written[-1] or 0) > KERNEL_KB
    if daemon.installed and not daemon.enabled and not ruled:
        yield Fault(
            SERVICE,
            "nfstuned is installed and nothing starts it at boot: every mount keeps the kernel's read-ahead",
            observed="masked" if daemon.masked else "disabled",
            expected="enabled",
            remedy=enable(facts, daemon, SERVICE),
        )


@rule("NFS702", "module-missing", ERROR, needs=(IMAGE,), source="fs/nfs/Makefile")
def module_missing(facts: Facts) -> Iterator[Fault]:
    """Yield kernels without a module that the image's mounts need, and modprobe.d's lines against it."""
    asked, system = _needed_by_mounts(facts), facts.snapshot.distribution
    needed = asked
    if "nfs" not in asked and _uses_nfs(facts):
        needed = {**dict.fromkeys(("nfs", "nfsv4"), "every NFS mount"), **asked}
    names = (system.id, *system.like) if system else ()
    everywhere = "install the package with all modules of this kernel"
    distribution = next((name for name in names if name in _PACKAGES), "")
    for kernel in facts.system.kernels:
        # A tree without any character set is not a whole one.
        whole = any(name.startswith(CHARSET) for name in kernel.modules)
        wanted = [name for name in needed if whole or not name.startswith(CHARSET)]
        lacking = [name for name in wanted if name not in kernel.modules]
        if lacking:
            package = _PACKAGES.get(distribution, everywhere)
            if (
                distribution == "ubuntu"
                and kernel.release.endswith(_WITH_NFS)
                and _OF_NFS.issuperset(lacking)
            ):
                package = _UBUNTU_NFS
            if lacking[0].startswith(CHARSET):
                charset = lacking[0].removeprefix(CHARSET)
                package = f"remove iocharset={charset} from the options, or {package}"
            yield Fault(
                f"kernel {kernel.release}",
                f"this kernel has no {' and no '.join(lacking)}, neither as a module nor built in: "
                f"{needed[lacking[0]]} fails when this kernel boots",
                observed=", ".join(name for name in wanted if name in kernel.modules) or "none of them",
                expected=", ".join(wanted),
                remedy=package.format(release=kernel.release, module=lacking[0]),
            )
    # An image in which modules were disabled on purpose has no mounts that need them.
    for refused in facts.system.refused_modules:
        if refused.name in asked:
            place = f"{refused.file}:{refused.line}"
            yield Fault(
                place,
                f"modprobe runs a program that does nothing instead of {refused.name}: "
                f"{asked[refused.name]} fails, unless the kernel has it built in",
                observed=f"install {refused.name}",
                expected="no such line",
                remedy=f"remove {place}, and leave the module to the kernel",
            )


@rule("NFS703", "kernel-config", INFO, needs=(IMAGE,), source="fs/nfs/client.c", default=False)
def kernel_defaults(facts: Facts) -> Iterator[Fault]:
    """Yield the newest kernel's defaults, in an image that can mount NFS."""
    kernels = facts.system.kernels
    if not kernels or "nfs" not in kernels[-1].modules or not _uses_nfs(facts):
        return
    try:
        release = parse_release(kernels[-1].release)
    except ParseError:
        return
    read_ahead = _SMALL_READ_AHEAD.get(read_ahead_is_small(release), "")
    nconnect = _HAS_NCONNECT.get(has_nconnect(release), "")
    observed = "; ".join(filter(None, (read_ahead, nconnect)))
    if observed:
        yield Fault(
            f"kernel {release.text}",
            f"the newest kernel of the image gives an NFS mount by default: {observed}",
            observed=observed,
        )


@rule("NFS704", "config-invalid", ERROR, needs=(IMAGE,), source="man:nfstuned.toml(5)")
def config_invalid(facts: Facts) -> Iterator[Fault]:
    """Yield each mistake in nfstuned's configuration of the image."""
    for problem in facts.system.config_problems:
        place = _PLACE.fullmatch(problem)
        subject, mistake = place.groups() if place else (_CONFIG, problem)
        yield Fault(
            subject,
            f"with this configuration the daemon tunes nothing: {mistake}",
            remedy=f"edit {subject.partition(':')[0]} in the image, and check the image again",
        )


@rule("NFS705", "read-ahead-unset", WARNING, needs=(IMAGE,), source=Manual.PERFORMANCE)
def read_ahead_unset(facts: Facts) -> Iterator[Fault]:
    """Yield the mounts that will keep the kernel's 128 KiB, once for each profile.

    NFS104 reports another program's value, NFS105, NFS107 and NFS112 a rule that should write the right one,
    NFS701 the service that is not enabled. Newer releases of AZNFS write a value: where it is not installed
    yet, its release is not known.
    """
    set_kb, system = kbs_at_mount(facts), facts.system
    if set_kb is None or system.daemon.installed or system.scripts:
        return
    if any(not rule.works for _, rule in broken_rules(facts)):
        return
    meant = [*lost_kbs(facts), *(early.kb for early, _, _ in overtaken_rules(facts) if early.kb)]
    unset: dict[Profile, list[Target]] = {}
    for target in facts.nfs:
        profile, kb = target.profile, wanted_kb(target)
        if profile.read_ahead is None or target.subject in set_kb:
            continue
        if (kb is not None and kb <= KERNEL_KB) or any(fits_policy(facts, target, each) for each in meant):
            continue
        if not is_aznfs(target) or "mount.aznfs" in system.helpers:
            unset.setdefault(profile, []).append(target)
    idle = None if any(map(is_nfsrahead, in_force(facts))) else set_by_administrator(facts.writers)
    unread = f", and {idle.file}:{idle.line} is for nfsrahead, which no udev rule runs" if idle else ""
    for profile, (chief, *others) in unset.items():
        kb, wish = wanted_kb(chief), profile.read_ahead
        wanted = f"{wish.times_rsize} times rsize" if kb is None and wish else f"{kb} KiB"
        yield Fault(
            chief.subject,
            "nothing in this image gives the mount its read-ahead: it starts with the kernel's "
            f"{KERNEL_KB} KiB, and the profile {profile.name} recommends {wanted}{unread}; sequential "
            f"reads then wait for the server again and again{name_others(others)}",
            observed=f"{KERNEL_KB} KiB",
            expected=wanted,
            remedy=f"install nfstuned in the image, then {bake(facts)}; --daemonless writes a udev rule "
            "instead of enabling the service",
            source=source_of(profile, "read_ahead_kb"),
        )


def _uses_nfs(facts: Facts) -> bool:
    return bool(facts.nfs) or bool(facts.system.helpers & _NFS_HELPERS)


def _needed_by_mounts(facts: Facts) -> dict[str, str]:
    """Return the modules that the image's mounts need, each with a mount that fails without it."""
    needed: dict[str, str] = {}
    for target in facts.nfs:
        for name in ("nfs", "nfsv3" if is_v3(target.fstype, target.wanted) else "nfsv4"):
            needed.setdefault(name, f"the mount of {target.subject}")
    for target in facts.smb_mounts:
        needed.setdefault("cifs", f"the mount of {target.subject}")
        charset = target.wanted.get("iocharset") or ""
        if re.fullmatch(_OWN_MODULE, charset):
            needed.setdefault(CHARSET + charset, f"the mount of {target.subject}, for its iocharset,")
    return needed
