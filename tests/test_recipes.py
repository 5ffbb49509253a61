"""docs/images: each recipe is what its tool reads, and what it runs of nfstuned exists."""

from __future__ import annotations

import json
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

from nfstuned.cli.app import app
from nfstuned.parse.config import parse_config

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs/images"
PAGE = ROOT / "docs/images.md"
PROFILES = ROOT / "nfstuned/data/profiles"
FILES = sorted(path for path in IMAGES.rglob("*") if path.is_file())
SCRIPTS = [path for path in FILES if path.read_text().startswith("#!")]
YAML = [path for path in FILES if path.suffix in {".yaml", ".yml"}]
DAEMON_SET = IMAGES / "aks/daemonset.yaml"
_LISTS = re.compile(r"\[(nfstuned(?:, [^\[\],]+)*)\]")
"""A command as YAML and JSON write it: a list of words."""
_LINES = re.compile(r"^(?:sudo )?(nfstuned [a-z].*)$", re.MULTILINE)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


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
    rest = list(words)
    while isinstance(command, click.Group):
        assert rest[0] in command.commands, words
        command = command.commands[rest.pop(0)]
    command.make_context("nfstuned", rest)


def test_every_recipe_is_on_the_page_and_the_page_names_no_other() -> None:
    named = set(re.findall(r"\]\((images/[^)]+)\)", PAGE.read_text()))
    assert named == {str(path.relative_to(ROOT / "docs")) for path in FILES}


def test_the_recipes_run_what_there_is() -> None:
    found = {name(path): list(commands(path)) for path in (*FILES, PAGE)}
    for recipe in ("packer/bake.sh", "mkosi/mkosi.postinst.chroot", "ansible/nfstuned.yml"):
        assert ["bake"] in [words[:1] for words in found[f"docs/images/{recipe}"]]
    assert found["docs/images/aks/Dockerfile"] == []
    for words in (words for each in found.values() for words in each):
        parse(words)


@pytest.mark.parametrize("words", [["bakes"], ["bake", "--rot", "/"], ["check", "--fail-on", "mistake"]])
def test_what_there_is_not_would_be_found(words: list[str]) -> None:
    with pytest.raises((click.UsageError, AssertionError)):
        parse(words)


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_a_script_is_one_and_may_be_run(script: Path) -> None:
    assert os.access(script, os.X_OK) or script.parent.name == "aks"
    subprocess.run(["sh", "-n", str(script)], check=True)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="no shellcheck")
@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_shellcheck_finds_nothing_wrong(script: Path) -> None:
    subprocess.run(["shellcheck", str(script)], check=True)


def policies() -> Iterator[tuple[str, str]]:
    """Yield the texts of nfstuned.toml that recipes write."""
    yield "nfstuned.toml", (IMAGES / "nfstuned.toml").read_text()
    for path in sorted((IMAGES / "cloud-init").iterdir()):
        (document,) = documents(path)
        for file in document["write_files"]:
            assert file["path"].startswith("/etc/nfstuned/")
            yield path.name, file["content"]
    for one in documents(DAEMON_SET):
        if one["kind"] == "ConfigMap":
            yield from one["data"].items()


def test_every_policy_that_a_recipe_writes_is_valid() -> None:
    builtin = [(path.name, path.read_text()) for path in sorted(PROFILES.glob("*.toml"))]
    found = list(policies())
    assert len(found) == len(YAML)
    for label, text in found:
        policy = parse_config(builtin, [(label, text)])
        assert [one.profile for one in policy.assignments] == ["azure-netapp-files"], label


@pytest.mark.parametrize("path", YAML, ids=name)
def test_every_file_of_yaml_can_be_read(path: Path) -> None:
    assert documents(path)
    assert path.parent.name != "cloud-init" or path.read_text().startswith("#cloud-config\n")


def test_a_task_of_ansible_says_when_it_changed_something() -> None:
    (play,) = documents(IMAGES / "ansible/nfstuned.yml")[0]
    ran = [task for task in play["tasks"] if "ansible.builtin.command" in task]
    assert len(ran) == len(list(commands(IMAGES / "ansible/nfstuned.yml")))
    assert all("changed_when" in task for task in ran)
    images = [task for task in ran if task.get("when") == "nfstuned_image | bool"]
    assert [task["ansible.builtin.command"]["argv"][1] for task in images] == ["bake", "check"]


def test_what_packer_takes_is_beside_it() -> None:
    text = (IMAGES / "packer/nfstuned.pkr.hcl").read_text()
    named = re.findall(r'"\$\{path\.root\}/([^"]+)"', text)
    assert named
    assert all((IMAGES / "packer" / one).exists() for one in named)
    assert text.count("{") == text.count("}")


def test_the_container_runs_the_service_and_the_pod_sees_the_node() -> None:
    assert 'ENTRYPOINT ["/usr/bin/nfstuned", "daemon"]' in (IMAGES / "aks/Dockerfile").read_text()
    parse(["daemon"])
    (one,) = [one for one in documents(DAEMON_SET) if one["kind"] == "DaemonSet"]
    pod = one["spec"]["template"]["spec"]
    assert (pod["hostPID"], pod["hostNetwork"]) == (True, True)
    (container,) = pod["containers"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert (
        one["spec"]["selector"]["matchLabels"].items()
        <= one["spec"]["template"]["metadata"]["labels"].items()
    )


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
def test_kubectls_own_types_know_every_field_of_the_manifest() -> None:
    """It asks no cluster; what its types do not know would be missing in what it prints."""
    command = ["kubectl", "label", "--local", "-f", str(DAEMON_SET), "tried=yes", "-o", "json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    decoder, found, place = json.JSONDecoder(), [], 0
    while place < len(printed.rstrip()):
        one, place = decoder.raw_decode(printed, place + len(printed[place:]) - len(printed[place:].lstrip()))
        found.append(one)
    for written, typed in zip(documents(DAEMON_SET), found, strict=True):
        assert typed["metadata"]["labels"].pop("tried") == "yes"
        assert missing(written, typed) == []


def missing(written: Any, typed: Any, place: str = "") -> list[str]:  # noqa: ANN401 - YAML and JSON hold anything
    """Return the places where a value is not what was written."""
    if isinstance(written, dict) and isinstance(typed, dict):
        return [line for key in written for line in missing(written[key], typed.get(key), f"{place}.{key}")]
    if isinstance(written, list) and isinstance(typed, list) and len(written) == len(typed):
        return [line for at, one in enumerate(written) for line in missing(one, typed[at], f"{place}[{at}]")]
    return [] if written == typed else [place]
