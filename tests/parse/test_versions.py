from __future__ import annotations

from itertools import product

from nfstuned.parse.etc.nfsmount import in_version_order

NAMES = ["".join(chars) for length in range(5) for chars in product("019a", repeat=length)]


def test_numbers_in_names_count_as_numbers_and_leading_zeros_as_fractions() -> None:
    names = ["10-a", "9-a", "1", "01", "09", "010", "000", "00", "0", "a2", "a10", "a2", "a"]
    assert in_version_order(names) == [
        *("000", "00", "01", "010", "09", "0", "1"),
        *("9-a", "10-a", "a", "a2", "a2", "a10"),
    ]
