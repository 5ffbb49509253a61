"""What can happen to a file on its way: the strategies with which all parsers are tested."""

from __future__ import annotations

from hypothesis import strategies as st

TOKENS = (
    "0",
    "-1",
    str(2**64),
    "9" * 5000,
    "\0",
    "\udcff",
    "²",
    "\\040",
    "\\777",
    '"',
    ",",
    "=",
    ":",
    " ",
    "\t",
    "\n",
    "",
)

LONGEST_NAMES = 2105
"""Bytes: two names of a server with 1024 each, and what the kernel prints around them."""


def names_go_on(stanza: str) -> bool:
    """Whether a server's names in this stanza of mountstats may take the next mount along.

    They may hold anything: so may those that do not end, or end where another mount's lines are in reach of
    them. The kernel writes stanzas whole, with all their operations.
    """
    _, named, rest = stanza.partition("\timpl_id:\tname='")
    return bool(named) and (",date='0,0'\n" not in rest or len(rest) <= LONGEST_NAMES)


_byte = st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)
any_text = st.text(st.characters(codec="utf-8") | _byte, max_size=200)
"""What a file's bytes can decode to: of all lone surrogates only those that stand for a byte (PEP 383)."""


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """Cut the text anywhere, or put something unexpected in the place of a part of it."""
    start = draw(st.integers(0, len(text)))
    if draw(st.booleans()):
        return text[:start]
    end = draw(st.integers(start, min(len(text), start + 60)))
    inserted = draw(st.one_of(st.sampled_from(TOKENS), any_text))
    return text[:start] + inserted + text[end:]


@st.composite
def tokens_damaged(draw: st.DrawFn, text: str) -> str:
    """Put something unexpected in the place of some words of the text."""
    words = text.split(" ")
    for _ in range(draw(st.integers(1, 4))):
        words[draw(st.integers(0, len(words) - 1))] = draw(st.sampled_from(TOKENS))
    return " ".join(words)
