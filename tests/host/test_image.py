"""An image at its first boot: kernels, units, configuration, and the identities of its clones."""

from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.image_root import ImageRoot
from nfstuned.host.root import Root
from nfstuned.host.system import at_first_boot, observe_identity, observe_image, observe_system
from nfstuned.model.system import ClientIdentity, CommandLine, System, Unit
from nfstuned.parse.etc.units import enabled_by_preset
from nfstuned.parse.proc.machine import read_kernels
from tests.tree import link, put

UNIT = "nfstuned.service"


def image(folder: Path, *files: str) -> ImageRoot:
    for name in files:
        put(folder / name)
    return ImageRoot(str(folder))


def kernel(release: str, *files: str, parent: str = "usr/lib/modules") -> list[str]:
    return [f"{parent}/{release}/{file}" for file in ("modules.builtin", *files)]


def test_kernels_are_found_once_whether_lib_is_a_link_or_not(tmp_path: Path) -> None:
    files = [
        *kernel("5.10.0-10-amd64", "kernel/fs/nfs/nfs.ko", "kernel/fs/nfs/nfsv3.ko"),
        *kernel("5.10.0-9-amd64", "kernel/fs/nfs/nfsv4.ko.xz", "kernel/fs/cifs/cifs.ko.zst"),
    ]
    root = image(tmp_path, *files)
    (tmp_path / "lib").symlink_to("usr/lib")
    found = read_kernels(root)
    assert [(one.release, one.modules) for one in found] == [
        ("5.10.0-9-amd64", frozenset({"nfsv4", "cifs"})),
        ("5.10.0-10-amd64", frozenset({"nfs", "nfsv3"})),
    ]
    assert observe_image(root).kernel is not None
    (tmp_path / "lib").unlink()
    image(tmp_path, *kernel("6.1.0-1-amd64", parent="lib/modules"))
    assert [one.release for one in read_kernels(root)][-1] == "6.1.0-1-amd64"


def test_leftovers_of_removed_kernels_and_other_folders_are_no_kernels(tmp_path: Path) -> None:
    root = image(
        tmp_path,
        "usr/lib/modules/5.10.0-1-amd64/modules.dep",
        "usr/lib/modules/5.14.0-70.el9.x86_64/weak-updates/x.ko",
        "usr/lib/modules/extramodules/modules.builtin",
    )
    assert read_kernels(root) == ()
    assert observe_image(root).kernel is None


def test_a_module_counts_where_it_is_built_in_or_in_another_folder(tmp_path: Path) -> None:
    release = "6.4.0-1-default"
    folder = tmp_path / "usr/lib/modules" / release
    root = image(tmp_path, *kernel(release, "updates/nfsv4.ko"))
    (folder / "modules.builtin").write_text("kernel/fs/nfs/nfs.ko\n")
    (folder / "config").write_text("CONFIG_NFS_V3=y\nCONFIG_NFS_V4=m\n")
    (folder / "modules.dep").write_text(
        f"/lib/modules/{release}/updates/nfsv4.ko: kernel/fs/nfs/nfs.ko\nupdates/cifs.ko.xz:\n"
    )
    (tmp_path / "lib").symlink_to("/usr/lib")
    (found,) = read_kernels(root)
    assert found.modules == {"nfs", "nfsv3", "nfsv4"}
    assert found.config == {"CONFIG_NFS_V3": "y", "CONFIG_NFS_V4": "m"}


def test_the_distribution_is_known_without_the_link_in_etc(tmp_path: Path) -> None:
    put(tmp_path / "usr/lib/os-release", "ID=sles\n")
    found = observe_image(ImageRoot(str(tmp_path))).distribution
    assert found is not None
    assert found.id == "sles"


@pytest.mark.parametrize(
    ("machine_id", "preset", "enabled"),
    [
        (None, "enable sshd.service", True),
        ("uninitialized\n", "", True),
        ("uninitialized\n", "disable *", False),
        ("", "", False),
        ("9f3a4b2c1d0e8f7a6b5c4d3e2f1a0b9c\n", "", False),
    ],
)
def test_presets_count_at_a_first_boot_only(
    tmp_path: Path, machine_id: str | None, preset: str, *, enabled: bool
) -> None:
    root = image(tmp_path, "etc/fstab")
    put(tmp_path / "usr/lib/systemd/system-preset/99-default.preset", preset)
    if machine_id is not None:
        (tmp_path / "etc/machine-id").write_text(machine_id)
    assert enabled_by_preset(root, UNIT) is enabled
    there = at_first_boot(root, System(daemon=Unit(installed=True)))
    assert there.daemon.enabled is enabled
    assert not at_first_boot(root, System()).daemon.enabled
    assert at_first_boot(root, System(daemon=Unit(installed=True, enabled=True))).daemon.enabled


def test_no_preset_enables_a_masked_unit_and_etc_hides_a_vendors_preset(tmp_path: Path) -> None:
    root = image(tmp_path, "usr/lib/systemd/system/nfstuned.service", "etc/systemd/system/x")
    for folder, text in (("usr/lib", "disable *"), ("etc", "enable *")):
        put(tmp_path / folder / "systemd/system-preset/50.preset", text)
    assert enabled_by_preset(root, UNIT)
    (tmp_path / "etc/systemd/system/nfstuned.service").symlink_to("/dev/null")
    assert not enabled_by_preset(root, UNIT)


def test_problems_of_the_configuration_are_named_as_in_the_image(tmp_path: Path) -> None:
    root = image(tmp_path, "etc/nfstuned/x")
    assert at_first_boot(root, System()).config_problems == ()
    (tmp_path / "etc/nfstuned/nfstuned.toml").write_text("[daemon]\nx = 1\n")
    (tmp_path / "etc/nfstuned/conf.d").touch()
    found = at_first_boot(root, System()).config_problems
    assert [problem.partition(": ")[0] for problem in found] == ["/etc/nfstuned/conf.d"]
    (tmp_path / "etc/nfstuned/conf.d").unlink()
    (problem,) = at_first_boot(root, System()).config_problems
    assert problem.startswith("/etc/nfstuned/nfstuned.toml:2: ")


ID = "4a1f0c3e9b7d42d6a5c8e1f20b3d4c5e\n"
ETC, OF_DBUS = "/etc/machine-id", "/var/lib/dbus/machine-id"
CLOUD, PROGRAM = "/etc/cloud/cloud.cfg", "/usr/bin/cloud-init"
KEPT, RENAMED = "preserve_hostname: true\n", "preserve_hostname: false\n"
THERE = {CLOUD: RENAMED, PROGRAM: ""}
DROP_INS = "/etc/cloud/cloud.cfg.d"


def identity(folder: Path, files: dict[str, str], cmdline: str = "") -> ClientIdentity:
    for name, text in {"/etc/hostname": "golden\n", **files}.items():
        put(folder / name[1:], text)
    return observe_identity(ImageRoot(str(folder)), CommandLine(cmdline), image=True)


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, ()),
        ({ETC: ""}, ()),
        *(({ETC: text}, ()) for text in ("uninitialized\n", "no id\n")),
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


def test_links_of_dbus_are_not_followed_and_those_of_programs_are(tmp_path: Path) -> None:
    link(tmp_path / OF_DBUS[1:], "/srv/id")
    link(tmp_path / PROGRAM[1:], "/opt/cloud/bin/cloud-init")
    found = identity(tmp_path, {"/srv/id": ID, ETC: "", CLOUD: ""})
    assert (found.machine_ids, found.renamed) == ((), True)


@pytest.mark.parametrize(
    ("files", "cmdline", "renamed"),
    [
        ({CLOUD: "", PROGRAM: ""}, "", True),
        ({CLOUD: "", "/usr/local/bin/cloud-init": ""}, "", True),
        ({PROGRAM: ""}, "", False),
        ({CLOUD: ""}, "", False),
        ({**THERE, "/etc/cloud/cloud-init.disabled": ""}, "", False),
        ({**THERE, CLOUD: KEPT}, "", False),
        ({**THERE, f"{DROP_INS}/10.yaml": KEPT}, "", True),
        ({**THERE, f"{DROP_INS}/10.cfg": KEPT, f"{DROP_INS}/20.cfg": "mounts: []\n"}, "", False),
        ({**THERE, f"{DROP_INS}/10.cfg": KEPT, f"{DROP_INS}/20.cfg": RENAMED}, "", True),
        ({"/etc/waagent.conf": ""}, "cloud-init=disabled", True),
        ({PROGRAM.replace("cloud-init", "ignition"): ""}, "", True),
    ],
)
def test_cloud_init_names_clones_where_it_is_there_and_lets_no_name_stay(
    files: dict[str, str], cmdline: str, tmp_path: Path, *, renamed: bool
) -> None:
    assert identity(tmp_path, files, cmdline).renamed is renamed


def test_a_script_that_cannot_be_read_is_a_fault_and_no_folder_or_binary_is_one(tmp_path: Path) -> None:
    put(tmp_path / "etc/crontab", "@reboot root echo 1024 > /sys/class/bdi/0:43/read_ahead_kb\n")
    put(tmp_path / "etc/cron.d/folder/file", "read_ahead_kb\n")
    put(tmp_path / "usr/local/bin/tool", "\x7fELF read_ahead_kb\n")
    root = Root(str(tmp_path))
    assert (observe_system(root, image=True).scripts, [*root.faults]) == (("/etc/crontab",), [])
    (tmp_path / "etc/crontab").unlink()
    link(tmp_path / "etc/crontab", "crontab")
    broken = Root(str(tmp_path))
    scripts = observe_system(broken, image=True).scripts
    assert (scripts, [error.file for error in broken.faults]) == ((), ["/etc/crontab"])
