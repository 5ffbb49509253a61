"""Rules NFS308 to NFS310: the lines of files that ask for mounts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nfstuned.core.mounts import options as names
from nfstuned.core.mounts.options import (
    NO_VALUE,
    last_of,
    version,
    wanted,
    wanted_by_smb,
    wanted_though_sloppy,
)
from nfstuned.core.nconnect.groups import is_azure_files
from nfstuned.model.facts import Facts, Target
from nfstuned.model.finding import Fault
from nfstuned.model.kernel import Options, decimal
from nfstuned.model.mounts import Maker, Request
from nfstuned.parse.etc.fstab import SMB
from nfstuned.parse.fields import quoted
from nfstuned.parse.options import parse_options

NFS_MANUAL = "nfs(5)"
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
        named = "auto" if request.guessed else request.fstype
        if named not in _KNOWN_NETWORK and "_netdev" not in options:
            why = (
                f"systemd does not know that {named} needs a network: without _netdev it is mounted "
                "among the local file systems, before there is one"
            )
        elif _waited_for(target, named, options):
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


def _waited_for(target: Target, named: str, options: Options) -> bool:
    """Return whether the boot waits for a line that nobody meant to be waited for.

    A line with _netdev alone was written by somebody who thought of the network and wants the boot to wait;
    only Azure Files has a vendor who asks for nofail as well. systemd reads bg as nofail where the line names
    a type of NFS that it knows.
    """
    background = named in _KNOWN_NETWORK and last_of(options, "bg", "fg") == "bg"
    if "nofail" in options or background:
        return False
    return "_netdev" not in options or is_azure_files(target)


def foreign_options(facts: Facts) -> Iterator[Fault]:
    """Yield lines with options or values that the kernel or mount(8) refuses for their type of file system.

    The automounter mounts sloppily (`mount -s`), and `sloppy` says the same: what the kernel cannot read does
    no harm then.
    """
    for _, request in _requests(facts.targets):
        options = parse_options(request.options)
        sloppy = request.maker is Maker.AUTOFS or "sloppy" in options
        strange = () if sloppy else tuple(dict.fromkeys(_strange(options, request.fstype)))
        misused = tuple(dict.fromkeys(_misused(options, request, sloppy=sloppy)))
        if strange or misused:
            yield _refused(request, strange, misused)


def _refused(request: Request, strange: tuple[str, ...], misused: tuple[_Misused, ...]) -> Fault:
    place = f"{request.file}:{request.line}"
    why = [f"{who} {_listed(ones)}" for who, ones in _who_knows(request, strange).items() if ones]
    why += [
        f"{option.name} takes {option.wanted}" + (f", not {option.shown}" if option.shown else "")
        for option in misused
    ]
    mend = [f"take {_listed(strange)} out of the options in {place}"] if strange else []
    mend += [f"write {option.name} with {option.wanted} in {place}" for option in misused]
    return Fault(
        place,
        f"{', and '.join(why)}: a mount of type {request.fstype} is refused as a whole for it",
        observed=",".join((*strange, *(option.text for option in misused))),
        expected=f"options of {'mount.cifs(8)' if request.fstype in SMB else NFS_MANUAL}",
        remedy=", and ".join(mend),
    )


def _who_knows(request: Request, strange: tuple[str, ...]) -> dict[str, list[str]]:
    smb = request.fstype in SMB
    own, other = (names.SMB, names.NFS) if smb else (names.NFS | names.RARE_NFS, names.SMB)
    foreign = [name for name in strange if name.lower() in other - own]
    return {
        f"only {'NFS' if smb else 'SMB'} knows": foreign,
        "neither the kernel nor mount(8) knows": [name for name in strange if name not in foreign],
    }


def _listed(options: Iterable[str]) -> str:
    return ", ".join(map(quoted, options))


def _strange(options: Options, fstype: str) -> Iterator[str]:
    smb = fstype in SMB
    known = names.COMMON | (names.SMB if smb else names.NFS | names.RARE_NFS)
    if fstype == "aznfs":
        known |= names.AZNFS
    for name, _ in options.pairs:
        if not name.startswith(_FREE) and (name.lower() if smb else name) not in known:
            yield name


@dataclass(frozen=True, slots=True)
class _Misused:
    """An option whose value the kernel refuses, and what it takes."""

    name: str
    value: str | None
    wanted: str

    @property
    def text(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"

    @property
    def shown(self) -> str:
        """The value for a message; "" where there should be none, or is none."""
        return "" if self.value is None or self.wanted == NO_VALUE else quoted(self.value)


def _misused(options: Options, request: Request, *, sloppy: bool) -> Iterator[_Misused]:
    judge = wanted_by_smb if request.fstype in SMB else wanted_though_sloppy if sloppy else wanted
    named = version(request.fstype, options)
    for name, value in options.pairs:
        # mount.nfs takes the minor version of vers=4.1 and drops this one.
        if name == "minorversion" and named not in {None, (4, decimal(value))}:
            continue
        # What an automounter's entry for any key comes to is not known here, nor who takes quotes away.
        takes = "" if value and ('"' in value or (request.wildcard and "&" in value)) else judge(name, value)
        if takes:
            yield _Misused(name, value, takes)


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
