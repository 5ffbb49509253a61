"""`python -m tests.bench.figures [CHECKOUT]`: how large the house is, and how far a command goes through it.

Counts are of nfstuned/ in a checkout, this one by default, and need nothing but its source; the ways of two
commands are followed by running them on a host tree of tests/hosts.
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
_WORDS = re.compile(r"\b(?:one|found)\b", re.IGNORECASE)
_TRACE = """\
import json, sys
top, root, words = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.path.insert(0, top)
from nfstuned.cli import main
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
    """One module: its dotted name, its lines, and its syntax tree."""

    name: str
    path: Path
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


def modules(checkout: Path) -> tuple[Module, ...]:
    """Return every module of nfstuned/."""
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


def largest_folder(known: tuple[Module, ...]) -> tuple[str, int]:
    """Return the folder with the most modules directly in it, those that make packages left out."""
    count = Counter(module.path.parent for module in known if module.path.name != "__init__.py")
    folder, number = count.most_common(1)[0]
    return folder.name, number


def classes_of_two_meanings(known: tuple[Module, ...]) -> list[str]:
    """Return the names of classes that more than one module has."""
    names: dict[str, set[str]] = defaultdict(set)
    for module in known:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name].add(module.name)
    return sorted(name for name, places in names.items() if len(places) > 1)


def private_functions(known: tuple[Module, ...]) -> tuple[int, int]:
    """Return how many private functions modules have, and how many of them have one caller."""
    total = single = 0
    for module in known:
        uses = Counter(_names(module.tree))
        for node in module.tree.body:
            private = isinstance(node, ast.FunctionDef) and re.match(r"_[^_]", node.name)
            if private and isinstance(node, ast.FunctionDef):
                total += 1
                single += uses[node.name] == 1
    return total, single


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


def table(checkout: Path) -> dict[str, str]:
    """Return each figure as people read it."""
    known = modules(checkout)
    by = importers(known)
    lines = sum(module.lines for module in known)
    folder, number = largest_folder(known)
    total, single = private_functions(known)
    words = sum(len(_WORDS.findall(module.text)) for module in known)
    check, steps = way(checkout, "check", "--fstab", "-", "--offline")
    status, _ = way(checkout, "status")
    return {
        "modules": f"{len(known)}",
        "lines": f"{lines}",
        "largest folder, modules directly in it": f"{number} ({folder})",
        "import edges between modules": f"{sum(map(len, by.values()))}",
        "modules imported by exactly one other": f"{sum(1 for users in by.values() if len(users) == 1)}",
        "class names that two modules have": f"{len(classes_of_two_meanings(known))}",
        "private functions with one caller": f"{single} of {total}",
        "modules entered by check --fstab --offline": f"{check}",
        "changes of module in it": f"{steps}",
        "modules entered by status": f"{status}",
        'the words "one" and "found", per 1,000 lines': f"{1000 * words / lines:.0f}",
        "README, bytes": f"{(checkout / 'README.md').stat().st_size}",
    }


def main(arguments: list[str]) -> int:
    """Print the figures of each checkout, side by side; return the exit status."""
    checkouts = [Path(argument) for argument in arguments] or [HERE]
    tables = [table(checkout.resolve()) for checkout in checkouts]
    for name in tables[0]:
        print(f"{name:46}" + "".join(f"{one[name]:>16}" for one in tables))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
