"""Try what was built: build it a second time, ask the linters, and install and remove it in fresh systems."""

from __future__ import annotations

import filecmp
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dev.package.about import MACHINES, Release
from dev.package.run import PROJECT, BuildError, run
from tests.lab import apt, roots

Build = Callable[[Release, Path, Iterable[str]], Sequence[Path]]

LARGEST_DEB = 11_000_000
_SCRIPTS = PROJECT / "dev/package"
_NEWEST = roots.SUITES[-1]
_TOOLS = ("createrepo-c", "dnf", "lintian", "python3", "rpm", "rpmlint", "shellcheck")
_DEBIAN = "sh /root/deb.sh /root/{} /root/{}"
_LINT_AND_DNF = """
cd /root
shellcheck -x -P SCRIPTDIR nfstuned compile postinst prerm postrm rtupdate *.sh
lintian --allow-root --fail-on error,warning,info --display-info {0} {2} 2>&1
rpmlint --config rpmlint.toml {1} {3} >lint 2>&1 || {{ cat lint; exit 1; }}
tail -n 1 lint
sh rpm.sh {1} {4}
"""


def check(made: Sequence[Path], what: Release, build: Build) -> None:
    """Try the packages that were made of a release. Raises BuildError with what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        again, newer = Path(folder) / "again", Path(folder) / "newer"
        with elsewhere(Path(folder) / "home"):
            demand_same(made, build(what, again, MACHINES))
        size = made[1].stat().st_size
        if size > LARGEST_DEB:
            raise BuildError(f"{made[1].name} has {size} bytes, more than {LARGEST_DEB}")
        say("pip, without a compiler", _by_pip(made[0]))
        _, deb, rpm = build(replace(what, revision=what.revision + 1), newer, ["amd64"])
        for suite in roots.SUITES:
            say(suite, in_root(suite, _DEBIAN, (made[1], deb)))
            say(f"{suite}, arm64 emulated", _emulated(suite, made[3]))
        say("lintian, rpmlint, shellcheck, dnf", in_root(_NEWEST, _LINT_AND_DNF, (*made[1:], rpm), _TOOLS))


def _by_pip(wheel: Path) -> str:
    """Install the wheel and its requirements, all of them as wheels; return the version that it prints."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        python, program = Path(folder, "bin/python"), Path(folder, "bin/nfstuned")
        run(python, "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel)
        run(program, "config", "show")
        return run(program, "--version")


@contextmanager
def elsewhere(home: Path) -> Iterator[None]:
    """Be another builder: at another place of the world, and with files for nobody else.

    The home is one that is not there yet: rpmbuild makes it.
    """
    before, mask = dict(os.environ), os.umask(0o077)
    os.environ.update(TZ="Pacific/Kiritimati", LC_ALL="C", HOME=str(home))
    try:
        yield
    finally:
        os.umask(mask)
        os.environ.clear()
        os.environ.update(before)


def demand_same(made: Sequence[Path], again: Sequence[Path]) -> None:
    """Raise BuildError for a file that a second build made otherwise."""
    for one, other in zip(made, again, strict=True):
        if not filecmp.cmp(one, other, shallow=False):
            raise BuildError(f"{one.name} is not the same when it is built again")
    say("reproducible", "a second build made the same bytes")


def in_root(suite: str, script: str, packages: Sequence[Path], tools: Sequence[str] = ()) -> str:
    """Run a script in a fresh minimal installation with the packages in /root; return what it printed."""
    own = ("files/*", "deb/*", "rpm/rpmlint.toml", "prove/*.sh")
    carried = [*packages, *(path for pattern in own for path in sorted(_SCRIPTS.glob(pattern)))]
    names = [path.name for path in packages]
    return _mmdebstrap(
        suite,
        "--variant=minbase",
        *([f"--include={','.join(tools)}"] if tools else []),
        f'--customize-hook=cp {" ".join(map(str, carried))} "$1/root"',
        f'--customize-hook=chroot "$1" sh -euc {shlex.quote(script.format(*names))}',
    )


def _emulated(suite: str, deb: Path) -> str:
    """Run the files of the package for arm64 by the suite's Python for arm64; return what was printed."""
    options = ("--variant=extract", "--architectures=arm64", "--include=base-files,python3,libudev1")
    return _mmdebstrap(suite, *options, f'--extract-hook=sh {_SCRIPTS}/prove/arm64.sh {deb} "$1"')


def _mmdebstrap(suite: str, *options: str) -> str:
    as_root = () if os.geteuid() == 0 else ("sudo",)
    return run(
        *("sh", "-c", 'exec "$@" 2>&1', "sh"),  # mmdebstrap hands what hooks print to its standard error
        *as_root,
        *("mmdebstrap", "--quiet", "--format=null", *options),
        suite,
        "-",
        f"deb [signed-by={apt.keyring()}] {apt.mirror()} {suite} main",
    )


def say(what: str, result: str) -> None:
    """Print each line of a result below the name of a proof."""
    for line in result.strip().splitlines():
        print(f"{what}: {line}", flush=True)
