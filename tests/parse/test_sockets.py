from __future__ import annotations

from nfstuned.parse.proc.processes import parse_listening

REAL = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:4E51 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 24511 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 18021 1
   2: 0100007F:03B6 0100007F:4E52 01 00000000:00000000 00:00000000 00000000     0        0 24519 1
  10: 0100007F:4E53 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 24520 1
"""
V6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue tr
   0: 00000000000000000000000001000000:4E51 00000000000000000000000000000000:0000 0A 00000000:00000000
"""


def test_only_sockets_that_listen_count() -> None:
    assert parse_listening(REAL) == frozenset({22, 20049})


def test_tcp6_has_the_same_form() -> None:
    assert parse_listening(V6) == frozenset({20049})


def test_a_host_on_which_nothing_listens_differs_from_one_that_does_not_say() -> None:
    assert parse_listening(REAL.partition("\n")[0]) == frozenset()
    assert parse_listening("") is None
    assert parse_listening("no such file\n") is None


def test_rows_that_are_cut_off_or_strange_are_passed_over() -> None:
    assert parse_listening(REAL + "  11: 0100007F:4E5") == frozenset({22, 20049})
    assert parse_listening(REAL + "  11: 0100007F:zzzz 00000000:0000 0A 0\n") == frozenset({22, 20049})
