"""dev/package/repository.py: signed repositories of tiny packages, which apt, rpm and gpg verify.

`sh dev/repository --check` installs the real ones in fresh systems, by apt, dnf and zypper.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.package.about import MACHINES, Release, version
from dev.package.repository import PUBLIC, make, packages
from dev.package.run import PROJECT, BuildError, run
from dev.package.served import CHANGES, keyring
from tests.tree import put

CONTROL = """Package: nfstuned
Version: 1-1
Architecture: {}
Maintainer: nobody <nobody@example.org>
Section: net
Priority: optional
Description: nothing
"""
SPEC = (
    "Name: nfstuned\nVersion: 1\nRelease: 1\nSummary: nothing\nLicense: none\n%description\nnothing\n%files\n"
)


@pytest.fixture(scope="module")
def keys() -> Iterator[str]:
    """Use a gpg with the keys `own` and `stranger`; yield the first."""
    with keyring():
        yield "own"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return packages without content, of each architecture and format."""
    folder = tmp_path_factory.mktemp("tiny")
    spec = put(folder / "nfstuned.spec", SPEC)
    for release in (Release("1", 1, 0, architecture) for architecture in MACHINES):
        root = folder / release.architecture
        put(root / "DEBIAN/control", CONTROL.format(release.architecture))
        run("dpkg-deb", "--root-owner-group", "--build", root, folder / release.deb)
        target = f"--target={release.machine}-linux"
        run("rpmbuild", "-bb", "--quiet", target, f"--define=_topdir {folder}", spec)
        (folder / "RPMS" / release.machine / release.rpm).rename(folder / release.rpm)
    made = [*folder.glob("*.deb"), *folder.glob("*.rpm")]
    for path in made:
        path.chmod(0o600)
    return made


@pytest.fixture(scope="module")
def made(keys: str, tiny: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the repositories of the tiny packages, signed by `own`."""
    folder = tmp_path_factory.mktemp("made") / "repository"
    make(tiny, folder, keys)
    return folder


class Apt:
    """An apt with its own folders, which knows one repository and its key."""

    def __init__(self, top: Path, repository: Path) -> None:
        source = f"deb [signed-by={repository / PUBLIC}] file:{repository}/apt stable main\n"
        put(top / "sources.list", source)
        put(top / "status")
        for name in ("lists/partial", "cache/archives/partial"):
            (top / name).mkdir(parents=True)
        options = {
            "APT::Architecture": "amd64",
            "APT::Architectures": "amd64",
            "APT::Sandbox::User": "root",
            "Dir::Cache": top / "cache",
            "Dir::Etc::SourceList": top / "sources.list",
            "Dir::Etc::SourceParts": "/dev/null",
            "Dir::State::Lists": top / "lists",
            "Dir::State::Status": top / "status",
        }
        self._options = [f"-o{name}={value}" for name, value in options.items()]
        self.folder = top

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = ["apt-get", *self._options, *words]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=self.folder)


class TestApt:
    def test_it_accepts_the_index_and_the_package(self, made: Path, tiny: list[Path], tmp_path: Path) -> None:
        apt = Apt(tmp_path, made)
        done = apt.run("update", "--error-on=any")
        assert (done.returncode, done.stderr) == (0, "")
        assert apt.run("download", "nfstuned").returncode == 0
        (fetched,) = tmp_path.glob("*.deb")
        assert fetched.read_bytes() == next(p for p in tiny if p.name == fetched.name).read_bytes()

    @pytest.mark.parametrize("name", [name for name, change in CHANGES.items() if change.apt])
    def test_it_refuses_a_changed_repository(self, name: str, made: Path, tmp_path: Path) -> None:
        change = CHANGES[name]
        changed = shutil.copytree(made, tmp_path / "changed")
        change.make(changed)
        (tmp_path / "apt").mkdir()
        apt = Apt(tmp_path / "apt", changed)
        steps = [apt.run("update", "--error-on=any"), apt.run("download", "nfstuned")]
        assert re.search(change.apt, "".join(step.stderr for step in steps))
        assert steps[-1].returncode == 100
        assert not list((tmp_path / "apt").glob("*.deb"))


class TestRpm:
    def test_it_accepts_packages_and_index_with_the_key_alone(self, made: Path, tmp_path: Path) -> None:
        check = ["rpmkeys", f"--dbpath={tmp_path}", "--checksig", *map(str, made.glob("rpm/*.rpm"))]
        without = subprocess.run(check, check=False, capture_output=True, text=True).stdout
        assert without.count("SIGNATURES NOT OK") == len(MACHINES)
        run("rpmkeys", f"--dbpath={tmp_path}", "--import", made / PUBLIC)
        assert run(*check).count("digests signatures OK") == len(MACHINES)
        index = made / "rpm/repodata/repomd.xml"
        run("gpg", "--batch", "--output", tmp_path / "key.gpg", "--dearmor", made / PUBLIC)
        run("gpgv", "--keyring", tmp_path / "key.gpg", f"{index}.asc", index)


@pytest.mark.usefixtures("keys")
class TestTheFolder:
    def test_it_is_replaced_whole_and_readable_by_all(self, tiny: list[Path], tmp_path: Path) -> None:
        folder, mask = tmp_path / "repository", os.umask(0o077)
        try:
            for _ in range(2):
                make(tiny, folder, "own")
                assert {path.name for path in folder.iterdir()} == {"apt", "rpm", PUBLIC}
                assert list(tmp_path.iterdir()) == [folder]
        finally:
            assert os.umask(mask) == 0o077
        assert all(path.stat().st_mode & 0o044 == 0o044 for path in folder.rglob("*"))

    def test_a_failure_in_the_middle_leaves_it_as_it_was(self, tiny: list[Path], tmp_path: Path) -> None:
        make(tiny, tmp_path / "repository", "own")
        before = (tmp_path / "repository/apt/dists/stable/InRelease").read_bytes()
        broken = put(tmp_path / "broken/broken.rpm", "this is no package")
        with pytest.raises(BuildError, match=r"broken\.rpm"):
            make([*tiny, broken], tmp_path / "repository", "own")
        assert (tmp_path / "repository/apt/dists/stable/InRelease").read_bytes() == before
        assert {path.name for path in tmp_path.iterdir()} == {"broken", "repository"}

    @pytest.mark.parametrize(
        ("name", "key", "reason"),
        [
            ("mine", "own", "mine has other files than a repository: name a folder that does not exist"),
            ("none/new", "own", "none does not exist: make it first"),
            ("new", "nobody", "--key nobody: .*No secret key.*`gpg --list-secret-keys` lists your keys"),
            ("new", "example.org", "--key example.org means 2 keys: name one by its fingerprint"),
            ("new", "certifier", "--key certifier: it cannot sign, or has expired"),
        ],
    )
    def test_a_wrong_argument_is_refused_with_a_remedy(
        self, name: str, key: str, reason: str, tmp_path: Path
    ) -> None:
        mine = put(tmp_path / "mine/index.html", "mine")
        if key == "certifier":
            run("gpg", "--batch", "--passphrase=", "--quick-generate-key", "certifier", "ed25519", "cert")
        with pytest.raises(BuildError, match=reason):
            make([], tmp_path / name, key)
        assert list(tmp_path.iterdir()) == [mine.parent]
        assert list(mine.parent.iterdir()) == [mine]


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    releases = [Release(version(), 2, 0, architecture) for architecture in MACHINES]
    names = [name for release in releases for name in (release.deb, release.rpm)]
    for name in names:
        put(tmp_path / name)
    put(tmp_path / Release(version(), 1, 0).deb)
    assert packages(tmp_path) == [tmp_path / name for name in names]
    (tmp_path / names[2]).unlink()
    with pytest.raises(BuildError, match=f"has no {names[2]}: run sh dev/build --revision 2"):
        packages(tmp_path)


@pytest.mark.parametrize(("script", "name"), [("apt", "commands"), ("dnf", "for_dnf"), ("dnf", "for_zypper")])
def test_the_proofs_run_the_commands_of_the_page(script: str, name: str) -> None:
    text = Path(PROJECT, "dev/package/prove", f"{script}.sh").read_text()
    (file,) = re.findall("^list=(.*)$", text, re.MULTILINE)
    (body,) = re.findall(rf"^{name}\(\) {{\n(.*?)^}}$", text, re.MULTILINE | re.DOTALL)
    page = " ".join(Path(PROJECT, "docs/install.md").read_text().split())
    lines = body.replace("\\\n", " ").replace("$list", file).splitlines()
    assert len(lines) > 1
    assert [line for line in lines if " ".join(line.split()) not in page.replace(" \\ ", " ")] == []
