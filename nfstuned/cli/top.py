"""`nfstuned top`: looks at the kernel's counters again and again, as the service does."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import click

from nfstuned.cli.talk import terminal_width
from nfstuned.core.samples.rates import look
from nfstuned.core.samples.top import SORTS, Frame, List, State, arranged, frame, press
from nfstuned.host.look.host import observe_stanzas, observe_superblocks
from nfstuned.host.root import Root
from nfstuned.host.tty import ENDS, Tty
from nfstuned.model.kernel import Stanza
from nfstuned.model.samples import Look
from nfstuned.parse.keys import parse_keys
from nfstuned.view.top import Line, Size, Style, plain_lines, screen

FIRST_S = 1.0
"""On a screen the first rates come after this at the latest: nobody wants to wait ten seconds for them."""
DONE = 0
_ENDED = 128
"""What a shell adds to the number of the signal that ended a command."""
_SGR = {
    Style.PLAIN: "",
    Style.TITLE: "\x1b[1m",
    Style.HEADER: "\x1b[1;4m",
    Style.SELECTED: "\x1b[1;7m",
    Style.IDLE: "\x1b[2m",
}
"""No colours: every terminal and every background can do these."""


@dataclass(frozen=True, slots=True)
class TopOrder:
    """What was asked for."""

    interval_s: float
    sort: str
    count: int | None


@dataclass(frozen=True, slots=True)
class Clock:
    """The time in Unix seconds, that of CLOCK_MONOTONIC, and a way to let it pass."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Watch:
    """Looks at every superblock, and says what happened since the look before. It touches no mount."""

    def __init__(self, root: Root, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._before: Look | None = None
        self._stanzas: tuple[Stanza, ...] = ()

    def look(self) -> Frame:
        """Look now."""
        snapshot = observe_superblocks(self._root, deep=False)
        self._stanzas = observe_stanzas(self._root, self._stanzas)
        now = look(snapshot, self._stanzas, self._clock.now(), self._clock.monotonic())
        shown = frame(self._before, now, snapshot)
        self._before = now
        return shown


def show(root: Root, order: TopOrder, clock: Clock | None = None) -> int:
    """Show it on a screen, or print blocks where there is none or only some were asked for."""
    if order.count is None and _interactive():
        return _on_screen(root, order, clock or Clock())
    return _print_blocks(root, order, clock or Clock())


def _interactive() -> bool:
    if os.environ.get("TERM", "dumb") == "dumb" or sys.stdin is None:
        return False
    return sys.stdin.isatty() and sys.stdout.isatty()


def _print_blocks(root: Root, order: TopOrder, clock: Clock) -> int:
    """Print a block of text for each interval."""
    watch, state = Watch(root, clock), State(sort=order.sort)
    watch.look()
    due = clock.monotonic()
    printed = 0
    while order.count is None or printed < order.count:
        due = max(due + order.interval_s, clock.monotonic())
        clock.sleep(max(0.0, due - clock.monotonic()))
        width = terminal_width() if sys.stdout.isatty() else None
        lines = plain_lines(watch.look(), state, width)
        sys.stdout.write(("\n" if printed else "") + "".join(f"{line}\n" for line in lines))
        sys.stdout.flush()
        printed += 1
    return DONE


def _on_screen(root: Root, order: TopOrder, clock: Clock) -> int:
    with Tty(sys.stdin.fileno(), sys.stdout.fileno()) as terminal:
        return Live(Watch(root, clock), terminal, order, clock).run()


class Live:
    """The screen: a new frame when it is due, and a new picture of it at every key."""

    def __init__(self, watch: Watch, terminal: Tty, order: TopOrder, clock: Clock) -> None:
        self._watch = watch
        self._terminal = terminal
        self._interval_s = order.interval_s
        self._clock = clock
        self._state = State(sort=order.sort)
        self._frame = watch.look()
        self._due = clock.monotonic() + min(FIRST_S, order.interval_s)

    def run(self) -> int:
        """Return the exit status when the person or a signal ends it."""
        while True:
            self._draw()
            left = self._interval_s if self._state.paused else self._due - self._clock.monotonic()
            typed, signals = self._terminal.wait(left)
            ended = [number for number in signals if number in ENDS]
            if ended or typed is None:
                return _ENDED + ended[0] if ended else DONE
            self._take(typed)
            if self._state.done:
                return DONE
            self._look_when_due()

    def _take(self, typed: bytes) -> None:
        for key in parse_keys(typed):
            shown = [entry.identity for entry in arranged(self._frame.entries, self._state)]
            self._state = press(self._state, key, List(shown, self._size().page))

    def _look_when_due(self) -> None:
        now = self._clock.monotonic()
        if self._state.paused or now < self._due:
            return
        self._frame = self._watch.look()
        self._due = now + self._interval_s

    def _draw(self) -> None:
        shown = screen(self._frame, self._state, self._size())
        self._state = replace(self._state, offset=shown.offset)
        self._terminal.draw(_drawn(shown.lines))

    def _size(self) -> Size:
        return Size(*self._terminal.size())


def _drawn(lines: tuple[Line, ...]) -> bytes:
    """Return the lines as a terminal takes them; what its encoding lacks is a question mark."""
    texts = (f"{_SGR[line.style]}{line.text}\x1b[0m\x1b[K" for line in lines)
    return "\r\n".join(texts).encode(sys.stdout.encoding or "ascii", "replace")


class Seconds(click.FloatRange):
    """A range of seconds; "nan" lies in none, whatever comparisons say."""

    name = "seconds"

    def convert(
        self,
        value: Any,  # noqa: ANN401 - as click's
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> float:
        """Return the number, or fail as click does."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


@click.command("top")
@click.option(
    "--interval",
    "interval_s",
    type=Seconds(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How far apart two looks are, from 0.1 to 3600.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default=SORTS[0],
    show_default=True,
    metavar="KEY",
    help="What comes first: total (read and write), read, write, over-fetch, ops, read-rtt, and so on.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="Print so many blocks of text and end, also on a terminal.",
)
@click.pass_obj
def command(root: Root, /, *, interval_s: float, sort: str, count: int | None) -> int:
    """Show what each mount delivers, now.

    A line is one superblock, which several mounts can share: what programs read and wrote, the over-fetch,
    operations, mean round trips and connections. It opens to its operations and connections; h explains the
    keys and the columns. The figures are those of the service's samples, which need not run. No mount is
    touched, so that a dead server cannot hang this.

    Where the output is no terminal, and with --count, it prints a block of text for each interval, with the
    superblocks that were in use.

    \b
    Examples:
      nfstuned top
      nfstuned top --interval 10 --sort over-fetch
      nfstuned top --count 1
      nfstuned top --interval 60 >> throughput.txt

    \b
    Exit status:
      0  ended by q, or after --count blocks
      2  wrong usage, or the reader of the output has gone
      130 (Ctrl-C) or 128 and the number of another signal, which ended it
    """
    return show(root, TopOrder(interval_s, sort, count))
