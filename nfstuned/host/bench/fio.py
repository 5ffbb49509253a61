"""fio(1), which sends the requests: its command line, and its figures.

The figures are of `--output-format=json` of fio 3.0 and later (HOWTO, "Interpreting the output").
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable

from nfstuned.errors import ParseError
from nfstuned.host.bench.documents import validated
from nfstuned.model.bench import Delivered, Engine, Job, Pattern

PROGRAM = "fio"
END_S = 30.0
"""The time beyond run and ramp: to begin, and to write the figures."""
_SLOWEST_BYTES_PER_S = 1e6
"""A server that takes the files more slowly is not measured."""
_NS_PER_MS = 1e6
_MS_PER_S = 1e3
Runner = Callable[[list[str], float], tuple[str, str]]
"""Runs a command for so many seconds at most; returns its output, and the problem."""


def version() -> str:
    """Return fio's name and version; "" where it is not installed or does not run."""
    path = shutil.which(PROGRAM)
    if path is None:
        return ""
    command = [path, "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=END_S)  # noqa: S603 - found in PATH, as a shell would
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def arguments(job: Job, folder: str) -> list[str]:
    """Return fio's command line for a job; jobs of one shape find the same files.

    A job that has read all of its files begins again at their start and drops them from the page cache
    (fio's loop_cache_invalidate), so that nothing is read from the client's memory the second time.
    The kernel gets no advice: by itself fio gives POSIX_FADV_SEQUENTIAL, which doubles the read-ahead of a
    file, and POSIX_FADV_RANDOM, which ends it (mm/fadvise.c), and programs do neither.
    """
    pattern = job.pattern.value + (f":{job.skip_bytes}" if job.skip_bytes else "")
    depth = [f"--iodepth={job.depth}"] if job.engine is Engine.ASYNCHRONOUS else []
    return [
        PROGRAM,
        "--output-format=json",
        f"--name={job.name}",
        f"--directory={folder}",
        f"--filename_format={job.threads}-{job.files}-{job.file_bytes}.$jobnum.$filenum",
        f"--rw={pattern}",
        f"--bs={job.block_bytes}",
        f"--ioengine={job.engine.value}",
        f"--direct={int(job.direct)}",
        *depth,
        f"--numjobs={job.threads}",
        f"--nrfiles={job.files}",
        f"--filesize={job.file_bytes}",
        "--time_based",
        f"--runtime={job.runtime_s * 1000:.0f}ms",
        f"--ramp_time={job.ramp_s * 1000:.0f}ms",
        "--fallocate=none",
        "--invalidate=1",
        "--fadvise_hint=0",
        "--group_reporting",
        "--thread",
    ]


def lay_out(job: Job, folder: str, run: Runner) -> str:
    """Make the files of a job, unless they are there; return the problem, "" without one."""
    seconds = END_S + job.bytes_on_disk / _SLOWEST_BYTES_PER_S
    output, problem = run([*arguments(job, folder), "--create_only=1"], seconds)
    try:
        return problem or errno_text(parse_fio(output, job.pattern).error)
    except ParseError as unclear:
        return unclear.message


def errno_text(number: int) -> str:
    """Return the meaning of an errno of the files' server; "" for 0."""
    if number == errno.EDQUOT:
        return f"{os.strerror(number)}: the quota of the share, or of this user on it, is used up"
    return os.strerror(number) if number else ""


def run_job(job: Job, folder: str, run: Runner) -> tuple[Delivered | None, str]:
    """Run a job; return its figures, and why they do not count, "" where they do."""
    output, problem = run(arguments(job, folder), job.ramp_s + job.runtime_s + END_S)
    try:
        delivered = parse_fio(output, job.pattern)
    except ParseError as unclear:
        return None, problem or unclear.message
    nothing = "" if delivered.seconds else "fio ended before it had measured anything"
    return delivered, errno_text(delivered.error) or problem or nothing


def parse_fio(text: str, pattern: Pattern) -> Delivered:
    """Return the figures of a job with group_reporting. Raises ParseError.

    fio writes its notes and errors before the document, to the same stream. Its percentiles are of the
    completion (clat), unless those of the whole latency (lat) are asked for.
    """
    try:
        job = json.loads(text[text.index("{") :])["jobs"][0]
        side = job["read" if pattern.reads else "write"]
        whole, completion = side["lat_ns"], side.get("clat_ns", {})
        p99_ns = {**completion.get("percentile", {}), **whole.get("percentile", {})}.get("99.000000")
        figures = {
            "bytes_per_s": side["bw_bytes"],
            "operations_per_s": side["iops"],
            "latency_ms": whole["mean"] / _NS_PER_MS,
            "latency_p99_ms": None if p99_ns is None else p99_ns / _NS_PER_MS,
            "seconds": side["runtime"] / _MS_PER_S,
            "error": job["error"],
        }
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError) as error:
        reason = f"its output has no figures of a job ({error!r})"
        raise ParseError("fio", 0, f"{reason}: {text.strip()[-200:]!r}") from None
    return validated(Delivered, figures, "fio")
