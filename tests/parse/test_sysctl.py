from __future__ import annotations

from hypothesis import given

from nfstuned.model.system import KernelSetting
from nfstuned.parse.etc.parameters import parse_sysctl
from tests.parse.damage import any_text

REAL = """\
# sunrpc.tcp_slot_table_entries = 1
; a comment, too
sunrpc.tcp_max_slot_table_entries = 128
-sunrpc/tcp_slot_table_entries=16
net/ipv4/conf/eth0.1/forwarding = 0
-net.ipv4.conf.*.rp_filter
"""


def test_each_assignment_has_a_name_with_dots_and_its_line() -> None:
    assert parse_sysctl(REAL, "f") == (
        KernelSetting("sunrpc.tcp_max_slot_table_entries", "128", "f", 3),
        KernelSetting("sunrpc.tcp_slot_table_entries", "16", "f", 4),
        KernelSetting("net.ipv4.conf.eth0/1.forwarding", "0", "f", 5),
    )


@given(any_text)
def test_any_text_is_a_file(text: str) -> None:
    assert all(setting.line > 0 for setting in parse_sysctl(text, "f"))
