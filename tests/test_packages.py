"""dev/package: the packages' files and scripts, with wheels of a few bytes.

`sh dev/build --check` builds the real ones, and installs, upgrades and removes them in fresh systems.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from dev.package import deb, lock, rpm, sbom
from dev.package.about import MACHINES, Release
from dev.package.run import BuildError
from dev.package.tree import HOME, File, tree
from dev.package.wheels import demand_machine, libraries, unpack
from nfstuned.model.change import FILES, IDENTITY, RULE
from tests.tree import link, put

ROOT = Path(__file__).parents[1]
OWN = ROOT / "dev/package"
SPEC = OWN / "rpm/nfstuned.spec"
PYPROJECT = (ROOT / "pyproject.toml").read_text()
RELEASE = Release("0.1.0", 1, 1_700_000_000)
ARM = Release("0.1.0", 1, 1_700_000_000, "arm64")
METADATA = """Metadata-Version: 2.4
Name: {name}
Version: 1.0
License-Expression: {terms}
Project-URL: Homepage, https://example.org/{name}
"""
MIT = "MIT License\n\nCopyright (c) 2020 Somebody\n\nPermission is hereby granted\n"
OWN_UNITS = ("nfstuned-check.timer", "nfstuned-exporter.service", "nfstuned-identity.service")
"""Those that only an administrator enables."""


def wheel(folder: Path, name: str, files: Mapping[str, str], terms: str = "MIT") -> Path:
    """Make a wheel; the part of its name before the first - is the library's."""
    path, library = folder / f"{name}.whl", name.partition("-")[0]
    info = f"{library}-1.0.dist-info"
    about = METADATA.format(name=library, terms=terms)
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in {
            **files,
            f"{info}/METADATA": about,
            f"{info}/licenses/LICENSE": MIT,
            f"{info}/RECORD": name,
        }.items():
            archive.writestr(member, text)
    return path


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    """Return two wheels of one compiled library, and one of another that is not compiled."""
    start = {"core/__init__.py": "from core._core import *\n"}
    return [
        wheel(tmp_path, "core-1.0-cp310", {**start, "core/_core.cpython-310-x86_64-linux-gnu.so": "310"}),
        wheel(tmp_path, "core-1.0-cp314", {**start, "core/_core.cpython-314-x86_64-linux-gnu.so": "314"}),
        wheel(tmp_path, "plain-1.0-py3", {"plain.py": "x = 1\n"}, "GPL-2.0-or-later OR Apache-2.0"),
    ]


@pytest.fixture
def files(tmp_path: Path, wheels: list[Path]) -> dict[str, File]:
    (tmp_path / "own").mkdir()
    own = wheel(
        tmp_path / "own",
        "nfstuned-0.1.0-py3",
        {"nfstuned/__init__.py": "", "nfstuned/data/install/nfstuned.1": "", "nfstuned/data/rules/X.md": ""},
    )
    return tree(own, unpack(wheels))


class TestTheLock:
    def test_it_is_read_back_as_it_was_written(self) -> None:
        pins = (lock.Pin("a", "1", ("0" * 64,)), lock.Pin("b-c", "2.0", ("1" * 64, "2" * 64)))
        assert lock.parse_lock(lock.render_lock("# why\n", pins)) == pins

    @pytest.mark.parametrize(
        "line",
        ["click==8.5.1", "click>=8 --hash=sha256:" + "0" * 64, "click==8 --hash=md5:" + "0" * 32, "-r other"],
    )
    def test_a_line_without_a_hash_is_refused(self, line: str) -> None:
        with pytest.raises(BuildError, match="a lock pins with =="):
            lock.parse_lock(line + "\n")

    def test_everything_that_project_and_wheels_need_is_pinned_for_each_python_or_for_all(self) -> None:
        needed = {re.split("[<>=;]", line, maxsplit=1)[0] for line in lock.requirements()}
        pins = lock.parse_lock(lock.VENDOR.read_text())
        assert needed <= {pin.name for pin in pins}
        assert {len(pin.hashes) for pin in pins} == {1, len(MACHINES), len(MACHINES) * len(lock.PYTHONS)}
        assert {"build", "hatchling"} <= {pin.name for pin in lock.parse_lock(lock.TOOLS.read_text())}

    @pytest.mark.parametrize("machine", MACHINES.values())
    def test_wheels_that_are_there_need_no_network(self, machine: str, tmp_path: Path) -> None:
        names = ("core-1.0-cp310-manylinux2014_x86_64", "core-1.0-cp310-manylinux2014_aarch64")
        *compiled, plain = [wheel(tmp_path, name, {}) for name in (*names, "plain-1.0-py3-none-any")]
        pins = [
            lock.Pin("core", "1.0", tuple(sorted(map(lock.digest, compiled)))),
            lock.Pin("plain", "1.0", (lock.digest(plain),)),
        ]
        file = put(tmp_path / "lock", lock.render_lock("", pins))
        (own,) = [path for path in compiled if path.stem.endswith(machine)]
        assert set(lock.fetch(file, tmp_path, machine)) == {own, plain}
        assert [pin.hashes for pin in lock.pins_of(file, (own, plain))] == [
            (lock.digest(own),),
            (lock.digest(plain),),
        ]


class TestTheLibraries:
    def test_wheels_for_several_versions_of_python_share_a_folder(self, wheels: list[Path]) -> None:
        assert set(unpack(wheels)) == {
            "core-1.0.dist-info/METADATA",
            "core/__init__.py",
            "core/_core.cpython-310-x86_64-linux-gnu.so",
            "core/_core.cpython-314-x86_64-linux-gnu.so",
            "plain-1.0.dist-info/METADATA",
            "plain.py",
        }

    @pytest.mark.parametrize(
        ("member", "reason"),
        [
            ("core/__init__.py", "another wheel has another core/__init__.py"),
            ("core/_core.so", "does not say for which Python it is"),
            ("core-1.0.data/scripts/core", "belongs outside"),
        ],
    )
    def test_a_file_without_a_place_is_refused(
        self, member: str, reason: str, tmp_path: Path, wheels: list[Path]
    ) -> None:
        strange = wheel(tmp_path, "core-1.0-cp312", {member: "other"})
        with pytest.raises(BuildError, match=reason):
            unpack([*wheels, strange])

    @pytest.mark.parametrize(("number", "refused"), [(183, False), (62, True), (40, True)])
    def test_a_compiled_file_for_another_machine_is_refused(self, number: int, *, refused: bool) -> None:
        header = b"\x7fELF" + bytes(14) + number.to_bytes(2, "little")
        files = {"core/program": header, "core/__init__.py": b"import os\n"}
        reason = f"core/program is compiled for a machine with the number {number}, not for aarch64"
        with pytest.raises(BuildError, match=reason) if refused else nullcontext():
            demand_machine(files, "aarch64")

    def test_each_has_its_authors_its_terms_and_their_text(self, wheels: list[Path]) -> None:
        core, plain = libraries(wheels)
        assert (core.name, core.version, core.license) == ("core", "1.0", "MIT")
        assert core.authors == ("Copyright (c) 2020 Somebody",)
        assert core.texts == (("LICENSE", MIT),)
        assert (core.folders, core.source) == (("core",), "https://example.org/core")
        assert (plain.license, plain.folders) == ("Apache-2.0", ("plain.py",))

    @pytest.mark.parametrize(
        ("terms", "expected"),
        [
            ("\nClassifier: License :: OSI Approved :: BSD License", "BSD-2-Clause"),
            ("Apache-2.0 AND BSD-2-Clause", "Apache-2.0 AND BSD-2-Clause"),
        ],
    )
    def test_terms_may_be_a_classifiers_or_several(self, terms: str, expected: str, tmp_path: Path) -> None:
        (library,) = libraries([wheel(tmp_path, "odd-1.0", {}, terms)])
        assert library.license == expected

    def test_terms_that_nobody_can_name_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(BuildError, match="its metadata name no licence"):
            libraries([wheel(tmp_path, "odd-1.0", {}, "see LICENSE file")])


class TestTheTree:
    def test_it_is_below_usr_with_a_launcher_and_a_rule_not_in_effect(self, files: dict[str, File]) -> None:
        assert all(path.startswith("usr/") and not path.endswith(".pyc") for path in files)
        unit = files["usr/lib/systemd/system/nfstuned.service"].data.decode()
        assert "\nExecStart=/usr/bin/nfstuned daemon\n" in unit
        assert files["usr/bin/nfstuned"].executable
        rules = [path for path in files if path.endswith(".rules")]
        assert rules == ["usr/share/doc/nfstuned/examples/99-nfstuned.rules"]

    def test_systemd_man_and_the_shells_find_their_files(self, files: dict[str, File]) -> None:
        for source, place in FILES.items():
            data = (ROOT / source).read_bytes()
            if place.startswith("share/man/"):
                assert gzip.decompress(files[f"usr/{place}.gz"].data) == data
            else:
                assert files[f"usr/{place}"].data == data

    def test_only_the_wheel_carries_the_same_files_for_pip(self, files: dict[str, File]) -> None:
        for source in FILES.keys() - {IDENTITY}:
            target = f"nfstuned/data/install/{Path(source).name}"
            folder = f'"{Path(source).parent}" = "nfstuned/data/install"\n'
            assert f'"{source}" = "{target}"\n' in PYPROJECT or folder in PYPROJECT
        for source in (RULE, IDENTITY):
            assert f'"{source}" = "nfstuned/data/bake/{Path(source).name}"\n' in PYPROJECT
        assert not [path for path in files if "data/install" in path]
        assert f"{HOME}/nfstuned/data/rules/X.md" in files


def test_all_files_that_name_versions_of_python_agree() -> None:
    classified = re.findall(r"Programming Language :: Python :: (3\.\d+)", PYPROJECT)
    assert list(lock.PYTHONS) == classified
    versions = re.search(r'^versions="([^"]*)"', (OWN / "files/python.sh").read_text(), re.MULTILINE)
    assert versions
    assert versions[1].split() == classified[::-1]
    after = f"3.{int(classified[-1].removeprefix('3.')) + 1}"
    control = (OWN / "deb/control").read_text()
    assert f"python3 (>= {classified[0]}), python3 (<< {after})" in control
    assert rpm.interpreters() == f"({' or '.join(f'/usr/bin/python{one}' for one in classified[::-1])})"


class Machine:
    """A folder in the place of /usr/bin, /usr/lib/nfstuned and /run, in which scripts run."""

    def __init__(self, folder: Path) -> None:
        self.top = folder
        self.bin, self.lib, self.log = folder / "bin", folder / "lib", put(folder / "log")
        self.bin.mkdir()
        for name in ("python.sh", "nfstuned", "compile"):
            self.put(self.lib / name, (OWN / "files" / name).read_text())

    def put(self, target: Path, text: str) -> Path:
        text = text.replace("/usr/bin", str(self.bin)).replace("/usr/lib/nfstuned", str(self.lib))
        for old in ("/run/", "/etc/nfstuned", "/etc/systemd", "/etc/nfsmount.conf.d", "/var/log/nfstuned"):
            text = text.replace(old, f"{self.top}{old}")
        return put(target, text, 0o755)

    def command(self, name: str, text: str = "") -> None:
        """Make a command that notes how it was called."""
        self.put(self.bin / name, f'#!/bin/sh\necho "{name} $*" >>{self.log}\n{text}\n')

    def boot(self) -> None:
        (self.top / "run/systemd/system").mkdir(parents=True)

    def call(self, name: str, *arguments: str, script: str = "", error: str = "") -> list[str]:
        """Run Debian's script of a name, or another, and return its calls; it succeeds with this message."""
        script = script or (OWN / "deb" / name).read_text()
        done = self.run(self.put(self.top / name, script), *arguments)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", error)
        return self.called()

    def run(self, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        command, path = ["sh", str(script), *arguments], f"{self.bin}:/usr/bin:/bin"
        return subprocess.run(command, check=False, capture_output=True, text=True, env={"PATH": path})

    def called(self) -> list[str]:
        """Return how commands were called since the last time."""
        lines = self.log.read_text().splitlines()
        self.log.write_text("")
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


class TestTheLauncher:
    @pytest.mark.parametrize(
        ("there", "default", "chosen"),
        [
            (["3.11"], "3.11", "3.11"),
            (["3.10", "3.14"], "3.10", "3.10"),
            (["3.9", "3.11", "3.12"], "3.9", "3.12"),
            (["3.6", "3.11"], "3.6", "3.11"),
            (["3.13", "3.15"], "3.15", "3.13"),
            (["3.14"], None, "3.14"),
        ],
    )
    def test_it_takes_the_distributions_python_or_else_the_newest_that_has_libraries(
        self, there: list[str], default: str | None, chosen: str, machine: Machine
    ) -> None:
        for version in there:
            machine.command(f"python{version}")
        if default:
            (machine.bin / "python3").symlink_to(f"python{default}")
        done = machine.run(machine.lib / "nfstuned", "check", "--root", "a b")
        assert (done.returncode, done.stderr) == (0, "")
        assert machine.called() == [f"python{chosen} -sEB {machine.lib}/__main__.py check --root a b"]

    @pytest.mark.parametrize("there", [[], ["3.9"], ["3.15"]])
    def test_without_a_python_it_names_the_versions(self, there: list[str], machine: Machine) -> None:
        for version in there:
            machine.command(f"python{version}")
        done = machine.run(machine.lib / "nfstuned", "check")
        assert (done.returncode, done.stdout, machine.called()) == (2, "", [])
        assert "3.14 3.13 3.12 3.11 3.10" in done.stderr


class TestCompiling:
    def test_the_modules_of_commands_are_compiled_for_the_chosen_python(self, machine: Machine) -> None:
        real, vendor = Path("/usr/bin/python3").resolve(), machine.lib / "vendor"
        version = real.name.removeprefix("python")
        if version not in lock.PYTHONS:
            pytest.skip(f"{real} is not a version that the packages support")
        (machine.bin / real.name).symlink_to(real)
        used = ["module.py", "pygments/lexers/_mapping.py", "pyroute2/netlink/rtnl/ifinfmsg/plugins/bond.py"]
        unused = ["pygments/lexers/java.py", "pyroute2/ndb/main.py"]
        for name in (*used, *unused):
            put(vendor / name)
        before = sorted(machine.lib.rglob("*"))
        put(vendor / "__pycache__/module.cpython-39.pyc")
        assert machine.run(machine.lib / "compile").returncode == 0
        made = {path.name for path in vendor.rglob("*.pyc")}
        assert made == {f"{Path(name).stem}.cpython-{version.replace('.', '')}.pyc" for name in used}
        assert machine.run(machine.lib / "compile", "--clean").returncode == 0
        assert sorted(machine.lib.rglob("*")) == before

    def test_without_an_interpreter_there_is_nothing_to_do(self, machine: Machine) -> None:
        assert machine.run(machine.lib / "compile").returncode == 0


@pytest.fixture
def debian(machine: Machine) -> Machine:
    """Return a machine that notes the calls of packages' scripts."""
    for name in ("systemctl", "deb-systemd-invoke", "deb-systemd-helper"):
        machine.command(name)
    machine.put(machine.lib / "compile", f'#!/bin/sh\necho "compile $*" >>{machine.log}\n')
    return machine


class TestDebiansScripts:
    @pytest.mark.parametrize("booted", [False, True], ids=["image", "host"])
    def test_only_on_a_host_they_start_and_restart_services(self, debian: Machine, *, booted: bool) -> None:
        enabled = [
            "compile ",
            "deb-systemd-helper --quiet was-enabled nfstuned.service",
            "deb-systemd-helper enable nfstuned.service",
            f"deb-systemd-helper update-state {' '.join(OWN_UNITS)}",
        ]
        started, restarted = (
            ["systemctl --system daemon-reload", f"deb-systemd-invoke {change}"] if booted else []
            for change in ("start nfstuned.service", "try-restart nfstuned.service nfstuned-exporter.service")
        )
        if booted:
            debian.boot()
        assert debian.call("postinst", "configure", "") == [*enabled, *started]
        assert debian.call("prerm", "upgrade", "0.2.0-1") == ["compile --clean"]
        assert debian.call("postrm", "upgrade", "0.2.0-1") == []
        assert debian.call("postinst", "configure", "0.1.0-1") == [*enabled, *restarted]

    def test_a_removal_from_an_image_asks_nothing_of_systemd(self, debian: Machine) -> None:
        assert debian.call("prerm", "remove") == ["compile --clean"]
        (debian.lib / "compile").unlink()
        assert debian.call("prerm", "remove") == [], "somebody has removed the files"
        assert debian.call("postrm", "remove") == []

    def test_a_service_that_the_administrator_disabled_stays_disabled(self, debian: Machine) -> None:
        debian.command("deb-systemd-helper", 'test "$2" != was-enabled')
        calls = debian.call("postinst", "configure", "0.1.0-1")
        assert "deb-systemd-helper enable nfstuned.service" not in calls
        assert "deb-systemd-helper update-state nfstuned.service" in calls

    def test_a_removal_stops_the_service_and_a_purge_removes_its_files(self, debian: Machine) -> None:
        debian.boot()
        kept = [debian.top / "etc/nfstuned", debian.top / "run/nfstuned", debian.top / "var/log/nfstuned"]
        shared = debian.top / "etc/nfsmount.conf.d"
        for file in (*(folder / "file" for folder in (*kept, shared)), shared / "50-nfstuned.conf"):
            put(file)
        enabled = debian.top / "etc/systemd/system/timers.target.wants/nfstuned-check.timer"
        link(enabled, "/usr/lib/systemd/system/nfstuned-check.timer")
        assert debian.call("prerm", "remove") == [
            "deb-systemd-invoke stop nfstuned-check.timer nfstuned-exporter.service nfstuned.service",
            "compile --clean",
        ]
        assert debian.call("postrm", "remove") == ["systemctl --system daemon-reload"]
        assert all(folder.exists() for folder in (*kept, shared / "50-nfstuned.conf"))
        assert debian.call("postrm", "purge") == [
            f"deb-systemd-helper purge nfstuned.service {' '.join(OWN_UNITS)}"
        ]
        assert not any(folder.exists() for folder in kept)
        assert list(enabled.parent.iterdir()) == []
        assert [path.name for path in shared.iterdir()] == ["file"]

    @pytest.mark.parametrize("owned", [True, False])
    def test_a_purge_leaves_a_folder_that_another_package_has(self, debian: Machine, *, owned: bool) -> None:
        folder = put(debian.top / "etc/nfsmount.conf.d/50-nfstuned.conf").parent
        debian.command("dpkg-query", f"exit {0 if owned else 1}")
        debian.call("postrm", "purge")
        assert folder.exists() is owned

    @pytest.mark.parametrize(
        "call", [("postinst", "configure", ""), ("rtupdate", "rtupdate", "3.11", "3.13")]
    )
    def test_a_failure_to_compile_fails_no_script(self, call: tuple[str, ...], debian: Machine) -> None:
        debian.put(debian.lib / "compile", "#!/bin/sh\nexit 1\n")
        debian.call(*call, error="nfstuned: its Python files could not be compiled\n")

    def test_another_default_python_is_compiled_for_once(self, debian: Machine) -> None:
        steps = ("pre-rtupdate", "rtupdate", "post-rtupdate")
        calls = [debian.call("rtupdate", step, "3.11", "3.13") for step in steps]
        assert calls == [[], ["compile "], []]


RPMBUILD = pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="rpmbuild is not installed")


@pytest.mark.parametrize(
    ("build", "name"),
    [
        (deb.build, "nfstuned_0.1.0-1_arm64.deb"),
        pytest.param(rpm.build, "nfstuned-0.1.0-1.aarch64.rpm", marks=RPMBUILD),
    ],
    ids=["deb", "rpm"],
)
def test_a_package_is_the_same_whenever_and_by_whomever_it_is_built(
    build: Callable[..., Path], name: str, files: dict[str, File], wheels: list[Path], tmp_path: Path
) -> None:
    made = []
    for zone in ("UTC", "Pacific/Kiritimati"):
        (tmp_path / zone).mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TZ", zone)
            made.append(build(files, libraries(wheels), ARM, tmp_path / zone))
        files = dict(reversed(files.items()))
    assert {path.name for path in made} == {name}
    assert made[0].read_bytes() == made[1].read_bytes()


class TestDebiansPackage:
    def test_dpkg_reads_it(self, files: dict[str, File], wheels: list[Path], tmp_path: Path) -> None:
        made = deb.build(files, libraries(wheels), RELEASE, tmp_path)
        fields = ["dpkg-deb", "--show", "--showformat=${Package} ${Version} ${Architecture}", str(made)]
        assert subprocess.check_output(fields, text=True) == "nfstuned 0.1.0-1 amd64"
        listed = subprocess.check_output(["dpkg-deb", "--contents", made], text=True, env={"TZ": "UTC"})
        assert {line.split()[1] for line in listed.splitlines()} == {"root/root"}
        assert {" ".join(line.split()[3:5]) for line in listed.splitlines()} == {"2023-11-14 22:13"}
        assert {line[:10] for line in listed.splitlines()} == {"drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"}
        assert "./usr/share/zsh/vendor-completions/_nfstuned" in listed
        subprocess.run(["dpkg-deb", "--raw-extract", made, tmp_path / "raw"], check=True)
        sums = ["md5sum", "--check", "--quiet", "DEBIAN/md5sums"]
        subprocess.run(sums, check=True, cwd=tmp_path / "raw")
        scripts = {path.name for path in (tmp_path / "raw/DEBIAN").iterdir()}
        assert scripts == {"control", "md5sums", "postinst", "prerm", "postrm"}

    def test_the_copyright_file_names_every_library_with_its_terms(self, wheels: list[Path]) -> None:
        stanzas = deb.copyright_file(libraries(wheels)).split("\n\n")
        assert stanzas[0].startswith("Format: https://www.debian.org/")
        assert [stanza.splitlines()[0] for stanza in stanzas[1:]] == [
            "Files: *",
            f"Files: {HOME}/vendor/core/*",
            f"Files: {HOME}/vendor/plain.py",
        ]
        assert "Copyright: Copyright (c) 2020 Somebody\nLicense: MIT\n MIT License\n .\n" in stanzas[2]
        assert "/usr/share/common-licenses/Apache-2.0" in stanzas[3]


class TestTheRpm:
    def test_it_owns_its_own_folders_and_no_others(self, files: dict[str, File], wheels: list[Path]) -> None:
        listed = rpm.file_list(rpm.files(files, libraries(wheels)))
        folders = re.findall(r'^%dir "/(.*)"$', listed, re.MULTILINE)
        own = {f"{HOME}", f"{HOME}/vendor", "usr/share/doc/nfstuned", "usr/share/nfstuned"}
        assert own <= set(folders)
        assert all("nfstuned" in folder for folder in folders)
        assert '%attr(0755,root,root) "/usr/bin/nfstuned"' in listed
        assert '%license %attr(0644,root,root) "/usr/share/licenses/nfstuned/core/LICENSE"' in listed

    def test_its_licence_is_an_expression_of_all(self, wheels: list[Path]) -> None:
        assert rpm.terms(libraries(wheels)) == "Apache-2.0 AND MIT"

    PRESET = ("compile ", "systemctl --no-reload preset nfstuned.service", "systemctl daemon-reload")
    RESTART = (
        "compile ",
        "systemctl daemon-reload",
        "systemctl try-restart nfstuned.service nfstuned-exporter.service",
    )
    STOP = (
        f"systemctl --no-reload disable {' '.join(OWN_UNITS)} nfstuned.service",
        "systemctl stop nfstuned-check.timer nfstuned-exporter.service nfstuned.service",
        "compile --clean",
    )

    @pytest.mark.parametrize(
        ("section", "calls"),
        [
            ("post", (RESTART, PRESET, RESTART)),
            ("preun", (STOP, (), ())),
            ("postun", (("systemctl daemon-reload",), (), ())),
        ],
    )
    def test_scripts_restart_a_running_service(
        self, section: str, calls: tuple[tuple[str, ...], ...], debian: Machine
    ) -> None:
        debian.boot()
        found = re.search(rf"^%{section}\n(.*?)(?=^%\w)", SPEC.read_text(), re.MULTILINE | re.DOTALL)
        assert found
        for left, expected in enumerate(calls):
            called = debian.call(section, str(left), script="set -e\n" + found[1])
            assert called == list(expected), f"with {left} packages left"


class TestTheBillOfMaterials:
    PINS = (lock.Pin("core", "1.0", ("a" * 64, "b" * 64)), lock.Pin("plain", "1.0", ("c" * 64,)))

    def test_it_is_valid_and_names_each_library_with_its_licence_and_hashes(self, wheels: list[Path]) -> None:
        text = sbom.bill(RELEASE, self.PINS, libraries(wheels)).decode()
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
        assert sbom.bill(RELEASE, self.PINS, libraries(wheels)).decode() == text, "the same each time"
        bill, found = json.loads(text), {}
        for part in bill["components"]:
            digests = [each for wheel in part["externalReferences"] for each in wheel.get("hashes", ())]
            licence = part["licenses"][0]["license"]["id"]
            found[part["purl"]] = (licence, {digest["content"] for digest in digests})
        assert found == {
            "pkg:pypi/core@1.0": ("MIT", {"a" * 64, "b" * 64}),
            "pkg:pypi/plain@1.0": ("Apache-2.0", {"c" * 64}),
        }
        assert bill["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
        assert bill["metadata"]["component"]["version"] == "0.1.0"

    def test_a_library_without_a_pin_ends_the_build(self, wheels: list[Path]) -> None:
        with pytest.raises(KeyError, match="plain"):
            sbom.bill(RELEASE, self.PINS[:1], libraries(wheels))
