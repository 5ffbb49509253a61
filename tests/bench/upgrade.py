"""The part of docs/reliability.md about upgrades, from the lines that a guest has left.

`sh dev/lab KERNEL upgrade` kills and measures (tests/lab/kit/upgrade.py). The lines are kept in tests/data;
a test holds the page to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.page import COUNTED, KEPT, RELIABILITY, Row, filled, rows_of
from tests.lab.kit.dpkg import MOMENTS


def kept(release: str) -> Path:
    """Return the file of a kernel's lines."""
    return KEPT / f"upgrade-{release}.jsonl"


def of_part(text: str, part: str) -> list[Row]:
    """Return the rows of a kind: `dpkg`, `service`, `run`, or one of `_FACTS`."""
    return [row for row in rows_of(text) if row["part"] == part]


def lines(release: str, text: str) -> Iterator[str]:
    """Yield the lines of the page, about the parts that have run."""
    runs, dpkg, service = of_part(text, "run"), of_part(text, "dpkg"), of_part(text, "service")
    run = runs[-1] | {name: sum(run[name] for run in runs) for name in ("blocks", "looks", "undone")}
    yield (
        f"On {run['date']}, Linux {release} and Debian 13, {COUNTED} {run['mounts']} NFS mounts have "
        f"{run['kb']} KiB by the configuration. On a mount of version 4.1 and a mount of version 3 a program "
        f"writes a file and reads it from the server all the time: {run['blocks']:,} blocks in this run. "
        f"A watcher has read all values {run['looks']:,} times. `dpkg --install` of the other version is "
        "killed with SIGKILL, with its scripts, at each moment of the table. Then an idle mount is unmounted "
        "and a new mount gets its device number. The commands in the table complete the work; the compiled "
        "files of an earlier installation are put in place before, which saves the time to compile them."
    )
    yield ""
    yield from _dpkg_table(dpkg)
    yield ""
    yield (
        "\\* The service was killed as well, so that it started from the files of that moment. Its state is "
        "from the time before the work was completed."
    )
    yield ""
    yield (
        "After each kill the host is compared with a host without a kill: `dpkg --verify`, the files "
        "below `/usr/lib/nfstuned` with the compiled files, temporary files, masked units, the service, the "
        "mask of udev's rule, the mounts' lines in mountinfo, and the values of all mounts. "
        f"Differences: {_faults(dpkg)}."
    )
    if many := sum(bool(row["orphans"]) for row in dpkg):
        yield ""
        yield (
            f"After {many} of {len(dpkg) // 2} downgrades 0.1.0 has compiled files of modules that it does "
            "not have; nothing loads them, and the next change of version removes them."
        )
    if service:
        yield ""
        yield "The service is killed with SIGKILL, all its processes, while a new mount waits for its value:"
        yield ""
        yield from _service_table(service)
        yield ""
        yield (
            f"Differences: {_faults(service)}. The unit ignores a failure of the command that masks udev's "
            "rule: then the service sets its values again after the rule."
        )
    yield ""
    yield (
        f"- `nfstuned undo`, {run['undone']} times by both versions, after kills and changes of version: "
        f"each mount has the kernel's {run['kernel_kb']} KiB again, also where the other version made the "
        "record."
    )
    for row in rows_of(text):
        if row["part"] in _FACTS:
            words = {
                key: ", ".join(value) or "none" if isinstance(value, list) else value
                for key, value in row.items()
            }
            yield f"- {_FACTS[row['part']].format_map(words)}"


_FACTS = {
    "configuration": (
        "0.1.0 refuses a configuration with keys that it does not know, and then changes no value: a new "
        "mount has {value_kb} KiB, all others keep theirs. After `apt-get upgrade`, from a repository in a "
        "folder, it has {again_kb} KiB."
    ),
    "held": (
        "{mounts} values that `nfstuned undo` has put back stay so through a downgrade and an upgrade "
        "({versions})."
    ),
    "installation": (
        "The first installation is killed when {moment}. The {held} mounts that existed keep their values, "
        "and a mount that the service sets meanwhile stays the service's, also after `dpkg --configure -a` "
        "and another start. Differences: {faults}."
    ),
    "purge": "Paths that stay or differ after `dpkg --purge`: {left}.",
}


def _dpkg_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| Kill when | after | dpkg's state | the service | completed by | in | wrong values | I/O errors |"
    yield "|---|---|---|---|---|---|---|---|"
    order = [moment.name for moment in MOMENTS]
    for row in sorted(rows, key=lambda row: order.index(row["moment"])):
        name = f"{row['from']} to {row['to']}: {row['moment']}"
        by = ", ".join(f"`{command}`" for command in row["completed"])
        service = row["service"] + ("*" if row["service_killed"] else "")
        yield (
            f"| {name} | {row['killed_s']} s | {row['state']} | {service} | {by} | {row['again_s']} s "
            f"| {row['wrong']} | {row['io_errors']} |"
        )


def _service_table(rows: Sequence[Row]) -> Iterator[str]:
    yield "| Kill | new mount's value then | all right again after | wrong values | I/O errors |"
    yield "|---|---|---|---|---|"
    for row in rows:
        yield (
            f"| {row['moment']} | {row['value_kb']} KiB | {row['again_s']} s | {row['wrong']} "
            f"| {row['io_errors']} |"
        )


def _faults(rows: Sequence[Row]) -> str:
    found = [f"{row['moment']}: {fault}" for row in rows for fault in row["faults"]]
    return "; ".join(found) or "none"


def make(text: str, release: str) -> list[Path]:
    """Keep the lines that a guest has left, and fill the page; return the files."""
    kept(release).write_text(text)
    RELIABILITY.write_text(filled(RELIABILITY.read_text(), "upgrade", lines(release, text)))
    return [kept(release), RELIABILITY]
