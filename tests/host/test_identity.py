"""Who an image's clones will be: what names them, and where they have their machine id from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from nfstuned.host.image_root import ImageRoot
from nfstuned.host.system import observe_identity
from nfstuned.model.system import CommandLine
from tests.tree import link, put

if TYPE_CHECKING:
    from pathlib import Path

    from nfstuned.model.system import ClientIdentity

ID = "4a1f0c3e9b7d42d6a5c8e1f20b3d4c5e\n"
ETC, OF_DBUS = "/etc/machine-id", "/var/lib/dbus/machine-id"
CLOUD, PROGRAM = "/etc/cloud/cloud.cfg", "/usr/bin/cloud-init"
THERE = {CLOUD: "preserve_hostname: false\n", PROGRAM: ""}


def identity(folder: Path, files: dict[str, str], cmdline: str = "") -> ClientIdentity:
    for name, text in {"/etc/hostname": "golden\n", **files}.items():
        put(folder / name[1:], text)
    return observe_identity(ImageRoot(str(folder)), CommandLine(cmdline), image=True)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, ()),
        ({ETC: ""}, ()),
        ({ETC: "uninitialized\n"}, ()),
        ({OF_DBUS: ID}, (OF_DBUS,)),
        ({ETC: "uninitialized\n", OF_DBUS: ID.strip().upper()}, (OF_DBUS,)),
        ({ETC: ID, OF_DBUS: ID}, (ETC, OF_DBUS)),
        ({OF_DBUS: ""}, ()),
        ({OF_DBUS: "0" * 32}, ()),
        ({OF_DBUS: f"{ID}{ID}"}, ()),
    ],
)
def test_dbuss_machine_id_counts_too(files: dict[str, str], found: tuple[str, ...], tmp_path: Path) -> None:
    assert identity(tmp_path, files).machine_ids == found


def test_it_follows_no_link_to_that_of_dbus(tmp_path: Path) -> None:
    link(tmp_path / OF_DBUS[1:], "/srv/id")
    assert identity(tmp_path, {"/srv/id": ID, ETC: ""}).machine_ids == ()


@pytest.mark.parametrize(
    ("files", "cmdline", "renamed"),
    [
        ({CLOUD: "", PROGRAM: ""}, "", True),
        ({CLOUD: "", "/usr/local/bin/cloud-init": ""}, "", True),
        ({PROGRAM: ""}, "", False),
        ({CLOUD: ""}, "", False),
        ({**THERE, "/etc/cloud/cloud-init.disabled": ""}, "", False),
        ({**THERE, CLOUD: "preserve_hostname: true\n"}, "", False),
        ({**THERE, "/etc/cloud/cloud.cfg.d/10.yaml": "preserve_hostname: true\n"}, "", True),
        (
            {
                **THERE,
                "/etc/cloud/cloud.cfg.d/10.cfg": "preserve_hostname: true\n",
                "/etc/cloud/cloud.cfg.d/20.cfg": "preserve_hostname: false\n",
                "/etc/cloud/cloud.cfg.d/30.cfg": "mounts: []\n",
            },
            "",
            True,
        ),
        ({"/etc/waagent.conf": ""}, "cloud-init=disabled", True),
        ({PROGRAM.replace("cloud-init", "ignition"): ""}, "", True),
    ],
)
def test_cloud_init_names_clones_where_it_is_there_and_lets_no_name_stay(
    files: dict[str, str],
    cmdline: str,
    renamed: bool,  # noqa: FBT001 - a column of the table
    tmp_path: Path,
) -> None:
    assert identity(tmp_path, files, cmdline).renamed is renamed


def test_a_program_may_be_a_link(tmp_path: Path) -> None:
    link(tmp_path / PROGRAM[1:], "/opt/cloud/bin/cloud-init")
    assert identity(tmp_path, {CLOUD: ""}).renamed
