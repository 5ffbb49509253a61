"""`python -m tests.lab`: the lab for people; see `dev/lab`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from dev.package.run import BuildError
from tests.lab import guest, image, payload, recipe, results

USAGE = """usage: sh dev/lab KERNEL [SCENARIO|EXPRESSION]   run scenarios, all short ones by default
       sh dev/lab KERNEL SCENARIO --full         as often as before a release, not as in CI
       sh dev/lab KERNEL shell                   a root shell in the guest
       sh dev/lab build                          build the image, if it is not there"""


def main(arguments: list[str]) -> int:
    """Do what the arguments say; return the exit status: 0 all passed, 1 some failed, 2 could not run."""
    if arguments in ([], ["-h"], ["--help"]):
        _overview()
        return 0
    image.ensure(_say)
    if arguments == ["build"]:
        return 0
    try:
        release = image.release(arguments[0])
    except image.NoKernelError as error:
        _say(str(error))
        return 2
    try:
        return _shell(release) if arguments[1:] == ["shell"] else _scenarios(release, arguments[1:])
    except BuildError as error:
        _say(f"nfstuned's package does not build: {error}")
        return 2


def _scenarios(release: str, wanted: list[str]) -> int:
    target = results.folder() / release
    run = results.run(release, _selection(wanted), target, guest.stdout_line)
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
