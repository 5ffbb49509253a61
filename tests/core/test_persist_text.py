"""The text of nfstuned's own drop-in: what mount.nfs reads in it, and that no edit goes unseen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nfstuned.core.nconnect.persist import sections, with_sections
from nfstuned.errors import ParseError
from nfstuned.model.mounts import Setting
from nfstuned.parse.etc.nfsmount import PERSISTED, parse_nfsmount

NAMES = st.from_regex(r"[a-z0-9_](?:[a-z0-9._-]{0,20}[a-z0-9_])?", fullmatch=True)
SECTIONS = st.dictionaries(NAMES, st.integers(1, 16), max_size=5)
SOME = {"sa1.file.core.windows.net": 4, "10.1.2.4": 8}


@given(SECTIONS)
def test_what_is_written_is_read_back(wanted: dict[str, int]) -> None:
    assert sections(with_sections(wanted)) == wanted


@given(SECTIONS)
def test_mount_nfs_reads_one_assignment_in_each_section_and_nothing_else(wanted: dict[str, int]) -> None:
    items = parse_nfsmount(with_sections(wanted), PERSISTED)
    assert not any(isinstance(item, ParseError) for item in items)
    found = [(one.section, one.argument, one.name, one.value) for one in items if isinstance(one, Setting)]
    assert found == [("server", name, "nconnect", str(count)) for name, count in sorted(wanted.items())]


@given(SECTIONS, st.data())
def test_no_edit_goes_unseen(wanted: dict[str, int], data: st.DataObject) -> None:
    text = with_sections(wanted)
    place = data.draw(st.integers(0, len(text)))
    gone = data.draw(st.integers(0, 3))
    new = data.draw(st.text(max_size=3))
    edited = text[:place] + new + text[place + gone :]
    assert (sections(edited) == wanted) == (edited == text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "# mine\n",
        '[ Server "nas" ]\nnconnect=4\n',
        with_sections(SOME).replace("nconnect=4", "nconnect=2"),
        with_sections(SOME).replace("\n", "\r\n"),
        with_sections(SOME)[:-1],
        with_sections(SOME) + "\n",
        "\n" + with_sections(SOME),
        with_sections(SOME) + "[ Server ]\nx=1\n",
        with_sections(SOME).encode().decode("utf-16", "replace"),
    ],
)
def test_what_nfstuned_did_not_write_is_not_its_own(text: str) -> None:
    assert sections(text) is None


def test_the_text_tells_a_reader_what_it_is() -> None:
    lines = with_sections({"nas": 8}).split("\n")
    assert lines[0].startswith("# nfstuned wrote this, sha256 ")
    assert [line for line in lines if line and not line.startswith("#")] == ['[ Server "nas" ]', "nconnect=8"]
    assert max(len(line) for line in lines) <= 110
