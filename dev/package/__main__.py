"""Build dist/:  python -m dev.package [--revision N] [--check | --lock], called by dev/build."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from dev.package import deb, lock, own, rpm, sbom
from dev.package.about import Release, release
from dev.package.check import check
from dev.package.run import PROJECT, BuildError
from dev.package.tree import DOC, File, tree
from dev.package.wheels import libraries, unpack


def main() -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="dev/build", description="Build the wheel and the packages in dist/."
    )
    parser.add_argument("--revision", type=int, default=1, help="of the packages of one version (default: 1)")
    parser.add_argument("--check", action="store_true", help="build twice, compare, and try the packages")
    parser.add_argument("--lock", action="store_true", help="pin the newest libraries instead of building")
    wish = parser.parse_args()
    try:
        if wish.lock:
            lock.renew()
            return 0
        what = release(wish.revision)
        made = build(what, PROJECT / "dist")
        if wish.check:
            check(made, what, build)
    except BuildError as error:
        print(f"dev/build: {error}", file=sys.stderr)
        return 1
    return 0


def build(what: Release, into: Path) -> list[Path]:
    """Build everything into a folder, and return what was made. Raises BuildError."""
    into.mkdir(parents=True, exist_ok=True)
    wheels = lock.fetch(lock.VENDOR, lock.CACHE)
    vendored = libraries(wheels)
    wheel = own.wheel(what, into)
    bill = sbom.bill(what, lock.parse_lock(lock.VENDOR.read_text()), vendored)
    files = tree(wheel, unpack(wheels)) | {f"{DOC}/nfstuned.cdx.json": File(bill)}
    made = [wheel, deb.build(files, vendored, what, into), rpm.build(files, vendored, what, into)]
    for path in made:
        print(f"{path}: {path.stat().st_size} bytes", flush=True)
    return made


if __name__ == "__main__":
    sys.exit(main())
