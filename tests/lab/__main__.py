"""`python -m tests.lab`: the lab for people; see `dev/lab`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

from dev.package.run import BuildError
from tests.bench import pictures, upgrade, workloads
from tests.lab import demo, guest, image, recipe, runs
from tests.lab.kit.upgrade import PARTS
from tests.lab.kit.workloads import RTTS_MS

USAGE = """usage: sh dev/lab KERNEL [SCENARIO|-k EXPRESSION|--marker MARKER]...   run scenarios
       sh dev/lab KERNEL shell    a root shell in the guest
       sh dev/lab KERNEL pictures    draw docs/pictures of three mounts in use
       sh dev/lab KERNEL workloads    measure and write the tables of docs/workloads.md, in 80 minutes
       sh dev/lab KERNEL upgrade    kill upgrades and downgrades, and write the part of docs/reliability.md
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
        _say(str(error))
    except BuildError as error:
        _say(f"nfstuned's package does not build: {error}")
    return 2


def _run(kernel: str, *words: str) -> int:
    image.ensure(_say)
    if (kernel, *words) == ("build",):
        return 0
    release = image.release(kernel)
    modes = {"shell": _shell, "pictures": _pictures, "workloads": _workloads, "upgrade": _upgrade}
    modes["demo"] = demo.demonstrate
    if len(words) == 1 and words[0] in modes:
        return modes[words[0]](release)
    target = runs.folder() / release
    run = runs.run(release, _arguments(words), target, guest.stdout_line)
    _say(run.boot.explain())
    _say(f"results: {target}")
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
    _say(f"booting {release}; 'exit' in the shell ends it")
    with tempfile.TemporaryDirectory() as folder:
        return guest.shell(release, runs.assemble(Path(folder), runs.Order(interactive=True)))


def _pictures(release: str) -> int:
    limits = guest.Limits(900, quiet_s=200, retries=2)
    target = runs.folder() / f"pictures-{release}"
    boot = runs.run_module(("tests.lab.kit.pictures",), release, target, guest.stdout_line, limits)
    _say(boot.explain())
    if not boot.passed or boot.files is None:
        return 1
    for file in pictures.draw(boot.files, runs.PROJECT / "docs/pictures"):
        _say(f"{file}: {file.stat().st_size // 1000} kB")
    return 0


def _workloads(release: str) -> int:
    """Boot a guest for each round trip. The lines of those before stay where a later one fails."""
    limits = guest.Limits(5400, quiet_s=600, retries=2, processors=2)
    target, lines = runs.folder(), runs.PROJECT / f"build/workloads-{release}.jsonl"
    text = lines.read_text() if lines.exists() else ""
    measured = {row["rtt_ms"] for row in workloads.rows_of(text)}
    for rtt_ms in RTTS_MS:
        if rtt_ms in measured:
            _say(f"{rtt_ms} ms is in {lines} already; remove the file to measure it again")
            continue
        module, folder = ("tests.lab.kit.workloads", str(rtt_ms)), target / f"{rtt_ms}-ms"
        boot = runs.run_module(module, release, folder, guest.stdout_line, limits)
        _say(boot.explain())
        if not boot.passed or boot.files is None:
            return 1
        text += (boot.files / "workloads.jsonl").read_text()
        lines.write_text(text)
    for file in workloads.make(text, release):
        _say(str(file))
    lines.unlink()
    return 0


def _upgrade(release: str) -> int:
    """Boot a guest for each part, as `_workloads` does for each round trip."""
    limits = guest.Limits(5400, quiet_s=600, retries=2, processors=2)
    target, kept = runs.folder(), runs.PROJECT / f"build/upgrade-{release}"
    kept.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (kept / part).exists():
            _say(f"{kept / part} is there already; remove it to try its kills again")
            continue
        boot = runs.run_module(
            ("tests.lab.kit.upgrade", part), release, target / part, guest.stdout_line, limits
        )
        _say(boot.explain())
        if not boot.passed or boot.files is None:
            return 1
        (kept / part).write_text((boot.files / "upgrade.jsonl").read_text())
        there = [kept / part for part in PARTS if (kept / part).exists()]
        for file in upgrade.make("".join(path.read_text() for path in there), release):
            _say(str(file))
    shutil.rmtree(kept)
    return 0


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


def _say(line: str) -> None:
    print(f"lab: {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
