"""Look for kernel files that break the sampler: python -m tests.bench.fuzz SECONDS [SEED].

Runs the tests' properties of every parser of a kernel's file, of rates and of totals, again and again with
other files: real ones of tests/parse/data and tests/hosts, cut off, with bytes
that are no text, huge and negative numbers, columns and lines that no kernel has yet (tests/parse/damage.py,
tests/core/test_delta.py). There is no other generator. The seed that is printed where something fails
makes the same files again; a failing file is first made as small as possible.
"""

from __future__ import annotations

import functools
import importlib
import secrets
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hypothesis

MODULES = (
    "tests.parse.test_mountinfo",
    "tests.parse.test_mountstats",
    "tests.parse.test_superblocks",
    "tests.parse.test_sunrpc",
    "tests.core.test_delta",
    "tests.core.test_rates",
    "tests.core.test_totals",
)
EXAMPLES = 50
"""Of each property in a round; a round has one seed, and its time is the least that a run takes."""
_SEEDS = 1 << 32

Property = Callable[[], None]


def properties() -> Iterator[tuple[str, Property]]:
    """Yield hypothesis' tests in MODULES; a test keeps its own number of examples."""
    # A module's own settings are made of the profile that counts when it is imported.
    hypothesis.settings.register_profile(
        "fuzz",
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("fuzz")
    for module in MODULES:
        for name, test in vars(importlib.import_module(module)).items():
            if name.startswith("test_") and hypothesis.is_hypothesis_test(test):
                yield f"{module}.{name}", test


class Cases:
    """How many files, or pairs of files, were tried."""

    def __init__(self) -> None:
        self.number = 0

    def of(self, test: Any) -> Property:  # noqa: ANN401 - hypothesis gives its tests an attribute
        """Return the same test, and count its cases."""
        inner = test.hypothesis.inner_test

        @functools.wraps(inner)
        def counted(*args: object, **kwargs: object) -> None:
            self.number += 1
            inner(*args, **kwargs)

        test.hypothesis.inner_test = counted
        found: Property = test
        return found


def fuzz(tests: Sequence[tuple[str, Property]], seconds: float, seed: int) -> int:
    """Run rounds until that time is over; return 0, or 1 after printing a failure and its seed."""
    cases = Cases()
    counted = [(name, cases.of(test)) for name, test in tests]
    end = time.monotonic() + seconds
    rounds = 0
    while rounds == 0 or time.monotonic() < end:
        for name, test in counted:
            if not _holds(hypothesis.seed(seed + rounds)(test)):
                again = f"python -m tests.bench.fuzz 0 {seed + rounds}"
                print(f"{name} failed after {cases.number} cases: {again}")
                return 1
        rounds += 1
    print(f"{cases.number} cases of {len(tests)} properties in {rounds} rounds: nothing found")
    return 0


def _holds(test: Property) -> bool:
    """Run a property; print its exception, made small."""
    try:
        test()
    except Exception:  # noqa: BLE001 - any exception of a property is a result
        traceback.print_exc()
        return False
    return True


def main(arguments: Sequence[str]) -> int:
    """Read the arguments; return the exit status: 0 nothing found, 1 something, 2 not understood."""
    try:
        seconds, *rest = map(float, arguments)
        (seed,) = map(int, rest or [secrets.randbelow(_SEEDS)])
    except ValueError:
        print("usage: python -m tests.bench.fuzz SECONDS [SEED]", file=sys.stderr)
        return 2
    print(f"seed {seed}", flush=True)
    return fuzz(list(properties()), seconds, seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
