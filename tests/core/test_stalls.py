"""A superblock is called stalled when a request of it waits for 15 s, and only then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timezone

from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.samples.history import History, Series
from nfstuned.core.samples.rates import make_look, rates
from nfstuned.core.samples.sample import stalled_percent
from nfstuned.core.samples.stalls import (
    RequestWatch,
    active_samples,
    follow,
    group_peer,
    group_server,
    has_answered,
    is_pending,
    may_wait,
    stalls,
)
from nfstuned.model.kernel import Stanza
from nfstuned.model.mounts import Snapshot
from nfstuned.model.samples import Counted, Look, Sample
from nfstuned.model.stalls import NOTHING_UNDER_WAY, Requests, RpcRequest, Stall
from nfstuned.view.history import history_lines
from nfstuned.view.report import mount_charts
from tests.core.counters import cut, stanza, tunnelled

V3, V40, V41, V42 = (f"{version} tcp 10.0.0.5:2049" for version in ("v3", "v4.0", "v4.1", "v4.2"))
WRITE = RpcRequest(7, 104, 0x660745A, "WRITE", "v4 10.0.0.5:2049")


def xprt(sends: int = 20, receives: int = 20, connects: int = 1, idle_s: int = 0, bad_xids: int = 0) -> bytes:
    return f"tcp 868 1 {connects} 0 {idle_s} {sends} {receives} {bad_xids} 20 0 2 0 0".encode()


def superblock(  # noqa: PLR0913 - what a test varies, each by its name
    device: str = "0:43",
    group: str = V41,
    *,
    transports: bytes | None = None,
    reads: int = 10,
    renewals: int = 1,
    refused: int = 0,
) -> Counted:
    operations = b"\tREAD: %d 10 0 1 2 3 4 5 %d\n\tSEQUENCE: %d 1 0 1 2 3 4 5 0" % (reads, refused, renewals)
    lines = xprt() if transports is None else transports
    stats = Stanza("nas:/a", f"/mnt/{device}", 100, b"0 0 0 0 0 0 0 0", lines, operations, True, b" 0" * 27)
    return Counted(device, int(device[2:]), (f"/mnt/{device}",), "nas:/a", group, stats)


def at(seconds: float, *superblocks: Counted) -> Look:
    return Look(1e9 + seconds, seconds, superblocks or (superblock(),))


def clients(**numbers: set[int]) -> dict[str, frozenset[int]]:
    return {name.replace("d", "0:"): frozenset(of) for name, of in numbers.items()}


def under_way(*requests: RpcRequest, known: dict[str, frozenset[int]] | None = None) -> Requests:
    return Requests(requests, known)


def after(*steps: tuple[Look, Requests | None]) -> RequestWatch:
    watch = RequestWatch()
    for look, requests in steps:
        watch = follow(watch, look, requests)
    return watch


Shown = Iterable[Counted | tuple[Counted, ...]]


def every(apart_s: float, shown: Shown, *requests: Requests | None) -> RequestWatch:
    """The watch after looks so many seconds apart; the last of `requests` is of all later looks as well."""
    blocks = [each if isinstance(each, tuple) else (each,) for each in shown]
    seen = [*requests, *[requests[-1]] * (len(blocks) - len(requests))]
    return after(*((at(apart_s * n, *each), seen[n]) for n, each in enumerate(blocks)))


def served() -> list[Counted]:
    """A superblock at looks that each find one more of its READs answered, and another one sent."""
    return [superblock(transports=xprt(21 + n, 20 + n), reads=10 + n) for n in range(9)]


def next_to_a_busy_one(idle: Iterable[bytes]) -> list[tuple[Counted, ...]]:
    """A superblock with these connections, and another one of the same server in use."""
    return [
        (superblock(transports=xprt(20 + n, 20 + n), reads=10 + n), superblock("0:44", V42, transports=lines))
        for n, lines in enumerate(idle)
    ]


BUSY = [(20 + n, 19 + n) for n in range(9)]
"""What a connection sent and received at looks that always find a request under way."""


class TestByRequests:
    def test_a_request_that_is_seen_again_after_15_s_stalls_its_superblock(self) -> None:
        requests = under_way(WRITE, known=clients(d43={7, 5}, d44={8, 5}))
        both = superblock("0:43"), superblock("0:44")
        assert stalls(every(14.9, [both, both], requests)) == {}
        assert stalls(every(15, [both, both], requests)) == {("0:43", 43): Stall(0, 1, ("WRITE",))}

    def test_another_xid_is_another_request_as_after_nfs4err_delay(self) -> None:
        known = clients(d43={7})
        later = under_way(WRITE._replace(xid=8), known=known)
        assert stalls(after((at(0), under_way(WRITE, known=known)), (at(20), later))) == {}

    def test_a_request_that_went_and_one_that_came_are_two(self) -> None:
        one = under_way(WRITE, known=clients(d43={7}))
        assert stalls(after((at(0), one), (at(10), under_way()), (at(20), one))) == {}

    def test_a_lease_that_is_not_renewed_stalls_all_of_its_client(self) -> None:
        renewal = WRITE._replace(client=5, operation="SEQUENCE")
        requests = under_way(renewal, known=clients(d43={7, 5}, d44={8, 5}, d45={9, 6}))
        shown = superblock("0:43"), superblock("0:44"), superblock("0:45")
        assert stalls(every(20, [shown, shown], requests)).keys() == {("0:43", 43), ("0:44", 44)}

    def test_a_request_without_a_slot_waits_for_those_that_have_them(self) -> None:
        known = clients(d43={7, 5}, d44={8, 5})
        slotless = WRITE._replace(client=8, xid=0, operation="GETATTR")
        both = superblock("0:43"), superblock("0:44")
        full = every(15, [both, both], Requests((WRITE,), known, (slotless,)))
        assert stalls(full)["0:44", 44] == Stall(0, 1, ("GETATTR",))
        # "Ask later", again and again: a server that answers.
        elsewhere = WRITE._replace(peer="v4 10.0.0.6:2049")
        assert ("0:44", 44) not in stalls(every(15, [both, both], Requests((elsewhere,), known, (slotless,))))
        nameless = Requests((WRITE._replace(peer=""),), known, (slotless._replace(peer=""),))
        assert ("0:44", 44) not in stalls(every(15, [both, both], nameless))

    def test_the_oldest_request_says_since_when_and_the_most_frequent_comes_first(self) -> None:
        known = clients(d43={7})
        more = [WRITE._replace(task=number, operation="GETATTR") for number in range(3)]
        watch = after(
            (at(0), under_way(WRITE, known=known)),
            (at(5), under_way(WRITE, *more, known=known)),
            (at(20), under_way(WRITE, *more, known=known)),
        )
        assert stalls(watch) == {("0:43", 43): Stall(0, 4, ("GETATTR", "WRITE"))}


class TestBeforeLinux65:
    def test_the_only_mount_of_a_server_waits(self) -> None:
        shown = superblock(), superblock("0:44", "v4.1 tcp 10.0.0.6:2049")
        assert stalls(every(20, [shown, shown], under_way(WRITE))) == {("0:43", 43): Stall(0, 1, ("WRITE",))}

    def test_of_several_it_is_the_one_that_was_in_use_and_stands_still(self) -> None:
        used = superblock(reads=10), superblock(reads=11), superblock(reads=11, renewals=2)
        shown = [(each, superblock("0:44")) for each in used]
        assert stalls(every(20, shown, NOTHING_UNDER_WAY, under_way(WRITE))).keys() == {("0:43", 43)}

    def test_of_two_tunnels_over_one_client_it_is_the_mount_that_was_in_use(self) -> None:
        """The request names the client's port, which is the tunnel's of the other mount."""
        mounts = tunnelled(20049)
        waits = under_way(WRITE._replace(peer="v4 127.0.0.1:20049"))

        def later(seconds: float, reads: int) -> Look:
            counters = cut(stanza(1, "/43"), stanza(reads, "/44"))
            return make_look(Snapshot(mounts), counters, 1e9 + seconds, seconds)

        steps = (later(0, 10), NOTHING_UNDER_WAY), (later(20, 11), waits), (later(40, 11), waits)
        assert stalls(after(*steps)).keys() == {("0:44", 44)}

    def test_a_mount_whose_operations_end_does_not_wait(self) -> None:
        shown = [(superblock(reads=reads), superblock("0:44")) for reads in (10, 11, 12)]
        assert stalls(every(20, shown, NOTHING_UNDER_WAY, under_way(WRITE))) == {}

    def test_of_one_silent_connection_it_is_the_only_mount_though_others_answer(self) -> None:
        two, silent = xprt() + b"\n" + xprt(), xprt(sends=21) + b"\n" + xprt(sends=25, receives=25)
        shown = [
            (superblock(transports=lines, reads=reads), superblock("0:44", V42, reads=reads))
            for lines, reads in ((two, 10), (silent, 11), (silent, 12))
        ]
        assert stalls(every(20, shown, NOTHING_UNDER_WAY, under_way(WRITE))).keys() == {("0:43", 43)}

    def test_a_request_that_was_under_way_at_the_look_before_is_not_taken_for_an_answered_one(self) -> None:
        """Between two looks a connection received as much as it sent, and is as silent as another."""
        other = superblock("0:44", V42)
        looks = [
            at(when, superblock(transports=xprt(sends, receives), reads=reads), other)
            for when, sends, receives, reads in (
                (0, 20, 20, 10), (10, 27, 26, 11), (20, 32, 31, 12), (25, 32, 31, 13),
                (30, 32, 31, 14), (35, 32, 31, 14),
            )
        ]  # fmt: skip
        earlier = under_way(WRITE._replace(xid=1))
        requests = [NOTHING_UNDER_WAY, earlier, *[under_way(WRITE)] * 4]
        assert stalls(after(*zip(looks, requests, strict=True))).keys() == {("0:43", 43)}

    def test_what_has_no_answer_while_nothing_waits_is_a_reply_to_the_server(self) -> None:
        """An idle mount that replied to a call of the server's is no silent one when another waits."""
        idle = [xprt(*calls) for calls in ((20, 20), (23, 21), (23, 21), (24, 22), (25, 23), (25, 23))]
        requests = [*[NOTHING_UNDER_WAY] * 4, under_way(WRITE)]
        assert stalls(every(20, next_to_a_busy_one(idle), *requests)) == {}

    def test_a_reply_to_the_server_is_no_question_for_long_though_others_are_never_at_rest(self) -> None:
        """An idle mount renews its lease; of the server's other mounts a request always waits."""
        idle = [xprt(20, 20, idle_s=9), *(xprt(21 + n, 20 + n) for n in range(8)), *[xprt(28, 27)] * 4]
        requests = [NOTHING_UNDER_WAY, *(under_way(WRITE._replace(xid=n)) for n in range(1, 10))]
        assert stalls(every(20, next_to_a_busy_one(idle), *requests, under_way(WRITE))) == {}

    def test_where_as_many_clients_wait_as_there_are_mounts_each_of_them_waits(self) -> None:
        """Also the mount that did nothing before, and the one whose request has no slot."""
        silent = tuple(superblock(device, transports=xprt(sends=21)) for device in ("0:43", "0:44", "0:45"))
        for other, expected in (
            ("GETATTR", {("0:43", 43), ("0:44", 44), ("0:45", 45)}),
            ("SERVER_CAPS", set()),  # of a mount that is not complete
        ):
            waits = (WRITE, WRITE._replace(client=8, operation=other))
            requests = Requests(waits, None, (WRITE._replace(client=9, xid=0, operation="OPEN"),))
            idle = tuple(superblock(device) for device in ("0:43", "0:44", "0:45"))
            later = ((at(20.0 + 5 * n, *silent), requests) for n in range(4))
            assert stalls(after((at(0, *idle), NOTHING_UNDER_WAY), *later)).keys() == expected

    def test_where_others_are_answered_it_is_not_taken_from_their_number(self) -> None:
        devices = ("0:43", "0:44")
        shown = [tuple(superblock(one, transports=xprt(*calls)) for one in devices) for calls in BUSY]
        assert stalls(every(5, shown, under_way(WRITE, WRITE._replace(client=8)))) == {}

    def test_of_connections_that_were_always_in_use_one_was_asked_with_its_last_answers(self) -> None:
        """Of two mounts, each with a dead connection, users go on on the other connections."""
        writes, closes = WRITE, WRITE._replace(client=8, operation="CLOSE")
        groups, looks = (("0:43", V41), ("0:44", V42)), []
        for n in range(6):
            lines = xprt(300 + 9 * n, 300 + 9 * n) + b"\n" + (xprt(112, 111) if n else xprt(60, 59))
            mounts = (superblock(*group, transports=lines, reads=10 + n) for group in groups)
            looks.append(at(5.0 * n, *mounts))

        def stalled(*requests: RpcRequest, hidden: frozenset[str] = frozenset()) -> set[str]:
            seen = [(replace(look, hidden=hidden), under_way(*requests)) for look in looks]
            return {device for device, _ in stalls(after(*seen))}

        assert stalled(writes, closes) == {"0:43", "0:44"}
        assert stalled(writes, closes._replace(operation="SERVER_CAPS")) == set()
        assert stalled(writes) == set()  # of which of the two cannot be told
        assert stalled(writes, closes, hidden=frozenset({WRITE.peer})) == set()

    def test_a_call_that_only_began_is_use(self) -> None:
        begun = replace(superblock(), stats=superblock().stats._replace(events=b" 1" * 27))
        shown = [(each, superblock("0:44")) for each in (superblock(), begun, begun)]
        assert stalls(every(20, shown, NOTHING_UNDER_WAY, under_way(WRITE))).keys() == {("0:43", 43)}

    def test_a_lease_that_is_not_renewed_stalls_those_whose_connection_is_asked(self) -> None:
        renewal = under_way(WRITE._replace(operation="SEQUENCE"))
        asked = superblock(transports=xprt(sends=21))
        shown = [(each, superblock("0:44", V40)) for each in (superblock(), asked, asked)]
        assert stalls(every(20, shown, NOTHING_UNDER_WAY, renewal)).keys() == {("0:43", 43)}

    def test_what_a_mount_that_is_not_complete_asks_is_not_charged_to_the_only_one(self) -> None:
        begins = under_way(WRITE._replace(client=99, operation="SERVER_CAPS"))
        assert stalls(every(5, served(), begins)) == {}

    def test_nor_is_a_request_of_a_kind_that_it_is_served_with(self) -> None:
        read = under_way(WRITE._replace(operation="READ"))
        assert stalls(every(5, served(), read)) == {}
        assert stalls(every(5, served(), under_way(WRITE))).keys() == {("0:43", 43)}

    def test_nor_is_what_may_be_of_a_superblock_that_no_mount_shows(self) -> None:
        """Of one that was hung and unmounted lazily: its requests wait for ever."""
        looks = [replace(at(5.0 * n, one), hidden=frozenset({WRITE.peer})) for n, one in enumerate(served())]
        assert stalls(after(*((look, under_way(WRITE)) for look in looks))) == {}
        still = [replace(look, superblocks=(superblock(transports=xprt(21)),)) for look in looks]
        first = replace(looks[0], superblocks=(superblock(),))
        steps = [(first, NOTHING_UNDER_WAY), *((look, under_way(WRITE)) for look in still[1:])]
        assert stalls(after(*steps)).keys() == {("0:43", 43)}

    def test_what_was_unmounted_while_another_of_its_server_waits_is_not_named(self) -> None:
        used = [superblock(device, transports=xprt(20), reads=10) for device in ("0:43", "0:44")]
        asked = [superblock(device, transports=xprt(24, 22), reads=11) for device in ("0:43", "0:44")]
        steps = [(at(0, *used), NOTHING_UNDER_WAY), (at(5, *asked), under_way(WRITE))]
        assert after(*steps).waits[WRITE].superblocks.keys() == {("0:43", 43), ("0:44", 44)}
        left = [(at(seconds, asked[0]), under_way(WRITE)) for seconds in (10, 20, 25)]
        assert stalls(after(*steps, *left)).keys() == {("0:43", 43)}


class TestALookInWhichRequestsAreNotToBeSeen:
    def test_is_no_answer_and_no_wait(self) -> None:
        requests = under_way(WRITE, known=clients(d43={7}))
        seen = [(at(0), requests), (at(15), requests)]
        assert stalls(after(*seen, (at(20), None))) == {("0:43", 43): Stall(0, 1, ("WRITE",))}
        assert stalls(after(*seen, (at(20), None), (at(25), requests))).keys() == {("0:43", 43)}
        assert stalls(after((at(0), requests), (at(20), None))) == {}

    def test_neither_keeps_what_was_unmounted(self) -> None:
        requests = under_way(WRITE, known=clients(d43={7}))
        other = at(20, superblock("0:44"))
        assert stalls(after((at(0), requests), (at(15), requests), (other, None))) == {}


class TestByConnections:
    """Where debugfs is locked: no request is to be seen."""

    def test_a_connection_that_sends_and_receives_nothing_is_silent_after_15_s(self) -> None:
        for group in (V3, V40):
            asked = superblock(group=group, transports=xprt(sends=21))
            steps = [(at(0, superblock(group=group)), None), (at(5, asked), None)]
            assert stalls(after(*steps, (at(19.9, asked), None))) == {}
            assert stalls(after(*steps, (at(20, asked), None))) == {("0:43", 43): Stall(5)}

    def test_what_was_asked_last_may_be_what_is_not_answered(self) -> None:
        asked = superblock(group=V3, transports=xprt(sends=30, receives=29))
        steps = [(at(0, superblock(group=V3)), None), (at(5, asked), None)]
        assert stalls(after(*steps, (at(20, asked), None))) == {("0:43", 43): Stall(5)}

    def test_so_is_one_of_which_a_request_was_under_way_at_the_look_before(self) -> None:
        calls = [(20, 20), (27, 26), (32, 31), (32, 31), (32, 31), (32, 31)]
        shown = [superblock(group=V3, transports=xprt(*each)) for each in calls]
        assert stalls(every(5, shown[:-1], None)) == {}
        assert stalls(every(5, shown, None)) == {("0:43", 43): Stall(10)}

    def test_so_is_one_that_is_made_again_and_again(self) -> None:
        made = [superblock(group=V3, transports=xprt(connects=1 + n)) for n in range(5)]
        assert stalls(every(5, made, None)) == {("0:43", 43): Stall(5)}

    def test_one_that_answers_late_is_not(self) -> None:
        late = [superblock(group=V3, transports=xprt(*calls)) for calls in BUSY]
        assert stalls(every(5, late, None)) == {}

    def test_an_answer_that_comes_too_late_for_its_request_is_one(self) -> None:
        late = [superblock(group=V3, transports=xprt(sends=20 + n, bad_xids=n)) for n in range(9)]
        assert stalls(every(5, late, None)) == {}

    def test_with_nfsv41_the_lease_must_be_over_for_a_reply_to_the_server_is_sent_too(self) -> None:
        replied = superblock(transports=xprt(sends=21))
        steps = [(at(0), None), (at(5, replied), None)]
        assert stalls(after(*steps, (at(70, replied), None))) == {}
        assert stalls(after(*steps, (at(75, replied), None))) == {("0:43", 43): Stall(0)}

    def test_what_a_broken_connection_lost_is_answered_when_it_was_sent_again(self) -> None:
        """Lost, sent again and answered between two looks: two were sent, and one answer came."""
        for group in (V3, V40):
            again = superblock(group=group, transports=xprt(25, 24, connects=2))
            steps = [(at(0, superblock(group=group)), None)]
            steps += [(at(60.0 * n, again), None) for n in (1, 2, 3)]
            assert stalls(after(*steps)) == {}
            asked = superblock(group=group, transports=xprt(26, 24, connects=2))
            steps += [(at(200, asked), None), (at(215, asked), None)]
            assert stalls(after(*steps)) == {("0:43", 43): Stall(200)}

    def test_whoever_gave_up_waits_no_more(self) -> None:
        asked = superblock(group=V3, transports=xprt(sends=21))
        steps = ((at(0, superblock(group=V3)), None), (at(5, asked), None), (at(400, asked), None))
        assert stalls(after(*steps)) == {}

    def test_another_number_of_connections_begins_anew(self) -> None:
        asked = superblock(group=V3, transports=xprt(sends=21))
        two = superblock(group=V3, transports=xprt(sends=21) + b"\n" + xprt())
        steps = ((at(0, superblock(group=V3)), None), (at(5, asked), None), (at(30, two), None))
        assert stalls(after(*steps)) == {}


class TestWhenToLook:
    def test_an_idle_mount_gives_no_reason(self) -> None:
        watch = after((at(0, superblock(transports=xprt(idle_s=1))), NOTHING_UNDER_WAY))
        assert not may_wait(watch, at(60, superblock(transports=xprt(idle_s=60))))
        assert not may_wait(watch, at(60, superblock(transports=xprt(sends=30, receives=30))))
        assert not is_pending(watch)

    def test_neither_does_a_mount_that_was_idle_from_look_to_look_and_has_no_connection_now(self) -> None:
        watch = after((at(0), NOTHING_UNDER_WAY))
        assert may_wait(watch, at(60))
        watch = follow(watch, at(60), NOTHING_UNDER_WAY)
        assert not may_wait(watch, at(120))

    def test_a_request_in_flight_at_every_look_is_not_what_has_no_answer_at_rest(self) -> None:
        """A reader of one request at a time: the list may be empty a moment after the counters were read."""
        looks = [at(60.0 * n, one) for n, one in enumerate(served())]
        watch = after(*((look, NOTHING_UNDER_WAY) for look in looks))
        stopped = superblock(transports=xprt(sends=30, receives=29, idle_s=59), reads=19)
        assert may_wait(watch, at(600, stopped))
        watch = after((at(0, superblock(transports=xprt(idle_s=1))), NOTHING_UNDER_WAY))
        watch = follow(watch, looks[1], NOTHING_UNDER_WAY)
        assert may_wait(watch, at(600, stopped))

    def test_a_late_answer_that_changes_what_has_none_at_rest_is_a_reason(self) -> None:
        watch = after((at(0, superblock(transports=xprt(sends=22, idle_s=9))), NOTHING_UNDER_WAY))
        watch = follow(watch, at(60, superblock(transports=xprt(sends=22, bad_xids=1))), NOTHING_UNDER_WAY)
        assert may_wait(watch, at(120, superblock(transports=xprt(sends=23, bad_xids=1))))

    def test_connections_of_which_nothing_is_known_are_one(self) -> None:
        for lines in (b"\txprt:\tcarrier 1 2 3", b""):
            unknown = superblock(transports=lines)
            assert may_wait(after((at(0, unknown), NOTHING_UNDER_WAY)), at(60, unknown))

    def test_a_request_without_an_answer_does_and_so_does_a_new_connection(self) -> None:
        watch = after((at(0), NOTHING_UNDER_WAY))
        assert may_wait(watch, at(60, superblock(transports=xprt(sends=21))))
        assert may_wait(watch, at(60, superblock(transports=xprt(connects=2))))
        assert may_wait(RequestWatch(), at(0))

    def test_connections_of_one_name_in_two_network_namespaces_are_one_each(self) -> None:
        host = superblock(transports=xprt(idle_s=9))
        other = superblock("0:44", transports=xprt(50, 50, idle_s=9))
        waits = superblock("0:44", transports=xprt(51, 50))
        for first, last, later in ((host, other, (host, waits)), (other, host, (waits, host))):
            watch = after((at(0, first, last), NOTHING_UNDER_WAY), (at(60, first, last), NOTHING_UNDER_WAY))
            assert may_wait(watch, at(120, *later))

    def test_requests_that_a_broken_connection_lost_give_none_for_ever(self) -> None:
        lost = superblock(transports=xprt(sends=25))
        watch = after((at(0, lost), NOTHING_UNDER_WAY), (at(60, lost), NOTHING_UNDER_WAY))
        assert not may_wait(watch, at(120, lost))

    def test_as_long_as_a_request_waits_it_is_looked_at(self) -> None:
        watch = after((at(0), under_way(WRITE)))
        assert is_pending(watch)
        assert may_wait(watch, at(5))

    def test_damaged_lines_are_one_as_well_and_no_stall(self) -> None:
        damaged = superblock(transports=b"\txprt:\ttcp x")
        watch = after((at(0, damaged), None), (at(60, damaged), None))
        assert stalls(watch) == {}
        watch = after((at(0, damaged), NOTHING_UNDER_WAY), (at(60, damaged), NOTHING_UNDER_WAY))
        assert may_wait(watch, at(120, damaged))


def test_a_server_answered_when_its_connections_received() -> None:
    watch = after((at(0), NOTHING_UNDER_WAY))
    assert not has_answered(V41, watch, at(5, superblock(transports=xprt(sends=30))))
    assert has_answered(V41, watch, at(5, superblock(transports=xprt(receives=21))))


def test_a_group_names_its_version_and_server() -> None:
    assert group_peer("v4.1 tcp6 [fe80::1]:2049 mtls") == "v4 [fe80::1]:2049"
    assert group_server("v3 tcp 10.0.0.5:20049") == "10.0.0.5:20049"


_counts = st.integers(0, 40)
_looks = st.lists(
    st.tuples(
        st.floats(0.1, 90), _counts, _counts, _counts, st.sampled_from([None, (), (WRITE,)]), st.booleans()
    ),
    max_size=8,
)


@given(_looks, st.sampled_from([V3, V40, V41]))
def test_no_stall_is_older_than_the_first_look_or_younger_than_15_s(
    looks: list[tuple[float, int, int, int, tuple[RpcRequest, ...] | None, bool]], group: str
) -> None:
    watch, now = RequestWatch(), 0.0
    for passed, sends, receives, connects, waiting, known in looks:
        now += passed
        look = at(now, superblock(group=group, transports=xprt(sends, receives, connects)))
        requests = None if waiting is None else Requests(waiting, clients(d43={7}) if known else None)
        watch = follow(watch, look, requests)
        for stall in stalls(watch).values():
            assert 15 <= now - stall.since_s <= now


def sample(device: str, *, reads: int = 0, interval_s: float = 60.0) -> Sample:
    before, later = superblock(device), superblock(device, reads=10 + reads)
    totals = f"{reads << 20} 0 0 0 0 0 0 0".encode()
    later = replace(later, stats=later.stats._replace(totals=totals, age_s=100 + int(interval_s)))
    (found,) = rates(at(0, before), at(interval_s, later))
    return found


class TestSamples:
    def test_who_waits_has_a_sample_though_nothing_ended(self) -> None:
        samples = [sample("0:43"), sample("0:44"), sample("0:45", reads=600)]
        used = active_samples(samples, {"0:43": 75.0})
        assert [(one.device, one.stalled_s) for one in used] == [("0:43", 75.0), ("0:45", 0.0)]

    def test_it_says_how_much_of_the_interval_that_is(self) -> None:
        (waits,) = active_samples([sample("0:43")], {"0:43": 15.0})
        assert stalled_percent(waits) == 25.0
        assert stalled_percent(replace(waits, stalled_s=600.0)) == 100.0
        assert stalled_percent(replace(waits, stalled_s=0.0)) == 0.0
        assert stalled_percent(sample("0:43")) is None

    def test_it_is_drawn_as_a_stall(self) -> None:
        history = History()
        for number in range(4):
            (waits,) = active_samples([sample("0:43", reads=600)], {"0:43": 60.0} if number == 2 else {})
            history.add(replace(waits, time=60.0 * (1 + number)))
        axis = history.axis()
        assert axis is not None
        lines = list(history_lines(axis, history.mounts(axis), ".#", timezone.utc))
        (drawn,) = [line for line in lines if line.startswith("  stalled")]
        assert drawn.split() == ["stalled", "..#.", "0", "%", "0", "%", "100", "%"]

    def test_a_mount_that_never_stalled_has_no_row_of_it(self) -> None:
        history = History()
        history.add(*active_samples([sample("0:43", reads=600)], {}))
        axis = history.axis()
        assert axis is not None
        assert not [line for line in history_lines(axis, history.mounts(axis), ".#") if "stalled" in line]

    def test_a_point_of_many_samples_says_in_how_much_of_its_time_users_waited(self) -> None:
        series = Series(2)
        for number in range(8):
            (one,) = active_samples([sample("0:43", reads=600)], {"0:43": 60.0} if number == 1 else {})
            series.add(replace(one, time=60.0 * (1 + number)))
        (mount,) = series.mounts()
        assert mount.lines["stalled"] == (20.0, 0.0)
        assert (mount.means["stalled"], mount.most["stalled"]) == (12.5, 100.0)

    def test_a_report_has_a_chart_of_it(self) -> None:
        (waits,) = active_samples([sample("0:43")], {"0:43": 60.0})
        (serves,) = active_samples([sample("0:43", reads=600)], {})
        for one, charts in ((waits, 1), (serves, 0), (sample("0:43", reads=600), 0)):
            series = Series()
            series.add(one)
            (mount,) = series.mounts()
            assert [chart.title for chart in mount_charts(mount, ())].count("Stalled") == charts
