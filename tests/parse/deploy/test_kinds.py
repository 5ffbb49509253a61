"""The kinds of files: those that are read, and the many others of a repository that only look like them."""

from __future__ import annotations

import base64
import json
from textwrap import indent

import pytest

from nfstuned.model.mounts import Unread
from nfstuned.parse.deploy.deployment import Deployment, JudgedFile, Kind
from nfstuned.parse.deploy.kinds import read_sources
from nfstuned.parse.etc.requests import MOST_REQUESTS, TOO_MANY_REQUESTS

PV = "apiVersion: v1\nkind: PersistentVolume\nspec:\n  mountOptions: [soft]\n  nfs: {server: nas, path: /a}\n"
LINE = "nas:/a /a nfs soft,nofail 0 0\n"


def read(*files: tuple[str, str], named: bool = False) -> Deployment:
    return read_sources(JudgedFile(name, text, named) for name, text in files)


def asked(deployment: Deployment) -> list[str]:
    rows = deployment.intent.requests
    return [f"{row.file}:{row.line} {row.source} {row.options}" for row in rows]


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("README.md", "We use nfs\n- see https://example.com/x\n" + LINE, None),
        ("notes.txt", "Meeting about nfs\nSee https://example.com/x\n", None),
        ("Dockerfile", "FROM alpine\nRUN apk add nfs-utils\nENV URL=https://x/\n", None),
        (".env", "NFS_SERVER=nas\nNFS_SHARE=nas:/v\n", None),
        ("x.volume", "[Volume]\nType=nfs\nDevice=nas:/v\n", None),
        ("grafana.ini", "; nfs\n[server]\nprotocol = http\n", None),
        ("hosts", "[nfs_clients]\nc1 ansible_host=10.0.0.1\n", None),
        ("Makefile", "deploy: build\n\tkubectl apply -f nfs.yaml\n", None),
        ("tsconfig.json", '// nfs\n{"a": 1}\n', None),
        ("test_fstab.py", "import os  # fstab\n", None),
        ("shares.csv", LINE, None),
        ("openapi.json", '{"openapi": "3", "x": {"type": "nfs", "server": "s", "path": "/p"}}', None),
        ("package.json", '{"name": "nfs", "version": "1"}', None),
        ("values.yaml", "replicas: 2 # nfs\n", None),
        ("etc/fstab", LINE, Kind.FSTAB),
        ("mounts.txt", f"# data\n\n{LINE}", Kind.FSTAB),
        ("mounts.txt", f"{LINE}and some words\n", None),
        ("auto.nas", "a -soft nas:/a\n", Kind.MAP),
        ("auto.master", "/nas auto.nas -soft\n", Kind.MAP),
        ("auto.home", "#!/usr/bin/python3\nprint('-soft nas:/a')\n", None),
        ("auto.nas.j2", "# {{ managed }}\n{{k}} -soft nas:/a\n", Kind.MAP),
        ("auto.nas.j2", "{% for k in keys %}\n{{ k }} -soft nas:/a\n{% endfor %}\n", Kind.UNREAD),
        ("maps", "# nfs\na -soft nas:/a\nb nas:/b\n", Kind.MAP),
        ("nfsmount.conf", "[ NFSMount_Global_Options ]\nsoft=True\n", Kind.CONF),
        ("99.rules", 'SUBSYSTEM=="bdi", ATTR{read_ahead_kb}="128"\n', Kind.UDEV),
        ("sunrpc.conf", "options sunrpc tcp_slot_table_entries=128\n", Kind.PARAMETERS),
        ("run", "#!/usr/bin/env bash\nmount -t nfs nas:/a /a\n", Kind.SCRIPT),
        ("user-data", "#cloud-config\nmounts: [[nas:/a, /a, nfs]]\n", Kind.CLOUD),
        ("k8s/defaults/pv.yaml", PV, Kind.KUBERNETES),
        ("pv.yaml.j2", PV.replace("nas,", "{{ nas }},"), Kind.UNREAD),
        ("a.mount.j2", "[Mount]\nWhat={{ nas }}:/a\nType=nfs\n", Kind.UNREAD),
        ("main.tf", 'resource "kubernetes_persistent_volume" "nfs" {}\n', Kind.UNREAD),
        ("a\nb.yaml", PV, Kind.KUBERNETES),
    ],
)
def test_a_kind_is_recognised_by_content_and_by_name(name: str, text: str, kind: Kind | None) -> None:
    deployment = read((name, text))
    assert deployment.kinds.get(name) == kind
    assert deployment.intent.problems == []
    assert kind or asked(deployment) == []


def test_documents_without_a_mount_are_known_where_the_user_named_them() -> None:
    assert read(("values.yaml", "replicas: 2\n"), named=True).kinds == {"values.yaml": Kind.OTHER}


def test_a_file_that_was_named_and_not_read_is_a_problem() -> None:
    (problem,) = read(("main.tf", "nfs\n"), named=True).intent.problems
    assert str(problem).startswith("main.tf: was not read: Terraform's source")


@pytest.mark.parametrize(
    "text",
    [
        rf'#cloud-config{chr(10)}runcmd: ["a\n\nmount -t nfs nas:/a /a"]',
        rf'#cloud-config{chr(10)}write_files: [{{path: /etc/fstab, content: "\n\nnas:/a /a nfs ro 0 0"}}]',
        r'{kind: HelmChart, spec: {valuesContent: "\n\nnfs: {server: nas, path: /a}"}}',
    ],
)
def test_a_text_with_escaped_breaks_is_on_its_own_line(text: str) -> None:
    (request,) = read(("a.yaml", text), named=True).intent.requests
    assert (request.source, request.line) == ("nas:/a", text.count("\n") + 1)


@pytest.mark.parametrize("text", ["kind: HelmChart\nnfs: x\nspec: {valuesContent: 'a: ['}\n", "a: [nfs\n"])
def test_a_broken_file_costs_no_other(text: str) -> None:
    deployment = read(("a.yaml", text), ("b.yaml", PV))
    assert asked(deployment) == ["b.yaml:5 nas:/a soft"]
    assert [problem.file for problem in deployment.intent.problems] == ["a.yaml"]


def test_drop_ins_of_a_unit_count_after_it() -> None:
    unit = "[Mount]\nWhat=nas:/a\nType=nfs\nOptions=soft\n"
    deployment = read(("a.mount", unit), ("a.mount.d/b.conf", "[Mount]\nOptions=hard\n"))
    assert asked(deployment) == ["a.mount.d/b.conf:2 nas:/a hard"]


@pytest.mark.parametrize(
    ("name", "point", "refused"),
    [
        ("etc/systemd/system/a.mount", "/b", True),
        ("etc/systemd/system/a.mount", "/{{ b }}", False),
        ("etc/systemd/system/a.mount", "@B@", False),
        ("etc/systemd/system/a.mount", "/c{# b #}", False),
        ("files/a.mount", "/b", False),
    ],
)
def test_a_unit_is_refused_where_its_name_and_its_mount_point_are_its_own(
    name: str, point: str, *, refused: bool
) -> None:
    unit = f"[Mount]\nWhat=nas:/a\nWhere={point}\nType=nfs\n"
    cloud = f"#cloud-config\nwrite_files:\n- path: /{name}\n  content: |\n{indent(unit, '    ')}"
    for file in ((name, unit), ("user-data", cloud)):
        intent = read(file).intent
        assert [row.unit for row in intent.misnamed] == (
            [] if not refused else [f"/{name}" if file[1] == cloud else ""]
        )
        assert len(intent.requests) == (not refused)


def test_a_unit_with_branches_of_a_template_is_named() -> None:
    unit = "[Mount]\nWhat=nas:/a\nType=nfs\n{% if a %}Options=soft{% else %}Options=hard{% endif %}\n"
    deployment = read(("a.mount", unit))
    assert (asked(deployment), [row.text for row in deployment.unexpanded]) == (
        [],
        ["a unit with a template's branches"],
    )


def test_a_unit_with_a_specifier_of_its_host_is_named() -> None:
    deployment = read(("a.mount", "[Mount]\nWhat=nas:/home/%H\nType=nfs\n"))
    assert (asked(deployment), deployment.intent.problems) == ([], [])
    assert [row.text for row in deployment.unexpanded] == ["a unit with a specifier of its host"]


ENCODED = base64.b64encode(b"#!/bin/sh\nmount -t nfs -o soft nas:/a /a\n").decode()


CONFIG = "mounts:\n- - nas:/c\n  - /c\n  - nfs\n  - ro,nofail\n"
PARTS = f"""\
MIME-Version: 1.0
Content-Type: multipart/mixed;
 boundary="==B=="

--==B==
Content-Type: text/cloud-config

{CONFIG}
--==B==
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
mount -t nfs -o soft nas:/a /a
--==B==
Content-Transfer-Encoding: base64
Content-Type: text/x-shellscript

{ENCODED}

--==B==
Content-Type: text/plain

mount -t nfs -o hard nas:/b /b
--==B==--
"""


ONE_PART = PARTS.partition("--==B==\nContent-Type: text/x-shell")[0]


def test_user_data_of_several_parts_is_read_by_its_parts() -> None:
    found = read(("user-data", PARTS)).intent.requests
    lines = [(row.source, row.line, row.lines[0]) for row in found]
    assert lines == [("nas:/c", 9, 12), ("nas:/a", 18, 18), ("nas:/a", 23, 23)]


def test_a_mail_about_mounts_is_no_user_data() -> None:
    mail = PARTS.replace("text/cloud-config", "text/html").replace("text/x-shellscript", "text/plain")
    assert read(("mail.txt", mail)).kinds == {}


def test_parts_are_read_as_far_as_they_go() -> None:
    for text in (PARTS.replace(ENCODED, "x"), PARTS.replace("base64", "quoted-printable")):
        assert len(read(("user-data", text)).intent.requests) == 2
    assert len(read(("user-data", PARTS.rpartition("\n--==B==--")[0])).intent.requests) == 3
    for text in (PARTS.replace(" boundary", " border"), PARTS.partition("\n\n")[0] + "\n# nfs text/cloud-\n"):
        assert asked(read(("user-data", text))) == []


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (
            "azurerm_linux_virtual_machine",
            json.dumps({"custom_data": base64.b64encode(ONE_PART.encode()).decode()}),
            "nas:/c ro,nofail",
        ),
        (
            "azurerm_virtual_machine_extension",
            json.dumps({"settings": json.dumps({"commandToExecute": "mount -t nfs nas:/a /a"})}),
            "nas:/a ",
        ),
        (
            "azurerm_virtual_machine_extension",
            json.dumps({"protected_settings": json.dumps({"script": ENCODED}), "settings": "no JSON: ["}),
            "nas:/a soft",
        ),
        (
            "docker_volume",
            '{"driver_opts": {"type": "nfs", "o": "addr=nas", "device": ":/a"}}',
            "nas:/a addr=nas",
        ),
        (
            "kubectl_manifest",
            '{"yaml_body": "apiVersion: v1\\nx: {nfs: {server: nas, path: /a}}"}',
            "nas:/a ",
        ),
        ("helm_release", '{"values": ["nfs:\\n  server: nas\\n  path: /a\\n"]}', "nas:/a "),
        ("aws_instance", f'{{"user_data_base64": "{ENCODED}"}}', "nas:/a soft"),
        ("google_compute_instance", '{"metadata_startup_script": "mount -t nfs nas:/a /a"}', "nas:/a "),
    ],
)
def test_resources_of_a_plan(kind: str, values: str, expected: str) -> None:
    resource = f'{{"address": "x.y", "type": "{kind}", "values": {values}}}'
    plan = f'{{"format_version": "1", "planned_values": {{"root_module": {{"resources": [{resource}]}}}}}}'
    assert asked(read(("plan.json", plan))) == [f"plan.json#x.y:1 {expected}"]


@pytest.mark.parametrize(
    ("item", "options"),
    [
        ("${OPTS:=soft,nolock}", ""),
        ("soft,${OPTS},ro", "soft,ro"),
        ("vers=${V:-4,1}", "vers=${V:-4,1}"),
    ],
)
def test_a_placeholder_is_no_option(item: str, options: str) -> None:
    deployment = read(("pv.yaml", PV.replace("[soft]", f"['{item}']")))
    compose = f"volumes:\n a: {{driver_opts: {{type: nfs, device: ':/a', o: 'addr=nas,{item}'}}}}\n"
    assert [row.split(" ")[-1] for row in asked(deployment)] == [options]
    addressed = f"addr=nas,{options}".strip(",")
    assert [row.split(" ")[-1] for row in asked(read(("compose.yaml", compose)))] == [addressed]


def test_an_option_that_is_no_text_is_named() -> None:
    deployment = read(("pv.yaml", PV.replace("[soft]", "[{soft: yes}, ro]")))
    assert asked(deployment) == ["pv.yaml:5 nas:/a ro"]
    (unread,) = deployment.unexpanded
    assert str(unread.text).startswith("an option that is no text")


def test_variables_of_two_hosts_are_never_put_together() -> None:
    task = "- mount: {src: '{{ s }}', path: /a, fstype: nfs, opts: '{{ o }}'}\n"
    deployment = read(
        ("tasks/main.yml", task),
        ("group_vars/all.yml", "s: nas:/all\n"),
        ("host_vars/a.yml", "s: nas:/a\no: nofail\n"),
        ("host_vars/b.yml", "o: soft,nofail\n"),
    )
    assert asked(deployment) == ["host_vars/a.yml:2 nas:/a nofail", "host_vars/b.yml:1 nas:/all soft,nofail"]
    assert deployment.unexpanded == []


@pytest.mark.parametrize(
    ("master", "line", "map_", "expected"),
    [
        ("etc/auto.master", "/n /etc/auto.nas -soft", "etc/auto.nas", "/n/a soft"),
        ("etc/auto.master.d/n.autofs", "/n auto.nas -soft", "etc/auto.nas", "/n/a soft"),
        ("files/n.autofs", "/n /etc/auto.nas -soft", "files/auto.nas", "/n/a soft"),
        ("etc/auto.master", "/n multi /etc/auto.x -ro -- /etc/auto.nas -soft", "etc/auto.nas", "/n/a soft"),
        ("etc/auto.master", "/n /etc/other/auto.nas -soft", "etc/auto.nas", "/auto.nas/a "),
        ("b/etc/auto.master", "/n /etc/auto.nas -soft", "a/etc/auto.nas", "/auto.nas/a "),
        ("etc/n.autofs", "/n -soft nas:/n", "etc/auto.nas", "/auto.nas/a "),
    ],
)
def test_a_map_has_the_point_and_the_options_of_its_masters_line(
    master: str, line: str, map_: str, expected: str
) -> None:
    deployment = read((map_, "a nas:/a\n"), (master, f"{line}\n"))
    requests = [row for row in deployment.intent.requests if row.file == map_]
    assert [f"{row.point} {row.options}" for row in requests] == [expected]
    assert deployment.intent.problems == []


@pytest.mark.parametrize("options", ["", "-$X "])
def test_the_entries_of_a_map_that_many_lines_name_have_a_bound(options: str) -> None:
    """A few kilobytes asked for a hundred million mounts."""
    master = "".join(f"/n{number} auto.nas\n" for number in range(300))
    map_ = "".join(f"k{number} {options}nas:/{number}\n" for number in range(300))
    deployment = read(("auto.nas", map_), ("auto.master", master))
    assert len(deployment.intent.requests) + len(deployment.unexpanded) == MOST_REQUESTS
    assert [problem.message for problem in deployment.intent.problems] == [TOO_MANY_REQUESTS]


def test_a_maps_later_entry_of_a_key_does_not_count() -> None:
    deployment = read(("auto.nas", "a nas:/a\nb nas:/b\na nas:/c\n"))
    assert asked(deployment) == ["auto.nas:1 nas:/a ", "auto.nas:2 nas:/b "]
    assert [(row.why, row.name, row.line, row.local) for row in deployment.intent.maps] == [
        (Unread.TWICE, "a", 3, "auto.nas:1")
    ]


@pytest.mark.parametrize(
    "text", ["{{k}} nas:/a\n{{k}} nas:/a\n", "#{% if a %}\na nas:/a\n#{% else %}\na nas:/b\n#{% endif %}\n"]
)
def test_a_templates_key_is_not_there_twice(text: str) -> None:
    deployment = read(("auto.nas.j2", text))
    assert (len(deployment.intent.requests), deployment.intent.maps) == (2, {})


def test_a_share_of_smb_waits_for_the_type_in_its_masters_line() -> None:
    share, master = ("auto.smb", "a ://nas/a\n"), ("auto.master", "/s auto.smb -fstype=cifs,guest\n")
    assert asked(read(share, master)) == ["auto.smb:1 //nas/a guest"]
    deployment = read(share)
    assert (asked(deployment), len(deployment.unexpanded)) == ([], 1)
