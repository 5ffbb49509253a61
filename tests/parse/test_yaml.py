"""YAML and JSON as nodes with their lines, and the bounds for texts of strangers."""

from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.parse import yaml
from nfstuned.parse.yaml import parse_documents


def test_nodes_have_texts_and_lines() -> None:
    text = """\
a: &base {p: 1, q: "two"}
b:
  <<: [*base, {q: other, r: null}]
  p: 3
c: |
  first
d: [~, !vault secret, no]
---
- second
"""
    first, second = parse_documents(text, "f")
    merged = first.at("b")
    assert [(key, node.text, node.line) for key, node in merged.pairs.items()] == [
        ("q", "two", 1),
        ("r", None, 3),
        ("p", "3", 4),
    ]
    assert (first.at("c").text, first.at("c").line, first.at("c").is_block) == ("first\n", 5, True)
    null, tagged, plain = first.at("d").items
    assert (null.is_null, tagged.text, tagged.tag, plain.text) == (True, None, "!vault", "no")
    assert not first.at("b", "absent", "more")
    assert [(node.text, node.line) for node in second.items] == [("second", 9)]


@pytest.mark.parametrize(
    ("text", "is_block"),
    [("|\n  a\n\n  b", True), (">-\n  a\n  b\n", True), (">\n  a\n\n  b\n", False), ('"a\\nb"', False)],
)
def test_the_lines_of_a_text_are_those_of_its_file_where_that_is_sure(text: str, *, is_block: bool) -> None:
    (document,) = parse_documents(f"a: {text}", "f")
    assert document.at("a").is_block is is_block


def test_an_empty_document_is_on_the_line_that_begins_it() -> None:
    assert [node.line for node in parse_documents("a\n---", "f")] == [1, 2]


def test_json_may_have_tabs() -> None:
    (document,) = parse_documents('{\n\t"a":\t[1,\n\t2]\n}', "f")
    assert [(node.text, node.line) for node in document.at("a").items] == [("1", 2), ("2", 3)]


CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 100))
"""Each line is flat: only with the aliases it is deep."""


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("a:\n\t- b", 2, "cannot start any token"),
        ("a: 1\nb: *nobody", 2, "an alias without its anchor, nobody"),
        ("a: " + "[" * 65, 1, "more than 64 levels of nesting"),
        (CHAIN, 65, "more than 64 levels of nesting, with those of aliases"),
        ("a: &a 1\nb: [" + "*a, " * 1001 + "]", 2, "more than 1000 aliases"),
        ("{" * 100_000, 1, "more than 64 levels of nesting"),
        ("a: 1\nb: \udce4", 2, "0xe4 is not UTF-8: save it as UTF-8"),
        ("%YAML 9.9\n---\na: 1", 1, ""),
    ],
    ids=["tab", "anchor", "depth", "depth of aliases", "aliases", "braces", "surrogate", "version"],
)
def test_a_text_beyond_a_bound_is_an_error(text: str, line: int, why: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_documents(text, "f")
    assert caught.value.file == "f"
    assert caught.value.line == line
    assert why in caught.value.message


def test_a_file_beyond_the_bound_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml, "MOST_CHARACTERS", 10)
    with pytest.raises(ParseError, match="more than 10 characters"):
        parse_documents("- 345678901", "f")


@pytest.mark.parametrize("line", ["a{n}: &a{n} [{many}]", "a{n}: &a{n} {{<<: [{many}], k{n}: *a{before}}}"])
def test_few_aliases_that_are_many_values_are_an_error(line: str) -> None:
    """A billion laughs, and merges of merges: each line has ten times the last one's values."""
    lines = ["a0: &a0 {x: [x, x, x, x, x, x, x, x, x, x]}"]
    for n in range(1, 10):
        many = ", ".join([f"*a{n - 1}"] * 10)
        lines.append(line.format(n=n, before=n - 1, many=many))
    with pytest.raises(ParseError, match=r"f:[67]: .* more than 500000 values, with those of aliases"):
        parse_documents("\n".join(lines), "f")


def test_many_documents_have_no_more_values_than_a_file() -> None:
    lines = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 5)]
    document = "\n".join(["---", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]", *lines, ""])
    assert sum(node.weight for node in parse_documents(document * 4, "f")) < 500_000
    with pytest.raises(ParseError, match=r"f:29: .* more than 500000 values"):
        parse_documents(document * 5, "f")
