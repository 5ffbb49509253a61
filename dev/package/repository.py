"""Make signed repositories of dist/:  python -m dev.package.repository, for dev/repository."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dev.package.about import MACHINES, Release, version
from dev.package.run import PROJECT, BuildError, run

PUBLIC = "nfstuned.asc"
"""The public key, which apt, rpm, dnf and zypper read in this form."""
SUITE = "stable"
_CONTENT = {"apt", "rpm", PUBLIC}
_DISTRIBUTION = """\
Origin: nfstuned
Label: nfstuned
Suite: {suite}
Codename: {suite}
Components: main
Architectures: {architectures}
Description: nfstuned for Debian and Ubuntu
SignWith: {key}
"""


def main() -> int:
    """Do as the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="dev/repository", description="Make signed repositories of the packages in dist/."
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="new, or made by this command")
    parser.add_argument("--key", help="a secret key of gpg that signs")
    parser.add_argument("--check", action="store_true", help="try repositories in fresh systems instead")
    wish = parser.parse_args()
    if wish.check is bool(wish.folder or wish.key) or bool(wish.folder) is not bool(wish.key):
        parser.error("give DIR and --key KEY, or --check alone")
    try:
        if wish.check:
            from dev.package.served import check  # noqa: PLC0415 - it imports this module

            check(packages())
        else:
            folder = wish.folder.resolve()
            # Before a build of some minutes.
            demand_place(folder)
            signing_key(wish.key)
            make(packages(), folder, wish.key)
            print(f"{wish.folder}: to try it, serve it on this machine alone:")
            print(f"  python3 -m http.server --bind 127.0.0.1 --directory {wish.folder} 8000")
    except (BuildError, OSError) as error:
        print(f"dev/repository: {error}", file=sys.stderr)
        return 1
    return 0


def packages(dist: Path = PROJECT / "dist") -> list[Path]:
    """Return the newest packages of this version, built if there are none. Raises BuildError."""
    start, end = f"nfstuned_{version()}-", "_amd64.deb"
    if not (found := list(dist.glob(f"{start}*{end}"))):
        print("dev/repository: building the packages first: some minutes", file=sys.stderr)
        run("sh", PROJECT / "dev/build")
        found = list(dist.glob(f"{start}*{end}"))
    revision = max(int(path.name.removeprefix(start).removesuffix(end)) for path in found)
    releases = [Release(version(), revision, 0, architecture) for architecture in MACHINES]
    names = [name for release in releases for name in (release.deb, release.rpm)]
    if missing := [name for name in names if not (dist / name).exists()]:
        remedy = f"run sh dev/build --revision {revision}"
        raise BuildError(f"{dist} has no {' and no '.join(missing)}: {remedy}")
    return [dist / name for name in names]


def make(packages: Sequence[Path], folder: Path, key: str) -> None:
    """Make the repositories of packages; they replace older ones.

    Raises BuildError, and leaves a folder as it was then.
    """
    demand_place(folder)
    fingerprint = signing_key(key)
    with _readable(), tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        work, new = Path(temporary) / "work", Path(temporary) / "new"
        new.mkdir()
        _for_apt([path for path in packages if path.suffix == ".deb"], new / "apt", work, fingerprint)
        _for_rpm([path for path in packages if path.suffix == ".rpm"], new / "rpm", fingerprint)
        (new / PUBLIC).write_text(run("gpg", "--batch", "--armor", "--export", fingerprint))
        if folder.exists():
            folder.rename(Path(temporary) / "old")
        new.rename(folder)


def demand_place(folder: Path) -> None:
    """Raise BuildError for a folder that a repository may not replace, or cannot be in."""
    if not folder.parent.is_dir():
        raise BuildError(f"{folder.parent} does not exist: make it first")
    if folder.exists() and {path.name for path in folder.iterdir()} not in (set(), _CONTENT):
        raise BuildError(f"{folder} has other files than a repository: name a folder that does not exist")


def signing_key(key: str) -> str:
    """Return the fingerprint of a key of gpg's, for any name of it. Raises BuildError if it cannot sign."""
    try:
        listed = run("gpg", "--batch", "--with-colons", "--list-secret-keys", "--", key)
    except BuildError as error:
        reason = str(error).strip().splitlines()[-1]
        raise BuildError(f"--key {key}: {reason}: `gpg --list-secret-keys` lists your keys") from None
    rows = [line.split(":") for line in listed.splitlines()]
    keys = [row for row in rows if row[0] == "sec"]
    if len(keys) > 1:
        raise BuildError(f"--key {key} means {len(keys)} keys: name one by its fingerprint")
    if "S" not in keys[0][11]:
        raise BuildError(f"--key {key}: it cannot sign, or has expired: `gpg --edit-key {key}` shows it")
    return next(row[9] for row in rows if row[0] == "fpr")


def index_rpm(folder: Path, key: str) -> None:
    """Write the index of a folder with packages of rpm, and sign it. Raises BuildError."""
    # The default compression depends on the version.
    run("createrepo_c", "--quiet", "--no-database", "--general-compress-type=gz", folder)
    sign = ("gpg", "--batch", "--yes", "--armor", "--local-user", key, "--detach-sign")
    run(*sign, folder / "repodata/repomd.xml")


@contextmanager
def _readable() -> Iterator[None]:
    """Make files that a web server may read, whatever the caller's umask is."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def _for_apt(packages: Sequence[Path], into: Path, work: Path, key: str) -> None:
    (work / "conf").mkdir(parents=True)
    text = _DISTRIBUTION.format(suite=SUITE, architectures=" ".join(MACHINES), key=key)
    (work / "conf/distributions").write_text(text)
    run("reprepro", "--basedir", work, "--outdir", into, "includedeb", SUITE, *packages)


def _for_rpm(packages: Sequence[Path], into: Path, key: str) -> None:
    into.mkdir()
    signed = [shutil.copyfile(path, into / path.name) for path in packages]
    # Debian 12's rpm looks for gpg2, which the package gnupg does not have.
    run("rpmsign", f"--define=__gpg {shutil.which('gpg')}", f"--define=_gpg_name {key}", "--addsign", *signed)
    index_rpm(into, key)


if __name__ == "__main__":
    sys.exit(main())
