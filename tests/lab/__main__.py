"""`python -m tests.lab`: the lab for people; see `dev/lab`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from dev.package.run import BuildError
from tests.lab import guest, image, payload, recipe, results, selection

USAGE = """usage: sh dev/lab KERNEL [SCENARIO|EXPRESSION]   run scenarios, all short ones by default
       sh dev/lab KERNEL SCENARIO --full         as often as before a release, not as in CI
       sh dev/lab KERNEL --changed [REV]         the scenarios that a change touches, the long ones too: what
                                                 git has not committed yet, or all since it left REV
       sh dev/lab KERNEL shell                   a root shell in the guest
       sh dev/lab build                          build the image, if it is not there"""


class RevisionError(Exception):
    """Git does not know what a change is to be compared with."""


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit status: 0 all passed, 1 some failed, 2 could not run."""
    if arguments in ([], ["-h"], ["--help"]):
        _overview()
        return 0
    try:
        return _run(*arguments)
    except (image.NoKernelError, RevisionError) as error:
        _say(str(error))
    except BuildError as error:
        _say(f"nfstuned's package does not build: {error}")
    return 2


def _run(kernel: str, *wanted: str) -> int:
    touched = _touched(wanted[1:]) if wanted[:1] == ("--changed",) else None
    if touched == {}:
        return 0
    image.ensure(_say)
    if (kernel, *wanted) == ("build",):
        return 0
    release = image.release(kernel)
    if touched:
        return _boots(release, touched)
    return _shell(release) if wanted == ("shell",) else _scenarios(release, list(wanted))


def _touched(revision: Sequence[str]) -> dict[str, str]:
    """Say which scenarios what changed since a revision touches, and why; return them."""
    touched = selection.touched(_changed(revision[0] if revision else None))
    for name, reason in touched.items():
        _say(f"{name.removeprefix('test_'):20} {reason}")
    if not touched:
        _say("no scenario is touched: nothing to boot for")
    return touched


def _changed(revision: str | None) -> set[str]:
    """Return the files that differ from HEAD, or from where this branch left `revision`; new ones too."""
    base = "HEAD" if revision is None else _git("merge-base", revision, "HEAD")[0]
    # Without renames: the old name counts as well as the new one.
    differing = _git("diff", "--name-only", "--no-renames", base)
    return {*differing, *_git("ls-files", "--others", "--exclude-standard")}


def _git(*arguments: str) -> list[str]:
    command = ["git", "-c", "core.quotePath=off", *arguments]
    done = subprocess.run(command, cwd=payload.PROJECT, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RevisionError(done.stderr.strip() or f"git {' '.join(arguments)}: nothing in common")
    return done.stdout.splitlines()


def _boots(release: str, chosen: Iterable[str]) -> int:
    """Run these scenario files, a boot for each length that they have; return the worst status."""
    parent, status = results.folder(), 0
    for length in selection.Length:
        names = tuple(name for name in selection.scenarios(length) if name in chosen)
        if names:
            _say(f"booting {release} for {len(names)} files of {length.value} scenarios")
            target = parent / f"{release}-{length.value}"
            status = max(status, _boot(release, results.arguments({length}, names), target))
    return status


def _scenarios(release: str, wanted: list[str]) -> int:
    return _boot(release, _selection(wanted), results.folder() / release)


def _boot(release: str, arguments: tuple[str, ...], target: Path) -> int:
    run = results.run(release, arguments, target, guest.stdout_line)
    _say(run.boot.explain())
    _say(f"results: {target}")
    return 0 if run.boot.passed else 1


def _selection(wanted: list[str]) -> tuple[str, ...]:
    """A scenario's name means its file, with its long tests; anything else is for pytest's -k."""
    if "--full" in wanted:
        return ("--full", *_selection([word for word in wanted if word != "--full"]))
    if not wanted:
        return ("-m", "short", "tests/lab/scenarios")
    names = [f"test_{Path(word).stem.removeprefix('test_')}.py" for word in wanted]
    if all((payload.SCENARIOS / name).exists() for name in names):
        return tuple(f"tests/lab/scenarios/{name}" for name in names)
    return ("-k", " ".join(wanted), "tests/lab/scenarios")


def _shell(release: str) -> int:
    _say(f"booting {release}; 'exit' in the shell ends it")
    with tempfile.TemporaryDirectory() as folder:
        return guest.shell(release, payload.assemble(Path(folder), payload.Order(interactive=True)))


def _overview() -> None:
    print(USAGE)
    built = image.kernels()
    print("\nkernels:")
    for series in recipe.SERIES:
        print(f"  {series.name:8} {image.release(series.name) if built else 'not built yet'}")
    print("\nscenarios:")
    for file in sorted(payload.SCENARIOS.glob("test_*.py")):
        print(f"  {file.stem.removeprefix('test_'):20} {_promise(file)}")


def _promise(file: Path) -> str:
    return file.read_text().partition("\n")[0].strip('"')


def _say(line: str) -> None:
    print(f"lab: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
