"""systemd/ and udev/: systemd's own tools accept them, and they agree with the code."""

from __future__ import annotations

import re
import shlex
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
VOLUMES = "NV SERVER   PORT DEV          FSID                              FSC\n"
VOLUMES += "v4 0a000004  801 0:33         2:0                               no \n"


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


def test_the_daemons_request_starts_a_service_that_may_write_the_commands_files() -> None:
    assert dict(settings(WATCH))["PathExists"] == f"/{REQUEST}"
    assert dict(settings(PERSIST))["ExecStartPre"] == f"/bin/rm -f /{REQUEST}"
    assert dict(settings(WATCH))["Unit"] == PERSIST.name
    assert ("Wants", WATCH.name) in settings()
    given = settings(PERSIST)
    assert dict(given)["ExecStart"] == "/usr/bin/nfstuned nconnect persist"
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
    program = put(tmp_path / "program", f"#!/bin/sh\n{check}\n", 0o755)
    found = put(tmp_path / "findings.prom", "old\n")
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
    hiding |= {"ProtectKernelTunables", "ProtectControlGroups", "TemporaryFileSystem", "RootDirectory"}
    assert not hiding & given.keys()
    # Of /etc, only secrets, which no mount may lie over.
    hidden = [path for name, value in settings() if name == "InaccessiblePaths" for path in value.split()]
    assert {path.startswith("-/etc/") for path in hidden} == {True}


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
    # LogsDirectory= waits for a mount: nobody needs it who keeps no file of samples, or keeps it elsewhere.
    waiting = {"LogsDirectory", "StateDirectory", "CacheDirectory", "RequiresMountsFor", "WorkingDirectory"}
    assert not waiting & given.keys()


@pytest.mark.parametrize(
    ("setting", "var", "found"),
    [
        ("", "nfs", ""),
        ("LogsDirectory=nfstuned", "ext4", ""),
        ("ReadWritePaths=-/srv/samples", "ext4", ""),
        ("LogsDirectory=nfstuned", "nfs", "Found ordering cycle"),
    ],
)
def test_the_manuals_drop_ins_are_right_where_var_is_no_nfs(
    setting: str, var: str, found: str, tmp_path: Path
) -> None:
    manual = (ROOT / "docs/man/nfstuned.toml.5").read_text().replace("\\-", "-")
    assert f"\n{setting}\n" in manual
    installed(tmp_path, UNIT)
    put(tmp_path / f"{UNIT.name}.d/samples.conf", f"[Service]\n{setting}\n")
    put(tmp_path / "var.mount", f"[Mount]\nWhat=server:/var\nWhere=/var\nType={var}\n")
    done = run(
        *("env", f"SYSTEMD_UNIT_PATH={tmp_path}:"),
        *("systemd-analyze", "verify", "--man=no", tmp_path / UNIT.name),
    )
    assert found in done.stderr
    assert found or not done.stderr


def test_the_catalog_explains_exactly_the_messages_of_the_code_with_their_fields() -> None:
    parts = re.split(r"^-- ([0-9a-f]{32})$", CATALOG.read_text(), flags=re.MULTILINE)[1:]
    assert sorted(parts[::2]) == sorted(message.id for message in Message)
    entries = dict(zip(parts[::2], parts[1::2], strict=True))
    assert len(entries) == len(Message)
    for message in Message:
        used = set(re.findall(r"@([A-Z_]+)@", entries[message.id]))
        assert used <= {f"NFSTUNED_{name.upper()}" for name in message.fields}, message


def test_journalctl_accepts_the_catalog(tmp_path: Path) -> None:
    put(tmp_path / "usr/lib/systemd/catalog" / CATALOG.name, CATALOG.read_text())
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
