"""The plain English of docstrings, comments, printed sentences and pages, by a small table of patterns."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Golden
from tests.sentences import listed, sentences

PACKAGE = Path(__file__).parents[1] / "nfstuned"
MODULES = sorted(PACKAGE.rglob("*.py"))
PATTERNS = {
    r"(?:^|[.;:,] |\()[Ww]hat\b(?! if)": "name the thing: `the administrators' settings`",
    r"\bthat of\b": "repeat the noun",
    r"\bof which\b": "begin another sentence",
    r"\bwhose\b": "`with`, or another sentence",
    r"\banew\b": "`again`",
    r"\bbeside\b": "`next to`, `with`",
    r"\bis none\b": "`is not`",
    r"\bcom(?:es?|ing) to\b(?! an end)": "`resolves to`, `means`, `is`",
    r"\b(?:tells?|telling|told)\b": "`reports`, `shows`, `names`",
    r"\banother one's\b": "name its owner",
    r"\bin the place of\b": "`instead of`",
}
"""Each pattern with the words to use instead."""
PRINTED = PATTERNS | {
    r"\bpass(?:es|ed)? over\b": "`ignores`",
    r"\btakes? [^;:,]+ out of\b": "`removes ... from`",
    r"\bwhatever\b": "`any`",
    r"\b[Tt]he same holds\b": "`also`",
}
"""Those of the sentences that the program prints."""
SENTENCES = Path(__file__).parent / "data/sentences.txt"
MOST_WHAT = 3
"""For each thousand lines of the program."""


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the docstrings and comments of a module, each with its first line."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(docstring))):
                yield node.lineno, " ".join(docstring.split())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def test_docstrings_and_comments_are_plain() -> None:
    places = [
        f"{path.relative_to(PACKAGE.parent)}:{line}: {text}\n    better: {better}"
        for path in MODULES
        for line, text in prose(path.read_text())
        for pattern, better in PATTERNS.items()
        if re.search(pattern, text)
    ]
    assert not places, "\n".join(places)


def test_printed_sentences_are_plain() -> None:
    places = [
        f"{name}: {text}\n    better: {better}"
        for name, text in sentences()
        for pattern, better in PRINTED.items()
        if re.search(pattern, text)
    ]
    assert not places, "\n".join(places)


@pytest.mark.parametrize("folder", ["", "docs", "docs/rules", "docs/providers"])
def test_pages_are_plain(folder: str) -> None:
    """In their prose: their blocks show files and outputs of others, too."""
    pages = sorted((PACKAGE.parent / folder).glob("*.md" if folder else "README.md"))
    assert pages
    places = [
        f"{page.name}: {line}\n    better: {better}"
        for page in pages
        for line in re.sub(r"(?ms)^```.*?^```$", "", page.read_text()).splitlines()
        for pattern, better in PRINTED.items()
        if re.search(pattern, line)
    ]
    assert not places, "\n".join(places)


def test_a_changed_sentence_is_read_in_the_list_of_all(golden: Golden) -> None:
    golden(SENTENCES, listed())


def test_what_is_rare() -> None:
    texts = [path.read_text() for path in MODULES]
    lines = sum(len(text.splitlines()) for text in texts)
    count = sum(len(re.findall(r"\bwhat\b", text, re.IGNORECASE)) for text in texts)
    assert count <= MOST_WHAT * lines / 1000


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_docstring_begins_as_its_kind_does(path: Path) -> None:
    """A module's first line is a noun phrase, a function's an imperative: neither begins with these words."""
    tree = ast.parse(path.read_text())
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in named:
        first = (ast.get_docstring(node) or "").split("\n")[0]
        of_value = any("property" in ast.unparse(decorator) for decorator in node.decorator_list)
        assert of_value or not re.match(r"(?:What|The|A|An|How|Why|It|This)\b", first), (
            f"{node.name}: {first}"
        )
    module = ast.get_docstring(tree) or ""
    assert re.match(r"(?!What\b|How\b|Who\b|Whether\b)", module), module
