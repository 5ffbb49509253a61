"""Rules SMB6xx: SMB mounts through the kernel's cifs.

The numbers of SMB601 to 603, 605, 606, 608 and 611 are Microsoft's. They count where the profile is
Microsoft's, inherits from such a profile, or has numbers: Azure Files is known by name, other servers by a
[[policy]]. SMB604, 607, 609 and 610 report the kernel's doing, for every server.
"""

from __future__ import annotations

import re
import stat
from collections import defaultdict
from collections.abc import Iterator

from nfstuned.core.mounts.smb import (
    CACHE_TIMES,
    asked_channels,
    attribute_cache_s,
    channels,
    credentials_file,
    has_login,
    has_password,
    multichannel_support,
    ntlm,
    old_dialect,
    sessions_of,
    share_name,
    signs,
    wanted_channels,
)
from nfstuned.core.policy.endpoint import as_address, split_source
from nfstuned.core.rules.nfs3_refused import is_refused_line
from nfstuned.core.rules.rule import (
    ADVICE,
    ERROR,
    HOST,
    INFO,
    LIVE,
    SAMPLE,
    WARNING,
    Manual,
    known_provider,
    mount_all_again,
    place_of,
    place_to_change,
    rule,
    source_of,
    where,
)
from nfstuned.model.facts import Facts, Fault, Target
from nfstuned.model.kernel import option_text
from nfstuned.model.mounts import SMB_TYPES, Login, Maker
from nfstuned.parse.fields import PLACEHOLDER, count, holds_secret, some, sudo

AZURE, NETAPP = "azure-files-smb", "azure-netapp-files-smb"

_SMB1 = "1.0"
_LOGIN_FILES = frozenset({"credentials", "cred"})
_SECRETS = ("password", "pass", "password2", "pass2")
_PLAIN = re.compile(r"[\w.-]+")
_READ_BY_OTHERS = stat.S_IRGRP | stat.S_IROTH
METADATA_PERCENT, METADATA_PER_S = 75, 50


def _mountable(facts: Facts) -> Iterator[Target]:
    """Yield the SMB mounts that are there, and the lines that can be mounted: NFS309 reports the others."""
    for target in facts.smb_mounts:
        if target.live or not target.request or not is_refused_line(target.request, facts):
            yield target


@rule("SMB601", "multichannel-unused", ADVICE, needs=(HOST,), source=Manual.SMB)
def multichannel_unused(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files that use one channel on a kernel that the vendor lists for more."""
    support = multichannel_support(facts.snapshot)
    for target in _mountable(facts):
        most = target.profile.max_channels
        if not support.supported or target.profile.base != AZURE or most is None:
            continue
        if old_dialect(target, sessions_of(target, facts.smb)):
            continue
        if wanted_channels(target) is None and channels(target, facts.smb) == 1:
            yield Fault(
                target.subject,
                "one connection carries this mount, and the kernel can use several: on an SSD share with "
                "multichannel, four gave 2 to 4 times the throughput with several files at once",
                observed="no max_channels",
                expected=f"max_channels={most}",
                remedy=f"on an SSD share, set max_channels={most} in {place_to_change(target)}",
            )


@rule("SMB602", "channels-above-four", WARNING, source=Manual.SLOW)
def too_many_channels(facts: Facts) -> Iterator[Fault]:
    """Yield mounts with more channels than their profile allows."""
    for target in facts.smb_mounts:
        asked, most = asked_channels(target.options), target.profile.max_channels
        if asked is not None and most is not None and asked > most:
            yield Fault(
                place_of(target, "max_channels"),
                f"max_channels={asked} is above the {most} that the profile {target.profile.name} allows: "
                "more channels cost connections and memory, and performance gets worse",
                observed=f"max_channels={asked}",
                expected=f"at most {most}",
                remedy=_set_channels(target, most),
                source=source_of(target.profile, "max_channels"),
            )


def _set_channels(target: Target, number: int) -> str:
    """Return how to ask for several channels, which kernels refuse together with `nomultichannel`."""
    instead = " instead of nomultichannel" if "nomultichannel" in target.wanted else ""
    return f"set max_channels={number}{instead} in {place_to_change(target)}"


@rule("SMB603", "multichannel-unsupported-kernel", WARNING, needs=(HOST,), source=Manual.SMB)
def unsupported_smb_kernel(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files that ask for channels on a kernel below those that the vendor lists."""
    support = multichannel_support(facts.snapshot)
    kernel = facts.snapshot.kernel
    for target in facts.smb_mounts:
        asked = wanted_channels(target)
        if support.supported is not False or kernel is None or target.profile.base != AZURE:
            continue
        if asked is not None and asked > 1:
            words = ("multichannel", "max_channels")
            named = [name for name in words if name in target.wanted] or words
            yield Fault(
                target.subject,
                f"the mount asks for {asked} channels, and on this distribution Microsoft supports "
                f"multichannel from kernel {support.first_kernels} on: this is {kernel.text}",
                observed=kernel.text,
                expected=f"{support.first_kernels} or later",
                remedy=f"update the kernel, or remove {' and '.join(named)} from {where(target)}",
            )


@rule("SMB604", "channels-missing", WARNING, needs=(LIVE,), source="fs/smb/client/cifs_debug.c")
def channels_missing(facts: Facts) -> Iterator[Fault]:
    """Yield live mounts that asked for more channels than each possible session has."""
    for target in facts.smb_mounts:
        asked, sessions = wanted_channels(target), sessions_of(target, facts.smb)
        if asked is None or not sessions:
            continue
        most = max(session.channels for session in sessions)
        if most < asked:
            yield Fault(
                target.subject,
                f"the mount asks for {asked} channels and the kernel has {most}: the server or its "
                "interfaces do not offer more, or an earlier mount with the same login made the session",
                observed=count(most, "channel"),
                expected=count(asked, "channel"),
                remedy="see 'Server interfaces' in /proc/fs/cifs/DebugData; switch multichannel on at the "
                "server, and "
                + mount_all_again([target], f"unmount every mount of {target.endpoint.host} and mount again"),
            )


@rule("SMB605", "dialect-old", WARNING, source=Manual.SMB_MOUNTING)
def dialect_old(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Microsoft's servers, which speak 3.1.1, with a lower dialect, and all with SMB 1.

    It is an error where the server does not have the dialect of a line.
    """
    for target in facts.smb_mounts:
        dialect = old_dialect(target, sessions_of(target, facts.smb))
        provider = known_provider(facts, target.endpoint.provider)
        if provider and dialect in provider.absent_dialects and target.live is None:
            yield Fault(
                place_of(target, "vers"),
                f"this server has no SMB {dialect}: the mount fails",
                observed=dialect,
                expected="3.1.1",
                remedy=f"set vers=3.1.1 in {place_to_change(target)}",
                severity=ERROR,
            )
        elif dialect == _SMB1 and target.profile.base not in (AZURE, NETAPP):
            yield Fault(
                place_of(target, "vers"),
                "the dialect is SMB 1, which has no encryption and does not protect its negotiation: "
                "others on the way can read everything, and Windows no longer installs it",
                observed=dialect,
                expected="3.1.1, or the server's highest",
                remedy=f"remove vers=1.0 from {place_to_change(target)}; keep it only for a device that has "
                "nothing else, in a network of its own",
            )
        elif target.profile.base in (AZURE, NETAPP) and dialect:
            multichannel = "multichannel with Azure Files, " if target.profile.base == AZURE else ""
            yield Fault(
                place_of(target, "vers"),
                f"the dialect is SMB {dialect}: {multichannel}AES-GCM encryption and the protection of the "
                "negotiation need 3.1.1, which this server supports",
                observed=dialect,
                expected="3.1.1",
                remedy=f"set vers=3.1.1 in {place_to_change(target)}",
            )


@rule("SMB606", "attribute-cache-short", ADVICE, source=Manual.SMB_MOUNTING)
def short_attribute_cache(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that keep attributes for less time than their profile recommends."""
    for target in _mountable(facts):
        seconds, least = attribute_cache_s(target), target.profile.actimeo_min
        if seconds is not None and least is not None and seconds < least:
            # The kernel passes over `actimeo` behind another time.
            times = (pair for pair in target.wanted.pairs if pair[0] in CACHE_TIMES)
            named = ",".join(option_text(*pair) for pair in times)
            how = f"instead of {named} in" if named else "at the end of"
            yield Fault(
                place_of(target, *CACHE_TIMES),
                f"attributes are kept for {seconds} s and the profile {target.profile.name} recommends at "
                f"least {least} s: every stat and listing after that asks the server again",
                observed=f"{seconds} s",
                expected=f"{least} s",
                remedy=f"if no other client changes the files at once, write actimeo={least} {how} the "
                f"options in {place_to_change(target)}",
                source=source_of(target.profile, "actimeo_min"),
            )


@rule("SMB607", "cache-none", WARNING, source=Manual.SLOW)
def no_cache(facts: Facts) -> Iterator[Fault]:
    """Yield mounts without page cache or without the server's inode numbers."""
    for target in facts.smb_mounts:
        options = target.options
        if options.get("cache") == "none":
            yield Fault(
                place_of(target, "cache"),
                "cache=none sends every read and write to the server at once: no read-ahead, no page cache",
                observed="cache=none",
                expected="cache=strict",
                remedy=f"write cache=strict instead of cache=none in {place_to_change(target)}",
            )
        kernel = "; if it is missing there, dmesg has the kernel's reason"
        off = options.last_of("serverino", "noserverino") == "noserverino"
        if off or (target.live is not None and "serverino" not in options):
            yield Fault(
                place_of(target, "noserverino"),
                "the server's inode numbers are not used: the kernel forgets each unused inode, asks for "
                "it again, and does not recognise hard links",
                observed="noserverino",
                expected="serverino",
                remedy=f"remove noserverino from {place_to_change(target)}, unless the server gives several "
                f"files the same number{kernel if target.live else ''}",
                severity=None if target.profile.base in (AZURE, NETAPP) else ADVICE,
            )


@rule("SMB608", "signing-cost", INFO, source=Manual.NETAPP_SMB)
def signing_cost(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure NetApp Files that sign all packets on a single channel."""
    for target in _mountable(facts):
        if target.profile.base != NETAPP or channels(target, facts.smb) > 1:
            continue
        if signs(target, sessions_of(target, facts.smb)):
            yield Fault(
                target.subject,
                "packets are signed on a single channel: in Microsoft's test of Azure NetApp Files this took "
                "the throughput of one client from 875 to about 250 MiB/s",
                observed="signed, 1 channel",
                expected="several channels, or unsigned where that is allowed",
                remedy=_set_channels(target, 4),
            )


@rule("SMB609", "encryption-cost", INFO, source=Manual.NETAPP_SMB)
def encryption_cost(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that ask for encryption themselves."""
    for target in _mountable(facts):
        if "seal" in target.options:
            yield Fault(
                place_of(target, "seal"),
                "seal encrypts all traffic: on Azure NetApp Files Microsoft measured 10 to 15 % less for "
                "reads and writes and 5 % for metadata, for the storage's part alone",
                observed="seal",
                remedy="nothing, if encryption is wanted; else remove seal from " + where(target),
            )


@rule("SMB612", "secret-in-file", ERROR, source="mount.cifs(8)")
def secret_in_file(facts: Facts) -> Iterator[Fault]:
    """Yield lines with a password or an account key, which everybody who reads the file has then."""
    places = dict.fromkeys(
        (target.request.place_of(*_SECRETS), target.endpoint.host, target.request.maker)
        for target in facts.smb_mounts
        if target.request is not None
        and (holds_secret(_without_variables(target.request.options)) or holds_secret(target.request.source))
    )
    # A unit that systemd refuses can be read all the same.
    refused = (unit.request for unit in facts.snapshot.misnamed if unit.request.fstype in SMB_TYPES)
    places |= {
        (f"{request.file}:{request.line}", split_source(request.source)[0], request.maker): None
        for request in refused
        if holds_secret(request.options)
    }
    for place, host, maker in places:
        expected, how = _secret_place(place, host, maker)
        yield Fault(
            place,
            "the password or account key stands in the line itself: everybody who may read the file has it",
            observed="a secret in the options",
            expected=expected,
            remedy=f"{how}, and change the password or rotate the key",
        )


def _secret_place(place: str, host: str, maker: Maker) -> tuple[str, str]:
    """Return the text instead of a secret, and how to move the secret away, as its maker can read it.

    Docker calls mount(2), which knows no credentials=.
    """
    if maker is Maker.KUBELET:
        named = "nodeStageSecretRef, or of a class csi.storage.k8s.io/node-stage-secret-name"
        return (
            "a Secret",
            f"move the user's name and the password from {place} into a Secret, named by {named}",
        )
    if maker in {Maker.DOCKER, Maker.PODMAN}:
        variable = "${SMB_PASSWORD}"
        return variable, (
            f"write {variable} for the password in {place}, with the value in the environment or in .env"
        )
    file = _login_file(host)
    option = f"credentials={file}"
    return option, (
        f"move the user's name and the password from {place} into a new file {file} with mode 0600 "
        f"(mount.cifs(8)), and write {option} instead"
    )


def _without_variables(options: str) -> str:
    """Return options without the values that another program puts in for a placeholder."""
    return re.sub(rf"=(?:{PLACEHOLDER})(?=,|$)", "=", options)


def _login_file(host: str) -> str:
    """Return the vendor's place for the login of a server's shares."""
    name = host.partition(".")[0] if as_address(host) is None else host
    return f"/etc/smbcredentials/{name if _PLAIN.fullmatch(name) else 'share'}.cred"


@rule("SMB613", "credentials-readable", ERROR, needs=(HOST,), source=Manual.SMB_MOUNTING)
def readable_credentials(facts: Facts) -> Iterator[Fault]:
    """Yield files with a login that others than their owner may read, once a file."""
    for path, login, _, lines in _logins(facts):
        if not login.mode & _READ_BY_OTHERS:
            continue
        who = "every user" if login.mode & stat.S_IROTH else "its group"
        yield Fault(
            path,
            f"{who} may read the password or account key in it, the login of {lines}",
            observed=f"mode {login.mode:04o}",
            expected="mode 0600",
            remedy=f"{sudo('chmod 600', path, folder=facts.folder)}, and change the password or rotate the "
            "key",
        )


def _logins(facts: Facts) -> Iterator[tuple[str, Login, list[Target], str]]:
    """Yield the files with a login that could be looked at, each with its mounts and their places."""
    targets: defaultdict[str, list[Target]] = defaultdict(list)
    for target in facts.smb_mounts:
        targets[credentials_file(target)].append(target)
    for path, mine in targets.items():
        if path in facts.logins:
            yield path, facts.logins[path], mine, some(list(dict.fromkeys(target.origin for target in mine)))


@rule("SMB615", "login-unusable", ERROR, needs=(HOST,), source="mount.cifs(8)")
def unusable_login(facts: Facts) -> Iterator[Fault]:
    """Yield files with a login that mount.cifs reads in another way than their writers.

    The server has accepted the login of a mount that exists.
    """
    for path, login, targets, lines in _logins(facts):
        mistakes = list(login.mistakes)
        if not login.has_password and not all(has_password(target.wanted) for target in targets):
            mistakes.append("no line has password=, so mount.cifs asks for it")
        if mistakes and not any(target.live for target in targets):
            yield Fault(
                path,
                f"{'; '.join(mistakes)}: {lines} does not log in with the intended account",
                observed=mistakes[0],
                expected="the lines of mount.cifs(8)",
                remedy=f"write the user's name and the password in {path} directly behind = and up to the "
                "end of the line, without blanks, quotes or carriage returns",
            )


@rule("SMB614", "login-missing", WARNING, source="mount.cifs(8)")
def missing_login(facts: Facts) -> Iterator[Fault]:
    """Yield lines that something mounts by itself, and that have neither a password nor another login.

    mount.cifs asks for a password then, without a terminal by systemd-ask-password (parse_options and
    get_password in mount.cifs.c). The kernel passes over credentials= (Opt_ignore in fs_context.c).
    """
    for target in _mountable(facts):
        request = target.request
        if target.live or request is None or request.by_hand:
            continue
        names = dict(target.wanted.pairs).keys()
        if request.maker is Maker.DOCKER and names & _LOGIN_FILES and names.isdisjoint(_SECRETS):
            yield Fault(
                request.place_of(*_LOGIN_FILES),
                "Docker calls mount(2) without mount.cifs, and the kernel reads no file with a login",
                observed="credentials=",
                expected="a user's name and a password",
                remedy="write username=NAME and a password, with ${SMB_PASSWORD} for its value, instead of "
                f"credentials= in {request.place_of(*_LOGIN_FILES)}, and the value in the environment or in "
                ".env",
            )
            continue
        if has_login(target.wanted) or request.maker in {Maker.DOCKER, Maker.PODMAN}:
            continue
        if request.maker is Maker.KUBELET:
            yield Fault(
                target.origin,
                "the volume has no login: mount.cifs asks for a password, and the mount fails",
                observed="neither a Secret, guest nor sec=krb5",
                expected="nodeStageSecretRef",
                remedy="name a Secret with username and password in nodeStageSecretRef of the volume in "
                f"{target.origin}, or its class in csi.storage.k8s.io/node-stage-secret-name; write "
                "guest into mountOptions instead if the share is for everybody",
            )
            continue
        file = _login_file(target.endpoint.host)
        yield Fault(
            target.origin,
            "the line has no login: mount.cifs asks for a password, nobody answers, and the mount fails",
            observed="neither credentials, guest nor sec=krb5",
            expected=f"credentials={file}",
            remedy=f"write the user's name and the password into a new file {file} with mode 0600 "
            f"(mount.cifs(8)), and credentials={file} into the options in {target.origin}; write guest "
            "instead if the share is for everybody",
        )


@rule(
    "SMB610",
    "fips-with-ntlm",
    ERROR,
    needs=(HOST,),
    source="https://learn.microsoft.com/en-us/troubleshoot/azure/azure-storage/files/connectivity/files-troubleshoot-linux-smb",
)
def ntlm_under_fips(facts: Facts) -> Iterator[Fault]:
    """Yield mounts that log in with NTLM on a machine in FIPS mode."""
    for target in facts.smb_mounts:
        security = ntlm(target)
        if facts.system.fips and security:
            yield Fault(
                target.subject,
                f"{security} is an NTLM login with MD4 and MD5, which FIPS mode does not allow: it fails",
                observed=security,
                expected="sec=krb5",
                remedy=f"set sec=krb5 in {where(target)} and log in with Kerberos",
            )


@rule("SMB611", "metadata-cache", INFO, needs=(LIVE, SAMPLE), source=Manual.SMB)
def metadata_heavy(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of Azure Files with mostly metadata requests between two looks."""
    measured = facts.measured
    if measured is None:
        return
    for target in facts.smb_mounts:
        if target.live is None or target.profile.base != AZURE:
            continue
        mine = [each for each in measured.smb if share_name(each.share) == share_name(target.source)]
        metadata = sum(each.metadata for each in mine)
        every = metadata + sum(each.data for each in mine)
        dominates = metadata * 100 >= METADATA_PERCENT * max(every, 1)
        if dominates and metadata >= METADATA_PER_S * measured.seconds:
            share, rate = metadata * 100 // every, metadata / measured.seconds
            yield Fault(
                target.subject,
                f"{share} % of the requests were about metadata, {rate:.0f} a second: a premium (SSD) "
                "share has a metadata cache, which answers them faster and is registered at the server",
                observed=f"{share} % metadata",
                remedy="if it is a premium share, register its subscription for metadata caching",
            )
