"""Rules NFS308 to NFS311, NFS313, NFS315 and NFS318: the lines of files that ask for mounts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from ipaddress import IPv6Address

from nfstuned.core.mounts.options import (
    DROPPED_FLAVOURS,
    FREE,
    NO_VALUE,
    WITHOUT_NTLM,
    WITHOUT_OLD_SMB,
    contradictions,
    is_dated,
    newer_options,
    option_names,
    wanted,
    wanted_by_smb,
    wanted_though_sloppy,
)
from nfstuned.core.policy.decision import matcher
from nfstuned.core.policy.endpoint import as_address, plain, split_source
from nfstuned.core.rules.rule import (
    ERROR,
    HOST,
    INFO,
    KERNEL,
    NFS_UTILS,
    WARNING,
    Manual,
    names_azure_files,
    rule,
)
from nfstuned.model.change import RELOAD_UNITS, sudo, then_sudo
from nfstuned.model.facts import Facts, Fault, Need, Target
from nfstuned.model.kernel import ONLY_V3, KernelRelease, Options, decimal, nfs_version, parse_options
from nfstuned.model.mounts import EFS_TYPE, GENERIC, SMB_TYPES, UTAB, Maker, Request, Unread, UnreadMap
from nfstuned.model.policy import Policy
from nfstuned.model.system import NfsUtils
from nfstuned.parse.fields import MASK, has_placeholder, holds_secret, quoted

NFS_MANUAL = "nfs(5)"
_BACKGROUND = ("nfs", "nfs4")
"""The types for which systemd reads bg as nofail."""
_KNOWN_NETWORK = (*_BACKGROUND, *SMB_TYPES)
"""The types that systemd takes for a network's without _netdev (fstype_is_network)."""
_OF_NETWORK = ("_netdev", "nofail")
_EARLY = ("/", "/usr")
"""The mount points of the initrd, for which nofail means nothing."""
_VERSION = re.compile("v[234]|vers|nfsvers")
"""nfs_version_opttbl: an option counts where it begins with one of its names."""
_ONE_VERSION_SINCE = (2, 5, 3)
_TRANSPORTS = ("udp", "tcp", "rdma", "proto")
_ROOT_OVER_NFS = "/dev/nfs"


@rule("NFS308", "fstab-not-network-aware", WARNING, source=Manual.MOUNTING)
def network_unaware(facts: Facts) -> Iterator[Fault]:
    """Yield lines of fstab that hold up the boot, or that systemd takes for a local file system."""
    for target, request in _requests(facts.targets, efs=True):
        options = parse_options(request.options)
        if not _is_automatic(request) or request.at_first_use or request.point in _EARLY:
            continue
        named = request.fstype if request.named is None else request.named or "auto"
        if named not in _KNOWN_NETWORK and "_netdev" not in options:
            why = (
                f"systemd does not know that {named} needs a network: without _netdev it is mounted "
                "among the local file systems, before there is one"
            )
        elif _waited_for(target, named, options):
            why = "without nofail the boot waits for the server, and remote-fs.target fails without it"
        else:
            continue
        place = f"{request.file}:{request.line}"
        yield Fault(
            place,
            why,
            observed=",".join(name for name in _OF_NETWORK if name in options) or "neither",
            expected=",".join(_OF_NETWORK),
            remedy=f"add {','.join(name for name in _OF_NETWORK if name not in options)} to the options in "
            f"{place}{then_sudo(RELOAD_UNITS, image=not facts.running)}",
        )


def _waited_for(target: Target, named: str, options: Options) -> bool:
    """Whether the boot waits for a line without its author's intention.

    The author of a line with _netdev alone thought of the network and wants the boot to wait; only Azure
    Files has a vendor who asks for nofail as well. systemd reads bg as nofail where the line names a type of
    NFS that it knows.
    """
    background = named in _BACKGROUND and options.last_of("bg", "fg") == "bg"
    if "nofail" in options or background:
        return False
    return "_netdev" not in options or target.is_azure_files


@rule("NFS309", "foreign-options", ERROR, source="fs/nfs/fs_context.c, nfs(5), mount.cifs(8)")
def foreign_options(facts: Facts) -> Iterator[Fault | Need]:
    """Yield lines with options or values that the kernel or mount(8) refuses for their type of file system.

    The automounter mounts sloppily (`mount -s`), as does the option `sloppy`: the kernel passes over options
    that it cannot read.
    """
    shown = frozenset(name for target in facts.nfs if target.live for name, _ in target.live.options.pairs)
    for _, request in _requests(facts.targets):
        if facts.snapshot.kernel is None and _depends_on_kernel(request):
            yield from facts.lacks(KERNEL)
        refused = _Refused(*_wrong(request, facts))
        if request.fstype not in SMB_TYPES:
            options = parse_options(request.options)
            versions = _versions(options, facts.system.nfs_utils)
            if versions and NFS_UTILS not in facts.has:
                yield NFS_UTILS
                versions = ()
            asked = nfs_version(request.fstype, options)
            stale: tuple[str, ...] = ()
            if asked is not None and asked[0] == 4:  # noqa: PLR2004 - nfs_do_mount_v4
                stale = tuple(dict.fromkeys(name for name, _ in options.pairs if name in ONLY_V3))
            newer = _newer(request, options, facts.snapshot.kernel, shown)
            refused = replace(refused, versions=versions, stale=stale, newer=newer)
        if any((refused.strange, refused.misused, refused.versions, refused.stale, refused.newer)):
            yield _refusal(request, refused)


def _depends_on_kernel(request: Request) -> bool:
    """Whether some kernels refuse an option of a line, and others take it."""
    options = parse_options(request.options)
    if request.fstype not in SMB_TYPES:
        return is_dated(options) and not _is_sloppy(request, options)
    renamed = option_names().renamed_smb
    return any(
        name in renamed or (name == "sec" and value in DROPPED_FLAVOURS) for name, value in options.pairs
    )


def _newer(
    request: Request, options: Options, kernel: KernelRelease | None, shown: Container[str]
) -> tuple[tuple[str, str], ...]:
    """Return the options that are newer than the kernel, with the first that takes each.

    `shown` are the options of live mounts: the kernel has them, whatever its version is.
    """
    if kernel is None or _is_sloppy(request, options):
        return ()
    return tuple(pair for pair in newer_options(options, kernel).items() if pair[0] not in shown)


def _is_sloppy(request: Request, options: Options) -> bool:
    return request.maker is Maker.AUTOFS or "sloppy" in options


def is_refused_line(request: Request, facts: Facts) -> bool:
    """Whether an option of a line prevents its mount."""
    return any(_wrong(request, facts))


def _wrong(request: Request, facts: Facts) -> tuple[tuple[str, ...], tuple[_Misused, ...]]:
    """Return the unknown options, and the options with refused values."""
    options, kernel = parse_options(request.options), facts.snapshot.kernel
    sloppy = _is_sloppy(request, options)
    strange = () if sloppy else tuple(dict.fromkeys(_strange(options, request.fstype, kernel)))
    misused = [*_misused(options, request, facts.policy, sloppy=sloppy)]
    if request.fstype in SMB_TYPES and kernel is not None and kernel.version >= WITHOUT_NTLM:
        wanted_flavour = "a login that Linux 5.15 and later still have, such as ntlmssp or krb5"
        misused += [
            _Misused(name, value, wanted_flavour)
            for name, value in options.pairs
            if name == "sec" and value in DROPPED_FLAVOURS
        ]
    return strange, tuple(dict.fromkeys(misused))


def _versions(options: Options, utils: NfsUtils | None) -> tuple[str, ...]:
    """Return the options that name a version where there are several; () where an old mount.nfs takes them.

    It refuses them since nfs-utils 2.5.3, even equal versions and with `sloppy` (nfs_nfs_version in
    utils/mount/network.c).
    """
    if utils is not None and utils.version is not None and utils.version < _ONE_VERSION_SINCE:
        return ()
    pairs = [pair for pair in options.pairs if _VERSION.match(pair[0])]
    texts = tuple(name if value is None else f"{name}={value}" for name, value in pairs)
    return texts if len(texts) > 1 else ()


@dataclass(frozen=True, slots=True)
class _Refused:
    """The options of a line for which the kernel or mount(8) refuses the mount."""

    strange: tuple[str, ...]
    """Unknown names, and names of another file system."""
    misused: tuple[_Misused, ...]
    versions: tuple[str, ...] = ()
    """Several options that name a version."""
    stale: tuple[str, ...] = ()
    """Options of version 3 in a mount of version 4."""
    newer: tuple[tuple[str, str], ...] = ()
    """Options that came with a later kernel, and that kernel."""


def _refusal(request: Request, refused: _Refused) -> Fault:
    strange, misused, versions, stale = refused.strange, refused.misused, refused.versions, refused.stale
    newer = dict(refused.newer)
    place = f"{request.file}:{request.line}"
    smb = request.fstype in SMB_TYPES
    known = option_names()
    own, other = (known.smb, known.nfs) if smb else (known.nfs | known.rare_nfs, known.smb)
    renamed = [name for name in strange if smb and name in known.renamed_smb]
    foreign = [name for name in strange if name.lower() in other - own and name not in renamed]
    unknown = [name for name in strange if name not in {*foreign, *renamed}]
    why = [f"only {'NFS' if smb else 'SMB'} knows {_listed(foreign)}"] if foreign else []
    why += [f"Linux 5.11 and later have no {_listed(renamed)} of SMB"] if renamed else []
    blank = " (the blank is part of the name)" if any(name != name.strip() for name in unknown) else ""
    why += [f"neither the kernel nor mount(8) knows {_listed(unknown)}{blank}"] if unknown else []
    why += [
        f"{option.name} takes {option.wanted}" + (f", not {option.shown}" if option.shown else "")
        for option in misused
    ]
    why += [f"mount.nfs takes one option that names a version, not {_listed(versions)}"] if versions else []
    why += [f"version 4 of NFS has no {_listed(stale)}"] if stale else []
    later = [f"{quoted(name)} (Linux {since})" for name, since in newer.items()]
    why += [f"the kernel is older than {', '.join(later)}"] if newer else []
    out = (*strange, *stale)
    near = {name: close for name in unknown if (close := _near(name, own | known.common))}
    gone = [name for name in out if name not in {*renamed, *near}]
    steps = [f"spell {quoted(name)} as {close} in {place}" for name, close in near.items()]
    steps += [_removal(gone, request.options, place)] if gone else []
    steps += [f"write {known.renamed_smb[name]} instead of {name} in {place}" for name in renamed]
    steps += [f"keep one of {_listed(versions)} in {place}"] if versions else []
    steps += [f"write {option.name} with {option.wanted} in {place}" for option in misused]
    steps += [f"take {_listed(newer)} out of the options in {place}, or boot a later kernel"] if newer else []
    return Fault(
        place,
        f"{', and '.join(why)}: a mount of type {request.fstype} is refused as a whole for it",
        observed=",".join((*out, *(option.text for option in misused), *versions, *newer)).strip(),
        expected=f"options of {'mount.cifs(8)' if smb else NFS_MANUAL}",
        remedy=", and ".join(steps),
    )


def _removal(gone: list[str], options: str, place: str) -> str:
    """Return the remedy for unknown options: numbers instead of the field, quotes, or names."""
    if options.isdecimal():
        return f"write the missing options, such as defaults, before the numbers in {place}"
    if all(name.startswith(('"', "'")) or name.endswith("'") for name in gone):
        return f"take the quotes out of the options in {place}"
    return f"take {_listed(gone)} out of the options in {place}"


def _near(name: str, known: Iterable[str]) -> str:
    """Return the option that a misspelt name means; "" where it lacks only a `=`, or negates that option."""
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.8)
    return next((one for one in close if not name.startswith(one) and f"no{one}" != name), "")


def _listed(options: Iterable[str]) -> str:
    return ", ".join(map(quoted, options))


def _strange(options: Options, fstype: str, kernel: KernelRelease | None) -> Iterator[str]:
    smb = fstype in SMB_TYPES
    table = option_names()
    known = table.common | (table.smb if smb else table.nfs | table.rare_nfs)
    if smb and (kernel is None or kernel.version < WITHOUT_OLD_SMB):
        known |= table.renamed_smb.keys()
    if fstype == "aznfs":
        known |= table.aznfs
    in_secret = False  # mount(8) splits at a comma within a password: the rest then looks like options
    for name, value in options.pairs:
        if not name.startswith(FREE) and name not in known:
            yield MASK if in_secret else name
            in_secret = in_secret or holds_secret(f"{name}={value}")
        else:
            in_secret = holds_secret(f"{name}={value}")


@dataclass(frozen=True, slots=True)
class _Misused:
    """An option with a value that the kernel refuses, and the values that it takes."""

    name: str
    value: str | None
    wanted: str

    @property
    def text(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"

    @property
    def shown(self) -> str:
        """The value for a message; "" where the option has no value, or should have none."""
        return "" if self.value is None or self.wanted == NO_VALUE else quoted(self.value)


def _misused(options: Options, request: Request, policy: Policy, *, sloppy: bool) -> Iterator[_Misused]:
    judge = wanted_by_smb if request.fstype in SMB_TYPES else wanted_though_sloppy if sloppy else wanted
    named = nfs_version(request.fstype, options)
    of_kernel = matcher(policy).providers.by_options(options) == GENERIC
    more_connections = not of_kernel or any(name in options for name in option_names().multipath)
    for name, value in options.pairs:
        # mount.nfs takes the minor version of vers=4.1 and drops minorversion's.
        if name == "minorversion" and named not in {None, (4, decimal(value))}:
            continue
        # Vendors' own clients take more connections than the kernel's.
        if name == "nconnect" and more_connections:
            continue
        # The values that an automounter makes of `&` and of quotes are not known here.
        unknown = value and ('"' in value or (request.wildcard and "&" in value) or has_placeholder(value))
        takes = "" if unknown else judge(name, value)
        if takes:
            yield _Misused(name, value, takes)


@rule("NFS318", "options-contradict", WARNING, source="fs/nfs/fs_context.c, mount(8)")
def contradicting_options(facts: Facts) -> Iterator[Fault]:
    """Yield lines with an option that a later one of the same line undoes.

    An entry of the automounter may replace its map's options on purpose.
    """
    for _, request in _requests(facts.targets):
        undone = () if request.maker is Maker.AUTOFS else contradictions(parse_options(request.options))
        if undone:
            place = f"{request.file}:{request.line}"
            pairs = [f"{quoted(later)} undoes {quoted(earlier)}" for earlier, later in undone]
            yield Fault(
                place,
                f"of options that contradict each other the last counts: {', '.join(pairs)}",
                observed=",".join(option for pair in undone for option in pair),
                expected="one of each",
                remedy=f"take {_listed(earlier for earlier, _ in undone)} out of the options in {place}, or "
                "the later option, where that is wrong",
            )


@rule("NFS311", "source-refused", ERROR, source=Manual.MOUNTING)
def refused_source(facts: Facts) -> Iterator[Fault]:
    """Yield lines with a source that their type or protocol cannot mount, or that Azure Files refuses."""
    for target, request in _requests(facts.targets):
        if target.live is not None:
            continue
        refusal = _mismatch(request) or _other_family(request, target.wanted) or _not_a_share(facts, request)
        if refusal is not None:
            why, expected, remedy = refusal
            yield Fault(
                f"{request.file}:{request.line}",
                f"the source {quoted(request.source)} {why}",
                observed=request.source,
                expected=expected,
                remedy=f"{remedy} in {request.file}:{request.line}",
            )


@rule("NFS315", "unit-misnamed", ERROR, needs=(HOST,), source="systemd.mount(5)")
def misnamed_unit(facts: Facts) -> Iterator[Fault]:
    """Yield mount and automount units that systemd refuses: their name does not match their mount point."""
    for refused in facts.snapshot.misnamed:
        request = refused.request
        folder, _, own = request.file.rpartition("/")
        noun = "a mount" if own.endswith(".mount") else "an automount"
        remedy = (
            f"write Where={refused.partner} in {request.file}:{request.line}"
            if refused.partner
            else sudo("mv", request.file, f"{folder}/{refused.name}", folder=facts.folder)
            + ", then change other files that name the unit, such as an .automount unit of a .mount unit, "
            "and the links to it in folders such as multi-user.target.wants"
        )
        yield Fault(
            request.file,
            f"systemd refuses the unit {quoted(own)}: {noun} at {quoted(request.point)} is {refused.name}",
            observed=own,
            expected=refused.name,
            remedy=remedy + then_sudo(RELOAD_UNITS, image=facts.image),
        )


def _mismatch(request: Request) -> tuple[str, str, str] | None:
    """Return why the type of a line cannot mount its source, the form that it can mount, and a remedy.

    mount.cifs wants //HOST/SHARE (parse_unc in mount.cifs.c), mount.nfs HOST:/PATH, or an nfs:// URL
    (nfs_parse_devname in utils/mount/parse_dev.c). automount(8) makes its maps' sources complete. /dev/nfs is
    the root that the kernel or the initrd has mounted.
    """
    source, fstype = request.source, request.fstype
    if source == _ROOT_OVER_NFS or (has_placeholder(source) and not re.search(r"//|\\\\|:/", source)):
        return None
    of_smb = source.startswith(("//", "\\\\"))
    if fstype in SMB_TYPES:
        if of_smb and any(source[2:].strip("/\\").partition(mark)[2] for mark in "/\\"):
            return None
        form, other = "//HOST/SHARE", "nfs for an export of NFS"
        names = "with the server's name for HOST and its share's for SHARE"
    elif source.startswith(":") and request.maker is not Maker.AUTOFS:
        address = parse_options(request.options).get("addr")
        why = "has no server before the colon: mount.nfs resolves the empty name, and drops addr= unread"
        named = "" if address else ", with the server's name for HOST,"
        right = f"{address or 'HOST'}{source}"
        return why, right, f"write {right}{named} as the source"
    elif (server := source.partition(":/")[0]) and ":" in server and as_address(server) is not None:
        path = source.removeprefix(server + ":")
        why = "has an IPv6 address without brackets: mount.nfs takes its part before a colon for a name"
        return why, f"[{server}]:{path}", "write the address in brackets"
    elif of_smb or (":" not in source and request.maker is not Maker.AUTOFS):
        form, other = "HOST:/PATH", "cifs for a share of SMB"
        names = "with the server's name for HOST and its export for PATH"
    else:
        return None
    return (
        f"is not one of type {fstype}: mount(8) refuses it",
        form,
        f"write {form}, {names}, or the type {other},",
    )


def _other_family(request: Request, wanted: Options) -> tuple[str, str, str] | None:
    """Return why mount.nfs does not resolve an address, the option that it takes, and a remedy.

    The last protocol decides the family of addresses, and a name alone means IPv4 (nfs_nfs_proto_family in
    utils/mount/network.c). automount(8) makes its own sources.
    """
    address = as_address(split_source(request.source)[0])
    six = isinstance(address, IPv6Address)
    # An IPv4 address in IPv6 form is resolved for both.
    if (
        request.fstype in SMB_TYPES
        or request.maker is Maker.AUTOFS
        or address is None
        or (not six and request.source.startswith("["))
    ):
        return None
    asked = next((pair for pair in reversed(wanted.pairs) if pair[0] in _TRANSPORTS), None)
    name, value = asked or ("", None)
    plain_name = (value or "" if name == "proto" else name).removesuffix("6")
    if plain_name not in _TRANSPORTS or (value or "").endswith("6") == six:
        return None
    text = name if value is None else f"{name}={value}"
    right = f"proto={plain_name}{'6' if six else ''}"
    own = asked in parse_options(request.options).pairs
    why = f"has an IPv{6 if six else 4} address, and {text} takes the other kind only: mount.nfs refuses it"
    place = f"instead of {text} in" if own else "into"
    return why, right, f"write {right} {place} the options"


def _not_a_share(facts: Facts, request: Request) -> tuple[str, str, str] | None:
    """Return why Azure Files refuses the path of a line, the path that it takes, and a remedy."""
    host, path = split_source(request.source)
    if (
        request.fstype in SMB_TYPES
        or not names_azure_files(facts, host)
        or "&" in request.source
        or has_placeholder(request.source)
    ):
        return None
    account = plain(host).partition(".")[0].removesuffix("-secondary")
    first, _, share = path.strip("/").partition("/")
    if first.lower() == account and share:
        return None
    named = first if not share and first.lower() not in {"", account} else "SHARE"
    why = "names no share of the account: Azure Files exports each as /ACCOUNT/SHARE, and denies all else"
    hint = ", with the share's name for SHARE," if named == "SHARE" else ""
    return why, f"/{account}/{named}", f"write {host}:/{account}/{named}{hint}"


@rule(
    "NFS313",
    "mount-point-twice",
    WARNING,
    source="https://www.freedesktop.org/software/systemd/man/latest/systemd-fstab-generator.html",
)
def point_twice(facts: Facts) -> Iterator[Fault]:
    """Yield lines of an fstab for a mount point of an earlier line, and entries of a map for an earlier key.

    noauto leaves the choice to people.
    """
    first: dict[tuple[str, str], Request] = {}
    for request in facts.snapshot.requests:
        if not _is_automatic(request) or request.file == UTAB:
            continue
        place = request.file, posixpath.normpath(request.point)
        known = first.setdefault(place, request)
        if known is not request:
            yield Fault(
                f"{request.file}:{request.line}",
                f"{request.point} has a line already ({known.file}:{known.line}): systemd mounts the first "
                "and passes this one over, and mount -a puts one over the other",
                observed=request.source,
                expected="one line a mount point",
                remedy=f"take {known.file}:{known.line} or {request.file}:{request.line} out"
                f"{then_sudo(RELOAD_UNITS, image=not facts.running)}",
            )
    for entry in facts.snapshot.maps:
        if entry.why is Unread.TWICE:
            origin = f"{entry.file}:{entry.line}"
            yield Fault(
                origin,
                f"the key {quoted(entry.name)} has an entry already ({entry.local}): automount(8) takes "
                "the first, and this one never counts",
                observed=entry.name,
                expected="one entry a key",
                remedy=f"take {entry.local} or {origin} out",
            )


def _is_automatic(request: Request) -> bool:
    """Whether a line of an fstab, or of a proposal, is mounted without being asked for."""
    automatic = parse_options(request.options).last_of("auto", "noauto") != "noauto"
    return request.maker is Maker.MOUNT and automatic


@rule("NFS310", "autofs-map", INFO, needs=(HOST,), source="autofs(5)")
def unexpanded_maps(facts: Facts) -> Iterator[Fault]:
    """Yield the automounter's entries for any key, and its maps that are not files."""
    # Not by line, as in _requests: the mount of a key in use has the same line without the wildcard.
    wildcards: dict[tuple[str, int, str], Request] = {}
    for request in facts.snapshot.requests:
        if request.wildcard:
            wildcards.setdefault((request.file, request.line, request.point), request)
    for request in wildcards.values():
        yield Fault(
            f"{request.file}:{request.line}",
            f"this entry mounts {quoted(request.source)} for any key: its options were checked; the mounts "
            "of the keys cannot be known before somebody uses them",
            observed=request.point,
        )
    for item in facts.snapshot.maps:
        if item.why is Unread.TWICE:
            continue
        yield Fault(f"{item.file}:{item.line}", _unread(item), observed=f"{item.kind} {item.name}".lstrip())


def _unread(item: UnreadMap) -> str:
    """Return the reason why a map was not read, and the consequence."""
    name = quoted(item.name)
    map_ = f"the map {name} for {item.point}" if item.point else f"the master map {name}"
    if item.why is Unread.SOURCE:
        line = "(automount in /etc/nsswitch.conf)"
        if item.local:
            return (
                f"{map_} is asked of {item.kind} first {line}: entries from there were not checked, nor was "
                f"{item.local}, which counts only for keys that are missing there"
            )
        return f"{map_} is also asked of {item.kind} {line}: entries from there were not checked"
    why = {
        Unread.KEY: f"{map_} is another for each key",
        Unread.FORMAT: f"{map_} is written for amd",
        Unread.PLACE: f"{map_} lies below a mount point, where a dead server would hold up its reader",
    }.get(item.why, f"the entries of {map_} are in no file")
    return f"{why}: none of its mounts was checked"


def _requests(targets: Iterable[Target], *, efs: bool = False) -> Iterator[tuple[Target, Request]]:
    """Yield each line that asks for mounts once, with `efs` also the lines with options of mount.efs."""
    seen: set[tuple[str, int]] = set()
    for target in targets:
        request = target.request
        if request is None or (request.fstype == EFS_TYPE and not efs):
            continue
        if (request.file, request.line) not in seen:
            seen.add((request.file, request.line))
            yield target, request
