"""The size of the house, and how far a command goes through it: python -m tests.bench.figures [CHECKOUT ...].

Each figure has the most that it may be. Counts need nothing but a checkout's source and its git; the ways of
two commands are followed by running them on a host of tests/hosts.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.check import hosts

HERE = Path(__file__).parents[2]
HOST = "clean"
FSTAB = """\
sa1.file.core.windows.net:/sa1/a /mnt/a nfs vers=4.1,nconnect=4,_netdev,nofail 0 0
sa2.file.core.windows.net:/sa2/b /mnt/b nfs vers=4.1,_netdev,nofail 0 0
"""
_PATTERN = re.compile(r"\bwhat\b", re.IGNORECASE)
_TRACE = """\
import json, sys
top, root, words = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.path.insert(0, top)
from nfstuned.cli.app import main
from nfstuned.host.root import Root
entered, steps, last = set(), 0, None
def follow(frame, event, _):
    global steps, last
    if event != "call" or frame.f_code.co_name == "<module>":
        return
    name = frame.f_globals.get("__name__", "")
    if name.startswith("nfstuned"):
        entered.add(name)
        steps += name != last
        last = name
sys.setprofile(follow)
main(words, Root(root))
sys.setprofile(None)
print(json.dumps([len(entered), steps]), file=sys.__stderr__)
"""


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


def modules(checkout: Path) -> tuple[Module, ...]:
    found = []
    for path in sorted((checkout / "nfstuned").rglob("*.py")):
        name = ".".join(path.relative_to(checkout).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text()
        found.append(Module(name, path, text, ast.parse(text)))
    return tuple(found)


def importers(known: tuple[Module, ...]) -> dict[str, set[str]]:
    """Return by module which others import it, also late."""
    names = {module.name for module in known}
    found: dict[str, set[str]] = defaultdict(set)
    for module in known:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("nfstuned"):
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found[inner if inner in names else str(node.module)].add(module.name)
    return found


def largest_folder(known: tuple[Module, ...]) -> int:
    """Return the most modules directly in a folder, those that make packages left out."""
    return max(Counter(module.path.parent for module in known if module.path.name != "__init__.py").values())


def names_of_two_meanings(known: tuple[Module, ...]) -> list[str]:
    """Return the public names of classes and functions that more than one module defines.

    `main` has one meaning everywhere: it runs a program with its arguments.
    """
    names: dict[str, set[str]] = defaultdict(set)
    for module in known:
        for node in module.tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
                names[node.name].add(module.name)
    return sorted(name for name, places in names.items() if len(places) > 1 and name != "main")


def private_functions(known: tuple[Module, ...]) -> int:
    """Return how many private functions of modules have one caller."""
    single = 0
    for module in known:
        uses = Counter(_names(module.tree))
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef) and re.match(r"_[^_]", node.name):
                single += uses[node.name] == 1
    return single


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def way(checkout: Path, *words: str) -> tuple[int, int]:
    """Return how many modules a command enters on a host tree, and how often it changes the module."""
    with tempfile.TemporaryDirectory() as folder:
        host = hosts.load(HOST).build(Path(folder) / HOST)
        command = [sys.executable, "-c", _TRACE, str(checkout), str(host), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False, input=FSTAB)
    entered, steps = json.loads(done.stderr.splitlines()[-1])
    return int(entered), int(steps)


def python_lines(folder: Path) -> int:
    return sum(len(path.read_text().splitlines()) for path in folder.rglob("*.py"))


def files(checkout: Path) -> int:
    """Return how many files git has in a checkout."""
    command = ["git", "-C", str(checkout), "ls-files"]
    return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())


def table(checkout: Path) -> dict[str, int]:
    known = modules(checkout)
    by = importers(known)
    lines = sum(module.lines for module in known)
    count = sum(len(_PATTERN.findall(module.text)) for module in known)
    check, changes = way(checkout, "check", "--fstab", "-", "--offline")
    status, _ = way(checkout, "status")
    return {
        "lines in nfstuned/": lines,
        "modules": len(known),
        "import edges": sum(map(len, by.values())),
        "modules imported by one other alone": sum(len(users) == 1 for users in by.values()),
        "private functions with one caller": private_functions(known),
        "largest folder": largest_folder(known),
        "check --fstab F --offline: modules": check,
        "check --fstab F --offline: changes of module": changes,
        "status: modules": status,
        "lines of Python in tests/": python_lines(checkout / "tests"),
        "files in the repository": files(checkout),
        '"what" per 1,000 lines': round(1000 * count / lines),
        "public names of two modules": len(names_of_two_meanings(known)),
        "README, bytes": (checkout / "README.md").stat().st_size,
    }


TARGETS = {
    "lines in nfstuned/": 36_000,
    "modules": 195,
    "import edges": 1_050,
    "modules imported by one other alone": 55,
    "private functions with one caller": 360,
    "largest folder": 18,
    "check --fstab F --offline: modules": 80,
    "check --fstab F --offline: changes of module": 1_000,
    "status: modules": 40,
    "lines of Python in tests/": 46_000,
    "files in the repository": 1_500,
    '"what" per 1,000 lines': 3,
    "public names of two modules": 0,
    "README, bytes": 8_000,
}


def main(arguments: list[str]) -> int:
    """Print the figures of each checkout, side by side, and the targets; return the exit status."""
    checkouts = [Path(argument) for argument in arguments] or [HERE]
    tables = [table(checkout.resolve()) for checkout in checkouts]
    heads = "".join(f"{checkout.resolve().name[-11:]:>12}" for checkout in checkouts)
    print(f"{'':46}{heads}{'at most':>12}")
    for name, most in TARGETS.items():
        print(f"{name:46}" + "".join(f"{figures[name]:>12,}" for figures in tables) + f"{most:>12,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
