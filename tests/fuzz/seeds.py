"""Texts that the parsers know, from the samples of their tests: the fuzzer begins with them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator

import dns.message
import dns.rrset

from nfstuned.core.samples.sample import sample_to_json
from nfstuned.host.files.ledger import render_installed
from nfstuned.model.change import Installed
from nfstuned.view.bench import bench_document
from nfstuned.view.words import to_json
from tests.check import hosts
from tests.check.test_corpus import CORPUS
from tests.core.bench_values import COMPARED, SEARCHED
from tests.core.test_volumes import HANDLE
from tests.parse import test_fields, test_mounts, test_samples, test_settings, test_units

MOUNT = test_mounts.LINE
_DATA = CORPUS.parent
_MOST_TREE = 12_000
_VERDICT = {
    "schema": "nfstuned.check/1",
    "host": "web1",
    "root": "/",
    "exit_code": 1,
    "version": "0.1.0",
    "time": "2026-11-20T13:00:00Z",
    "skipped": [{"id": "NFS401", "name": "a", "needs": ["network"]}],
    "unknown": ["a"],
    "problems": [],
    "mounts": [{"source": "sa1.file.core.windows.net:/sa1/a", "mount_point": "/mnt/a"}],
    "findings": [
        {
            "rule": "NFS101",
            "name": "read-ahead-below-profile",
            "severity": "warning",
            "message": "/mnt/a reads ahead 128 KiB on web1",
            "remedy": "sudo nfstuned apply /mnt/a:12 10.0.0.1",
            "source": "https://example.com",
        }
    ],
}


@functools.cache
def _of_hosts() -> dict[bytes, str]:
    return {
        file.content: path
        for name in hosts.names()
        for files in (hosts.load(name).host.files, hosts.load(name).host.later)
        for path, file in files.items()
        if file.content
    }


def of_hosts(pattern: str) -> Iterator[bytes]:
    """Yield the different texts of the files of tests/hosts with these paths."""
    return (content for content, path in _of_hosts().items() if re.fullmatch(pattern, path))


@functools.cache
def _cases() -> tuple[tuple[str, str], ...]:
    """Return the kind and the files of each case, each file behind `--- NAME`.

    The cases of fuzz-seeds.txt have the form of tests/data/corpus, and no verdict.
    """
    texts = (file.read_text() for file in (*sorted(CORPUS.glob("*.txt")), _DATA / "fuzz-seeds.txt"))
    cases = (case for text in texts for case in re.split(r"(?m)^=== ", text)[1:])
    heads = (re.split(r"(?m)^(?=--- \S+\n)", case, maxsplit=1) for case in cases)
    return tuple((head.split()[1], files) for head, files in heads)


def of_corpus(*kinds: str) -> Iterator[bytes]:
    """Yield the cases of these kinds: as they are, and each file by itself."""
    for kind, files in _cases():
        if kind in kinds:
            yield files.encode()
            yield from (part.encode() for part in re.split(r"(?m)^--- \S+\n", files)[1:])


def named() -> Iterator[bytes]:
    """Yield all files, each behind its name."""
    for _, files in _cases():
        yield from (part.encode() for part in re.split(r"(?m)^--- (?=\S+\n)", files)[1:])


def _parts(text: str) -> Iterator[bytes]:
    return (part.encode() for part in re.split(r"(?m)^-- \S+ --\n", text)[1:])


def fstabs() -> Iterator[bytes]:
    return _parts((_DATA / "fstab/files.txt").read_text())


def copies() -> Iterator[bytes]:
    """Yield two copies of a mountstats, and a cut one."""
    for text in of_hosts("proc/.*mountstats"):
        yield text + b"\n=====\n" + text.replace(b"age:\t", b"age:\t9").replace(b"READ: ", b"READ: 1")
        yield text[len(text) // 3 :]


def states() -> Iterator[bytes]:
    yield (
        b"Id=mnt-a.mount\nLoadState=loaded\nFragmentPath=/run/systemd/generator/mnt-a.mount\nJob=0\n"
        b"ActiveState=active\nResult=success\nConditionResult=no\nBoundBy=a.service b.service\n\nId=b.mount\n"
    )
    yield test_units.TEXT.encode()
    yield from of_hosts(r".*\.preset|opt/.*|proc/net/tcp6?")


def baselines() -> Iterator[bytes]:
    finding = {"rule": "NFS307", "file": "a.yaml", "observed": "soft", "source": "nas:/a", "count": 2}
    yield json.dumps({"schema": "nfstuned.baseline/1", "findings": [finding]}).encode()
    yield b"nas:/a /a nfs soft # nfstuned: ignore NFS307, NFS308 the data can be made again\n"


def verdicts() -> Iterator[bytes]:
    yield json.dumps(_VERDICT).encode()
    for key, value in (
        ("host", "web2"),
        ("exit_code", 2),
        ("time", "2026-11-21T13:00:00Z"),
        ("findings", []),
    ):
        yield (json.dumps(_VERDICT) + "\n" + json.dumps(_VERDICT | {key: value})).encode()


def samples() -> Iterator[bytes]:
    sample = sample_to_json(test_samples.SAMPLE)
    yield json.dumps(sample).encode()
    yield b"\n".join(json.dumps(sample | {"time": 1795298159 + 60 * turn}).encode() for turn in range(3))


def entries() -> Iterator[bytes]:
    yield b"\n".join(
        b"%s=%s" % (key.encode(), value) for key, value in test_samples.sent(test_samples.SAMPLE).items()
    )
    yield from (b"1h 30min ago", b"2026-11-25 12:30:00 +02:00", b"@1795298159.25", b"yesterday", b"-2 days")


def benches() -> Iterator[bytes]:
    yield from (to_json(bench_document(bench)).encode() for bench in (COMPARED, SEARCHED))


def fio() -> Iterator[bytes]:
    for file in sorted((_DATA / "fio").iterdir()):
        whole = json.loads(file.read_text())
        job = whole["jobs"][0]
        keys = ("lat_ns", "clat_ns", "bw_bytes", "iops", "runtime")
        small = {"error": 0, **{side: {key: job[side][key] for key in keys} for side in ("read", "write")}}
        yield json.dumps({"jobs": [small]}).encode()


def installed() -> Iterator[bytes]:
    yield render_installed(Installed({"etc/a": ("0" * 64,)}, ("etc",), {"etc/b": "x"})).encode()


def options() -> Iterator[bytes]:
    yield from (line for text in of_hosts("etc/fstab") for line in text.split(b"\n")[:20])
    yield from (b"password=secret,user=a", b"https://a:b@c/d?sig=x", b"\\040\\011x", test_fields.KEY.encode())
    yield from (line.encode() for line in test_mounts.REAL.splitlines()[-3:])


def kubelet() -> Iterator[bytes]:
    yield HANDLE.encode()
    yield HANDLE.replace("rg#account", "rg\\u2028\\ud83d\\udcbe?sig=x").encode()
    yield from of_hosts(r".*/vol_data\.json")


def programs() -> Iterator[bytes]:
    yield from (test_settings.PROGRAM, test_settings.BEFORE, test_settings.AFTER)
    yield b"add@/devices/virtual/bdi/0:43\0ACTION=add\0DEVPATH=/devices/virtual/bdi/0:43\0SUBSYSTEM=bdi\0"


def answers() -> Iterator[bytes]:
    question = dns.message.make_query("sa1.file.core.windows.net", "A")
    answer = dns.message.make_response(question)
    answer.answer = [
        dns.rrset.from_text(
            "sa1.file.core.windows.net.", 60, "IN", "CNAME", "sa1.privatelink.file.core.windows.net."
        ),
        dns.rrset.from_text("sa1.privatelink.file.core.windows.net.", 60, "IN", "A", "10.0.0.4"),
    ]
    yield answer.to_wire()


def metadata() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 15\r\n\r\nStandard_D16_v4"
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nf\r\nStandard_D16_v4\r\n0\r\n\r\n"
    yield b"HTTP/1.0 404 Not Found\r\n\r\n"


def trees(*, image: bool) -> Iterator[bytes]:
    """Yield hosts, or images, as their files one behind the other, each behind a line with its path."""
    for name in hosts.names():
        case = hosts.load(name)
        if case.image == image:
            files = b"".join(b"-- %s --\n%s" % (path.encode(), text) for path, text in _files(case).items())
            if len(files) < _MOST_TREE:
                yield files


def _files(case: hosts.Case) -> dict[str, bytes]:
    files = {} if case.base is None else _files(case.base)
    own = {path: file.content for path, file in case.host.files.items()}
    gone = case.host.head.get("gone", ())
    return {path: text for path, text in files.items() if path not in gone} | own
