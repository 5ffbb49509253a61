"""Groups that get connections while they are mounted, and a model of the kernel's sunrpc.

The model is what net/sunrpc does: connections in use take requests in turn (xprtmultipath.c), a new one is
put behind the others, `offline` takes it out of the turn, `remove` away; one that never connected stays
listed, OFFLINE and REMOVE, until the client goes (xprt_delete_locked in xprt.c; seen on Linux 7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from nfstuned.core.nconnect.live import plan_live
from nfstuned.core.nconnect.remount import cases
from nfstuned.model.connections import Left, LivePlan, SwitchSeen, Xprt
from nfstuned.model.facts import Facts
from nfstuned.model.kernel import KernelRelease, Switch, Transport
from tests.core.nconnect_hosts import Made, facts
from tests.core.remounting import sight

NETAPP = "10.9.0.4"
SHOWN = "vers=4.1,proto=tcp,noresvport,nconnect=2"
FIXED = KernelRelease((7, 2, 12), "7.2.12")
PORT = 40_000
MADE = Made("/a", f"{SHOWN}", SHOWN, source=f"{NETAPP}:/vol1", at=NETAPP, connections=2)
"""Its profile asks for eight connections (tests/core/nconnect_hosts.py)."""
FOUR = replace(MADE, source="nas:/srv", at="10.0.0.5", fstab=SHOWN.replace("=2", "=4"))
"""Its line of fstab asks for four."""


def on_kernel(found: Facts, kernel: KernelRelease | None) -> Facts:
    return replace(found, snapshot=replace(found.snapshot, kernel=kernel))


def host(*made: Made, kernel: KernelRelease | None = FIXED) -> Facts:
    return on_kernel(facts(*made), kernel)


def xprt(number: int, port: int | None = PORT, *words: str) -> Xprt:
    state = frozenset(words or ("CONNECTED", "BOUND"))
    return Xprt(f"xprt-{number}-tcp", "tcp", state, None if port is None else port + number, 0)


def seen(count: int = 2, **changes: object) -> SwitchSeen:
    """Return the connections of a group that nobody has touched yet."""
    found = SwitchSeen("switch-3", Switch(count, count, 1, 0), tuple(xprt(n) for n in range(count)), True)
    return replace(found, **changes)  # type: ignore[arg-type]  # keyword arguments of any field


def drawn(found: Facts, switch: object = None, point: str | None = None) -> list[LivePlan | Left]:
    """Return what is done to each group that should have another number."""
    switch = seen() if switch is None else switch
    return [
        plan_live(case, dict.fromkeys(case.devices, switch))  # type: ignore[arg-type]  # any of the three
        for case in cases(found, sight(found), point)
    ]


def the_plan(*made: Made) -> LivePlan:
    (plan,) = drawn(host(*(made or (FOUR,))))
    assert isinstance(plan, LivePlan), plan
    return plan


def why(*made: Made, kernel: KernelRelease | None = FIXED, switch: object = None) -> str:
    (left,) = drawn(host(*made, kernel=kernel), switch)
    assert isinstance(left, Left), left
    return left.reason


@dataclass
class Line:
    """One connection of the model."""

    name: str
    port: int
    connects: bool = True
    sends: int = 9
    receives: int = 9
    state: set[str] = field(default_factory=set)


@dataclass
class Sunrpc:
    """The connections of one group. `fails` is asked before each step: "", or how the step goes wrong.

    Of add, offline and remove: "refused" says so and does nothing, "silent" says nothing and does nothing,
    "late" says that it failed and has done it. Of add also what becomes of the connection: "stuck" never
    connects, and whoever is given to it waits; "denied" is refused by the server; "unused" gets no turn.
    Of ask: "lost" comes to nothing. Of answers: "refused".
    """

    count: int = 2
    fails: Callable[[str, str], str] = lambda _step, _name: ""
    rivals: Callable[[Sunrpc], None] = lambda _: None
    """What other programs do between steps."""
    lines: list[Line] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    gone: bool = False
    signal: str = ""
    odd: dict[str, str] = field(default_factory=dict)
    _turn: int = 0

    def __post_init__(self) -> None:
        self.lines = [Line(f"xprt-{number}-tcp", PORT + number) for number in range(self.count)]

    def interrupted(self) -> str:
        return self.signal

    def answers(self, count: int) -> str:
        return self._step("answers", str(count), lambda: None)

    def ask(self, count: int) -> str:
        self.rivals(self)
        how = self.fails("ask", str(count))
        self.calls.append(f"ask {count}")
        if how:
            return "no end within 30 s"
        said = ""
        for _ in range(count):
            line = self._next()
            line.sends += 1
            if self.odd.get(line.name) == "stuck":
                return "no end within 30 s"
            line.receives += 1
            if self.odd.get(line.name) == "denied":
                said = "Operation not permitted"
        return said

    def counters(self) -> Sequence[Transport]:
        active = [] if self.gone else self._active()
        return [Transport("tcp", None, 1, 0, one.sends, one.receives, 0, 9, 0) for one in active]

    def switch(self) -> SwitchSeen | None:
        if self.gone:
            return None
        xprts = tuple(Xprt(one.name, "tcp", frozenset(one.state), one.port, 0) for one in self.lines)
        info = Switch(len(self.lines), len(self._active()), 1, 0)
        return SwitchSeen("switch-3", info, xprts, True)

    def add(self) -> str:
        free = next(n for n in range(99) if f"xprt-{n}-tcp" not in {one.name for one in self.lines})
        name = f"xprt-{free}-tcp"
        how = self.fails("add", name)
        if how in {"stuck", "denied", "unused"}:
            self.odd[name] = how
        line = Line(name, PORT + free, how not in {"stuck", "unused"}, 0, 0)
        return self._step("add", name, lambda: self.lines.append(line))

    def offline(self, name: str) -> str:
        return self._step("offline", name, lambda: self._line(name).state.add("OFFLINE"))

    def settle(self, name: str) -> None:
        self.calls.append(f"settle {name}")

    def remove(self, name: str) -> str:
        assert "OFFLINE" in self._line(name).state or self.fails("offline", name) == "silent"
        return self._step("remove", name, lambda: self._remove(self._line(name)))

    def _remove(self, line: Line) -> None:
        if "OFFLINE" not in line.state:
            return
        line.state.add("REMOVE")
        if line.connects:
            self.lines.remove(line)

    def _step(self, step: str, name: str, do: Callable[[], object]) -> str:
        self.calls.append(f"{step} {name}")
        how = self.fails(step, name)
        if how not in {"refused", "silent"}:
            do()
        return f"{step} refused" if how in {"refused", "late"} else ""

    def _line(self, name: str) -> Line:
        return next(one for one in self.lines if one.name == name)

    def _active(self) -> list[Line]:
        return [one for one in self.lines if "OFFLINE" not in one.state]

    def _next(self) -> Line:
        turn = [one for one in self._active() if self.odd.get(one.name) != "unused"]
        self._turn += 1
        return turn[self._turn % len(turn)]
