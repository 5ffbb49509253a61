"""Rules NFS309, NFS318 and NFS323: options that are refused, that undo each other, or that do nothing."""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import chain
from typing import NamedTuple

from nfstuned.core.mounts.options import (
    A_VALUE,
    DROPPED_FLAVOURS,
    FREE,
    HAS_CONTEXT,
    NO_VALUE,
    WITHOUT_NTLM,
    WITHOUT_OLD_SMB,
    contradictions,
    is_dated,
    newer_options,
    option_names,
    refused_by_efs,
    unjudged_options,
    unsigned,
    wanted,
    wanted_by_smb,
    wanted_though_sloppy,
)
from nfstuned.core.policy.decision import matcher
from nfstuned.core.policy.endpoint import as_address
from nfstuned.core.rules.nfs3_entries import asking_lines
from nfstuned.core.rules.rule import ADVICE, ERROR, INFO, KERNEL, NFS_UTILS, WARNING, known_provider, rule
from nfstuned.model.facts import Facts, Fault, Fix, Need
from nfstuned.model.kernel import (
    ONLY_V3,
    KernelRelease,
    Options,
    decimal,
    nfs_version,
    option_text,
    parse_options,
    whole,
)
from nfstuned.model.mounts import EFS_TYPE, GENERIC, SMB_TYPES, Maker, Request
from nfstuned.model.policy import Policy
from nfstuned.parse.fields import MASK, RELOAD_UNITS, has_placeholder, mask_secrets, quoted, then_sudo

_OTHER_MODES = ("noperm", "multiuser", "cifsacl", "modefromsid", "unix", "posix", "linux", "vers=1.0")
"""Options with which the server's own modes count, or none."""
_MODE = re.compile(r"[0-7]{1,4}", re.ASCII)
_NO_OCTAL = r"(?!384|4[23][0-9]|448|504|511)[1-9][0-7]{2,3}"
"""A mode without the 0 of an octal number, which fs_param_is_u32 of fs/fs_parser.c wants; but for the usual
modes as decimal numbers."""
_VERSION = re.compile("v[234]|vers|nfsvers")
"""nfs_version_opttbl: an option counts where it begins with one of its names."""
_QUOTES = ('"', "'")
_VERSION_2 = re.compile("v2|(?:nfs)?vers=2")
_CLEAR_SMB = ("1.0", "2.0", "2.1")
"""Dialects without encryption, refused with `seal` (cifs_get_tcon in fs/smb/client/connect.c)."""
_OLDEST_SMB = ("1.0", "2.0")
"""Dialects that the type smb3 refuses (cifs_parse_smb_version in fs/smb/client/fs_context.c)."""
_ONE_VERSION_SINCE, _NO_VERSION_2_SINCE = (2, 5, 3), (2, 6, 1)
_MOUNTPORT_SINCE = (2, 5, 2)
_DROPS_DEFAULT, _DROPPED = (2, 5, 3), "default(?!s$)"
"""conf_get_mntopts() of nfs-utils takes names with this beginning out before the kernel sees them."""
_WITH_WHOLE_NAMES = (4, 9, 0)
_AN_ADDRESS = "an IP address (Docker resolves a name with the type nfs only)"
"""getMountOptions in volume/local/local_unix.go of moby, and the kernel's rpc_pton."""
_SHORT = {"creds": "credentials", "usr": "username", "nobootwait": "nofail"}
_PREFIXES = ("user", "pass", "cred", "dom", "workg")
"""mount.cifs before 6.7 of November 2016 takes any name with such a beginning."""
_TORN = "mount(8) ends a password at its comma, and an unknown word behind it may be its rest"
_MINOR_AFTER_COMMA = re.compile(r"\b((?:nfs)?vers=4),([0-2])(?![^,])")
_EFS_INSTEAD = (
    "for Amazon EFS write the type efs (amazon-efs-utils), with fs-ID:/ as the source, in {place}; for "
    "another server remove {names}"
)
_OF_FSTAB = ("auto", "noauto", "bg")
_BG_IN_UNIT = (
    "the unit fails with bg if the server does not answer at once: mount.nfs goes on in the background, "
    "and systemd finds no mount"
)
_SLOPPY = "the mount is sloppy, and the kernel ignores {}"
_SLOPPY_LAST = (
    "neither the kernel nor mount(8) knows {}: from Linux 5.11 on the client of SMB may refuse the mount, "
    "because mount.cifs writes sloppy behind the other options"
)
"""smb3_fs_context_parse_param reads them in their order; older kernels looked at the end for sloppy."""
_AUTOMOUNT = "x-systemd.automount"
_BY_OTHERS = ("x-systemd.wanted-by", "x-systemd.required-by")
_FSTAB_MAKERS = (Maker.MOUNT, Maker.AUTOMOUNT)
_NO_DEVICE = "systemd ignores {} if the source is no device, and then has no such limit"
_MOUNT_EFS = "https://github.com/aws/efs-utils/blob/master/src/efs_utils_common/mount_options.py"


@rule("NFS309", "foreign-options", ERROR, source="fs/nfs/fs_context.c, nfs(5), mount.cifs(8)")
def foreign_options(facts: Facts) -> Iterator[Fault | Need | str]:
    """Yield lines with options or values that the kernel or mount(8) refuses for their type of file system.

    The automounter mounts sloppily (`mount -s`), as does the option `sloppy`: the kernel passes over options
    that it cannot read.
    """
    knows_mountport = (_utils_version(facts) or (0,)) >= _MOUNTPORT_SINCE
    unjudged = dict[str, str]()
    shown = frozenset(name for target in facts.nfs if target.live for name, _ in target.live.options.pairs)
    for request in _requests(facts, efs=True):
        if request.fstype == EFS_TYPE:
            yield from _refused_by_helper(request)
            continue
        if facts.snapshot.kernel is None and _depends_on_kernel(request):
            yield from facts.lacks(KERNEL)
        refused = _Refused(*_wrong(request, facts))
        if request.fstype not in SMB_TYPES:
            options = parse_options(request.options)
            driver, versions = _version_texts(request.added), _versions(request, facts)
            if versions and not driver and NFS_UTILS not in facts.has:
                yield NFS_UTILS
                versions = ()
            version, _ = nfs_version(request.fstype, options) or (0, None)
            # nfs_do_mount_v4, which knows mountport since nfs-utils 2.5.2, and nfs_fs_context_validate, which
            # passes over minorversion=0.
            foreign = {4: ONLY_V3, 3: ("minorversion",)}.get(version, ())
            pairs = (
                (name, value)
                for name, value in options.pairs
                if (name, value) != ("minorversion", "0") and (knows_mountport or name != "mountport")
            )
            misplaced = tuple(dict.fromkeys(name for name, _ in pairs if name in foreign))
            kernel = None if _is_sloppy(request, options) else facts.snapshot.kernel
            later = newer_options(options, kernel) if kernel else {}
            unjudged |= unjudged_options(options, kernel, later) if kernel else {}
            # The kernel has the options of live mounts, whatever its version is.
            newer = tuple(pair for pair in later.items() if pair[0].partition("=")[0] not in shown)
            misused = tuple(
                each for each in refused.misused if not {each.name, each.text} & dict(newer).keys()
            )
            refused = _Refused(refused.strange, misused, versions, driver, version, misplaced, newer)
        if any((refused.strange, refused.misused, refused.versions, refused.misplaced, refused.newer)):
            yield _refusal(request, refused)
        elif request.fstype in SMB_TYPES:
            yield from _strange_modes(request)
        elif not facts.snapshot.vast and not _is_sloppy(request, parse_options(request.options)):
            yield from _for_mount_8(request)
            yield from _for_vendors_client(request, shown)
    unjudged = {name: since for name, since in unjudged.items() if name.partition("=")[0] not in shown}
    if unjudged and facts.snapshot.kernel:
        yield (
            f"{_dated(unjudged)}: not judged, because {facts.snapshot.kernel.text} may have options of "
            "later kernels"
        )


def _dated(options: Mapping[str, str]) -> str:
    return ", ".join(f"{quoted(name)} (Linux {since})" for name, since in options.items())


def _requests(facts: Facts, *, efs: bool = False) -> Iterator[Request]:
    """Yield each line that asks for mounts, and the units that systemd refuses for their names alone."""
    yield from (request for _, request in asking_lines(facts.targets, efs=efs))
    for unit in facts.snapshot.misnamed:
        if not unit.right_point and (efs or unit.request.fstype != EFS_TYPE):
            yield unit.request


def _refused_by_helper(request: Request) -> Iterator[Fault]:
    """Yield a fault for the options for which mount.efs refuses the mount."""
    lacking, rivals = refused_by_efs(parse_options(request.options))
    if not lacking and not rivals:
        return
    place = f"{request.file}:{request.line}"
    why = [f"{name} only with {needed}" for name, needed in lacking.items()]
    why += [f"{one} or {other}, but not both" for one, other in rivals]
    added = ",".join(dict.fromkeys(lacking.values()))
    steps = [f"add {added} to the options in {place}"] if added else []
    steps += [f"keep one of {_listed(pair)} in {place}" for pair in rivals]
    yield Fault(
        place,
        f"mount.efs takes {', and '.join(why)}: it refuses the mount",
        observed=",".join((*lacking, *(name for pair in rivals for name in pair))),
        expected=added or "one of them",
        remedy=", and ".join(steps),
        source=_MOUNT_EFS,
    )


def _for_vendors_client(request: Request, shown: frozenset[str]) -> Iterator[Fault]:
    """Yield a line with options of vendors' own clients, unless live mounts show them."""
    names = [name for name in dict(parse_options(request.options).pairs) if name in option_names().multipath]
    place = request.place_of(*names)
    if names and shown.isdisjoint(names):
        yield Fault(
            place,
            f"only vendors' own NFS clients, such as VAST's, know {_listed(names)}: the kernel's client "
            "refuses the mount, and takes at most nconnect=16",
            observed=",".join(names),
            expected="options of nfs(5)",
            remedy=f"install the vendor's client, or remove {_listed(names)} from the options in {place}",
            severity=ADVICE,
        )


_OF_MOUNT_8 = frozenset({"_netdev", "auto", "comment", "noauto", "nofail", "user", "users"})


def _for_mount_8(request: Request) -> Iterator[Fault]:
    """Yield a volume of Docker with options that mount(8) keeps from the kernel, which refuses them."""
    names = [
        name
        for name in dict(parse_options(request.options).pairs)
        if name in _OF_MOUNT_8 or name.startswith(("x-", "X-"))
    ]
    if names and request.maker is Maker.DOCKER:
        yield Fault(
            request.place_of(*names),
            f"only mount(8) knows {_listed(names)}, and Docker calls mount(2) without it: the kernel "
            "refuses the mount",
            observed=",".join(names),
            expected="options of the kernel",
            remedy=_removal(names, request.options, request.place_of(*names)),
        )


def _strange_modes(request: Request) -> Iterator[Fault]:
    """Yield lines of SMB with decimal modes, or masks for modes, where no other modes count."""
    options, known = parse_options(request.options), option_names()
    names = {*known.smb_modes, *known.smb_modes.values()}
    if any(option_text(*pair) in _OTHER_MODES for pair in options.pairs):
        return
    modes = [pair for pair in options.pairs if pair[0] in names and _MODE.fullmatch(pair[1] or "")]
    place = request.place_of(*names)
    decimal = [(name, text) for name, text in modes if text and re.fullmatch(_NO_OCTAL, text)]
    if decimal:
        read = _listed(f"{name}={int(text):04o}" for name, text in decimal)
        texts = [option_text(*pair) for pair in decimal]
        yield Fault(
            place,
            f"the kernel reads {_listed(texts)} as decimal, which is {read}: an octal number begins with 0",
            observed=",".join(texts),
            expected="octal numbers",
            remedy=", and ".join(f"write {name}=0{text} instead of {name}={text}" for name, text in decimal)
            + f" in {place}",
            source="mount.cifs(8)",
            severity=WARNING,
        )
        return
    masks = [pair for pair in modes if not int(pair[1] or "", 8) & stat.S_IRUSR]
    texts = [option_text(*pair) for pair in masks]
    if not masks:
        return
    yield Fault(
        place,
        f"mount.cifs reads {_listed(texts)} as a mode, not as a mask: the owner of the files may not read "
        "them",
        observed=",".join(texts),
        expected="modes with the owner's rights",
        remedy=", and ".join(_as_modes(*pair, pair[0], place) for pair in masks),
        source="mount.cifs(8)",
        severity=WARNING,
    )


def _depends_on_kernel(request: Request) -> bool:
    """Whether some kernels refuse an option of a line, and others take it."""
    options = parse_options(request.options)
    if request.fstype not in SMB_TYPES:
        return is_dated(options) and not _is_sloppy(request, options)
    renamed = option_names().renamed_smb
    return any(
        name in renamed or (name == "sec" and value in DROPPED_FLAVOURS) for name, value in options.pairs
    )


def _is_sloppy(request: Request, options: Options) -> bool:
    return request.maker is Maker.AUTOFS or "sloppy" in options


def is_refused_line(request: Request, facts: Facts) -> bool:
    """Whether an unknown name or a refused value prevents the mount of a line."""
    return any(_wrong(request, facts))


def _wrong(request: Request, facts: Facts) -> tuple[tuple[str, ...], tuple[_Misused, ...]]:
    """Return the unknown options, and the options with refused values."""
    options, kernel = parse_options(request.options), facts.snapshot.kernel
    sloppy = _is_sloppy(request, options)
    strange = () if sloppy else tuple(dict.fromkeys(_strange(options, request.fstype, kernel)))
    if request.fstype not in SMB_TYPES and (_utils_version(facts) or _DROPS_DEFAULT) >= _DROPS_DEFAULT:
        strange = tuple(name for name in strange if not re.match(_DROPPED, name))
    misused = [*_misused(options, request, facts.policy, sloppy=sloppy)]
    if kernel is not None and kernel.version < HAS_CONTEXT and request.fstype not in SMB_TYPES:
        texts = [each for each in misused if each.name == "sec" or each.wanted == A_VALUE]
        misused = [each for each in misused if each.value != "" or each not in texts]
    if request.fstype in SMB_TYPES and kernel is not None and kernel.version >= WITHOUT_NTLM:
        wanted_flavour = "ntlmssp (the default) or krb5 since Linux 5.15"
        misused += [
            _Misused(name, value, wanted_flavour)
            for name, value in options.pairs
            if name == "sec" and value in DROPPED_FLAVOURS
        ]
    if request.fstype in SMB_TYPES:
        refused: dict[str, str] = {}
        if request.fstype == "smb3":
            refused |= dict.fromkeys(_OLDEST_SMB, "2.1 or later (with the type smb3)")
        if "seal" in options:
            refused |= dict.fromkeys(_CLEAR_SMB, "3.0 or later (with seal)")
        misused += [
            _Misused(name, value, refused[value])
            for name, value in options.pairs
            if name == "vers" and value in refused
        ]
    return strange, tuple(dict.fromkeys(misused))


def _utils_version(facts: Facts) -> tuple[int, ...] | None:
    return facts.system.nfs_utils.version if facts.system.nfs_utils else None


def _versions(request: Request, facts: Facts) -> tuple[str, ...]:
    """Return several options that name a version, or one that names version 2; () where mount.nfs takes them.

    It refuses several since nfs-utils 2.5.3, even equal versions and with `sloppy` (nfs_nfs_version in
    utils/mount/network.c), and version 2 since 2.6.1 (nfsmount_start in stropts.c). A driver that names a
    version itself mounts with the nfs-utils of its own container, which refuse each further option.
    """
    if _version_texts(request.added):
        return _version_texts(request.written)
    release, texts = _utils_version(facts), _version_texts(request.options)
    if len(texts) > 1:
        return texts if release is None or release >= _ONE_VERSION_SINCE else ()
    # Where nfs-utils was not looked at, the caller asks for its version.
    refused = release >= _NO_VERSION_2_SINCE if release else NFS_UTILS not in facts.has
    return texts if refused and _VERSION_2.fullmatch("".join(texts)) else ()


def _version_texts(options: str) -> tuple[str, ...]:
    """Return the options that name a version to mount.nfs."""
    return tuple(option_text(*pair) for pair in parse_options(options).pairs if _VERSION.match(pair[0]))


class _Refused(NamedTuple):
    """The options of a line for which the kernel or mount(8) refuses the mount."""

    strange: tuple[str, ...]
    """Unknown names, and names of another file system."""
    misused: tuple[_Misused, ...]
    versions: tuple[str, ...] = ()
    """Several options that name a version, or one that names version 2, or that a driver names as well."""
    driver: tuple[str, ...] = ()
    """The option for the version that a driver writes itself, next to `versions`."""
    version: int = 0
    misplaced: tuple[str, ...] = ()
    """Options that `version` does not have."""
    newer: tuple[tuple[str, str], ...] = ()
    """Options that came with a later kernel, and that kernel."""

    def steps_for_values(self, options: Options, place: str) -> list[str]:
        """Return the remedies for refused values, and for options that name a version.

        An option that is there once more with a right value is not needed.
        """
        wrong = [option.text for option in self.misused]
        right = [pair for pair in options.pairs if option_text(*pair) not in wrong]
        steps, misused, versions = [], self.misused, self.versions
        if self.driver:
            misused = tuple(each for each in misused if each.text not in versions)
            steps += [f"remove {_listed(versions)} from the options in {place}"] if versions else []
        elif len(versions) > 1:
            usable = [text for text in versions if text not in wrong]
            choice = usable or versions
            steps.append(f"keep {'one of ' if len(choice) > 1 else 'only '}{_listed(choice)} in {place}")
            if usable:
                misused = tuple(each for each in misused if each.text not in versions)
        elif versions:
            steps.append(f"write vers=3 instead of {versions[0]} in {place}")
        # nfsvers is another name of vers.
        names = {name.removeprefix("nfs") for name, _ in right}
        spare = [each for each in misused if each.name.removeprefix("nfs") in names]
        steps += (
            [f"remove {_listed(each.text for each in spare)} from the options in {place}"] if spare else []
        )
        steps += [f"write {each.name} with {each.wanted} in {place}" for each in misused if each not in spare]
        return steps


def _refusal(request: Request, refused: _Refused) -> Fault:
    strange, misused, versions = refused.strange, refused.misused, refused.versions
    misplaced, newer = refused.misplaced, dict(refused.newer)
    names = (*strange, *(option.name for option in misused), *(text.partition("=")[0] for text in versions))
    names = (*names, *misplaced, *(text.partition("=")[0] for text in newer))
    place = request.place_of(*names) if request.field else request.place
    smb, options = request.fstype in SMB_TYPES, parse_options(request.options)
    known = option_names()
    own, other = (known.smb, known.nfs) if smb else (known.nfs | known.rare_nfs, known.smb)
    renamed = [name for name in strange if smb and name in known.renamed_smb]
    foreign = [name for name in strange if name.lower() in other - own and name not in renamed]
    of_efs = [name for name in strange if not smb and name in known.efs]
    unknown = [name for name in strange if name not in {*foreign, *renamed, *of_efs, MASK}]
    minor = _MINOR_AFTER_COMMA.search(request.options)
    why = [f"only {'NFS' if smb else 'SMB'} knows {_listed(foreign)}"] if foreign else []
    why += [f"Linux 5.11 and later have no {_listed(renamed)} of SMB"] if renamed else []
    why += [f"only the type efs knows {_listed(of_efs)}"] if of_efs else []
    blank = " (the blank is part of the name)" if any(name != name.strip() for name in unknown) else ""
    why += [f"neither the kernel nor mount(8) knows {_listed(unknown)}{blank}"] if unknown else []
    torn = MASK in strange
    why += [_TORN] if torn else []
    why += [
        f"{option.name} takes {option.wanted}" + (f", not {option.shown}" if option.shown else "")
        for option in misused
    ]
    if versions and refused.driver:
        twice = f"the driver adds {_listed(refused.driver)} to {_listed(versions)}"
        why.append(f"mount.nfs accepts one option for the version, and {twice}")
    elif len(versions) > 1:
        why.append(f"mount.nfs accepts one option for the version, not {_listed(versions)}")
    elif versions:
        why.append("mount.nfs has no version 2 since nfs-utils 2.6.1")
    why += [f"version {refused.version} of NFS has no {_listed(misplaced)}"] if misplaced else []
    why += [f"the kernel is older than {_dated(newer)}"] if newer else []
    unwanted = (*strange, *misplaced)
    near = {
        name: close
        for name in unknown
        if not {*name} & {*_QUOTES} and (close := _near(name, known.meant(smb=smb) | known.systemd))
    }
    lone_minor = [minor[2]] if minor and minor[2] in unknown else []
    to_remove = [name for name in unwanted if name not in {*renamed, *near, *of_efs, *lone_minor, MASK}]
    masks = [name for name, close in near.items() if close.endswith("mask")]
    steps = [
        f"spell {quoted(name)} as {known.smb_modes.get(close, close)} in "
        + (request.place_of(name) if request.field else place)
        for name, close in near.items()
        if name not in masks
    ]
    in_file = f"move the password from {place} into a credentials file, which may have commas"
    steps += (
        [in_file if smb else f"remove the rest of the password from the options in {place}"] if torn else []
    )
    steps += [_as_modes(*pair, near[pair[0]], place) for pair in options.pairs if pair[0] in masks]
    steps += [f"write {minor[1]}.{minor[2]} instead of {minor[0]} in {place}"] if minor and lone_minor else []
    tls = ", or write xprtsec=tls (Linux 6.5), where it has TLS" if "tls" in of_efs else ""
    steps += [_EFS_INSTEAD.format(place=place, names=_listed(of_efs)) + tls] if of_efs else []
    there = request.place_of(*to_remove) if request.field else place
    steps += [_removal(to_remove, request.options, there)] if to_remove else []
    steps += [f"write {known.renamed_smb[name]} instead of {name} in {place}" for name in renamed]
    steps += refused.steps_for_values(options, place)
    steps += [f"remove {_listed(newer)} from the options in {place}, or boot a later kernel"] if newer else []
    return Fault(
        request.place_of(*names),
        f"{', and '.join(why)}: a mount of type {request.fstype} is refused",
        observed=",".join((*unwanted, *(option.text for option in misused), *versions, *newer)).strip(),
        expected=f"options of {'mount.cifs(8)' if smb else 'nfs(5)'}",
        remedy=", and ".join(steps),
        fixes=tuple(
            Fix(request.place_of(name), name, close)
            for name, close in near.items()
            if close not in known.smb_modes and name == name.strip()
        ),
    )


def _as_modes(name: str, value: str | None, mask: str, place: str) -> str:
    """Return how to write the modes of SMB that a mask of another file system stands for.

    Where the mask leaves the owner without the right to read, a mode was meant. mount.cifs defaults to 0755.
    """
    number = int(value, 8) if value and _MODE.fullmatch(value) else 0o022
    mode = 0o777 & ~number
    mode = mode if mode & stat.S_IRUSR else number
    modes = ",".join(
        f"{mode_name}={mode:04o}" for mode_name in option_names().smb_modes.get(mask, mask).split()
    )
    return f"write the mode {modes} instead of the mask {quoted(option_text(name, value))} in {place}"


def _removal(names: list[str], options: str, place: str) -> str:
    """Return the remedy: options before fstab's numbers, options without quotes, or without these names."""
    if options.isdecimal():
        return f"write the missing options, such as defaults, before the numbers in {place}"
    if all(name.startswith(_QUOTES) or name.endswith(_QUOTES) for name in names):
        return f"write the options without quotes in {place}"
    return f"remove {_listed(names)} from the options in {place}"


def _near(name: str, known: Collection[str]) -> str:
    """Return the option that a misspelt name means; "" where it lacks only a `=`, or is the opposite."""
    if name in _SHORT:
        return _SHORT[name]
    visible = "".join(char for char in name if " " < char <= "~")
    if visible in known:
        return visible
    close = get_close_matches(name.lower(), known, n=1, cutoff=0.8)
    opposites = {f"no{name}", name.removeprefix("no")}
    return next((one for one in close if not name.startswith(one) and one not in opposites), "")


def _listed(options: Iterable[str]) -> str:
    return ", ".join(map(quoted, options))


def _without_secrets(options: Options) -> Options:
    """Return the options that hold no part of a secret, and others masked.

    mount(8) splits at a comma within a password, so that its rest looks like options, but not at a blank.
    """
    texts = (option_text(name, value and re.sub(r"\s", "_", value)) for name, value in options.pairs)
    return parse_options(mask_secrets(",".join(texts)))


def _strange(options: Options, fstype: str, kernel: KernelRelease | None) -> Iterator[str]:
    smb = fstype in SMB_TYPES
    table = option_names()
    known = table.common | (table.smb if smb else table.nfs | table.rare_nfs)
    early = smb and kernel is not None and kernel.version < _WITH_WHOLE_NAMES
    if smb and (kernel is None or kernel.version < WITHOUT_OLD_SMB):
        known |= table.renamed_smb.keys()
    if fstype == "aznfs":
        known |= table.aznfs
    clear = _without_secrets(options)
    for name, _ in options.pairs:
        if not name.startswith(FREE) and name not in known and not (early and name.startswith(_PREFIXES)):
            shown = mask_secrets(name)
            yield shown if shown in clear else MASK


class _Misused(NamedTuple):
    """An option with a value that the kernel refuses, and the values that it takes."""

    name: str
    value: str | None
    wanted: str

    @property
    def text(self) -> str:
        return option_text(self.name, self.value)

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
        if name == "addr" and request.maker is Maker.DOCKER and request.fstype == "nfs4":
            takes = _AN_ADDRESS if value and not unknown and as_address(value) is None else takes
        # The option sloppy makes the client of SMB pass over a text, but not over a number out of bounds.
        passed_over = (
            judge is wanted_by_smb and sloppy and takes.startswith("a number") and whole(value) is None
        )
        if takes and not (passed_over and "sloppy" in options):
            yield _Misused(name, value, takes)


@rule("NFS318", "options-contradict", WARNING, source="fs/nfs/fs_context.c, mount(8)")
def contradicting_options(facts: Facts) -> Iterator[Fault]:
    """Yield lines with an option that a later one of the same line undoes.

    An entry of the automounter may replace its map's options on purpose.
    """
    names = {each.request: (each.profile.base, each.endpoint.provider) for each in facts.targets}
    for request in _requests(facts):
        options = parse_options(request.written)
        undone = () if request.maker is Maker.AUTOFS else contradictions(options, request.fstype)
        clear = _without_secrets(options) if undone else options
        undone = tuple(pair for pair in undone if pair[0].partition("=")[0] in clear)
        if undone:
            place = request.place_of(*(earlier.partition("=")[0] for earlier, _ in undone))
            pairs = [f"{quoted(later)} undoes {quoted(earlier)}" for earlier, later in undone]
            provider = known_provider(facts, *names.get(request, ()))
            meant = {"noresvport"} if provider and provider.noresvport else set[str]()
            wrong = [later if earlier in meant else earlier for earlier, later in undone]
            certain = meant.issuperset(earlier for earlier, _ in undone)
            rest = "" if certain else ", or the later option, where that is wrong"
            yield Fault(
                place,
                f"of contradicting options the last counts: {', '.join(pairs)}",
                observed=",".join(option for pair in undone for option in pair),
                expected="one of each",
                remedy=f"remove {_listed(wrong)} from the options in {place}{rest}",
            )
        taken_back = unsigned(options) if request.fstype in SMB_TYPES else None
        if taken_back is not None:
            sign, flavour = map(quoted, taken_back)
            place = request.place_of(taken_back[0])
            there = request.place if request.inherited else place
            yield Fault(
                place,
                f"{flavour} takes back {sign} before it: each sec= switches signing off, but for flavours "
                "with an i at the end",
                observed=",".join(taken_back),
                expected=",".join(reversed(taken_back)),
                remedy=f"write {sign} behind {flavour} in the options in {there}",
            )


@rule("NFS323", "options-without-effect", ADVICE, source="nfs(5), systemd.mount(5)")
def idle_options(facts: Facts) -> Iterator[Fault]:
    """Yield lines with options that nobody reads: the kernel, mount(8) or systemd passes over them."""
    for request in _requests(facts, efs=True):
        if request.maker in _FSTAB_MAKERS and not request.file.endswith(".mount"):
            yield from _misspelt_for_systemd(request, then_sudo(RELOAD_UNITS, image=not facts.running))
        if request.fstype == EFS_TYPE:
            continue
        dropped, of_unit, others = _idle(request, facts.snapshot.kernel)
        kernel = facts.snapshot.kernel
        in_order = request.fstype in SMB_TYPES and (kernel is None or kernel.version >= WITHOUT_OLD_SMB)
        passes_over = _SLOPPY_LAST if in_order else _SLOPPY
        why = [passes_over.format(_listed(dropped))] if dropped else []
        why += [f"systemd reads {_listed(of_unit)} only in fstab"] if of_unit else []
        why += [_BG_IN_UNIT] if "bg" in of_unit else []
        why += [reason.format(_listed(names)) for reason, names in others.items() if names]
        if why:
            idle = (*dropped, *of_unit, *chain(*others.values()))
            place = request.place_of(*idle)
            there = request.place if request.inherited else place
            known = option_names()
            smb = request.fstype in SMB_TYPES
            near = [close for name in dropped if (close := _near(name, known.meant(smb=smb)))]
            near = [known.smb_modes.get(close, close).replace(" ", " and ") for close in near]
            limit = parse_options(request.options).get("x-systemd.device-timeout")
            near += [option_text("x-systemd.mount-timeout", limit)] if others[_NO_DEVICE] else []
            instead = f", or write {', '.join(near)}" if near else ""
            unit = ", and write an .automount unit" if _AUTOMOUNT in of_unit else ""
            yield Fault(
                place,
                ", and ".join(why),
                observed=",".join(idle),
                expected="options with an effect",
                remedy=f"remove {_listed(idle)} from the options in {there}{instead}{unit}",
                severity=None if dropped or of_unit else INFO,
            )


def _misspelt_for_systemd(request: Request, reload: str) -> Iterator[Fault]:
    """Yield the names of a line that are nearly systemd's."""
    options, place = parse_options(request.options), f"{request.file}:{request.line}"
    texts = [option_text(*pair) if pair[0] == "comment" else pair[0] for pair in options.pairs]
    meant = {text: name for text in texts if (name := option_names().meant_for_systemd(text))}
    if not meant:
        return
    lost = set(meant.values()).difference(texts, [_AUTOMOUNT] if request.at_first_use else ())
    why = f"systemd does not know {_listed(meant)}, and mount(8) ignores any x- option and comment"
    if _AUTOMOUNT in lost:
        idle = options.last_of("auto", "noauto") == "noauto" and not {*texts} & {*_BY_OTHERS}
        why += f": nothing mounts it at its first use{', and with noauto nothing at boot' if idle else ''}"
    # The source of a network mount is no device.
    right = {text: name.replace("device-timeout", "mount-timeout") for text, name in meant.items()}
    steps = [
        f"spell {quoted(text)} as {name} in {place}"
        if meant[text] in lost
        else f"remove {quoted(text)} from the options in {place}"
        for text, name in right.items()
    ]
    weighty = any(name.startswith((_AUTOMOUNT, "x-systemd.requires")) for name in lost)
    yield Fault(
        place,
        why,
        observed=",".join(meant),
        expected=",".join(dict.fromkeys(right.values())),
        remedy=", and ".join(steps) + reload,
        severity=WARNING if weighty else None if lost else INFO,
    )


def _idle(
    request: Request, kernel: KernelRelease | None
) -> tuple[list[str], list[str], dict[str, list[str]]]:
    """Return options that the kernel drops, options of fstab in a unit, and others by their reason."""
    options, known, smb = parse_options(request.options), option_names(), request.fstype in SMB_TYPES
    names, in_unit = list(dict.fromkeys(name for name, _ in options.pairs)), request.file.endswith(".mount")
    version, _ = (None if smb else nfs_version(request.fstype, options)) or (0, None)
    of_line = request.maker in _FSTAB_MAKERS and not in_unit
    sloppy = _is_sloppy(request, options)
    return (
        list(dict.fromkeys(_strange(options, request.fstype, kernel))) if sloppy else [],
        [name for name in names if in_unit and (name.startswith("x-systemd.") or name in _OF_FSTAB)],
        {
            "{} has no effect since Linux 2.6.25": [
                name for name in names if not smb and name in known.dead_nfs
            ],
            "{} has no effect with version 4": [
                name
                for name in names
                if version == 4 and name in known.dead_v4  # noqa: PLR2004 - NFS 4
            ],
            "mount.nfs drops {} since nfs-utils 2.5.3, and older releases refuse the mount": [
                name for name in names if not smb and not sloppy and re.match(_DROPPED, name)
            ],
            _NO_DEVICE: [name for name in names if of_line and name == "x-systemd.device-timeout"],
        },
    )
