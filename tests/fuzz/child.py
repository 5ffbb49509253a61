"""Fuzz a parser in this process until its CPU time is used; tests/fuzz/__main__.py starts it."""

from __future__ import annotations

import importlib
import os
import re
import signal
import sys
import time
import traceback
from pathlib import Path

import atheris

SLOW_S = 5.0
"""CPU time of a text of at most 64 KiB, with the fuzzer's own counters."""


def signature(error: Exception) -> str:
    """Return the kind of an error, and its place or its promise: the same fault has the same."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/nfstuned/" in each.filename]
    place = f"{Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else ""
    words = re.sub(r"[^A-Za-z]+", "-", str(error))[:40] if isinstance(error, AssertionError) else ""
    return "-".join(filter(None, (type(error).__name__, place, words)))


def keep(folder: Path, kind: str, data: bytes) -> None:
    """Keep the smallest text with a fault."""
    file = folder / re.sub(r"[^\w.-]+", "-", kind)
    if not file.exists() or file.stat().st_size > len(data):
        file.write_bytes(data)


def main(name: str, seconds: str, folder: str, *options: str) -> None:
    """Fuzz for so many seconds of CPU time; `folder` gets a file for each different fault."""
    with atheris.instrument_imports(include=["nfstuned"]):
        targets = importlib.import_module("tests.fuzz.targets")
    target, found = targets.TARGETS[name], Path(folder)
    end = float(seconds)

    def one(data: bytes) -> None:
        began = time.process_time()
        try:
            targets.judge(target, data)
        except Exception as error:  # noqa: BLE001 - each fault is kept, and the fuzzing goes on
            keep(found, signature(error), data)
        ended = time.process_time()
        if ended - began > SLOW_S:
            keep(found, "slow", data)
        if ended > end:
            os.kill(os.getpid(), signal.SIGUSR1)  # libFuzzer ends, and prints its figures

    atheris.Setup([sys.argv[0], *options], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
