"""The version of a release in the tree, and the files that belong to all of its files.

python -m dev.package.release cut VERSION | ready | finish, called by dev/release.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import sys
from collections.abc import Callable, Mapping

from dev.package import lock, own
from dev.package.about import Release, release, version
from dev.package.run import PROJECT, BuildError, run

CHANGES = "CHANGELOG.md"
_HEAD = "## Unreleased\n"
PLACES = {
    "nfstuned/__init__.py": '__version__ = "{}"',
    "deploy/helm/nfstuned/Chart.yaml": 'version: {0}\nappVersion: "{0}"',
    "deploy/ansible/galaxy.yml": "version: {}",
}
"""Files that must have the version, in these lines."""
EXAMPLES = ("README.md", "docs", "deploy", "dev/trials")
"""Files and folders with the names of packages, images and archives."""
_LOCKS = ("dev/package/build.lock", "dev/package/vendor.lock", "dev/package/image.lock")
_KIND = "https://slsa.dev/provenance/v1"


def main(command: str, *arguments: str) -> int:
    """Do the command; return the exit status."""
    commands: dict[str, Callable[..., None]] = {"cut": _cut, "ready": _ready, "finish": _finish}
    try:
        commands[command](*arguments)
    except BuildError as error:
        print(f"dev/release: {error}", file=sys.stderr)
        return 1
    return 0


def cut(texts: Mapping[str, str], new: str, day: str) -> dict[str, str]:
    """Return the texts with a new version, and with a section of that day in the changelog.

    Raises BuildError where the version is not a later one, the changelog has nothing new, or a place has no
    version.
    """
    (old,) = re.findall('__version__ = "(.+)"', texts["nfstuned/__init__.py"])
    if not re.fullmatch(r"\d+\.\d+\.\d+", new) or _numbers(new) <= _numbers(old):
        raise BuildError(f"{new!r} is no version after {old}: give three numbers, as in 1.2.3")
    if not re.search(rf"^{_HEAD}\n*(?!## )\S", texts[CHANGES], re.MULTILINE):
        raise BuildError(f"{CHANGES} has nothing below {_HEAD.strip()!r}: describe the changes first")
    # An address such as 10.1.0.3 has no version.
    pattern = re.compile(rf"(?<![\d.]){re.escape(old)}(?!\.?\d)")
    done = {name: pattern.sub(new, text) for name, text in texts.items()}
    done[CHANGES] = texts[CHANGES].replace(_HEAD, f"{_HEAD}\n## {new} - {day}\n", 1)
    for name, lines in PLACES.items():
        if lines.format(new) not in done[name]:
            raise BuildError(f"{name} has not these lines: {lines.format(old)}")
    return done


def demand_cut(changes: str, what: str, dirty: str) -> None:
    """Raise BuildError where the tree is no release: the changelog has no section, or files are changed."""
    if dirty:
        raise BuildError(f"these files are not committed:\n{dirty}")
    if not re.search(rf"^## {re.escape(what)} - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        raise BuildError(f"{CHANGES} has no section of {what}: run `sh dev/release cut VERSION`, and commit")


def provenance(what: Release, commit: str, subjects: Mapping[str, str], inputs: Mapping[str, str]) -> str:
    """Return an in-toto statement (v1, with SLSA's provenance v1) of files and inputs with their SHA-256.

    It has no signature: the signature of SHA256SUMS covers it.
    """
    sources = [{"uri": f"git+commit:{commit}", "digest": {"gitCommit": commit}}]
    sources += [{"uri": name, "digest": {"sha256": digest}} for name, digest in inputs.items()]
    statement = {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in subjects.items()],
        "predicateType": _KIND,
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:x-nfstuned:dev-release",
                "externalParameters": {"version": what.version, "revision": what.revision},
                "resolvedDependencies": sources,
            },
            "runDetails": {"builder": {"id": "urn:x-nfstuned:checkout"}},
        },
    }
    return f"{json.dumps(statement, indent=2)}\n"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _cut(new: str) -> None:
    tracked = run("git", "ls-files", "-z", CHANGES, *PLACES, *EXAMPLES).split("\0")
    texts = {}
    for name in filter(None, tracked):
        with contextlib.suppress(UnicodeDecodeError):  # a picture
            texts[name] = (PROJECT / name).read_text()
    for name, text in cut(texts, new, dt.datetime.now(dt.timezone.utc).date().isoformat()).items():
        if text != texts[name]:
            (PROJECT / name).write_text(text)
    print(f"Commit this, then run `sh dev/release`, and tag the commit: git tag v{new}")


def _ready() -> None:
    demand_cut((PROJECT / CHANGES).read_text(), version(), run("git", "status", "--porcelain"))


def _finish() -> None:
    what, into = release(1), PROJECT / "dist"
    own.source(what, into)
    subjects = {path.name: lock.digest(path) for path in sorted(into.iterdir()) if path.is_file()}
    inputs = {name: lock.digest(PROJECT / name) for name in _LOCKS}
    statement = into / f"nfstuned-{what.version}.intoto.json"
    statement.write_text(provenance(what, run("git", "rev-parse", "HEAD").strip(), subjects, inputs))
    sums = {**subjects, statement.name: lock.digest(statement)}
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (into / "SHA256SUMS").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
