"""Host names to addresses, with the aliases on the way: what getaddrinfo(3) finds and never tells how."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import StringIO
from ipaddress import ip_address
from typing import TYPE_CHECKING

from nfstuned.host.parallel import parallel
from nfstuned.host.root import Root
from nfstuned.model.facts import Answer
from nfstuned.parse.resolver import name_server_lines, parse_hosts, parse_sources

if TYPE_CHECKING:
    from dns.message import QueryMessage
    from dns.resolver import Resolver

DEADLINE_S = 3.0
DNS_PORT = 53
TYPES = ("A", "AAAA")
_NO_ADDRESS, _NO_NAME = "no A or AAAA record", "NXDOMAIN"


@dataclass(frozen=True, slots=True)
class _Found:
    """What one source says of one name."""

    addresses: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    error: str = ""
    final: bool = True


def resolve(
    root: Root, names: Sequence[str], seconds: float = DEADLINE_S, port: int = DNS_PORT
) -> tuple[Answer, ...]:
    """Return an answer for each name, after `seconds` at the latest, whatever the name servers do.

    /etc/hosts and DNS are asked as /etc/nsswitch.conf says. A name that another source there might know
    (LDAP, multicast DNS) gets no final verdict.
    """
    sources = parse_sources(root.read_or_empty("etc/nsswitch.conf"))
    known = parse_hosts(root.read_or_empty("etc/hosts"))
    before_dns = sources[: sources.index("dns")] if "dns" in sources else ()
    asked = [name for name in names if "files" not in before_dns or name not in known]
    told = _ask_dns(root, asked, seconds, port) if "dns" in sources and asked else {}
    return tuple(_answer(name, sources, known, told) for name in names)


def _answer(
    name: str, sources: tuple[str, ...], known: Mapping[str, tuple[str, ...]], told: Mapping[str, _Found]
) -> Answer:
    """Return the first source's answer that has addresses, else why there is none."""
    found = _Found(error="not in /etc/hosts, and nsswitch.conf leaves DNS out")
    for source in sources:
        if source == "files" and name in known:
            return Answer(name, known[name])
        if source == "dns" and name in told:
            found = told[name]
            if found.addresses:
                break
    others = [source for source in sources if not _knows_nothing(source, name)]
    if found.addresses or not others:
        return Answer(name, found.addresses, found.chain, found.error, found.final)
    return Answer(name, (), found.chain, f"{found.error}; not asked: {', '.join(others)}", final=False)


def _knows_nothing(source: str, name: str) -> bool:
    """Return whether a source was asked, or cannot know a file server's name."""
    if source == "resolve":  # short names may be known to the neighbours (LLMNR)
        return "." in name and not name.endswith(".local")
    if source.endswith("_minimal"):
        return not name.endswith(".local")
    return source in ("files", "dns", "myhostname")


def _ask_dns(root: Root, names: Sequence[str], seconds: float, port: int) -> dict[str, _Found]:
    resolver = _resolver(root.read_or_empty("etc/resolv.conf"), seconds, port)
    end = time.monotonic() + seconds
    jobs: dict[tuple[str, str], Callable[[], _Found]] = {
        (name, kind): partial(_query, resolver, name, kind, end) for name in names for kind in TYPES
    }
    found = parallel(jobs, seconds)
    late = _Found(error=f"no answer within {seconds:g} s", final=False)
    return {name: _join([found.get((name, kind), late) for kind in TYPES], late) for name in names}


def _resolver(text: str, seconds: float, port: int) -> Resolver:
    """Return what asks the name servers of resolv.conf; without any it is this machine, as for glibc."""
    import dns.resolver  # noqa: PLC0415 - 100 ms that only a check with names pays

    resolver = dns.resolver.Resolver(configure=False)
    text = name_server_lines(text)
    try:
        resolver.read_resolv_conf(StringIO(text))
    except dns.resolver.NoResolverConfiguration:
        resolver.nameservers = ["127.0.0.1"]
    except dns.exception.DNSException:  # a search domain that is none
        lines = [line for line in text.split("\n") if line.startswith("nameserver")]
        resolver.read_resolv_conf(StringIO("\n".join(lines) or "nameserver 127.0.0.1"))
    resolver.port = port
    # Each server gets its turn before the deadline, also behind one that is dead.
    resolver.timeout = min(resolver.timeout, seconds / (len(resolver.nameservers) + 1))
    return resolver


def _query(resolver: Resolver, name: str, kind: str, end: float) -> _Found:
    """Return one record type of one name; never raises."""
    import dns.exception  # noqa: PLC0415 - as above
    import dns.name  # noqa: PLC0415
    import dns.resolver  # noqa: PLC0415

    try:
        asked = dns.name.from_text(name, origin=None)
    except (dns.exception.DNSException, UnicodeError) as error:
        return _Found(error=f"not a host name: {error}")
    try:
        left = max(end - time.monotonic(), 0.001)
        answer = resolver.resolve(asked, kind, lifetime=left, search=True, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN as error:
        chains = [_chain(response) for response in error.kwargs["responses"].values()]
        return _Found(chain=max(chains, key=len), error=_NO_NAME)
    except dns.exception.Timeout:
        return _Found(error="", final=False)
    except dns.exception.DNSException as error:
        return _Found(error=str(error).partition(": ")[2] or str(error), final=False)
    # Name servers rotate them; a check that is run twice should say the same twice.
    addresses = tuple(sorted((record.to_text() for record in answer.rrset or ()), key=ip_address))
    return _Found(addresses, _chain(answer.response), "" if addresses else _NO_ADDRESS)


def _chain(message: QueryMessage) -> tuple[str, ...]:
    """Return the names that the CNAME records of an answer lead through."""
    import dns.exception  # noqa: PLC0415 - as above

    try:
        aliases = message.resolve_chaining().cnames
    except dns.exception.DNSException:  # a loop, or an address beside "no such name"
        return ()
    return tuple(alias[0].target.to_text(omit_final_dot=True).lower() for alias in aliases)


def _join(found: Sequence[_Found], late: _Found) -> _Found:
    """Return what the record types say together: any address counts; a name that is not has no types."""
    addresses = tuple(address for one in found for address in one.addresses)
    chain = max((one.chain for one in found), key=len)
    if addresses:
        return _Found(addresses, chain)
    verdicts = [one.error for one in found if one.final]
    if len(verdicts) == len(found) or _NO_NAME in verdicts:
        return _Found((), chain, next((error for error in verdicts if error != _NO_ADDRESS), _NO_ADDRESS))
    error = next(one.error for one in found if not one.final)
    return _Found((), chain, error or late.error, final=False)
