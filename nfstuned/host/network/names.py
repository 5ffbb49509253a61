"""Host names to addresses by hosts(5), nsswitch.conf(5) and DNS, with the aliases on the way.

getaddrinfo(3) does not show these.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from nfstuned.host.root import Root
from nfstuned.model.system import Answer, is_address

if TYPE_CHECKING:
    from dns.message import QueryMessage
    from dns.name import Name
    from dns.resolver import Resolver

THREADS = 128
"""Names that never answer hold their threads until the deadline; the others must not wait for them."""
SOURCES = ("files", "dns")
"""The sources that glibc asks where nsswitch.conf names none."""
_MOST_SERVERS = 3
_HOSTS_LINE = r"(?m)^[ \t]*hosts:([^#\n]*)"
# The actions after a source, "[...]", or the name of a source.
_TOKEN = r"\[[^\]]*\]|[^\s\[\]]+"  # noqa: S105 - no password
_ACTION = r"(!?)\s*(\w+)\s*=\s*(\w+)"

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


def parallel(jobs: Mapping[Key, Callable[[], Value]], seconds: float) -> dict[Key, Value]:
    """Return the results of the jobs that ended within `seconds`. A job must not raise.

    The threads are daemons: a thread that still waits for the network does not keep the process alive.
    """
    end = time.monotonic() + seconds
    waiting: SimpleQueue[Key] = SimpleQueue()
    done: SimpleQueue[tuple[Key, Value]] = SimpleQueue()
    for key in jobs:
        waiting.put(key)

    def work() -> None:
        while time.monotonic() < end:
            try:
                key = waiting.get_nowait()
            except Empty:
                return
            done.put((key, jobs[key]()))

    for started in range(min(len(jobs), THREADS)):
        try:
            Thread(target=work, daemon=True).start()
        except RuntimeError:  # noqa: PERF203 - no more threads are allowed: those that run do the work
            if started == 0:
                work()
            break
    results: dict[Key, Value] = {}
    while len(results) < len(jobs):
        try:
            key, value = done.get(timeout=max(end - time.monotonic(), 0))
        except Empty:
            break
        results[key] = value
    return results


DEADLINE_S = 3.0
DNS_PORT = 53
TYPES = ("A", "AAAA")
_NO_ADDRESS, _NO_NAME, _SERVFAIL = "no A or AAAA record", "NXDOMAIN", "SERVFAIL"
_IN_TIME = 0.9
_SYSTEMD = frozenset({"myhostname", "resolve"})
_LOOPBACK = ("127.0.0.1", "::1")
_STUBS = frozenset({"127.0.0.53", "127.0.0.54"})
"""Where systemd-resolved listens as a name server."""


@dataclass(frozen=True, slots=True)
class _Names:
    """The answer of a source about a name; another source may know more unless it is `final`."""

    addresses: tuple[str, ...] = ()
    chain: tuple[str, ...] = ()
    error: str = ""
    final: bool = True


def resolve(
    root: Root, names: Sequence[str], seconds: float = DEADLINE_S, port: int = DNS_PORT
) -> tuple[Answer, ...]:
    """Return an answer for each name, after `seconds` at the latest, whatever the name servers do.

    /etc/hosts and DNS are asked as /etc/nsswitch.conf says. A name that another source there might know
    (LDAP, multicast DNS) gets no final verdict. DNS is not asked about names that systemd itself answers.
    """
    sources = parse_sources(root.read_or_empty("etc/nsswitch.conf"))
    known = parse_hosts(root.read_or_empty("etc/hosts"))
    others = [name for name in names if "files" not in sources or name not in known]
    own = _by_systemd(root, others) if _SYSTEMD.intersection(sources) else {}
    before_dns = sources[: sources.index("dns")] if "dns" in sources else ()
    asked = [name for name in names if name not in own and ("files" not in before_dns or name not in known)]
    from_dns = _ask_dns(root, asked, seconds, port) if "dns" in sources and asked else {}
    # nss-resolve(8) asks systemd-resolved itself, which may know other servers for a domain.
    servers = parse_name_servers(root.read_or_empty("etc/resolv.conf")) if "resolve" in sources else ()
    if not _STUBS.issuperset(servers) and root.names("run/systemd/resolve"):
        sources = tuple("systemd-resolved" if source == "resolve" else source for source in sources)
    return tuple(own.get(name) or _answer(name, sources, known, from_dns) for name in names)


def from_hosts(root: Root, names: Sequence[str]) -> tuple[Answer, ...]:
    """Return the answer of /etc/hosts for each name where no name server can be asked, as in an image.

    The file counts where /etc/nsswitch.conf names it before DNS.
    """
    sources = parse_sources(root.read_or_empty("etc/nsswitch.conf"))
    before_dns = sources[: sources.index("dns")] if "dns" in sources else sources
    known = parse_hosts(root.read_or_empty("etc/hosts")) if "files" in before_dns else {}
    why = "not in /etc/hosts" if "files" in before_dns else "/etc/hosts is not asked before DNS"
    unasked = Answer("", error=f"{why}, and an image is in no network")
    return tuple(
        Answer(name, known[name]) if name in known else unasked._replace(host=name) for name in names
    )


def _by_systemd(root: Root, names: Sequence[str]) -> dict[str, Answer]:
    """Return the answers for names that systemd knows by itself (nss-myhostname(8), nss-resolve(8)).

    Which addresses this host and its gateway have is not looked for.
    """
    hostname = root.read_or_empty("proc/sys/kernel/hostname").strip().lower()
    answers: dict[str, Answer] = {}
    for name in names:
        if f".{name.removesuffix('.localdomain')}".endswith(".localhost"):
            answers[name] = Answer(name, _LOOPBACK)
        elif name in {hostname or "_gateway", "_gateway", "_outbound"}:
            answers[name] = Answer(name, error="systemd answers for it, and was not asked", final=False)
    return answers


def _answer(
    name: str, sources: tuple[str, ...], known: Mapping[str, tuple[str, ...]], from_dns: Mapping[str, _Names]
) -> Answer:
    """Return the first source's answer that has addresses, else the reason for having none."""
    why = "not in /etc/hosts, and nsswitch.conf leaves DNS out"
    best = _Names(error=why if "files" in sources else "nsswitch.conf leaves /etc/hosts and DNS out")
    for source in sources:
        if source == "files" and name in known:
            return Answer(name, known[name])
        if source == "dns" and name in from_dns:
            best = from_dns[name]
            if best.addresses:
                break
    others = [source for source in sources if not _adds_nothing(source, name)]
    if best.addresses or not others:
        return Answer(name, best.addresses, best.chain, best.error, best.final)
    return Answer(name, (), best.chain, f"{best.error}; not asked: {', '.join(others)}", final=False)


def _adds_nothing(source: str, name: str) -> bool:
    """Return whether a source was asked already, or cannot know a file server's name."""
    if source == "resolve":  # short names may be known to the neighbours (LLMNR)
        return "." in name and not name.endswith(".local")
    if source.endswith("_minimal"):
        return not name.endswith(".local")
    return source in ("files", "dns", "myhostname")


def _ask_dns(root: Root, names: Sequence[str], seconds: float, port: int) -> dict[str, _Names]:
    """Return the answers of resolv.conf's name servers; without any, this machine is asked, as by glibc."""
    import dns.resolver  # noqa: PLC0415 - 100 ms that only a check with names pays

    text = name_server_lines(root.read_or_empty("etc/resolv.conf"))
    resolver = dns.resolver.Resolver(configure=False)
    try:
        resolver.read_resolv_conf(StringIO(text))
    except dns.resolver.NoResolverConfiguration:
        resolver.nameservers = ["127.0.0.1"]
    except dns.exception.DNSException:  # an invalid search domain
        lines = [line for line in text.split("\n") if line.startswith("nameserver")]
        resolver.read_resolv_conf(StringIO("\n".join(lines) or "nameserver 127.0.0.1"))
    # The kernel connects to this machine then; dnspython waits for an answer from that address itself.
    own = {"0.0.0.0": _LOOPBACK[0], "::": _LOOPBACK[1]}  # noqa: S104 - nothing is bound
    resolver.nameservers = [own.get(str(server), str(server)) for server in resolver.nameservers]
    resolver.port = port
    # Each server gets its turn before the deadline, also behind a dead server. glibc waits for a second where
    # the file says less (send_dg in resolv/res_send.c).
    resolver.timeout = min(max(resolver.timeout, 1), seconds / (len(resolver.nameservers) + 1))
    late = _Names(error=f"no answer within {seconds:g} s", final=False)
    # The answer of a record type counts also where the other has none: it must arrive in time.
    end = time.monotonic() + seconds * _IN_TIME
    results = parallel({name: partial(_search, resolver, name, end, late) for name in names}, seconds)
    return {name: results.get(name, late) for name in names}


def _search(resolver: Resolver, name: str, end: float, late: _Names) -> _Names:
    """Return the addresses that glibc gets by its search list (__res_context_search in resolv/res_query.c).

    The next candidate is tried after NXDOMAIN, an answer without an address, and SERVFAIL. After any other
    failure only the name as it is written is still tried. Never raises.
    """
    import dns.exception  # noqa: PLC0415 - as above
    import dns.name  # noqa: PLC0415

    try:
        written = dns.name.from_text(name, origin=None)
        candidates = _candidates(resolver, written)
    except (dns.exception.DNSException, UnicodeError) as error:
        return _Names(error=f"not a host name: {error}")
    as_written, tried = written.derelativize(dns.name.root), list[_Names]()
    for candidate in candidates:
        if all(names.final or _SERVFAIL in names.error for names in tried) or candidate == as_written:
            tried.append(_query_both(resolver, candidate, end, late))
            if tried[-1].addresses:
                return tried[-1]
    # No candidate has an address: the reason is glibc's, and a doubt about any of them is a doubt.
    chain = max((names.chain for names in tried), key=len)
    doubt = next((names for names in tried if not names.final), None)
    if doubt is not None:
        return replace(doubt, chain=chain)
    empty = next((names for names in tried if names.error == _NO_ADDRESS), tried[-1])
    return replace(tried[0] if candidates[0] == as_written else empty, chain=chain)


def _candidates(resolver: Resolver, written: Name) -> list[Name]:
    """Return the names that a name stands for, in their order: with enough dots as it is written first."""
    import dns.exception  # noqa: PLC0415 - as above
    import dns.name  # noqa: PLC0415

    as_written = written.derelativize(dns.name.root)
    if written.is_absolute():
        return [as_written]
    candidates: dict[Name, None] = {}
    if len(written) > (1 if resolver.ndots is None else resolver.ndots):
        candidates[as_written] = None
    for domain in resolver.search or [resolver.domain]:
        with suppress(dns.exception.DNSException):  # too long together
            candidates[written.derelativize(domain)] = None
    return list(candidates | {as_written: None})


def _query_both(resolver: Resolver, name: Name, end: float, late: _Names) -> _Names:
    """Return the records of both types of a name; glibc asks for them at the same time.

    An address of either type counts. NXDOMAIN for a type is the answer for both.
    """
    jobs = {kind: partial(_query, resolver, name, kind, end) for kind in TYPES}
    results = parallel(jobs, max(end - time.monotonic(), 0))
    said = [results.get(kind, late) for kind in TYPES]
    addresses = tuple(address for names in said for address in names.addresses)
    chain = max((names.chain for names in said), key=len)
    if addresses:
        return _Names(addresses, chain)
    verdicts = [names.error for names in said if names.final]
    if len(verdicts) == len(said) or _NO_NAME in verdicts:
        return _Names((), chain, next((error for error in verdicts if error != _NO_ADDRESS), _NO_ADDRESS))
    error = next(names.error for names in said if not names.final)
    return _Names((), chain, error or late.error, final=False)


def _query(resolver: Resolver, name: Name, kind: str, end: float) -> _Names:
    """Return the records of a type of a name; never raises."""
    import dns.exception  # noqa: PLC0415 - as above
    import dns.flags  # noqa: PLC0415
    import dns.resolver  # noqa: PLC0415

    try:
        left = max(end - time.monotonic(), 0.001)
        answer = resolver.resolve(name, kind, lifetime=left, raise_on_no_answer=False)
    except dns.resolver.NXDOMAIN as error:
        chains = [_chain(response) for response in error.kwargs["responses"].values()]
        return _Names(chain=max(chains, key=len), error=_NO_NAME)
    except dns.exception.Timeout:
        return _Names(error="", final=False)
    except dns.exception.DNSException as error:
        return _Names(error=str(error).partition(": ")[2] or str(error), final=False)
    response = answer.response
    if not (response.answer or response.additional or response.flags & (dns.flags.AA | dns.flags.RA)):
        # A server that neither has the zone nor asks others: glibc goes on to the next (resolv/res_send.c).
        return _Names(error="the name server has no answer of its own and asks no other server", final=False)
    # Name servers rotate them; a check that is run twice should say the same twice.
    addresses = tuple(sorted((record.to_text() for record in answer.rrset or ()), key=ip_address))
    return _Names(addresses, _chain(answer.response), "" if addresses else _NO_ADDRESS)


def _chain(message: QueryMessage) -> tuple[str, ...]:
    """Return the names that the CNAME records of an answer lead through."""
    import dns.exception  # noqa: PLC0415 - as above

    try:
        aliases = message.resolve_chaining().cnames
    except dns.exception.DNSException:  # a loop, or an address with "no such name"
        return ()
    return tuple(alias[0].target.to_text(omit_final_dot=True).lower() for alias in aliases)


def parse_hosts(text: str) -> Mapping[str, tuple[str, ...]]:
    """Return the addresses of each name, in the file's order; the names are in lower case.

    A line that does not begin with an address, or with one that has a scope, is skipped, as glibc does it.
    """
    hosts: dict[str, list[str]] = {}
    for line in text.split("\n"):
        address, *names = line.partition("#")[0].split() or [""]
        if not is_address(address) or "%" in address:
            continue
        for name in names:
            known = hosts.setdefault(name.lower(), [])
            if address not in known:
                known.append(address)
    return {name: tuple(addresses) for name, addresses in hosts.items()}


def parse_sources(text: str) -> tuple[str, ...]:
    """Return the sources that are asked for a host name, in order: "files", "dns", and others by their names.

    "resolve" (systemd-resolved) reads /etc/hosts and then asks DNS: "files" and "dns" stand before it. A
    source may end the search for names that it does not know; the sources after it are left out. As for
    glibc, the last `hosts:` line counts.
    """
    lines = re.findall(_HOSTS_LINE, text)
    if not lines:
        return SOURCES
    sources: dict[str, None] = {}
    last = ""
    for token in re.findall(_TOKEN, lines[-1]):
        if token.startswith("["):
            # mdns4_minimal knows .local names only: its NOTFOUND ends the search for no other name.
            if last in (*SOURCES, "resolve") and _ends_search(token):
                break
            continue
        last = token
        sources.update(dict.fromkeys((*SOURCES, token) if token == "resolve" else (token,)))  # noqa: S105 - no password
    return tuple(sources)


def _ends_search(actions: str) -> bool:
    """Return whether a source with these actions ends the search where it does not know the name."""
    ends = False
    for other, status, action in re.findall(_ACTION, actions.upper()):
        # !STATUS stands for every status but that one. glibc takes the actions in turn, so the last counts.
        if (status == "NOTFOUND") != bool(other):
            ends = action == "RETURN"
    return ends


def name_server_lines(text: str) -> str:
    """Return resolv.conf(5) without the `nameserver` lines that glibc skips.

    It skips those that are indented, hold no address, or follow the third (MAXNS in resolv.h).
    """
    lines, left = list[str](), _MOST_SERVERS
    for line in text.split("\n"):
        words = line.split()
        if words[:1] == ["nameserver"]:
            if line[0].isspace() or not is_address("".join(words[1:2])) or not left:
                continue
            left -= 1
        lines.append(line + "\n")
    return "".join(lines)


def parse_name_servers(text: str) -> tuple[str, ...]:
    """Return the addresses of the `nameserver` lines of resolv.conf(5)."""
    lines = (line.split() for line in name_server_lines(text).split("\n"))
    return tuple(words[1] for words in lines if words[:1] == ["nameserver"])
