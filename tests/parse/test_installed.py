from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.files import Installed
from nfstuned.parse.installed import parse_installed, render_installed

DIGEST = "a" * 64
LIST = Installed({"usr/local/share/man/man1/nfstuned.1": (DIGEST,)}, ("usr/local/lib/x",))


def test_a_list_is_read_back_as_it_was_written() -> None:
    assert parse_installed(render_installed(LIST), "list") == LIST


def test_a_list_that_is_cut_off_anywhere_is_refused() -> None:
    text = render_installed(LIST).rstrip()
    for end in range(len(text)):
        with pytest.raises(ParseError, match="list: "):
            parse_installed(text[:end], "list")


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"schema": "nfstuned.installed/2", "files": {}, "folders": []}',
        '{"schema": "nfstuned.installed/1", "files": [], "folders": []}',
        '{"schema": "nfstuned.installed/1", "files": {"a": []}, "folders": []}',
        '{"schema": "nfstuned.installed/1", "files": {"a": ["0"]}, "folders": []}',
        '{"schema": "nfstuned.installed/1", "files": {"a": "aa"}, "folders": []}',
    ],
)
def test_a_list_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="list: "):
        parse_installed(text, "list")


def test_a_list_of_another_version_says_so() -> None:
    with pytest.raises(ParseError, match=r"its schema is 'nfstuned\.installed/2'"):
        parse_installed('{"schema": "nfstuned.installed/2"}', "list")
