"""Print each sentence that the program prints, as `sh dev/sentences` does: the strings of its modules, with
{placeholders}, but no docstrings; and the journal's catalog.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "nfstuned"
CATALOG = ROOT / "systemd/nfstuned.catalog"
FEWEST_WORDS = 3
WORD = re.compile(r"[A-Za-z]{2,}")
PATTERN = re.compile(r"[(\[^\\]|.*(?:\\[bdsS]|\(\?|\[ \\t\])")
"""The texts of regular expressions."""


def sentences() -> Iterator[tuple[str, str]]:
    """Yield each sentence with its file, in the files' order."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for text in _printed(ast.parse(path.read_text())):
            yield str(path.relative_to(PACKAGE)), text
    for paragraph in CATALOG.read_text().split("\n\n"):
        lines = [line for line in paragraph.splitlines() if not line.startswith(("#", "--"))]
        yield CATALOG.name, " ".join(line.strip() for line in lines)


def _printed(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module that have some words, each once, in the order of its lines."""
    left_out = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    left_out |= {id(part) for node in joined for part in node.values}
    texts: dict[tuple[int, int], str] = {}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        match node:
            case ast.Constant(value=str(text)):
                texts[node.lineno, node.col_offset] = text
            case ast.JoinedStr(values=parts):
                texts[node.lineno, node.col_offset] = "".join(map(_shown, parts))
    for text in dict.fromkeys(" ".join(texts[place].split()) for place in sorted(texts)):
        if len(WORD.findall(re.sub(r"\{.*?\}", "", text))) >= FEWEST_WORDS and not PATTERN.match(text):
            yield text


def _shown(part: ast.expr) -> str:
    """Return a part of an f-string; a placeholder has only its expression."""
    match part:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
    return ""


def listed() -> str:
    """Return the sentences as lines, below the names of their files."""
    lines: list[str] = []
    file = ""
    for name, text in sentences():
        if name != file:
            lines += [f"\n## {name}\n"]
            file = name
        lines.append(text)
    return "\n".join(lines).lstrip() + "\n"


if __name__ == "__main__":
    print(listed(), end="")
