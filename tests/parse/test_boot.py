"""The command line of an image's kernel, by the files of its boot loader."""

from __future__ import annotations

import pytest
from hypothesis import given

from nfstuned.parse.etc.parameters import (
    parse_boot_entry,
    parse_grub_config,
    parse_grub_defaults,
    parse_grub_environment,
)
from tests.parse.damage import any_text

RELEASE = "4.18.0-553.el8_10.x86_64"
ENTRY = f"""\
title Red Hat Enterprise Linux
version {RELEASE}
linux /vmlinuz-{RELEASE}
initrd /initramfs-{RELEASE}.img $tuned_initrd
options $kernelopts $tuned_params
grub_users $grub_users
"""
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
    environment = parse_grub_environment(GRUBENV)
    assert parse_boot_entry(ENTRY, RELEASE, environment) == "root=/dev/sda2 nfs.max_session_slots=32"
    assert parse_boot_entry(ENTRY, RELEASE, {}) == ""


def test_an_entry_without_a_version_is_known_by_its_kernels_file() -> None:
    entry = "linux /efi/vmlinuz-6.12\noptions a=1\noptions b=2\n"
    assert parse_boot_entry(entry, "6.12", {}) == "a=1 b=2"


def test_words_may_be_apart_by_tabs() -> None:
    assert parse_boot_entry("version\t6.12\noptions\ta=1\tb=2\n", "6.12", {}) == "a=1\tb=2"


def test_without_a_release_no_entry_is_the_kernels() -> None:
    assert parse_boot_entry("efi /shell.efi\noptions a=1\n", "", {}) is None
    assert parse_grub_config("\tlinux /vmlinuz a=1\n", "") is None


def test_another_kernels_entry_tells_nothing() -> None:
    assert parse_boot_entry(ENTRY, "4.18.0-1.el8.x86_64", {}) is None
    assert parse_grub_config(GRUB_CFG, "6.1.0-41-amd64") is None


def test_the_first_menu_entry_of_a_kernel_is_the_one_that_boots() -> None:
    assert parse_grub_config(GRUB_CFG, "6.1.0-40-amd64") == "root=UUID=1 ro  quiet"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('GRUB_CMDLINE_LINUX_DEFAULT="quiet splash"\n', {"GRUB_CMDLINE_LINUX_DEFAULT": "quiet splash"}),
        (" GRUB_CMDLINE_LINUX='a=1'  # a reason\n", {"GRUB_CMDLINE_LINUX": "a=1"}),
        ("GRUB_CMDLINE_LINUX=a=1\nGRUB_CMDLINE_LINUX=\n", {"GRUB_CMDLINE_LINUX": ""}),
        (
            'GRUB_CMDLINE_LINUX=a=1\nGRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX} b=2"',
            {"GRUB_CMDLINE_LINUX": "a=1 b=2"},
        ),
        ('#GRUB_CMDLINE_LINUX="a"\nGRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX="', {}),
    ],
)
def test_the_defaults_are_two_lines(text: str, values: dict[str, str]) -> None:
    assert parse_grub_defaults(text, {}) == values


@given(any_text)
def test_any_text_is_a_file(text: str) -> None:
    parse_boot_entry(text, RELEASE, parse_grub_environment(text))
    parse_grub_config(text, RELEASE)
    parse_grub_defaults(text, {})
