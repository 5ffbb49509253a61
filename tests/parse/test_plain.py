from __future__ import annotations

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from nfstuned.errors import ParseError
from nfstuned.parse.proc.mountstats import Operations, operation_row, plain_numbers, plain_operations
from tests.parse.damage import TOKENS

NOBODY = frozenset[str]()
READ, WRITE = b"\t        READ: 1 1 0 4 5 6 7 8 9", b"\t       WRITE: 2 2 0 4 5 6 7 8 9"
LATER = [b"\t        READ: 3 3 0 4 5 6 7 8 9", b"\t       WRITE: 5 5 0 4 5 6 7 8 9"]


def test_numbers_come_one_line_after_the_other() -> None:
    assert plain_numbers([b"1 2 3", b"4 5 18446744073709551615"]) == [1, 2, 3, 4, 5, 2**64 - 1]
    assert plain_numbers([b"7"]) == [7]


@pytest.mark.parametrize(
    "line",
    [
        *("1 2", "1 2 3 4", "1 2 ", " 1 2", "1  2", "", "1 2 -3", "1 2 +3", "1 2 3_0", "1 2\t3", "1 2 x"),
        *("1 2 \u00b2", "1 2 18446744073709551616", f"1 2 {'9' * 5000}", "1 2 3|4", "1 2 3 | 4 5 6", "1 2 |"),
        *("1 2 3\n", "1 2 3\r"),
    ],
)
def test_what_is_not_plain_is_left_to_others(line: str) -> None:
    assert plain_numbers([b"1 2 3", line.encode("latin-1")]) is None
    assert plain_numbers([line.encode("latin-1"), b"1 2 3"]) is None


def test_operations_are_named_and_those_not_wanted_left_out() -> None:
    assert plain_operations([READ, WRITE], LATER, NOBODY) == Operations(
        ["READ", "WRITE"],
        [1, 1, 0, 4, 5, 6, 7, 8, 9, 2, 2, 0, 4, 5, 6, 7, 8, 9],
        [3, 3, 0, 4, 5, 6, 7, 8, 9, 5, 5, 0, 4, 5, 6, 7, 8, 9],
    )
    only = Operations(["WRITE"], [2, 2, 0, 4, 5, 6, 7, 8, 9], [5, 5, 0, 4, 5, 6, 7, 8, 9])
    assert plain_operations([READ, WRITE], LATER, frozenset({"READ", "NULL"})) == only
    assert plain_operations([READ, WRITE], LATER, frozenset({"READ", "WRITE"})) == Operations([], [], [])


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ([READ, WRITE], [LATER[1], LATER[0]]),
        ([READ, READ], [LATER[0], LATER[0]]),
        ([READ], [LATER[0][1:]]),
        ([READ], [b"\t        READ: : 3 3 0 4 5 6 7 8 9"]),
        ([READ], [b"\t        READ 3 3 0 4 5 6 7 8 9"]),
        ([b"\t: 1 1", b"\t: 2 2"], [b"\t: 3 3", b"\t: 4 4"]),
        ([b"\tno operation", b"\t1 2: WRITE: 1 2"], [b"\tno operation", b"\t1 2: WRITE: 3 4"]),
        ([b"\tREAD", b"1 2: WRITE: 3 4"], [b"\tREAD", b"1 2: WRITE: 5 6"]),
        ([b"\tREAD\xff: 1"], [b"\tREAD\xff: 2"]),
    ],
)
def test_lines_of_other_operations_are_left_to_others(earlier: list[bytes], later: list[bytes]) -> None:
    assert plain_operations(earlier, later, NOBODY) is None


NAMES = st.sampled_from(["READ", "WRITE", "SEQUENCE"]).map(lambda name: f"\t        {name}: ")
ODD_NAMES = st.sampled_from(
    ["READ: ", "\tread: ", "\tREAD: : ", "\tREAD:", "\tx", "", "\t1 1 1 1 1 1 1 1: READ: "]
)
ODD_TOKENS = st.sampled_from([*TOKENS, "", "1 1", "+1", "1_0", "007", "|", "1 | 1", str(2**64)])


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[bytes], list[bytes]]:
    """The same operations at two moments, with one thing that may not be as it should."""
    width = draw(st.integers(7, 10))
    row = st.lists(st.integers(0, 9).map(str), min_size=width, max_size=width)
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    lines = [(name, draw(row)) for name in names * 2]
    at, place = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, width - 1))
    name, tokens = lines[at]
    odd = {
        "nothing": lambda: (name, tokens),
        "name": lambda: (draw(ODD_NAMES | NAMES), tokens),
        "token": lambda: (name, [*tokens[:place], draw(ODD_TOKENS), *tokens[place + 1 :]]),
        "more": lambda: (name, [*tokens, "1"]),
        "fewer": lambda: (name, tokens[1:]),
    }
    lines[at] = odd[draw(st.sampled_from(sorted(odd)))]()
    texts = [f"{lead}{' '.join(numbers)}".replace("\n", "") for lead, numbers in lines]
    written = [text.encode("utf-8", "surrogateescape") for text in texts]
    return written[: len(names)], written[len(names) :]


@given(changes(), st.sampled_from([NOBODY, frozenset({"SEQUENCE"})]))
def test_what_is_read_together_is_what_each_line_says(
    changed: tuple[list[bytes], list[bytes]], without: frozenset[str]
) -> None:
    earlier, later = changed
    found = plain_operations(earlier, later, without)
    event(f"read together: {found is not None}")
    if found is None:
        return
    for texts, numbers in ((earlier, found.earlier), (later, found.later)):
        width = len(numbers) // max(1, len(found.names))
        together = {
            name: tuple(numbers[at * width : (at + 1) * width][:9]) for at, name in enumerate(found.names)
        }
        wanted = [text for text in texts if text.partition(b":")[0].strip().decode() not in without]
        if together and width < 8:
            with pytest.raises(ParseError):
                list(map(operation_row, wanted))
            continue
        rows = dict(row for row in map(operation_row, wanted) if row is not None and any(row[1]))
        assert rows == {name: row for name, row in together.items() if any(row)}
