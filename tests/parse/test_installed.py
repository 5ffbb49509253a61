from __future__ import annotations

import pytest

from nfstuned.errors import ParseError
from nfstuned.model.change import Installed, Link
from nfstuned.parse.etc.installed import digest, encoded, is_file, parse_installed, render_installed

DIGEST = "a" * 64
LIST = Installed({"usr/local/share/man/man1/nfstuned.1": (DIGEST,)}, ("usr/local/lib/x",))
BAKED = Installed(
    {"etc/a.wants/b": (digest(Link("/usr/lib/b\n")),), "etc/c": (DIGEST, digest(b"c"))},
    before={"etc/c": "not UTF-8: \udcff\n"},
)


def shaped(files: str, folders: str = "[]", before: str = "{}") -> str:
    return f'{{"schema": "nfstuned.installed/1", "files": {files}, "folders": {folders}, "before": {before}}}'


@pytest.mark.parametrize("installed", [LIST, BAKED, Installed()])
def test_a_list_is_read_back_as_it_was_written(installed: Installed) -> None:
    assert parse_installed(render_installed(installed), "list") == installed


def test_digests_of_links_differ_from_files_and_from_each_other() -> None:
    found = {digest(b""), digest(b"/a"), digest(b"-> /a"), digest(Link("/a")), digest(Link("/b"))}
    assert len(found) == 5
    assert [is_file(one) for one in (digest(b""), digest(Link("/a")), "", None)] == [
        True,
        False,
        False,
        False,
    ]


def test_a_text_that_was_read_has_its_bytes_again() -> None:
    data = b"a\xff\n"
    assert encoded(data.decode("utf-8", "surrogateescape")) == data


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
        shaped("{}").replace("/1", "/2"),
        shaped("[]"),
        shaped('{"a": []}'),
        shaped('{"a": ["0"]}'),
        shaped('{"a": "aa"}'),
        shaped('{"a": ["-> "]}'),
        shaped('{"\\ud800": ["-> a"]}'),
        shaped("{}", folders="[1]"),
        shaped("{}", folders='["\\ud800"]'),
        shaped("{}", before='{"a": 1}'),
        shaped("{}", before="[]"),
        shaped("{}", before='{"a": "\\ud800"}'),
    ],
)
def test_a_list_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="list: "):
        parse_installed(text, "list")


def test_a_list_of_another_version_says_so() -> None:
    with pytest.raises(ParseError, match=r"its schema is 'nfstuned\.installed/2'"):
        parse_installed('{"schema": "nfstuned.installed/2"}', "list")


@pytest.mark.parametrize("value", ["[" * 100_000, "[" * 900 + "]" * 900])
def test_a_list_that_is_nested_deep_is_refused_in_plain_words(value: str) -> None:
    for text in (value, f'{{"schema": "nfstuned.installed/1", "files": {{"a": {value}}}, "folders": []}}'):
        with pytest.raises(ParseError) as raised:
            parse_installed(text, "list")
        assert "recursion" not in str(raised.value)
