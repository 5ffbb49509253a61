from __future__ import annotations

from nfstuned.core.samples.growth import sends_between
from nfstuned.model.kernel import MountStats, Transport
from nfstuned.model.samples import Counted, Look
from tests.core.written import cut


def look(*sends: int, device: str = "0:46", bdi: int | None = 7) -> Look:
    transports = tuple(Transport("tcp", None, 1, 0, count, count, 0, count, 0) for count in sends)
    stats = MountStats("nas:/a", "/a", "nfs4", "1.1", transports=transports)
    (stanza,) = cut(stats)
    return Look(0.0, 0.0, (Counted(device, bdi, ("/a",), "nas:/a", "v4.1 tcp 10.0.0.5:2049", stanza),))


def test_each_connection_has_what_it_sent_in_between() -> None:
    assert sends_between(look(5, 7, 9), look(6, 7, 30)) == {"0:46": (1, 0, 21)}


def test_connections_that_came_went_or_began_anew_tell_nothing() -> None:
    assert sends_between(look(5, 7), look(6, 7, 30)) == {}
    assert sends_between(look(5, 7), look(6, 2)) == {}
    assert sends_between(look(), look()) == {}


def test_the_same_number_of_another_superblock_tells_nothing() -> None:
    assert sends_between(look(5), look(6, bdi=8)) == {}
    assert sends_between(look(5), look(6, device="0:47")) == {}
