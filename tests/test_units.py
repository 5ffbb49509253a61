"""systemd/ and udev/: systemd's own tools accept them, and they agree with the code."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from nfstuned.cli.service import LISTEN
from nfstuned.daemon.metrics import EXPORTER as EXPORTER_FOLDER
from nfstuned.host.files.replace import LOCK
from nfstuned.host.telemetry.journal import Message
from nfstuned.host.telemetry.sinks import REQUEST
from nfstuned.model.mounts import PERSISTED
from tests.lab.kit.unit import allowed
from tests.tree import put

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "systemd/nfstuned.service"
PERSIST, WATCH = ROOT / "systemd/nfstuned-persist.service", ROOT / "systemd/nfstuned-persist.path"
CHECK, TIMER = ROOT / "systemd/nfstuned-check.service", ROOT / "systemd/nfstuned-check.timer"
EXPORTER = ROOT / "systemd/nfstuned-exporter.service"
CATALOG = ROOT / "systemd/nfstuned.catalog"
RULES = ROOT / "udev/99-nfstuned.rules"
HEADER = "NV SERVER   PORT DEV          FSID                              FSC\n"
VOLUMES = HEADER + "v4 0a000004  801 0:33         2:0                               no \n"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def settings(unit: Path = UNIT) -> list[tuple[str, str]]:
    lines = (line for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#"))
    return [(name, value) for name, _, value in (line.partition("=") for line in lines)]


def installed(folder: Path, *units: Path) -> list[Path]:
    """Copy units to a folder, with a program that exists instead of nfstuned."""
    for unit in units:
        (folder / unit.name).write_text(unit.read_text().replace("/usr/bin/nfstuned ", "/usr/bin/true "))
    return [folder / unit.name for unit in units]


@pytest.mark.parametrize(
    "units",
    [(UNIT,), (UNIT, WATCH, PERSIST), (CHECK, TIMER), (TIMER, CHECK), (EXPORTER,)],
    ids=["daemon", "persist", "check", "timer", "exporter"],
)
def test_systemd_finds_nothing_wrong_with_the_units(units: tuple[Path, ...], tmp_path: Path) -> None:
    done = run("systemd-analyze", "verify", "--man=no", *installed(tmp_path, *units))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("unit", "tenths"),
    [(UNIT, 18), (PERSIST, 27), (CHECK, 26), (EXPORTER, 15)],
    ids=["daemon", "persist", "check", "exporter"],
)
def test_the_sandbox_is_as_tight_as_promised(unit: Path, tenths: int) -> None:
    done = run("systemd-analyze", "security", "--offline=true", f"--threshold={tenths}", "--no-pager", unit)
    assert done.returncode == 0, done.stdout


def test_the_daemon_and_the_units_name_the_same_file() -> None:
    assert dict(settings(WATCH))["PathExists"] == f"/{REQUEST}"
    assert dict(settings(PERSIST))["ExecStartPre"] == f"/bin/rm -f /{REQUEST}"
    assert dict(settings(WATCH))["Unit"] == PERSIST.name
    assert ("Wants", WATCH.name) in settings()


def test_the_service_may_write_the_files_of_the_command() -> None:
    given = settings(PERSIST)
    assert dict(given)["ExecStart"] == "/usr/bin/nfstuned apply --persist"
    assert ("ReadWritePaths", "/etc") in given
    assert PERSISTED.startswith("/etc/")
    # A new text keeps its owner (fchown), which @privileged would forbid; a later line counts.
    filters = [value for name, value in given if name == "SystemCallFilter"]
    assert filters[-1] == "@chown"
    assert LOCK.startswith(f"run/{dict(given)['RuntimeDirectory']}/")


@pytest.mark.parametrize("unit", [PERSIST, CHECK], ids=["persist", "check"])
def test_units_that_read_all_of_etc_may_read_other_users_files(unit: Path) -> None:
    """Root without it may not enter /etc/sssd/conf.d, which is SSSD's own user's."""
    assert dict(settings(unit))["CapabilityBoundingSet"] == "CAP_DAC_READ_SEARCH"
    # With it, handles would open whatever a file system has.
    assert "open_by_handle_at" not in allowed(unit)


@pytest.mark.parametrize(
    ("check", "left"),
    [
        ("echo new; exit 0", "new\n"),
        ("echo new; exit 1", "new\n"),
        ("echo half; exit 2", "old\n"),
        ("exec python3 -c 'import nowhere.at.all'", "old\n"),
    ],
    ids=["clean", "found", "broken", "cannot-load"],
)
def test_only_a_completed_check_replaces_the_earlier_findings(check: str, left: str, tmp_path: Path) -> None:
    (command,) = re.findall(r"^ExecStart=/bin/sh -c '(.*?)'$", CHECK.read_text(), re.MULTILINE | re.DOTALL)
    program = tmp_path / "program"
    put(program, f"#!/bin/sh\n{check}\n", 0o755)
    found = tmp_path / "findings.prom"
    found.write_text("old\n")
    script = command.replace("\\\n", " ").replace("$$", "$")
    script = script.replace("/usr/bin/nfstuned ", f"{program} ").replace("/run/nfstuned", str(tmp_path))
    assert (run("/bin/sh", "-c", script).returncode == 0) is (left == "new\n")
    assert found.read_text() == left


def test_the_exporter_is_no_root_and_its_folder_asks_the_daemon_for_the_file() -> None:
    given = dict(settings(EXPORTER))
    assert given["DynamicUser"] == "yes"
    assert f"run/{given['RuntimeDirectory']}" == EXPORTER_FOLDER
    assert given["RestrictAddressFamilies"] == "AF_INET AF_INET6"
    assert given["Environment"] == f"LISTEN={LISTEN}"


def test_the_sandbox_hides_no_mount_and_no_kernel_file_that_the_daemon_reads() -> None:
    given = dict(settings())
    assert given["ProtectHome"] == "read-only"
    assert given["CapabilityBoundingSet"] == ""
    hiding = {"PrivateTmp", "PrivateNetwork", "PrivateUsers", "ProcSubset", "ProtectProc"}
    # With either, /sys is writable under systemd 257 (tests/lab/scenarios/test_sandbox.py).
    hiding |= {"ProtectKernelTunables", "ProtectControlGroups"}
    assert not hiding & given.keys()
    assert not {"TemporaryFileSystem", "RootDirectory"} & given.keys()


def test_only_secrets_of_etc_are_hidden_which_no_mount_may_lie_over() -> None:
    hidden = [path for name, value in settings() if name == "InaccessiblePaths" for path in value.split()]
    assert hidden
    assert [path for path in hidden if not path.startswith("-/etc/")] == []


def test_no_unit_lets_its_process_reach_into_another_or_make_namespaces() -> None:
    refused = {"io_uring_setup", "userfaultfd", "keyctl", "setns", "unshare", "bpf", "ptrace", "mount"}
    refused |= {"process_vm_readv", "process_vm_writev", "perf_event_open"}
    units = (UNIT, PERSIST, CHECK, EXPORTER)
    assert {unit.name: refused & allowed(unit) for unit in units} == {unit.name: set() for unit in units}


def test_no_unit_of_the_early_boot_is_waited_for() -> None:
    given = dict(settings())
    assert given["DefaultDependencies"] == "no"
    assert given["After"] == "systemd-udevd.service"
    assert "remote-fs-pre.target" in given["Before"].split()


def verified(folder: Path, drop_in: str, var: str = "nfs") -> str:
    """Return systemd-analyze's messages on the unit with a drop-in, on a host with a mount at /var."""
    (folder / f"{UNIT.name}.d").mkdir()
    installed(folder, UNIT)
    (folder / f"{UNIT.name}.d/samples.conf").write_text(drop_in)
    (folder / "var.mount").write_text(f"[Mount]\nWhat=server:/var\nWhere=/var\nType={var}\n")
    command = ["systemd-analyze", "verify", "--man=no", str(folder / UNIT.name)]
    environ = {**os.environ, "SYSTEMD_UNIT_PATH": f"{folder}:"}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False).stderr


def test_the_unit_itself_waits_for_no_mount_that_waits_for_it(tmp_path: Path) -> None:
    """LogsDirectory= would: nobody needs it who keeps no file of samples, or keeps it elsewhere."""
    assert verified(tmp_path, "") == ""
    waiting = {"LogsDirectory", "StateDirectory", "CacheDirectory", "RequiresMountsFor", "WorkingDirectory"}
    assert not waiting & dict(settings()).keys()


def test_a_folder_for_samples_with_var_on_nfs_is_an_ordering_cycle_as_the_manual_says(tmp_path: Path) -> None:
    assert "Found ordering cycle" in verified(tmp_path, "[Service]\nLogsDirectory=nfstuned\n")


@pytest.mark.parametrize("setting", ["LogsDirectory=nfstuned", "ReadWritePaths=-/srv/samples"])
def test_the_drop_ins_that_the_manual_names_are_right(tmp_path: Path, setting: str) -> None:
    manual = (ROOT / "docs/man/nfstuned.toml.5").read_text()
    assert f"\n{setting}\n" in manual.replace("\\-", "-")
    assert verified(tmp_path, f"[Service]\n{setting}\n", var="ext4") == ""


def test_the_catalog_explains_exactly_the_messages_of_the_code() -> None:
    ids = re.findall(r"^-- ([0-9a-f]{32})$", CATALOG.read_text(), re.MULTILINE)
    assert sorted(ids) == sorted(message.id for message in Message)
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("message", Message)
def test_a_catalog_entry_uses_only_fields_that_its_message_promises(message: Message) -> None:
    _, _, rest = CATALOG.read_text().partition(f"-- {message.id}\n")
    used = re.findall(r"@([A-Z_]+)@", rest.partition("\n-- ")[0])
    assert set(used) <= {f"NFSTUNED_{name.upper()}" for name in message.fields}


def test_journalctl_accepts_the_catalog(tmp_path: Path) -> None:
    folder = tmp_path / "usr/lib/systemd/catalog"
    folder.mkdir(parents=True)
    shutil.copy(CATALOG, folder)
    done = run("journalctl", f"--root={tmp_path}", "--update-catalog")
    assert (done.returncode, done.stderr) == (0, "")
    listed = run("journalctl", f"--root={tmp_path}", "--list-catalog").stdout
    assert len(listed.splitlines()) == len(Message)


def rule() -> str:
    (line,) = [line for line in RULES.read_text().splitlines() if line and not line.startswith("#")]
    return line


def program(device: str, volumes: Path) -> list[str]:
    found = re.search(r'PROGRAM=="([^"]*)"', rule())
    assert found is not None
    text = found[1].replace("$kernel", device).replace("$$", "$")
    assert "$" in text
    return [part.replace("/proc/fs/nfsfs/volumes", str(volumes)) for part in shlex.split(text)]


def test_the_udev_rule_is_one_line_that_no_other_device_can_reach() -> None:
    assert rule().startswith('SUBSYSTEM=="bdi", ACTION=="add", KERNEL=="0:*", PROGRAM=="/usr/bin/awk ')
    assert rule().endswith(', ATTR{read_ahead_kb}="15360"')
    assert "\\" not in RULES.read_text()


@pytest.mark.parametrize(
    ("device", "matches"), [("0:33", True), ("0:3", False), ("0:330", False), ("0:0", False), ("no", False)]
)
def test_the_udev_rule_asks_for_the_superblocks_device(device: str, *, matches: bool, tmp_path: Path) -> None:
    volumes = tmp_path / "volumes"
    assert run(*program(device, volumes)).returncode != 0
    volumes.write_text(VOLUMES)
    assert (run(*program(device, volumes)).returncode == 0) is matches
