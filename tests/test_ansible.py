"""deploy/ansible: the collection, by the real Ansible. `sh dev/collection` runs its role on hosts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from nfstuned import __version__
from nfstuned.cli.app import main
from nfstuned.host.policy import builtin_texts
from nfstuned.parse.policy import parse_config
from tests.tree import put

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COLLECTION = Path(__file__).parents[1] / "deploy/ansible"
ROLE = COLLECTION / "roles/nfstuned"
ARGUMENTS = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]["main"][
    "options"
]
CONTENTS: dict[str, Any] = {
    "own": {"daemon": {"mode": "observe"}, "nconnect": {"mode": "advise"}},
    "text": '[daemon]\nmode = "observe"',
    "tables": {
        "daemon": {"restore_on_stop": True, "sample_interval": "5m"},
        "check": {"ignore": ["NFS303"], "severity": {"NFS307": "error"}},
        "policy": [
            {
                "match": {"server": ["10.1.2.0/24", 'n\N{LATIN SMALL LETTER A WITH DIAERESIS}s"\\\n']},
                "profile": "nas",
            },
            {"match": {"export": "/odd \N{SLEEPING SYMBOL}"}, "profile": "generic"},
        ],
        "profile": {"nas": {"read_ahead_kb": 1024, "nconnect": 4}},
    },
}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "mode": ({"nfstuned_mode": "tuned"}, "value of nfstuned_mode must be one of: observe, tune, got: tuned"),
    "persist": ({"nfstuned_persist": "often"}, "nfstuned_persist"),
    "both": (
        {
            "nfstuned_package": "/a.deb",
            "nfstuned_repository": "file:///srv",
            "nfstuned_repository_key": "/a.asc",
        },
        "nfstuned_package and nfstuned_repository exclude each other",
    ),
    "unsigned": (
        {"nfstuned_repository": "file:///srv"},
        "nfstuned_repository and nfstuned_repository_key need each other",
    ),
    "list": ({"nfstuned_config": ["mode"]}, "nfstuned_config is neither a text nor a mapping"),
    "outside": (
        {"nfstuned_policies": {"../nas.toml": {}}},
        "nfstuned_policies has a key that is no file name",
    ),
}


def ansible(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run ansible-playbook with the collection, and with a folder for the files that it writes for itself."""
    place = folder / "collections/ansible_collections/nfstuned/nfstuned"
    place.parent.mkdir(parents=True)
    place.symlink_to(COLLECTION)
    return subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        },
    )


def test_the_collection_has_the_version_of_the_program() -> None:
    assert yaml.safe_load((COLLECTION / "galaxy.yml").read_text())["version"] == __version__


def test_each_argument_has_one_default_and_is_on_the_page() -> None:
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    assert {name: spec["default"] for name, spec in ARGUMENTS.items()} == defaults
    named = re.findall(r"^\| `(nfstuned_\w+)` \|", (COLLECTION / "README.md").read_text(), re.MULTILINE)
    assert named == list(defaults)


def test_the_rendered_configuration_is_the_given_one(tmp_path: Path) -> None:
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [
            {
                "ansible.builtin.template": {
                    "src": str(ROLE / "templates/file.toml.j2"),
                    "dest": f"{tmp_path}/{{{{ item.key }}}}.toml",
                    "mode": "0600",
                },
                "vars": {"nfstuned_content": "{{ item.value }}"},
                "loop": "{{ contents | dict2items }}",
            }
        ],
    }
    put(tmp_path / "play.yml", json.dumps([play]))
    put(tmp_path / "contents.yml", json.dumps({"contents": CONTENTS}))
    done = ansible(
        tmp_path, "-i", "localhost,", "-c", "local", "-e", f"@{tmp_path}/contents.yml", tmp_path / "play.yml"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for name, content in CONTENTS.items():
        text = (tmp_path / f"{name}.toml").read_text()
        assert tomllib.loads(text) == (tomllib.loads(content) if isinstance(content, str) else content)
        parse_config(builtin_texts(), [(name, text)])


def test_a_wrong_argument_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    hosts = {name: {"ansible_connection": "local", **arguments} for name, (arguments, _) in WRONG.items()}
    put(
        tmp_path / "hosts.yml",
        json.dumps({"all": {"hosts": hosts}}),
    )
    play = {"hosts": "all", "gather_facts": False, "roles": ["nfstuned.nfstuned.nfstuned"]}
    put(tmp_path / "play.yml", json.dumps([play]))
    # Nothing would be changed either if a wrong argument went through.
    done = ansible(tmp_path, "--check", "--forks=8", "-i", tmp_path / "hosts.yml", tmp_path / "play.yml")
    assert "Look for the program" not in done.stdout
    for name, (_, message) in WRONG.items():
        (said,) = re.findall(
            rf"^(?:fatal|failed): \[{name}\].*?^(?=\S)", done.stdout + done.stderr, re.MULTILINE | re.DOTALL
        ) or [""]
        assert message in " ".join(said.split()), done.stdout + done.stderr


@pytest.mark.parametrize("playbook", ["rollout", "check"])
def test_ansible_understands_a_playbook(playbook: str, tmp_path: Path) -> None:
    done = ansible(tmp_path, "-i", "localhost,", "--syntax-check", f"nfstuned.nfstuned.{playbook}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nfstuned_finds_nothing_wrong_in_the_collection(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--offline", str(COLLECTION)]) == 0
    assert "Nothing to report" in capsys.readouterr().out
