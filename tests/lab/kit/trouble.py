"""The actors of a soak: mounts that come and go, their load, outages, rivals, reloads, restarts.

Each actor is a thread with a random generator of its own, made of the soak's seed: the same seed gives each
actor the same turns. Their order among the actors is the machine's.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.lab.kit import load, reading
from tests.lab.kit.daemon import ETC, Daemon
from tests.lab.kit.faults import shaped, silent
from tests.lab.kit.judge import (
    ACCOUNT,
    GENERIC,
    JOB,
    LOOP,
    UNMOUNT,
    WRITE,
    Fate,
    Outage,
    Settings,
    Values,
    Wait,
)
from tests.lab.kit.load import Job
from tests.lab.kit.mounts import Mounted, Mounts, options_at, set_read_ahead_kb, table_device
from tests.lab.kit.server import ADDRESS, AZURE, AZURE_2, OTHER_ADDRESS, Server
from tests.lab.kit.server import GENERIC as GENERIC_HOST
from tests.lab.kit.shell import CommandError, attempt, run
from tests.lab.kit.tunnel import TLS_PORT
from tests.lab.kit.watch import Watched, mount_and_look
from tests.lab.kit.writers import Writers

LEAST_MOUNTS, MOST_MOUNTS, SHARES = 2, 12, 16
RIVAL_KB = 64
"""Below every right value."""
LONG_S = 5.0
"""Waits of programs from here on are kept."""
RELOAD_S = 120.0
"""A reload that the journal does not report for so long is lost."""
MOST_CLOCK_S = 7200
"""How far the clock is ahead at most. It is never behind: the TLS certificate would not be valid yet."""
INVALID = '[profile.generic]\nread_ahead_kb = "much"\n'


class Form(NamedTuple):
    """A way to mount."""

    host: str
    kind: str
    options: str

    def __str__(self) -> str:
        return f"{self.host} {self.options}"


TLS = Form("127.0.0.1", LOOP, f"vers=4.1,port={TLS_PORT}")
FORMS = (
    Form(AZURE, LOOP, "vers=4.1,nconnect=4"),
    Form(AZURE, LOOP, "vers=3,nolock"),
    Form(AZURE, LOOP, "vers=4.2"),
    Form("sa3.file.core.windows.net", LOOP, "vers=3,nolock,nconnect=2"),
    TLS,
    Form(AZURE_2, ACCOUNT, "vers=4.1,nconnect=2"),
    Form(AZURE_2, ACCOUNT, "vers=4.2,nconnect=4"),
    Form(AZURE_2, ACCOUNT, "vers=3,nolock"),
    Form(GENERIC_HOST, GENERIC, "vers=4.1"),
    Form(GENERIC_HOST, GENERIC, "vers=4.2,nconnect=2"),
    Form(GENERIC_HOST, GENERIC, "vers=3,nolock,nconnect=4"),
)
JOBS = (
    Job("read", "1M", False, "16M"),
    Job("randread", "4k", False, "2M"),
    Job("randrw", "16k", False, "4M"),
    Job("write", "1M", False, "16M"),
    Job("randwrite", "4k", True, "1M"),
)
WAYS = (reading.SEQUENTIAL, reading.MAPPED_RANDOM, reading.MAPPED_RANDOM)
_SPARSE = "1-1-268435456.0.0"
"""The file that kit/reading.py reads, with holes: nothing is written for it."""


@dataclass(eq=False)
class Used:
    """A mount in use; who holds `busy` may use or unmount it."""

    watched: Watched
    share: str
    form: Form
    address: str
    busy: threading.Lock = field(default_factory=threading.Lock)

    @property
    def point(self) -> str:
        return str(self.watched.point)


@dataclass(eq=False)
class World:
    """The state that the actors, the observer and the judgement share. `lock` guards all of it."""

    server: Server
    values: Values
    say: Callable[..., None]
    """Keeps an event: its kind, and its fields."""
    mounts: Mounts = field(default_factory=Mounts)
    daemon: Daemon = field(default_factory=Daemon)
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    calm: threading.Lock = field(default_factory=threading.Lock)
    """Held for a reload, and by a rival: a contest's count is known then."""
    live: list[Used] = field(default_factory=list)
    free: list[str] = field(default_factory=lambda: [f"soak{number}" for number in range(SHARES)])
    addresses: dict[str, str] = field(default_factory=dict)
    """By mount point, also of mounts that have gone."""
    tls: set[str] = field(default_factory=set)
    """The mounts with connections through the tunnel."""
    outages: list[Outage] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    configurations: list[bool] = field(default_factory=list)
    """The journal's entries about configurations, True for a loaded one."""
    moved_bytes: int = 0
    writers: Writers = field(init=False)

    def __post_init__(self) -> None:
        self.writers = Writers(self.waited)

    def pause(self, random: Random, least_s: float, most_s: float) -> bool:
        """Wait for a random time; return whether the soak goes on."""
        return not self.stop.wait(random.uniform(least_s, most_s))

    def waited(self, point: str, began: float, why: str = "", kind: str = WRITE) -> None:
        """Note the end of a program's work on a mount; `why` it failed, if it did."""
        ended = time.monotonic()
        if why:
            self.say("work failed", point=point, why=why, took_s=ended - began)
        if ended - began >= LONG_S:
            with self.lock:
                wait = Wait(point, self.addresses[point], began, ended, kind)
                self.waits.append(wait)
            self.say("wait", what=kind, point=point, address=wait.address, took_s=ended - began)

    def choose(self, random: Random) -> Used | None:
        """Return a random mount, which the caller has for itself until it releases `busy`."""
        part = random.random()
        with self.lock:
            used = self.live[int(part * len(self.live))] if self.live else None
            return used if used is not None and used.busy.acquire(blocking=False) else None


def lay_out(world: World) -> None:
    """Export the shares, each with a file to read."""
    # stunnel has no reserved port.
    world.server.export(*world.free, options="insecure")
    for share in world.free:
        with (world.server.path(share) / _SPARSE).open("wb") as file:
            file.truncate(256 << 20)


def come_and_go(world: World, random: Random) -> None:
    """Mount and unmount; the first mount goes through TLS."""
    while True:
        come, form = random.random() < 0.58, random.choice(FORMS)
        with world.lock:
            number = len(world.live)
        if number < LEAST_MOUNTS or (come and number < MOST_MOUNTS):
            mount(world, form if number else TLS)
        elif (used := world.choose(random)) is not None and not unmount(world, used):
            used.busy.release()
        if not world.pause(random, 1, 10):
            return


def mount(world: World, form: Form) -> None:
    with world.lock:
        share = world.free.pop(0)
    point = world.mounts.new_point()
    began = time.monotonic()
    try:
        watched = mount_and_look(form.options, f"{form.host}:/srv/{share}", point)
    except CommandError as error:
        world.say("refused", form=str(form), took_s=time.monotonic() - began, why=str(error))
        point.rmdir()
        with world.lock:
            world.free.append(share)
        return
    name, address, shown = str(point), options_at(point)["addr"], _shown_host(point)
    with world.lock:
        # Behind the tunnel is the first address.
        world.addresses[name] = ADDRESS if address == TLS.host else address
        world.tls |= {name} if address == TLS.host else set()
        world.values.add(name, _kind(shown, address), watched.returned)
        after_s, kb = watched.values[-1]
        world.values.look(name, watched.returned + after_s, kb)
        world.live.append(Used(watched, share, form, address))
    world.writers.begin(name)
    fields = {"form": str(form), "point": name, "device": watched.device, "address": world.addresses[name]}
    world.say("mount", shown=shown, **fields)


def _shown_host(point: Path) -> str:
    """Return the server's name as the kernel shows it.

    Of two mounts of NFSv4 at once that lead to one server, the second gets the name of the first: both walk
    down from one pseudo-root.
    """
    lines = [line.split(" ") for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next(source for source, at, *_ in reversed(lines) if at == str(point)).partition(":")[0]


def _kind(host: str, address: str) -> str:
    """Return the kind of a mount of a host: any name behind the tunnel is a name of its server."""
    if host == GENERIC_HOST and address == TLS.host:
        return LOOP
    return next(form.kind for form in FORMS if form.host == host)


def unmount(world: World, used: Used) -> bool:
    """Unmount a mount that the caller has for itself; return whether it is gone."""
    if not world.writers.leave(used.point):
        world.say("stuck", point=used.point)
        return False
    with world.lock:
        world.live.remove(used)
        world.values.mounts.pop(used.point)
    point = used.watched.point
    began = time.monotonic()
    with contextlib.suppress(subprocess.TimeoutExpired):
        attempt("umount", used.point)
    if gone_late := table_device(point) is not None:
        run("umount", "--lazy", used.point)
    world.waited(used.point, began, kind=UNMOUNT)
    os.close(used.watched._file)  # noqa: SLF001 - its own unmount() has no patience
    with contextlib.suppress(OSError):
        point.rmdir()
    with world.lock:
        world.free.append(used.share)
    world.say("unmount", point=used.point, lazy=gone_late)
    return True


def use(world: World, random: Random) -> None:
    """Read and write in all ways."""
    while world.pause(random, 1, 6):
        job, way, reads = random.choice(JOBS), random.choice(WAYS), random.random() < 0.4
        used = world.choose(random)
        if used is None:
            continue
        began, why = time.monotonic(), ""
        try:
            mounted = Mounted("", used.watched.point, used.watched.device)
            if reads:
                moved = reading.read(way, 1, mounted.point, 3).read_bytes
            else:
                done = load.fio(mounted, job)
                moved = done.read_bytes + done.write_bytes
            with world.lock:
                world.moved_bytes += moved
        except (CommandError, subprocess.TimeoutExpired, ValueError) as error:
            why = str(error)[:300]
        used.busy.release()
        world.waited(used.point, began, why, JOB)


def break_off(world: World, random: Random) -> None:
    """Make the server silent, stop it, or make it slow."""
    while world.pause(random, 10, 50):
        kind, long = random.choice(("silent", "stopped", "slow")), random.random() < 0.4
        part, address = random.random(), random.choice((ADDRESS, ADDRESS, OTHER_ADDRESS))
        delay, rate = random.choice((2, 20, 100)), random.choice((100, 400))
        slow = shaped("netem", "delay", f"{delay}ms", "rate", f"{rate}mbit", "limit", "100000")
        faults = {"silent": silent(address), "stopped": _stopped(world.server), "slow": slow}
        address = address if kind == "silent" else ""
        lasts_s = 16 + 54 * part if long and kind != "slow" else 2 + 14 * part
        before = time.monotonic()
        with faults[kind]:
            began = time.monotonic()
            world.stop.wait(lasts_s)
            ended = time.monotonic()
        back = time.monotonic()
        if kind != "slow":
            with world.lock:
                world.outages.append(Outage(kind, address, began, ended, back))
        world.say(
            "outage", what=kind, address=address, began=before, lasted_s=ended - began, back_s=back - began
        )


@contextlib.contextmanager
def _stopped(server: Server) -> Iterator[None]:
    server.stop()
    try:
        yield
    finally:
        server.start()


def rival(world: World, random: Random) -> None:
    """Write a read-ahead as another program does: once, or again and again until the service gives up."""
    while world.pause(random, 10, 60):
        times = random.choice((1, 1, 1, 5))
        with world.calm:
            used = world.choose(random)
            if used is None:
                continue
            try:
                for _ in range(times):
                    if world.stop.is_set() or not _write_once(world, used):
                        break
                    world.pause(random, 0.5, 2)
            finally:
                used.busy.release()


def _write_once(world: World, used: Used) -> bool:
    """Write when the value is right; return whether to go on."""
    end = time.monotonic() + 15
    while not world.values.mounts[used.point].is_right:
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    with world.lock:
        fate = world.values.rival(used.point, time.monotonic(), RIVAL_KB)
        set_read_ahead_kb(used.watched.device, RIVAL_KB)
    world.say("rival", point=used.point, fate=fate.value)
    return fate is Fate.ANSWERED


def configure(world: World, random: Random) -> None:
    """Reload another configuration, now and then with an error in it."""
    while world.pause(random, 30, 100):
        settings = Settings(
            random.choice((256, 512, 1024, 2048, 4096)),
            random.choice((1024, 4096, 8192)),
            random.choice(("on", "on", "down", "off")),
            random.choice((5, 10)),
        )
        valid = random.random() < 0.8
        with world.calm:
            reload(world, settings, valid=valid)
            world.stop.wait(10)


def reload(world: World, settings: Settings, *, valid: bool) -> None:
    with world.lock:
        known = len(world.configurations)
        if valid:
            world.values.begin_reload(settings)
    file = ETC / "nfstuned.toml"
    file.with_suffix(".new").write_text(settings.text() if valid else INVALID)
    file.with_suffix(".new").rename(file)
    began = time.monotonic()
    world.daemon.reload()
    while len(world.configurations) == known and time.monotonic() - began < RELOAD_S:
        time.sleep(0.1)
    with world.lock:
        got = world.configurations[known:]
        if valid:
            world.values.end_reload(time.monotonic(), loaded=True)
    if not valid:
        file.write_text(world.values.in_force[0].text())
    as_told = got[:1] == [valid]
    what = str(settings) if valid else "invalid"
    world.say("reload" if as_told else "reload lost", what=what, took_s=time.monotonic() - began)


def change_system(world: World, random: Random) -> None:
    """Restart udev and journald, and step the clock."""
    true = time.time() - time.monotonic()
    while world.pause(random, 20, 90):
        what = random.choice(("systemd-udevd", "systemd-journald", "clock", "clock"))
        offset_s = random.uniform(0, MOST_CLOCK_S)
        if what == "clock":
            step_s = true + time.monotonic() + offset_s - time.time()
            time.clock_settime(time.CLOCK_REALTIME, time.time() + step_s)
            world.say("clock", step_s=step_s)
        else:
            run("systemctl", "restart", f"{what}.service")
            world.say("restart", what=what)


ACTORS = (come_and_go, come_and_go, use, use, break_off, rival, configure, change_system)
