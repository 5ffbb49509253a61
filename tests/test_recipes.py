"""docs/images: each recipe's tool can read it, and its commands of nfstuned exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from nfstuned.cli.app import app, children
from nfstuned.parse.policy import parse_config
from tests.tree import put

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PAGE = ROOT / "docs/images.md"
PROFILES = ROOT / "nfstuned/data/profiles"
FILES = sorted(path for path in IMAGES.rglob("*") if path.is_file())
YAML = [path for path in FILES if path.suffix in {".yaml", ".yml"}]
DAEMON_SET = IMAGES / "aks/daemonset.yaml"
USER_DATA = sorted((IMAGES / "cloud-init").iterdir())
TRIALS = sorted((ROOT / "dev/trials").iterdir())
_LISTS = re.compile(r"\[(nfstuned(?:, [^\[\],]+)*)\]")
"""A command as YAML and JSON write it: a list of words."""
_LINES = re.compile(r"^(?:sudo )?(nfstuned [a-z].*)$", re.MULTILINE)


def documents(path: Path) -> list[Any]:
    return [one for one in yaml.safe_load_all(path.read_text()) if one is not None]


def commands(path: Path) -> Iterator[list[str]]:
    """Yield the words of each use of nfstuned, its own name left out."""
    text = path.read_text()
    if path.suffix == ".md":
        text = "\n".join(re.findall(r"^```[a-z]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for found in _LISTS.findall(text.replace('"', "")):
        yield [word.strip() for word in found.split(",")][1:]
    for line in _LINES.findall(text):
        yield shlex.split(line)[1:]


def parse(words: list[str]) -> None:
    """Let click read a command, and run nothing. Raises click.UsageError."""
    command: click.Command = app
    # click makes a command's --help once, with the names that the first context has for it.
    context = click.Context(app, info_name="nfstuned", **app.context_settings)
    rest = list(words)
    while isinstance(command, click.Group):
        assert rest[0] in children(command), words
        command = children(command)[rest.pop(0)]
    command.make_context("nfstuned", rest, parent=context)


def test_every_recipe_has_a_trial_and_is_on_the_page_which_names_no_other() -> None:
    named = set(re.findall(r"\]\((images/[^)]+)\)", PAGE.read_text()))
    assert named == {str(path.relative_to(ROOT / "docs")) for path in FILES}
    recipes = {path.name for path in IMAGES.iterdir() if path.is_dir()}
    assert {path.stem for path in TRIALS} - {"inside"} == recipes - {"aks"} | {"container"}


def test_the_commands_of_recipes_exist() -> None:
    found = {str(path.relative_to(ROOT)): list(commands(path)) for path in (*FILES, PAGE)}
    for recipe in ("packer/bake.sh", "mkosi/mkosi.postinst.chroot"):
        assert ["bake"] in [words[:1] for words in found[f"docs/images/{recipe}"]]
    assert found["docs/images/aks/Dockerfile"] == []
    for words in (words for each in found.values() for words in each):
        parse(words)


def test_the_scripts_of_an_image_may_be_run() -> None:
    scripts = [path for path in FILES if path.read_text().startswith("#!") and path.parent.name != "aks"]
    assert scripts
    assert [script for script in scripts if not os.access(script, os.X_OK)] == []


def policies() -> Iterator[tuple[str, str]]:
    """Yield the texts of nfstuned.toml that recipes write."""
    yield "nfstuned.toml", (IMAGES / "nfstuned.toml").read_text()
    for path in USER_DATA:
        (document,) = documents(path)
        assert path.read_text().startswith("#cloud-config\n")
        for file in document["write_files"]:
            assert file["path"].startswith("/etc/nfstuned/")
            yield path.name, file["content"]
    for one in documents(DAEMON_SET):
        if one["kind"] == "ConfigMap":
            yield from one["data"].items()


def test_every_policy_that_a_recipe_writes_is_valid() -> None:
    builtin = [(path.name, path.read_text()) for path in sorted(PROFILES.glob("*.toml"))]
    found = list(policies())
    assert len(found) == len(YAML) + 1
    for label, text in found:
        policy = parse_config(builtin, [(label, text)])
        assert [one.profile for one in policy.assignments] == ["azure-netapp-files"], label


@pytest.mark.parametrize(
    "command",
    [
        *(("cloud-init", "schema", "--config-file", path) for path in USER_DATA),
        ("packer", "fmt", "-check", "-diff", IMAGES / "packer"),
        ("kubernetes-validate", "--strict", DAEMON_SET),
    ],
    ids=lambda command: f"{command[0]} {Path(command[-1]).name}",
)
def test_a_recipes_own_tool_finds_nothing_wrong(command: tuple[str | Path, ...]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    subprocess.run(command, check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})


def test_nothing_is_mounted_before_the_helper_is_installed() -> None:
    """The module `mounts` runs early in the boot, and a mount that fails there is an error of that boot."""
    (install,) = documents(IMAGES / "cloud-init/user-data-install.yaml")
    assert "nfs-common" in install["packages"]
    assert "mounts" not in install
    (ready,) = documents(IMAGES / "cloud-init/user-data.yaml")
    assert "packages" not in ready


def test_the_files_that_packer_copies_are_next_to_it() -> None:
    text = (IMAGES / "packer/nfstuned.pkr.hcl").read_text()
    named = re.findall(r'"\$\{path\.root\}/([^"]+)"', text)
    assert named
    assert all((IMAGES / "packer" / one).exists() for one in named)
    assert text.count("{") == text.count("}")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the packages of two versions, the newer one made by its dev/build; and an engine."""
    shutil.copytree(IMAGES / "aks", tmp_path / "docs/images/aks")
    for version in ("0.1.0", "0.10.0"):
        deb = put(tmp_path / f"dist/nfstuned_{version}-1_amd64.deb", version)
    made = f"echo '{tmp_path}/dist/nfstuned.whl: 2 bytes'\necho '{deb}: 6 bytes'\n"
    put(tmp_path / "dev/build", made)
    put(
        tmp_path / "engine",
        '#!/bin/sh\nfor last; do :; done\necho "$@"\nls "$last"\ncat "$last/nfstuned.deb"\n',
        0o755,
    )
    return tmp_path


def built(checkout: Path, *words: str, engine: str = "engine") -> subprocess.CompletedProcess[str]:
    command = ["sh", str(checkout / "docs/images/aks/build.sh"), *words]
    environment = {**os.environ, "ENGINE": str(checkout / engine), "TMPDIR": str(checkout)}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


def test_the_image_is_built_of_the_package_that_was_made_just_now(checkout: Path) -> None:
    done = built(checkout, "registry.example.com/nfstuned:0.10.0")
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()[2:]
    assert said[0].startswith("build --platform linux/amd64 --tag registry.example.com/nfstuned:0.10.0 ")
    assert said[1:-1] == ["Dockerfile", "nfstuned.deb"]
    assert said[-1] == f"0.10.0Next: {checkout}/engine push registry.example.com/nfstuned:0.10.0"
    assert not list(checkout.glob("tmp.*"))


def test_without_an_engine_or_a_name_nothing_is_built(checkout: Path) -> None:
    done = built(checkout, "nfstuned:0.10.0", engine="none")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{checkout}/none is not installed: ENGINE says what builds the image\n"
    assert built(checkout).returncode == 2


def test_the_container_runs_the_service_and_the_pod_sees_the_node() -> None:
    text = (IMAGES / "aks/Dockerfile").read_text()
    assert 'ENTRYPOINT ["/usr/bin/nfstuned", "daemon"]' in text
    assert all("." in line.split("/")[0] for line in re.findall(r"^FROM (.*)$", text, re.MULTILINE)), (
        "a short name means the same registry to Docker alone"
    )
    parse(["daemon"])
    (one,) = [each["spec"] for each in documents(DAEMON_SET) if each["kind"] == "DaemonSet"]
    pod = one["template"]["spec"]
    assert (pod["hostPID"], pod["hostNetwork"]) == (True, True)
    (container,) = pod["containers"]
    assert {"name": "udev", "mountPath": "/run/udev", "readOnly": True} in container["volumeMounts"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert one["selector"]["matchLabels"].items() <= one["template"]["metadata"]["labels"].items()
