"""Promises of nfstuned's own drop-in of nfsmount.conf that hold for every host and every text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nfstuned.core.mounts.requests import last_asked, requested
from nfstuned.core.nconnect.persist import section_uses, sections, with_sections
from nfstuned.model.mounts import FSTAB, PERSISTED, Maker, Request, Result, Snapshot
from nfstuned.model.system import NfsUtils
from tests.core.fstabs import EVERYWHERE, POLICY
from tests.core.persisted import (
    ANF,
    ANF2,
    NEW,
    OLD,
    OLDEST,
    PUBLIC,
    SA1,
    SA2,
    after,
    conf,
    host,
    ours,
    planned,
)

NAMES = (SA1, SA1.upper(), SA2, PUBLIC, ANF, ANF2, "nas", "[fd00::10]", "127.0.0.1", "unknown.example.org")
OPTIONS = ("rw", *(f"nconnect={count}" for count in (2, 4, 8, 16, "x")), "sec=krb5", "proto=rdma")
LINES = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(OPTIONS)), max_size=5).map(
    lambda found: tuple(f"{name}:/x{n} /p{n} {options}" for n, (name, options) in enumerate(found))
)
SETTINGS = st.lists(
    st.one_of(
        st.builds(conf, st.just("server"), st.sampled_from((*NAMES, "gone")), st.sampled_from("248")),
        st.builds(conf, st.just("mountpoint"), st.sampled_from(("/p0", "/p1")), st.sampled_from("248")),
        st.builds(conf, st.just("nfsmount_global_options"), st.none(), st.sampled_from("248")),
    ),
    max_size=2,
).map(tuple)
HOLDERS = st.sampled_from((SA1, SA2, PUBLIC, ANF, ANF2, "nas", "gone"))
HELD = st.dictionaries(HOLDERS, st.integers(1, 16), max_size=3)
UTILS = st.sampled_from((NEW, OLD, OLDEST, NfsUtils(), None))
HOSTS = st.builds(lambda lines, settings: host(*lines, settings=settings), LINES, SETTINGS)
TWO_MINDS = host(
    f"{SA1}:/x0 /p0 rw",
    f"{SA1}:/x1 /p1 rw",
    settings=(conf("mountpoint", "/p0", "2"), conf("nfsmount_global_options", None, "4")),
)
"""A section that was written before would take the global number from the second mount."""


@given(snapshot=HOSTS, held=HELD, utils=UTILS, prune=st.booleans())
def test_a_second_run_has_nothing_to_do(
    *, snapshot: Snapshot, held: dict[str, int], utils: NfsUtils | None, prune: bool
) -> None:
    first = planned(snapshot, held, utils, prune=prune)
    then = after(first, held)
    second = planned(snapshot, then, utils, prune=prune)
    assert after(second, then) == then
    assert not [one for one in second.changes if one.result is Result.PLANNED]


@given(snapshot=HOSTS, held=HELD, prune=st.booleans())
@example(snapshot=TWO_MINDS, held={SA1: 1}, prune=False)
def test_the_file_gives_what_it_says_and_changes_no_other_mount(
    *, snapshot: Snapshot, held: dict[str, int], prune: bool
) -> None:
    then = after(planned(snapshot, held, NEW, prune=prune), held)
    for use in section_uses(snapshot, POLICY).members:
        request = use.target.request
        assert request is not None
        before = last_asked(requested(request, snapshot.settings), "nconnect")
        now = last_asked(requested(request, (*snapshot.settings, *ours(then))), "nconnect")
        if before is not None:
            assert now == before
        elif use.section in then:
            assert now is not None
            assert (now.file, now.value) == (PERSISTED, str(then[use.section]))
        else:
            assert now is None


@given(snapshot=HOSTS, held=HELD, prune=st.booleans())
def test_an_old_mount_nfs_has_one_section(*, snapshot: Snapshot, held: dict[str, int], prune: bool) -> None:
    then = after(planned(snapshot, held, OLD, prune=prune), held)
    others = [one for one in snapshot.settings if one.section == "server"]
    assert len(then) <= (0 if others else 1)


@given(HOSTS, HELD)
def test_every_share_of_a_server_gets_the_same(snapshot: Snapshot, held: dict[str, int]) -> None:
    plan = planned(snapshot, held, NEW)
    made = (change for change in plan.changes if change.result is Result.PLANNED)
    written = {change.target: change.new for change in made if change.new}
    settings = (*snapshot.settings, *ours(after(plan, held)))
    for use in section_uses(snapshot, POLICY).members:
        if use.section in written and use.target.request is not None:
            found = last_asked(requested(use.target.request, settings), "nconnect")
            assert found is not None
            assert found.value == str(written[use.section])


@given(
    sources=st.lists(
        st.builds("{}{}".format, st.text(max_size=12), st.sampled_from(["", ":/x"])), max_size=3
    ),
    options=st.text(max_size=12),
    maker=st.sampled_from(Maker),
    wildcard=st.booleans(),
)
def test_whatever_stands_in_a_file_only_names_become_sections(
    *, sources: list[str], options: str, maker: Maker, wildcard: bool
) -> None:
    requests = tuple(
        Request(source, f"/{n}", options, FSTAB, n, wildcard=wildcard, maker=maker)
        for n, source in enumerate(sources, 1)
    )
    then = after(planned(host(requests=requests), policy=EVERYWHERE))
    assert sections(with_sections(then)) == then
    assert all(re.fullmatch("[a-z0-9_.-]+", name) for name in then)


SECTION_NAMES = st.from_regex(r"[a-z0-9_](?:[a-z0-9._-]{0,20}[a-z0-9_])?", fullmatch=True)
SECTIONS = st.dictionaries(SECTION_NAMES, st.integers(1, 16), max_size=5)
SOME = {"sa1.file.core.windows.net": 4, "10.1.2.4": 8}


@given(SECTIONS, st.data())
def test_no_edit_goes_unseen(wanted: dict[str, int], data: st.DataObject) -> None:
    text = with_sections(wanted)
    place, gone = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 3))
    new = data.draw(st.text(max_size=3))
    edited = text[:place] + new + text[place + gone :]
    assert (sections(edited) == wanted) == (edited == text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '[ Server "nas" ]\nnconnect=4\n',
        with_sections(SOME).replace("nconnect=4", "nconnect=2"),
        with_sections(SOME).replace("\n", "\r\n"),
        with_sections(SOME)[:-1],
        with_sections(SOME) + "\n",
    ],
)
def test_what_nfstuned_did_not_write_is_not_its_own(text: str) -> None:
    assert sections(text) is None


def test_the_text_tells_a_reader_what_it_is() -> None:
    lines = with_sections({"nas": 8}).split("\n")
    assert lines[0].startswith("# nfstuned wrote this, sha256 ")
    assert [line for line in lines if line and not line.startswith("#")] == ['[ Server "nas" ]', "nconnect=8"]
    assert max(len(line) for line in lines) <= 110
