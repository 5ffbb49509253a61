from __future__ import annotations

from pathlib import Path

import pytest

from nfstuned.host.root import Root
from nfstuned.host.system import observe_system
from nfstuned.model.system import CommandLine, System, Unit
from nfstuned.parse.etc.units import read_unit
from tests.tree import Tree, link, put

UNIT = "[Service]\nExecStart=/usr/sbin/nfstuned daemon\n"
NAME = "nfstuned.service"
WANTED = f"etc/systemd/system/multi-user.target.wants/{NAME}"


def seen(tree: Tree, *, image: bool = False) -> System:
    return observe_system(tree.root, image=image)


def test_settings_come_in_the_order_in_which_they_count(tree: Tree) -> None:
    tree.write("usr/lib/modprobe.d/a.conf", "options nfs x=hidden\n")
    tree.write("etc/modprobe.d/a.conf", "options nfs x=1\n")
    tree.write("lib/modprobe.d/b.conf", "options nfs x=2\n")
    tree.write("etc/modprobe.d/c.txt", "options nfs x=3\n")
    tree.write("etc/sysctl.d/90.conf", "sunrpc.x = 5\n")
    tree.write("run/sysctl.d/10.conf", "sunrpc.x = 4\n")
    tree.write("etc/sysctl.conf", "sunrpc.x = 6\n")
    assert [(one.value, one.file) for one in seen(tree, image=True).settings] == [
        ("1", "/etc/modprobe.d/a.conf"),
        ("2", "/lib/modprobe.d/b.conf"),
        ("4", "/run/sysctl.d/10.conf"),
        ("5", "/etc/sysctl.d/90.conf"),
        ("6", "/etc/sysctl.conf"),
    ]


def test_an_image_has_nothing_of_a_running_kernel(tree: Tree) -> None:
    tree.write("sys/module/nfs/parameters/nfs4_disable_idmapping", "Y\n")
    tree.write("proc/sys/sunrpc/tcp_max_slot_table_entries", "65536\n")
    tree.write("proc/cmdline", "quiet ihash_entries=16777216\n")
    tree.write("proc/sys/crypto/fips_enabled", "1\n")
    tree.write("sys/devices/system/cpu/online", "0-3\n")
    now = seen(tree)
    assert now.parameters == {"nfs.nfs4_disable_idmapping": "Y", "sunrpc.tcp_max_slot_table_entries": "65536"}
    assert (now.cmdline.text, now.cpus, now.fips) == ("quiet ihash_entries=16777216", 4, True)
    assert seen(tree, image=True) == System(cmdline=CommandLine("", "/etc/default/grub"))


GRUB, KERNELS, BOOT = "etc/default/grub", "etc/kernel/cmdline", "boot/grub/grub.cfg"
DROP_IN = 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX a=1"\n'


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({GRUB: "GRUB_CMDLINE_LINUX=a=1\n"}, ("a=1", GRUB)),
        ({GRUB: 'GRUB_CMDLINE_LINUX="quiet"\n', f"{GRUB}.d/50-x.cfg": DROP_IN}, ("quiet a=1", GRUB)),
        ({GRUB: "GRUB_CMDLINE_LINUX_DEFAULT=a=2\nGRUB_CMDLINE_LINUX=a=1\n"}, ("a=1 a=2", GRUB)),
        ({GRUB: "GRUB_CMDLINE_LINUX=a=1\n", KERNELS: "b=2\n"}, ("b=2", KERNELS)),
        ({KERNELS: "b=2\n", BOOT: "\tlinux /vmlinuz-6.1.0-40-amd64 c=3\n"}, ("c=3", BOOT)),
    ],
)
def test_the_boot_loaders_file_counts_first(tree: Tree, files: dict[str, str], line: tuple[str, str]) -> None:
    tree.write("usr/lib/modules/6.1.0-40-amd64/modules.builtin", "")
    for name, text in files.items():
        tree.write(name, text)
    text, file = line
    assert seen(tree, image=True).cmdline == CommandLine(text, f"/{file}")


def test_a_helper_is_a_program_that_can_be_run(tree: Tree) -> None:
    tree.write("usr/sbin/mount.nfs", "", 0o755)
    tree.link("usr/sbin/mount.nfs4", "mount.nfs")
    tree.write("sbin/mount.aznfs", "", 0o644)
    assert seen(tree).helpers == {"mount.nfs", "mount.nfs4"}


def test_a_service_is_enabled_by_a_link_and_not_when_it_is_masked(tree: Tree) -> None:
    root = tree.root
    nowhere = tree.link(f"etc/systemd/system/{NAME}", "/opt/gone.service")
    assert read_unit(root, NAME, image=True) == Unit(), "a link to nowhere is no mask"
    nowhere.unlink()
    tree.write(f"usr/lib/systemd/system/{NAME}", UNIT)
    assert read_unit(root, NAME, image=True) == Unit(installed=True)
    tree.link(WANTED, f"/usr/lib/systemd/system/{NAME}")
    assert read_unit(root, NAME, image=True) == Unit(installed=True, enabled=True)
    tree.link(f"etc/systemd/system/{NAME}", "/dev/null")
    assert read_unit(root, NAME, image=True) == Unit(installed=True, enabled=False, masked=True)


def test_a_mask_among_a_targets_wants_hides_the_weaker_link(tree: Tree) -> None:
    tree.write(f"usr/lib/systemd/system/{NAME}", UNIT)
    for folder, target in (("usr/lib", f"../{NAME}"), ("etc", "/dev/null")):
        tree.link(f"{folder}/systemd/system/multi-user.target.wants/{NAME}", target)
        assert read_unit(tree.root, NAME, image=True).enabled == (folder == "usr/lib")


def test_a_command_in_a_comment_masks_no_rules(tree: Tree) -> None:
    command = "ExecStartPre=-+/usr/bin/nfstuned udev mask\n"
    unit = tree.write(f"etc/systemd/system/{NAME}", f"[Service]\n{command}")
    root = tree.root
    assert read_unit(root, NAME, image=True).masks_rules
    unit.write_text(f"[Service]\n#{command}")
    assert not read_unit(root, NAME, image=True).masks_rules


@pytest.mark.parametrize("hierarchy", ["sys/fs/cgroup", "sys/fs/cgroup/systemd", "sys/fs/cgroup/unified"])
@pytest.mark.parametrize("group", ["storage.slice", "storage.slice/storage-nfs.slice", "system.slice"])
def test_a_service_is_active_in_whatever_slice_it_is(tree: Tree, hierarchy: str, group: str) -> None:
    tree.write(f"lib/systemd/system/{NAME}", UNIT)
    assert read_unit(tree.root, NAME, image=False) == Unit(installed=True, active=None)
    tree.write(f"{hierarchy}/system.slice/cron.service/cgroup.procs", "1\n")
    tree.write(f"{hierarchy}/user.slice/user-1.slice/{NAME}/cgroup.procs", "813\n")
    assert read_unit(tree.root, NAME, image=False).active is False
    for processes, active in (("", False), ("812\n", True)):
        tree.write(f"{hierarchy}/{group}/{NAME}/cgroup.procs", processes)
        assert read_unit(tree.root, NAME, image=False).active is active


def test_whether_a_service_is_active_is_unknown_where_its_processes_cannot_be_read(tree: Tree) -> None:
    tree.link(f"sys/fs/cgroup/system.slice/{NAME}/cgroup.procs", "cgroup.procs")
    assert read_unit(tree.root, NAME, image=False).active is None


@pytest.fixture
def unreadable(readable: Path) -> Path:
    """A host on which only root may read nfstuned's unit, which is in two folders."""
    for folder in ("etc", "usr/lib"):
        put(readable / folder / "systemd/system" / NAME, UNIT, 0o000)
    return readable


def test_a_denied_unit_is_installed_and_not_masked(unreadable: Path, request: pytest.FixtureRequest) -> None:
    link(unreadable / WANTED, f"/usr/lib/systemd/system/{NAME}")
    request.getfixturevalue("as_user")
    root = Root(str(unreadable))
    assert read_unit(root, NAME, image=True) == Unit(installed=True, enabled=True)
    assert f"/etc/systemd/system/{NAME}" in {problem.file for problem in root.faults.denied()}


def test_a_mask_before_a_denied_unit_is_a_mask(unreadable: Path, request: pytest.FixtureRequest) -> None:
    mask = unreadable / "etc/systemd/system" / NAME
    mask.unlink()
    mask.symlink_to("/dev/null")
    request.getfixturevalue("as_user")
    root = Root(str(unreadable))
    assert read_unit(root, NAME, image=True) == Unit(installed=True, masked=True)


def test_after_a_denied_folder_the_next_one_counts(readable: Path, request: pytest.FixtureRequest) -> None:
    (readable / "etc/systemd/system").mkdir(parents=True)
    (readable / "etc/systemd/system").chmod(0o700)
    put(readable / "usr/lib/systemd/system" / NAME)
    request.getfixturevalue("as_user")
    assert read_unit(Root(str(readable)), NAME, image=True) == Unit(masked=True)
