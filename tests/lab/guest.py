"""A guest: one kernel with a payload, followed by its output and judged by its end.

The guest has two serial lines: the console goes to a file, the payload's own terminal is streamed. A payload
ends by writing a tar of its results to a raw disk and then a marker with a word that only this boot knows.
Only both together count as an end: a guest that dies, hangs or stays silent can never look like a success.
"""

from __future__ import annotations

import enum
import re
import secrets
import selectors
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.lab import image

_RESULT_DISK = "256M"
_CONSOLE_TAIL = 3000
# No lockup warnings: emulation on a busy machine is slow enough to cause them, and the guest recovers.
_CRASH = re.compile(r"Kernel panic|Oops:|BUG: (?!soft lockup|workqueue lockup)|general protection fault")


class Verdict(enum.Enum):
    ENDED = "ended"
    DIED = "the guest died"
    HUNG = "the guest hung"
    SILENT = "the guest was silent"
    LOST = "the guest ended without results"


@dataclass(frozen=True)
class Limits:
    """In seconds: how long a boot may take, how long until its first word, and how long without another.

    `retries` is how often to boot again when a guest ends before its first word. `processors` is how many the
    guest has; with `counted` it has a single one, and its clock counts instructions: 1,000 million are a
    second, and a time without any passes at once. Its times do not depend on this machine and its other work,
    but it needs several times as long as another guest. The limits are of this machine's time.
    """

    total_s: float = 900
    first_s: float = 120
    quiet_s: float = 300
    retries: int = 0
    processors: int = 2
    counted: bool = False


@dataclass(frozen=True)
class System:
    """One of the image's kernels with a root disk, which is the image's own unless another is named.

    The guest's writes to the disk stay there if `keeps`, for the next boot; else they are dropped. `more` are
    options of QEMU for more devices.
    """

    release: str
    disk: Path | None = None
    keeps: bool = False
    more: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """The result of one boot; `status` is the payload's, `files` the folder of its files, if it left any."""

    release: str
    verdict: Verdict
    status: int | None
    seconds: float
    output: str
    console: str
    files: Path | None

    @property
    def passed(self) -> bool:
        """Whether the payload ran to its end, brought its results back, and called them a success."""
        return self.verdict is Verdict.ENDED and self.status == 0

    def explain(self) -> str:
        """Return the verdict in a sentence, with the last words of a guest that did not end well."""
        if self.verdict is Verdict.ENDED:
            return f"{self.release}: ended with status {self.status} after {self.seconds:.0f} s"
        words = self.output[-_CONSOLE_TAIL:] or "(nothing)"
        console = self.console[-_CONSOLE_TAIL:] or "(nothing)"
        head = f"{self.release}: {self.verdict.value} after {self.seconds:.0f} s"
        return f"{head}\n--- its last words:\n{words}\n--- its console ends:\n{console}"


def boot(
    system: System | str,
    payload: Path,
    target: Path,
    say: Callable[[str], None],
    limits: Limits | None = None,
) -> Result:
    """Boot a system, run `payload`/start in it, and extract its results into `target`/`files`.

    A release alone means the image's own disk.

    Each line that the payload prints goes to `say` as it comes. All of them are kept in `target`/output.txt,
    and the console in `target`/console.txt. Emulation now and then makes a kernel hang or oops in its first
    seconds, when nothing that is under test has begun: only such a boot may be repeated, and it is reported.
    """
    limits = limits or Limits()
    system = System(system) if isinstance(system, str) else system
    result = _boot_once(system, payload, target, say, limits)
    for _ in range(limits.retries):
        if result.output.strip():
            break
        say(f"lab: {system.release}: {result.verdict.value} before its first word; booting again")
        result = _boot_once(system, payload, target, say, limits)
    return result


def _boot_once(
    system: System, payload: Path, target: Path, say: Callable[[str], None], limits: Limits
) -> Result:
    target.mkdir(parents=True, exist_ok=True)
    console, results, word = target / "console.txt", target / "results.tar", secrets.token_hex(8)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        packed = _pack(payload, Path(folder) / "payload.tar", word)
        with results.open("wb") as file:
            file.truncate(int(_RESULT_DISK.rstrip("M")) << 20)
        argv = _command(system, limits, packed, results, console)
        errors = target / "qemu.txt"
        with errors.open("w") as stderr:
            output, in_time = _follow(argv, stderr, limits, say)
    (target / "output.txt").write_text(output)
    kernel = "".join(path.read_text(errors="replace") for path in (console, errors) if path.exists())
    status = end_status(output, word)
    files = unpack(results, target / "files") if status is not None else None
    results.unlink()
    verdict = judge(output, kernel, in_time=in_time, status=status, files=files)
    return Result(system.release, verdict, status, time.monotonic() - started, output, kernel, files)


def shell(release: str, payload: Path) -> int:
    """Boot `release` with this terminal as the guest's; return QEMU's status when the guest is off."""
    with tempfile.TemporaryDirectory() as folder:
        packed = _pack(payload, Path(folder) / "payload.tar", "shell")
        results = Path(folder) / "results"
        results.write_bytes(bytes(1 << 20))
        argv = _command(System(release), Limits(), packed, results, Path(folder, "console"))
        return subprocess.run(argv, check=False).returncode


def judge(output: str, console: str, *, in_time: bool, status: int | None, files: Path | None) -> Verdict:
    """Return how a boot ended, from its output and files; `status` is None without the end marker."""
    if status is not None:
        return Verdict.ENDED if files is not None else Verdict.LOST
    if _CRASH.search(console):
        return Verdict.DIED
    if not output.strip():
        return Verdict.SILENT
    return Verdict.DIED if in_time else Verdict.HUNG


def end_status(output: str, word: str) -> int | None:
    """Return the status in the end marker of the boot that was given `word`; None without one."""
    found = re.search(rf"^@@lab-end {word} (\d+)$", output, re.MULTILINE)
    return int(found[1]) if found else None


def unpack(results: Path, into: Path) -> Path | None:
    """Extract the tar that a guest wrote onto its result disk; None when there is no whole one."""
    into.mkdir(exist_ok=True)
    argv = ["tar", "-xf", str(results), "-C", str(into), "--no-same-owner", "--no-same-permissions"]
    done = subprocess.run(argv, check=False, capture_output=True)
    # A disk full of zeros is an empty tar.
    return into if done.returncode == 0 and any(into.iterdir()) else None


def _pack(payload: Path, target: Path, word: str) -> Path:
    """Make the payload a disk that is a tar: stock cloud kernels cannot share a folder (no 9p)."""
    with tarfile.open(target, "w") as tar:
        tar.add(payload, ".", filter=_as_root)
        note = Path(target.parent, "word")
        note.write_text(word)
        tar.add(note, "word", filter=_as_root)
    with target.open("ab") as file:
        file.truncate(-(-target.stat().st_size // 1048576) * 1048576)
    return target


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    return member


def _machine(release: str, limits: Limits) -> list[str]:
    """Emulate: nested KVM hangs stock kernels on many cloud machines.

    cmpxchg16b is taken away: QEMU 7.2 emulates it wrongly, and kernels from 6.12 on corrupt their slabs.
    AVX and a fifth level of page tables cost emulation more than they save the guest, and with QEMU's own
    choice of 1/8 of the guest's memory for translated code it translates the same code again and again. A
    boot of 6.1 with Python, systemd and a mount in it took 41 s before and 26 s after. A kernel that knows
    of fast strings (erms, fsrm) copies each byte by itself, which to an emulator is an instruction: without
    them, and without SMAP and SMEP, writing and reading a file over NFS takes half, the same boot 0.83.
    Of the devices that QEMU adds unasked (a display, a CD drive, a floppy drive) a guest loads the drivers.
    An oops is a panic and a panic ends QEMU, so that a dead guest is seen at once.
    """
    kernel = image.folder() / "boot"
    options = "rw console=ttyS0 loglevel=4 systemd.show_status=0 mitigations=off audit=0 oops=panic panic=-1"
    off = ("cx16", "la57", "avx", "avx2", "fma", "f16c", "erms", "fsrm", "smap", "smep")
    return [
        *(*image.emulator(), "-accel", f"tcg,thread={'single' if limits.counted else 'multi'},tb-size=1024"),
        *(("-icount", "shift=0,sleep=off") if limits.counted else ()),
        *("-cpu", ",".join(["max", *(f"{name}=off" for name in off)])),
        *("-smp", str(1 if limits.counted else limits.processors), "-m", "2048"),
        *("-kernel", str(kernel / f"vmlinuz-{release}"), "-initrd", str(kernel / f"initrd-{release}")),
        *("-append", options, "-no-reboot", "-nodefaults", "-display", "none"),
    ]


def _disks(system: System, payload: Path, results: Path) -> list[str]:
    """Return the three disks, /dev/vda to /dev/vdc. The image's own is never written."""
    disk, fate = system.disk or image.disk(), "off" if system.disk and system.keeps else "on"
    return [
        *("-drive", f"file={disk},if=virtio,format=raw,snapshot={fate}"),
        *("-drive", f"file={payload},if=virtio,format=raw,readonly=on"),
        *("-drive", f"file={results},if=virtio,format=raw,cache=unsafe"),
    ]


def _command(system: System, limits: Limits, payload: Path, results: Path, console: Path) -> list[str]:
    """Return QEMU's command: the console goes to a file, the payload's terminal to its own streams."""
    terminal = ("-chardev", "stdio,id=terminal,signal=off", "-serial", "chardev:terminal")
    machine, disks = _machine(system.release, limits), _disks(system, payload, results)
    # A signal may end this program at any time, and would leave the emulator running.
    ended_with_us = ("setpriv", "--pdeathsig", "KILL")
    return [*ended_with_us, *machine, *disks, *system.more, "-serial", f"file:{console}", *terminal]


def _follow(argv: list[str], errors: IO[str], limits: Limits, say: Callable[[str], None]) -> tuple[str, bool]:
    """Run QEMU and pass on each line of the guest; return its output, and whether QEMU ended by itself."""
    text = line = ""
    end = time.monotonic() + limits.total_s
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=pipe, stderr=errors, bufsize=0) as qemu,
        selectors.DefaultSelector() as selector,
    ):
        assert qemu.stdout is not None
        selector.register(qemu.stdout, selectors.EVENT_READ)
        data = b"-"
        try:
            while data:
                left = min(end - time.monotonic(), limits.quiet_s if text else limits.first_s)
                if left <= 0 or not selector.select(left):
                    break
                data = qemu.stdout.read(65536)
                new = data.decode(errors="replace").replace("\r", "") if data else "\n" if line else ""
                text += new
                *lines, line = (line + new).split("\n")
                for whole in lines:
                    if not whole.startswith("@@lab-end "):
                        say(whole)
        finally:
            qemu.kill()
    return text, not data


def stdout_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
