"""Rules NFS308 to NFS310: the lines of files that ask for mounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nfstuned.core import optionnames as names
from nfstuned.core.groups import is_azure_files
from nfstuned.core.nfsoptions import FLAVOURS, last_of
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault, Rule, Severity
from nfstuned.model.kernel import Options
from nfstuned.model.work import Maker, Request
from nfstuned.parse.fields import quoted
from nfstuned.parse.fstab import SMB
from nfstuned.parse.options import parse_options

NFS_MANUAL = "nfs(5)"
_MOUNTING = "https://learn.microsoft.com/en-us/azure/storage/files/storage-files-how-to-mount-nfs-shares"
_KNOWN_NETWORK = ("nfs", "nfs4")
"""The types of NFS that systemd takes for a network's without _netdev (fstype_is_network)."""
_EARLY = ("/", "/usr")
"""The initrd mounts these; nofail means nothing there."""
_FREE = ("x-", "X-", "smackfs", "verity.")


def network_unaware(facts: Facts) -> Iterator[Fault]:
    """Yield lines of fstab that hold up the boot, or that systemd takes for a local file system."""
    for target, request in _requests(facts.nfs):
        options = parse_options(request.options)
        if not _at_boot(request, options):
            continue
        if request.fstype not in _KNOWN_NETWORK and "_netdev" not in options:
            why = (
                f"systemd does not know that {request.fstype} needs a network: without _netdev it is mounted "
                "among the local file systems, before there is one"
            )
        elif _waited_for(target, options):
            why = "without nofail the boot waits for the server, and remote-fs.target fails without it"
        else:
            continue
        yield Fault(
            f"{request.file}:{request.line}",
            why,
            observed=",".join(name for name in ("_netdev", "nofail") if name in options) or "neither",
            expected="_netdev,nofail",
            remedy=f"add _netdev,nofail to the options in {request.file}:{request.line}, "
            "then systemctl daemon-reload",
        )


def _at_boot(request: Request, options: Options) -> bool:
    """Return whether it is a line of an fstab, a proposed one too, that systemd makes part of the boot."""
    return (
        request.maker is Maker.MOUNT
        and not request.at_first_use
        and request.point not in _EARLY
        and last_of(options, "auto", "noauto") != "noauto"
    )


def _waited_for(target: Target, options: Options) -> bool:
    """Return whether the boot waits for a line that nobody meant to be waited for.

    A line with _netdev alone was written by somebody who thought of the network and wants the boot to wait;
    only Azure Files has a vendor who asks for nofail as well. systemd reads bg as nofail.
    """
    if "nofail" in options or last_of(options, "bg", "fg") == "bg":
        return False
    return "_netdev" not in options or is_azure_files(target)


def foreign_options(facts: Facts) -> Iterator[Fault]:
    """Yield lines with options that the kernel or mount(8) refuses for their type of file system.

    The automounter mounts sloppily (`mount -s`), and `sloppy` says the same: unknown options do no harm then.
    """
    for _, request in _requests(facts.targets):
        options = parse_options(request.options)
        if request.maker is Maker.AUTOFS or "sloppy" in options:
            continue
        strange = tuple(dict.fromkeys(_strange(options, request.fstype)))
        if strange:
            yield _strange_fault(request, strange)


def _strange_fault(request: Request, strange: tuple[str, ...]) -> Fault:
    smb = request.fstype in SMB
    own, other = (names.SMB, names.NFS) if smb else (names.NFS | names.RARE_NFS, names.SMB)
    own |= names.COMMON
    keys = {one: one.partition("=")[0].lower() for one in strange}
    kinds = {
        f"only {'NFS' if smb else 'SMB'} knows": [one for one, key in keys.items() if key in other - own],
        "neither the kernel nor mount(8) knows": [one for one, key in keys.items() if key not in other | own],
        f"{'SMB' if smb else 'NFS'} does not take": [one for one, key in keys.items() if key in own],
    }
    what = ", and ".join(f"{why} {_listed(ones)}" for why, ones in kinds.items() if ones)
    return Fault(
        f"{request.file}:{request.line}",
        f"{what}: a mount of type {request.fstype} is refused as a whole for it",
        observed=",".join(strange),
        expected=f"options of {'mount.cifs(8)' if smb else NFS_MANUAL}",
        remedy=f"take {_listed(strange)} out of the options in {request.file}:{request.line}",
    )


def _listed(options: Iterable[str]) -> str:
    return ", ".join(map(quoted, options))


def _strange(options: Options, fstype: str) -> Iterator[str]:
    smb = fstype in SMB
    known = names.COMMON | (names.SMB if smb else names.NFS | names.RARE_NFS)
    if fstype == "aznfs":
        known |= names.AZNFS
    for name, value in options.pairs:
        if name.startswith(_FREE):
            continue
        if (name.lower() if smb else name) not in known:
            yield name
        elif value is not None and not _value_known(name, value, smb=smb):
            yield f"{name}={value}"


def _value_known(name: str, value: str, *, smb: bool) -> bool:
    if name == "vers" or (name == "nfsvers" and not smb):
        return value in (names.SMB_VERSIONS if smb else names.NFS_VERSIONS)
    if name == "sec":
        return value in names.SMB_FLAVOURS if smb else FLAVOURS.issuperset(filter(None, value.split(":")))
    return True


def unexpanded_maps(facts: Facts) -> Iterator[Fault]:
    """Yield the automounter's entries for any key, and its maps that are no files."""
    wildcards = {
        f"{request.file}:{request.line}": request
        for _, request in _requests(facts.targets)
        if request.wildcard
    }
    for place, request in wildcards.items():
        yield Fault(
            place,
            f"this entry mounts {quoted(request.source)} for any key: its options were checked, and what the "
            "keys come to cannot be known before somebody uses them",
            observed=request.point,
        )
    for item in facts.snapshot.maps:
        yield Fault(
            f"{item.file}:{item.line}",
            f"the entries of the map {quoted(item.name)} for {item.point} are in no file: nothing of what it "
            "mounts was checked",
            observed=f"{item.kind or 'program'} {item.name}",
        )


def _requests(targets: Iterable[Target]) -> Iterator[tuple[Target, Request]]:
    """Yield each line that asks for mounts once."""
    seen: set[tuple[str, int]] = set()
    for target in targets:
        request = target.request
        if request is not None and (request.file, request.line) not in seen:
            seen.add((request.file, request.line))
            yield target, request


RULES: tuple[Rule, ...] = (
    Rule("NFS308", "fstab-not-network-aware", Severity.WARNING, network_unaware, _MOUNTING),
    Rule(
        "NFS309",
        "foreign-options",
        Severity.ERROR,
        foreign_options,
        "fs/nfs/fs_context.c, nfs(5), mount.cifs(8)",
    ),
    Rule("NFS310", "autofs-map", Severity.INFO, unexpanded_maps, "autofs(5)"),
)
