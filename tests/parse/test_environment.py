from __future__ import annotations

import pytest

from nfstuned.parse.etc.tunnel import parse_variable

NAME = "AZURE_ENDPOINT_OVERRIDE"


@pytest.mark.parametrize(
    "text",
    [
        f"{NAME}=chinacloudapi.cn\n",
        f'{NAME}="chinacloudapi.cn"\n',
        f"export {NAME}='chinacloudapi.cn'\n",
        f"[Manager]\nDefaultEnvironment=LANG=C {NAME}=chinacloudapi.cn OTHER=1\n",
        f'[Mount]\nEnvironment="{NAME}=chinacloudapi.cn"\n',
        f"BOOT_IMAGE=/vmlinuz root=/dev/sda1 systemd.setenv={NAME}=chinacloudapi.cn quiet\n",
        f"{NAME}=windows.net\n{NAME}=chinacloudapi.cn\n",
    ],
)
def test_a_variable_is_found_in_every_form(text: str) -> None:
    assert parse_variable(text, NAME) == "chinacloudapi.cn"


@pytest.mark.parametrize(
    "text", ["", f"# {NAME}=a\n", f"  ; {NAME}=a\n", f"{NAME}=\n", f"MY_{NAME}=a\n", f"{NAME}S=a\n"]
)
def test_what_sets_another_variable_or_none_is_passed_over(text: str) -> None:
    assert parse_variable(text, NAME) is None
