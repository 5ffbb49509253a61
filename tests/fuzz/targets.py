"""Every parser of strangers' text as a function of bytes with its promise, for the fuzzer and its tests."""

from __future__ import annotations

import functools
import json
import linecache
import posixpath
import re
import socket
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from types import GeneratorType
from unittest import mock

import dns.exception
import dns.message

from nfstuned.core.mounts.volumes import volume_name, volume_paths
from nfstuned.core.nconnect.fstab import ansible_lines, owner, with_count
from nfstuned.core.nconnect.persist import sections
from nfstuned.core.samples.copies import (
    SavedCopy,
    copies_to_json,
    frame_between,
    frame_since_mounted,
    parse_copies,
)
from nfstuned.core.samples.top import TopState
from nfstuned.core.udev.faults import find_broken
from nfstuned.core.udev.writers import file_writers, started_scripts
from nfstuned.errors import ParseError
from nfstuned.host.image_root import ImageRoot
from nfstuned.host.network import names, outside
from nfstuned.host.observe import observe_intent, parse_login
from nfstuned.host.root import Root
from nfstuned.host.system import calls_sysctl
from nfstuned.host.volumes import read_kubelet_names
from nfstuned.model.kernel import Mount
from nfstuned.model.mounts import Request, Unexpanded
from nfstuned.model.udev import UdevFile
from nfstuned.parse.deploy.deployment import JudgedFile
from nfstuned.parse.deploy.kinds import embedded_requests, read_sources
from nfstuned.parse.etc.requests import local_lines, parse_fstab
from nfstuned.parse.etc.settings import parse_mount_nfs
from nfstuned.parse.etc.tunnel import parse_listening, parse_variable
from nfstuned.parse.etc.units import parse_units, preset_enables
from nfstuned.parse.fields import (
    mask_row,
    mask_secrets,
    octal_escapes,
    parse_kernel_options,
    unescape,
    unmangle,
)
from nfstuned.parse.proc import machine, mounts, processes
from nfstuned.parse.proc.mountstats import parse_stanzas, parse_transports
from nfstuned.parse.proc.sunrpc import parse_endpoint
from nfstuned.parse.yaml import MOST_DEPTH, MOST_VALUES, parse_documents
from nfstuned.view.top import plain_lines
from nfstuned.view.words import to_json
from tests.core.test_volumes import STAGED
from tests.fuzz import checks, documents, seeds
from tests.fuzz.checks import BrokenPromiseError
from tests.parse.test_damage import READERS
from tests.tree import put

MOST_TIMES = 1000
"""A parser's different rows are at most so many times longer than its text, and LEAST more."""
LEAST = 1 << 17
_BREAKS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""A line break as YAML counts it; no parser counts more."""
_NOW = datetime(2026, 11, 25, 12, tzinfo=timezone.utc)

Rows = Iterable[object]
Read = Callable[[str], Rows]


@dataclass(frozen=True, slots=True)
class Target:
    """A parser, and texts that it knows."""

    read: Callable[[bytes], Rows]
    """Yields its rows: False is a broken promise. Raises ParseError, and no other error."""
    seeds: Callable[[], Iterable[bytes]]


def judge(target: Target, data: bytes) -> None:
    """Hold a parser to its promise. Raises BrokenPromiseError, and any error but ParseError."""
    rows: list[object] = []
    try:
        for row in (reader := target.read(data)):
            if row is False:
                raise BrokenPromiseError(_promise(reader))
            rows.append(row)
    except ParseError as error:
        rows.append(error)
    last = len(_BREAKS.findall(data.decode("utf-8", "surrogateescape"))) + 1
    for row in rows:
        if isinstance(row, (ParseError, Request, Unexpanded)) and not 0 <= row.line <= last:
            raise BrokenPromiseError(f"line {row.line} of {last}: {row}")
    length = sum(map(len, {repr(row) for row in rows}))
    if length > MOST_TIMES * len(data) + LEAST:
        raise BrokenPromiseError(f"{length} characters of {len(data)}")


def _promise(reader: object) -> str:
    """Return the line of code that yielded last: the fuzzer keeps a text for each promise."""
    while isinstance(inner := getattr(reader, "gi_yieldfrom", None), GeneratorType):
        reader = inner
    frame = reader.gi_frame if isinstance(reader, GeneratorType) else None
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip() if frame else "a promise"


def _text(read: Read) -> Callable[[bytes], Rows]:
    return lambda data: read(data.decode("utf-8", "surrogateescape"))


def _each(readers: Iterable[tuple[str, Read]], text: str) -> Iterator[object]:
    """Yield the rows of several readers with their names; an error ends only its own reader."""
    for name, read in readers:
        try:
            for row in read(text):
                if row is False:
                    raise BrokenPromiseError(f"{name} breaks its promise")
                yield row
        except ParseError as error:  # noqa: PERF203 - a handful
            yield error


def _group(*rows: str, hosts: str = "", corpus: str = "", more: Iterable[Read] = ()) -> Target:
    """Return a target of rows of tests/parse/test_damage.py, with files of tests/hosts and of the corpus."""
    readers = [*((row, READERS[row][2]) for row in rows), *(("another reader", read) for read in more)]
    texts = [READERS[row][0].encode("utf-8", "surrogateescape") for row in rows]
    return Target(
        _text(lambda text: _each(readers, text)),
        lambda: (*texts, *seeds.of_hosts(hosts), *seeds.of_corpus(corpus)),
    )


def _deployment(files: Iterable[JudgedFile]) -> Iterator[object]:
    found = read_sources(files)
    yield from (*found.intent.requests, *found.intent.problems, *found.intent.local, *found.intent.misnamed)
    yield from (*found.unexpanded, *found.ignores, *found.unread)


def _files(name: str) -> Callable[[str], Iterator[object]]:
    """Return a reader of a file of this name, and of more files behind lines such as `--- tasks/a.yml`."""

    def read(text: str) -> Iterator[object]:
        first, *others = re.split(r"(?m)^--- (?=\S+\n)", text)
        more = (JudgedFile(*each.split("\n", 1)) for each in others)
        yield from _deployment([JudgedFile(name, first, named=True), *more])

    return read


def _named(text: str) -> Iterator[object]:
    """Yield the rows of a file; the first line is its name."""
    name, _, content = text.partition("\n")
    yield from _deployment([JudgedFile(name, content), JudgedFile(f"other/{name}", content, named=True)])
    yield from embedded_requests(content, name)


def _deploy(name: str, *kinds: str) -> Target:
    return Target(_text(_files(name)), lambda: seeds.of_corpus(*kinds))


def _fstab(text: str) -> Iterator[object]:
    rows = parse_fstab(text)
    yield from rows
    yield from local_lines(text, [row for row in rows if isinstance(row, Request)])
    yield owner(text)
    yield ansible_lines(text)
    yield [with_count(line, 4) for line in text.split("\n")[:200]]
    later = parse_fstab(f"{text}\nnas:/z /z nfs ro 0 0")
    kept = [row for row in rows if isinstance(row, Request)]
    yield [row for row in later if isinstance(row, Request)][: len(kept)] == kept


def _mountinfo(text: str) -> Iterator[object]:
    rows = mounts.parse_mountinfo(text)
    yield from rows
    nodes = mounts.parse_nodes(text)
    yield len(nodes) <= text.count("\n") + 1
    yield from (mounts.node_at(node.point, nodes) is not None for node in nodes[:50])
    yield mounts.remote_type(mounts.parse_mount_types(text), "/mnt/a/b")
    later = mounts.parse_mountinfo(f"{text}\n{seeds.MOUNT}")
    kept = [row for row in rows if isinstance(row, Mount)]
    yield [row for row in later if isinstance(row, Mount)][:-1] == kept


def _copies(data: bytes) -> Iterator[object]:
    """Yield the frames of `nfstuned top --file`; of a text with a line `=====` those between two files."""
    parts = data.split(b"\n=====\n", 1)
    copies, problems = list[SavedCopy](), list[str]()
    for part in parts:
        found, faults = parse_copies("f", part)
        copies += found
        problems += faults
    frames = [frame_since_mounted(copy) for copy in copies]
    for earlier, later in pairwise(copies):
        with suppress(ValueError):  # copies of other mounts
            frames.append(frame_between(earlier, later))
    yield from problems
    for frame in frames:
        yield from (line for width in (None, 80) for line in plain_lines(frame, TopState(), width))
    yield json.loads(to_json(copies_to_json(frames, problems))) is not None


def _mountstats(data: bytes) -> Iterator[object]:
    yield from READERS["mountstats"][2](data.decode("utf-8", "surrogateescape"))
    first = parse_stanzas([data])
    yield parse_stanzas([data], first) == first
    middle = len(data) // 2
    yield parse_stanzas([data[:middle], data[middle:]]) == first
    yield parse_transports(data)


def _unit_states(text: str) -> Iterator[object]:
    yield [state.loaded for state in parse_units(text).values()]
    yield [preset_enables([text], "autofs.service"), calls_sysctl(text)]
    yield parse_listening(text)
    yield parse_variable(text, "AZNFS_PORT")
    yield sections(text)


def _udev(text: str) -> Iterator[object]:
    yield from READERS["udev rules"][2](text)
    yield from find_broken(text, {})
    file = UdevFile("etc/udev/rules.d/99-a.rules", text)
    yield from file_writers([file])
    yield from started_scripts([file])


def _machine(text: str) -> Iterator[object]:
    yield machine.parse_modules(text)
    yield machine.parse_kernel_config(text)
    yield machine.parse_cpu_list(text)
    yield machine.parse_major_faults(text)
    yield machine.parse_nfs_inodes(text)
    yield machine.module_name(text)


def _processes(text: str) -> Iterator[object]:
    yield processes.parse_state(text)
    yield processes.parse_processor_ticks(text)
    yield processes.parse_uptime(text)


def _endpoint(text: str) -> Iterator[object]:
    yield parse_endpoint(text)


def _login(text: str) -> Iterator[object]:
    yield parse_login(text)


def _options(text: str) -> Iterator[object]:
    masked = mask_secrets(text)
    yield mask_secrets(masked) == masked
    yield mask_row(text)
    yield (octal_escapes(text), unescape(text), unmangle(text))
    yield parse_kernel_options(text)


def _yaml(text: str) -> Iterator[object]:
    documents = parse_documents(text, "f")
    yield sum(node.weight for node in documents) <= MOST_VALUES
    last = len(_BREAKS.findall(text)) + 1
    yield all(node.height <= MOST_DEPTH and 0 < node.line <= last for node in documents)


def _boot(data: bytes) -> Iterator[object]:
    """Yield the requests of a tree's units, fstab and maps, and those that its boot leaves out."""
    intent = observe_intent(Root(checks.put_tree(data)), ())
    yield from (*intent.requests, *intent.problems, *intent.settings, *intent.misplaced, *intent.misnamed)
    yield from (*intent.unloaded, *intent.unstarted, *intent.unordered, *intent.local, *intent.early)
    yield from (*intent.maps, *intent.faults)


@functools.cache
def _node() -> Path:
    folder = Path(tempfile.mkdtemp())
    put(folder / "proc/self/mountinfo", "")
    return folder


def _kubelet(data: bytes) -> Iterator[object]:
    """Yield whether the names of a kubelet's volume by its vol_data.json can be shown."""
    node = _node()
    put(node / posixpath.dirname(STAGED)[1:] / "vol_data.json", data)
    names = read_kubelet_names(Root(str(node)), [STAGED])
    yield from (text.isprintable() for text in (volume_name([STAGED], names), *volume_paths([STAGED], names)))


def _program(data: bytes) -> Iterator[object]:
    yield parse_mount_nfs(data)
    yield mounts.parse_uevent(data, "bdi")


def _answer(data: bytes) -> Iterator[object]:
    """Yield the aliases in a name server's answer, as dnspython read it."""
    with suppress(dns.exception.DNSException, ValueError):
        message = dns.message.from_wire(data)
        if isinstance(message, dns.message.QueryMessage):
            yield from names._chain(message)  # noqa: SLF001 - its caller sends questions


def _metadata(data: bytes) -> Iterator[object]:
    """Yield the size of a virtual machine by an answer of the metadata service, from its first byte."""
    near, far = socket.socketpair()
    with near, far:
        far.settimeout(1)
        near.settimeout(1)
        far.sendall(data[:50_000])
        far.shutdown(socket.SHUT_WR)
        with mock.patch.object(socket, "create_connection", return_value=near):
            # Its caller has threads.
            size, problem = outside._asked_size(outside.METADATA_URL, 1.0)  # noqa: SLF001
    yield (size is None) == (problem != "")


TARGETS: dict[str, Target] = {
    "check-fstab": Target(checks.of_file("fstab"), lambda: (*seeds.of_hosts("etc/fstab"), *seeds.fstabs())),
    "check-kubernetes": Target(checks.of_file("a.yaml"), lambda: seeds.of_corpus("kubernetes")),
    "check-compose": Target(
        checks.of_file("compose.yaml"), lambda: seeds.of_corpus("compose", "docker-volume")
    ),
    "check-ansible": Target(checks.of_file("play.yml"), lambda: seeds.of_corpus("ansible")),
    "check-script": Target(checks.of_file("mount.sh"), lambda: seeds.of_corpus("script", "docker-volume")),
    "check-image": Target(checks.of_tree(ImageRoot, image=True), lambda: seeds.trees(image=True)),
    "check-host": Target(checks.of_tree(Root, image=False), lambda: seeds.trees(image=False)),
    "kubernetes": _deploy("a.yaml", "kubernetes"),
    "compose": _deploy("compose.yaml", "compose", "docker-volume"),
    "ansible": _deploy("play.yml", "ansible"),
    "terraform": _deploy("plan.json", "terraform"),
    "cloud-init": _group("cloud.cfg", hosts="etc/cloud/.*", corpus="cloud-init", more=[_files("user-data")]),
    "script": _deploy("mount.sh", "script", "docker-volume"),
    "kinds": Target(_text(_named), seeds.named),
    "mountstats": Target(_mountstats, lambda: seeds.of_hosts("proc/.*mountstats")),
    "mountstats-copies": Target(_copies, lambda: (*seeds.of_hosts("proc/.*mountstats"), *seeds.copies())),
    "unit": _group("a unit", hosts=r".*\.(?:mount|automount)", corpus="unit", more=[_files("mnt-a.mount")]),
    "unit-states": Target(_text(_unit_states), seeds.states),
    "yaml": Target(_text(_yaml), lambda: seeds.of_corpus("kubernetes", "compose", "ansible", "terraform")),
    "autofs": _group(
        *("auto.master", "auto.misc", "autofs.conf", "an entry of a map"),
        hosts=r"etc/auto.*",
        corpus="autofs",
        more=[_files("auto.nas"), _files("auto.master")],
    ),
    "fstab": Target(_text(_fstab), lambda: (*seeds.of_hosts("etc/fstab"), *seeds.fstabs())),
    "mount-tables": _group("utab", "findmnt", hosts="run/mount/utab"),
    "configuration": Target(_text(documents.configuration), lambda: seeds.of_hosts("etc/nfstuned/.*")),
    "baseline": Target(_text(documents.baseline), seeds.baselines),
    "verdict": Target(_text(documents.verdicts), seeds.verdicts),
    "samples": Target(documents.samples, seeds.samples),
    "history": Target(documents.history, seeds.samples),
    "journal-entry": Target(documents.entry, seeds.entries),
    "bench": Target(documents.bench, seeds.benches),
    "fio": Target(_text(documents.fio), seeds.fio),
    "installed": Target(_text(documents.installed), seeds.installed),
    "mountinfo": Target(_text(_mountinfo), lambda: seeds.of_hosts("proc/.*mountinfo")),
    "nfsfs": _group(
        *("nfsfs/volumes", "nfsfs/servers", "one volume", "read_ahead_kb", "a device number"),
        hosts="proc/.*nfsfs/.*",
    ),
    "sunrpc": _group("tasks of RPC", more=[_endpoint]),
    "cifs": _group("cifs/DebugData", "cifs/Stats", hosts="proc/fs/cifs/.*"),
    "processes": _group("fdinfo", "maps", "swaps", "exports", "unix", "layers", more=[_processes]),
    "udev-rules": Target(
        _text(_udev), lambda: (*seeds.of_hosts(r".*/rules\.d/.*"), *seeds.of_corpus("udev"))
    ),
    "options": Target(_text(_options), seeds.options),
    "settings": _group(
        *("nfsmount.conf", "writers"),
        hosts=r"etc/(?:nfsmount|nfs|idmapd)\.conf.*|opt/.*|.*cred.*",
        more=[_login],
    ),
    "parameters": _group(
        "modprobe.d",
        "sysctl.d",
        "boot entries",
        hosts=r"etc/(?:modprobe|sysctl)\.d/.*|etc/default/grub|boot/.*",
    ),
    "tunnel": _group(
        *("stunnel.conf", "mountmap", "tunnels of aznfs", "stunnel.log"), hosts="(?:etc/stunnel|opt)/.*"
    ),
    "certificate": _group("certificates", hosts="etc/ssl/.*"),
    "machine": _group(
        "os-release",
        "osrelease",
        hosts=r".*/(?:os-release|modules\..*|online|cmdline|slabinfo)",
        more=[_machine],
    ),
    "name-files": _group("hosts", "nsswitch.conf", hosts="etc/(?:hosts|nsswitch.conf|resolv.conf)"),
    "program": Target(_program, seeds.programs),
    "dns-answer": Target(_answer, seeds.answers),
    "metadata-answer": Target(_metadata, seeds.metadata),
    "boot": Target(_boot, lambda: (*seeds.trees(image=False), *seeds.trees(image=True))),
    "kubelet": Target(_kubelet, seeds.kubelet),
}
"""By its name, in the order of their turns."""
