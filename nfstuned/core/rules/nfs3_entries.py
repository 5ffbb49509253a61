"""Rules NFS308, NFS310, NFS311, NFS313, NFS315 and NFS320 to NFS322: lines and units that ask for mounts."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address

from nfstuned import data
from nfstuned.core.policy.endpoint import as_address, plain, split_source
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    INFO,
    WARNING,
    Manual,
    provider_by_name,
    rule,
    systemctl,
)
from nfstuned.model.facts import Facts, Fault, Fix, Target
from nfstuned.model.kernel import Options, nfs_version, option_text, parse_options
from nfstuned.model.mounts import (
    EARLY,
    EFS_TYPE,
    GRAPHICAL,
    GSSD,
    SMB_TYPES,
    UTAB,
    WAIT_ONLINE,
    Maker,
    Misnamed,
    Request,
    Unloaded,
    Unread,
    UnreadMap,
)
from nfstuned.parse.fields import (
    RELOAD_UNITS,
    clean_path,
    has_placeholder,
    nearest_point,
    quote,
    quoted,
    right_spelling,
    sudo,
    then_sudo,
    without_remark,
)

_BACKGROUND = ("nfs", "nfs4")
"""The types for which systemd reads bg as nofail."""
_KNOWN_NETWORK = (*_BACKGROUND, *SMB_TYPES)
"""The types that systemd takes for a network's without _netdev (fstype_is_network)."""
_NOFAIL = "nofail"
_OF_NETWORK = ("_netdev", _NOFAIL)
_TRANSPORTS = ("udp", "tcp", "rdma", "proto")
_ROOT_OVER_NFS = "/dev/nfs"
_ADMINISTRATORS = "/etc/systemd/system/"
_INIT = "/etc/init.d/"


@rule("NFS308", "fstab-not-network-aware", WARNING, source=Manual.MOUNTING)
def network_unaware(facts: Facts) -> Iterator[Fault]:
    """Yield lines of fstab that hold up the boot, or that systemd takes for a local file system."""
    lacking: tuple[str, ...]
    for target, request in asking_lines(facts.targets, efs=True):
        # Options in quotes are NFS309's: here they count as they are meant.
        text = request.options
        options = parse_options(text.strip("\"'") if text.startswith(("'", '"')) else text)
        if not _is_automatic(request) or request.at_first_use or request.point in EARLY:
            continue
        own = request.named is None or request.is_mistyped
        named = request.fstype if own else request.named or "auto"
        if named not in _KNOWN_NETWORK and "_netdev" not in options:
            severity, unless, lacking = None, "", _OF_NETWORK
            why = (
                f"systemd does not know that {named} needs a network: without _netdev it mounts it among "
                "the local file systems, before there is a network"
            )
        elif _waited_for(target, named, options):
            severity, unless = (
                (None, "") if target.is_azure_files else (ADVICE, ", unless the boot should wait")
            )
            lacking = (_NOFAIL,)
            why = "without nofail the boot waits for the server, and remote-fs.target fails without it"
            why += ": Microsoft's own lines for Azure Files have nofail" if target.is_azure_files else ""
        else:
            continue
        place = f"{request.file}:{request.line}"
        missing = [name for name in lacking if name not in options]
        plain = text and text == text.strip("\"'")
        yield Fault(
            place,
            why,
            observed=",".join(name for name in _OF_NETWORK if name in options)
            or ("neither" if lacking == _OF_NETWORK else f"no {_NOFAIL}"),
            expected=",".join(lacking),
            remedy=f"add {','.join(missing)} to the options in "
            f"{place}{unless}{then_sudo(RELOAD_UNITS, image=not facts.running)}",
            severity=severity,
            fixes=(Fix(place, text, ",".join((text, *missing))),) if plain and not unless else (),
        )
    yield from _taken_for_local(facts)


def _taken_for_local(facts: Facts) -> Iterator[Fault]:
    """Yield local file systems on a network's mount, for which the early boot waits."""
    for request, below, network in facts.snapshot.local:
        place = f"{request.file}:{request.line}"
        cycle = "with NetworkManager or ifupdown the order is a cycle, and systemd drops a part of it"
        away = f"the boot ends in emergency mode if the network or the server is missing, and {cycle}"
        if network:
            cycle = away = (
                f"{network} starts after the local file systems: the order is a cycle, and systemd drops a "
                "part of it, such as this mount"
            )
        if below.point == request.point:
            yield Fault(
                place,
                "systemd starts an automount with the local file systems, and this line puts it after the "
                f"network: {cycle}",
                observed="After=",
                expected="no order after the network",
                remedy=f"remove the network from After= in {place}: the mount unit waits for it by itself"
                + then_sudo(RELOAD_UNITS, image=not facts.running, mark=";"),
                severity=None if network else ADVICE,
            )
            continue
        yield Fault(
            place,
            "systemd treats this line as a local file system and mounts it before the network, but it lies "
            f"on {quoted(below.point)} ({below.file}:{below.line}): {away}",
            observed="no _netdev",
            expected="_netdev",
            remedy=f"add _netdev to the options in {place}{then_sudo(RELOAD_UNITS, image=not facts.running)}",
            severity=ADVICE if HOST in facts.has and not network else None,
        )


def _waited_for(target: Target, named: str, options: Options) -> bool:
    """Whether the boot waits for a mount, and the author of its line did not ask for that.

    The author of a line with _netdev alone thought of the network and wants the boot to wait; only Azure
    Files has a vendor who asks for nofail as well. systemd reads bg as nofail where the line names a type of
    NFS that it knows.
    """
    background = named in _BACKGROUND and options.last_of("bg", "fg") == "bg"
    # Another unit than remote-fs.target waits for it then.
    wanted = "x-systemd.wanted-by" in options or "x-systemd.required-by" in options
    if _NOFAIL in options or background or wanted:
        return False
    return "_netdev" not in options or target.is_azure_files


@rule("NFS311", "source-refused", ERROR, source=Manual.MOUNTING)
def refused_source(facts: Facts) -> Iterator[Fault]:
    """Yield lines with a source that their type or protocol cannot mount, or that Azure's storage refuses."""
    refused = (unit.request for unit in facts.snapshot.misnamed)
    units = ((None, request) for request in refused if request.file.endswith(".mount"))
    for target, request in (*asking_lines(facts.targets, efs=True), *units):
        if target and target.live is not None and not request.is_mistyped:
            continue
        refusal = _misspelt(facts, request)
        if refusal is None and request.fstype != EFS_TYPE:
            wanted = target.wanted if target else parse_options(request.options)
            refusal = _mismatch(request) or _other_family(request, wanted)
        refusal = refusal or _no_export(facts, request)
        if refusal is not None:
            why, expected, remedy = refusal
            if request.maker is Maker.KUBELET and expected.startswith("/"):
                remedy = f"write {expected}"
            of_type = request.is_mistyped and expected == request.fstype
            noun, text = ("type", request.named or "") if of_type else ("source", request.source)
            place = request.source_place
            yield Fault(
                place,
                f"the {noun} {quoted(text)} {why}",
                observed=text,
                expected=expected,
                remedy=f"{remedy} in {place}",
            )


def _named_right(refused: Misnamed) -> str:
    """Return the remedy for a unit's name before its deployment."""
    if not refused.unit:
        return f"rename the file to {refused.name}, also where others name the unit"
    quotes = ", in quotes, as a shell drops the backslash" if "\\" in refused.name else ""
    place = f"{refused.request.file}{quotes}"
    return f"give the unit the name {refused.name} in {place}, also where others name it"


@rule("NFS315", "unit-misnamed", ERROR, source="systemd.mount(5)")
def misnamed_unit(facts: Facts) -> Iterator[Fault]:
    """Yield mount and automount units that systemd refuses: their name does not match their mount point."""
    for refused in facts.snapshot.misnamed:
        request, file = refused.request, refused.unit or refused.request.file
        folder, _, own = file.rpartition("/")
        noun = "a mount" if own.endswith(".mount") else "an automount"
        remedy = (
            f"write Where={refused.right_point} in {request.file}:{request.line}"
            if refused.right_point
            else _named_right(refused)
            if HOST not in facts.has
            else f"{systemctl(facts)} disable {quote(own)}, where it is enabled; "
            + sudo("mv", file, f"{folder}/{refused.name}", folder=facts.folder)
            + f"; {systemctl(facts)} enable {quote(refused.name)}, where it was; change other files that "
            "name the unit, such as an .automount unit of a .mount unit"
        )
        yield Fault(
            request.place if refused.unit else request.file,
            f"systemd refuses the unit {quoted(own)}: {noun} at {quoted(request.point)} is {refused.name}",
            observed=own,
            expected=refused.name,
            remedy=remedy + (then_sudo(RELOAD_UNITS, image=facts.image) if HOST in facts.has else ""),
        )


@rule("NFS320", "unit-not-loaded", ERROR, needs=(HOST,), source="systemd.automount(5)")
def unloaded_unit(facts: Facts) -> Iterator[Fault]:
    """Yield enabled units that systemd does not start, because their mount unit is not there or masked."""
    points = {request.point for request in facts.snapshot.requests}
    for unit in facts.snapshot.unloaded:
        if unit.setting:
            yield _unmet(facts, unit)
            continue
        if unit.point in points and not unit.mask:  # cloud-init writes its line at boot
            continue
        folder, _, own = unit.file.rpartition("/")
        refused = not folder.endswith((".wants", ".requires"))
        why = f"masked by {unit.mask}" if unit.mask else "missing, as a file and as a line of fstab"
        effect = f"systemd refuses {quoted(own)}, and" if refused else "although it is enabled,"
        unmasked = f"{systemctl(facts)} unmask {quote(unit.name)}"
        written = f"install {unit.name}, or write a line of fstab for {quote(unit.point)}"
        if unit.near:
            written = f"move the section [Mount] from {unit.near}, where it has no effect, to {unit.name}"
        yield Fault(
            unit.file,
            f"the unit {quoted(unit.name)} is {why}: {effect} nothing is mounted at {quoted(unit.point)}",
            observed="masked" if unit.mask else "missing",
            expected=unit.name,
            remedy=(unmasked if unit.mask else written)
            + f"; or {systemctl(facts)} disable {quote(own)}{then_sudo(RELOAD_UNITS, image=facts.image)}",
            severity=None if refused else WARNING,
        )


def _unmet(facts: Facts, unit: Unloaded) -> Fault:
    """Return the fault of a mount: its unit or line names a unit that is not there or masked.

    Or its mount point lies behind a link.
    """
    if unit.setting == "Where":
        return Fault(
            unit.file,
            f"systemd does not mount at {quoted(unit.point)}: a part of the path is a link, which leads to "
            f"{quoted(unit.near)}",
            observed=unit.point,
            expected=unit.near,
            remedy=f"write a unit {unit.name} with Where={unit.near} instead of {unit.file} (and its "
            ".automount unit, if it has one), and enable it",
        )
    strict = "." in unit.name and not unit.setting.lower().endswith(("after", "wants"))
    why = f"masked by {unit.mask}" if unit.mask else "missing"
    effect = (
        f"systemd cannot start the mount, and nothing is mounted at {quoted(unit.point)}"
        if strict
        else "systemd ignores the name"
    )
    gone = unit.setting if unit.setting.startswith("x-") else unit.name
    remedy = f"name {unit.near or 'an existing unit'} instead in {unit.file}"
    if unit.mask:
        remedy = f"{systemctl(facts)} unmask {quote(unit.name)}"
    return Fault(
        unit.file,
        f"{unit.setting}= names the unit {quoted(unit.name)}, which is {why}: {effect}",
        observed="masked" if unit.mask else unit.name,
        expected=unit.near or "an existing unit",
        remedy=f"{remedy}; or remove {gone} from {unit.file}{then_sudo(RELOAD_UNITS, image=facts.image)}",
        severity=WARNING if strict else INFO,
    )


@rule("NFS325", "service-unordered", ADVICE, needs=(HOST,), source="systemd.unit(5)")
def early_service(facts: Facts) -> Iterator[Fault]:
    """Yield services with a path on a mount in a command, which do not wait for the mount."""
    for file, line, path, request in facts.snapshot.early:
        name = posixpath.basename(file)
        wanted = f"RequiresMountsFor={request.point}"
        yield Fault(
            f"{file}:{line}",
            f"a command of {quoted(name)} has the path {quoted(path)}, and nothing orders the service "
            f"after the mount of {request.file}:{request.line}: at boot it may run earlier, and miss the "
            "file",
            observed="no order",
            expected=wanted,
            remedy=f"write {wanted} below [Unit] in {file}{then_sudo(RELOAD_UNITS, image=facts.image)}",
        )


@rule("NFS321", "unit-not-started", WARNING, needs=(HOST,), source="systemd.unit(5)")
def unstarted_unit(facts: Facts) -> Iterator[Fault]:
    """Yield units of mounts, and units that mounts need, that nothing starts at boot."""
    for unit in facts.snapshot.unstarted:
        why = "is masked" if unit.masked else "is started by no link and no other unit"
        if unit.target:
            idle = "is not there" if unit.absent else "nothing starts"
            why = f"is wanted by {quoted(unit.target)} alone, which {idle}"
        lost = f"nothing is mounted at {quoted(unit.point)}" if unit.point else f"{unit.place} is not mounted"
        if unit.name == WAIT_ONLINE:
            why += ", and no other unit waits for the network"
            lost = f"mount.nfs gives up on {unit.place} if its server is unreachable"
        unmasked = f"{systemctl(facts)} unmask {unit.name} && " if unit.masked else ""
        by_hand = f"; or remove [Install] from {unit.file}, where people or scripts start it"
        by_hand = by_hand if unit.point and not unit.target else ""
        enable = f"{unmasked}{systemctl(facts)} enable {quote(unit.target or unit.name)}"
        if unit.name == GSSD:
            enable = f"{systemctl(facts)} unmask {unit.name}"
        elif unit.file.startswith(_INIT):
            why = "is in no runlevel of OpenRC"
            inside = f"chroot {quote(facts.folder)} " if facts.image else ""
            enable = f"sudo {inside}rc-update add {unit.name}"
        elif unit.absent or unit.target == GRAPHICAL:
            reenable = f"{systemctl(facts)} reenable {quote(unit.name)}"
            enable = f"write WantedBy=multi-user.target into [Install] of {unit.file}, then {reenable}"
        yield Fault(
            unit.file,
            f"{quoted(unit.name)} {why}: {lost} at boot",
            observed="masked" if unit.masked else "not enabled",
            expected="enabled",
            remedy=f"{enable}{by_hand}",
            severity=ADVICE if unit.name == WAIT_ONLINE else None,
        )


@rule("NFS322", "engine-storage", WARNING, source="https://github.com/moby/moby/pull/35483")
def engine_storage(facts: Facts) -> Iterator[Fault]:
    """Yield NFS mounts with a container engine's storage, which overlayfs refuses as its upper layer."""
    configured = facts.snapshot.storages
    usual: dict[str, str] = data.read_table("mount-options.toml")["overlays"]
    points = {clean_path(target.point) for target in facts.nfs}
    points |= {clean_path(local.request.point) for local in facts.snapshot.local}
    # An engine with another folder does not use its usual one, and nobody knows which are installed.
    folders = {path: (path, name) for path, name in usual.items() if name not in configured.values()}
    folders |= {nearest_point(path, points): (path, name) for path, name in configured.items()}
    for target in facts.nfs:
        point = clean_path(target.point)
        folder, engine = folders.get(point, ("", ""))
        folder = target.point if folder == point else folder
        if engine and not target.elsewhere:
            yield Fault(
                target.subject,
                f"{folder} is the storage of {engine}: overlayfs does not accept NFS as its upper layer, "
                "and containers do not start, unless their images are elsewhere or in another storage "
                "driver",
                observed=target.fstype,
                expected="a local file system, such as ext4 or XFS",
                remedy=f"keep {folder} on a local file system, and mount {quoted(target.source)} somewhere "
                "else, for the volumes of containers",
            )


def _misspelt(facts: Facts, request: Request) -> tuple[str, str, str] | None:
    """Return why nothing mounts a type or a URL, the right text, and a remedy."""
    source, fstype = request.source, request.fstype
    bare = without_remark(source)
    if request.maker in {Maker.UNIT, Maker.AUTOMOUNT} and bare != source:
        why = "has a comment at its end, which systemd reads as a part of the source"
        return why, bare, f"put the comment into a line of its own, and write What={bare}"
    if len(source) > 1 and source[0] == source[-1] and source[0] in "\"'":
        right = source[1:-1]
        return "stands in quotes, which become a part of the name", right, f"write {right} without quotes"
    if request.maker is Maker.MOUNT and "%20" in source and "://" not in source:
        right = source.replace("%20", r"\040")
        return "has %20, which means a blank only in URLs", right, f"write {right} as the source"
    if request.is_mistyped:
        named = (request.named or "").strip("\"',")
        right, why = right_spelling("types", named) or (fstype, "is unknown to mount(8)")
        known = fstype == "nfs4" or nfs_version(fstype, parse_options(request.options))
        option = "" if known else right.partition(" ")[2]
        return why, fstype, f"write the type {fstype}{f' and the option {option}' if option else ''}"
    found = right_spelling("smb-sources" if fstype in SMB_TYPES else "nfs-sources", source)
    if found is None:
        return None
    right, why = found
    refused = _no_export(facts, request._replace(source=right))
    return why, right, refused[2] if refused else f"write {right} as the source"


def _mismatch(request: Request) -> tuple[str, str, str] | None:
    """Return why the type of a line cannot mount its source, the form that it can mount, and a remedy.

    mount.cifs wants //HOST/SHARE (parse_unc in mount.cifs.c), mount.nfs HOST:/PATH, or an nfs:// URL
    (nfs_parse_devname in utils/mount/parse_dev.c). automount(8) makes its maps' sources complete. /dev/nfs is
    the root that the kernel or the initrd has mounted.
    """
    source, fstype = request.source, request.fstype
    if source == _ROOT_OVER_NFS or (has_placeholder(source) and not re.search(r"//|\\\\|:/", source)):
        return None
    of_smb, server = source.startswith(("//", "\\\\")), source.partition(":/")[0]
    if fstype in SMB_TYPES:
        if of_smb and re.match(r"\\*[^/\\]+[/\\]+[^/\\]", source[2:]):
            return None
        form, other = "//HOST/SHARE", "nfs for an export of NFS"
        names = "with the server's name for HOST and its share's for SHARE"
    elif request.maker is Maker.DOCKER and ":/" in source and "addr" not in parse_options(request.options):
        # Without mount.nfs the kernel takes the address from the options alone (nfs_fs_context_validate).
        why = (
            "has no address for the kernel: Docker takes it from addr= among the options, and mounts nothing"
        )
        return why, "addr=ADDRESS", "write addr=ADDRESS into the option o of the volume"
    elif source.startswith(":") and as_address(server) is None and request.maker is not Maker.AUTOFS:
        address = parse_options(request.options).get("addr")
        why = "has no server before the colon: mount.nfs resolves the empty name, and ignores addr="
        named = "" if address else ", with the server's name for HOST,"
        right = f"{address or 'HOST'}{source}"
        return why, right, f"write {right}{named} as the source"
    elif ":" in server and as_address(server) is not None:
        path = source.removeprefix(server + ":")
        why = "has an IPv6 address without brackets: mount.nfs reads the part before a colon as a name"
        return why, f"[{server}]:{path}", "write the address in brackets"
    elif ":" in source and "/" in (server := source.partition(":")[0]) and not of_smb:
        name = server.strip("/")
        right = f"{name}{source.removeprefix(server)}" if "/" not in name else "HOST:/PATH"
        why = "has a slash before the colon: mount.nfs reads it as a part of the server's name"
        return why, right, f"write {right} as the source"
    elif of_smb or (":" not in source and request.maker is not Maker.AUTOFS):
        form, other = "HOST:/PATH", "cifs for a share of SMB"
        names = "with the server's name for HOST and its export for PATH"
    else:
        return None
    return (
        f"is not one of type {fstype}: {'mount.cifs' if fstype in SMB_TYPES else 'mount.nfs'} refuses it",
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
    text = option_text(name, value)
    right = f"proto={plain_name}{'6' if six else ''}"
    own = asked in parse_options(request.options).pairs
    why = f"has an IPv{6 if six else 4} address, and {text} accepts only the other kind: mount.nfs refuses it"
    place = f"instead of {text} in" if own else "into"
    return why, right, f"write {right} {place} the options"


def _no_export(facts: Facts, request: Request) -> tuple[str, str, str] | None:
    """Return why a line leads to no export of a known provider, the right text, and a remedy."""
    host, path = split_source(request.source)
    for known in facts.policy.providers:
        for pattern in known.misnamed:
            match = re.fullmatch(pattern, plain(host), re.VERBOSE)
            if match and (request.fstype != EFS_TYPE or "." in host):
                right = known.name_form
                for part, text in match.groupdict().items():
                    right = right.replace(part, text or part)
                why = f"names no existing server: such names have the form {known.name_form}"
                hint = ", with the file system's region for REGION," if "REGION" in right else ""
                return why, right, f"write {right}{hint} as the server's name"
    provider = provider_by_name(facts, host)
    if (
        request.fstype in SMB_TYPES
        or provider is None
        or not provider.export
        or "&" in request.source
        or has_placeholder(request.source)
    ):
        return None
    account = plain(host).partition(".")[0].removesuffix("-secondary")
    _, _, noun = provider.export.strip("/").partition("/")
    first, _, rest = path.strip("/").partition("/")
    share, _, folder = rest.partition("/")
    if first.lower() == account and share and (not folder or provider.export.endswith("/")):
        return None
    named = (share if first.lower() == account else "" if share else first) or noun
    each = f"{provider.title} exports each as /ACCOUNT/{noun}, and denies any other path"
    why = f"names no {noun.lower()} of the account: {each}"
    hint = f", with the {noun.lower()}'s name for {noun}," if named == noun else ""
    return why, f"/{account}/{named}", f"write {host}:/{account}/{named}{hint}"


@rule(
    "NFS313",
    "mount-point-twice",
    WARNING,
    source="https://www.freedesktop.org/software/systemd/man/latest/systemd-fstab-generator.html",
)
def point_twice(facts: Facts) -> Iterator[Fault]:
    """Yield lines of an fstab for a mount point of an earlier line, and entries of a map for an earlier key.

    noauto leaves the choice to people. An administrator's unit precedes a line of fstab (systemd.mount(5)).
    """
    first: dict[tuple[str, str], Request] = {}
    own = (each for each in facts.snapshot.requests if each.file.startswith(_ADMINISTRATORS))
    units = {clean_path(each.point): each for each in own}
    for request in facts.snapshot.requests:
        # A condition may choose between two tasks.
        if not _is_automatic(request) or request.file == UTAB or request.maker is Maker.TASK:
            continue
        place = request.file, clean_path(request.point)
        unit = units.get(place[1])
        if unit is not None and (unit.source, unit.options) != (request.source, request.options):
            yield Fault(
                f"{request.file}:{request.line}",
                f"{request.point} has a unit already ({unit.file}): systemd mounts that, and these options "
                "count for mount(8) alone",
                observed=f"{request.source} {request.options}",
                expected="a unit or a line a mount point",
                remedy=f"remove {request.file}:{request.line} or {unit.file}"
                f"{then_sudo(RELOAD_UNITS, image=not facts.running)}",
            )
        known = first.setdefault(place, request)
        if known is not request:
            yield Fault(
                f"{request.file}:{request.line}",
                f"{request.point} has a line already ({known.file}:{known.line}): systemd mounts the first "
                "and ignores this line, and mount -a mounts both, one over the other",
                observed=request.source,
                expected="one line a mount point",
                remedy=f"remove {known.file}:{known.line} or {request.file}:{request.line}, or give one "
                "of them another mount point"
                f"{then_sudo(RELOAD_UNITS, image=not facts.running)}",
            )
    for entry in facts.snapshot.maps:
        if entry.why is Unread.TWICE:
            origin = f"{entry.file}:{entry.line}"
            yield Fault(
                origin,
                f"the key {quoted(entry.name)} has an entry already ({entry.local}): automount(8) takes "
                "the first and ignores this entry",
                observed=entry.name,
                expected="one entry a key",
                remedy=f"remove {entry.local} or {origin}",
            )


def _is_automatic(request: Request) -> bool:
    """Whether a line of an fstab, or of a proposal, is mounted without being asked for."""
    automatic = parse_options(request.options).last_of("auto", "noauto") != "noauto"
    return request.maker in {Maker.MOUNT, Maker.TASK} and automatic


@rule("NFS310", "autofs-map", INFO, needs=(HOST,), source="autofs(5)")
def unexpanded_maps(facts: Facts) -> Iterator[Fault]:
    """Yield the automounter's entries for any key, its maps that are not files, and unread master maps."""
    # Not by line, as in _requests: the mount of a key in use has the same line without the wildcard.
    wildcards: dict[tuple[str, int, str], Request] = {}
    for request in facts.snapshot.requests:
        if request.wildcard:
            wildcards.setdefault((request.file, request.line, request.point), request)
    for request in wildcards.values():
        yield Fault(
            f"{request.file}:{request.line}",
            f"this entry mounts {quoted(request.source)} for any key: its options were checked; its mounts "
            "are not known before somebody uses them",
            observed=request.point,
        )
    for item in facts.snapshot.maps:
        origin = f"{item.file}:{item.line}"
        if item.why is Unread.TWICE:
            continue
        if item.why is Unread.ENDING:
            yield Fault(
                origin,
                f"automount(8) reads only files with names in .autofs there, and ignores {item.name}: it "
                f"mounts nothing at {item.point}",
                observed=item.name,
                expected=item.local,
                remedy=sudo("mv -n", item.name, item.local, folder=facts.folder),
                severity=WARNING,
            )
            continue
        if item.why is Unread.EXECUTABLE:
            yield Fault(
                origin,
                f"automount(8) runs {item.local}, an executable file, as a program, and it is no program: "
                f"nothing is mounted at {item.point}",
                observed="executable",
                expected="a file that is not executable",
                remedy=sudo("chmod a-x", item.local, folder=facts.folder),
                severity=WARNING,
            )
            continue
        if item.why is Unread.MISSING:
            yield Fault(
                origin,
                f"there is no map {quoted(item.name)} for {item.point}: automount(8) mounts nothing there",
                observed="no such file",
                expected=item.name,
                remedy=f"write the entries into {quote(item.name)}, or remove {origin}",
                severity=WARNING,
            )
            continue
        yield Fault(origin, _unread(item), observed=f"{item.kind} {item.name}".lstrip())


def _unread(item: UnreadMap) -> str:
    """Return the reason why a map was not read, and the consequence."""
    name = quoted(item.name)
    map_ = f"the map {name} for {item.point}" if item.point else f"the master map {name}"
    if item.why is Unread.SOURCE:
        line = "(automount in /etc/nsswitch.conf)"
        if item.local:
            return (
                f"{map_} is looked up in {item.kind} first {line}: entries there were not checked, and "
                f"{item.local} only counts for keys that are missing there"
            )
        return f"{map_} is also looked up in {item.kind} {line}: entries there were not checked"
    why = {
        Unread.KEY: f"{map_} depends on the key",
        Unread.FORMAT: f"{map_} is written for amd",
        Unread.PLACE: f"{map_} lies below a mount point, where a dead server would hold up its reader",
    }.get(item.why, f"the entries of {map_} are in no file")
    return f"{why}: none of its mounts was checked"


def asking_lines(targets: Iterable[Target], *, efs: bool = False) -> Iterator[tuple[Target, Request]]:
    """Yield each line that asks for mounts once, with `efs` also the lines with options of mount.efs."""
    seen: set[object] = set()
    for target in targets:
        request = target.request
        if request is None or (request.fstype == EFS_TYPE and not efs):
            continue
        # The automounter makes several mounts of one entry.
        key = (request.file, request.line) if request.maker is Maker.AUTOFS else request
        if key not in seen:
            seen.add(key)
            yield target, request
