from __future__ import annotations

import pytest

from nfstuned.model.system import KernelSetting, RefusedModule
from nfstuned.parse.etc import parameters

REAL = """\
# options nfs max_session_slots=1
options nfs max_session_slots=180 nfs4_disable_idmapping=N
install sunrpc /sbin/modprobe --ignore-install sunrpc
options sunrpc tcp_max_slot_table_entries=128 \\
    tcp_slot_table_entries=16
options  some-module   text="a b" flag
blacklist nfsv3
options sunrpc.tcp_slot_table_entries=16
"""


def test_each_parameter_has_its_module_and_its_line() -> None:
    assert parameters.parse_modprobe(REAL, "f") == (
        KernelSetting("nfs.max_session_slots", "180", "f", 2),
        KernelSetting("nfs.nfs4_disable_idmapping", "N", "f", 2),
        KernelSetting("sunrpc.tcp_max_slot_table_entries", "128", "f", 4),
        KernelSetting("sunrpc.tcp_slot_table_entries", "16", "f", 4),
        KernelSetting("some_module.text", '"a b"', "f", 6),
        KernelSetting("some_module.flag", "", "f", 6),
        KernelSetting("", "options sunrpc.tcp_slot_table_entries=16", "f", 8),
    )


def test_a_module_whose_place_a_program_takes_that_does_nothing_is_refused() -> None:
    text = "install cifs /bin/false\n#install nfs /bin/true\ninstall nfs-layout true\n" + REAL
    refused = (RefusedModule("cifs", "f", 1), RefusedModule("nfs_layout", "f", 3))
    assert parameters.parse_refused_modules(text, "f") == refused


SYSCTL = """\
# sunrpc.tcp_slot_table_entries = 1
; a comment, too
sunrpc.tcp_max_slot_table_entries = 128
-sunrpc/tcp_slot_table_entries=16
net/ipv4/conf/eth0.1/forwarding = 0
-net.ipv4.conf.*.rp_filter
"""


def test_each_assignment_has_a_name_with_dots_and_its_line() -> None:
    assert parameters.parse_sysctl(SYSCTL, "f") == (
        KernelSetting("sunrpc.tcp_max_slot_table_entries", "128", "f", 3),
        KernelSetting("sunrpc.tcp_slot_table_entries", "16", "f", 4),
        KernelSetting("net.ipv4.conf.eth0/1.forwarding", "0", "f", 5),
    )


RELEASE = "4.18.0-553.el8_10.x86_64"
ENTRY = f"""\
title Red Hat Enterprise Linux
version {RELEASE}
linux /vmlinuz-{RELEASE}
initrd /initramfs-{RELEASE}.img $tuned_initrd
options $kernelopts $tuned_params
grub_users $grub_users
"""
LINUX = "GRUB_CMDLINE_LINUX"
GRUBENV = "# GRUB Environment Block\nsaved_entry=x\nkernelopts=root=/dev/sda2 nfs.max_session_slots=32 \n####"
GRUB_CFG = """\
menuentry 'Debian GNU/Linux' {
	echo	'Loading Linux 6.1.0-40-amd64 ...'
	linux	/boot/vmlinuz-6.1.0-40-amd64 root=UUID=1 ro  quiet
}
menuentry 'recovery mode' {
	linux	/boot/vmlinuz-6.1.0-40-amd64 root=UUID=1 ro single
}
"""


def test_an_entry_has_the_variables_of_grubs_environment() -> None:
    environment = parameters.parse_grub_environment(GRUBENV)
    options = parameters.parse_boot_entry(ENTRY, RELEASE, environment)
    assert options == "root=/dev/sda2 nfs.max_session_slots=32"
    assert parameters.parse_boot_entry(ENTRY, RELEASE, {}) == ""


def test_an_entry_without_a_version_is_known_by_its_kernels_file_and_words_may_be_apart_by_tabs() -> None:
    entry = "linux /efi/vmlinuz-6.12\noptions a=1\noptions b=2\n"
    assert parameters.parse_boot_entry(entry, "6.12", {}) == "a=1 b=2"
    assert parameters.parse_boot_entry("version\t6.12\noptions\ta=1\tb=2\n", "6.12", {}) == "a=1\tb=2"


def test_another_kernels_entry_tells_nothing_nor_does_any_without_a_release() -> None:
    assert parameters.parse_boot_entry("efi /shell.efi\noptions a=1\n", "", {}) is None
    assert parameters.parse_grub_config("\tlinux /vmlinuz a=1\n", "") is None
    assert parameters.parse_boot_entry(ENTRY, "4.18.0-1.el8.x86_64", {}) is None
    assert parameters.parse_grub_config(GRUB_CFG, "6.1.0-41-amd64") is None


def test_the_first_menu_entry_of_a_kernel_is_the_one_that_boots() -> None:
    assert parameters.parse_grub_config(GRUB_CFG, "6.1.0-40-amd64") == "root=UUID=1 ro  quiet"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (f'{LINUX}_DEFAULT="quiet splash"\n', {f"{LINUX}_DEFAULT": "quiet splash"}),
        (f" {LINUX}='a=1'  # a reason\n", {LINUX: "a=1"}),
        (f"{LINUX}=a=1\n{LINUX}=\n", {LINUX: ""}),
        (f'{LINUX}=a=1\n{LINUX}="${{{LINUX}}} b=2"', {LINUX: "a=1 b=2"}),
        ('#GRUB_CMDLINE_LINUX="a"\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="', {}),
    ],
)
def test_the_defaults_are_two_lines(text: str, values: dict[str, str]) -> None:
    assert parameters.parse_grub_defaults(text, {}) == values
