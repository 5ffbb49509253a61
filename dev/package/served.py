"""Try repositories, served on loopback: fresh systems install from them, and refuse changed ones."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from dev.package.check import in_root, say
from dev.package.repository import index_rpm, make
from dev.package.run import run
from tests.lab import roots

_TOOLS = ("createrepo-c", "curl", "dnf", "python3", "rpm", "zypper")


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a repository, and the messages, as regular expressions, of the tools that refuse it."""

    make: Callable[[Path], None]
    apt: str = ""
    """Empty where the change concerns packages of rpm alone."""
    dnf: str = ""
    zypper: str = ""


def check(packages: Sequence[Path]) -> None:
    """Install packages from repositories, and see changed repositories refused. Raises BuildError."""
    with tempfile.TemporaryDirectory() as folder, keyring():
        top = Path(folder)
        top.chmod(0o755)
        make(packages, top / "own", "own")
        for name, change in CHANGES.items():
            change.make(shutil.copytree(top / "own", top / name))
        with _served(top) as address:
            apt = [f"{name}={change.apt}" for name, change in CHANGES.items() if change.apt]
            for suite in roots.SUITES:
                _try(suite, f"sh /root/apt.sh {shlex.join([address, *apt])}", ())
            dnf = [f"{name}={change.dnf}={change.zypper}" for name, change in CHANGES.items() if change.dnf]
            _try(roots.SUITES[-1], f"sh /root/dnf.sh {shlex.join([address, *dnf])}", _TOOLS)


@contextmanager
def keyring() -> Iterator[None]:
    """Use a gpg with the secret keys `own` and `stranger` alone."""
    before = os.environ.get("GNUPGHOME")
    with tempfile.TemporaryDirectory(prefix="gpg") as home:
        os.environ["GNUPGHOME"] = home
        try:
            for name in ("own", "stranger"):
                make_key = ("gpg", "--batch", "--passphrase=", "--quick-generate-key")
                run(*make_key, f"{name} <{name}@example.org>", "rsa3072", "sign")
            yield
        finally:
            run("gpgconf", "--kill", "all")
            del os.environ["GNUPGHOME"]
            if before is not None:
                os.environ["GNUPGHOME"] = before


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine alone; yield the address."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def _try(suite: str, script: str, tools: Sequence[str]) -> None:
    start = time.monotonic()
    name = f"{suite}, dnf and zypper" if tools else suite
    say(name, in_root(suite, script, (), tools))
    say(name, f"{time.monotonic() - start:.0f} s with the installation of the system")


def _signed_by_a_stranger(repository: Path) -> None:
    """Give packages and indexes the signatures of another key, and keep the public key."""
    packages = [*repository.rglob("*.deb"), *repository.rglob("*.rpm")]
    other = repository.with_name(f"{repository.name}.other")
    make(packages, other, "stranger")
    for part in ("apt", "rpm"):
        shutil.rmtree(repository / part)
        (other / part).rename(repository / part)
    shutil.rmtree(other)


def _flip(*files: Path) -> None:
    """Change one byte in the middle of each file, so that its size stays the same."""
    for file in files:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)


def _index(repository: Path) -> None:
    _flip(*repository.glob("apt/dists/*/*/*/Packages*"), *repository.glob("rpm/repodata/*primary*"))


def _no_signature(repository: Path) -> None:
    for pattern in ("apt/dists/*/InRelease", "apt/dists/*/Release.gpg", "rpm/repodata/*.asc"):
        for file in repository.glob(pattern):
            file.unlink()


def _package(repository: Path) -> None:
    _flip(*repository.rglob("*.deb"), *repository.rglob("*.rpm"))


def _unsigned_package(repository: Path) -> None:
    run("rpmsign", "--delsign", *repository.rglob("*.rpm"))
    index_rpm(repository / "rpm", "own")


def _strangers_package(repository: Path) -> None:
    gpg = f"--define=__gpg {shutil.which('gpg')}"
    run("rpmsign", gpg, "--define=_gpg_name stranger", "--addsign", *repository.rglob("*.rpm"))
    index_rpm(repository / "rpm", "own")


CHANGES = {
    "another-key": Change(
        _signed_by_a_stranger, "NO_PUBKEY|Missing key", "Bad GPG signature", "signed with an unknown key"
    ),
    "changed-index": Change(
        _index, "Hash Sum mismatch", "checksum doesn't match", "Digest verification failed"
    ),
    "unsigned-index": Change(_no_signature, "is not signed", "GPG signature is not available", "is unsigned"),
    "changed-package": Change(
        _package, "Hash Sum mismatch", "checksum doesn't match", "Signature does not verify"
    ),
    "unsigned-package": Change(_unsigned_package, "", "is not signed", "File is unsigned"),
    "package-of-another-key": Change(
        _strangers_package, "", "not correct for this package", "public key is not available"
    ),
}
