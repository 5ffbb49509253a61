"""`nfstuned check FILE|FOLDER...`: files of a deployment, judged without a host."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.conftest import MakeHost, Run
from tests.tree import put
from tests.users import NOBODY, rights_of

GUIDE = Path(__file__).parents[2] / "docs/guide.md"
VOLUME = """\
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  mountOptions:
    - hard
    - soft
  nfs:
    server: nas.example.org
    path: /data
"""
SOFT = {
    "fstab": ("nas.example.org:/data /data nfs soft,_netdev,nofail 0 0\n", 1),
    "data.mount": ("[Mount]\nWhat=nas.example.org:/data\nWhere=/data\nType=nfs\nOptions=soft\n", 5),
    "auto.data": ("data -fstype=nfs,soft nas.example.org:/data\n", 1),
    "pv.yaml": (VOLUME.replace("    - hard\n", ""), 6),
    "compose.yaml": (
        (
            "services: {}\nvolumes:\n  data:\n    driver_opts:\n      type: nfs\n"
            "      o: addr=nas.example.org,soft\n      device: ':/data'\n"
        ),
        6,
    ),
    "play.yaml": (
        (
            "- hosts: all\n  tasks:\n    - mount:\n        src: nas.example.org:/data\n"
            "        path: /data\n        fstype: nfs\n        opts: soft,_netdev,nofail\n"
        ),
        7,
    ),
    "user-data": (
        "#cloud-config\nmounts:\n- [nas.example.org:/data, /data, nfs, 'soft,_netdev,nofail']\n",
        3,
    ),
    "mount.sh": ("#!/bin/sh\nmount -t nfs -o soft nas.example.org:/data /data\n", 2),
    "plan.json": (
        (
            '{"format_version": "1.2", "planned_values": {"root_module": {"resources": [{\n'
            '"type": "kubernetes_persistent_volume_v1", "address": "nfs", "values": {"spec": [{\n'
            '"mount_options": ["soft"],\n'
            '"persistent_volume_source":\n'
            '[{"nfs": [{"server": "nas.example.org", "path": "/data"}]}]}]}}]}}}\n'
        ),
        3,
    ),
}
"""Files of several kinds with the same fault, and its line."""


@pytest.fixture
def check(host: MakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Return a function that judges files by name, offline, in a folder of their own."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    made = host("no-nfs")

    def run(files: dict[str, str], *args: str) -> Run:
        for name, text in files.items():
            put(folder / name, text)
        return made.run("check", *(args or (".",)), "--offline")

    return run


def found(run: Run) -> list[tuple[str, str]]:
    return [(one["subject"], one["rule"]) for one in json.loads(run.out)["findings"]]


@pytest.mark.parametrize("name", SOFT)
def test_a_fault_has_the_same_rule_in_every_kind_of_file(name: str, check: Callable[..., Run]) -> None:
    text, line = SOFT[name]
    run = check({name: text}, name, "--format", "json")
    assert (run.status, run.err) == (1, "")
    # A plan may be a single line: the resource's address stands behind its name.
    name = f"{name}#nfs" if name == "plan.json" else name
    assert found(run) == [(f"{name}:{line}", "NFS307")]
    assert f"{name}:{line}" in json.loads(run.out)["findings"][0]["remedy"]


OTHER = VOLUME.replace("name: data", "name: other").replace("path: /data", "path: /other")
FOUR = VOLUME.replace("- soft", "- nfsvers=4.1,nconnect=4")


@pytest.mark.parametrize(
    ("files", "rules"),
    [
        ({"a/pv.yaml": FOUR, "b/pv.yaml": OTHER.replace("- soft", "- nfsvers=4.1")}, ["NFS215"]),
        ({"a/pv.yaml": FOUR, "b/pv.yaml": FOUR.replace("=4.1,nconnect=4", "=4.1")}, []),
        (
            {
                "a/etc/fstab": "nas:/a /a nfs vers=4.1,nconnect=4,nofail 0 0\n",
                "a/etc/systemd/system/b.mount": "[Mount]\nWhat=nas:/b\nType=nfs\nOptions=vers=4.1\n",
                "b/etc/fstab": "nas:/a /a nfs vers=4.1,nconnect=8,nofail 0 0\n",
            },
            ["NFS215"],
        ),
    ],
    ids=["a cluster", "the same volume of two clusters", "a host, and another host"],
)
def test_the_servers_of_a_cluster_or_a_host_are_one_group(
    files: dict[str, str], rules: list[str], check: Callable[..., Run]
) -> None:
    assert [rule for _, rule in found(check(files, ".", "--format", "json"))] == rules


def test_a_maps_key_is_there_twice(check: Callable[..., Run]) -> None:
    run = check({"auto.nas": "a nas:/a\na nas:/b\n"}, "auto.nas", "--format", "json")
    assert found(run) == [("auto.nas:2", "NFS313")]


def test_a_remedy_has_the_words_of_its_file(check: Callable[..., Run]) -> None:
    run = check({"pv.yaml": VOLUME.replace("hard", "nconect=4")})
    assert "spell 'nconect' as nconnect in pv.yaml:6" in run.out
    assert "replace soft by hard in mountOptions in pv.yaml:7" in run.out


@pytest.mark.parametrize(
    ("fstype", "o", "device", "finding"),
    [
        ("nfs", "rw,vers=4.1", "nas.example.org:/data", [("compose.yaml:2", "NFS311")]),
        ("nfs", "rw,vers=4.1,addr=10.0.0.1", "nas.example.org:/data", []),
        ("nfs", "addr=10.0.0.1,_netdev,x-systemd.automount", ":/data", [("compose.yaml:3", "NFS309")]),
        ("nfs", "addr=nas.example.org", ":/data", []),
        ("nfs4", "addr=nas.example.org", ":/data", [("compose.yaml:3", "NFS309")]),
        ("nfs4", "addr=fd00::1", ":/data", []),
        ("nfs4", "addr=${NAS:-nas}", ":/data", []),
        ("cifs", "addr=10.0.0.1,_netdev,username=a,password=$P", "//nas/data", []),
        ("cifs", "addr=10.0.0.1,credentials=/etc/login", "//nas/data", [("compose.yaml:3", "SMB614")]),
        ("cifs", "addr=10.0.0.1,username=a,password=$P", "//nas/data", []),
    ],
)
def test_docker_mounts_without_a_helper(
    fstype: str, o: str, device: str, finding: list[tuple[str, str]], check: Callable[..., Run]
) -> None:
    options = f"{{type: {fstype}, device: '{device}',\n o: '{o}'}}"
    run = check({"compose.yaml": f"volumes:\n a: {{driver_opts: {options}}}\n"}, "--format", "json", ".")
    assert found(run) == finding


@pytest.mark.parametrize(
    ("driver", "options", "removed"),
    [
        ("file", "[nconnect=4]", ""),
        ("file", "[nconnect=4, nfsvers=4.1]", "nfsvers=4.1"),
        ("file", "[nconnect=4, vers=4, minorversion=1, sec=sys]", "vers=4"),
        ("file", "[nconnect=4, 'vers=4,minorversion=1,sec=sys']", ""),
        ("file", "[nconnect=4, vers=3, resvport]", "vers=3"),
        ("blob", "[vers=3]", "vers=3"),
        ("blob", "[nconnect=4]", ""),
    ],
)
def test_a_driver_adds_options_to_those_of_its_volume(
    driver: str, options: str, removed: str, check: Callable[..., Run]
) -> None:
    attributes = "{protocol: nfs, storageAccount: sa1, shareName: a, containerName: a, mountOptions: soft}"
    volume = f"spec:\n  csi: {{driver: {driver}.csi.azure.com, volumeAttributes: {attributes}}}\n"
    text = f"kind: PersistentVolume\napiVersion: v1\n{volume}  mountOptions: {options}\n"
    run = check({"pv.yaml": text}, ".", "--format", "json", "--kernel", "5.15.0", "--nfs-utils", "1.3.4")
    findings = json.loads(run.out)["findings"]
    assert [one["rule"] for one in findings] == ["NFS309"] * bool(removed)
    assert not removed or findings[0]["remedy"] == f"remove {removed!r} from mountOptions in pv.yaml:5"


EXPORT = "nfs: {server: sa1.file.core.windows.net, path: /sa1/a}"
OF_POD = "the mountOptions of a PersistentVolume instead of the pod's volume"


@pytest.mark.parametrize(
    ("kind", "spec", "place"),
    [
        ("Pod", f"volumes: [{{name: a, {EXPORT}}}]", OF_POD),
        ("PersistentVolume", EXPORT, "mountOptions"),
        ("HelmRelease", f"values: {{{EXPORT}}}", "mountOptions"),
        ("HelmRelease", f"values: {{extraVolumes: [{{name: a, {EXPORT}}}]}}", OF_POD),
        ("HelmRelease", f"values: {{name: a, {EXPORT[:-1]}, mountOptions: [hard]}}}}", "mountOptions"),
    ],
)
def test_options_go_to_an_object_that_takes_them(
    kind: str, spec: str, place: str, check: Callable[..., Run]
) -> None:
    run = check({"a.yaml": f"kind: {kind}\napiVersion: v1\nspec: {{{spec}}}\n"}, ".", "--kernel", "5.15.0")
    assert f"add noresvport to {place} in a.yaml:3\n" in run.out
    assert f"set nconnect=4 in {place} in a.yaml:3;" in run.out


@pytest.mark.parametrize(
    ("driver", "options", "rules"),
    [
        ("azure-netapp-files", "nfsvers=4.2", ["NFS301"]),
        ("azure-netapp-files", "-o vers=4,minorversion=2", ["NFS301"]),
        ("azure-netapp-files", "-o nfsvers=4.1,hard", []),
        ("azure-netapp-files", "vers=4", []),
        ("azure-netapp-files", "nconnect=4", []),
        ("ontap-nas", "nfsvers=4.2", []),
    ],
)
def test_trident_makes_volumes_of_some_versions(
    driver: str, options: str, rules: list[str], check: Callable[..., Run]
) -> None:
    spec = f"spec: {{storageDriverName: {driver}, nfsMountOptions: '{options}'}}\n"
    backend = f"kind: TridentBackendConfig\napiVersion: trident.netapp.io/v1\n{spec}"
    made = f"provisioner: csi.trident.netapp.io\nparameters: {{backendType: {driver}}}\n"
    plain = options.removeprefix("-o ")
    text = f"kind: StorageClass\napiVersion: v1\n{made}mountOptions: ['{plain}']\n"
    run = check({"a.yaml": backend, "b.yaml": text}, ".", "--format", "json")
    assert found(run) == [(file, rule) for rule in rules for file in ("a.yaml:3", "b.yaml:5")]


def test_what_is_recognised_and_not_read_is_named(check: Callable[..., Run]) -> None:
    files = {
        "chart/templates/pv.yaml": "{{- if .Values.nfs }}\nkind: PersistentVolume\n{{- end }}\n",
        "a.sh": "mount -t nfs $A:/x /x\nmount -t nfs $B:/x /x\n",
        "main.tf": 'resource "kubernetes_persistent_volume" "nfs" {}\n',
        "README.md": "mount -t nfs nas:/x /x\n",
    }
    run = check(files)
    assert run.status == 0
    assert run.err.splitlines() == [
        "a.sh: not read: a command with a variable (line 1, 2)",
        "main.tf: not read: Terraform's source: give the plan (terraform show -json)",
        "chart/templates/pv.yaml: not read: a template: render it first (line 1)",
    ]


def test_a_named_file_must_be_of_a_known_kind_and_readable(check: Callable[..., Run]) -> None:
    files = {"notes.md": "mount -t nfs nas:/x /x\n", "web.yaml": "kind: Pod\napiVersion: v1\n"}
    run = check(files, "notes.md", "web.yaml", "absent")
    assert run.status == 2
    kinds, absent = sorted(run.err.splitlines(), reverse=True)
    assert kinds.startswith("notes.md: has no known kind; nfstuned reads fstab, units, ")
    assert absent == "absent: No such file or directory"


def test_a_broken_file_costs_itself_alone(check: Callable[..., Run]) -> None:
    run = check({"a.yaml": "nfs:\n\t- x\n", "pv.yaml": VOLUME})
    assert (run.status, run.out.count("NFS307")) == (2, 1)
    assert run.err.startswith("a.yaml:2: the file was not read: ")


def test_stdin_is_a_file(check: Callable[..., Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(VOLUME.encode())))
    assert found(check({}, "-", "--format", "json"))[-1] == ("-:7", "NFS307")


IGNORED = VOLUME.replace("- hard", "- nolock  # nfstuned: ignore locks-local,NFS314 one host alone").replace(
    "    - soft", "    # nfstuned: ignore NFS3 a cache\n    # of results\n    - soft"
)


def test_a_comment_accepts_findings_about_its_line_or_the_next(check: Callable[..., Run]) -> None:
    run = check({"pv.yaml": IGNORED})
    assert (run.status, run.err) == (0, "")
    assert "; 2 ignored by comments" in run.out
    summary = json.loads(check({}, "pv.yaml", "--format", "json").out)["summary"]
    assert (summary["ignored"], summary["warning"]) == (2, 0)


@pytest.mark.parametrize(
    ("comment", "named"),
    [
        ("NFS312 x", "pv.yaml:7: line 7 has no finding NFS312 to ignore: remove the comment"),
        ("", "pv.yaml:7: the comment names no rule and ignores nothing: write nfstuned: ignore RULE REASON"),
        ("NFS999 x", "pv.yaml:7: there is no rule 'NFS999'; did you mean "),
        ("NFS101 x", ""),
    ],
    ids=["unused", "without a rule", "unknown", "of a rule that was not judged"],
)
def test_a_comment_that_accepts_nothing_is_named(comment: str, named: str, check: Callable[..., Run]) -> None:
    run = check({"pv.yaml": VOLUME.replace("- soft", f"- soft # nfstuned: ignore {comment}")})
    assert run.status == 1
    assert run.err.startswith(named)
    assert bool(run.err) == bool(named)


def test_the_nearest_project_file_and_the_site_decide(check: Callable[..., Run]) -> None:
    files = {
        ".nfstuned.toml": '[check]\nignore = ["NFS307"]\n',
        "a/pv.yaml": VOLUME,
        "b/.nfstuned.toml": '[check]\nseverity = {soft-mount = "info"}\n'
        '[[check.path]]\nmatch = "old/*"\nignore = ["NFS3"]\n',
        "b/pv.yaml": VOLUME,
        "b/old/pv.yaml": VOLUME,
    }
    run = check(files, "a", "b", "--format", "json")
    rows = [
        (one["subject"], one["severity"])
        for one in json.loads(run.out)["findings"]
        if one["rule"] == "NFS307"
    ]
    assert rows == [("b/pv.yaml:7", "info")]
    assert json.loads(run.out)["summary"]["accepted"] >= 2


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[check]\nignore = ["NFS399"]\n', "check: there is no rule 'NFS399'"),
        ('[check]\nseverity = {NFS307 = "fatal"}\n', ':2: check.severity.NFS307: "fatal": '),
        ("[daemon]\n", ":1: daemon: "),
    ],
    ids=["rule", "severity", "table"],
)
def test_a_project_file_with_a_mistake_ends_the_check(
    text: str, problem: str, check: Callable[..., Run]
) -> None:
    run = check({".nfstuned.toml": text, "pv.yaml": VOLUME})
    assert (run.status, run.out) == (2, "")
    assert problem in run.err


def test_a_baseline_has_old_findings_wherever_they_moved(check: Callable[..., Run]) -> None:
    written = check({"pv.yaml": VOLUME}, ".", "--write-baseline", "known.json")
    assert written.status == 0
    again = check({"pv.yaml": f"# moved\n\n{VOLUME}"}, "./pv.yaml", "--baseline", "known.json")
    assert (again.status, again.err) == (0, "")
    more = check(
        {"pv.yaml": VOLUME + "---\n" + VOLUME.replace("soft", "soft\n    - noac")},
        ".",
        "--baseline",
        "known.json",
    )
    assert more.status == 1
    assert more.out.count("NFS307") == 1, "the second volume's"
    less = check({"pv.yaml": VOLUME.replace("soft", "hard")}, ".", "--baseline", "known.json")
    assert less.err.startswith("known.json: 2 of its findings are gone")


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "x"}', '{"schema": "nfstuned.baseline/1"}'])
def test_a_file_that_is_no_baseline_is_refused(text: str, check: Callable[..., Run]) -> None:
    run = check({"pv.yaml": VOLUME, "known.json": text}, "pv.yaml", "--baseline", "known.json")
    assert (run.status, run.out) == (1, "") or (run.status, run.out) == (2, "")
    assert "known.json: not a baseline of nfstuned" in run.err


def test_a_workflow_shows_findings_at_their_lines(check: Callable[..., Run]) -> None:
    run = check({"a, b.yaml": VOLUME.replace("hard", "nolock")}, ".", "--format", "github")
    first, second = sorted(run.out.splitlines())
    assert first.startswith(
        "::notice file=a%2C b.yaml,line=6,title=NFS314 locks-local::with version 3 locks of"
    )
    assert second.startswith(
        "::warning file=a%2C b.yaml,line=7,title=NFS307 soft-mount::soft: when the server"
    )


def test_a_provider_can_be_given_for_an_address(check: Callable[..., Run]) -> None:
    text = VOLUME.replace("nas.example.org", "10.0.0.4").replace("soft", "nconnect=8")
    run = check({"pv.yaml": text}, ".", "--provider", "10.0.0.0/24=azure-files")
    assert "NFS202" in run.out
    wrong = check({}, ".", "--provider", "10.0.0.4=azure-netap-files")
    assert wrong.status == 2
    assert 'did you mean "azure-netapp-files"?' in wrong.err


def test_statistics_count_the_findings_of_each_rule(check: Callable[..., Run]) -> None:
    run = check({"a.yaml": VOLUME, "b.yaml": VOLUME}, ".", "--statistics")
    assert run.out.splitlines()[:3] == [
        "findings  severity  rule    name",
        "       2  warning   NFS307  soft-mount",
        "       2  warning   NFS318  options-contradict",
    ]


@pytest.mark.parametrize("option", [("--root", "."), ("--fstab", "x"), ("--sample", "1")])
def test_files_are_judged_alone(option: tuple[str, str], check: Callable[..., Run]) -> None:
    run = check({"x": ""}, "x", *option)
    assert run.status == 2
    assert "with files, this host is not judged" in run.err


def test_changes_with_one_right_answer_are_made(check: Callable[..., Run], tmp_path: Path) -> None:
    azure = "sa1.file.core.windows.net:/sa1/a"
    files = {
        "fstab": f"# data\n{azure} /a nfs vers=4.1,nconnect=16 0 0\r\n",
        "play.yaml": SOFT["play.yaml"][0]
        .replace("nas.example.org:/data", azure)
        .replace("soft,_netdev,nofail", "'hard,noresvprot'  # mine"),
        "pv.yaml": VOLUME.replace("soft", "nconect=4"),
    }
    wanted = {
        "fstab": files["fstab"].replace("nconnect=16", "nconnect=4,nofail"),
        "play.yaml": files["play.yaml"].replace("noresvprot", "noresvport,nofail"),
        "pv.yaml": files["pv.yaml"].replace("nconect", "nconnect"),
    }
    shown = check(files, ".", "--diff")
    assert shown.status == 1
    assert "-    - nconect=4\n+    - nconnect=4\n" in shown.out
    assert {name: (tmp_path / "project" / name).read_bytes().decode() for name in files} == files
    check({}, ".", "--fix")
    assert {name: (tmp_path / "project" / name).read_bytes().decode() for name in files} == wanted
    assert check({}, ".", "--diff").out == ""


def test_a_change_is_on_the_line_of_the_field(check: Callable[..., Run]) -> None:
    text = "#cloud-config\nmounts:\n- - nas:/nconect\n  - /a\n  - nfs\n  - nconect=4,nofail\n"
    assert check({"user-data": text}, ".", "--fix", "--select", "NFS309").status == 0
    assert Path("user-data").read_text() == text.replace("nconect=4", "nconnect=4")


def test_a_text_that_a_line_has_twice_or_not_at_all_is_left(check: Callable[..., Run]) -> None:
    flow = VOLUME.replace("mountOptions:\n    - hard\n    - soft", "mountOptions: [nconect=4, nconect=4]")
    run = check({"pv.yaml": flow, "fstab": "nas:/nfs /nfs nfs nfs 0 0\n"}, ".", "--diff")
    assert (run.status, run.out) == (0, "")


def test_a_comment_is_no_option(check: Callable[..., Run]) -> None:
    text = SOFT["compose.yaml"][0].replace(
        "o: addr=nas.example.org,soft", "o: >- # nconnect=32\n        addr=nas.example.org,nconnect=32"
    )
    assert check({"compose.yaml": text}, ".", "--diff").out == ""


@pytest.mark.parametrize(("other", "fixes"), [("sa1.file.core.windows.net:/sa1", 1), ("nas.example.org:", 0)])
def test_a_variable_of_two_mounts_is_changed_where_it_is_wrong_for_both(
    other: str, fixes: int, check: Callable[..., Run]
) -> None:
    play = "- hosts: all\n  vars: {o: 'vers=4.1,nconnect=8,noresvport,nofail'}\n  tasks:\n"
    for source in ("sa1.file.core.windows.net:/sa1/a", f"{other}/b"):
        task = f"{{src: '{source}', path: /a, fstype: nfs, state: mounted, opts: '{{{{ o }}}}'}}"
        play += f"  - ansible.posix.mount: {task}\n"
    run = check({"play.yaml": play}, ".", "--diff")
    assert run.out.count("+  vars: {o: 'vers=4.1,nconnect=4,") == fixes
    # Of two servers none stands above the findings of their line.
    assert check({}, ".").out.splitlines()[0] == "play.yaml:2"


@pytest.mark.parametrize("option", ["--fix", "--diff"])
def test_changes_are_of_named_files(option: str, host: MakeHost) -> None:
    assert f"{option}: name the files" in host("no-nfs").run("check", option).err


def test_changes_are_made_or_shown(check: Callable[..., Run]) -> None:
    text = "nas.example.org:/a /a nfs nconect=4 0 0\n"
    run = check({"fstab": text}, "fstab", "--fix", "--diff")
    assert run.status == 2
    assert "leave one out" in run.err


@pytest.mark.parametrize(
    ("options", "diff", "fix"),
    [("nconect=4", 1, 0), ("nconect=4,soft", 1, 1), ("soft", 0, 1), ("hard", 0, 0)],
)
def test_the_status_of_diff_is_about_changes_and_that_of_fix_about_findings_left(
    options: str, diff: int, fix: int, check: Callable[..., Run]
) -> None:
    files = {"fstab": f"nas.example.org:/a /a nfs {options},nofail,_netdev 0 0\n"}
    assert check(files, "fstab", "--diff", "--fail-on", "info").status == diff
    assert check({}, "fstab", "absent", "--diff").status == 2
    assert check({}, "fstab", "--fix").status == fix


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has other users' rights to lay down")
def test_a_file_that_may_not_be_written_is_named(check: Callable[..., Run]) -> None:
    text = "nas.example.org:/a /a nfs nconect=4,nofail 0 0\n"
    check({"fstab": text}, "fstab")
    with rights_of(NOBODY):
        run = check({}, "fstab", "--fix")
    assert run.status == 2
    assert run.err.endswith("--fix: fstab: Permission denied\n")
