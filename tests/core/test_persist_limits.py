"""What is written where mount.nfs reads one section only, no drop-ins, or is not there."""

from __future__ import annotations

import pytest

from nfstuned.model.mounts import Result
from nfstuned.model.system import Network, NfsUtils
from tests.core.fstabs import private
from tests.core.persisted import ANF, ANF2, NEW, OLD, OLDEST, SA1, SA2, after, conf, host, planned, said, told

A = f"{SA1}:/sa1/a /a vers=4.1"
VOL, VOL2 = f"{ANF}:/vol /v vers=4.1", f"{ANF2}:/vol /w vers=4.1"


def test_with_debian_12_the_first_server_gets_the_only_section() -> None:
    plan = planned(host(A, VOL), utils=OLD)
    assert after(plan) == {SA1: 4}
    assert told(plan)[ANF] == (
        f"mount.nfs 2.6.2 has one nconnect for all [ Server ] sections, and {SA1} has it: put nconnect into "
        "the options of the mounts instead"
    )


def test_the_server_that_has_it_keeps_it() -> None:
    plan = planned(host(A, VOL), {ANF: 8}, OLD)
    assert (after(plan, {ANF: 8}), list(told(plan))) == ({ANF: 8}, [SA1])


def test_a_server_that_does_not_need_it_does_not_keep_others_from_it() -> None:
    assert after(planned(host(f"{SA1}:/sa1/a /a nconnect=2", VOL), utils=OLD)) == {ANF: 8}


def test_a_server_whose_mounts_all_ask_by_themselves_lacks_nothing() -> None:
    asking = f"{SA1}:/sa1/a /a nconnect=4"
    plan = planned(host(asking, VOL), utils=OLD)
    assert said(plan) == [(ANF, None, 8, Result.PLANNED)]
    assert said(planned(host(asking, VOL, VOL2), utils=OLD)) == [
        (ANF, None, 8, Result.PLANNED),
        (ANF2, None, 8, Result.SKIPPED),
    ]
    assert after(planned(host(asking), utils=OLD)) == {SA1: 4}
    assert planned(host(asking), utils=OLDEST).changes == ()


def test_sections_that_a_newer_one_had_are_taken_out_but_for_one() -> None:
    held = {ANF: 8, SA1: 4, "gone": 2}
    plan = planned(host(A, VOL), held, OLD)
    assert said(plan) == [("gone", 2, None, Result.PLANNED), (SA1, 4, None, Result.PLANNED)]
    assert (after(plan, held), plan.unused) == ({ANF: 8}, ())


def test_a_section_that_nothing_uses_stands_in_the_way_until_it_is_pruned() -> None:
    plan = planned(host(VOL), {"gone": 4}, OLD)
    assert after(plan, {"gone": 4}) == {"gone": 4}
    assert "gone has it, which nothing uses here: --prune takes it out" in told(plan)[ANF]
    assert after(planned(host(VOL), {"gone": 4}, OLD, prune=True), {"gone": 4}) == {ANF: 8}


def test_a_server_under_two_names_would_need_two() -> None:
    network = Network(answers=(private(SA1, "10.10.10.10"), private(SA2, "10.10.10.10")))
    lines = (A, f"{SA2}:/sa2/a /b vers=4.1")
    plan = planned(host(*lines), utils=OLD, network=network)
    assert after(plan) == {}
    assert "this server is mounted by several names" in told(plan)[SA1]
    assert after(planned(host(*lines, VOL), utils=OLD, network=network)) == {ANF: 8}


@pytest.mark.parametrize("name", ["elsewhere", SA2])
def test_a_section_of_the_administrators_is_neither_taken_away_nor_believed(name: str) -> None:
    settings = (conf("server", name, "2"),)
    plan = planned(host(A, settings=settings), utils=OLD)
    assert after(plan) == {}
    assert f"/etc/nfsmount.conf:2 has it for {name}" in told(plan)[SA1]
    assert said(planned(host(A, settings=settings), {SA1: 4}, OLD)) == [(SA1, 4, None, Result.PLANNED)]
    assert after(planned(host(A, settings=settings), utils=NEW)) == {SA1: 4}


def test_one_that_reads_no_drop_ins_gets_none() -> None:
    plan = planned(host(A), utils=OLDEST)
    assert said(plan) == [(SA1, None, 4, Result.SKIPPED)]
    assert "mount.nfs 2.3.3 does not read /etc/nfsmount.conf.d" in told(plan)[SA1]
    assert after(planned(host(A), {SA1: 4, "gone": 4}, OLDEST), {SA1: 4, "gone": 4}) == {}


@pytest.mark.parametrize(
    ("utils", "words"),
    [(None, "there is no mount.nfs here: install"), (NfsUtils(), "does not tell its version")],
)
def test_without_knowing_it_nothing_is_written_and_nothing_taken_away(
    utils: NfsUtils | None, words: str
) -> None:
    plan = planned(host(A, VOL), {SA1: 4}, utils)
    assert said(plan) == [(ANF, None, 8, Result.FAILED)]
    assert words in told(plan, Result.FAILED)[ANF]
    assert after(plan, {SA1: 4}) == {SA1: 4}


def test_a_backport_of_drop_ins_without_a_version_is_taken_for_an_old_one() -> None:
    assert after(planned(host(A, VOL), utils=NfsUtils(None, drop_ins=True))) == {SA1: 4}
