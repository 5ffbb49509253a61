"""A journal as systemd-journald writes it, of a day that never was: python -m tests.host.journald FOLDER.

journald runs in a mount namespace of its own, over a /run of its own, and gets samples, which come as JSON
lines on stdin, through its real socket from the code that the daemon uses: in turn with systemd's library and
as without it. Root alone can have that.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from nfstuned.core.samples.sample import one_line, to_fields, to_line
from nfstuned.host.telemetry.journal import Journal, Message, Priority, send_by_socket
from nfstuned.model.samples import Sample
from nfstuned.parse.samples import parse_line
from tests.tree import put
from tests.users import NOBODY

ROOT = Path(__file__).parents[2]
JOURNALD = Path("/lib/systemd/systemd-journald")
CONFIG = """\
[Journal]
Storage=volatile
ReadKMsg=no
Audit=
RateLimitIntervalSec=0
RuntimeMaxUse=8G
RuntimeKeepFree=0
"""
"""Neither the kernel's messages nor its auditing are touched, and no entry is dropped."""
SETTLE_S = 30.0
Told = tuple[str, str, Mapping[str, object]]


def demand_journald() -> None:
    """Skip the test where there can be no journal."""
    if not JOURNALD.exists():
        pytest.skip("systemd-journald is not installed")
    if os.geteuid() != 0 or not _works("unshare", "-m", "true"):
        pytest.skip("a mount namespace needs root")
    if not _works(sys.executable, "-c", "import systemd.journal"):
        pytest.skip("systemd-python is not installed")


def _works(*command: str) -> bool:
    return subprocess.run(command, cwd="/", capture_output=True, check=False).returncode == 0


def record(
    folder: Path, samples: Iterable[Sample], forged: Iterable[Sample] = (), told: Iterable[Told] = ()
) -> None:
    """Write a journal with the samples below `folder`, those that a user without rights `forged`, and events.

    What the service `told` are names of messages, their texts and their fields; they come before the samples.
    The test is skipped where there can be no journal.
    """
    demand_journald()
    command = ["unshare", "-m", sys.executable, "-m", "tests.host.journald", str(folder)]
    events = b"".join(json.dumps(event).encode() + b"\n" for event in told)
    text = events + b"".join(map(to_line, samples)) + b"\n" + b"".join(map(to_line, forged))
    subprocess.run(command, input=text, cwd=ROOT, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})


def _main(folder: Path) -> None:
    run = Path(tempfile.mkdtemp(prefix="nfstuned-journal-"))
    (run / "log/journal").mkdir(parents=True)
    put(run / "systemd/journald.conf.d/test.conf", CONFIG)
    for command in (["mount", "--make-rprivate", "/"], ["mount", "--bind", str(run), "/run"]):
        subprocess.run(command, check=True)
    journald = subprocess.Popen([JOURNALD])
    try:
        until = time.monotonic() + SETTLE_S
        while not Path("/run/systemd/journal/socket").exists():
            if time.monotonic() > until:
                raise SystemExit("systemd-journald does not listen")
            time.sleep(0.02)
        child = os.fork()
        if child == 0:
            _send()
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise SystemExit("the samples could not be sent")
        subprocess.run(["journalctl", "--sync"], check=True)
    finally:
        journald.terminate()
        journald.wait()
    shutil.copytree(run / "log/journal", folder, dirs_exist_ok=True)
    shutil.rmtree(run)


def _send() -> None:
    from systemd.journal import sendv  # noqa: PLC0415 - why_not() says whether it is there

    journals = (Journal(sendv), Journal(send_by_socket))
    for number, line in enumerate(sys.stdin.buffer, 1):
        if line == b"\n":  # the rest is not root's
            os.setuid(NOBODY)
            continue
        journal = journals[number % len(journals)]
        if line.startswith(b"["):
            name, text, fields = json.loads(line)
            journals[0].send(Message[name], text, Priority.INFO, **fields)
            continue
        sample = parse_line(line, "stdin", number)
        if not isinstance(sample, Sample):
            raise sample
        journal.send(Message.SAMPLE, one_line(sample), Priority.INFO, **to_fields(sample))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
