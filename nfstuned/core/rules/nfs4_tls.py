"""Rules NFS406, NFS407 and NFS409: the TLS tunnels that AZNFS makes for Azure Files.

The helper mounts 127.0.0.1 with a port of its own, where stunnel listens: src/nfsv4mountscript.sh in
https://github.com/Azure/AZNFS-mount.
"""

from __future__ import annotations

import posixpath
from collections.abc import Container, Iterator, Mapping

from nfstuned.core.nconnect.transport import replaced
from nfstuned.core.policy.endpoint import TUNNEL_PORTS, as_address, is_loopback, plain, split_source
from nfstuned.core.rules.rule import (
    ERROR,
    HOST,
    WARNING,
    WATCHDOG,
    Manual,
    enable,
    mount_again,
    name_after,
    names_azure_files,
    rule,
    unmask,
)
from nfstuned.model.facts import Facts, Fault, Identity, Target
from nfstuned.model.kernel import aznfs_version, nfs_version, parse_options
from nfstuned.model.mounts import AZNFS, AZURE_FILES, Maker, Request
from nfstuned.model.system import AUTOFS, LOGINS, Answer, Override
from nfstuned.parse.etc.units import drop_in_folders
from nfstuned.parse.fields import RELOAD_UNITS, has_placeholder, quote, then_sudo, unit_name

_OVERRIDE = "AZURE_ENDPOINT_OVERRIDE"
_PUBLIC_CLOUD = "windows.net"


@rule("NFS406", "tls-helper-down", ERROR, needs=(HOST,), source=Manual.TLS)
def helper_down(facts: Facts) -> Iterator[Fault]:
    """Yield TLS mounts without a listener for their tunnel, or without a watchdog."""
    state = facts.system.tls
    stopped = state.watchdog.installed and state.watchdog.active is False
    for target in facts.nfs:
        port = _tunnel_port(facts, target)
        if port is not None and state.listening is not None and port not in state.listening:
            yield Fault(
                target.subject,
                f"nothing listens on 127.0.0.1:{port}, the address of the mount's TLS tunnel: every access "
                "waits",
                observed=f"no listener on TCP port {port}",
                expected="a running stunnel",
                remedy=f"{unmask(facts, state.watchdog, WATCHDOG)}sudo systemctl restart {WATCHDOG}, which "
                f"starts the tunnel within seconds; else {mount_again(target)}; see "
                "/opt/microsoft/aznfs/data/aznfs.log",
            )
        elif stopped and (port is not None or _asks_watchdog(target)):
            hurts = "a tunnel that dies stays dead" if port is not None else "mount.aznfs refuses to mount"
            yield Fault(
                target.subject,
                f"aznfswatchdogv4.service is not running: without it {hurts}",
                observed="inactive",
                expected="active",
                remedy=enable(facts, state.watchdog, WATCHDOG),
            )


@rule("NFS407", "tls-mixed", ERROR, source=Manual.TLS)
def mixed(facts: Facts) -> Iterator[Fault]:
    """Yield TLS mounts that share a clear mount's connections, and clear mounts of an endpoint with TLS.

    A line that was changed and its mount, which is still as before, are no mix; nor are a line and a mount
    that a proposal replaces.
    """
    yield from _in_the_clear(facts)
    answers, after = facts.network.by_name, replaced(facts)
    clear: list[Target] = []
    encrypted: dict[str, list[Target]] = {}
    for target in facts.nfs:
        if _tunnel_port(facts, target) is not None or _asks_tls(target):
            for place in _places(answers, target):
                encrypted.setdefault(place, []).append(target)
        # The kernel may send a clear mount over a tunnel's connections only with NFS 4.1.
        elif (
            not _asked_for_tunnel(target)
            and not _is_refused(target)
            and nfs_version(target.fstype, target.options) in {None, (4, None), (4, 1)}
        ):
            clear.append(target)
    for target in clear:
        both = (
            (place, tunnelled) for place in _places(answers, target) for tunnelled in encrypted.get(place, ())
        )
        place, other = next((pair for pair in both if _meet(target, pair[1], after)), ("", None))
        if other is None:
            continue
        yield Fault(
            target.subject,
            f"the mount asks for no TLS and {other.subject} does, and both use the endpoint {place}: they "
            "share the connections of the first mount, and the mount helper refuses the second",
            observed=f"{target.subject} clear, {other.subject} TLS",
            expected="one mode for an endpoint",
            remedy=f"mount both with -t {AZNFS} and without notls, or both with notls; with notls, the "
            "option clean removes the remains of a TLS mount",
        )


def _in_the_clear(facts: Facts) -> Iterator[Fault]:
    """Yield mounts of a tunnel that the kernel sends past it.

    The tunnel and the server's own address are one NFSv4.1 server, and the first mount's connections serve
    both: a mount of 127.0.0.1 then shows the server's address as its own.
    """
    for target in facts.nfs:
        address = target.live.options.get("addr") if target.live is not None else None
        if address is None or is_loopback(address) or not _asked_for_tunnel(target):
            continue
        yield Fault(
            target.subject,
            f"the mount asks for a TLS tunnel and goes to {address} in the clear: a clear mount of the "
            "same server came first, and the kernel sends both over its connections",
            observed=f"source {target.source}, addr={address}",
            expected="addr=127.0.0.1",
            remedy=f"end every clear mount of {address}, then "
            + mount_again(target, f" and mount it again with -t {AZNFS} and without notls"),
        )


def _asked_for_tunnel(target: Target) -> bool:
    """Whether the source of a live mount is a tunnel's end on this machine."""
    local = is_loopback(split_source(target.source)[0])
    return target.live is not None and local and target.live.options.number("port") in TUNNEL_PORTS


def _is_refused(target: Target) -> bool:
    """Whether mount.aznfs refuses a line without notls for its version (NFS301)."""
    if target.live is not None or target.request is None or target.request.fstype != AZNFS:
        return False
    asked = parse_options(target.request.options)
    return "notls" not in asked and aznfs_version(asked) not in {"3", "4.1"}


def _meet(mount: Target, other: Target, after: Container[Identity]) -> bool:
    """Whether two mounts will be there at one time; `after` has the mounts that a proposal replaces."""
    live = [target.identity for target in (mount, other) if target.live is not None]
    before_and_after = len(live) == 1 and live[0] in after
    groups = {target.request.group for target in (mount, other) if target.request is not None}
    return mount.point != other.point and not before_and_after and len(groups) <= 1


@rule("NFS409", "tls-wrong-cloud", WARNING, needs=(HOST,), source=Manual.TLS)
def wrong_cloud(facts: Facts) -> Iterator[Fault]:
    """Yield TLS mounts for which the helper's endpoint override is missing, or is another cloud's."""
    for target in facts.nfs:
        if target.request is None or target.request.wildcard or not target.request.wants_tunnel:
            continue
        host, override = plain(split_source(target.request.source)[0]), _override(facts, target.request)
        value = override.value if override else ""
        suffix = ""
        if names_azure_files(facts, host):
            suffix = host.partition(".core.")[2] or _PUBLIC_CLOUD
        fits = suffix in {"", value} if value else suffix == _PUBLIC_CLOUD
        # The effect of an override on the public cloud's zones and previews is not known.
        special = suffix == _PUBLIC_CLOUD and not host.endswith(f".file.core.{_PUBLIC_CLOUD}")
        unknown = not suffix and has_placeholder(host)
        if fits or special or unknown or as_address(host) is not None:
            continue
        wanted = suffix or _PUBLIC_CLOUD
        logins = any(known.scope == LOGINS for known in facts.system.tls.overrides)
        unset = "not set outside of logins (/etc/environment)" if logins else "not set"
        yield Fault(
            target.subject,
            f"{host} is {'a name of the cloud ' + suffix if suffix else 'not a name of Azure Files'}, and "
            f"{_OVERRIDE} is {value or unset}: the mount helper may compare the server's certificate with "
            f"{'that' if value else 'the public'} cloud's name, and the TLS connection then fails",
            observed=f"{value} in {override.file}" if override else unset,
            expected=f"{_OVERRIDE}={wanted}" + ("" if suffix else ", or the suffix of the account's cloud"),
            remedy=_corrected(override, target.request, f"{_OVERRIDE}={wanted}", image=facts.image),
        )


def _override(facts: Facts, request: Request) -> Override | None:
    """Return the override that counts for a mount: its own before those for all mounts."""
    name, overrides = unit_name(request.point), facts.system.tls.overrides
    special = {*_own(request), *(() if request.maker is Maker.AUTOFS else drop_in_folders(name))}
    if request.by_hand:
        special.add(LOGINS)
    mine = (override for override in overrides if override.scope in special)
    # Of drop-ins with one name systemd reads the strongest alone, also where the variable is not in it.
    read = {posixpath.basename(override.file): override for override in mine}.values()
    counting = [override for override in read if override.value] or [
        override for override in overrides if not override.scope
    ]
    return counting[-1] if counting else None


def _own(request: Request) -> tuple[str, ...]:
    """Return the scopes of one mount's own environment; automount has one environment for all its mounts."""
    name = unit_name(request.point)
    return (AUTOFS,) if request.maker is Maker.AUTOFS else (name, f"{name}.d")


def _corrected(override: Override | None, request: Request, wanted: str, *, image: bool) -> str:
    """Return how to give a mount its override; other mounts may need the present value."""
    autofs = request.maker is Maker.AUTOFS
    restart = "systemctl restart autofs"
    if override is not None and override.scope in _own(request):
        programs = f"{RELOAD_UNITS} and sudo {restart}" if autofs else RELOAD_UNITS
        return f"set {wanted} in {override.file}{then_sudo(programs, image=image)}"
    if autofs:
        place = "/etc/default/autofs (Debian) or /etc/sysconfig/autofs"
        return f"write {wanted} to {place}{then_sudo(restart, image=image)}"
    file = name_after("aznfs.conf", posixpath.basename(override.file) if override and override.scope else "")
    if override is None:
        for_all = (
            f"if all TLS mounts need it, write [Manager] and DefaultEnvironment={wanted} to "
            "/etc/systemd/system.conf.d/aznfs.conf" + then_sudo("systemctl daemon-reexec", image=image)
        )
    else:
        place = "the kernel command line" if override.file == "/proc/cmdline" else override.file
        for_all = f"if no mount needs the value in {place}, set it there"
    return (
        f"write [Mount] and Environment={wanted} to /etc/systemd/system/"
        f"{quote(unit_name(request.point))}.d/{file} for this mount alone"
        f"{then_sudo(RELOAD_UNITS, image=image)}; or, {for_all}; export it before a mount by hand"
    )


def _tunnel_port(facts: Facts, target: Target) -> int | None:
    """Return the local port of a live TLS mount of Azure Files; None for every other mount.

    A tunnel without a configuration, which AZNFS's watchdog removes after a change by hand, has no provider.
    It is taken for AZNFS's where that is installed.
    """
    if target.live is None:
        return None
    options, place = target.live.options, target.endpoint
    port = options.number("port")
    if port not in TUNNEL_PORTS or not is_loopback(options.get("addr")):
        return None
    lost = is_loopback(place.address) and facts.system.tls.watchdog.installed
    return port if place.provider == AZURE_FILES or lost else None


def _asks_watchdog(target: Target) -> bool:
    """Whether a future mount needs the watchdog."""
    return target.live is None and target.request is not None and target.request.wants_watchdog


def _asks_tls(target: Target) -> bool:
    """Whether a future mount will have TLS."""
    return target.live is None and target.request is not None and target.request.wants_tunnel


def _places(answers: Mapping[str, Answer], target: Target) -> tuple[str, ...]:
    """Return the addresses and the name of a mount's endpoint; endpoints with one in common are the same."""
    place = target.endpoint
    answer = answers.get(place.host)
    known = (place.address,) if place.address is not None else answer.addresses if answer else ()
    addresses = (str(as_address(text) or text) for text in (*known, place.host))
    return tuple(text for text in addresses if not is_loopback(text))
