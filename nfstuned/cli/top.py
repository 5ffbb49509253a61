"""`nfstuned top`: looks at the kernel's counters again and again, as the service does."""

from __future__ import annotations

import codecs
import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import click

from nfstuned.cli.terminal import dated, format_option, note, print_document, terminal_width
from nfstuned.core.samples.copies import (
    SavedCopy,
    copies_to_json,
    frame_between,
    frame_since_mounted,
    parse_copies,
)
from nfstuned.core.samples.rates import make_look
from nfstuned.core.samples.seen import SeenReads
from nfstuned.core.samples.top import SORTS, Frame, List, TopState, arrange, frame, parse_keys, press
from nfstuned.host.observe import observe_major_faults, observe_stanzas, observe_superblocks, read_stalls
from nfstuned.host.root import STDIN, Root, read_saved
from nfstuned.host.tty import ENDS, Tty
from nfstuned.host.volumes import KubeletFiles
from nfstuned.model.kernel import Stanza
from nfstuned.model.samples import Look
from nfstuned.parse.proc.mountstats import is_mountstats
from nfstuned.view.top import Size, Style, plain_lines, screen

FIRST_S = 1.0
"""On a screen the first rates come after this at the latest: nobody wants to wait ten seconds for them."""
DONE, DAMAGED, UNREADABLE = 0, 1, 2
MOST_PROBLEMS = 10
MOST_FILES = 2
_ENDED = 128
"""Added by a shell to the number of the signal that ended a command."""
_SGR = {
    Style.PLAIN: "", Style.TITLE: "\x1b[1m", Style.HEADER: "\x1b[1;4m", Style.SELECTED: "\x1b[1;7m",
    Style.IDLE: "\x1b[2m",
}  # fmt: skip
"""No colours: every terminal and every background can do these."""


@dataclass(frozen=True, slots=True)
class TopOrder:
    """The options of a call."""

    interval_s: float
    sort: str
    count: int | None
    files: tuple[str, ...] = ()
    """One or two saved copies of mountstats, the earlier first."""
    form: str = "text"


@dataclass(frozen=True, slots=True)
class Clock:
    """The time in Unix seconds, CLOCK_MONOTONIC, and a way to let time pass."""

    now: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


class Watch:
    """Looks at every superblock, each time with the rates since the look before. It touches no mount."""

    def __init__(self, root: Root, clock: Clock) -> None:
        self._root = root
        self._clock = clock
        self._before: Look | None = None
        self._stanzas: tuple[Stanza, ...] = ()
        self._reads = SeenReads()
        self._kubelet = KubeletFiles(root)
        self._shown: Frame | None = None

    def look(self) -> Frame:
        """Look now; where something could not be read, return the frame before. Raises ParseError."""
        snapshot = observe_superblocks(self._root, deep=False)
        stanzas = observe_stanzas(self._root, self._stanzas)
        if stanzas is None or snapshot.faults:
            if self._shown is None:
                raise next(iter(self._root.faults))
            return self._shown
        self._stanzas = stanzas
        moment = self._clock.now(), self._clock.monotonic()
        now = make_look(snapshot, stanzas, *moment, observe_major_faults(self._root))
        shown = frame(self._before, now, snapshot, read_stalls(self._root), self._reads)
        names = self._kubelet.names((each.key, each.mount_points) for each in now.superblocks)
        self._shown = replace(shown, entries=tuple(replace(entry, names=names) for entry in shown.entries))
        self._before = now
        return self._shown


def show_top(root: Root, order: TopOrder, clock: Clock | None = None) -> int:
    """Show it on a screen; print blocks where there is no screen, or with a count."""
    clock = clock or Clock()
    drawable = order.count is None and sys.stdin is not None and os.environ.get("TERM", "dumb") != "dumb"
    if drawable and sys.stdin.isatty() and sys.stdout.isatty():
        with Tty(sys.stdin.fileno(), sys.stdout.fileno()) as terminal:
            return Live(Watch(root, clock), terminal, order, clock).run()
    return _print_blocks(root, order, clock)


def show_saved(order: TopOrder) -> int:
    """Print the rates in saved copies of mountstats: from each to the next, or of a single one."""
    try:
        read = [_read_copies(name) for name in order.files]
        copies = [copy for found, _ in read for copy in found]
        problems = [problem for _, of_file in read for problem in of_file]
        for problem in problems[:MOST_PROBLEMS]:
            note(problem)
        frames = [frame_between(*pair) for pair in pairwise(copies)] or [frame_since_mounted(copies[0])]
    except OSError as error:
        note(f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror))
        return UNREADABLE
    except ValueError as error:
        note(str(error))
        return UNREADABLE
    if order.form == "json":
        print_document(dated(copies_to_json(frames, problems)))
    else:
        width = terminal_width() if sys.stdout.isatty() else None
        blocks = ("\n".join(plain_lines(shown, TopState(sort=order.sort), width)) for shown in frames)
        sys.stdout.write("\n\n".join(blocks) + "\n")
    return DAMAGED if problems else DONE


def _read_copies(name: str) -> tuple[tuple[SavedCopy, ...], list[str]]:
    """Return the copies in a file, and its faults. Raises OSError, ValueError."""
    shown = "standard input" if name == STDIN else name
    data = read_saved(name).removeprefix(codecs.BOM_UTF8)
    if not is_mountstats(data):
        if data.lstrip().startswith(b"{"):
            raise ValueError(
                f"{shown}: has lines of JSON instead of mountstats: nfstuned samples --file {name}"
            )
        raise ValueError(f"{shown}: is not a mountstats; to save one: cat /proc/self/mountstats > FILE")
    return parse_copies(shown, data)


def _print_blocks(root: Root, order: TopOrder, clock: Clock) -> int:
    """Print a block of text for each interval."""
    watch, state = Watch(root, clock), TopState(sort=order.sort)
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


class Live:
    """The screen: a new frame when it is due, and a new picture of it at every key."""

    def __init__(self, watch: Watch, terminal: Tty, order: TopOrder, clock: Clock) -> None:
        self._watch = watch
        self._terminal = terminal
        self._interval_s = order.interval_s
        self._clock = clock
        self._state = TopState(sort=order.sort)
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
            for key in parse_keys(typed):
                shown = [entry.counted.key for entry in arrange(self._frame.entries, self._state)]
                self._state = press(self._state, key, List(shown, self._size().page))
            if self._state.done:
                return DONE
            now = self._clock.monotonic()
            if not self._state.paused and now >= self._due:
                self._frame = self._watch.look()
                self._due = now + self._interval_s

    def _draw(self) -> None:
        shown = screen(self._frame, self._state, self._size())
        self._state = replace(self._state, offset=shown.offset)
        texts = (f"{_SGR[line.style]}{line.text}\x1b[0m\x1b[K" for line in shown.lines)
        # A character that the terminal's encoding lacks is a question mark.
        self._terminal.draw("\r\n".join(texts).encode(sys.stdout.encoding or "ascii", "replace"))

    def _size(self) -> Size:
        return Size(*self._terminal.size())


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
    help="The time between two looks.",
)
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default=SORTS[0],
    show_default=True,
    metavar="KEY",
    help="The sort key, the greatest first: total (read and write), over-fetch, ops, read-rtt, and so on.",
)
@click.option(
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="Print this many blocks of text and end, also on a terminal.",
)
@click.option(
    "--file",
    "files",
    type=click.Path(),
    multiple=True,
    metavar="FILE|-",
    help="Show a saved /proc/self/mountstats: since each mount was made or, with a second file, the time "
    "between the two; - is stdin.",
)
@format_option()
@click.pass_obj
def top_command(root: Root, /, **options: Any) -> int:  # noqa: ANN401 - TopOrder has the types
    """Show what each mount delivers, now.

    A line is one superblock, which several mounts can share: the bytes that programs read and wrote, the
    over-fetch, operations, mean round trips and connections. It opens to its operations and connections; h
    explains the keys and the columns. The figures are the same as in the service's samples; the service need
    not run. No mount is touched, so that a dead server cannot hang this.

    Where the output is no terminal, and with --count, it prints a block of text for each interval, with the
    superblocks that were in use. With --file it prints one, of any host, and each one's operations below;
    a dash is a figure without its lines in the file. The file names no superblocks: mounts of the same age
    are taken for one where source and options are the same, or where they moved the same megabytes.

    \b
    Examples:
      nfstuned top
      nfstuned top --interval 10 --sort over-fetch
      nfstuned top --count 1
      nfstuned top --interval 60 >> throughput.txt
      nfstuned top --file before --file after
      nfstuned top --file mountstats --format json | jq .frames

    \b
    Exit status:
      0  ended by q, or after --count blocks
      1  shown, but without lines of a FILE that are damaged; stderr names them
      2  wrong usage, a FILE that cannot be read, or the reader of the output has gone
      130  ended by Ctrl-C; by another signal 128 and its number
    """
    order = TopOrder(**options)
    if not order.files:
        if order.form == "json":
            raise click.UsageError(
                "--format json needs --file FILE: nfstuned samples has this host's samples"
            )
        return show_top(root, order)
    if len(order.files) > MOST_FILES:
        raise click.UsageError(f"--file can be given {MOST_FILES} times: the earlier copy, then the later")
    if order.files.count(STDIN) > 1:
        raise click.UsageError("only one FILE can be the standard input")
    if order.count is not None:
        raise click.UsageError("--count is for this host's mounts: a saved mountstats has one block")
    return show_saved(order)
