"""The container image: its lock and its parts. `sh dev/image --check` builds and runs the whole."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from dev.package import base, image, sbom
from dev.package.about import Release
from dev.package.run import BuildError
from tests.tree import link, put

RELEASE = Release("0.1.0", 1, 1_700_000_000)
PACKAGE = base.Package(
    "arm64", "libudev1", "257.13-1", "0" * 64, "pool/main/s/systemd/libudev1_257.13-1_arm64.deb"
)


class TestTheLock:
    def test_it_is_read_back_as_it_was_written(self) -> None:
        assert base.parse(base.render([PACKAGE])) == (PACKAGE,)

    @pytest.mark.parametrize("line", ["amd64 libc6 2.41", f"amd64 libc6 2.41 {'g' * 64} pool/libc6.deb"])
    def test_a_line_without_a_hash_is_refused_with_its_number(self, line: str) -> None:
        with pytest.raises(BuildError, match=f"image.lock, line 2: '{line}' is not .*dev/image --lock"):
            base.parse(f"# why\n{line}\n")

    def test_it_has_each_package_for_each_architecture(self) -> None:
        found = [(package.architecture, package.name) for package in base.parse(base.LOCK.read_text())]
        assert found == [
            (architecture, name) for architecture in base.ARCHITECTURES for name in base.PACKAGES
        ]

    @pytest.mark.parametrize(
        ("mirror", "security"),
        [
            ("http://deb.debian.org/debian", "http://deb.debian.org/debian-security"),
            ("http://debian.example.org/debian/20261130T000000Z",) * 2,
        ],
    )
    def test_security_updates_are_next_to_the_mirror(self, mirror: str, security: str) -> None:
        security = security.replace("/debian/2", "/debian-security/2")
        assert base.address(mirror, "pool/main/a.deb") == f"{mirror}/pool/main/a.deb"
        assert base.address(mirror, "pool/updates/a.deb") == f"{security}/pool/updates/a.deb"

    def test_a_package_with_another_hash_is_refused(self, tmp_path: Path) -> None:
        changed = put(tmp_path / "libudev1_257.13-1_arm64.deb", "changed")
        with pytest.raises(BuildError, match=re.escape(f"{changed} has not the hash of image.lock")):
            base.fetch([PACKAGE], tmp_path)


class TestThePackages:
    def test_without_the_projects_own_package_there_is_no_image(self, tmp_path: Path) -> None:
        with pytest.raises(
            BuildError, match=r"nfstuned_0.1.0-1_arm64.deb is missing: run `sh dev/build` first"
        ):
            image.own(RELEASE, "arm64", tmp_path)

    @pytest.mark.parametrize("later", [0, 1])
    def test_a_package_of_another_commit_is_refused(self, later: int, tmp_path: Path) -> None:
        time = RELEASE.time + later
        (tmp_path / "root/DEBIAN").mkdir(parents=True)
        control = "Package: x\nVersion: 1\nArchitecture: arm64\nMaintainer: x <x@x.invalid>\nDescription: x\n"
        put(tmp_path / "root/DEBIAN/control", control)
        target = tmp_path / "nfstuned_0.1.0-1_arm64.deb"
        epoch = {**os.environ, "SOURCE_DATE_EPOCH": str(time)}
        subprocess.run(["dpkg-deb", "--build", tmp_path / "root", target], check=True, env=epoch)
        if later:
            with pytest.raises(BuildError, match=f"of the time {time}: run `sh dev/build` first"):
                image.own(RELEASE, "arm64", tmp_path)
        else:
            assert image.own(RELEASE, "arm64", tmp_path) == target

    @pytest.mark.parametrize(
        "path",
        [
            "usr/bin/ldd",
            "usr/sbin/iconvconfig",
            "usr/share/man",
            "usr/share/doc/libc6/changelog.Debian.gz",
            "usr/lib/x86_64-linux-gnu/gconv",
            "usr/lib/python3.13/test",
            "usr/lib/python3.13/lib-dynload/_sqlite3.cpython-313-x86_64-linux-gnu.so",
            "usr/lib/nfstuned/vendor/yaml/_yaml.cpython-312-aarch64-linux-gnu.so",
            "usr/lib/nfstuned/compile",
        ],
    )
    def test_the_image_does_without_it(self, path: str) -> None:
        assert image.LEFT_OUT.match(path)

    @pytest.mark.parametrize(
        "path",
        [
            "usr/bin/python3.13",
            "usr/bin/nfstuned",
            "usr/sbin/ldconfig",
            "usr/share/doc/libc6/copyright",
            "usr/lib/x86_64-linux-gnu/libudev.so.1",
            "usr/lib/python3.13/lib-dynload/_ssl.cpython-313-x86_64-linux-gnu.so",
            "usr/lib/nfstuned/vendor/yaml/_yaml.cpython-313-aarch64-linux-gnu.so",
            "usr/lib/nfstuned/vendor/pydantic_core/_pydantic_core.abi3.so",
            "usr/lib/nfstuned/nfstuned/data/builtin.json",
            "root.py",
        ],
    )
    def test_the_image_keeps_it(self, path: str) -> None:
        assert not image.LEFT_OUT.match(path)


class TestTheLinkersCache:
    def test_ldconfig_reads_it_in_its_own_order_for_both_architectures(self, tmp_path: Path) -> None:
        names = ("libz.so.1", "libudev.so.1", "libfoo.so.2", "libfoo.so.10")
        for flags, word in ((0x0303, "x86-64"), (0x0A03, "AArch64")):
            (tmp_path / "cache").write_bytes(
                image.linker_cache({name: f"/lib/{name}" for name in names}, flags)
            )
            said = subprocess.run(
                ["/sbin/ldconfig", "-p", "-C", tmp_path / "cache"], check=True, capture_output=True, text=True
            )
            listed = re.findall(r"^\t(.*)$", said.stdout, re.MULTILINE)
            ordered = ("libz.so.1", "libudev.so.1", "libfoo.so.10", "libfoo.so.2")
            assert listed == [f"{name} (libc6,{word}) => /lib/{name}" for name in ordered]

    def test_it_is_the_file_that_ldconfig_itself_would_write(self) -> None:
        """The order decides whether the linker's search finds an entry."""
        said = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True).stdout
        listed = list(dict.fromkeys(re.findall(r"^\t(\S+) \(", said, re.MULTILINE)))
        assert len(listed) > 20
        assert sorted(listed, key=image.rank, reverse=True) == listed


def test_a_layer_is_the_same_for_each_builder(tmp_path: Path) -> None:
    layers = []
    for name, mode in (("one", 0o600), ("two", 0o664)):
        root = tmp_path / name
        put(root / "usr/b", "b", mode)
        put(root / "usr/a", "a", mode | 0o100)
        link(root / "usr/c", "b")
        (root / "tmp").mkdir(mode=0o700)
        (root / "tmp").chmod(0o1777)
        os.utime(root / "usr/a", (mode, mode))
        layers.append(image.layer(root, RELEASE.time))
    assert layers[0] == layers[1]
    with tarfile.open(fileobj=io.BytesIO(layers[0])) as archive:
        found = {member.name: (oct(member.mode), member.uid, member.mtime) for member in archive}
    plain = {"./tmp": "0o1777", "./usr/a": "0o755", "./usr/b": "0o644"}
    assert {name: found[name] for name in plain} == {
        name: (mode, 0, RELEASE.time) for name, mode in plain.items()
    }


def test_the_bill_of_an_image_has_libraries_and_debians_packages() -> None:
    own = sbom.bill(RELEASE, [], [])
    text = sbom.with_base(own, [PACKAGE])
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text.decode()) is None
    bill = json.loads(text)
    (part,) = bill["components"]
    assert part["purl"] == "pkg:deb/debian/libudev1@257.13-1?arch=arm64"
    assert part["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert {"ref": "nfstuned", "dependsOn": [part["bom-ref"]]} in bill["dependencies"]
    assert bill["serialNumber"] != json.loads(own)["serialNumber"]
    assert text == sbom.with_base(own, [PACKAGE])
