from __future__ import annotations

import pytest
from hypothesis import given

from nfstuned.model.system import KernelSetting, RefusedModule
from nfstuned.parse.etc.parameters import parse_modprobe, parse_refused_modules
from tests.parse.damage import any_text

REAL = """\
# options nfs max_session_slots=1
options nfs max_session_slots=180 nfs4_disable_idmapping=N
install sunrpc /sbin/modprobe --ignore-install sunrpc
options sunrpc tcp_max_slot_table_entries=128 \\
    tcp_slot_table_entries=16
options  some-module   text="a b" flag
blacklist nfsv3
"""


def test_each_parameter_has_its_module_and_its_line() -> None:
    assert parse_modprobe(REAL, "f") == (
        KernelSetting("nfs.max_session_slots", "180", "f", 2),
        KernelSetting("nfs.nfs4_disable_idmapping", "N", "f", 2),
        KernelSetting("sunrpc.tcp_max_slot_table_entries", "128", "f", 4),
        KernelSetting("sunrpc.tcp_slot_table_entries", "16", "f", 4),
        KernelSetting("some_module.text", '"a b"', "f", 6),
        KernelSetting("some_module.flag", "", "f", 6),
    )


def test_a_module_whose_place_a_program_takes_that_does_nothing_is_refused() -> None:
    text = "install cifs /bin/false\n#install nfs /bin/true\ninstall nfs-layout true\n" + REAL
    assert parse_refused_modules(text, "f") == (
        RefusedModule("cifs", "f", 1),
        RefusedModule("nfs_layout", "f", 3),
    )


@pytest.mark.parametrize("text", ["", "options", "options nfs", "optionsnfs a=1", "options nfs a=1 \\"])
def test_what_is_cut_off_sets_at_most_what_is_there(text: str) -> None:
    assert [setting.value for setting in parse_modprobe(text, "f")] == (["1"] if "a=1 " in text else [])


@given(any_text)
def test_any_text_is_a_file(text: str) -> None:
    assert all(setting.line > 0 for setting in parse_modprobe(text, "f"))
