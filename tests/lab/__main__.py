"""`python -m tests.lab`: the lab for people; see `dev/lab`."""

from __future__ import annotations

import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from dev.package.run import BuildError
from tests.lab import demo, guest, image, recipe, runs
from tests.lab.measures import MEASURES, say

USAGE = """usage: sh dev/lab KERNEL [SCENARIO|-k EXPRESSION|--marker MARKER]...   run scenarios
       sh dev/lab KERNEL shell    a root shell in the guest
       sh dev/lab KERNEL pictures    draw docs/pictures of three mounts in use
       sh dev/lab KERNEL workloads    measure and write the tables of docs/workloads.md, in 80 minutes
       sh dev/lab KERNEL faults [NAME...]    measure the faults of docs/reliability.md, in 90 minutes
       sh dev/lab KERNEL crowds [--mounts N]    measure the daemon with 2,000 superblocks, in two hours
       sh dev/lab KERNEL upgrade    kill upgrades and downgrades
       sh dev/lab KERNEL demo     the demonstration of dev/demo
       sh dev/lab build           build the image, if it is not there

Without a scenario: those marked `kernel`. -k and other options are pytest's."""


def main(arguments: list[str]) -> int:
    """Run scenarios; return the exit status: 0 all passed, 1 some failed, 2 could not run."""
    if not arguments or arguments[0] in {"-h", "--help"}:
        _overview()
        return 0
    try:
        return _run(*arguments)
    except image.NoKernelError as error:
        say(str(error))
    except BuildError as error:
        say(f"nfstuned's package does not build: {error}")
    return 2


def _run(kernel: str, *words: str) -> int:
    image.ensure(say)
    if (kernel, *words) == ("build",):
        return 0
    release = image.release(kernel)
    if len(words) == 1 and words[0] in {"shell", "demo"}:
        return _shell(release) if words[0] == "shell" else demo.demonstrate(release)
    if words and words[0] in MEASURES:
        return MEASURES[words[0]](release, words[1:])
    target = runs.folder() / release
    run = runs.run(release, _arguments(words), target, guest.stdout_line)
    say(run.boot.explain())
    say(f"results: {target}")
    return 0 if run.boot.passed else 1


def _arguments(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return pytest's arguments: a scenario's name means its file, everything else is for pytest.

    The files come first: from them pytest learns of the option --marker. The word after -k is an expression.
    """
    expressions = {after for word, after in pairwise(words) if word == "-k"}
    names = {
        word: f"tests/lab/scenarios/test_{Path(word).stem.removeprefix('test_')}.py"
        for word in words
        if word not in expressions
    }
    files = {word: name for word, name in names.items() if (runs.PROJECT / name).exists()}
    others = [word for word in words if word not in files]
    return (*(files.values() or ("tests/lab/scenarios",)), *(others if words else ("--marker", "kernel")))


def _shell(release: str) -> int:
    say(f"booting {release}; 'exit' in the shell ends it")
    with tempfile.TemporaryDirectory() as folder:
        return guest.shell(release, runs.assemble(Path(folder), runs.Order(interactive=True)))


def _overview() -> None:
    print(USAGE)
    built = image.kernels()
    print("\nkernels:")
    for series in recipe.SERIES:
        print(f"  {series.name:8} {image.release(series.name) if built else 'not built yet'}")
    print("\nscenarios:")
    for file in sorted(runs.SCENARIOS.glob("test_*.py")):
        promise = file.read_text().partition("\n")[0].strip('"')
        print(f"  {file.stem.removeprefix('test_'):20} {promise}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
