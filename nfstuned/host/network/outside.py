"""The world beyond files: name servers, ports, routes, Azure, systemd and the clock, asked or given."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from nfstuned.host.root import Root
from nfstuned.host.tools import last_server_message, observe_states, with_failure_reasons
from nfstuned.model.mounts import UnitState
from nfstuned.model.system import Answer, Network, Reach, is_address


class Questions(NamedTuple):
    """The questions of a check to the network."""

    names: tuple[str, ...] = ()
    """Host names to resolve, addresses excluded."""
    servers: tuple[tuple[str, int], ...] = ()
    """Host names or addresses, and the TCP port that must open there."""
    addresses: tuple[str, ...] = ()
    """The addresses of live mounts: their routes and interfaces are looked up."""
    azure: bool = False
    """The machine is an Azure VM: its metadata service may be asked for the VM's size."""
    links: bool = True
    """Whether the routes and the interfaces of this machine are looked up."""


class Outside(Protocol):
    """The world beyond files. Tests answer for it; everything else in a check is files."""

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Return the answers, and a line for each open question; `offline` asks this machine only.

        It returns within a few seconds whatever the network does.
        """

    def pause(self, seconds: float) -> float:
        """Let time pass between two looks; return how many seconds did, with those of a suspended machine."""

    def now(self) -> float:
        """Return the time, in Unix seconds."""

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        """Return systemd's states of units; none without systemd."""

    def failure_reasons(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Return the states with the last messages of failed units, where these are known."""

    def kernel_message(self) -> str:
        """Return the kernel's last message about a server's answers; "" where it cannot be read."""


METADATA_URL = "http://169.254.169.254/metadata/instance/compute/vmSize?api-version=2021-02-01&format=text"
METADATA_S = 1.0
_SIZE = re.compile(r"[A-Za-z0-9_-]{1,64}")


def vm_size(url: str = METADATA_URL, seconds: float = METADATA_S) -> tuple[str | None, str]:
    """Return the VM's size ("Standard_D16_v4"), and why it could not be learned. It uses no proxy.

    The service answers on the machine's own host; its address is link-local and leaves no subnet.
    """
    from nfstuned.host.network.names import parallel  # noqa: PLC0415 - only an Azure VM asks

    answers = parallel({"size": lambda: _asked_size(url, seconds)}, seconds)
    size, problem = answers.get("size", (None, f"no answer within {seconds:g} s"))
    return size, f"VM size from Azure's metadata service: {problem}" if problem else ""


def _asked_size(url: str, seconds: float) -> tuple[str | None, str]:
    """Return the size, or None and why the service gave none."""
    # 30 ms that only an Azure VM pays.
    import http.client  # noqa: PLC0415
    from urllib.parse import urlsplit  # noqa: PLC0415

    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=seconds)
    try:
        connection.request("GET", f"{where.path}?{where.query}", headers={"Metadata": "true"})
        answer = connection.getresponse()
        text = answer.read(256).decode("ascii", "replace").strip()
    except TimeoutError:  # either deadline may be the first to end
        return None, f"no answer within {seconds:g} s"
    except (OSError, http.client.HTTPException) as error:
        return None, str(error) or type(error).__name__
    finally:
        connection.close()
    if answer.status != http.HTTPStatus.OK:
        return None, f"status {answer.status}"
    return (text, "") if _SIZE.fullmatch(text) else (None, f"not a size: {text[:64]!r}")


if TYPE_CHECKING:
    from nfstuned.host.network.reach import Place


class _Clock:
    """The time of this machine."""

    __slots__ = ()

    def pause(self, seconds: float) -> float:
        """Sleep; return how long it was: more than `seconds` where the machine is busy or was suspended."""
        begun = time.clock_gettime(time.CLOCK_BOOTTIME)
        time.sleep(seconds)
        return time.clock_gettime(time.CLOCK_BOOTTIME) - begun

    def now(self) -> float:
        """Return the time, in Unix seconds."""
        return time.time()


@dataclass(frozen=True, slots=True)
class LiveOutside(_Clock):
    """The network of this machine. The worst case is the sum of the deadlines: 3, 2 and 1 s."""

    root: Root
    """Where the resolver's files and the devices are."""
    metadata: str | None = None
    """The address of Azure's metadata service; None for its own."""
    dns_port: int | None = None
    """None for DNS's own."""

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Return the answers, and a line for each open question; `offline` asks the kernel only."""
        # A check of an image asks nothing, one without a network asks the kernel: neither loads the others.
        from nfstuned.host.network.links import observe_links  # noqa: PLC0415

        if offline:
            links = observe_links(self.root, _addresses(questions, ()))
            return Network(routes=links.routes, interfaces=links.interfaces), links.unknown
        from nfstuned.host.network.names import DNS_PORT, resolve  # noqa: PLC0415
        from nfstuned.host.network.reach import reach  # noqa: PLC0415

        answers = resolve(self.root, questions.names, port=self.dns_port or DNS_PORT)
        links = observe_links(self.root, _addresses(questions, answers) if questions.links else ())
        groups = _places(questions, answers)
        reaches = reach(tuple(groups.values()))
        size, silent = vm_size(self.metadata or METADATA_URL) if questions.azure else (None, "")
        unknown = (*_unresolved(answers), *_untried(groups, reaches), *links.unknown, *filter(None, [silent]))
        return Network(answers, reaches, links.routes, links.interfaces, size), unknown

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        """Return systemd's states of units."""
        return observe_states(names) if self.root.prefix == "/" else {}

    def failure_reasons(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Return the states with the last messages of failed units, from the journal."""
        return with_failure_reasons(states)

    def kernel_message(self) -> str:
        """Return the kernel's last message about a server's answers, from the journal."""
        return last_server_message() if self.root.prefix == "/" else ""


@dataclass(frozen=True, slots=True)
class FixedOutside(_Clock):
    """A network with given answers: nobody is asked, but time passes."""

    network: Network

    def ask(self, questions: Questions, *, offline: bool) -> tuple[Network, tuple[str, ...]]:
        """Return the given network, and a line for each question that it leaves open."""
        if offline:
            return Network(routes=self.network.routes, interfaces=self.network.interfaces), ()
        answers = self.network.answers
        known = {answer.host for answer in answers}
        unanswered = (f"{name}: no answer" for name in questions.names if name not in known)
        untried = _untried(_places(questions, answers), self.network.reaches)
        return self.network, (*_unresolved(answers), *unanswered, *untried)

    def units(self, names: Sequence[str]) -> Mapping[str, UnitState]:
        """Return nothing: no unit is given."""
        del names
        return {}

    def failure_reasons(self, states: Mapping[str, UnitState]) -> Mapping[str, UnitState]:
        """Return the states as they are: no journal is given."""
        return states

    def kernel_message(self) -> str:
        """Return nothing: no journal is given."""
        return ""


def _unresolved(answers: Iterable[Answer]) -> Iterator[str]:
    """Name each host that the resolver could not be asked about, and why."""
    return (f"{answer.host}: {answer.error}" for answer in answers if answer.error and not answer.final)


def _untried(groups: Mapping[Place, tuple[Place, ...]], reaches: Iterable[Reach]) -> Iterator[str]:
    """Name each server without an address to which a connection was tried."""
    tried = {(reach.address, reach.port) for reach in reaches}
    return (
        f"{host} port {port}: not tried"
        for (host, port), places in groups.items()
        if tried.isdisjoint(places)
    )


def _addresses(questions: Questions, answers: Iterable[Answer]) -> tuple[str, ...]:
    """Return every address that needs a route, once."""
    given = (host for host, _ in questions.servers if is_address(host))
    named = (address for answer in answers for address in answer.addresses)
    return tuple(dict.fromkeys((*questions.addresses, *given, *named)))


def _places(questions: Questions, answers: Iterable[Answer]) -> Mapping[Place, tuple[Place, ...]]:
    """Return each server's addresses and port; a server without an address is left out."""
    known = {answer.host: answer.addresses for answer in answers}
    places: dict[Place, tuple[Place, ...]] = {}
    for host, port in questions.servers:
        addresses = (host,) if is_address(host) else known.get(host, ())
        if addresses:
            places[host, port] = tuple((address, port) for address in addresses)
    return places
