"""Build dist/:  python -m dev.package [OPTIONS], called by dev/build, which names them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from dev.package import deb, lock, own, rpm, sbom
from dev.package.about import MACHINES, Release, release
from dev.package.check import check
from dev.package.run import PROJECT, BuildError
from dev.package.tree import DOC, File, tree
from dev.package.wheels import demand_machine, libraries, unpack


def main() -> int:
    """Do what the arguments say; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="dev/build", description="Build the wheel and the packages in dist/."
    )
    parser.add_argument("--revision", type=int, default=1, help="of the packages of one version (default: 1)")
    way = parser.add_mutually_exclusive_group()
    way.add_argument(
        "--architecture", choices=MACHINES, help="build packages for it alone (default: for all)"
    )
    way.add_argument("--check", action="store_true", help="build twice, compare, and try the packages")
    way.add_argument("--lock", action="store_true", help="pin the newest libraries instead of building")
    wish = parser.parse_args()
    try:
        if wish.lock:
            lock.renew()
            return 0
        chosen = [wish.architecture] if wish.architecture else list(MACHINES)
        made = build(release(wish.revision), PROJECT / "dist", chosen)
        if wish.check:
            check(made, release(wish.revision), build)
    except BuildError as error:
        print(f"dev/build: {error}", file=sys.stderr)
        return 1
    return 0


def build(what: Release, into: Path, architectures: Iterable[str]) -> list[Path]:
    """Build everything into a folder; return the wheel, and each architecture's .deb and .rpm.

    Raises BuildError.
    """
    into.mkdir(parents=True, exist_ok=True)
    made = [own.wheel(what, into)]
    for architecture in architectures:
        made += _packages(replace(what, architecture=architecture), made[0], into)
    for path in made:
        print(f"{path}: {path.stat().st_size} bytes", flush=True)
    return made


def _packages(what: Release, wheel: Path, into: Path) -> list[Path]:
    wheels = lock.fetch(lock.VENDOR, lock.CACHE, what.machine)
    vendored, unpacked = libraries(wheels), unpack(wheels)
    demand_machine(unpacked, what.machine)
    bill = sbom.bill(what, lock.pins_of(lock.VENDOR, wheels), vendored)
    (into / f"nfstuned-{what.version}-{what.architecture}.cdx.json").write_bytes(bill)
    files = tree(wheel, unpacked) | {f"{DOC}/nfstuned.cdx.json": File(bill)}
    return [deb.build(files, vendored, what, into), rpm.build(files, vendored, what, into)]


if __name__ == "__main__":
    sys.exit(main())
